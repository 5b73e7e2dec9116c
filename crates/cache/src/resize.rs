//! Another number of slots, while requests are served.
//!
//! ```text
//!   slots      0 1 2 3 4 5 6 7       asked for the order in which all would leave: 6 2 7 0 4 5 1 3
//!   to four    0 1 2 3               6 2 7 0 leave; 1 and 3 stay where they are; 4 and 5 move to 0 and 2
//! ```
//!
//! The policy is made anew and told of those that stay in the order in which they would leave: what was
//! to leave first leaves first.

use crate::contents::Contents;
use crate::directory::Directory;
use crate::policy::{self, Occupants};
use crate::slot::{Move, Slot};

/// Everybody may leave: it is only asked in which order.
struct Everybody<'a>(&'a Directory);

impl Occupants for Everybody<'_> {
    fn block_of(&self, slot: Slot) -> u64 {
        self.0.block_of(slot)
    }

    fn may_leave(&self, _slot: Slot) -> bool {
        true
    }
}

impl Contents {
    /// All slots that have a block, in the order in which they would leave. The policy knows none of
    /// them any more.
    pub(crate) fn all_leave(&mut self) -> Vec<Slot> {
        // A block that none has: no memory of it moves a policy.
        let nobody = u64::MAX;
        let mut order = Vec::new();
        while let Some(slot) = self.policy.evict(nobody, &Everybody(&self.directory)) {
            order.push(slot);
        }
        order
    }

    /// Has room for `slots` blocks from now on, of which what is dirty is not more. Answers what moved;
    /// no place is moved to that another is moved from.
    pub(crate) fn resize(&mut self, slots: u32) -> Vec<Move> {
        let mut stay = self.all_leave();
        let mut excess = stay.len().saturating_sub(slots as usize);
        let dirty = self.dirty.as_ref();
        stay.retain(|slot| {
            let leaves = excess > 0 && dirty.is_none_or(|dirty| !dirty.has_any(*slot));
            excess -= usize::from(leaves);
            !leaves
        });
        assert!(excess == 0, "{excess} dirty blocks more than there is room for");
        let is_there = |slot: &Slot| slot.get() < slots;
        let mut taken = vec![false; slots as usize];
        stay.iter().filter(|slot| is_there(slot)).for_each(|slot| taken[slot.index()] = true);
        let mut free = (0..slots).map(Slot::new).filter(|slot| !taken[slot.index()]);
        let place = |from: Slot| {
            let to = if is_there(&from) { Some(from) } else { free.next() };
            Some((Move { from, to: to? }, self.directory.block_of(from)))
        };
        let placed: Vec<(Move, u64)> = stay.into_iter().filter_map(place).collect();
        let places = || placed.iter().map(|(one, _)| *one);
        self.valid = self.valid.rearranged(slots, places());
        if let Some(dirty) = &mut self.dirty {
            dirty.rearrange(slots, places);
        }
        self.directory = Directory::of(slots, placed.iter().map(|(one, block)| (one.to, *block)));
        self.policy = policy::policy(self.name, slots);
        placed.iter().for_each(|(one, block)| self.policy.admit(one.to, *block));
        // Its sizes are shares of this one.
        self.start_curve();
        placed.into_iter().map(|(one, _)| one).filter(|one| one.from != one.to).collect()
    }
}

#[cfg(test)]
mod tests {
    use braid_block::Span;
    use braid_level::CachePolicy;

    use super::*;

    const BLOCK: u64 = 4096;

    fn held(contents: &Contents) -> Vec<u64> {
        let block = |slot| contents.directory.block_of(slot);
        let mut blocks: Vec<u64> = contents.directory.iter().map(block).collect();
        blocks.sort_unstable();
        blocks
    }

    fn read(contents: &mut Contents, block: u64) {
        let piece = contents.pieces(Span::new(block * BLOCK, BLOCK)).next().expect("a block");
        if contents.hit(piece).is_none() {
            contents.put(piece, false);
        }
    }

    /// Of eight that came in order, of which some were used again, the four stay that would have.
    #[test]
    fn who_would_leave_first_leaves() {
        for (name, stay) in [
            (CachePolicy::Lru, [1, 5, 6, 7]),
            // The last one is in the small queue, which gives way first.
            (CachePolicy::S3Fifo, [1, 4, 5, 6]),
        ] {
            let mut contents = Contents::new(8, BLOCK, name, 1 << 20);
            (0..8).for_each(|block| read(&mut contents, block));
            read(&mut contents, 1);
            read(&mut contents, 5);
            let moves = contents.resize(4);
            assert_eq!(held(&contents), stay, "{name}");
            let from: Vec<u32> = moves.iter().map(|one| one.from.get()).collect();
            let to: Vec<u32> = moves.iter().map(|one| one.to.get()).collect();
            assert!(from.iter().all(|slot| *slot >= 4) && to.iter().all(|slot| *slot < 4));
            assert_eq!(moves.len(), 3, "{moves:?}");
            // As many as there is room for, and the next one has one leave.
            assert!(contents.resize(6).is_empty());
            (20..23).for_each(|block| read(&mut contents, block));
            assert_eq!(contents.used(), (6, 6), "{name}");
        }
    }
}
