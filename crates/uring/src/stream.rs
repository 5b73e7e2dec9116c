//! The transport of a connection: bytes both ways, and a timer.
//!
//! A session, a server's or a client's, is written against [`Stream`] and compiled for each: for sockets on the production executor
//! ([`Socket`]), and for the streams of a simulation. Dispatch is static, so that the seam costs nothing.

use std::future::Future;
use std::io::{self, IoSlice};
use std::time::Duration;

use braid_mem::Buf;

use crate::{Fd, Handle, Interest, Receive};

/// A connection's bytes, and its executor's timer. Clones are the same connection.
pub trait Stream: Clone + Unpin + 'static {
    /// A receive under way: how many bytes came (none: the other side has ended), and the buffer.
    type Receive: Future<Output = (io::Result<usize>, Buf)> + Unpin;

    /// Receives up to `buf.len() - from` bytes behind the first `from`. `wait_first` says that
    /// nothing is there yet, which saves a useless attempt.
    fn receive(&self, buf: Buf, from: usize, wait_first: bool) -> Self::Receive;

    /// Receives behind the first `from` bytes until the buffer is full, if that can be asked for;
    /// otherwise as [`Stream::receive`] does.
    fn receive_whole(&self, buf: Buf, from: usize) -> Self::Receive;

    /// Sends as much of `parts` as is taken now.
    ///
    /// # Errors
    /// `WouldBlock` when nothing is taken; else the connection's failure.
    fn try_send(&self, parts: &[IoSlice<'_>]) -> io::Result<usize>;

    /// Waits until there is room to send, or a failure that the next call tells.
    fn writable(&self) -> impl Future<Output = io::Result<()>> + 'static;

    /// Waits until it is this task's turn for work that others on the thread wait for.
    fn turn(&self) -> impl Future<Output = ()> + 'static {
        std::future::ready(())
    }

    /// Says that the next waits are better slept than polled: requests come together, since their sender does not wait for each
    /// answer, or answers wait for room, since it is slow to take them.
    fn prefer_sleep(&self) {}

    /// Ends both directions: a receive under way ends as if the other side had gone. A stream of which only one task
    /// knows need not implement this.
    fn close(&self) {}

    /// Waits for `duration`.
    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + 'static;
}

/// A socket on the production executor.
#[derive(Clone)]
pub struct Socket {
    handle: Handle,
    fd: Fd,
}

impl Socket {
    /// Returns the connection of `fd`, which does not block, on the shard of `handle`.
    pub fn new(handle: &Handle, fd: &Fd) -> Socket {
        Socket { handle: handle.clone(), fd: fd.clone() }
    }
}

impl Stream for Socket {
    type Receive = Receive;

    #[inline]
    fn receive(&self, buf: Buf, from: usize, wait_first: bool) -> Receive {
        self.handle.recv(&self.fd, buf, from, wait_first)
    }

    #[inline]
    fn receive_whole(&self, buf: Buf, from: usize) -> Receive {
        self.handle.recv_whole(&self.fd, buf, from)
    }

    #[inline]
    fn try_send(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.handle.try_send(&self.fd, parts)
    }

    fn writable(&self) -> impl Future<Output = io::Result<()>> + 'static {
        let Socket { handle, fd } = self.clone();
        async move { handle.ready(&fd, Interest::Writable).await }
    }

    fn prefer_sleep(&self) {
        if let Some(ring) = self.handle.ring() {
            ring.prefer_sleep();
        }
    }

    fn close(&self) {
        self.handle.shutdown(&self.fd);
    }

    fn turn(&self) -> impl Future<Output = ()> + 'static {
        let handle = self.handle.clone();
        async move { handle.turn().await }
    }

    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + 'static {
        let handle = self.handle.clone();
        async move { handle.sleep(duration).await }
    }
}
