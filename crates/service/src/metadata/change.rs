//! Members opened exclusively, and bytes on them replaced: all of them or none.
//!
//! ```text
//!   hold ──▶ read what is there ──▶ save it ──▶ replace, group by group ──▶ done
//!   (O_EXCL,                        (fsync)     (fsync after each)
//!    flock)                                        └─ failed: put back, last first
//! ```
//!
//! Invariants: nothing is replaced before what was there is saved; patches of one kind are durable
//! before one of the next kind is written, which puts superblocks behind what they point to.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use braid_device::Access;
use braid_member::Named;
use braid_probe::{FileKind, MemberFacts, Place, identify};
use rustix::fs::{FlockOperation, OFlags};

use super::Image;
use super::saved::{Patch, Saved, Trail};
use crate::failure::{Context, Failure};
use crate::volume::member_failure;

/// A member that no other program may use while this value lives.
pub struct Held {
    /// The member's path, or the text of a remote member.
    pub path: PathBuf,
    medium: Medium,
    /// Offset of the member in the file, and its size, in bytes.
    place: (u64, u64),
}

/// The kind of a member.
enum Medium {
    File(File),
    Remote(Named),
}

impl Held {
    /// Opens a member for writing: a block device exclusively, a regular file locked as volumes
    /// lock it.
    ///
    /// # Errors
    /// It is in use, may not be written, or is no longer what was examined.
    pub fn open(facts: &MemberFacts) -> Result<Held, Failure> {
        let path = &facts.path;
        let place = Place::of(path).map_err(Failure::failed)?;
        let block = facts.kind == FileKind::Block;
        let flags = if block { OFlags::EXCL } else { OFlags::empty() } | OFlags::NONBLOCK;
        let in_use = || {
            Failure::refused(format!("{} is in use by another program", path.display()))
                .next("`braid status` lists the volumes that are up, `lsblk` the users of a device")
        };
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(flags.bits().cast_signed())
            .open(&place.path)
            .map_err(|error| match error.kind() {
                io::ErrorKind::ResourceBusy => in_use(),
                _ => Failure::failed(format!("cannot open {} to write: {error}", path.display())),
            })?;
        let descriptor = format!("/proc/self/fd/{}", file.as_raw_fd());
        let same = identify(Path::new(&descriptor)).is_ok_and(|(_, now)| now == facts.identity);
        if !same {
            let what = "it became something else while it was examined";
            return Err(Failure::refused(format!("{}: {what}", path.display())));
        }
        if !block {
            rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)
                .map_err(|_| in_use())?;
        }
        let medium = Medium::File(file);
        Ok(Held { path: path.clone(), medium, place: (place.start, facts.size) })
    }

    /// Opens the remote member called `path` for writing. An image of a Ceph cluster is locked; nothing keeps others
    /// from using an export of an NBD server.
    ///
    /// # Errors
    /// It cannot be reached or written, or has another size than the `size` that was examined.
    pub(crate) fn remote(path: &Path, size: u64) -> Result<Held, Failure> {
        let remote =
            Named::open(path, Access::Exclusive).map_err(|error| member_failure(&error))?;
        let now = remote.kind().size();
        if now != size {
            let what = format!("it had {size} bytes when it was examined, and has {now}");
            return Err(Failure::refused(format!("{}: {what}", path.display())));
        }
        Ok(Held { path: path.to_owned(), medium: Medium::Remote(remote), place: (0, size) })
    }

    /// Looks for superblocks on the member.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn image(&self) -> Result<Image, Failure> {
        match &self.medium {
            Medium::File(_) => Image::open(&self.path),
            // Some servers take one client only.
            Medium::Remote(remote) => Image::of(&self.path, remote.kind()),
        }
    }

    /// `len` bytes from `offset` on.
    ///
    /// # Errors
    /// They cannot be read, or the member ends before.
    pub fn read(&self, offset: u64, len: usize) -> Result<Vec<u8>, Failure> {
        let mut bytes = vec![0; len];
        let at = self.at(offset, len)?;
        let read = match &self.medium {
            Medium::File(file) => file.read_exact_at(&mut bytes, at),
            Medium::Remote(remote) => remote.kind().read_at(at, &mut bytes),
        };
        read.context(format_args!("cannot read {} at {offset}", self.path.display()))?;
        Ok(bytes)
    }

    /// Returns the position in the file of `offset` of the member.
    fn at(&self, offset: u64, len: usize) -> Result<u64, Failure> {
        let (start, size) = self.place;
        let end = offset.checked_add(len as u64).filter(|end| *end <= size);
        end.map(|_| start + offset).ok_or_else(|| {
            Failure::failed(format!("{} ends before byte {offset} + {len}", self.path.display()))
        })
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), Failure> {
        let at = self.at(offset, bytes.len())?;
        let written = match &self.medium {
            Medium::File(file) => file.write_all_at(bytes, at),
            Medium::Remote(remote) => remote.kind().write_at(at, bytes),
        };
        written.context(format_args!("cannot write {} at {offset}", self.path.display()))
    }

    fn sync(&self) -> Result<(), Failure> {
        let what = format!("cannot make durable what was written to {}", self.path.display());
        match &self.medium {
            Medium::File(file) => file.sync_all(),
            Medium::Remote(remote) => remote.kind().sync(),
        }
        .context(what)
    }
}

/// The present content of a place of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The bytes from before the change.
    Before,
    /// The bytes that were written.
    After,
    /// A part of either: a write was interrupted.
    Between,
    /// Something else: it was written since.
    Other,
}

impl Standing {
    /// Compares the bytes of a place, sector by sector: a power cut tears a write between sectors.
    #[must_use]
    pub fn of(before: &[u8], now: &[u8], after: &[u8]) -> Standing {
        const SECTOR: usize = 512;
        let mut sectors = before.chunks(SECTOR).zip(now.chunks(SECTOR)).zip(after.chunks(SECTOR));
        let is_either =
            |((before, now), after): ((&[u8], &[u8]), &[u8])| now == before || now == after;
        match (now == after, now == before) {
            (true, _) => Standing::After,
            (false, true) => Standing::Before,
            _ if sectors.all(is_either) => Standing::Between,
            _ => Standing::Other,
        }
    }
}

/// Members and what is to be written to them, in order.
pub struct Change {
    /// The members, locked.
    pub members: Vec<Held>,
    /// The writes, in this order.
    pub patches: Vec<Patch>,
}

impl Change {
    /// Reads the present bytes in the places of the patches.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn present(&self) -> Result<Vec<Vec<u8>>, Failure> {
        let read = |patch: &Patch| self.members[patch.member].read(patch.offset, patch.bytes.len());
        self.patches.iter().map(read).collect()
    }

    /// Saves what is there, replaces it, and does what `finish` does. `saved` describes the change
    /// for `braid undo`. Answers the number of the change.
    ///
    /// # Errors
    /// Also those of `finish`. Nothing is changed then, unless the message says so.
    pub fn carry_out(
        &self,
        trail: &Trail,
        saved: Saved,
        finish: impl FnOnce() -> Result<(), Failure>,
    ) -> Result<u64, Failure> {
        let before = self.present()?;
        let number = trail.save(saved, &before, &self.patches)?;
        let Err(failure) = self.replace().and_then(|()| self.read_back()).and_then(|()| finish())
        else {
            return Ok(number);
        };
        match self.put(&before) {
            Ok(()) => {
                trail.remove(number)?;
                Err(failure.note("what was there before was put back"))
            }
            Err(second) => Err(failure
                .note(format!("and it could not be put back: {}", second.text()))
                .next(format!("`braid undo {number}` puts back what was there"))),
        }
    }

    /// Writes the patches in their order, each kind durable before the next.
    ///
    /// # Errors
    /// A member cannot be written: some of it was.
    pub fn replace(&self) -> Result<(), Failure> {
        for group in self.patches.chunk_by(|left, right| left.what == right.what) {
            for patch in group {
                self.members[patch.member].write(patch.offset, &patch.bytes)?;
            }
            self.members.iter().try_for_each(Held::sync)?;
        }
        Ok(())
    }

    /// Reads the superblocks of remote members again: two names of one export, which nothing else tells, would leave
    /// the superblock of the second one there.
    fn read_back(&self) -> Result<(), Failure> {
        for patch in self.patches.iter().filter(|patch| patch.what == "superblock") {
            let member = &self.members[patch.member];
            let is_remote = matches!(member.medium, Medium::Remote(_));
            if is_remote && member.read(patch.offset, patch.bytes.len())? != patch.bytes {
                return Err(Failure::refused(format!(
                    "{} does not hold what was written to it: another member is the same export, or another \
                     program writes to it",
                    member.path.display()
                )));
            }
        }
        Ok(())
    }

    /// Writes `before`, one for each patch, in the reverse order. All of it is tried.
    ///
    /// # Errors
    /// The first one, if some of it could not be written.
    pub fn put(&self, before: &[Vec<u8>]) -> Result<(), Failure> {
        let pairs = || self.patches.iter().zip(before).rev();
        let mut result = Ok(());
        for (patch, bytes) in pairs() {
            let member = &self.members[patch.member];
            // What is there already need not be written: perhaps it cannot.
            let there = member.read(patch.offset, bytes.len()).is_ok_and(|now| now == *bytes);
            if !there {
                result = result.and(member.write(patch.offset, bytes));
            }
        }
        self.members.iter().fold(result, |result, member| result.and(member.sync()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Saved;

    fn held(path: PathBuf, writable: bool) -> Held {
        let file = OpenOptions::new().read(true).write(writable).open(&path).expect("a member");
        Held { path, medium: Medium::File(file), place: (0, u64::MAX) }
    }

    fn change(folder: &Path, writable: [bool; 2]) -> Change {
        let member = |index: usize| {
            let path = folder.join(format!("{index}.img"));
            std::fs::write(&path, vec![index as u8; 8192]).expect("a member");
            held(path, writable[index])
        };
        let patch = |member, what| Patch { member, offset: 4096, what, bytes: vec![0xff; 512] };
        let (log, superblock) = ("bad-block log", "superblock");
        Change {
            members: vec![member(0), member(1)],
            patches: vec![
                patch(0, log),
                patch(1, log),
                Patch { offset: 0, ..patch(0, superblock) },
                Patch { offset: 0, ..patch(1, superblock) },
            ],
        }
    }

    fn is_untouched(folder: &Path, member: u8) -> bool {
        let bytes = std::fs::read(folder.join(format!("{member}.img"))).expect("a member");
        bytes == vec![member; 8192]
    }

    #[test]
    fn what_fails_in_the_middle_changes_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let trail = Trail::new(folder.path().join("state"));
        let failing = change(folder.path(), [true, false]);
        let failure =
            failing.carry_out(&trail, Saved::new("create"), || Ok(())).expect_err("a write fails");
        let text = failure.text();
        assert!(text.contains("cannot write") && text.contains("1.img at 4096"), "{text}");
        assert!(text.contains("what was there before was put back"), "{text}");
        assert!(is_untouched(folder.path(), 0) && is_untouched(folder.path(), 1));
        assert!(trail.list().is_empty(), "nothing is left to undo");
    }

    #[test]
    fn what_was_there_is_saved_and_can_be_put_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let trail = Trail::new(folder.path().join("state"));
        let done = change(folder.path(), [true, true]);
        done.carry_out(&trail, Saved::new("create"), || Ok(())).expect("all can be written");
        assert!(!is_untouched(folder.path(), 0) && !is_untouched(folder.path(), 1));
        let saved = trail.list().remove(0);
        let contents = trail.contents(&saved).expect("the saved bytes");
        let after: Vec<&[u8]> = done.patches.iter().map(|patch| &patch.bytes[..]).collect();
        assert_eq!(contents.after, after);
        done.put(&contents.before).expect("all can be written");
        assert!(is_untouched(folder.path(), 0) && is_untouched(folder.path(), 1));
    }

    #[test]
    fn nothing_is_written_if_nothing_can_be_saved() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("state"), "in the way").expect("a file");
        let trail = Trail::new(folder.path().join("state"));
        let change = change(folder.path(), [true, true]);
        assert!(change.carry_out(&trail, Saved::new("create"), || Ok(())).is_err());
        assert!(is_untouched(folder.path(), 0) && is_untouched(folder.path(), 1));
    }

    /// Behind a partition of an image another one begins.
    #[test]
    fn nothing_is_written_behind_the_end_of_a_member() {
        let folder = tempfile::tempdir().expect("a folder");
        let trail = Trail::new(folder.path().join("state"));
        let mut change = change(folder.path(), [true, true]);
        change.members[1].place = (1024, 4096 + 511);
        let result = change.carry_out(&trail, Saved::new("create"), || Ok(()));
        let text = result.expect_err("a place that is not all on the member").text();
        assert!(text.contains("1.img ends before byte 4096 + 512"), "{text}");
        assert!(is_untouched(folder.path(), 0) && is_untouched(folder.path(), 1));
        change.members[1].place.1 += 1;
        change.carry_out(&trail, Saved::new("create"), || Ok(())).expect("the last bytes of it");
        let bytes = std::fs::read(folder.path().join("1.img")).expect("a member");
        assert!(bytes[1024 + 4096..][..512].iter().all(|byte| *byte == 0xff));
    }

    #[test]
    fn a_torn_write_is_between_before_and_after() {
        let (before, after) = (vec![1; 1024], vec![2; 1024]);
        let torn = [&after[..512], &before[512..]].concat();
        let other = [&after[..511], &before[511..]].concat();
        let of = |now: &[u8]| Standing::of(&before, now, &after);
        assert_eq!([of(&before), of(&after)], [Standing::Before, Standing::After]);
        assert_eq!([of(&torn), of(&other)], [Standing::Between, Standing::Other]);
        assert_eq!(Standing::of(&before, &before, &before), Standing::After);
    }

    /// The last patch is put back first: before it, its place held the bytes of another patch.
    #[test]
    fn what_was_replaced_twice_is_as_it_was_at_first() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut change = change(folder.path(), [true, true]);
        change.patches.truncate(1);
        let before = vec![vec![0; 512], vec![1; 512]];
        change.patches.push(Patch { bytes: vec![2; 512], ..change.patches[0].clone() });
        change.replace().expect("all can be written");
        change.put(&before).expect("all can be written");
        assert!(is_untouched(folder.path(), 0));
    }

    #[test]
    fn a_path_that_leads_elsewhere_by_now_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let [path, other] = ["a.img", "b.img"].map(|name| folder.path().join(name));
        [&path, &other].iter().for_each(|path| std::fs::write(path, [0; 8192]).expect("a member"));
        let facts = braid_probe::look_at(&path).expect("a member");
        drop(Held::open(&facts).expect("what was examined"));
        std::fs::rename(&other, &path).expect("another file");
        let failure = Held::open(&facts).map(drop).expect_err("another file");
        assert!(failure.text().contains("it became something else"), "{}", failure.text());
    }
}
