//! S3-FIFO: a small queue for what is new, a main queue for what was used again, and a memory of
//! what left the small one.
//!
//! ```text
//!   new ──▶ small (a tenth) ──used again──▶ main ──┐ used again: once more round, one use fewer
//!             │ not                          ▲  └──┘
//!             ▼                              │     not: leaves
//!           leaves, remembered ──comes back──┘
//! ```
//!
//! What is read once passes through the small queue only, so a scan does not wash the main one out.

use super::ghosts::Ghosts;
use super::{Occupants, Policy};
use crate::list::{Links, List};
use crate::slot::Slot;

/// Uses that are counted of a slot.
const MOST_USES: u8 = 3;
/// Marks a slot of the main queue, beside its uses.
const IN_MAIN: u8 = 0x80;

/// The queues, and how often each slot was used.
pub struct S3Fifo {
    links: Links,
    small: List,
    main: List,
    /// Uses since it came in or was met, and [`IN_MAIN`].
    state: Vec<u8>,
    /// How many the small queue is to have.
    small_goal: u32,
    ghosts: Ghosts<1>,
}

impl S3Fifo {
    /// For so many slots.
    pub fn new(slots: u32) -> S3Fifo {
        let small_goal = slots.div_ceil(10);
        S3Fifo {
            links: Links::new(slots),
            small: List::default(),
            main: List::default(),
            state: vec![0; slots as usize],
            small_goal,
            ghosts: Ghosts::new(slots),
        }
    }

    /// The oldest of the small queue leaves, or moves to the main one if it was used again.
    fn meet_small(&mut self, occupants: &dyn Occupants) -> Option<Slot> {
        let slot = self.small.oldest()?;
        let was_used = self.state[slot.index()] > 0;
        self.small.remove(&mut self.links, slot);
        if was_used || !occupants.may_leave(slot) {
            self.state[slot.index()] = IN_MAIN;
            self.main.push(&mut self.links, slot);
            return None;
        }
        if self.ghosts.is_full() {
            self.ghosts.forget_oldest(0);
        }
        self.ghosts.remember(0, occupants.block_of(slot));
        Some(slot)
    }

    /// The oldest of the main queue leaves, or goes round once more if it was used again.
    fn meet_main(&mut self, occupants: &dyn Occupants) -> Option<Slot> {
        let slot = self.main.oldest()?;
        self.main.remove(&mut self.links, slot);
        let uses = self.state[slot.index()] & !IN_MAIN;
        if uses > 0 || !occupants.may_leave(slot) {
            self.state[slot.index()] = IN_MAIN | uses.saturating_sub(1);
            self.main.push(&mut self.links, slot);
            return None;
        }
        Some(slot)
    }
}

impl Policy for S3Fifo {
    #[inline]
    fn touch(&mut self, slot: Slot) {
        let state = &mut self.state[slot.index()];
        if *state & !IN_MAIN < MOST_USES {
            *state += 1;
        }
    }

    fn admit(&mut self, slot: Slot, block: u64) {
        let was_here = self.ghosts.recall(block);
        self.state[slot.index()] = if was_here { IN_MAIN } else { 0 };
        let queue = if was_here { &mut self.main } else { &mut self.small };
        queue.push(&mut self.links, slot);
    }

    fn evict(&mut self, _block: u64, occupants: &dyn Occupants) -> Option<Slot> {
        // Each slot goes from small to main once, and round the main queue once for each use.
        let most = u64::from(self.small.len() + self.main.len()) * u64::from(MOST_USES + 2);
        (0..most).find_map(|_| {
            let from_small = self.small.len() >= self.small_goal || self.main.is_empty();
            if from_small && !self.small.is_empty() {
                self.meet_small(occupants)
            } else {
                self.meet_main(occupants)
            }
        })
    }

    fn forget(&mut self, slot: Slot) {
        let is_in_main = self.state[slot.index()] & IN_MAIN != 0;
        let queue = if is_in_main { &mut self.main } else { &mut self.small };
        queue.remove(&mut self.links, slot);
    }

    fn bytes(&self) -> usize {
        self.links.bytes() + self.state.len() + self.ghosts.bytes()
    }
}
