//! What is made for subjects and goes away again: how each thing is known to be there, and how it goes.
//!
//! Invariants:
//!
//! * a name that may belong to somebody else by now is told by more than the name: loop devices by
//!   their files, everything that ends with the system by the boot (`journal.rs`);
//! * by force only what is busy at the very end, and it is named.
//!
//! Deliberately absent: how things come, which their providers know, and in which order they go
//! (`held.rs`).

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::devices::sys_file;
use super::hand::{Hand, command, remove_file};
use crate::command::Exit;
use crate::error::LabError;
use crate::facts::{mount_of, real_path};
use crate::world::World;

/// One thing that goes away again, as it is noted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum Thing {
    /// A volume of braid's.
    Volume { name: String },
    /// Superblocks on members, which are named as the campaign names them.
    Superblocks { members: Vec<String> },
    /// A loop device, and the file that it had.
    Loop { device: String, file: String },
    /// A folder.
    Folder { path: PathBuf, with_content: bool },
    /// A mount.
    Mount { folder: PathBuf },
    /// A changed read-ahead, and what it was.
    Readahead { device: String, sectors: String },
    /// An array of the kernel's.
    KernelArray { device: String },
    /// A RAM disk of the kernel's.
    Zram { number: u32 },
}

impl Thing {
    /// Whether it is still there when the system has been started again.
    pub(super) fn outlives_the_system(&self) -> bool {
        matches!(self, Self::Superblocks { .. } | Self::Folder { .. })
    }

    /// Whether it is there and still what was noted. Of volumes and superblocks whoever takes them
    /// away finds out.
    pub(super) fn is_there(&self, world: &mut dyn World) -> Result<bool, LabError> {
        let mut exists = |path: &Path| Ok(world.path_kind(path)?.is_some());
        match self {
            Self::Volume { .. } | Self::Superblocks { .. } => Ok(true),
            Self::Readahead { device, .. } | Self::KernelArray { device } => {
                exists(Path::new(device))
            }
            Self::Zram { number } => exists(Path::new(&format!("/sys/block/zram{number}"))),
            Self::Folder { path, .. } => {
                let is_there = exists(path)?;
                if is_there {
                    world.adopt_folder(path)?;
                }
                Ok(is_there)
            }
            Self::Loop { device, file } => {
                let now = world.read_text(&sys_file(device, "backing_file"))?;
                Ok(now.as_deref().is_some_and(|now| is_same_file(now, file)))
            }
            Self::Mount { folder } => {
                let table = world.read_text(Path::new("/proc/self/mountinfo"))?.unwrap_or_default();
                Ok(mount_of(folder, &table)
                    .is_some_and(|mount| mount.mount_point == real_path(folder)))
            }
        }
    }

    /// Has it go; what is busy goes only by `force`, which is an error all the same.
    pub(super) fn release(&self, hand: &mut Hand<'_>, force: bool) -> Result<(), LabError> {
        match self {
            Self::Volume { name } => release_volume(hand, name, force),
            Self::Superblocks { members } => release_superblocks(hand, members),
            Self::Loop { device, file } => {
                let detach = command(&["losetup", "--detach", device]);
                hand.run(&detach)?;
                // The kernel defers it while it is in use.
                hand.retry(|hand| {
                    match hand.world.read_text(&sys_file(device, "backing_file"))? {
                        Some(now) if is_same_file(&now, file) => {
                            Err(hand.left(format!("{device} is in use"), &detach))
                        }
                        // Another process has the number by now.
                        Some(_) | None => Ok(()),
                    }
                })
            }
            Self::Folder { path, with_content } => hand.world.remove_folder(path, *with_content),
            Self::Mount { folder } => unmount(hand, &folder.display().to_string(), force),
            Self::Readahead { device, sectors } => {
                hand.run(&command(&["blockdev", "--setra", sectors, device]))
            }
            Self::KernelArray { device } => hand.insist(&command(&["mdadm", "--stop", device])),
            Self::Zram { number } => {
                let remove = Path::new("/sys/class/zram-control/hot_remove");
                hand.retry(|hand| hand.world.write_text(remove, &number.to_string()))
            }
        }
    }
}

/// The kernel says of a file that was removed that it was.
fn is_same_file(now: &str, noted: &str) -> bool {
    let now = now.trim();
    now == noted || now.strip_suffix(" (deleted)") == Some(noted)
}

/// A busy one goes only by force, lazily.
fn unmount(hand: &mut Hand<'_>, folder: &str, force: bool) -> Result<(), LabError> {
    match hand.insist(&command(&["umount", folder])) {
        Err(_) if force => {
            hand.run(&command(&["umount", "--lazy", folder]))?;
            let reason = format!(
                "{folder} was busy; it was detached lazily, and goes when the last program closes \
                 its files"
            );
            Err(hand.left(reason, &command(&["fuser", "-vm", folder])))
        }
        result => result,
    }
}

/// Takes a volume down; one that is in use only by force.
fn release_volume(hand: &mut Hand<'_>, name: &str, force: bool) -> Result<(), LabError> {
    let braid = hand.braid;
    let result = match hand.insist(&braid.call(["down", name])) {
        // It has gone already, with everything.
        Err(_) if is_unknown(hand, name)? => Ok(()),
        Err(error) if force => hand.run(&braid.call(["down", name, "--force"])).and(Err(error)),
        other => other,
    };
    // What comes up next by this name may be another stack.
    result.and(remove_file(&braid.record(name)))
}

/// Whether braid knows no volume of this name, neither one that answers nor one that does not.
fn is_unknown(hand: &mut Hand<'_>, name: &str) -> Result<bool, LabError> {
    let done = hand.try_run(&hand.braid.call(["status", "--json"]))?;
    let said: Value = serde_json::from_str(&done.stdout).unwrap_or_default();
    let mut known = ["volumes", "unanswered"].iter().filter_map(|list| said[list].as_array());
    Ok(done.exit == Exit::Code(0)
        && said["volumes"].is_array()
        && known.all(|volumes| volumes.iter().all(|volume| volume["name"] != name)))
}

/// Members without superblocks again, so that nothing takes them for an array.
fn release_superblocks(hand: &mut Hand<'_>, members: &[String]) -> Result<(), LabError> {
    let mut first = Ok(());
    for member in members {
        let wipe = hand.braid.call(["wipe", member.as_str()]);
        // A server that was killed may hold its members for a moment more.
        first = first.and(hand.retry(|hand| match hand.run(&wipe) {
            // A member that was being replaced when the trial was stopped has none any more.
            Err(_) if has_none(hand, member)? => Ok(()),
            wiped => wiped,
        }));
    }
    first
}

/// Whether a member was looked at and carries no superblock of md's. The exit status does not tell
/// that from a member that cannot be read.
fn has_none(hand: &mut Hand<'_>, member: &str) -> Result<bool, LabError> {
    let done = hand.try_run(&hand.braid.call(["examine", "--json", member]))?;
    let said: Value = serde_json::from_str(&done.stdout).unwrap_or_default();
    let members = said["members"].as_array().map(Vec::as_slice);
    Ok(matches!(members, Some([only]) if only["superblocks"] == json!([])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::Braid;
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
            assert!(!thing.is_there(&mut world).unwrap(), "{thing:?}");
        }
    }

    #[test]
    fn a_folder_of_somebody_else_is_not_taken() {
        let mut world = SystemWorld::new();
        let dir = tempfile::tempdir().unwrap();
        let theirs = dir.path().join("precious");
        std::fs::create_dir(&theirs).unwrap();
        let thing = Thing::Folder { path: theirs.clone(), with_content: true };
        assert!(thing.is_there(&mut world).is_err());
        let ours = world.make_folder(dir.path()).unwrap();
        let thing = Thing::Folder { path: ours.clone(), with_content: true };
        let mut next = SystemWorld::new();
        assert!(thing.is_there(&mut next).unwrap());
        let braid = Braid::in_folder("braid", dir.path());
        let mut hand = Hand { subject: "an earlier run", braid: &braid, world: &mut next };
        thing.release(&mut hand, true).unwrap();
        assert!(theirs.exists() && !ours.exists());
    }

    /// Earlier versions noted also how braid was called.
    #[test]
    fn notes_of_earlier_versions_are_read() {
        let braid = r#"{"program": "braid", "config": "/c", "state": "/s"}"#;
        let read = |text: String| serde_json::from_str::<Thing>(&text).unwrap();
        assert_eq!(
            read(format!(r#"{{"kind": "volume", "braid": {braid}, "name": "lab-1-0"}}"#)),
            Thing::Volume { name: "lab-1-0".into() }
        );
        assert_eq!(
            read(r#"{"kind": "superblocks", "braid": null, "members": ["/a"]}"#.to_owned()),
            Thing::Superblocks { members: vec!["/a".into()] }
        );
    }
}
