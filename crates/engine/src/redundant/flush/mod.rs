//! The flushes of an array, one at a time, and the proofs of what they made durable.
//!
//! Deliberately absent: flushing members, and making a [`Flushed`] or a [`Durable`], both in [`members`] alone:
//! the fields of both proofs are private to this folder.

mod members;

use std::cell::Cell;

use braid_block::Errno;

use crate::redundant::array_id::ArrayId;
use crate::signal::Signal;

/// The flushes of an array, one at a time.
#[derive(Default)]
pub(crate) struct Flushes {
    /// Number of flushes that began.
    begun: Cell<u64>,
    busy: Cell<bool>,
    /// The flush that ended last.
    last: Cell<Option<Ended>>,
    changed: Signal,
}

#[derive(Clone, Copy)]
struct Ended {
    /// Number of flushes that had begun, this one included.
    number: u64,
    /// The proof, if the flush succeeded.
    result: Result<Flushed, Errno>,
}

impl Flushes {
    /// Returns the number of flushes that began.
    pub(crate) fn begun(&self) -> u64 {
        self.begun.get()
    }

    /// Returns the result of a flush that began after `begun` others had, once there is one; or the turn to
    /// make one.
    async fn join(&self, begun: u64) -> Result<Ended, Running<'_>> {
        let ended = || self.last.get().filter(|last| last.number > begun);
        self.changed.until(|| ended().is_some() || !self.busy.get()).await;
        ended().ok_or_else(|| self.start())
    }

    /// Returns the turn to make a flush, unless one is in flight.
    fn start_now(&self) -> Option<Running<'_>> {
        (!self.busy.get()).then(|| self.start())
    }

    fn start(&self) -> Running<'_> {
        self.busy.set(true);
        self.begun.set(self.begun.get() + 1);
        Running { flushes: self, number: self.begun.get() }
    }
}

/// A flush in flight, until it is dropped.
struct Running<'a> {
    flushes: &'a Flushes,
    number: u64,
}

impl Running<'_> {
    /// Returns the number of flushes that had begun, this one included.
    fn number(&self) -> u64 {
        self.number
    }

    fn end(self, result: Result<Flushed, Errno>) {
        self.flushes.last.set(Some(Ended { number: self.number, result }));
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.flushes.busy.set(false);
        self.flushes.changed.notify();
    }
}

/// Proof that writes completed before a flush are durable on all members that are not out.
#[derive(Clone, Copy)]
#[must_use]
pub(crate) struct Flushed {
    of: ArrayId,
    /// Number of the flush.
    number: u64,
    /// Number of units of the log that were in place when the flush began.
    units: u64,
    /// The membership that was flushed.
    generation: u64,
}

/// Proof of the writes that are durable on every member that the superblocks count on.
pub(crate) struct Durable {
    of: ArrayId,
    number: u64,
    units: u64,
}

impl Durable {
    /// Returns the number of units of the log of the array `id` that are durable in place, out of `written`. An
    /// earlier proof covers fewer units.
    ///
    /// # Panics
    /// If the proof is of another array.
    pub(crate) fn units(&self, id: ArrayId, written: u64) -> u64 {
        id.check(self.of);
        assert!(self.units <= written, "a proof of {} units of {written}", self.units);
        self.units
    }

    /// Checks that the flush of the array `id` began after `begun` others.
    ///
    /// # Panics
    /// If the proof is of another array, or of an earlier flush.
    pub(crate) fn check(&self, id: ArrayId, begun: u64) {
        id.check(self.of);
        assert!(self.number > begun, "a proof of the flush {}, after {begun} others", self.number);
    }
}
