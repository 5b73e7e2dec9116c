//! Times of the last use of evicted blocks: a table of fingerprints that forgets the oldest.
//!
//! ```text
//!   block ──hash──▶ bucket: 16 × [16 bits of the hash | time], one cache line of the processor
//! ```
//!
//! A fingerprint of 16 bits confuses one block in some 4,000 with another evicted block. This
//! affects only evictions, never the content.
//!
//! Invariants
//! * A full bucket replaces its oldest entry. All memory is allocated at the start.
//! * Times are 16 bits of a clock kept by the user. Ages are correct as long as a bucket is written
//!   sixteen times before the clock wraps.

use crate::directory::hash;

const WAYS: u32 = 16;

#[derive(Clone, Copy, Default)]
struct Entry {
    /// 0 for an empty entry.
    fingerprint: u16,
    when: u16,
}

/// Evicted blocks and the times of their last use.
pub(super) struct History {
    buckets: Vec<[Entry; WAYS as usize]>,
}

impl History {
    /// Creates a history of at least `most` blocks.
    pub(super) fn new(most: u32) -> History {
        let buckets = most.div_ceil(WAYS).max(1);
        History { buckets: vec![[Entry::default(); WAYS as usize]; buckets as usize] }
    }

    /// Returns its memory in bytes.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&self.buckets[..])
    }

    fn place(&self, block: u64) -> (usize, u16) {
        let hash = hash(block);
        let bucket = (u128::from(hash) * self.buckets.len() as u128) >> 64;
        let [low, high, ..] = hash.to_le_bytes();
        (bucket as usize, u16::from_le_bytes([low, high]).max(1))
    }

    /// Adds `block`, which is evicted at time `now` and was last used `idle` ticks before.
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

    /// Returns the ticks since the last use of `block`, if it is in the history.
    pub(super) fn away(&self, block: u64, now: u16) -> Option<u16> {
        let (bucket, fingerprint) = self.place(block);
        let found = self.buckets[bucket].iter().find(|entry| entry.fingerprint == fingerprint);
        found.map(|entry| now.wrapping_sub(entry.when))
    }

    /// Removes `block`. Returns whether it was in the history.
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

    /// Nearly all recently evicted blocks have their correct ages, also after the clock wrapped;
    /// much older ones are gone.
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
        // Sixteen fingerprints of 65,535 match any block.
        assert!(before < 80_000 * 2 * 16 / 65_535, "{before} of 80,000");

        assert!(history.forget(99_999) && !history.forget(99_999));
        assert_eq!(history.away(99_999, now), None);
    }
}
