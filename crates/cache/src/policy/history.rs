//! When blocks that left were last used: a table of fingerprints that forgets the oldest.
//!
//! ```text
//!   block ──hash──▶ bucket: 16 × [16 bits of the hash | when], one line of the processor's cache
//! ```
//!
//! A fingerprint of 16 bits takes one block in some 4,000 for another that left. What is decided by it
//! is who stays, never what is held.
//!
//! Invariants
//! * A bucket that is full forgets its oldest for the next; all of it is made at the beginning.
//! * Times are 16 bits of a clock that its user keeps: an age is right as long as its bucket is written
//!   sixteen times before the clock has gone round.

use crate::directory::hash;

const WAYS: u32 = 16;

#[derive(Clone, Copy, Default)]
struct Entry {
    /// 0 is nobody.
    fingerprint: u16,
    when: u16,
}

/// Blocks that left, and when they were last used.
pub(super) struct History {
    buckets: Vec<[Entry; WAYS as usize]>,
}

impl History {
    /// Of the last `most` blocks or a few more.
    pub(super) fn new(most: u32) -> History {
        let buckets = most.div_ceil(WAYS).max(1);
        History { buckets: vec![[Entry::default(); WAYS as usize]; buckets as usize] }
    }

    /// Bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&self.buckets[..])
    }

    fn place(&self, block: u64) -> (usize, u16) {
        let hash = hash(block);
        let bucket = (u128::from(hash) * self.buckets.len() as u128) >> 64;
        let [low, high, ..] = hash.to_le_bytes();
        (bucket as usize, u16::from_le_bytes([low, high]).max(1))
    }

    /// Notes that `block`, which leaves at `now`, was last used `idle` ticks before.
    pub(super) fn remember(&mut self, block: u64, idle: u16, now: u16) {
        let (bucket, fingerprint) = self.place(block);
        let empty_or_oldest = |entry: &&mut Entry| match entry.fingerprint {
            0 => u32::MAX,
            _ => now.wrapping_sub(entry.when).into(),
        };
        if let Some(entry) = self.buckets[bucket].iter_mut().max_by_key(empty_or_oldest) {
            *entry = Entry { fingerprint, when: now.wrapping_sub(idle) };
        }
    }

    /// Ticks since `block` was last used, if that is remembered.
    pub(super) fn away(&self, block: u64, now: u16) -> Option<u16> {
        let (bucket, fingerprint) = self.place(block);
        let found = self.buckets[bucket].iter().find(|entry| entry.fingerprint == fingerprint);
        found.map(|entry| now.wrapping_sub(entry.when))
    }

    /// Forgets `block`; answers whether it was remembered.
    pub(super) fn forget(&mut self, block: u64) -> bool {
        let (bucket, fingerprint) = self.place(block);
        let mut entries = self.buckets[bucket].iter_mut();
        let found = entries.find(|entry| entry.fingerprint == fingerprint);
        found.map(|entry| *entry = Entry::default()).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nearly all of the last that left are remembered, with their ages, also when the clock has gone
    /// round; of those long before none is.
    #[test]
    fn what_left_last_is_remembered() {
        let mut history = History::new(4_000);
        let at = |block: u64| u16::try_from(block % 65_536).expect("16 bits");
        (0..100_000).for_each(|block| history.remember(block, 7, at(block)));
        let now = at(100_000);
        let age = |block: &u64| history.away(*block, now);
        let right = |block: &u64| age(block).map(u64::from) == Some(100_000 - block + 7);
        let last = (98_000..100_000_u64).filter(right).count();
        assert!(last > 1_950, "{last} of 2,000");
        let before = (0..80_000_u64).filter(|block| age(block).is_some()).count();
        // Sixteen fingerprints of 65,535 are there for any block.
        assert!(before < 80_000 * 2 * 16 / 65_535, "{before} of 80,000");

        assert!(history.forget(99_999) && !history.forget(99_999));
        assert_eq!(history.away(99_999, now), None);
    }
}
