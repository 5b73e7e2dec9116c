//! Opening a file or block device, and what it says of itself.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use braid_block::{Errno, Limits};
use braid_mem::Pool;
use rustix::fs::OFlags;

/// The mode in which a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// For reading; other processes may have it open.
    ReadOnly,
    /// For reading and writing, by no other process meanwhile.
    Exclusive,
}

/// Opens with O_DIRECT, or without where the file system refuses it (`EINVAL`).
pub(super) fn open_direct(
    path: &Path,
    access: Access,
    block_device: bool,
) -> io::Result<(File, bool)> {
    let exclusive = access == Access::Exclusive;
    let base = if block_device && exclusive { OFlags::EXCL } else { OFlags::empty() };
    let open = |flags: OFlags| {
        OpenOptions::new()
            .read(true)
            .write(exclusive)
            .custom_flags((base | flags).bits() as i32)
            .open(path)
    };
    match open(OFlags::DIRECT) {
        Ok(file) => Ok((file, true)),
        Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw()) => {
            Ok((open(OFlags::empty())?, false))
        }
        Err(error) => Err(error),
    }
}

/// Limits of a file, and its size before it is cut to whole blocks.
pub(super) fn limits_of(
    file: &File,
    access: Access,
    block_device: bool,
    direct: bool,
) -> io::Result<(Limits, u64)> {
    let read_only = access == Access::ReadOnly;
    if block_device {
        let logical = braid_sys::block::logical_block(file)?.clamp(512, 4096);
        let size = braid_sys::block::size(file)?;
        let discard = queue_limit(file, "discard_max_bytes").is_none_or(|most| most > 0);
        let zeroes = queue_limit(file, "write_zeroes_max_bytes");
        let limits = Limits {
            discard,
            // A disk without discards writes the zeroes that it makes.
            unmaps_zeroes: discard && zeroes.is_some_and(|most| most > 0),
            physical_block: braid_sys::block::physical_block(file)?.max(logical),
            rotational: braid_sys::block::rotational(file)?,
            read_only,
            ..Limits::new(size, logical)
        };
        return Ok((limits, size));
    }
    let logical = if direct { direct_block(file)? } else { 512 };
    let exact = file.metadata()?.len();
    let size = exact / u64::from(logical) * u64::from(logical);
    let unmaps_zeroes = makes_holes(rustix::fs::fstatfs(file)?.f_type);
    let limits = Limits::new(size, logical);
    Ok((Limits { physical_block: 4096, read_only, unmaps_zeroes, ..limits }, exact))
}

/// Returns what the kernel says of the queue of a block device, or of the disk of a partition. `None` if it says nothing.
fn queue_limit(file: &File, name: &str) -> Option<u64> {
    let device = file.metadata().ok()?.rdev();
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let of_kernel = format!("/sys/dev/block/{major}:{minor}");
    let text = ["queue", "../queue"]
        .iter()
        .find_map(|queue| std::fs::read_to_string(format!("{of_kernel}/{queue}/{name}")).ok());
    text?.trim().parse().ok()
}

/// Returns true for file systems that make holes (fallocate(2), `FALLOC_FL_PUNCH_HOLE`), by the number of statfs(2).
/// Others may, too; where they do not, a hole is zeroes that are written.
fn makes_holes(file_system: impl Into<i64>) -> bool {
    const BTRFS: i64 = 0x9123_683e;
    const F2FS: i64 = 0xf2f5_2010;
    const BCACHEFS: i64 = 0xca45_1a4e;
    const ZFS: i64 = 0x2fc1_2fc1;
    const EXT4: i64 = 0xef53;
    const XFS: i64 = 0x5846_5342;
    const TMPFS: i64 = 0x0102_1994;
    const OVERLAYFS: i64 = 0x794c_7630;
    let known = [EXT4, XFS, BTRFS, TMPFS, F2FS, BCACHEFS, ZFS, OVERLAYFS];
    known.contains(&file_system.into())
}

/// The block size that direct I/O on a regular file obeys: 512, or 4096 where a read of 512
/// bytes is refused. (Since Linux 6.1 `statx` tells; this works everywhere.)
fn direct_block(file: &File) -> io::Result<u32> {
    let pool = Pool::new(braid_mem::PAGE)?;
    let mut buf = pool.get(512).ok_or(io::ErrorKind::OutOfMemory)?;
    match file.read_at(&mut buf, 0) {
        Ok(_) => Ok(512),
        Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw()) => Ok(4096),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_are_expected_of_known_file_systems_only() {
        const VFAT: i64 = 0x4d44;
        assert!(!makes_holes(VFAT));
        for path in ["/dev/shm", "/tmp"] {
            let Ok(found) = rustix::fs::statfs(path) else { continue };
            let folder = tempfile::tempfile_in(path).expect("a file");
            let access = Access::Exclusive;
            let (limits, _) = limits_of(&folder, access, false, false).expect("its limits");
            assert_eq!(limits.unmaps_zeroes, makes_holes(found.f_type), "{path}");
        }
    }
}
