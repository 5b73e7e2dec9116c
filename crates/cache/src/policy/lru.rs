//! Least recently used: evicts the block whose last use is the oldest.

use super::{Occupants, Policy};
use crate::list::{Links, List};
use crate::slot::Slot;

/// Slots in the order of their last use.
pub struct Lru {
    links: Links,
    slots: List,
}

impl Lru {
    /// Creates a policy for `slots` slots.
    pub fn new(slots: u32) -> Lru {
        Lru { links: Links::new(slots), slots: List::default() }
    }
}

impl Policy for Lru {
    fn touch(&mut self, slot: Slot) {
        self.slots.renew(&mut self.links, slot);
    }

    fn admit(&mut self, slot: Slot, _block: u64) {
        self.slots.push(&mut self.links, slot);
    }

    fn evict(&mut self, _block: u64, occupants: &dyn Occupants) -> Option<Slot> {
        let slot = self.slots.oldest_that(&self.links, |slot| occupants.can_evict(slot))?;
        self.slots.remove(&mut self.links, slot);
        Some(slot)
    }

    fn forget(&mut self, slot: Slot) {
        self.slots.remove(&mut self.links, slot);
    }

    fn bytes(&self) -> usize {
        self.links.bytes()
    }
}
