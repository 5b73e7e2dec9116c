//! The check that a file or device was not written between two looks at it.
//!
//! | what | what has to be the same | what makes it doubtful |
//! |---|---|---|
//! | a file | device, inode, size, times of its last change to the nanosecond | a file system of another machine, or one that keeps time coarsely |
//! | a disk of this machine, a partition of one | boot, disk's sequence number, sectors written and discarded on all of the disk | a disk that other machines reach |
//! | any other block device | – | what is below it is written without being counted there |
//!
//! Sources: `inode(7)`; the kernel's `Documentation/ABI/stable/sysfs-block` (`stat`, `diskseq`).

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::ProbeError;
use crate::identity::{FileKind, Identity};
use crate::sysfs::BlockDevice;

/// The kernel counts time of files in ticks, of which there are at least a hundred a second: of two
/// changes within one tick only the first can be seen.
const TICK: Duration = Duration::from_millis(20);

/// File systems of this machine that keep nanoseconds, by their magic numbers (`statfs(2)`).
const TIMED: [u64; 6] = [
    0xef53,      // ext4
    0x5846_5342, // xfs
    0x9123_683e, // btrfs
    0xf2f5_2010, // f2fs
    0x0102_1994, // tmpfs
    0x2fc1_2fc1, // zfs
];

/// The parts of `/sys/devices` whose disks other machines may write: targets of iSCSI and Fibre Channel, and
/// devices on top of other devices.
const SHARED: [&str; 3] = ["session", "rport-", "virtual"];

/// A text that remains the same as long as `path` is not written; `None` if nothing proves that.
///
/// After a recent change, it waits for some milliseconds, until later changes can be seen.
///
/// # Errors
/// The path cannot be examined.
pub fn last_change(path: &Path) -> Result<Option<String>, ProbeError> {
    let path = &braid_stack::path_of(path);
    let mut metadata = fs::metadata(path).map_err(ProbeError::io("look at", path))?;
    match FileKind::of(&metadata) {
        FileKind::Regular => {
            let status = rustix::fs::statfs(path)
                .map_err(|error| ProbeError::io("look at", path)(error.into()))?;
            if !TIMED.contains(&u64::try_from(status.f_type).unwrap_or(0)) {
                return Ok(None);
            }
            if metadata.modified().is_ok_and(is_within_a_tick) {
                std::thread::sleep(TICK);
                metadata = fs::metadata(path).map_err(ProbeError::io("look at", path))?;
            }
            Ok(Some(of_file(&metadata)))
        }
        FileKind::Block => match Identity::of(&metadata) {
            Identity::Block(number) => {
                Ok(BlockDevice::find(number)?.and_then(|device| of_disk(&device.whole_disk())))
            }
            Identity::File { .. } => Ok(None),
        },
        _ => Ok(None),
    }
}

fn is_within_a_tick(changed: SystemTime) -> bool {
    // A time to come, of a clock that was set back, is no proof, and waiting would not make it one.
    SystemTime::now().duration_since(changed).is_ok_and(|since| since < TICK)
}

fn of_file(file: &fs::Metadata) -> String {
    format!(
        "file {}:{}, {} bytes, modified {}.{:09}, changed {}.{:09}",
        file.dev(),
        file.ino(),
        file.size(),
        file.mtime(),
        file.mtime_nsec(),
        file.ctime(),
        file.ctime_nsec()
    )
}

fn of_disk(disk: &BlockDevice) -> Option<String> {
    let is_shared = |part: &str| SHARED.iter().any(|name| part.starts_with(name));
    if disk.components().any(|part| is_shared(&part)) {
        return None;
    }
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let (number, sequence) = (disk.number()?, disk.attribute("diskseq")?);
    let size = disk.attribute("size")?;
    let stat = disk.attribute("stat")?;
    let stat: Vec<&str> = stat.split_ascii_whitespace().collect();
    // The seventh field counts sectors written, the fourteenth those discarded.
    let (written, discarded) = (stat.get(6)?, stat.get(13)?);
    Some(format!(
        "disk {number}, {size} sectors, boot {}, sequence {sequence}, written {written}, discarded \
         {discarded}",
        boot.trim()
    ))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_file_is_the_same_until_somebody_writes_it() {
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = folder.path().join("origin");
        fs::write(&path, [1; 4096]).unwrap();
        let Some(before) = last_change(&path).unwrap() else {
            println!("skipped: the file system here does not prove that nobody wrote");
            return;
        };
        fs::read(&path).unwrap();
        assert_eq!(last_change(&path).unwrap().as_ref(), Some(&before));
        // Also at once after it was looked at.
        for _ in 0..20 {
            let before = last_change(&path).unwrap();
            let mut file = fs::OpenOptions::new().write(true).open(&path).unwrap();
            file.write_all(&[2]).unwrap();
            assert_ne!(last_change(&path).unwrap(), before);
        }
    }

    #[test]
    fn what_is_neither_file_nor_disk_proves_nothing() {
        assert_eq!(last_change(Path::new("/dev/null")).unwrap(), None);
        assert!(last_change(Path::new("/nowhere")).is_err());
    }

    /// Writes to a partition, or past it to its disk, are counted.
    #[test]
    fn disks_of_this_machine_are_counted() {
        let disks = BlockDevice::all().unwrap();
        let mut loops = disks.iter().filter(|disk| disk.name().starts_with("loop"));
        assert!(loops.all(|disk| of_disk(disk).is_none()));
    }
}
