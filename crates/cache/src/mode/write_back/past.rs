//! Large writes, which go to the origin at once: to hold them would be to write them twice.
//!
//! Invariants
//! * A write goes past only where nothing of its blocks is dirty, and no record that counts has anything of
//!   its place: a replay, and a drain, would put something older over it. Else it is held as any other.
//! * While it is under way nobody else changes its blocks; so no such record comes up meanwhile.
//! * A flush flushes the origin, too, where something went past that the origin may not have durably.
//!
//! They are carried out by a task of the cache's own, as [`super::operations`] are.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use braid_block::{Errno, Io, Op, Span};
use braid_engine::Pending;

use super::core::{Large, Phase, WriteBack};
use crate::canary::Canary;
use crate::mode::write_through;

impl WriteBack {
    /// Whether `io` is a write that is to go past.
    pub(super) fn is_large(&self, io: &Io) -> bool {
        let cutoff = self.held.config.get().sequential_cutoff;
        io.op == Op::Write && cutoff.is_some_and(|cutoff| io.span.len >= cutoff)
    }

    /// Has a large write carried out.
    pub(super) fn write_large(self: &Rc<Self>, io: Io) -> Pending {
        let large = Rc::new(Large { io: RefCell::new(Some(io)), done: RefCell::default() });
        self.large.borrow_mut().push_back(Rc::clone(&large));
        self.undone.set(self.undone.get() + 1);
        self.changed.notify();
        let this = Rc::clone(self);
        Pending::task(async move {
            this.changed.until(|| large.done.borrow().is_some()).await;
            let done = large.done.borrow_mut().take();
            done.expect("it is done, and nobody else takes what became of it")
        })
    }

    pub(super) async fn carry_out_large(&self, large: Rc<Large>) {
        let Some(io) = large.io.borrow_mut().take() else { return };
        let (span, blocks) = (io.span, self.held.contents.borrow().blocks(io.span));
        let changes = self.changes.take(blocks.clone()).await;
        let done = if self.is_closed.get() {
            drop(changes);
            write_through::change(Rc::clone(&self.held), io).await
        } else if self.may_pass(span, &blocks) {
            let taken = self.held.ranges.take(blocks).await;
            self.passing.set(self.passing.get() + 1);
            let done = self.held.origin.start(io).await;
            self.passing.set(self.passing.get() - 1);
            // Whether it did it or not: what was held of its place may be something else.
            self.held.drop_held(span);
            self.passed.set(self.passed.get() + 1);
            let counters = &mut *self.held.counters.borrow_mut();
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
            self.write_in_time(io).await
        };
        self.undone.set(self.undone.get() - 1);
        large.done.replace(Some(done));
        self.changed.notify();
    }

    /// Whether nothing that the cache has, or the log, may come over `span` later.
    fn may_pass(&self, span: Span, blocks: &Range<u64>) -> bool {
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
        let contents = self.held.contents.borrow();
        contents.dirty().is_some_and(|dirty| dirty.touches(blocks.clone()))
    }

    /// The record at `position` has something of `span`.
    pub(super) fn note_recorded(&self, span: Span, position: u64) {
        if self.held.config.get().sequential_cutoff.is_some() {
            self.recorded.borrow_mut().push_back((span, position));
        }
    }

    /// Records before `tail` do not count any more.
    pub(super) fn note_retired(&self, tail: u64) {
        let mut recorded = self.recorded.borrow_mut();
        while recorded.front().is_some_and(|(_, position)| *position < tail) {
            recorded.pop_front();
        }
    }

    /// Has the origin make durable what went past, if that is not yet.
    ///
    /// # Errors
    /// It did not; or it did not the last time, and may have lost what nobody can write once more.
    pub(super) async fn flush_passed(&self) -> Result<(), Errno> {
        let is_due = self.may_have_passed();
        if is_due && !Canary::PastNotFlushed.is_planted() {
            self.flush_origin().await?;
        }
        if self.is_past_lost.get() { Err(Errno::IO) } else { Ok(()) }
    }

    /// Whether the origin was asked past what is logged or dirty for something that it may not have durably: by a
    /// large write, or before write-back mode began.
    fn may_have_passed(&self) -> bool {
        let is_waiting = self.waiting.borrow().is_some() && !Canary::SwitchNotFlushed.is_planted();
        is_waiting || self.passed.get() != self.passed_durable.get()
    }

    /// Flushes the origin. If that fails, nothing counts as durable that it was asked for before.
    pub(super) async fn flush_origin(&self) -> Result<(), Errno> {
        let passed = self.passed.get();
        let result = self.held.origin.start(Io::flush()).await.result;
        match result {
            Ok(()) => self.passed_durable.set(self.passed_durable.get().max(passed)),
            Err(_) => {
                self.failed_flushes.set(self.failed_flushes.get() + 1);
                let is_due = self.passing.get() > 0 || self.may_have_passed();
                self.is_past_lost.set(self.is_past_lost.get() || is_due);
                // What is dirty is written once more. Zeroes are not: they would fall on what came later. The
                // origin may have done some of which nobody here knows yet.
                self.is_lost.set(self.is_lost.get() || !self.unflushed.borrow().is_empty());
            }
        }
        result
    }
}
