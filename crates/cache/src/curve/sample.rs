//! Miniature caches of one size: one for each policy, on the same sample of blocks.

use braid_level::CachePolicy;

use super::estimate::{GROUPS, Groups, group_of, ratio};
use crate::directory::Directory;
use crate::policy::{self, Occupants, Policy};
use crate::slot::Slot;

/// Estimated misses of a policy at a size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The policy.
    pub policy: CachePolicy,
    /// Size in blocks.
    pub slots: u64,
    /// Share of reads of blocks that would miss, 0 to 1.
    pub misses: f64,
    /// Standard error of `misses`.
    pub error: f64,
    /// The cache would be full. If not, a larger one would not hit more.
    pub is_full: bool,
    /// Reads of the sample.
    pub sampled: u64,
}

/// Miniature caches of one size.
pub(super) struct Sample {
    /// Slots of the simulated cache.
    slots: u64,
    /// Sampled share of the blocks, out of 2^32.
    threshold: u32,
    /// Reads of the sample.
    reads: Groups,
    /// One cache per policy, in the order of [`CachePolicy::ALL`].
    caches: [Miniature; CachePolicy::ALL.len()],
}

/// Returns the bits of a hash that select the sample. The directory uses other bits.
#[inline]
pub(super) fn drawn(hash: u64) -> u32 {
    let [_, _, a, b, c, d, ..] = hash.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

struct Miniature {
    directory: Directory,
    policy: Box<dyn Policy>,
    misses: Groups,
    is_full: bool,
}

impl Occupants for Directory {
    fn block_of(&self, slot: Slot) -> u64 {
        Directory::block_of(self, slot)
    }

    fn can_evict(&self, _slot: Slot) -> bool {
        true
    }
}

impl Sample {
    /// Creates the miniature caches for a cache of `slots`, with up to `most` slots each.
    pub(super) fn new(slots: u64, most: u32) -> Sample {
        let threshold = (u64::from(most) << 32).checked_div(slots).unwrap_or(u64::MAX);
        let threshold = u32::try_from(threshold).unwrap_or(u32::MAX);
        let own = u32::try_from(slots).unwrap_or(u32::MAX).clamp(1, most);
        let caches = CachePolicy::ALL.map(|name| Miniature {
            directory: Directory::new(own),
            policy: policy::policy(name, own),
            misses: [0; GROUPS],
            is_full: false,
        });
        Sample { slots, threshold, reads: [0; GROUPS], caches }
    }

    pub(super) fn threshold(&self) -> u32 {
        self.threshold
    }

    pub(super) fn bytes(&self) -> usize {
        let own = |cache: &Miniature| cache.directory.bytes() + cache.policy.bytes();
        size_of::<Sample>() + self.caches.iter().map(own).sum::<usize>()
    }

    /// Counts a read of a sampled block.
    pub(super) fn read(&mut self, block: u64, hash: u64) {
        let group = group_of(hash);
        self.reads[group] += 1;
        for cache in &mut self.caches {
            match cache.directory.find(block) {
                Some(slot) => cache.policy.touch(slot),
                None => {
                    cache.misses[group] += 1;
                    cache.admit(block);
                }
            }
        }
    }

    /// Counts a write of a sampled block. Writing a cached block is not a use.
    pub(super) fn write(&mut self, block: u64) {
        for cache in &mut self.caches {
            if cache.directory.find(block).is_none() {
                cache.admit(block);
            }
        }
    }

    pub(super) fn forget(&mut self, block: u64) {
        for cache in &mut self.caches {
            if let Some(slot) = cache.directory.find(block) {
                cache.policy.forget(slot);
                cache.directory.remove(slot);
            }
        }
    }

    pub(super) fn halve(&mut self) {
        let misses = self.caches.iter_mut().map(|cache| &mut cache.misses);
        misses.chain([&mut self.reads]).flatten().for_each(|count| *count /= 2);
    }

    /// Returns the estimate for `policy`, from `reads` reads of blocks in all.
    pub(super) fn estimate(&self, policy: CachePolicy, reads: u64) -> Estimate {
        let index = CachePolicy::ALL.iter().position(|name| *name == policy).unwrap_or(0);
        let cache = &self.caches[index];
        let expected = reads as f64 * f64::from(self.threshold) / (1_u64 << 32) as f64;
        let (misses, error) = ratio(&self.reads, &cache.misses, expected);
        let sampled = self.reads.iter().map(|count| u64::from(*count)).sum();
        Estimate { policy, slots: self.slots, misses, error, is_full: cache.is_full, sampled }
    }
}

impl Miniature {
    fn admit(&mut self, block: u64) {
        if self.directory.used() == self.directory.slots() {
            self.is_full = true;
            let Some(gone) = self.policy.evict(block, &self.directory) else { return };
            self.directory.remove(gone);
        }
        if let Some(slot) = self.directory.insert(block) {
            self.policy.admit(slot, block);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directory::hash;

    /// The sampled share of the blocks equals the share of the slots.
    #[test]
    fn a_sample_has_its_share() {
        for (slots, most) in [(1_u64 << 20, 1024_u32), (50_000, 96), (100, 4096)] {
            let sample = Sample::new(slots, most);
            let share = f64::from(most.min(slots as u32)) / slots as f64;
            let is_in = |block: &u64| drawn(hash(*block)) < sample.threshold();
            let count = (0..1_000_000_u64).filter(is_in).count() as f64;
            let expected = share * 1e6;
            assert!((count - expected).abs() <= 5.0 * expected.sqrt(), "{count} of {expected}");
        }
    }
}
