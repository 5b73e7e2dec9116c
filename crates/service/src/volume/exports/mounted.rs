//! File systems that are mounted on a volume's block device.

use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::Duration;

use rustix::mount::UnmountFlags;

/// Time limit for file systems on the device to be written out when it is taken away by force.
const SAVE: Duration = Duration::from_secs(10);

/// Mount points of file systems on the device at `path` and its partitions, those below others last.
pub(super) fn mount_points(path: &Path) -> Vec<PathBuf> {
    let table = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
    let is_of = |source: &Path| {
        let (source, path) = (source.as_os_str().as_bytes(), path.as_os_str().as_bytes());
        source.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest[0] == b'p')
    };
    let mounts = braid_probe::parse_mounts(&table).into_iter().filter(|mount| is_of(&mount.source));
    mounts.map(|mount| mount.mount_point).collect()
}

/// Writes out and lazily unmounts what is on the device at `path`, on a thread of its own, because that waits for the shards.
/// Returns true if all of it was done in time.
pub(super) fn save(path: &Path) -> bool {
    let (points, path) = (mount_points(path), path.to_owned());
    let (done, waiting) = channel();
    std::thread::spawn(move || {
        let mut all = true;
        for point in points.iter().rev() {
            all &= File::open(point).is_ok_and(|file| rustix::fs::syncfs(file).is_ok());
            all &= unmount(point);
        }
        all &= File::open(path).is_ok_and(|file| file.sync_all().is_ok());
        // The receiver may be gone.
        let _ = done.send(all);
    });
    waiting.recv_timeout(SAVE).unwrap_or(false)
}

pub(super) fn unmount(point: &Path) -> bool {
    rustix::mount::unmount(point, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW).is_ok()
}
