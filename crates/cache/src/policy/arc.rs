//! ARC: two lists in the order of last use, of what was used once and of what was used again, and
//! a memory of what left each.
//!
//! ```text
//!   remembered ◀── recent ──used again──▶ frequent ──▶ remembered
//!       │            ◀──── share of recent ────▶            │
//!       └─ a hit here: a larger share    a hit here: a smaller one
//! ```
//!
//! The share follows hits among what is remembered: it is as large as would have been better.

use super::ghosts::Ghosts;
use super::{Occupants, Policy};
use crate::list::{Links, List};
use crate::slot::Slot;

/// Of what left `recent`, and of what left `frequent`.
const RECENT: u8 = 0;
const FREQUENT: u8 = 1;

/// The lists, and the share of the first.
pub struct Arc {
    links: Links,
    recent: List,
    frequent: List,
    is_frequent: Vec<bool>,
    slots: u32,
    /// How many slots the list of recent blocks is to have.
    share: u32,
    ghosts: Ghosts,
}

impl Arc {
    /// For so many slots.
    pub fn new(slots: u32) -> Arc {
        Arc {
            links: Links::new(slots),
            recent: List::default(),
            frequent: List::default(),
            is_frequent: vec![false; slots as usize],
            slots,
            share: 0,
            // One more: who comes back is remembered until it is admitted, beside who leaves for it.
            ghosts: Ghosts::new(slots + 1),
        }
    }

    /// Moves the share by what was remembered of the block that comes in.
    fn adapt(&mut self, remembered: Option<u8>) {
        let (recent, frequent) = (self.ghosts.len(RECENT), self.ghosts.len(FREQUENT));
        match remembered {
            Some(RECENT) => {
                let step = (frequent / recent.max(1)).max(1);
                self.share = self.share.saturating_add(step).min(self.slots);
            }
            Some(_) => {
                let step = (recent / frequent.max(1)).max(1);
                self.share = self.share.saturating_sub(step);
            }
            None => {}
        }
    }

    /// The oldest of a list that may leave.
    fn oldest(&self, list: u8, occupants: &dyn Occupants) -> Option<Slot> {
        let slots = if list == RECENT { &self.recent } else { &self.frequent };
        slots.oldest_that(&self.links, |slot| occupants.may_leave(slot))
    }
}

impl Policy for Arc {
    #[inline]
    fn touch(&mut self, slot: Slot) {
        let is_frequent = &mut self.is_frequent[slot.index()];
        if *is_frequent {
            self.frequent.renew(&mut self.links, slot);
        } else {
            *is_frequent = true;
            self.recent.remove(&mut self.links, slot);
            self.frequent.push(&mut self.links, slot);
        }
    }

    fn admit(&mut self, slot: Slot, block: u64) {
        let was_here = self.ghosts.recall(block);
        self.is_frequent[slot.index()] = was_here;
        let list = if was_here { &mut self.frequent } else { &mut self.recent };
        list.push(&mut self.links, slot);
    }

    fn evict(&mut self, block: u64, occupants: &dyn Occupants) -> Option<Slot> {
        let remembered = self.ghosts.find(block);
        self.adapt(remembered);
        let mut is_remembered = true;
        if remembered.is_none() && self.recent.len() + self.ghosts.len(RECENT) >= self.slots {
            // All that is known of recent blocks fills the cache: one of it is given up.
            is_remembered = self.recent.len() < self.slots;
            self.ghosts.forget_oldest(RECENT);
        }
        let is_over = self.recent.len() > self.share
            || remembered == Some(FREQUENT) && self.recent.len() == self.share;
        let list = if is_over && !self.recent.is_empty() { RECENT } else { FREQUENT };
        let found = [list, 1 - list]
            .into_iter()
            .find_map(|list| self.oldest(list, occupants).map(|slot| (list, slot)));
        let (list, slot) = found?;
        self.forget(slot);
        if is_remembered {
            if self.ghosts.is_full() {
                self.ghosts.forget_oldest(FREQUENT);
            }
            self.ghosts.remember(list, occupants.block_of(slot));
        }
        Some(slot)
    }

    fn forget(&mut self, slot: Slot) {
        let list =
            if self.is_frequent[slot.index()] { &mut self.frequent } else { &mut self.recent };
        list.remove(&mut self.links, slot);
    }

    fn bytes(&self) -> usize {
        self.links.bytes() + self.is_frequent.len() + self.ghosts.bytes()
    }
}
