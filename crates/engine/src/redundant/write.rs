//! The steps around every change of data, in an order that is safe in a crash at any moment.
//!
//! ```text
//!   1  the superblocks say "active"             so that a crash is known to need a resync
//!   2  no lock is in the way                    so that no copy is made of half a write
//!   3  the bits of its chunks are on members    so that the resync is short
//!   4  the members                              all at once
//!   5  superblocks say which members failed     so that a stale member is never believed
//!   6  the answer
//! ```
//!
//! Steps 1 to 3 and 5 usually hold already. Step 4 depends on how the array keeps its data. It happens between
//! [`Core::begin_write`], which returns the required [`Guard`], and [`Guard::finish`], which makes the
//! [`Finished`] that a completion needs.

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
    /// Starts a write that `work` carries out in steps.
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

    /// Carries out steps 1 to 3 for a change of `span`.
    ///
    /// # Errors
    /// The array is stopped.
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
        // A member that failed meanwhile lacks the bits: superblocks must not count on it any more.
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

    /// Carries out steps 1 to 3 for a change of `span`, if each of them holds already and every member answers
    /// within the call. The proof is for [`Guard::finish_now`].
    #[inline]
    pub(super) fn begin_write_now(self: &Rc<Self>, span: SyncSpan) -> Option<(Guard, Published)> {
        let published = self.published()?;
        let guard = self.enter_now(span)?;
        published.check(self.id, self.publisher.required());
        Some((guard, published))
    }

    /// Carries out steps 1 to 3 for a change of `span`, if each of them holds already and every member answers
    /// within the call. Superblocks may be under way that record other changes.
    #[inline]
    pub(super) fn enter_now(self: &Rc<Self>, span: SyncSpan) -> Option<Guard> {
        if !self.lane.is_open_and_immediate() || !self.lane.has_bits(span) {
            return None;
        }
        let entered = self.lane.ranges().enter_now(span)?;
        let writer = self.lane.writer();
        let is_ready = self.lane.begin_write(span);
        assert!(is_ready, "the bits of {span} are on the members");
        Some(Guard { core: Rc::clone(self), span, entered, _writer: writer })
    }

    /// Takes over a change of `span` that another shard began, and waits for.
    pub(super) fn take_over(self: &Rc<Self>, span: SyncSpan) -> Guard {
        let writer = self.lane.writer();
        let entered = self.lane.ranges().take_over(span);
        let is_ready = self.lane.begin_write(span);
        assert!(is_ready, "the bits of {span} are on the members while another shard writes there");
        Guard { core: Rc::clone(self), span, entered, _writer: writer }
    }

    /// Publishes superblocks that say "active", unless they do already.
    async fn activate(self: &Rc<Self>) -> Result<Published, Errno> {
        if !self.gate.is_active() {
            self.publisher.require();
            self.set_active(true);
        }
        // A writer that arrives while another one has the superblocks written waits for them as well.
        match self.published() {
            Some(published) => Ok(published),
            None => self.fence().await,
        }
    }

    /// Waits until superblocks record so many changes.
    async fn until_recorded(self: &Rc<Self>, required: u64) -> Result<(), Errno> {
        let published = match self.published() {
            Some(published) => Ok(published),
            None => self.fence().await,
        };
        published.map(|published| published.check(self.id, required))
    }

    /// Starts a flush, which makes completed writes durable on every member.
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

/// A change of data that is over: its result, after superblocks name the members that lack it.
#[derive(Clone, Copy)]
pub(super) struct Finished {
    result: Result<(), Errno>,
}

impl Finished {
    /// Returns the result of a change without effect, such as a hint that is not followed.
    pub(super) fn nothing_to_do() -> Finished {
        Finished { result: Ok(()) }
    }

    /// Returns the result of a change that an error prevented.
    pub(super) fn refused(errno: Errno) -> Finished {
        Finished { result: Err(errno) }
    }

    /// Joins the results of two changes; the first error counts.
    pub(super) fn and(self, other: Finished) -> Finished {
        Finished { result: self.result.and(other.result) }
    }

    /// Returns the result.
    pub(super) fn result(self) -> Result<(), Errno> {
        self.result
    }
}

impl Guard {
    /// Returns true if the guard allows a change of `span`.
    pub(super) fn covers(&self, span: SyncSpan) -> bool {
        self.span.covers(span)
    }

    /// Carries out steps 5 and 6 for a write that some members have later ([`super::behind`]): the guard stays with these.
    pub(super) fn answer(&self) -> impl Future<Output = Finished> + use<> {
        let core = Rc::clone(&self.core);
        let required = core.publisher.required();
        async move { Finished { result: core.until_recorded(required).await } }
    }

    /// Carries out steps 5 and 6: `everywhere` if every member has the data, `result` is the result of step 4.
    pub(super) async fn finish(self, everywhere: bool, result: Result<(), Errno>) -> Finished {
        let (core, required, _writer) = self.leave(everywhere);
        Finished { result: core.until_recorded(required).await.and(result) }
    }

    /// Carries out steps 5 and 6 within the call, for a change that every member has.
    #[inline]
    pub(super) fn finish_now(self, published: &Published) -> Finished {
        let (core, required, _writer) = self.leave(true);
        published.check(core.id, required);
        Finished { result: Ok(()) }
    }

    /// Ends a change that was not begun, and is carried out in steps instead.
    pub(super) fn give_up(self) {
        let _ = self.leave(true);
    }

    /// Ends the change. Returns the number of changes that superblocks have to record before the answer.
    #[inline]
    fn leave(self, everywhere: bool) -> (Rc<Core>, u64, Writer) {
        let Guard { core, span, entered, _writer } = self;
        core.lane.end_write(span, everywhere);
        drop(entered);
        core.lane.touch();
        let required = core.publisher.required();
        (core, required, _writer)
    }
}
