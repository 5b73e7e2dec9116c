//! Safe fronts for the few system calls that neither the standard library nor a well-kept crate
//! wraps safely: ioctls of block, loop and NBD devices, and the settings of a process that serves a
//! block device to its own kernel.
//!
//! Invariant: every function makes one call, whose memory it owns, and turns the answer into an
//! `io::Result`. Deliberately absent: policy. What is right to do is decided by the callers.

pub mod block;
pub mod loop_device;
pub mod nbd_device;
pub mod process;

use std::io;

/// The answer of a call that gives -1 on failure.
fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
