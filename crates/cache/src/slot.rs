//! Slot: the place of one block in the cache's memory.

/// Number of a slot, from 0 to the capacity of the cache in blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(u32);

impl Slot {
    /// Returns the slot with this number.
    pub const fn new(number: u32) -> Slot {
        Slot(number)
    }

    /// Returns the number as an index.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// Returns the number.
    #[inline]
    pub const fn get(self) -> u32 {
        self.0
    }
}

/// Move of a block to another slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotMove {
    pub(crate) from: Slot,
    pub(crate) to: Slot,
}
