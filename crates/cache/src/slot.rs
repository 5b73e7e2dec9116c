//! A slot: the place of one block in the cache's memory.

/// The number of a slot: 0 to the number of blocks that the cache holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(u32);

impl Slot {
    /// The slot with this number.
    pub const fn new(number: u32) -> Slot {
        Slot(number)
    }

    /// As an index of what is kept for each slot.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// Its number.
    #[inline]
    pub const fn get(self) -> u32 {
        self.0
    }
}

/// A block that is in another slot now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Move {
    pub(crate) from: Slot,
    pub(crate) to: Slot,
}
