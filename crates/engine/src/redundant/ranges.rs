//! The ranges of an array that are being written, or are locked.
//!
//! ```text
//!   writes   enter ──▶ under way ──▶ leave        many at once that do not overlap
//!   locks         lock ──▶ waits for the overlapping writes ──▶ exclusive ──▶ unlock
//! ```
//!
//! Of overlapping writes one waits for the other: each member would carry them out in its own order, and the
//! copies would differ for ever.
//!
//! A lock keeps overlapping writes out while one copy is made from another: the source does not change between
//! its read and the write. New writes wait as soon as the lock is requested, so the lock is granted after the
//! writes of that moment, however many follow.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::layout::SyncSpan;
use crate::signal::Signal;

/// The writes in flight and the locks of an array.
#[derive(Default)]
pub(crate) struct Ranges {
    writes: RefCell<Vec<Option<SyncSpan>>>,
    free: RefCell<Vec<u32>>,
    under_way: Cell<u32>,
    locks: RefCell<Vec<(u64, SyncSpan)>>,
    next_lock: Cell<u64>,
    changed: Signal,
}

/// A write in flight; it leaves when this is dropped.
pub(crate) struct Entered {
    ranges: Rc<Ranges>,
    slot: u32,
}

/// A part of the array that is locked until this is dropped.
pub(crate) struct Locked {
    ranges: Rc<Ranges>,
    id: u64,
}

impl Ranges {
    /// Returns true if no lock and no write in flight touches `span`.
    #[inline]
    pub(crate) fn is_free(&self, span: SyncSpan) -> bool {
        !self.is_locked(span) && !self.is_written(span)
    }

    fn is_locked(&self, span: SyncSpan) -> bool {
        self.locks.borrow().iter().any(|(_, lock)| lock.overlaps(span))
    }

    /// Enters a write to `span`, once no lock and no other write touches it.
    pub(crate) async fn enter(self: &Rc<Self>, span: SyncSpan) -> Entered {
        if !self.is_free(span) {
            self.changed.until(|| self.is_free(span)).await;
        }
        self.admit(span)
    }

    /// Enters a write to `span`, unless a lock or another write touches it.
    #[inline]
    pub(crate) fn enter_now(self: &Rc<Self>, span: SyncSpan) -> Option<Entered> {
        self.is_free(span).then(|| self.admit(span))
    }

    fn admit(self: &Rc<Self>, span: SyncSpan) -> Entered {
        let slot = self.free.borrow_mut().pop();
        let mut writes = self.writes.borrow_mut();
        let slot = slot.unwrap_or_else(|| {
            writes.push(None);
            writes.len() as u32 - 1
        });
        writes[slot as usize] = Some(span);
        self.under_way.set(self.under_way.get() + 1);
        Entered { ranges: Rc::clone(self), slot }
    }

    /// Locks `span`: waits for other locks on it, then for the writes in it.
    pub(crate) async fn lock(self: &Rc<Self>, span: SyncSpan) -> Locked {
        if self.is_locked(span) {
            self.changed.until(|| !self.is_locked(span)).await;
        }
        let id = self.next_lock.get();
        self.next_lock.set(id + 1);
        self.locks.borrow_mut().push((id, span));
        let locked = Locked { ranges: Rc::clone(self), id };
        self.changed.until(|| !self.is_written(span)).await;
        locked
    }

    /// Waits until no write in flight touches `span`.
    pub(crate) async fn until_writes_end(&self, span: SyncSpan) {
        if self.is_written(span) {
            self.changed.until(|| !self.is_written(span)).await;
        }
    }

    /// Returns true if a write in flight touches `span`.
    pub(crate) fn is_written(&self, span: SyncSpan) -> bool {
        self.under_way.get() > 0
            && self.writes.borrow().iter().flatten().any(|write| write.overlaps(span))
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let ranges = &self.ranges;
        ranges.writes.borrow_mut()[self.slot as usize] = None;
        ranges.free.borrow_mut().push(self.slot);
        ranges.under_way.set(ranges.under_way.get() - 1);
        ranges.changed.notify();
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        self.ranges.locks.borrow_mut().retain(|(id, _)| *id != self.id);
        self.ranges.changed.notify();
    }
}
