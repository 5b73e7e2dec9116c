//! Opening a file or block device, and what it says of itself.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
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
        let limits = Limits {
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
    Ok((Limits { physical_block: 4096, read_only, ..Limits::new(size, logical) }, exact))
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
