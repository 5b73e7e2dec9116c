//! Stalled clients.
//!
//! A client may be idle between two requests for ever. Inside a message, or with replies unread, it keeps
//! memory that others may want:
//!
//! | it owes                          | memory is free           | others wait for memory      |
//! |----------------------------------|---------------------------|-----------------------------|
//! | the rest of a message            | cut off after the limit   | cut off after [`PATIENCE`]  |
//! |                                  | without a byte            | of less than [`LEAST`] each |
//! | the reading of replies           | without a limit           | the same                    |
//!
//! So a paused virtual machine keeps its disk, and no number of stalled clients can keep the others from
//! theirs.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use braid_mem::Pool;

use braid_uring::Stream;

/// Interval of checks.
const TICK: Duration = Duration::from_millis(500);
/// Bytes per tick that count as progress while others wait for memory.
const LEAST: u64 = 32 << 10;
/// Time for which a client may keep memory that others wait for, without progress.
const PATIENCE: Duration = Duration::from_secs(2);

/// The duty of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owes {
    /// Nothing.
    Nothing,
    /// To read what was sent.
    Reading,
    /// The rest of a message.
    Message,
}

/// Watches one connection.
pub(crate) struct Watch<S> {
    stream: S,
    pool: Pool,
    stall_limit: Duration,
    timer: Option<Pin<Box<dyn Future<Output = ()>>>>,
    /// Bytes that had moved at the last tick.
    moved_bytes: u64,
    /// Time without any progress, and time with less than [`LEAST`] per tick.
    still: Duration,
    slow: Duration,
}

impl<S: Stream> Watch<S> {
    pub(crate) fn new(stream: S, pool: Pool, stall_limit: Duration) -> Watch<S> {
        Watch {
            stream,
            pool,
            stall_limit,
            timer: None,
            moved_bytes: 0,
            still: Duration::ZERO,
            slow: Duration::ZERO,
        }
    }

    /// To be polled when nothing can move: ready, with how long that lasts, when the client is
    /// to be cut off. `moved_bytes` is what was received and sent so far.
    pub(crate) fn poll(
        &mut self,
        owes: Owes,
        moved_bytes: u64,
        cx: &mut Context<'_>,
    ) -> Poll<Duration> {
        if owes == Owes::Nothing {
            self.timer = None;
            (self.still, self.slow) = (Duration::ZERO, Duration::ZERO);
            return Poll::Pending;
        }
        loop {
            let timer = self.timer.get_or_insert_with(|| Box::pin(self.stream.sleep(TICK)));
            if timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            self.timer = None;
            let moved = moved_bytes - self.moved_bytes;
            self.moved_bytes = moved_bytes;
            self.still = if moved == 0 { self.still + TICK } else { Duration::ZERO };
            self.slow = if moved < LEAST { self.slow + TICK } else { Duration::ZERO };
            if self.slow >= PATIENCE && self.pool.is_wanted() {
                return Poll::Ready(self.slow);
            }
            if owes == Owes::Message && self.still >= self.stall_limit {
                return Poll::Ready(self.still);
            }
        }
    }
}
