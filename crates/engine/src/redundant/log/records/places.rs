//! Places of records in the rings, and sequences that a restart may need.
//!
//! Pure bookkeeping: nothing is written or waited for here.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use braid_array::MemberSpan;
use braid_md::stripe_log::Ring;

use crate::canary::Canary;

/// The sequences of a log, from its tail on.
pub(super) struct Places {
    ring_bytes: u64,
    /// The next sequence.
    next: Cell<u64>,
    /// All sequences below are retired, by heads that are durable on all members.
    tail: Cell<u64>,
    /// Rings by the member's number.
    rings: RefCell<BTreeMap<u32, Ring>>,
    /// Groups of units by sequence, from the tail on.
    live: RefCell<BTreeMap<u64, Live>>,
}

/// Units with one sequence.
pub(super) struct Live {
    rows: Vec<MemberSpan>,
    /// True if no newer record of the rows may exist: a replay would write the newer record over the result of
    /// this one, from which it was not computed. A record of a whole stripe has no data to replay, and a failed
    /// unit arrived only in part.
    is_alone: bool,
    /// Units that are not in place yet.
    left: usize,
    /// Number of the last one that is, in the order of units in place.
    last: u64,
}

impl Live {
    pub(super) fn of(rows: Vec<MemberSpan>, is_alone: bool) -> Live {
        Live { left: rows.len(), rows, is_alone, last: 0 }
    }

    /// Returns the number of its last unit, if all are in place.
    fn written(&self) -> Option<u64> {
        let is_in_place =
            self.left == 0 || self.last > 0 && Canary::GroupEndsWithAUnit.is_planted();
        is_in_place.then_some(self.last)
    }
}

impl Places {
    /// Rings of `ring_bytes` bytes, with nothing in them.
    pub(super) fn new(ring_bytes: u64) -> Places {
        Places {
            ring_bytes,
            next: Cell::new(1),
            tail: Cell::new(1),
            rings: RefCell::default(),
            live: RefCell::default(),
        }
    }

    pub(super) fn ring_bytes(&self) -> u64 {
        self.ring_bytes
    }

    pub(super) fn tail(&self) -> u64 {
        self.tail.get()
    }

    /// Starts the log anew: all sequences below `next` are retired.
    pub(super) fn start_at(&self, next: u64) {
        self.next.set(next.max(1));
        self.tail.set(next.max(1));
    }

    /// Notes that a unit is in place.
    pub(super) fn stored(&self, sequence: u64, written: u64) {
        if let Some(live) = self.live.borrow_mut().get_mut(&sequence) {
            (live.left, live.last) = (live.left - 1, written);
        }
    }

    /// Notes that no newer record of the rows of `sequence` may exist.
    pub(super) fn must_be_alone(&self, sequence: u64) {
        if let Some(live) = self.live.borrow_mut().get_mut(&sequence) {
            live.is_alone = true;
        }
    }

    /// Returns the first sequence that may be needed, if the units for which `is_durable` holds are durable.
    pub(super) fn tail_if(&self, is_durable: impl Fn(u64) -> bool) -> u64 {
        let live = self.live.borrow();
        let needed = live.iter().find(|(_, live)| !live.written().is_some_and(&is_durable));
        needed.map_or(self.next.get(), |(sequence, _)| *sequence)
    }

    /// Notes that heads with this tail are durable on all members.
    pub(super) fn retire_below(&self, tail: u64) {
        self.tail.set(tail);
        let mut live = self.live.borrow_mut();
        *live = live.split_off(&tail);
        self.rings.borrow_mut().values_mut().for_each(|ring| ring.retire_below(tail));
    }

    /// Returns true if a record of these rows might be replayed. With `only_alone`, only records that must be
    /// alone count.
    pub(super) fn is_live(&self, rows: MemberSpan, only_alone: bool) -> bool {
        let overlaps = |live: &Live| {
            live.rows.iter().any(|one| one.overlaps(rows)) && (live.is_alone || !only_alone)
        };
        self.live.borrow().values().any(overlaps)
    }

    /// Reserves places for records of these lengths on all these members, or on none. Returns the sequence of `live`
    /// and the places.
    pub(super) fn place(&self, live: Live, records: &[(u32, u64)]) -> Option<(u64, Vec<u64>)> {
        let mut rings = self.rings.borrow_mut();
        for (number, len) in records {
            let ring = rings.entry(*number).or_insert_with(|| Ring::new(self.ring_bytes));
            if !ring.has_room(*len) {
                return None;
            }
        }
        let sequence = self.next.get();
        self.next.set(sequence + 1);
        self.live.borrow_mut().insert(sequence, live);
        let places = records.iter().map(|(number, len)| {
            let ring = rings.get_mut(number).expect("looked at above");
            ring.place(sequence, *len).expect("there is room")
        });
        Some((sequence, places.collect()))
    }
}
