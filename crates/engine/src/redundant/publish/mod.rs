//! Contents that superblocks are to get, how far that is done, whose turn it is to write them, and the proofs
//! that they have been written: what an array remembers of its publications.
//!
//! Deliberately absent: writing superblocks, and making a proof, which is done in [`writing`] alone: the
//! fields of proofs are private to this folder.

mod writing;

use std::cell::{Cell, RefCell};

use braid_md::{Resync, Superblock, Timestamp};

use crate::canary::Canary;
use crate::redundant::array_id::ArrayId;
use crate::redundant::layout::SyncByte;
use crate::signal::Signal;

/// What is to be recorded, and how far that is done.
pub(crate) struct Publisher {
    /// The array's part of the superblocks; none for an array without.
    pub(crate) array: RefCell<Option<Superblock>>,
    /// How many changes were required, and how many of them are on the members.
    required: Cell<u64>,
    done: Cell<u64>,
    /// How many events superblocks are to count before anybody relies on them: two more than those
    /// of whoever is out may count.
    goal: Cell<u64>,
    busy: Cell<bool>,
    /// When the superblocks before the latest were written.
    before: Cell<Timestamp>,
    /// The events for which these times are: those of superblocks that are tried again stay.
    timed: Cell<u64>,
    /// How far the array was in sync when superblocks were last made, and when they were last
    /// stored.
    prepared: Cell<Resync>,
    recorded: Cell<Resync>,
    /// The membership that stored superblocks tell of.
    recorded_generation: Cell<u64>,
    /// The change by which the array's part came to name another bitmap, or none.
    bitmap_named: Cell<u64>,
    /// What they say of the resync: from the start of the array on while writes may be under way.
    pub(crate) said: Cell<Resync>,
    changed: Signal,
}

/// The proof that what was required before it is on the members.
pub(crate) struct Published {
    of: ArrayId,
    /// The changes up to this one are on the members.
    upto: u64,
}

impl Published {
    /// Checks that the proof is of the array `id`, and that the first `required` changes are on the
    /// members.
    ///
    /// # Panics
    /// If it is of another array, or of an earlier state.
    #[inline]
    pub(crate) fn check(&self, id: ArrayId, required: u64) {
        id.check(self.of);
        assert!(self.upto >= required, "a proof of {} changes, not of {required}", self.upto);
    }
}

/// The proof that superblocks count on parity only where a resync has been, so that entries of a
/// partial parity log do not make a resync that has just begun look done.
pub(crate) struct RecordedFrontier {
    of: ArrayId,
    recorded: Resync,
}

impl RecordedFrontier {
    /// Checks that the superblocks of the array `id`, whose publications `publisher` has, still say
    /// what the proof says.
    ///
    /// # Panics
    /// If the proof is of another array, or of an earlier state.
    pub(crate) fn check(&self, id: ArrayId, publisher: &Publisher) {
        id.check(self.of);
        assert!(self.recorded == publisher.recorded.get(), "a proof of another frontier");
    }
}

/// The proof that what a member was filled with is durable, and that its own superblock says that
/// it is in sync.
pub(crate) struct Announced {
    of: ArrayId,
    /// The member's device number.
    number: u32,
    /// The membership in which it was announced.
    generation: u64,
}

impl Announced {
    /// Checks that the member `number` of the array `id` was announced, and that the membership is
    /// still the same.
    ///
    /// # Panics
    /// If the proof is of another array, of another member, or of an earlier state.
    pub(crate) fn check(&self, id: ArrayId, number: u32, generation: u64) {
        id.check(self.of);
        assert!(self.number == number, "a proof of the member {}, not {number}", self.number);
        check_generation(self.generation, generation);
    }
}

/// The proof that superblocks count on exactly the members of one membership, for which a plan was
/// made.
pub(crate) struct CountedOn {
    of: ArrayId,
    generation: u64,
}

impl CountedOn {
    /// Checks that the proof is of the array `id` with the membership `generation`.
    ///
    /// # Panics
    /// If it is of another array, or of an earlier state.
    pub(crate) fn check(&self, id: ArrayId, generation: u64) {
        id.check(self.of);
        check_generation(self.generation, generation);
    }
}

fn check_generation(proved: u64, now: u64) {
    assert!(proved == now, "a proof of the membership {proved}, which is {now} now");
}

impl Publisher {
    pub(crate) fn new(array: Option<Superblock>) -> Publisher {
        let said = array.as_ref().map_or(Resync::From(0), |array| array.resync);
        Publisher {
            said: Cell::new(said),
            array: RefCell::new(array),
            required: Cell::new(0),
            done: Cell::new(0),
            goal: Cell::new(0),
            busy: Cell::new(false),
            before: Cell::default(),
            timed: Cell::new(0),
            prepared: Cell::new(Resync::From(0)),
            recorded: Cell::new(Resync::From(0)),
            recorded_generation: Cell::new(0),
            bitmap_named: Cell::new(0),
            changed: Signal::default(),
        }
    }

    /// The state changed: what is answered from now on depends on its being recorded.
    pub(crate) fn require(&self) {
        self.required.set(self.required.get() + 1);
    }

    /// Returns the number of changes that were required.
    #[inline]
    pub(crate) fn required(&self) -> u64 {
        self.required.get()
    }

    /// The superblocks that are required now name the bitmap that the array has from now on.
    pub(crate) fn name_bitmap(&self) {
        self.bitmap_named.set(self.required.get());
    }

    /// The change by which superblocks came to name the bitmap that the array has now.
    pub(crate) fn bitmap_named(&self) -> u64 {
        self.bitmap_named.get()
    }

    /// A member is out, or missing, whose superblock may count as many as `events`, at most one more
    /// than the others': they are to be two ahead of it.
    pub(crate) fn leave_behind(&self, events: u64) {
        let lead = if Canary::SecondSuperblockLeftOut.is_planted() { 1 } else { 2 };
        if let Some(array) = &*self.array.borrow() {
            let goal = events.min(array.events + 1) + lead;
            self.goal.set(self.goal.get().max(goal));
        }
    }

    /// Whether the next superblocks leave behind whoever is out.
    fn is_last(&self) -> bool {
        self.leaves_behind(self.events() + 1)
    }

    /// Whether superblocks with so many `events` leave behind whoever is out.
    pub(crate) fn leaves_behind(&self, events: u64) -> bool {
        events >= self.goal.get()
    }

    /// Whether everything is recorded.
    #[inline]
    pub(crate) fn is_settled(&self) -> bool {
        self.done.get() == self.required.get()
    }

    /// Has those look again that wait for their turn.
    pub(crate) fn wake(&self) {
        self.changed.notify();
    }

    /// Waits for the turn to write metadata.
    pub(crate) async fn turn(&self) -> Turn<'_> {
        self.changed.until(|| !self.busy.get()).await;
        self.busy.set(true);
        Turn { publisher: self }
    }

    /// When the superblocks are written, and when those before them were.
    pub(crate) fn times(&self) -> (Timestamp, Timestamp) {
        let updated = self.array.borrow().as_ref().map_or(Timestamp::default(), |one| one.updated);
        (updated, self.before.get())
    }

    /// The membership that the superblocks on the members tell of.
    pub(crate) fn recorded_generation(&self) -> u64 {
        self.recorded_generation.get()
    }

    /// Whether superblocks on the members may say that parity fits the row at sync byte `row`.
    pub(crate) fn may_call_in_sync(&self, row: SyncByte) -> bool {
        match self.recorded.get() {
            Resync::Clean => true,
            Resync::From(frontier) => row.get() < frontier,
        }
    }

    /// Up to where, in bytes, the array was in sync before the last flush began, if it is in sync
    /// as far as `resync` says now.
    pub(crate) fn synced(&self, resync: Resync) -> u64 {
        let bytes = |resync| match resync {
            Resync::Clean => u64::MAX,
            Resync::From(from) => from,
        };
        bytes(self.prepared.get()).min(bytes(resync))
    }

    pub(crate) fn events(&self) -> u64 {
        self.array.borrow().as_ref().map_or(0, |array| array.events)
    }

    /// The next superblocks have `events`, and are made at `now`: the array's time of update.
    pub(crate) fn set_time(&self, events: u64, now: Timestamp) {
        if self.timed.replace(events) != events
            && let Some(array) = &mut *self.array.borrow_mut()
        {
            self.before.set(array.updated);
            array.set_updated(now);
        }
    }
}

/// The turn to write metadata, until it is dropped.
pub(crate) struct Turn<'a> {
    publisher: &'a Publisher,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.publisher.busy.set(false);
        self.publisher.changed.notify();
    }
}
