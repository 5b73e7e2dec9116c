//! Block device ioctls (`linux/fs.h`).

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use crate::check;

const BLKGETSIZE64: libc::Ioctl = 0x8008_1272u32 as libc::Ioctl;
const BLKSSZGET: libc::Ioctl = 0x1268;
const BLKPBSZGET: libc::Ioctl = 0x127b;
const BLKROTATIONAL: libc::Ioctl = 0x127e;
const BLKDISCARD: libc::Ioctl = 0x1277;
const BLKZEROOUT: libc::Ioctl = 0x127f;
const BLKROSET: libc::Ioctl = 0x125d;
/// Counts in units of 512 bytes.
const BLKRASET: libc::Ioctl = 0x1262;

/// Capacity in bytes.
///
/// # Errors
/// `ENOTTY` if `fd` is not a block device.
pub fn size(fd: impl AsFd) -> io::Result<u64> {
    let mut size = 0u64;
    // SAFETY: the kernel writes 8 bytes at the address, which is a live u64.
    check(unsafe { libc::ioctl(fd.as_fd().as_raw_fd(), BLKGETSIZE64, &mut size) })?;
    Ok(size)
}

/// Logical block size in bytes.
///
/// # Errors
/// `ENOTTY` if `fd` is not a block device.
pub fn logical_block(fd: impl AsFd) -> io::Result<u32> {
    let mut size: libc::c_int = 0;
    // SAFETY: the kernel writes an int at the address of a live int.
    check(unsafe { libc::ioctl(fd.as_fd().as_raw_fd(), BLKSSZGET, &mut size) })?;
    Ok(size as u32)
}

/// Physical block size in bytes.
///
/// # Errors
/// `ENOTTY` if `fd` is not a block device.
pub fn physical_block(fd: impl AsFd) -> io::Result<u32> {
    let mut size: libc::c_uint = 0;
    // SAFETY: the kernel writes an unsigned int at the address of a live one.
    check(unsafe { libc::ioctl(fd.as_fd().as_raw_fd(), BLKPBSZGET, &mut size) })?;
    Ok(size)
}

/// True if access time depends on the position.
///
/// # Errors
/// `ENOTTY` if `fd` is not a block device.
pub fn rotational(fd: impl AsFd) -> io::Result<bool> {
    let mut rotational: libc::c_ushort = 0;
    // SAFETY: the kernel writes an unsigned short at the address of a live one.
    check(unsafe { libc::ioctl(fd.as_fd().as_raw_fd(), BLKROTATIONAL, &mut rotational) })?;
    Ok(rotational != 0)
}

/// Has the block layer refuse writes to a device, or let them through.
///
/// # Errors
/// No permission.
pub fn set_read_only(fd: impl AsFd, read_only: bool) -> io::Result<()> {
    let read_only = libc::c_int::from(read_only);
    // SAFETY: the kernel reads an int at the address of a live one.
    check(unsafe { libc::ioctl(fd.as_fd().as_raw_fd(), BLKROSET, &read_only) }).map(drop)
}

/// Sets the size of the page cache's read-ahead, in bytes.
///
/// # Errors
/// No permission.
pub fn set_read_ahead(fd: impl AsFd, bytes: u64) -> io::Result<()> {
    let units = bytes.div_ceil(512) as libc::c_ulong;
    // SAFETY: a call without pointers.
    check(unsafe { libc::ioctl(fd.as_fd().as_raw_fd(), BLKRASET, units) }).map(drop)
}

/// Drops the contents of a range.
///
/// # Errors
/// `EOPNOTSUPP` where the device cannot; `EINVAL` for an unaligned range.
pub fn discard(fd: impl AsFd, offset: u64, len: u64) -> io::Result<()> {
    range_ioctl(fd, BLKDISCARD, offset, len)
}

/// Makes a range read as zeroes, by the device's own means or by writing them.
///
/// # Errors
/// `EINVAL` for an unaligned range; `EIO` when the device fails.
pub fn zero_out(fd: impl AsFd, offset: u64, len: u64) -> io::Result<()> {
    range_ioctl(fd, BLKZEROOUT, offset, len)
}

fn range_ioctl(fd: impl AsFd, request: libc::Ioctl, offset: u64, len: u64) -> io::Result<()> {
    let range = [offset, len];
    // SAFETY: the kernel reads two u64 at the address of two live ones.
    check(unsafe { libc::ioctl(fd.as_fd().as_raw_fd(), request, range.as_ptr()) }).map(drop)
}
