//! Real file systems on a volume that is attached as `/dev/loopN` by FUSE and loop: made, filled,
//! checked, taken down and brought up again; and what happens to them when the volume is told to
//! go, forced to go, or killed.
//!
//! Root, /dev/fuse and loop devices are needed; without them each test says so and is skipped.

#[path = "../common/mod.rs"]
mod common;
mod discards;
mod endings;
mod round_trips;
mod stable;
mod tree;
mod unwritten;

use std::path::Path;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use common::{MIB, Scratch, Tool, UpVolume, is_root, wait_until};

/// The members of the volumes: large enough for the file system that needs most, and nearly unallocated.
const STACK: &str = "raid0(chunk=64K, ./a.img, ./b.img)";

fn with_members(size: u64) -> Scratch {
    let scratch = Scratch::new();
    for name in ["a.img", "b.img"] {
        scratch.sparse(name, size / 2);
    }
    scratch
}

/// True if volumes can be attached here; otherwise prints the reason.
fn can_attach() -> bool {
    let why_not = if !is_root() {
        "only root can attach volumes"
    } else if !Path::new("/dev/fuse").exists() {
        "there is no /dev/fuse"
    } else if !Path::new("/dev/loop-control").exists() {
        "there is no /dev/loop-control"
    } else {
        return true;
    };
    println!("skipped: {why_not}");
    false
}

/// A file system: how it is made, and how it is checked without being changed.
struct Kind {
    name: &'static str,
    make: &'static [&'static str],
    check: &'static [&'static str],
    size: u64,
}

const EXT4: Kind = Kind {
    name: "ext4",
    make: &["mkfs.ext4", "-q", "-F"],
    check: &["fsck.ext4", "-f", "-n"],
    size: 64 * MIB,
};
const XFS: Kind = Kind {
    name: "xfs",
    make: &["mkfs.xfs", "-q", "-f"],
    check: &["xfs_repair", "-n"],
    size: 320 * MIB,
};
const BTRFS: Kind = Kind {
    name: "btrfs",
    make: &["mkfs.btrfs", "-q", "-f"],
    check: &["btrfs", "check", "--readonly"],
    size: 256 * MIB,
};

impl Kind {
    fn is_installed(&self) -> bool {
        let missing = common::first_missing(&[self.make[0], self.check[0]]);
        if let Some(program) = &missing {
            println!("skipped: {program} is not installed");
        }
        missing.is_none()
    }

    #[track_caller]
    fn make(&self, device: &Path) {
        // mkfs looks at every mount, and fails while the volume of another test goes down.
        wait_until("the mounts to be readable", || {
            let made = Tool::new(self.make[0]).args(&self.make[1..]).arg(device).run();
            let is_undecided = made.err.contains("cannot check mount status");
            if !is_undecided {
                made.ok();
            }
            !is_undecided
        });
    }

    #[track_caller]
    fn check(&self, device: &Path) {
        Tool::new(self.check[0]).args(&self.check[1..]).arg(device).run().ok();
    }
}

/// Brings the volume called `v` up, attached.
#[track_caller]
fn up_new<'a>(scratch: &'a Scratch, options: &[&str]) -> UpVolume<'a> {
    let options: Vec<&str> =
        ["--name", "v", "--attach", "fuse"].iter().chain(options).copied().collect();
    let volume = scratch.up(STACK, &options);
    assert!(volume.device().starts_with("/dev"), "{:?}", volume.device);
    volume
}

/// The programs of btrfs look at whatever is mounted, and refuse where a mount's server is dead: the
/// tests that kill one, or force one down, and those that make a btrfs take turns.
static DEAD_SERVERS: RwLock<()> = RwLock::new(());

fn may_kill_a_server() -> RwLockReadGuard<'static, ()> {
    DEAD_SERVERS.read().unwrap_or_else(PoisonError::into_inner)
}

fn without_dead_servers() -> RwLockWriteGuard<'static, ()> {
    DEAD_SERVERS.write().unwrap_or_else(PoisonError::into_inner)
}

/// True if a volume of this test is behind a loop device. (Another test's volume may be there by now.)
fn is_behind(device: &Path, scratch: &Scratch) -> bool {
    let name = device.file_name().expect("a device has a name").to_string_lossy();
    let file = std::fs::read_to_string(format!("/sys/block/{name}/loop/backing_file"));
    file.is_ok_and(|file| Path::new(&file).starts_with(scratch.path()))
}

/// True if there is a mount at or below this folder.
fn is_anything_mounted(folder: &Path) -> bool {
    let table = std::fs::read_to_string("/proc/self/mountinfo").expect("a process has mounts");
    let folder = folder.to_str().expect("scratch paths are plain");
    table.lines().any(|line| line.split(' ').nth(4).is_some_and(|point| point.starts_with(folder)))
}
