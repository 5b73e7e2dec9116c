//! What an earlier run in this results folder left because it was killed: taken away before the
//! next one begins.
//!
//! Invariants:
//!
//! * the lock of the results folder is held, so whatever is noted or marked there belongs to a run
//!   that has ended;
//! * in the reverse order of its coming, as in a run that ends in order;
//! * superblocks are removed only from members that may be overwritten this time too: somebody may
//!   have given them another use meanwhile;
//! * what does not go is told, stays noted, and does not stop this run, whose names are others.

use std::collections::BTreeMap;
use std::path::Path;

use super::Subjects;
use super::held::{Held, Thing};
use super::journal::Note;
use super::loops;
use super::trial::mountpoint_of;
use crate::error::LabError;
use crate::facts::real_path;
use crate::world::World;

/// What the messages call it.
const EARLIER: &str = "an earlier run";

impl Subjects<'_> {
    /// Takes away what was left, and marks as this folder's what is started from now on. Answers
    /// what the user must know.
    ///
    /// # Errors
    ///
    /// When the system cannot be asked what there is.
    pub(crate) fn clear_what_was_left(
        &mut self,
        world: &mut dyn World,
    ) -> Result<Vec<String>, LabError> {
        world.mark_processes(&self.options.results_dir)?;
        let mut told = Vec::new();
        let mut tell = |result: Result<(), LabError>| {
            told.extend(result.err().map(|error| format!("warning: {error}")));
        };
        let mut processes = 0;
        // The tools first, which keep the rest busy.
        tell(world.end_strays(true).map(|count| processes += count));
        let (held, superblocks) = self.find_what_was_left(world)?;
        let things = held.len();
        let mut held = held;
        tell(held.release(EARLIER, true, world));
        // Volumes that nobody could note any more.
        tell(world.end_strays(false).map(|count| processes += count));
        if processes + things > 0 {
            told.insert(
                0,
                format!(
                    "an earlier run was killed here: {processes} processes and {things} things \
                     (mounts, devices, volumes, folders) that it left were taken away"
                ),
            );
        }
        told.extend(superblocks.iter().map(|member| {
            format!(
                "an earlier run was killed here: {member} may still have its superblock; \
                 `braid wipe {member}` removes it"
            )
        }));
        Ok(told)
    }

    /// What is still there, and members that are not touched.
    fn find_what_was_left(
        &mut self,
        world: &mut dyn World,
    ) -> Result<(Held, Vec<String>), LabError> {
        let left = std::mem::take(&mut self.left);
        let mut held = Held::noted_in(&self.journal);
        let mut kept = Vec::new();
        // Files of the loop devices that are still ours.
        let mut files = BTreeMap::new();
        for (key, note) in left {
            if let Note::Superblocks { braid, members } = note {
                let may = |member: &String| {
                    let path = files.get(member).unwrap_or(member);
                    self.permit.covers(path)
                };
                let (members, others): (Vec<_>, Vec<_>) = members.into_iter().partition(may);
                kept.extend(others);
                held.adopt(Thing::Superblocks { braid, members }, key);
                continue;
            }
            match find(note, world)? {
                Some(thing) => {
                    if let Thing::Loop { device, file } = &thing {
                        files.insert(device.clone(), file.clone());
                    }
                    held.adopt(thing, key);
                }
                None => self.journal.strike(key),
            }
        }
        Ok((held, kept))
    }
}

/// The thing, if it is there and still what was noted.
fn find(note: Note, world: &mut dyn World) -> Result<Option<Thing>, LabError> {
    let (is_there, thing) = match note {
        Note::Volume { braid, name } => (true, Thing::Volume { braid, name }),
        Note::Superblocks { braid, members } => (true, Thing::Superblocks { braid, members }),
        Note::Loop { device, file } => {
            let now = world.read_text(&loops::sys_file(&device, "backing_file"))?;
            let same = now.as_deref().is_some_and(|now| is_same_file(now, &file));
            (same, Thing::Loop { device, file })
        }
        Note::Folder { path, with_content } => {
            let is_there = world.path_kind(&path)?.is_some();
            if is_there {
                world.adopt_folder(&path)?;
            }
            (is_there, Thing::Folder { path, with_content })
        }
        Note::Mount { folder } => {
            let table = world.read_text(Path::new("/proc/self/mounts"))?.unwrap_or_default();
            let mounted = mountpoint_of(&folder, &table) == Some(real_path(&folder));
            (mounted, Thing::Mount { folder })
        }
        Note::Readahead { device, sectors } => {
            let is_there = world.path_kind(Path::new(&device))?.is_some();
            (is_there, Thing::Readahead { device, sectors })
        }
        Note::KernelArray { device } => {
            let is_there = world.path_kind(Path::new(&device))?.is_some();
            (is_there, Thing::KernelArray { device })
        }
        Note::Zram { number } => {
            let device = format!("/sys/block/zram{number}");
            (world.path_kind(Path::new(&device))?.is_some(), Thing::Zram { number })
        }
    };
    Ok(is_there.then_some(thing))
}

/// The kernel says of a file that was removed that it was.
fn is_same_file(now: &str, noted: &str) -> bool {
    let now = now.trim();
    now == noted || now.strip_suffix(" (deleted)") == Some(noted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::SystemWorld;

    #[test]
    fn a_loop_device_is_told_by_its_file() {
        assert!(is_same_file("/srv/a.img\n", "/srv/a.img"));
        assert!(is_same_file("/srv/a.img (deleted)\n", "/srv/a.img"));
        assert!(!is_same_file("/srv/b.img\n", "/srv/a.img"));
    }

    #[test]
    fn what_has_gone_is_not_looked_for() {
        let mut world = SystemWorld::new();
        let dir = tempfile::tempdir().unwrap();
        let gone = dir.path().join("braid-lab-gone");
        for note in [
            Note::Loop { device: "/dev/loop9999".into(), file: "/srv/a.img".into() },
            Note::Folder { path: gone.clone(), with_content: true },
            // There, and nothing is mounted on it.
            Note::Mount { folder: dir.path().into() },
            Note::Readahead { device: "/dev/loop9999".into(), sectors: "256".into() },
            Note::KernelArray { device: "/dev/md/lab-none-0".into() },
            Note::Zram { number: 99_999 },
        ] {
            assert!(find(note.clone(), &mut world).unwrap().is_none(), "{note:?}");
        }
    }

    #[test]
    fn a_folder_of_somebody_else_is_not_taken() {
        let mut world = SystemWorld::new();
        let dir = tempfile::tempdir().unwrap();
        let theirs = dir.path().join("precious");
        std::fs::create_dir(&theirs).unwrap();
        let note = Note::Folder { path: theirs.clone(), with_content: true };
        assert!(find(note, &mut world).is_err());
        let ours = world.make_folder(dir.path()).unwrap();
        let note = Note::Folder { path: ours.clone(), with_content: true };
        let mut next = SystemWorld::new();
        let mut held = Held::default();
        held.push(find(note, &mut next).unwrap().unwrap());
        held.release(EARLIER, true, &mut next).unwrap();
        assert!(theirs.exists() && !ours.exists());
    }
}
