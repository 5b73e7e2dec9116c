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
//!
//! If other shards write, too, each shard has ranges of its own, and leases the blocks that it writes to ([`Leases`]). The
//! home shard keeps the others out while something is locked.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use super::layout::SyncSpan;
use super::shards::{Leases, Tenant};
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
    /// The leases, and the shard, if several shards write.
    shared: OnceCell<(Arc<Leases>, Tenant)>,
    /// The number of reasons to keep other shards out, and the view by which they may write when there is none.
    holds: Cell<u32>,
    view: Cell<u64>,
}

/// A write in flight; it leaves when this is dropped.
pub(crate) struct Entered {
    ranges: Rc<Ranges>,
    slot: u32,
    /// The leases are another shard's, which waits for the end of this.
    is_of_other: bool,
}

/// A write within the call; it leaves when this is dropped.
pub(crate) struct Brief<'a> {
    ranges: &'a Ranges,
    span: SyncSpan,
}

/// A part of the array that is locked until this is dropped.
pub(crate) struct Locked {
    ranges: Rc<Ranges>,
    id: u64,
    _hold: Hold,
}

/// Other shards do not write until this is dropped.
pub(crate) struct Hold {
    ranges: Rc<Ranges>,
}

impl Ranges {
    /// Has the writes of `tenant`, those in flight included, lease their blocks, which no other shard has yet.
    pub(crate) fn share(&self, leases: &Arc<Leases>, tenant: Tenant) {
        let writes = self.writes.borrow();
        let is_first = writes.iter().flatten().all(|write| leases.lease(tenant, *write));
        assert!(is_first, "another shard writes before this one shares");
        let is_new = self.shared.set((Arc::clone(leases), tenant)).is_ok();
        assert!(is_new, "leases are shared once");
    }

    /// Returns the leases, if several shards write.
    pub(crate) fn leases(&self) -> Option<&Arc<Leases>> {
        self.shared.get().map(|(leases, _)| leases)
    }

    /// Lets other shards write by the view of this number, as soon as nothing keeps them out; 0 lets none.
    pub(crate) fn let_others_write(&self, view: u64) {
        self.view.set(view);
        self.apply();
    }

    fn apply(&self) {
        if let Some(leases) = self.leases() {
            leases.open_for(if self.holds.get() == 0 { self.view.get() } else { 0 });
        }
    }

    /// Keeps other shards from beginning writes.
    fn hold(self: &Rc<Self>) -> Hold {
        self.holds.set(self.holds.get() + 1);
        self.apply();
        Hold { ranges: Rc::clone(self) }
    }

    /// Keeps other shards out, and waits for the writes that they have begun.
    pub(crate) async fn keep_others_out(self: &Rc<Self>) -> Hold {
        let hold = self.hold();
        self.changed.until(|| self.others_left()).await;
        hold
    }

    /// Returns true if no other shard has a write on its way.
    pub(crate) fn others_left(&self) -> bool {
        self.leases().is_none_or(|leases| leases.are_left())
    }

    /// Notes that a write of another shard is over.
    pub(crate) fn other_left(&self) {
        self.leases().inspect(|leases| leases.is_told());
        self.changed.notify();
    }

    /// Leases the blocks of `span`, if several shards write.
    #[inline]
    fn lease(&self, span: SyncSpan) -> bool {
        self.shared.get().is_none_or(|(leases, tenant)| leases.lease(*tenant, span))
    }

    #[inline]
    fn give_back(&self, span: SyncSpan) {
        self.shared.get().inspect(|(leases, tenant)| leases.give_back(*tenant, span));
    }

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
        let mut entered = None;
        self.changed
            .until(|| {
                entered = self.enter_now(span);
                entered.is_some()
            })
            .await;
        entered.expect("it was waited for")
    }

    /// Enters a write to `span`, unless a lock or another write touches it.
    #[inline]
    pub(crate) fn enter_now(self: &Rc<Self>, span: SyncSpan) -> Option<Entered> {
        (self.is_free(span) && self.lease(span)).then(|| self.admit(span, false))
    }

    /// Enters a write within the call, unless a lock or another write touches it.
    #[inline]
    pub(crate) fn enter_briefly(&self, span: SyncSpan) -> Option<Brief<'_>> {
        (self.is_free(span) && self.lease(span)).then(|| Brief { ranges: self, span })
    }

    /// Enters a write that another shard began, and waits for: its leases keep all other writes out.
    pub(crate) fn take_over(self: &Rc<Self>, span: SyncSpan) -> Entered {
        self.admit(span, true)
    }

    #[inline]
    fn admit(self: &Rc<Self>, span: SyncSpan, is_of_other: bool) -> Entered {
        let slot = self.free.borrow_mut().pop();
        let mut writes = self.writes.borrow_mut();
        let slot = slot.unwrap_or_else(|| {
            writes.push(None);
            writes.len() as u32 - 1
        });
        writes[slot as usize] = Some(span);
        self.under_way.set(self.under_way.get() + 1);
        Entered { ranges: Rc::clone(self), slot, is_of_other }
    }

    /// Locks `span`: waits for other locks on it, then for the writes in it, and for those of other shards anywhere.
    pub(crate) async fn lock(self: &Rc<Self>, span: SyncSpan) -> Locked {
        if self.is_locked(span) {
            self.changed.until(|| !self.is_locked(span)).await;
        }
        let id = self.next_lock.get();
        self.next_lock.set(id + 1);
        self.locks.borrow_mut().push((id, span));
        let locked = Locked { ranges: Rc::clone(self), id, _hold: self.hold() };
        self.changed.until(|| !self.is_written(span) && self.others_left()).await;
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
        let span = ranges.writes.borrow_mut()[self.slot as usize].take();
        if !self.is_of_other {
            span.into_iter().for_each(|span| ranges.give_back(span));
        }
        ranges.free.borrow_mut().push(self.slot);
        ranges.under_way.set(ranges.under_way.get() - 1);
        ranges.changed.notify();
    }
}

impl Drop for Brief<'_> {
    #[inline]
    fn drop(&mut self) {
        self.ranges.give_back(self.span);
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        self.ranges.locks.borrow_mut().retain(|(id, _)| *id != self.id);
        self.ranges.changed.notify();
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let ranges = &self.ranges;
        ranges.holds.set(ranges.holds.get() - 1);
        ranges.apply();
    }
}
