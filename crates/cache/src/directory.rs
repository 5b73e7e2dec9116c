//! Map from blocks to slots, and the free slots.
//!
//! ```text
//!   block ──hash──▶ place ──▶ [tag|slot] [tag|slot] [    ] …      5⅓ bytes per slot for the table,
//!                             tag fits? keys[slot] == block       8 for its key
//! ```
//!
//! A hash table with linear probing. A removal moves the following entries up (Knuth, "The Art of
//! Computer Programming", vol. 3, 6.4, algorithm R), so there are no tombstones: the table does not
//! degrade as blocks come and go.
//!
//! Invariants
//! * A block has at most one slot; a slot is free or has one block.
//! * No place between a block's home place and its entry is empty.
//! * Nothing is allocated after [`Directory::new`].
//! * The hash has no secret and no clock: equal requests use equal places in every run.

use crate::slot::Slot;

/// Map from blocks to slots.
pub struct Directory {
    /// For each place the slot and, above it, bits of the hash; or [`EMPTY`].
    table: Vec<u32>,
    /// Mask of the slot in a place. All bits set is not a slot.
    mask: u32,
    /// For an occupied slot its block; for a free slot the next free one.
    keys: Vec<u64>,
    free: Option<Slot>,
    slots: u32,
    used: u32,
}

const EMPTY: u32 = u32::MAX;
const LAST: u64 = u64::MAX;

/// Hashes a block number to 64 bits with the finaliser of MurmurHash3, a bijection.
#[inline]
pub(crate) fn hash(block: u64) -> u64 {
    let mut hash = block.wrapping_add(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

/// Returns the lowest 32 bits of a hash.
#[inline]
fn low(hash: u64) -> u32 {
    let [a, b, c, d, ..] = hash.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

impl Directory {
    /// Creates a directory of `slots` free slots.
    ///
    /// # Panics
    /// If `slots` is `u32::MAX`.
    pub fn new(slots: u32) -> Directory {
        assert!(slots < u32::MAX, "{slots} slots");
        // Low slots are used first.
        let mut keys: Vec<u64> = (1..=u64::from(slots)).collect();
        if let Some(last) = keys.last_mut() {
            *last = LAST;
        }
        let free = (slots > 0).then(|| Slot::new(0));
        // At least one place is empty, so every search ends.
        let places = slots as usize + slots as usize / 3 + 1;
        // Has as many bits as `slots`; with all bits set it exceeds the last slot.
        let mask = u32::MAX.checked_shr(slots.leading_zeros()).unwrap_or(0);
        Directory { table: vec![EMPTY; places], mask, keys, free, slots, used: 0 }
    }

    /// Creates a directory of `slots` slots, some of them with a block.
    ///
    /// # Panics
    /// If two blocks have the same slot.
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

    /// Returns the number of slots.
    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// Returns the number of occupied slots.
    pub fn used(&self) -> u32 {
        self.used
    }

    /// Returns its memory in bytes.
    pub fn bytes(&self) -> usize {
        self.table.len() * size_of::<u32>() + self.keys.len() * size_of::<u64>()
    }

    /// Returns the home place of a hash.
    #[inline]
    fn home(&self, hash: u64) -> usize {
        ((u128::from(hash) * self.table.len() as u128) >> 64) as usize
    }

    #[inline]
    fn next(&self, place: usize) -> usize {
        if place + 1 == self.table.len() { 0 } else { place + 1 }
    }

    /// Returns the slot of `block`.
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

    /// Returns the block in the occupied `slot`.
    #[inline]
    pub fn block_of(&self, slot: Slot) -> u64 {
        self.keys[slot.index()]
    }

    /// Assigns a free slot to `block`, which has none; returns `None` if there is no free slot.
    pub fn insert(&mut self, block: u64) -> Option<Slot> {
        debug_assert!(self.find(block).is_none(), "block {block} has a slot");
        let slot = self.free?;
        // A number beyond all slots ends the free list.
        self.free = u32::try_from(self.keys[slot.index()]).ok().map(Slot::new);
        self.place(slot, block);
        Some(slot)
    }

    /// Assigns the free `slot` to `block`, which has none.
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

    /// Frees `slot`.
    ///
    /// # Panics
    /// If `slot` is free already.
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
            // An entry whose probe sequence passed the hole moves up.
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

    /// Returns the occupied slots in unspecified order.
    pub fn iter(&self) -> impl Iterator<Item = Slot> + '_ {
        let taken = self.table.iter().filter(|there| **there != EMPTY);
        taken.map(|there| Slot::new(there & self.mask))
    }
}
