//! `braid rescue copy --to FOLDER`: the files of a volume, by braid's own readers of ext2, ext3, ext4, xfs and btrfs.
//!
//! Invariants
//! * Names on the volume are hostile. Each is made in the folder that is open for its directory, and no symbolic link is
//!   followed: nothing outside of the folder is written.
//! * A file that is there is not written over, unless it is of this copy, which was interrupted.
//! * The modification time of a file is set when its content is complete. The report calls a name durable only
//!   afterwards, so that a second run may leave out what is there.
//! * Memory does not grow with the number of files, but for those with several names.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use braid_files::{Event, Kind, Node, ReadAt, Volume, Walk};
use braid_service::failure::{Context, Failure};
use rustix::fs::{AtFlags, Gid, Mode, OFlags, Timespec, Timestamps, Uid};
use rustix::io::Errno;

use super::fill::fill;
use super::pace::{SAVED, STEP, progress};
use super::report::Report;
use crate::command::listing::{Counts, Known, State, judge_file, tell_shared};

/// Names after which what was copied is made durable.
const NAMES: u64 = 20_000;
/// Names of files with several ones that are kept.
const LINKS: usize = 1_000_000;

/// The result of a copy.
pub(super) struct Copied {
    pub(super) counts: Counts,
    pub(super) report: PathBuf,
    /// Devices and the like, which are not made.
    pub(super) left_out: u64,
    /// Remarks about the file system.
    pub(super) notes: Vec<String>,
}

/// Copies the files of `volume`, which is called `copied`, into the folder `to`.
///
/// # Errors
/// The folder is not of this copy, or cannot be written.
pub(super) fn copy(
    volume: &Volume<'_>,
    copied: &str,
    known: &Known,
    to: &Path,
) -> Result<Copied, Failure> {
    let mut walk = volume.walk().map_err(Failure::failed)?;
    walk.set_doubtful(known.all());
    let (folder, report) = open_target(to, copied)?;
    let is_resumed = report.durable > 0;
    let mut copying = Copying {
        volume,
        known: &known.readable(),
        to,
        is_resumed,
        is_root: rustix::process::geteuid().is_root(),
        folders: Vec::new(),
        root: folder,
        report,
        links: BTreeMap::new(),
        shared: Vec::new(),
        names: 0,
        files: 0,
        bytes: 0,
        left_out: 0,
        unsaved: (0, 0),
        buffer: vec![0; usize::try_from(STEP).expect("a step is one MiB")],
    };
    copying.run(&mut walk)?;
    let Copying { report, files, bytes, left_out, .. } = copying;
    let counts = Counts { files, bytes, is_old: volume.unreplayed().is_some(), ..report.counts };
    Ok(Copied { counts, report: report.path, left_out, notes: walk.take_notes() })
}

/// Opens the folder, which is made if it is not there, and the report beside it.
fn open_target(to: &Path, copied: &str) -> Result<(OwnedFd, Report), Failure> {
    let cannot = format!("cannot write {}", to.display());
    match std::fs::create_dir(to) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(error).context(cannot);
        }
        _ => {}
    }
    let full = to.canonicalize().context(&cannot)?;
    let Some(name) = full.file_name() else {
        return Err(Failure::refused(format!(
            "{} has no name beside which a report could be",
            to.display()
        ))
        .next("name another folder with --to"));
    };
    let mut lost = name.to_owned();
    lost.push(".lost");
    let lost = full.with_file_name(lost);
    let is_empty = std::fs::read_dir(&full).context(&cannot)?.next().is_none();
    if !is_empty && !Report::is_there(&lost) {
        let there = format!("{} has files already, and is not of a copy", to.display());
        return Err(Failure::refused(there).next("name a new folder with --to"));
    }
    let report = Report::open(lost, copied)?;
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    let folder = rustix::fs::open(&full, flags, Mode::empty()).map_err(io::Error::from);
    Ok((folder.context(&cannot)?, report))
}

/// A folder that is being filled.
struct Folder {
    fd: OwnedFd,
    node: Node,
}

struct Copying<'a> {
    volume: &'a dyn ReadAt,
    known: &'a Known,
    to: &'a Path,
    /// A part of the copy is there.
    is_resumed: bool,
    /// Owners can be set.
    is_root: bool,
    root: OwnedFd,
    folders: Vec<Folder>,
    report: Report,
    /// Files with more names to come: their first path below the folder, and how many names.
    links: BTreeMap<u64, (CString, u32)>,
    /// Bytes of the volume that several files have.
    shared: Vec<Range<u64>>,
    /// Names so far, in the order of the walk.
    names: u64,
    files: u64,
    bytes: u64,
    left_out: u64,
    /// Bytes and names that may not be durable.
    unsaved: (u64, u64),
    buffer: Vec<u8>,
}

impl Copying<'_> {
    fn run(&mut self, walk: &mut Walk<'_>) -> Result<(), Failure> {
        while let Some(event) = walk.next() {
            if let Event::Leave = event {
                self.leave();
                continue;
            }
            self.names += 1;
            let is_reported = self.names <= self.report.durable;
            let (path, mut state) = match event {
                Event::Leave => continue,
                Event::Enter(name, node) => self.enter(walk, &name, node)?,
                Event::Entry(name, node) => {
                    let path = walk.path(&name);
                    (path.clone(), self.entry(walk, &name, &path, &node, is_reported)?)
                }
                Event::Trouble { name, why, .. } => {
                    (walk.path(&name.unwrap_or_default()), State::lost_as(why))
                }
            };
            if walk.took_doubtful() {
                state.why.push("its metadata are in doubt".to_owned());
            }
            if !is_reported {
                self.report.add(&path, &state)?;
            }
            self.unsaved.1 += 1;
            if self.unsaved.0 >= SAVED || self.unsaved.1 >= NAMES {
                self.save()?;
            }
        }
        let shared = std::mem::take(&mut self.shared);
        if self.names > self.report.durable {
            let report = &mut self.report;
            tell_shared(self.volume, &shared, &mut |path, state| report.add(path, &state))?;
        }
        self.save()
    }

    /// Makes what was copied durable, and says so in the report.
    fn save(&mut self) -> Result<(), Failure> {
        let synced = rustix::fs::syncfs(&self.root).map_err(io::Error::from);
        synced.context(format!("cannot write {}", self.to.display()))?;
        if self.names > self.report.durable {
            self.report.mark(self.names)?;
        }
        self.unsaved = (0, 0);
        progress(self.bytes, &format!("{} files", self.files));
        Ok(())
    }

    /// The folder in which names are made.
    fn folder(&self) -> &OwnedFd {
        self.folders.last().map_or(&self.root, |folder| &folder.fd)
    }

    fn enter(
        &mut self,
        walk: &mut Walk<'_>,
        name: &[u8],
        node: Node,
    ) -> Result<(Vec<u8>, State), Failure> {
        let path = walk.path(b"");
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let made = match name.is_empty() {
            true => rustix::io::fcntl_dupfd_cloexec(&self.root, 3),
            false => match rustix::fs::mkdirat(self.folder(), name, Mode::RWXU) {
                Err(Errno::EXIST) if self.is_resumed => Ok(()),
                made => made,
            }
            .and_then(|()| rustix::fs::openat(self.folder(), name, flags, Mode::empty())),
        };
        match made {
            Ok(fd) => {
                self.folders.push(Folder { fd, node });
                Ok((path, State::default()))
            }
            Err(error) => {
                walk.leave();
                Ok((path, self.not_made(error)?))
            }
        }
    }

    /// Sets the attributes of the innermost folder, whose names are all there.
    fn leave(&mut self) {
        let Some(Folder { fd, node }) = self.folders.pop() else { return };
        // A folder whose attributes cannot be set has its files.
        let _ = self.set_attributes(&fd, &node);
    }

    /// The state of a name that the folder does not take. A full disk ends the copy.
    fn not_made(&self, error: Errno) -> Result<State, Failure> {
        match error {
            Errno::NOSPC | Errno::DQUOT | Errno::IO | Errno::ROFS | Errno::MFILE | Errno::NFILE => {
                let failed: io::Result<State> = Err(error.into());
                failed.context(format!("cannot write {}", self.to.display()))
            }
            Errno::EXIST => Ok(State::lost_as("its directory has this name twice".to_owned())),
            error => {
                Ok(State::lost_as(format!("it cannot be written: {}", io::Error::from(error))))
            }
        }
    }

    fn entry(
        &mut self,
        walk: &mut Walk<'_>,
        name: &[u8],
        path: &[u8],
        node: &Node,
        is_reported: bool,
    ) -> Result<State, Failure> {
        self.files += 1;
        if let Kind::Special(what) = node.kind {
            self.left_out += 1;
            if !is_reported {
                self.report.add_left_out(path, &format!("a {what} is not made"))?;
            }
            return Ok(State::default());
        }
        let made = match self.linked(name, node) {
            Some(made) => made,
            None if is_reported && self.is_there(name, node) => {
                self.bytes += node.size;
                // The extents of later files are compared with those of this one.
                self.judged(walk, node).map(Ok)?
            }
            None => {
                if self.is_resumed {
                    let _ = rustix::fs::unlinkat(self.folder(), name, AtFlags::empty());
                }
                match node.kind {
                    Kind::Link => self.link(walk, name, node),
                    _ => self.file(walk, name, node)?,
                }
            }
        };
        let state = match made {
            Ok(state) => state,
            Err(error) => return self.not_made(error),
        };
        if node.links > 1 && !node.is_again && self.links.len() < LINKS {
            let path = CString::new(&path[1..]).expect("a name of a walk has no zero byte");
            self.links.insert(node.inode, (path, node.links - 1));
        }
        Ok(state)
    }

    /// Gives a file that is there another name. None if it is not there.
    fn linked(&mut self, name: &[u8], node: &Node) -> Option<Result<State, Errno>> {
        let (first, left) = self.links.get_mut(&node.inode)?;
        let folder = self.folders.last().map_or(&self.root, |folder| &folder.fd);
        if self.is_resumed {
            let _ = rustix::fs::unlinkat(folder, name, AtFlags::empty());
        }
        let made = rustix::fs::linkat(&self.root, &*first, folder, name, AtFlags::empty());
        *left -= 1;
        if *left == 0 {
            self.links.remove(&node.inode);
        }
        match made {
            Ok(()) => Some(Ok(State::default())),
            Err(Errno::EXIST) => Some(Err(Errno::EXIST)),
            // A file system without hard links, or with fewer, gets a copy.
            Err(_) => None,
        }
    }

    /// True if a name is complete: same kind, size and time.
    fn is_there(&self, name: &[u8], node: &Node) -> bool {
        let Ok(stat) = rustix::fs::statat(self.folder(), name, AtFlags::SYMLINK_NOFOLLOW) else {
            return false;
        };
        u32::from(node.mode) >> 12 == stat.st_mode >> 12
            && u64::try_from(stat.st_size) == Ok(node.size)
            && stat.st_mtime == node.modified.0
    }

    fn judged(&mut self, walk: &mut Walk<'_>, node: &Node) -> Result<State, Failure> {
        match node.kind {
            Kind::File => judge_file(walk, node, self.known, &mut self.shared, &mut |_, _| Ok(())),
            _ => Ok(State::default()),
        }
    }

    fn link(&self, walk: &mut Walk<'_>, name: &[u8], node: &Node) -> Result<State, Errno> {
        let target = match walk.target(node) {
            Ok(target) => target,
            Err(why) => return Ok(State::lost_as(why.to_string())),
        };
        let folder = self.folder();
        rustix::fs::symlinkat(&*target, folder, name)?;
        if self.is_root {
            let (user, group) = owner(node);
            rustix::fs::chownat(folder, name, user, group, AtFlags::SYMLINK_NOFOLLOW)?;
        }
        rustix::fs::utimensat(folder, name, &times(node), AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(State::default())
    }

    fn file(
        &mut self,
        walk: &mut Walk<'_>,
        name: &[u8],
        node: &Node,
    ) -> Result<Result<State, Errno>, Failure> {
        let flags =
            OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::WRONLY | OFlags::CLOEXEC;
        let made = rustix::fs::openat(self.folder(), name, flags, Mode::RUSR | Mode::WUSR)
            .and_then(|fd| rustix::fs::ftruncate(&fd, node.size).map(|()| fd));
        let file = match made {
            Ok(fd) => std::fs::File::from(fd),
            Err(error) => {
                // One that is there already is not this one.
                if error != Errno::EXIST {
                    let _ = rustix::fs::unlinkat(self.folder(), name, AtFlags::empty());
                }
                return Ok(Err(error));
            }
        };
        let state = match walk.inline(node) {
            Err(why) => State::lost_as(why.to_string()),
            Ok(Some(bytes)) => {
                let written = file.write_all_at(&bytes, 0);
                written.context(format!("cannot write {}", self.to.display()))?;
                State::default()
            }
            Ok(None) => {
                let (volume, known, to) = (self.volume, self.known, self.to);
                let (buffer, unsaved) = (&mut self.buffer, &mut self.unsaved.0);
                judge_file(walk, node, known, &mut self.shared, &mut |extent, state| {
                    if extent.unwritten {
                        return Ok(());
                    }
                    *unsaved += extent.range.end - extent.range.start;
                    fill(volume, &file, extent, buffer, state)
                        .context(format!("cannot write {}", to.display()))
                })?
            }
        };
        self.bytes += node.size;
        Ok(self.set_attributes(&file, node).map(|()| state))
    }

    fn set_attributes(&self, fd: impl AsFd, node: &Node) -> Result<(), Errno> {
        if self.is_root {
            let (user, group) = owner(node);
            rustix::fs::fchown(&fd, user, group)?;
        }
        // Without its owner, a program that runs as its owner would run as another.
        let kept = if self.is_root { 0o7777 } else { 0o1777 };
        rustix::fs::fchmod(&fd, Mode::from_bits_truncate(u32::from(node.mode) & kept))?;
        rustix::fs::futimens(&fd, &times(node))
    }
}

fn owner(node: &Node) -> (Option<Uid>, Option<Gid>) {
    (Some(Uid::from_raw(node.owner.0)), Some(Gid::from_raw(node.owner.1)))
}

fn times(node: &Node) -> Timestamps {
    let of = |(seconds, nanoseconds): braid_files::Time| Timespec {
        tv_sec: seconds,
        tv_nsec: nanoseconds.into(),
    };
    Timestamps { last_access: of(node.accessed), last_modification: of(node.modified) }
}
