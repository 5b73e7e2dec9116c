//! Devices of the kernel's NBD client (`linux/nbd.h`): the client's end of a connection as a block device.
//!
//! The sockets are given and the device is run by the same process; [`run`] is inside the kernel for as long as the device
//! is there. When that call ends, also because its process does, the kernel lets go of the sockets.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use crate::check;

const NBD_SET_SOCK: libc::Ioctl = 0xab00;
const NBD_SET_BLKSIZE: libc::Ioctl = 0xab01;
const NBD_DO_IT: libc::Ioctl = 0xab03;
const NBD_CLEAR_SOCK: libc::Ioctl = 0xab04;
const NBD_SET_SIZE_BLOCKS: libc::Ioctl = 0xab07;
const NBD_DISCONNECT: libc::Ioctl = 0xab08;
const NBD_SET_FLAGS: libc::Ioctl = 0xab0a;

/// Gives the device one more connection, whose handshake is over. All are given by the same thread.
///
/// # Errors
/// `EBUSY` or `EINVAL` if another process sets the device up.
pub fn add_socket(device: impl AsFd, socket: impl AsFd) -> io::Result<()> {
    call(device, NBD_SET_SOCK, socket.as_fd().as_raw_fd() as libc::c_ulong)
}

/// Sets the size of a block, 512 bytes to a page, and the number of blocks; also of a device that is there.
///
/// # Errors
/// No permission.
pub fn set_size(device: impl AsFd, block: u32, blocks: u64) -> io::Result<()> {
    let device = device.as_fd();
    call(device, NBD_SET_BLKSIZE, block.into())?;
    call(device, NBD_SET_SIZE_BLOCKS, blocks)
}

/// Sets the transmission flags (`NBD_FLAG_*`) that the server sent.
///
/// # Errors
/// No permission.
pub fn set_flags(device: impl AsFd, flags: u16) -> io::Result<()> {
    call(device, NBD_SET_FLAGS, flags.into())
}

/// Runs the device until it is disconnected.
///
/// # Errors
/// `EBUSY` if it runs already; `EINVAL` if it has several sockets and the server's flags do not allow that; a connection
/// broke.
pub fn run(device: impl AsFd) -> io::Result<()> {
    call(device, NBD_DO_IT, 0)
}

/// Tells the server that the client leaves, after which [`run`] ends.
///
/// # Errors
/// It does not run.
pub fn disconnect(device: impl AsFd) -> io::Result<()> {
    call(device, NBD_DISCONNECT, 0)
}

/// Takes the sockets away. Requests that have no answer fail.
///
/// # Errors
/// No permission.
pub fn clear(device: impl AsFd) -> io::Result<()> {
    call(device, NBD_CLEAR_SOCK, 0)
}

fn call(device: impl AsFd, request: libc::Ioctl, value: libc::c_ulong) -> io::Result<()> {
    // SAFETY: none of these requests takes a pointer.
    check(unsafe { libc::ioctl(device.as_fd().as_raw_fd(), request, value) }).map(drop)
}
