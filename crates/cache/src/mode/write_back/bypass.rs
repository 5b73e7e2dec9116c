//! Large writes bypass the cache: cached, they would be written twice.
//!
//! Invariants
//! * A write bypasses the cache only if none of its blocks is dirty and no valid record overlaps
//!   it: a drain or a replay would overwrite it with older data. Other large writes are cached.
//! * Its blocks are locked against changes while it is in flight, so no such record can appear.
//! * A flush includes the origin if bypassing writes may not be durable there.
//!
//! A task of the cache carries them out, as in [`super::operations`].

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use braid_block::{Errno, Io, Op, Span};
use braid_engine::Pending;

use super::core::{LargeWrite, Phase, WriteBack};
use crate::canary::Canary;
use crate::mode::write_through;

impl WriteBack {
    /// Returns whether `io` is a large write.
    pub(super) fn is_large(&self, io: &Io) -> bool {
        let cutoff = self.state.config.get().sequential_cutoff;
        io.op == Op::Write && cutoff.is_some_and(|cutoff| io.span.len >= cutoff)
    }

    /// Queues a large write.
    pub(super) fn write_large(self: &Rc<Self>, io: Io) -> Pending {
        let large = Rc::new(LargeWrite { io: RefCell::new(Some(io)), done: RefCell::default() });
        self.large.borrow_mut().push_back(Rc::clone(&large));
        self.pending_large.set(self.pending_large.get() + 1);
        self.changed.notify();
        let this = Rc::clone(self);
        Pending::task(async move {
            this.changed.until(|| large.done.borrow().is_some()).await;
            let done = large.done.borrow_mut().take();
            done.expect("the write is complete, and only this future takes its completion")
        })
    }

    pub(super) async fn execute_large(&self, large: Rc<LargeWrite>) {
        let Some(io) = large.io.borrow_mut().take() else { return };
        let (span, blocks) = (io.span, self.state.contents.borrow().blocks(io.span));
        let changes = self.changes.take(blocks.clone()).await;
        let done = if self.is_closed.get() {
            drop(changes);
            write_through::change(Rc::clone(&self.state), io).await
        } else if self.may_bypass(span, &blocks) {
            let taken = self.state.ranges.take(blocks).await;
            self.bypass_in_flight.set(self.bypass_in_flight.get() + 1);
            let done = self.state.origin.start(io).await;
            self.bypass_in_flight.set(self.bypass_in_flight.get() - 1);
            // The data on the origin may have changed, even if the write failed.
            self.state.invalidate(span);
            self.passed.set(self.passed.get() + 1);
            let counters = &mut *self.state.counters.borrow_mut();
            counters.disk_writes += 1;
            if done.result.is_ok() {
                counters.writes += 1;
                counters.uncached_writes += 1;
                counters.bytes_written += span.len;
            }
            drop((taken, changes));
            done
        } else {
            drop(changes);
            self.write_when_possible(io).await
        };
        self.pending_large.set(self.pending_large.get() - 1);
        large.done.replace(Some(done));
        self.changed.notify();
    }

    /// Returns whether neither a drain nor a replay can overwrite `span` with older data.
    fn may_bypass(&self, span: Span, blocks: &Range<u64>) -> bool {
        if Canary::PastOlderRecords.is_planted() {
            return !self.is_dirty(blocks);
        }
        let has_it = |(one, _): &(Span, u64)| one.overlaps(span);
        match self.phase.get() {
            Phase::Logged => !self.is_dirty(blocks) && !self.recorded.borrow().iter().any(has_it),
            Phase::LogFailing => false,
            Phase::LogGivenUp | Phase::Volatile => !self.is_dirty(blocks),
        }
    }

    fn is_dirty(&self, blocks: &Range<u64>) -> bool {
        let contents = self.state.contents.borrow();
        contents.dirty().is_some_and(|dirty| dirty.touches(blocks.clone()))
    }

    /// Notes that the record at `position` overlaps `span`.
    pub(super) fn note_recorded(&self, span: Span, position: u64) {
        if self.state.config.get().sequential_cutoff.is_some() {
            self.recorded.borrow_mut().push_back((span, position));
        }
    }

    /// Forgets the records before `tail`.
    pub(super) fn note_retired(&self, tail: u64) {
        let mut recorded = self.recorded.borrow_mut();
        while recorded.front().is_some_and(|(_, position)| *position < tail) {
            recorded.pop_front();
        }
    }

    /// Flushes the origin if bypassing writes are not durable yet.
    ///
    /// # Errors
    /// The flush failed, or an earlier one did and may have lost writes that cannot be repeated.
    pub(super) async fn flush_bypassed(&self) -> Result<(), Errno> {
        let is_due = self.has_undurable_bypass();
        if is_due && !Canary::PastNotFlushed.is_planted() {
            self.flush_origin().await?;
        }
        if self.is_bypass_lost.get() { Err(Errno::IO) } else { Ok(()) }
    }

    /// Returns whether the origin may have writes that are neither dirty, nor logged, nor durable:
    /// large writes, or writes before write-back mode began.
    fn has_undurable_bypass(&self) -> bool {
        let is_waiting = self.waiting.borrow().is_some() && !Canary::SwitchNotFlushed.is_planted();
        is_waiting || self.passed.get() != self.bypassed_durable.get()
    }

    /// Flushes the origin. If the flush fails, no earlier write counts as durable.
    pub(super) async fn flush_origin(&self) -> Result<(), Errno> {
        let passed = self.passed.get();
        let result = self.state.origin.start(Io::flush()).await.result;
        match result {
            Ok(()) => self.bypassed_durable.set(self.bypassed_durable.get().max(passed)),
            Err(_) => {
                self.failed_flushes.set(self.failed_flushes.get() + 1);
                let is_due = self.bypass_in_flight.get() > 0 || self.has_undurable_bypass();
                self.is_bypass_lost.set(self.is_bypass_lost.get() || is_due);
                // Dirty data are written again. Zeroes are not: they would overwrite newer data.
                // The origin may have carried out operations whose completion is unknown here.
                self.is_lost.set(self.is_lost.get() || !self.unflushed.borrow().is_empty());
            }
        }
        result
    }
}
