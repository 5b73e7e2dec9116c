//! What every change of data stands in, in the order that a crash at any moment asks for.
//!
//! ```text
//!   1  the superblocks say "active"             so that a crash is known to need a resync
//!   2  no lock is in the way                    so that nothing is made of half of it
//!   3  the bits of its chunks are on members    so that the resync is short
//!   4  the members                              at the same time
//!   5  whoever failed is out, by superblocks    so that what is stale is never believed
//!   6  the answer
//! ```
//!
//! 1 to 3 and 5 usually hold already. What 4 is depends on how the array keeps its data: it is
//! done between [`Core::begin_write`], whose [`Guard`] it needs, and [`Guard::finish`]: an answer is
//! made of a [`Finished`], and that is how one comes about.

use std::rc::Rc;

use braid_block::{Completion, Errno, Io, Payload};

use super::core::Core;
use super::lane::Writer;
use super::layout::SyncSpan;
use super::publish::Published;
use super::ranges::Entered;
use crate::Pending;
use crate::canary::Canary;

impl Core {
    /// A write that is done in steps by `work`.
    pub(super) fn write_in_steps(
        self: &Rc<Self>,
        work: impl Future<Output = (Finished, Payload)> + 'static,
    ) -> Pending {
        let core = Rc::clone(self);
        self.background.request(async move {
            let start = core.clock.now();
            let (Finished { result }, payload) = work.await;
            if core.work.is_timing() {
                let now = core.clock.now();
                core.work.record_latency(now, now - start);
            }
            Completion { result, payload }
        })
    }

    /// All that goes before a change of `span`.
    ///
    /// # Errors
    /// Nothing can be written any more.
    pub(super) async fn begin_write(self: &Rc<Self>, span: SyncSpan) -> Result<Guard, Errno> {
        let writer = self.lane.writer();
        let _active = self.activate().await?;
        let free = SyncSpan::new(span.offset, 0);
        let locked = if Canary::ParityWithoutLock.is_planted() { free } else { span };
        let entered = self.lane.ranges().enter(locked).await;
        let ready = self.lane.begin_write(span);
        let guard = Guard { core: Rc::clone(self), span, entered, _writer: writer };
        if !ready && !Canary::BitmapAfterData.is_planted() {
            self.store_bits(span).await;
        }
        // A member that failed meanwhile does not have the bits: nobody must count on it any more.
        let required = self.publisher.required();
        let published = match self.published() {
            Some(published) => Ok(published),
            None => self.fence().await,
        };
        match published {
            Ok(published) => {
                published.check(self.id, required);
                Ok(guard)
            }
            Err(errno) => {
                let finished = guard.finish(true, Err(errno)).await;
                Err(finished.result.err().unwrap_or(errno))
            }
        }
    }

    /// Sees to it that the superblocks say that writes may be under way.
    async fn activate(self: &Rc<Self>) -> Result<Published, Errno> {
        if !self.gate.is_active() {
            self.publisher.require();
            self.set_active(true);
        }
        // Also the writer that comes while another has the superblocks written waits for them.
        match self.published() {
            Some(published) => Ok(published),
            None => self.fence().await,
        }
    }

    /// Makes what was written durable on every member.
    pub(super) fn start_flush(self: &Rc<Self>, io: Io) -> Pending {
        let core = Rc::clone(self);
        self.background.request(async move {
            let settled = match core.check_running() {
                Ok(()) => core.settle().await,
                Err(errno) => Err(errno),
            };
            let result = settled.map(|durable| {
                if let Some(log) = &core.follower {
                    log.forget(durable);
                }
            });
            io.complete(result)
        })
    }
}

/// A change of data that may go on.
pub(super) struct Guard {
    core: Rc<Core>,
    span: SyncSpan,
    entered: Entered,
    _writer: Writer,
}

/// A change of data that is over: what is to be answered, now that superblocks say who does not
/// have it.
#[derive(Clone, Copy)]
pub(super) struct Finished {
    result: Result<(), Errno>,
}

impl Finished {
    /// There was nothing to change, as for a hint that is not followed.
    pub(super) fn nothing_to_do() -> Finished {
        Finished { result: Ok(()) }
    }

    /// Nothing was changed, because of an error.
    pub(super) fn refused(errno: Errno) -> Finished {
        Finished { result: Err(errno) }
    }

    /// Both are over; the first error counts.
    pub(super) fn and(self, other: Finished) -> Finished {
        Finished { result: self.result.and(other.result) }
    }

    /// How it went.
    pub(super) fn result(self) -> Result<(), Errno> {
        self.result
    }
}

impl Guard {
    /// Whether `span` may be changed under it.
    pub(super) fn covers(&self, span: SyncSpan) -> bool {
        self.span.covers(span)
    }

    /// All that comes after it: `everywhere` if every member has it, `result` is how it went.
    pub(super) async fn finish(self, everywhere: bool, result: Result<(), Errno>) -> Finished {
        let Guard { core, span, entered, _writer } = self;
        core.lane.end_write(span, everywhere);
        drop(entered);
        core.lane.touch();
        let required = core.publisher.required();
        let published = match core.published() {
            Some(published) => Ok(published),
            None => core.fence().await,
        };
        Finished {
            result: published.and_then(|published| {
                published.check(core.id, required);
                result
            }),
        }
    }
}
