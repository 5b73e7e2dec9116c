//! Which block is in which slot, and which slots are free.
//!
//! ```text
//!   block ──hash──▶ place ──▶ [tag|slot] [tag|slot] [    ] …      5⅓ bytes a slot for the table,
//!                             tag fits? keys[slot] == block       8 for its key
//! ```
//!
//! Who comes to a place that is taken goes to the next that is not (linear probing), and who leaves has
//! those behind it move up (Knuth, "The Art of Computer Programming", vol. 3, 6.4, algorithm R). So
//! nothing is ever marked as left: the table stays as it is made, however long blocks come and go.
//!
//! Invariants
//! * A block is in one slot at most; a slot is free, or has one block.
//! * From a block's own place to where it is no place is empty.
//! * Nothing is allocated after [`Directory::new`].
//! * The hash has no secret and no clock: the same requests find the same places in every run.

use crate::slot::Slot;

/// Where blocks are.
pub struct Directory {
    /// Of each place the slot and, above it, bits of the hash; or [`EMPTY`].
    table: Vec<u32>,
    /// The bits of a place that are its slot: all of them set is no slot.
    mask: u32,
    /// Of a slot that has a block its number; of a free one the next that is free.
    keys: Vec<u64>,
    free: Option<Slot>,
    slots: u32,
    used: u32,
}

const EMPTY: u32 = u32::MAX;
const LAST: u64 = u64::MAX;

/// Spreads a block's number over 64 bits: the finaliser of MurmurHash3, which is a bijection.
#[inline]
pub(crate) fn hash(block: u64) -> u64 {
    let mut hash = block.wrapping_add(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

/// The lowest 32 bits of a hash.
#[inline]
fn low(hash: u64) -> u32 {
    let [a, b, c, d, ..] = hash.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

impl Directory {
    /// One of `slots` slots, all free.
    ///
    /// # Panics
    /// If these are as many as a `u32` can say: the last number is no slot.
    pub fn new(slots: u32) -> Directory {
        assert!(slots < u32::MAX, "{slots} slots");
        // The lowest are taken first.
        let mut keys: Vec<u64> = (1..=u64::from(slots)).collect();
        if let Some(last) = keys.last_mut() {
            *last = LAST;
        }
        let free = (slots > 0).then(|| Slot::new(0));
        // One place at least is empty, so every search ends.
        let places = slots as usize + slots as usize / 3 + 1;
        // As many bits as `slots` has: all of them set is more than the last slot.
        let mask = u32::MAX.checked_shr(slots.leading_zeros()).unwrap_or(0);
        Directory { table: vec![EMPTY; places], mask, keys, free, slots, used: 0 }
    }

    /// One of `slots` slots, of which some have a block.
    ///
    /// # Panics
    /// If two are in one slot.
    pub(crate) fn of(slots: u32, blocks: impl Iterator<Item = (Slot, u64)>) -> Directory {
        let mut directory = Directory::new(slots);
        let mut is_free = vec![true; slots as usize];
        for (slot, block) in blocks {
            let was_free = std::mem::replace(&mut is_free[slot.index()], false);
            assert!(was_free, "two blocks in slot {}", slot.get());
            directory.place(slot, block);
        }
        directory.free = None;
        for slot in (0..slots).rev().map(Slot::new).filter(|slot| is_free[slot.index()]) {
            directory.keys[slot.index()] = directory.free.map_or(LAST, |next| next.get().into());
            directory.free = Some(slot);
        }
        directory
    }

    /// How many slots there are.
    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// How many have a block.
    pub fn used(&self) -> u32 {
        self.used
    }

    /// Bytes that it takes.
    pub fn bytes(&self) -> usize {
        self.table.len() * size_of::<u32>() + self.keys.len() * size_of::<u64>()
    }

    /// The place where a block with this hash belongs.
    #[inline]
    fn home(&self, hash: u64) -> usize {
        ((u128::from(hash) * self.table.len() as u128) >> 64) as usize
    }

    #[inline]
    fn next(&self, place: usize) -> usize {
        if place + 1 == self.table.len() { 0 } else { place + 1 }
    }

    /// The slot of `block`.
    #[inline]
    pub fn find(&self, block: u64) -> Option<Slot> {
        let hash = hash(block);
        let (tag, mut place) = (low(hash) & !self.mask, self.home(hash));
        loop {
            let there = self.table[place];
            let slot = there & self.mask;
            if there == EMPTY {
                return None;
            }
            if there & !self.mask == tag && self.keys[slot as usize] == block {
                return Some(Slot::new(slot));
            }
            place = self.next(place);
        }
    }

    /// The block in `slot`, which has one.
    #[inline]
    pub fn block_of(&self, slot: Slot) -> u64 {
        self.keys[slot.index()]
    }

    /// Puts `block`, which has no slot, into a free one; none if none is free.
    pub fn insert(&mut self, block: u64) -> Option<Slot> {
        debug_assert!(self.find(block).is_none(), "block {block} has a slot");
        let slot = self.free?;
        // What is larger than any slot is the end.
        self.free = u32::try_from(self.keys[slot.index()]).ok().map(Slot::new);
        self.place(slot, block);
        Some(slot)
    }

    /// `block`, which has no slot, is in `slot`, which is free, from now on.
    fn place(&mut self, slot: Slot, block: u64) {
        self.keys[slot.index()] = block;
        self.used += 1;
        let hash = hash(block);
        let mut place = self.home(hash);
        while self.table[place] != EMPTY {
            place = self.next(place);
        }
        self.table[place] = low(hash) & !self.mask | slot.get();
    }

    /// Frees `slot`, which has a block.
    ///
    /// # Panics
    /// If it has none.
    pub fn remove(&mut self, slot: Slot) {
        let mut hole = self.home(hash(self.keys[slot.index()]));
        while self.table[hole] & self.mask != slot.get() {
            assert!(self.table[hole] != EMPTY, "slot {} has no block", slot.get());
            hole = self.next(hole);
        }
        let places = self.table.len();
        let way = |from: usize, to: usize| if to >= from { to - from } else { to + places - from };
        let mut place = self.next(hole);
        while self.table[place] != EMPTY {
            let there = (self.table[place] & self.mask) as usize;
            let home = self.home(hash(self.keys[there]));
            // It moves up if it has passed the hole on its way.
            if way(home, place) >= way(hole, place) {
                self.table[hole] = self.table[place];
                hole = place;
            }
            place = self.next(place);
        }
        self.table[hole] = EMPTY;
        self.keys[slot.index()] = self.free.map_or(LAST, |next| next.get().into());
        self.free = Some(slot);
        self.used -= 1;
    }

    /// Slots that have a block, in no order that means anything.
    pub fn iter(&self) -> impl Iterator<Item = Slot> + '_ {
        let taken = self.table.iter().filter(|there| **there != EMPTY);
        taken.map(|there| Slot::new(there & self.mask))
    }
}
