//! A lane: the parts of an array that belong to its stripes and not to the array as a whole.
//!
//! ```text
//!   conductor ── Told ──▶ Lane        the members changed, the bitmap changed, writes may go on
//!   (Core)    ◀── pages ──            bits to be stored, bits to be cleared
//!   requests  ──────────▶ Lane        may this be written now, begin, end, lock
//! ```
//!
//! An array has one lane. The fields are private: the conductor changes a lane only by [`Told`] and reads
//! it only by the methods here. Other shards that write have [`Ranges`] of their own, and see the bits
//! ([`super::shards`]).
//!
//! Invariant: a lane knows of the members only what it was told. It reads neither the roster, the publisher nor
//! the agreement.
//!
//! Deliberately absent: what the superblocks say ([`super::gate`]), and storing pages of the bitmap
//! ([`super::bits`]).

use std::cell::{Cell, Ref, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use braid_md::bitmap::Bitmap;

use super::intent::{Intent, Pages, SharedBits, StartingBitmap};
use super::layout::SyncSpan;
use super::ranges::{Brief, Ranges};
use super::shards::{Leases, Tenant};
use crate::canary::Canary;

/// A message of the conductor to a lane.
pub(super) enum Told {
    /// The members changed. `degraded`: a role has no member that is in sync. `immediate`: every written member
    /// answers within the call.
    Members { degraded: bool, immediate: bool },
    /// True if writes may go straight to the members, unless a lock or a bit is in the way.
    Open(bool),
    /// A member that was in sync is out, perhaps with writes in its cache.
    MemberLost,
    /// A member without a bitmap is written from now on.
    Newcomer,
    /// All members are in sync and agree.
    Agreed,
    /// Superblocks with this number of events are written next.
    Events(u64),
    /// The array has this bitmap from now on.
    Bitmap(Option<Box<StartingBitmap>>),
}

/// The state of the requests and the bits of an array's stripes.
pub(super) struct Lane {
    /// See [`Told::Open`].
    open: Cell<bool>,
    /// See [`Told::Members`].
    immediate: Cell<bool>,
    degraded: Cell<bool>,
    /// True if something was written since the last reset.
    touched: Cell<bool>,
    /// Number of writes that were let in, or are about to be.
    writers: Rc<Cell<u32>>,
    ranges: Rc<Ranges>,
    intent: RefCell<Option<Intent>>,
}

impl Lane {
    pub(super) fn new(bitmap: Option<StartingBitmap>) -> Lane {
        Lane {
            open: Cell::new(false),
            immediate: Cell::new(false),
            degraded: Cell::new(false),
            touched: Cell::new(false),
            writers: Rc::default(),
            ranges: Rc::default(),
            intent: RefCell::new(bitmap.map(Intent::new)),
        }
    }

    /// Takes a message of the conductor.
    pub(super) fn tell(&self, told: Told) {
        match told {
            Told::Members { degraded, immediate } => {
                self.degraded.set(degraded);
                self.immediate.set(immediate);
            }
            Told::Open(open) => self.open.set(open),
            Told::Bitmap(bitmap) => {
                // Other shards write again when they have seen this one.
                self.ranges.let_others_write(0);
                drop(self.intent.replace(bitmap.map(|bitmap| Intent::new(*bitmap))));
                if self.ranges.leases().is_some() {
                    self.change_bits(Intent::share);
                }
            }
            Told::MemberLost => self.change_bits(Intent::need_all_set),
            Told::Newcomer => self.change_bits(Intent::welcome),
            Told::Agreed => self.change_bits(Intent::need_nothing),
            Told::Events(events) => self.change_bits(|intent| {
                let header = &mut intent.bitmap_mut().header;
                header.events = events;
                header.events_cleared = header.events_cleared.min(events);
            }),
        }
    }

    fn change_bits(&self, change: impl FnOnce(&mut Intent)) {
        if let Some(intent) = &mut *self.intent.borrow_mut() {
            change(intent);
        }
    }

    /// Returns true if a write may be stored in the call, unless a lock or a bit is in the way.
    #[inline]
    pub(super) fn is_open_and_immediate(&self) -> bool {
        self.open.get() && self.immediate.get()
    }

    /// Returns true if every written member answers within the call.
    #[inline]
    pub(super) fn is_immediate(&self) -> bool {
        self.immediate.get()
    }

    /// Begins a write within the call, if no lock and no bit is in the way.
    #[inline]
    pub(super) fn begin_briefly(&self, span: SyncSpan) -> Option<Brief<'_>> {
        let brief = self.ranges.enter_briefly(span)?;
        if let Some(intent) = &mut *self.intent.borrow_mut() {
            if !intent.is_on_members(span) {
                return None;
            }
            intent.touch(span, !self.degraded.get());
        }
        self.touched.set(true);
        Some(brief)
    }

    /// Has other shards write, too, as soon as they are let in: `leases` say where.
    pub(super) fn share(&self, leases: &Arc<Leases>) {
        self.ranges.share(leases, Tenant::HOME);
        self.change_bits(Intent::share);
    }

    /// Returns the state of bits that other shards see; `None` without a bitmap.
    pub(super) fn shared_bits(&self) -> Option<Arc<SharedBits>> {
        self.intent.borrow().as_ref().and_then(|intent| intent.shared().cloned())
    }

    /// Returns a guard of a write, which keeps the array from being marked clean.
    pub(super) fn writer(&self) -> Writer {
        self.writers.set(self.writers.get() + 1);
        Writer { writers: Rc::clone(&self.writers) }
    }

    /// Adds a write of `span`. Returns true if its bits are on the members.
    pub(super) fn begin_write(&self, span: SyncSpan) -> bool {
        self.intent.borrow_mut().as_mut().is_none_or(|intent| intent.begin(span))
    }

    /// Notes that an added write completed; `everywhere` if every written member has it.
    pub(super) fn end_write(&self, span: SyncSpan, everywhere: bool) {
        let everywhere = everywhere && !self.degraded.get();
        let everywhere = everywhere || Canary::RetrySkipsBit.is_planted();
        self.change_bits(|intent| intent.end(span, everywhere));
    }

    /// Notes that something was written.
    pub(super) fn touch(&self) {
        self.touched.set(true);
    }

    /// Returns true if nothing was written since the last call, and no write of this shard is in flight.
    pub(super) fn was_quiet(&self) -> bool {
        let by_others = self.ranges.leases().is_some_and(|leases| leases.were_touched());
        !self.touched.replace(false) && !by_others && self.writers.get() == 0
    }

    pub(super) fn has_writers(&self) -> bool {
        self.writers.get() > 0
    }

    /// Returns the writes in flight and the locks.
    #[inline]
    pub(super) fn ranges(&self) -> &Rc<Ranges> {
        &self.ranges
    }

    /// Returns the number of writes that may be behind: the header of the bitmap has it.
    #[inline]
    pub(super) fn most_behind(&self) -> u32 {
        self.intent.borrow().as_ref().map_or(0, |intent| intent.bitmap().header.write_behind)
    }

    pub(super) fn has_bitmap(&self) -> bool {
        self.intent.borrow().is_some()
    }

    /// Returns the bitmap, if there is one. Not to be held over an await.
    pub(super) fn bitmap(&self) -> Option<Ref<'_, Bitmap>> {
        Ref::filter_map(self.intent.borrow(), |one| one.as_ref().map(Intent::bitmap)).ok()
    }

    /// Returns true if the bits of `span` are on the members, or there is no bitmap.
    pub(super) fn has_bits(&self, span: SyncSpan) -> bool {
        self.intent.borrow().as_ref().is_none_or(|intent| intent.is_on_members(span))
    }

    /// Returns the number of chunks that must be synchronised; `None` without a bitmap, here and below.
    pub(super) fn needed_chunks(&self) -> Option<usize> {
        self.intent.borrow().as_ref().map(Intent::needed)
    }

    /// Returns true if copies may differ somewhere in `span`, apart from writes in flight.
    pub(super) fn is_needed(&self, span: SyncSpan) -> Option<bool> {
        self.intent.borrow().as_ref().map(|intent| intent.is_needed(span))
    }

    /// See [`Intent::stretch`].
    pub(super) fn stretch(&self, span: SyncSpan, most: u64) -> Option<(u64, bool)> {
        self.intent.borrow().as_ref().map(|intent| intent.stretch(span, most))
    }

    /// Returns true if a sweep may clear a bit.
    pub(super) fn may_sweep(&self) -> bool {
        self.intent.borrow().as_ref().is_some_and(Intent::has_set)
    }

    /// Clears the bits of chunks that were quiet since the last sweep, up to `events`. Returns true if any was
    /// cleared.
    pub(super) fn sweep(&self, events: u64) -> bool {
        let mut intent = self.intent.borrow_mut();
        let Some(intent) = intent.as_mut().filter(|_| !self.degraded.get()) else { return false };
        let is_swept = intent.sweep();
        if is_swept {
            intent.bitmap_mut().header.events_cleared = events;
        }
        is_swept
    }

    /// See [`Intent::take_changed`].
    pub(super) fn take_changed(&self) -> Option<Pages> {
        self.intent.borrow_mut().as_mut().map(Intent::take_changed)
    }

    /// See [`Intent::take_publication`].
    pub(super) fn take_publication(&self) -> Option<Pages> {
        self.intent.borrow_mut().as_mut().map(Intent::take_publication)
    }

    /// Notes that these pages are on all written members, or, unless `everywhere`, that some are not.
    pub(super) fn stored(&self, pages: &Pages, everywhere: bool) {
        self.change_bits(|intent| match everywhere {
            true => intent.stored(pages),
            false => intent.not_stored(pages),
        });
    }

    /// Returns the bytes of a page. The last page ends with the bitmap, and other data may follow.
    pub(super) fn page(&self, number: usize) -> Option<Vec<u8>> {
        let bitmap = self.bitmap()?;
        let page = number as u64;
        Some(bitmap.page(page)[..bitmap.page_len(page)].to_vec())
    }
}

/// A guard of a write, which keeps the array from being marked clean.
pub(super) struct Writer {
    writers: Rc<Cell<u32>>,
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.writers.set(self.writers.get() - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redundant::intent::tests::two_pages;

    #[test]
    fn the_last_page_is_stored_up_to_its_last_bit() {
        let mut bitmap = two_pages();
        let last = bitmap.chunk_count() - 1;
        bitmap.set(last);
        let place = (bitmap.byte_len() - 1) as usize % 4096;
        let lane = Lane::new(Some(StartingBitmap { bitmap, is_on_members: true }));
        let page = lane.page(1).expect("a page");
        assert_eq!((page.len(), page[place]), (place.next_multiple_of(512), 1 << (last % 8)));
    }
}
