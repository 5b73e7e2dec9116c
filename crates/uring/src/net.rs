//! Sockets: receiving and accepting through the driver, sending at once.
//!
//! Sending is a plain non-blocking system call, tried from the task itself: a stream socket
//! nearly always has room, and then a reply costs one call and no wake-up of its own. Only when
//! the socket is full does the task wait for it to become writable.

use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use braid_mem::Buf;

use crate::executor::Handle;
use crate::fd::Fd;
use crate::operation::{Interest, Operation, raw};
use crate::submitted::Submitted;

/// A receive under way.
pub struct Receive {
    operation: Submitted,
}

impl Future for Receive {
    type Output = (io::Result<usize>, Buf);

    fn poll(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Self::Output> {
        std::pin::Pin::new(&mut self.operation).poll(cx).map(|(result, operation)| {
            let Operation::Recv { buf, .. } = operation else {
                unreachable!("a receive gives its buffer back")
            };
            (count(result), buf)
        })
    }
}

impl Handle {
    /// Receives up to `buf.len() - from` bytes behind the first `from`, at least one unless the
    /// other side has ended. `wait_first` says that the socket is known to be empty, which
    /// saves a useless attempt.
    pub fn recv(&self, fd: &Fd, buf: Buf, from: usize, wait_first: bool) -> Receive {
        let operation = Operation::Recv { fd: fd.clone(), buf, from, wait_first, whole: false };
        Receive { operation: self.submit(operation) }
    }

    /// Receives behind the first `from` bytes until the buffer is full, if the driver can do so
    /// by itself; otherwise as [`Handle::recv`] does.
    pub fn recv_whole(&self, fd: &Fd, buf: Buf, from: usize) -> Receive {
        let fd = fd.clone();
        let operation = Operation::Recv { fd, buf, from, wait_first: false, whole: true };
        Receive { operation: self.submit(operation) }
    }

    /// Waits for a connection.
    ///
    /// # Errors
    /// What `accept4` answers, e.g. `EMFILE`.
    pub async fn accept(&self, listener: &Fd) -> io::Result<OwnedFd> {
        let (result, _) = self.submit(Operation::Accept(listener.clone())).await;
        let fd = count(result)? as i32;
        // SAFETY: the kernel made this descriptor for this operation just now.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }

    /// Waits until `fd` is ready (or failed, which the next call on it will tell).
    ///
    /// # Errors
    /// What `poll` answers for a bad descriptor.
    pub async fn ready(&self, fd: &Fd, interest: Interest) -> io::Result<()> {
        let (result, _) = self.submit(Operation::Poll { fd: fd.clone(), interest }).await;
        count(result).map(drop)
    }

    /// Sends as much of `parts` as the socket takes now.
    ///
    /// # Errors
    /// `WouldBlock` when it takes nothing; else the connection's failure. No signal is raised.
    pub fn try_send(&self, fd: &Fd, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        // SAFETY: `msghdr` is plain data, for which all zeroes is a valid value.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        // `IoSlice` is ABI-compatible with `iovec`; the kernel only reads through it.
        message.msg_iov = parts.as_ptr().cast_mut().cast();
        message.msg_iovlen = parts.len().min(libc::UIO_MAXIOV as usize) as _;
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        // SAFETY: `message` points at `parts`, which live across the call.
        let sent = unsafe { libc::sendmsg(raw(fd), &message, flags) };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }

    /// Ends both directions of a connection. A receive or a wait under way on it ends.
    pub fn shutdown(&self, fd: &Fd) {
        // SAFETY: no memory is passed. A connection that has ended already answers with an error, which changes nothing.
        unsafe { libc::shutdown(raw(fd), libc::SHUT_RDWR) };
    }

    /// Receives what is there now.
    ///
    /// # Errors
    /// `WouldBlock` when nothing is.
    pub fn try_recv(&self, fd: &Fd, into: &mut [u8]) -> io::Result<usize> {
        // SAFETY: `into` is valid for writes of its length across the call.
        let got = unsafe {
            libc::recv(fd.as_raw_fd(), into.as_mut_ptr().cast(), into.len(), libc::MSG_DONTWAIT)
        };
        usize::try_from(got).map_err(|_| io::Error::last_os_error())
    }
}

fn count(result: i32) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::from_raw_os_error(-result))
}
