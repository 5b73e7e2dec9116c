//! What an earlier run in this results folder left because it was killed: taken away before the
//! next one begins.
//!
//! Invariants:
//!
//! * the lock of the results folder is held, so whatever is noted or marked there belongs to a run
//!   that has ended;
//! * in the reverse order of its coming, as in a run that ends in order; but the superblocks of
//!   braid's arrays last, when no volume is there any more that could have their members open: one
//!   that was just coming up cannot be asked to go, and is ended with the rest of the processes;
//! * superblocks are removed only from members that may be overwritten this time too: somebody may
//!   have given them another use meanwhile. A relative path may mean another member by now, so it
//!   is told and not touched;
//! * what does not go is told, stays noted, and does not stop this run, whose names are others.

use std::collections::BTreeMap;
use std::path::Path;

use super::Subjects;
use super::held::Held;
use super::journal::Thing;
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
        let mut left = self.find_what_was_left(world)?;
        let things = left.held.len() + left.superblocks.len();
        tell(left.held.release(EARLIER, true, world));
        let mut volumes = 0;
        tell(world.end_strays(false).map(|count| volumes = count));
        if volumes > 0 {
            // What they had attached may be there without them.
            tell(left.volumes.release(EARLIER, true, world));
        }
        tell(left.superblocks.release(EARLIER, true, world));
        processes += volumes;
        if processes + things > 0 {
            told.insert(
                0,
                format!(
                    "an earlier run was killed here: {processes} processes and {things} things \
                     (mounts, devices, volumes, folders) that it left were taken away"
                ),
            );
        }
        told.extend(left.kept.iter().map(|member| {
            format!(
                "an earlier run was killed here: {member} may still have its superblock; \
                 `braid wipe {member}` removes it"
            )
        }));
        Ok(told)
    }

    /// What is still there, in groups that go one after the other.
    fn find_what_was_left(&mut self, world: &mut dyn World) -> Result<Left, LabError> {
        let notes = std::mem::take(&mut self.left);
        let none = || Held::noted_in(&self.journal);
        let mut left =
            Left { held: none(), volumes: none(), superblocks: none(), kept: Vec::new() };
        // Files of the loop devices that are still ours.
        let mut files = BTreeMap::new();
        for (key, thing) in notes {
            if let Thing::Superblocks { braid, members } = thing {
                let may = |member: &String| {
                    let path = files.get(member).unwrap_or(member);
                    Path::new(path).is_absolute() && self.permit.covers(path)
                };
                let (members, others): (Vec<_>, Vec<_>) = members.into_iter().partition(may);
                left.kept.extend(others);
                if members.is_empty() {
                    self.journal.strike(key);
                    continue;
                }
                match braid {
                    // The folders of that run will have gone.
                    Some(_) => {
                        let braid = Some(self.braid());
                        left.superblocks.adopt(Thing::Superblocks { braid, members }, key);
                    }
                    None => left.held.adopt(Thing::Superblocks { braid, members }, key),
                }
                continue;
            }
            if let Thing::Volume { name, .. } = &thing {
                let (braid, name) = (self.braid(), name.clone());
                left.volumes.adopt(Thing::Volume { braid, name }, key);
            }
            if !is_there(&thing, world)? {
                self.journal.strike(key);
                continue;
            }
            if let Thing::Loop { device, file } = &thing {
                files.insert(device.clone(), file.clone());
            }
            left.held.adopt(thing, key);
        }
        Ok(left)
    }
}

/// What an earlier run left.
struct Left {
    /// What goes in the reverse order of its coming.
    held: Held,
    /// The volumes among it, once more.
    volumes: Held,
    /// Superblocks of braid's arrays.
    superblocks: Held,
    /// Members that are not touched.
    kept: Vec<String>,
}

/// Whether a thing is there and still what was noted.
fn is_there(thing: &Thing, world: &mut dyn World) -> Result<bool, LabError> {
    let mut exists = |path: &Path| Ok(world.path_kind(path)?.is_some());
    match thing {
        Thing::Volume { .. } | Thing::Superblocks { .. } => Ok(true),
        Thing::Readahead { device, .. } | Thing::KernelArray { device } => {
            exists(Path::new(device))
        }
        Thing::Zram { number } => exists(Path::new(&format!("/sys/block/zram{number}"))),
        Thing::Folder { path, .. } => {
            let is_there = exists(path)?;
            if is_there {
                world.adopt_folder(path)?;
            }
            Ok(is_there)
        }
        Thing::Loop { device, file } => {
            let now = world.read_text(&loops::sys_file(device, "backing_file"))?;
            Ok(now.as_deref().is_some_and(|now| is_same_file(now, file)))
        }
        Thing::Mount { folder } => {
            let table = world.read_text(Path::new("/proc/self/mounts"))?.unwrap_or_default();
            Ok(mountpoint_of(folder, &table) == Some(real_path(folder)))
        }
    }
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
        for thing in [
            Thing::Loop { device: "/dev/loop9999".into(), file: "/srv/a.img".into() },
            Thing::Folder { path: gone.clone(), with_content: true },
            // There, and nothing is mounted on it.
            Thing::Mount { folder: dir.path().into() },
            Thing::Readahead { device: "/dev/loop9999".into(), sectors: "256".into() },
            Thing::KernelArray { device: "/dev/md/lab-none-0".into() },
            Thing::Zram { number: 99_999 },
        ] {
            assert!(!is_there(&thing, &mut world).unwrap(), "{thing:?}");
        }
    }

    #[test]
    fn a_folder_of_somebody_else_is_not_taken() {
        let mut world = SystemWorld::new();
        let dir = tempfile::tempdir().unwrap();
        let theirs = dir.path().join("precious");
        std::fs::create_dir(&theirs).unwrap();
        let thing = Thing::Folder { path: theirs.clone(), with_content: true };
        assert!(is_there(&thing, &mut world).is_err());
        let ours = world.make_folder(dir.path()).unwrap();
        let thing = Thing::Folder { path: ours.clone(), with_content: true };
        let mut next = SystemWorld::new();
        let mut held = Held::default();
        assert!(is_there(&thing, &mut next).unwrap());
        held.push(thing);
        held.release(EARLIER, true, &mut next).unwrap();
        assert!(theirs.exists() && !ours.exists());
    }
}
