//! S3-FIFO with the rule of LIRS for who comes back: a small queue for what is new, a main queue for
//! what was used again, and a history of what left both.
//!
//! ```text
//!   new ──▶ small (a 200th) ────used again───▶ main ──┐ used again: once more round, one use fewer
//!             │ not                              ▲  └──┘
//!             ▼                                  │    │ not: may leave
//!           leaves, remembered ──────comes back──┤    ▼
//!             ▲                                  │  next of main to leave
//!             └──────────── new again ◀── no ── was it away for a third of the time that this one
//!                                                has been idle for?       yes: it takes its place
//! ```
//!
//! What is read once passes through the small queue only, so a scan does not wash the main one out.
//! Nor does a loop that is longer than the cache: of its blocks each is away for as long as those that
//! stayed are idle, so those that are in stay in, and are hit in each round. While the main queue has
//! room whatever is new goes there, as if it had been idle for ever: until it is used, whoever comes
//! back takes its place.
//!
//! The queues are those of Yang et al., "FIFO queues are all you need for cache eviction", SOSP 2023,
//! where the small one is a tenth and whoever comes back goes to main. That a block is worth a place if it
//! comes back sooner than the one in it was last used is from Jiang and Zhang, "LIRS: an efficient low
//! inter-reference recency set replacement policy", SIGMETRICS 2002, who fill the main part first.
//! What this changes, in hits: `docs/decisions/0051-who-comes-back-is-weighed.md`.
//!
//! Deliberately absent: the order of last uses. Time is counted in blocks that came in, so a hit
//! writes one word of its slot and touches nothing else.

use super::history::History;
use super::{Occupants, Policy};
use crate::list::{Links, List};
use crate::slot::Slot;

/// Of so many slots one is the small queue's.
const SMALL: u32 = 200;
/// Blocks that left and are remembered, for each slot.
const REMEMBERED: u32 = 3;
/// A block that came back must have been away for less than this part of the time that the one whose
/// place it takes has been idle for: an early return may be chance, and what is in has been useful.
const MARGIN: u32 = 3;
/// Ticks that nobody lives to see.
const LONG: u32 = 1 << 28;
/// Ticks of the clock while as many blocks come in as there are slots, where slots are many.
const TICKS: u32 = 1024;

/// What is known of a slot: uses since it came in or was met, its queue, and when it was last used.
#[derive(Clone, Copy, Default)]
struct Use(u32);

impl Use {
    const COUNT: u32 = 0b011;
    const MAIN: u32 = 0b100;
    const TIME: u32 = 3;

    /// At most as many bits of `now` as there is room for are kept.
    fn new(is_main: bool, uses: u32, now: u32) -> Use {
        Use(now << Use::TIME | if is_main { Use::MAIN } else { 0 } | uses)
    }

    /// Uses that were counted: three at most.
    fn uses(self) -> u32 {
        self.0 & Use::COUNT
    }

    fn is_main(self) -> bool {
        self.0 & Use::MAIN != 0
    }

    fn when(self) -> u32 {
        self.0 >> Use::TIME
    }

    fn again(self, now: u32) -> Use {
        Use::new(self.is_main(), (self.uses() + 1).min(Use::COUNT), now)
    }
}

/// The queues, and what is known of each slot.
pub struct S3Fifo {
    links: Links,
    small: List,
    main: List,
    used: Vec<Use>,
    /// How many the small queue is to have.
    small_goal: u32,
    slots: u32,
    history: History,
    /// Blocks that came in since the last tick; and ticks.
    came_in: u32,
    now: u32,
}

impl S3Fifo {
    /// For so many slots.
    pub fn new(slots: u32) -> S3Fifo {
        S3Fifo {
            links: Links::new(slots),
            small: List::default(),
            main: List::default(),
            used: vec![Use::default(); slots as usize],
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

    /// The lowest bits of a time, as the history has them.
    fn low(time: u32) -> u16 {
        let [low, high, ..] = time.to_le_bytes();
        u16::from_le_bytes([low, high])
    }

    fn main_has_room(&self) -> bool {
        self.main.len() + self.small_goal < self.slots
    }

    fn idle(&self, slot: Slot) -> u32 {
        self.now.wrapping_sub(self.used[slot.index()].when()) & (u32::MAX >> Use::TIME)
    }

    /// `slot`, which is in no queue now, leaves and is remembered, if the history can say since when.
    fn leave(&mut self, slot: Slot, occupants: &dyn Occupants) -> Slot {
        if let Ok(idle) = u16::try_from(self.idle(slot)) {
            self.history.remember(occupants.block_of(slot), idle, S3Fifo::low(self.now));
        }
        slot
    }

    /// The oldest of the small queue leaves, or moves to the main one if it was used again.
    fn meet_small(&mut self, occupants: &dyn Occupants) -> Option<Slot> {
        let slot = self.small.oldest()?;
        self.small.remove(&mut self.links, slot);
        let seen = self.used[slot.index()];
        if seen.uses() > 0 || !occupants.may_leave(slot) {
            self.used[slot.index()] = Use::new(true, 0, seen.when());
            self.main.push(&mut self.links, slot);
            return None;
        }
        Some(self.leave(slot, occupants))
    }

    /// The next of the main queue to leave, which stays where it is; those before it that were used
    /// again, or may not leave, go round once more. None if nobody may leave.
    fn next_of_main(&mut self, occupants: &dyn Occupants) -> Option<Slot> {
        // Once round for each use that may have been counted.
        for _ in 0..u64::from(self.main.len()) * u64::from(Use::COUNT + 1) {
            let slot = self.main.oldest()?;
            let seen = self.used[slot.index()];
            if seen.uses() == 0 && occupants.may_leave(slot) {
                return Some(slot);
            }
            self.used[slot.index()] = Use::new(true, seen.uses().saturating_sub(1), seen.when());
            self.main.renew(&mut self.links, slot);
        }
        None
    }

    fn leave_main(&mut self, slot: Slot, occupants: &dyn Occupants) -> Slot {
        self.main.remove(&mut self.links, slot);
        self.leave(slot, occupants)
    }

    /// Who leaves the main queue for `block`, which was here before. If nobody does, it is as if it had
    /// not been: it comes into the small queue.
    fn make_way(&mut self, block: u64, occupants: &dyn Occupants) -> Option<Slot> {
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
        self.used[slot.index()] = Use::new(is_main, 0, when);
        let queue = if is_main { &mut self.main } else { &mut self.small };
        queue.push(&mut self.links, slot);
    }

    fn evict(&mut self, block: u64, occupants: &dyn Occupants) -> Option<Slot> {
        if let Some(slot) = self.make_way(block, occupants) {
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
