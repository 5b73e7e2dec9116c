//! SIEVE: a queue in the order of arrival, and a hand that goes from the oldest to the newest.
//!
//! ```text
//!   newest                                   oldest
//!     □ ─ ■ ─ □ ─ ■ ─ ■ ─ □ ─ □
//!                         ▲                              ■ used since the hand came by
//!                       hand ◀── goes this way           □ not: leaves when the hand comes
//! ```
//!
//! A block that is used again stays where it is, so what is popular gathers behind the hand, and what
//! comes once is sifted out before it gets there.

use super::{Occupants, Policy};
use crate::list::{Links, List};
use crate::slot::Slot;

/// Slots in the order of arrival, who was used, and the hand.
pub struct Sieve {
    links: Links,
    slots: List,
    used: Vec<bool>,
    hand: Option<Slot>,
}

impl Sieve {
    /// For so many slots.
    pub fn new(slots: u32) -> Sieve {
        let used = vec![false; slots as usize];
        Sieve { links: Links::new(slots), slots: List::default(), used, hand: None }
    }

    fn take_out(&mut self, slot: Slot) {
        if self.hand == Some(slot) {
            self.hand = self.links.newer(slot);
        }
        self.slots.remove(&mut self.links, slot);
    }
}

impl Policy for Sieve {
    #[inline]
    fn touch(&mut self, slot: Slot) {
        self.used[slot.index()] = true;
    }

    fn admit(&mut self, slot: Slot, _block: u64) {
        self.used[slot.index()] = false;
        self.slots.push(&mut self.links, slot);
    }

    fn evict(&mut self, _block: u64, occupants: &dyn Occupants) -> Option<Slot> {
        // In one round every mark is taken away, in another whoever may leave is met without one.
        for _ in 0..2 * self.slots.len() {
            let slot = self.hand.or(self.slots.oldest())?;
            self.hand = self.links.newer(slot);
            let was_used = std::mem::take(&mut self.used[slot.index()]);
            if !was_used && occupants.may_leave(slot) {
                self.take_out(slot);
                return Some(slot);
            }
        }
        None
    }

    fn forget(&mut self, slot: Slot) {
        self.take_out(slot);
    }

    fn bytes(&self) -> usize {
        self.links.bytes() + self.used.len()
    }
}
