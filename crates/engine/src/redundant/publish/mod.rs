//! The state of publications: the array's part of the superblocks, the changes that are required and done, the
//! turn to write, and the proofs.
//!
//! Deliberately absent: writing superblocks, and making proofs, both in [`writing`] alone: the fields of proofs
//! are private to this folder.

mod writing;

use std::cell::{Cell, RefCell};

use braid_md::{Resync, Superblock, Timestamp};

use crate::canary::Canary;
use crate::redundant::array_id::ArrayId;
use crate::redundant::layout::SyncByte;
use crate::signal::Signal;

/// The state of an array's publications.
pub(crate) struct Publisher {
    /// The array's part of the superblocks; none for an array without superblocks.
    pub(crate) array: RefCell<Option<Superblock>>,
    /// Number of changes that were required, and number of those that are on the members.
    required: Cell<u64>,
    done: Cell<u64>,
    /// Events that superblocks must reach before the absence of a member counts: two more than the superblock
    /// of that member may have.
    goal: Cell<u64>,
    busy: Cell<bool>,
    /// Time of the superblocks before the latest.
    before: Cell<Timestamp>,
    /// Events for which these times were set: a retry of the same superblocks keeps the times.
    timed: Cell<u64>,
    /// Extent to which the array was in sync when superblocks were last prepared, and when they were last
    /// stored.
    prepared: Cell<Resync>,
    recorded: Cell<Resync>,
    /// The membership in the stored superblocks.
    recorded_generation: Cell<u64>,
    /// The change that named another bitmap, or none, in the array's part.
    bitmap_named: Cell<u64>,
    /// Resync state in the superblocks: from the start of the array while writes may be in flight.
    pub(crate) said: Cell<Resync>,
    changed: Signal,
}

/// The proof that earlier requirements are on the members.
pub(crate) struct Published {
    of: ArrayId,
    /// The changes up to this one are on the members.
    upto: u64,
}

impl Published {
    /// Checks that the proof is of the array `id`, and that the first `required` changes are on the members.
    ///
    /// # Panics
    /// If the proof is of another array, or of an earlier state.
    #[inline]
    pub(crate) fn check(&self, id: ArrayId, required: u64) {
        id.check(self.of);
        assert!(self.upto >= required, "a proof of {} changes, not of {required}", self.upto);
    }
}

/// The proof that superblocks count on parity only below a resync's frontier, so that entries of a partial
/// parity log do not make a resync that has just begun look done.
pub(crate) struct RecordedFrontier {
    of: ArrayId,
    recorded: Resync,
}

impl RecordedFrontier {
    /// Checks that the superblocks of the array `id` with this `publisher` still say what the proof says.
    ///
    /// # Panics
    /// If the proof is of another array, or of an earlier state.
    pub(crate) fn check(&self, id: ArrayId, publisher: &Publisher) {
        id.check(self.of);
        assert!(self.recorded == publisher.recorded.get(), "a proof of another frontier");
    }
}

/// The proof that the contents of a filled member are durable, and that the member's own superblock says "in
/// sync".
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

/// The proof that superblocks count on exactly the members of one membership, for which a plan was made.
pub(crate) struct CountedOn {
    of: ArrayId,
    generation: u64,
}

impl CountedOn {
    /// Checks that the proof is of the array `id` with the membership `generation`.
    ///
    /// # Panics
    /// If the proof is of another array, or of an earlier state.
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

    /// Requires a publication of a changed state: later completions depend on it.
    pub(crate) fn require(&self) {
        self.required.set(self.required.get() + 1);
    }

    /// Returns the number of changes that were required.
    #[inline]
    pub(crate) fn required(&self) -> u64 {
        self.required.get()
    }

    /// Notes that the required superblocks name the array's new bitmap.
    pub(crate) fn name_bitmap(&self) {
        self.bitmap_named.set(self.required.get());
    }

    /// Returns the change by which superblocks came to name the array's present bitmap.
    pub(crate) fn bitmap_named(&self) -> u64 {
        self.bitmap_named.get()
    }

    /// Raises the goal for a member that is out or missing, whose superblock may have `events`, at most one
    /// more than the others': the others must get two ahead of it.
    pub(crate) fn leave_behind(&self, events: u64) {
        let lead = if Canary::SecondSuperblockLeftOut.is_planted() { 1 } else { 2 };
        if let Some(array) = &*self.array.borrow() {
            let goal = events.min(array.events + 1) + lead;
            self.goal.set(self.goal.get().max(goal));
        }
    }

    /// Returns true if the next superblocks leave all members that are out behind.
    fn is_last(&self) -> bool {
        self.leaves_behind(self.events() + 1)
    }

    /// Returns true if superblocks with `events` leave all members that are out behind.
    pub(crate) fn leaves_behind(&self, events: u64) -> bool {
        events >= self.goal.get()
    }

    /// Returns true if all required changes are recorded.
    #[inline]
    pub(crate) fn is_settled(&self) -> bool {
        self.done.get() == self.required.get()
    }

    /// Wakes the tasks that wait for their turn.
    pub(crate) fn wake(&self) {
        self.changed.notify();
    }

    /// Waits for the turn to write metadata.
    pub(crate) async fn turn(&self) -> Turn<'_> {
        self.changed.until(|| !self.busy.get()).await;
        self.busy.set(true);
        Turn { publisher: self }
    }

    /// Returns the time of the superblocks, and the time of those before.
    pub(crate) fn times(&self) -> (Timestamp, Timestamp) {
        let updated = self.array.borrow().as_ref().map_or(Timestamp::default(), |one| one.updated);
        (updated, self.before.get())
    }

    /// Returns the membership in the superblocks on the members.
    pub(crate) fn recorded_generation(&self) -> u64 {
        self.recorded_generation.get()
    }

    /// Returns true if superblocks on the members may say that parity fits the row at sync byte `row`.
    pub(crate) fn may_call_in_sync(&self, row: SyncByte) -> bool {
        match self.recorded.get() {
            Resync::Clean => true,
            Resync::From(frontier) => row.get() < frontier,
        }
    }

    /// Returns the bytes to which the array was in sync before the last flush began, if it is in sync to
    /// `resync` now.
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

    /// Sets the array's time of update for the next superblocks, with `events` and made at `now`.
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
