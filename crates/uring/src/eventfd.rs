//! Event counters of the kernel, by which threads wake a driver. Source: eventfd(2).

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Makes a counter that wakes its waiter when it is not 0.
///
/// # Errors
/// `EMFILE`, `ENOMEM`.
pub(crate) fn new() -> io::Result<OwnedFd> {
    // SAFETY: a call without pointers; the result is checked and owned.
    unsafe {
        match libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) {
            -1 => Err(io::Error::last_os_error()),
            fd => Ok(OwnedFd::from_raw_fd(fd)),
        }
    }
}

/// Wakes the waiter of an eventfd.
pub(crate) fn ring(fd: &OwnedFd) {
    let one = 1u64.to_ne_bytes();
    // SAFETY: 8 valid bytes. It can only fail when the count is at its maximum, and then the waiter is woken
    // anyway.
    unsafe { libc::write(fd.as_raw_fd(), one.as_ptr().cast(), one.len()) };
}

/// Takes the count out of an eventfd, so that it can wake again.
pub(crate) fn drain(fd: &OwnedFd) {
    let mut count = [0u8; 8];
    // SAFETY: the buffer is valid for the 8 bytes an eventfd gives. EAGAIN, the only failure of
    // a non-blocking eventfd, means that it is empty already.
    unsafe { libc::read(fd.as_raw_fd(), count.as_mut_ptr().cast(), count.len()) };
}
