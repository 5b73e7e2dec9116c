//! S3-FIFO with LIRS's rule for returning blocks: a small queue for new blocks, a main queue for blocks used again, and
//! a history of evicted blocks.
//!
//! ```text
//!   new ──▶ small (a 200th) ────used again───▶ main ──┐ used again: reinserted, one use fewer
//!             │ not                              ▲  └──┘
//!             ▼                                  │    │ not: candidate
//!           evicted, remembered ──────returns────┤    ▼
//!             ▲                                  │  main's candidate
//!             └──────────── new again ◀── no ── was it away for less than a third of the time
//!                                               that the candidate was idle?   yes: replaces it
//! ```
//!
//! Blocks that are read once pass only through the small queue, so a scan does not flush the main
//! queue. The same holds for a loop that is longer than the cache: each of its blocks is away as
//! long as the cached blocks are idle, so the cached ones stay, and hit in every round. While the
//! main queue has free slots, new blocks go there with an infinite idle time: until they are used,
//! any returning block replaces them.
//!
//! The queues are those of Yang et al., "FIFO queues are all you need for cache eviction", SOSP
//! 2023, where the small queue has a tenth of the slots and returning blocks enter the main queue.
//! The rule that a returning block must have been away for less time than the cached one was idle
//! is from Jiang and Zhang, "LIRS: an efficient low inter-reference recency set replacement
//! policy", SIGMETRICS 2002, which also fills the main part first. The effect on hits is in
//! `docs/decisions/0051-who-comes-back-is-weighed.md`.
//!
//! Deliberately absent: the order of last uses. Time is counted in inserted blocks, so a hit writes
//! one word of its slot and nothing else.

use super::history::History;
use super::{Occupants, Policy};
use crate::list::{Links, List};
use crate::slot::Slot;

/// One slot in this many belongs to the small queue.
const SMALL: u32 = 200;
/// Remembered evicted blocks per slot.
const REMEMBERED: u32 = 3;
/// A returning block replaces the candidate if it was away for less than this fraction of the
/// candidate's idle time: an early return may be chance, and the cached block has been useful.
const MARGIN: u32 = 3;
/// An infinite number of ticks.
const LONG: u32 = 1 << 28;
/// Clock ticks per turnover of the cache, if it has many slots.
const TICKS: u32 = 1024;

/// State of a slot: uses since its insertion or last visit, its queue, and the time of its last
/// use.
#[derive(Clone, Copy, Default)]
struct SlotUsage(u32);

impl SlotUsage {
    const COUNT: u32 = 0b011;
    const MAIN: u32 = 0b100;
    const TIME: u32 = 3;

    /// Keeps as many bits of `now` as fit.
    fn new(is_main: bool, uses: u32, now: u32) -> SlotUsage {
        SlotUsage(now << SlotUsage::TIME | if is_main { SlotUsage::MAIN } else { 0 } | uses)
    }

    /// Returns the counted uses, three at most.
    fn uses(self) -> u32 {
        self.0 & SlotUsage::COUNT
    }

    fn is_main(self) -> bool {
        self.0 & SlotUsage::MAIN != 0
    }

    fn when(self) -> u32 {
        self.0 >> SlotUsage::TIME
    }

    fn again(self, now: u32) -> SlotUsage {
        SlotUsage::new(self.is_main(), (self.uses() + 1).min(SlotUsage::COUNT), now)
    }
}

/// The queues, and the state of each slot.
pub struct S3Fifo {
    links: Links,
    small: List,
    main: List,
    used: Vec<SlotUsage>,
    /// Target length of the small queue.
    small_goal: u32,
    slots: u32,
    history: History,
    /// Blocks inserted since the last tick, and the number of ticks.
    came_in: u32,
    now: u32,
}

impl S3Fifo {
    /// Creates a policy for `slots` slots.
    pub fn new(slots: u32) -> S3Fifo {
        S3Fifo {
            links: Links::new(slots),
            small: List::default(),
            main: List::default(),
            used: vec![SlotUsage::default(); slots as usize],
            small_goal: slots.div_ceil(SMALL),
            slots,
            history: History::new(slots.saturating_mul(REMEMBERED)),
            came_in: 0,
            now: 0,
        }
    }

    fn tick(&mut self) {
        self.came_in += 1;
        if self.came_in >= self.slots / TICKS {
            self.came_in = 0;
            self.now = self.now.wrapping_add(1);
        }
    }

    /// Returns the lowest bits of a time, as stored in the history.
    fn low(time: u32) -> u16 {
        let [low, high, ..] = time.to_le_bytes();
        u16::from_le_bytes([low, high])
    }

    fn main_has_room(&self) -> bool {
        self.main.len() + self.small_goal < self.slots
    }

    fn idle(&self, slot: Slot) -> u32 {
        self.now.wrapping_sub(self.used[slot.index()].when()) & (u32::MAX >> SlotUsage::TIME)
    }

    /// Evicts `slot`, which is in no queue, and remembers it if the history can represent its idle
    /// time.
    fn leave(&mut self, slot: Slot, occupants: &dyn Occupants) -> Slot {
        if let Ok(idle) = u16::try_from(self.idle(slot)) {
            self.history.remember(occupants.block_of(slot), idle, S3Fifo::low(self.now));
        }
        slot
    }

    /// Evicts the oldest slot of the small queue, or moves it to the main queue if it was used
    /// again.
    fn meet_small(&mut self, occupants: &dyn Occupants) -> Option<Slot> {
        let slot = self.small.oldest()?;
        self.small.remove(&mut self.links, slot);
        let seen = self.used[slot.index()];
        if seen.uses() > 0 || !occupants.can_evict(slot) {
            self.used[slot.index()] = SlotUsage::new(true, 0, seen.when());
            self.main.push(&mut self.links, slot);
            return None;
        }
        Some(self.leave(slot, occupants))
    }

    /// Returns the candidate of the main queue, which stays in place. Slots before it that were
    /// used again, or may not be evicted, are reinserted. `None` if no slot may be evicted.
    fn next_of_main(&mut self, occupants: &dyn Occupants) -> Option<Slot> {
        // One round for each use that can be counted.
        for _ in 0..u64::from(self.main.len()) * u64::from(SlotUsage::COUNT + 1) {
            let slot = self.main.oldest()?;
            let seen = self.used[slot.index()];
            if seen.uses() == 0 && occupants.can_evict(slot) {
                return Some(slot);
            }
            self.used[slot.index()] =
                SlotUsage::new(true, seen.uses().saturating_sub(1), seen.when());
            self.main.renew(&mut self.links, slot);
        }
        None
    }

    fn leave_main(&mut self, slot: Slot, occupants: &dyn Occupants) -> Slot {
        self.main.remove(&mut self.links, slot);
        self.leave(slot, occupants)
    }

    /// Evicts a slot of the main queue for the returning `block`. If there is none, `block` enters
    /// the small queue as a new one.
    fn evict_for_returning(&mut self, block: u64, occupants: &dyn Occupants) -> Option<Slot> {
        let away = self.history.away(block, S3Fifo::low(self.now))?;
        if self.main_has_room() {
            return None;
        }
        let slot = self.next_of_main(occupants)?;
        if u32::from(away) * MARGIN < self.idle(slot) {
            return Some(self.leave_main(slot, occupants));
        }
        self.history.forget(block);
        None
    }
}

impl Policy for S3Fifo {
    #[inline]
    fn touch(&mut self, slot: Slot) {
        let seen = &mut self.used[slot.index()];
        *seen = seen.again(self.now);
    }

    fn admit(&mut self, slot: Slot, block: u64) {
        self.tick();
        let was_here = self.history.forget(block);
        let is_main = was_here || self.main_has_room();
        let when = if is_main && !was_here { self.now.wrapping_sub(LONG) } else { self.now };
        self.used[slot.index()] = SlotUsage::new(is_main, 0, when);
        let queue = if is_main { &mut self.main } else { &mut self.small };
        queue.push(&mut self.links, slot);
    }

    fn evict(&mut self, block: u64, occupants: &dyn Occupants) -> Option<Slot> {
        if let Some(slot) = self.evict_for_returning(block, occupants) {
            return Some(slot);
        }
        while self.small.len() >= self.small_goal || self.main.is_empty() {
            if self.small.is_empty() {
                return None;
            }
            if let Some(slot) = self.meet_small(occupants) {
                return Some(slot);
            }
        }
        let slot = self.next_of_main(occupants);
        // What may not leave main may leave small.
        slot.map(|slot| self.leave_main(slot, occupants))
            .or_else(|| (0..self.small.len()).find_map(|_| self.meet_small(occupants)))
    }

    fn forget(&mut self, slot: Slot) {
        let is_main = self.used[slot.index()].is_main();
        let queue = if is_main { &mut self.main } else { &mut self.small };
        queue.remove(&mut self.links, slot);
    }

    fn bytes(&self) -> usize {
        self.links.bytes() + size_of_val(&self.used[..]) + self.history.bytes()
    }
}
