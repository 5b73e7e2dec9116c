//! Changes the number of slots while requests are served.
//!
//! ```text
//!   slots      0 1 2 3 4 5 6 7       the policy's order of eviction: 6 2 7 0 4 5 1 3
//!   to four    0 1 2 3               6 2 7 0 are evicted; 1 and 3 stay in place; 4 and 5 move to 0 and 2
//! ```
//!
//! The policy is created again, and gets the remaining blocks in their order of eviction, so the
//! order is kept.

use crate::contents::Contents;
use crate::directory::Directory;
use crate::policy::{self, Occupants};
use crate::slot::{Slot, SlotMove};

/// Occupants that can all be evicted, to list them in the order of eviction.
struct AllEvictable<'a>(&'a Directory);

impl Occupants for AllEvictable<'_> {
    fn block_of(&self, slot: Slot) -> u64 {
        self.0.block_of(slot)
    }

    fn can_evict(&self, _slot: Slot) -> bool {
        true
    }
}

impl Contents {
    /// Returns all occupied slots in the order of eviction. The policy knows none of them
    /// afterwards.
    pub(crate) fn evict_all(&mut self) -> Vec<Slot> {
        // A block number that does not exist, and therefore no policy remembers.
        let nobody = u64::MAX;
        let mut order = Vec::new();
        while let Some(slot) = self.policy.evict(nobody, &AllEvictable(&self.directory)) {
            order.push(slot);
        }
        order
    }

    /// Changes the number of slots to `slots`, which is at least the number of dirty blocks.
    /// Returns the moved blocks; no move overwrites the source of another one.
    pub(crate) fn resize(&mut self, slots: u32) -> Vec<SlotMove> {
        let mut stay = self.evict_all();
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
            Some((SlotMove { from, to: to? }, self.directory.block_of(from)))
        };
        let placed: Vec<(SlotMove, u64)> = stay.into_iter().filter_map(place).collect();
        let places = || placed.iter().map(|(one, _)| *one);
        self.valid = self.valid.rearranged(slots, places());
        if let Some(dirty) = &mut self.dirty {
            dirty.rearrange(slots, places);
        }
        self.directory = Directory::of(slots, placed.iter().map(|(one, block)| (one.to, *block)));
        self.policy = policy::policy(self.name, slots);
        placed.iter().for_each(|(one, block)| self.policy.admit(one.to, *block));
        // The sizes of the curve depend on the number of slots.
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

    /// With eight blocks, some of them used twice, the four stay that the policy would keep.
    #[test]
    fn who_would_leave_first_leaves() {
        for (name, stay) in [
            (CachePolicy::Lru, [1, 5, 6, 7]),
            // The last one is in the small queue, which is evicted from first.
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
            // There is room for two more; the third one evicts a block.
            assert!(contents.resize(6).is_empty());
            (20..23).for_each(|block| read(&mut contents, block));
            assert_eq!(contents.used(), (6, 6), "{name}");
        }
    }
}
