//! Loop devices (`linux/loop.h`): a file as a block device.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

use crate::{block, check};

/// Time for which a free loop device is tried for, and the longest pause between two attempts.
const PATIENCE: Duration = Duration::from_secs(5);
const MOST_PAUSE: Duration = Duration::from_millis(20);

const LOOP_CTL_GET_FREE: libc::Ioctl = 0x4C82;
const LOOP_CONFIGURE: libc::Ioctl = 0x4C0A;
const LOOP_CLR_FD: libc::Ioctl = 0x4C01;
const LOOP_GET_STATUS64: libc::Ioctl = 0x4C05;
const LOOP_SET_CAPACITY: libc::Ioctl = 0x4C07;

const LO_FLAGS_READ_ONLY: u32 = 1;
const LO_FLAGS_DIRECT_IO: u32 = 16;

/// `struct loop_info64`.
#[repr(C)]
#[derive(Clone, Copy)]
struct LoopInfo64 {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    size_limit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

/// `struct loop_config`.
#[repr(C)]
struct LoopConfig {
    fd: u32,
    block_size: u32,
    info: LoopInfo64,
    reserved: [u64; 8],
}

const _: () = assert!(size_of::<LoopInfo64>() == 232 && size_of::<LoopConfig>() == 304);

/// The default read-ahead of the page cache (`VM_READAHEAD_PAGES`, include/linux/mm.h), in bytes.
pub const READ_AHEAD: u64 = 128 << 10;

/// The settings of a new loop device.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'a> {
    /// Logical block size in bytes: 512 to 4096.
    pub block_size: u32,
    /// Refuse writes.
    pub read_only: bool,
    /// The most that the page cache reads ahead, in bytes; [`READ_AHEAD`] if this is less.
    pub read_ahead: u64,
    /// Shown as the backing file by `losetup`; at most 63 bytes are kept.
    pub name: &'a str,
}

/// Sets up a free loop device over `file`, with direct I/O, and answers its number.
///
/// # Errors
/// `ENOENT` without the loop driver, `EACCES` without permission, `EBUSY` when others took every
/// free one for some seconds, or what the kernel says about the file.
pub fn attach(file: impl AsFd, setup: Setup<'_>) -> io::Result<u32> {
    let control = OpenOptions::new().read(true).write(true).open("/dev/loop-control")?;
    let deadline = Instant::now() + PATIENCE;
    let mut pause = Duration::from_micros(100);
    // Another process may take the same free number first: at boot many volumes come at the same time, and
    // until one has its device the kernel gives its number to all others as well.
    loop {
        // SAFETY: a call without pointers.
        let number = check(unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE) })? as u32;
        let device = open(number, !setup.read_only)?;
        match configure(&device, &file, setup) {
            Ok(()) => {
                // The kernel gives it the usual one while it is set up, since 6.9.
                let set = block::set_read_ahead(&device, setup.read_ahead.max(READ_AHEAD));
                return set.map(|()| number).inspect_err(|_| drop(clear(&device)));
            }
            Err(busy) if busy.raw_os_error() == Some(libc::EBUSY) && Instant::now() < deadline => {
                std::thread::sleep(pause);
                pause = (pause * 2).min(MOST_PAUSE);
            }
            Err(error) => return Err(error),
        }
    }
}

fn configure(device: &File, file: impl AsFd, setup: Setup<'_>) -> io::Result<()> {
    let mut flags = LO_FLAGS_DIRECT_IO;
    if setup.read_only {
        flags |= LO_FLAGS_READ_ONLY;
    }
    let mut config = LoopConfig {
        fd: file.as_fd().as_raw_fd() as u32,
        block_size: setup.block_size,
        info: empty_info(),
        reserved: [0; 8],
    };
    config.info.flags = flags;
    let name = setup.name.as_bytes();
    let kept = name.len().min(63);
    config.info.file_name[..kept].copy_from_slice(&name[..kept]);
    // SAFETY: the kernel reads a loop_config at the address of a live one of the same layout.
    check(unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CONFIGURE, &config) }).map(drop)
}

/// Returns true if the loop device does direct I/O to its backing file.
///
/// # Errors
/// `ENXIO` if it is not set up.
pub fn is_direct(number: u32) -> io::Result<bool> {
    let device = open(number, false)?;
    let mut info = empty_info();
    // SAFETY: the kernel writes a loop_info64 at the address of a live one.
    check(unsafe { libc::ioctl(device.as_raw_fd(), LOOP_GET_STATUS64, &mut info) })?;
    Ok(info.flags & LO_FLAGS_DIRECT_IO != 0)
}

/// Has the device become as long as its backing file is by now.
///
/// # Errors
/// `ENXIO` if it is not set up; no permission.
pub fn set_capacity(number: u32) -> io::Result<()> {
    let device = open(number, true)?;
    // SAFETY: a call without pointers.
    check(unsafe { libc::ioctl(device.as_raw_fd(), LOOP_SET_CAPACITY) }).map(drop)
}

/// Has the block layer refuse writes to the device, or let them through.
///
/// # Errors
/// No permission.
pub fn set_read_only(number: u32, read_only: bool) -> io::Result<()> {
    block::set_read_only(&open(number, false)?, read_only)
}

fn clear(device: &File) -> io::Result<()> {
    // SAFETY: a call without pointers.
    check(unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CLR_FD) }).map(drop)
}

/// Detaches the backing file, if `is_ours` returns true. The device is open during that call, so its number cannot be
/// reused. If the device is open elsewhere, the kernel detaches the file at the last close. The next user of the device
/// can write to it ([`set_read_only`] would stay), and has the usual read-ahead.
///
/// # Errors
/// `ENXIO` if it is not set up.
pub fn detach(number: u32, is_ours: impl FnOnce() -> bool) -> io::Result<()> {
    let device = open(number, false)?;
    if !is_ours() {
        return Ok(());
    }
    block::set_read_only(&device, false)?;
    block::set_read_ahead(&device, READ_AHEAD)?;
    clear(&device)
}

/// The path of loop device `number`.
pub fn path(number: u32) -> String {
    format!("/dev/loop{number}")
}

fn open(number: u32, write: bool) -> io::Result<File> {
    OpenOptions::new().read(true).write(write).open(path(number))
}

fn empty_info() -> LoopInfo64 {
    LoopInfo64 {
        device: 0,
        inode: 0,
        rdevice: 0,
        offset: 0,
        size_limit: 0,
        number: 0,
        encrypt_type: 0,
        encrypt_key_size: 0,
        flags: 0,
        file_name: [0; 64],
        crypt_name: [0; 64],
        encrypt_key: [0; 32],
        init: [0; 2],
    }
}
