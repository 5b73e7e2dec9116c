//! Clients that do not go on.
//!
//! A client may be idle between two requests for ever. Inside a message, or with replies unread,
//! it keeps memory that others may want:
//!
//! | it owes                          | nobody waits for memory   | somebody does               |
//! |----------------------------------|---------------------------|-----------------------------|
//! | the rest of a message            | cut off after the limit   | cut off after [`PATIENCE`]  |
//! |                                  | without a byte            | of less than [`LEAST`] each |
//! | the reading of replies           | as long as it likes       | the same                    |
//!
//! So a virtual machine that is paused keeps its disk, and no number of clients that stall can
//! keep the others from theirs.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use braid_mem::Pool;

use crate::stream::Stream;

/// How often it is looked at.
const TICK: Duration = Duration::from_millis(500);
/// Bytes that count as going on, in a tick, while others wait for memory.
const LEAST: u64 = 32 << 10;
/// How long a client may keep memory that others wait for, without going on.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a client owes.
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
    /// What had moved at the last tick.
    moved_bytes: u64,
    /// How long nothing at all moved, and how long less than [`LEAST`] a tick did.
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
