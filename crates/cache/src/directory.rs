//! Which block is in which slot, and which slots are free.
//!
//! ```text
//!   block ──hash──▶ table of slots ──▶ keys[slot] == block        4 + 1 bytes a place of the table,
//!                                                                 8 bytes a slot for its key
//! ```
//!
//! Invariants
//! * A block is in one slot at most; a slot is free, or has one block.
//! * Nothing is allocated after [`Directory::new`].
//! * The hash has no secret and no clock: the same requests find the same places in every run.

use hashbrown::HashTable;

use crate::slot::Slot;

/// Where blocks are.
pub struct Directory {
    table: HashTable<Slot>,
    /// Of a slot that has a block its number; of a free one the next that is free.
    keys: Vec<u64>,
    free: Option<Slot>,
    slots: u32,
    used: u32,
}

const LAST: u64 = u64::MAX;

/// Spreads a block's number over 64 bits: the finaliser of MurmurHash3, which is a bijection.
#[inline]
pub(crate) fn hash(block: u64) -> u64 {
    let mut hash = block.wrapping_add(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

impl Directory {
    /// One of `slots` slots, all free.
    pub fn new(slots: u32) -> Directory {
        // The lowest are taken first.
        let mut keys: Vec<u64> = (1..=u64::from(slots)).collect();
        if let Some(last) = keys.last_mut() {
            *last = LAST;
        }
        let free = (slots > 0).then(|| Slot::new(0));
        Directory { table: HashTable::with_capacity(slots as usize), keys, free, slots, used: 0 }
    }

    /// One of `slots` slots, of which some have a block.
    ///
    /// # Panics
    /// If two are in one slot.
    pub(crate) fn of(slots: u32, blocks: impl Iterator<Item = (Slot, u64)>) -> Directory {
        let mut directory = Directory::new(0);
        directory.table.reserve(slots as usize, |_| unreachable!("it is empty"));
        directory.keys = vec![LAST; slots as usize];
        for (slot, block) in blocks {
            assert_eq!(directory.keys[slot.index()], LAST, "two blocks in slot {}", slot.get());
            directory.keys[slot.index()] = block;
            let keys = &directory.keys;
            directory.table.insert_unique(hash(block), slot, |slot| hash(keys[slot.index()]));
            directory.used += 1;
        }
        let mut is_free = vec![true; slots as usize];
        directory.table.iter().for_each(|slot| is_free[slot.index()] = false);
        for slot in (0..slots).rev().map(Slot::new).filter(|slot| is_free[slot.index()]) {
            directory.keys[slot.index()] = directory.free.map_or(LAST, |next| next.get().into());
            directory.free = Some(slot);
        }
        directory.slots = slots;
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
        self.table.allocation_size() + self.keys.len() * size_of::<u64>()
    }

    /// The slot of `block`.
    #[inline]
    pub fn find(&self, block: u64) -> Option<Slot> {
        let keys = &self.keys;
        self.table.find(hash(block), |slot| keys[slot.index()] == block).copied()
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
        self.keys[slot.index()] = block;
        self.used += 1;
        let keys = &self.keys;
        self.table.insert_unique(hash(block), slot, |slot| hash(keys[slot.index()]));
        Some(slot)
    }

    /// Frees `slot`, which has a block.
    ///
    /// # Panics
    /// If it has none.
    pub fn remove(&mut self, slot: Slot) {
        let hash = hash(self.keys[slot.index()]);
        match self.table.find_entry(hash, |other| *other == slot) {
            Ok(entry) => drop(entry.remove()),
            Err(_) => panic!("slot {} has no block", slot.get()),
        }
        self.keys[slot.index()] = self.free.map_or(LAST, |next| next.get().into());
        self.free = Some(slot);
        self.used -= 1;
    }

    /// Slots that have a block, in no order that means anything.
    pub fn iter(&self) -> impl Iterator<Item = Slot> + '_ {
        self.table.iter().copied()
    }
}
