//! Estimates the hits of other policies and sizes: miniature caches on a sample of the blocks.
//!
//! ```text
//!   block ──hash──▶ below the largest threshold? ── no ──▶ only counted               nearly all
//!                             │ yes
//!                             ▼
//!      size/8   size/4   size/2   size   …   8 × size      one threshold each: the smaller the size, the
//!     ┌──────┐ ┌──────┐ ┌──────┐                           more of its blocks are sampled
//!     │  s3-fifo, lru   │   …                              each with the same share of slots as of blocks,
//!     └──────┘ └──────┘ └──────┘                           at most `MOST` slots
//! ```
//!
//! A block is sampled by its hash, so all or none of its uses are in the sample (Waldspurger et
//! al., "Efficient MRC construction with SHARDS", FAST 2015). A cache with a share of the slots, on
//! the same share of the blocks, has the miss ratio of the whole cache (Waldspurger et al., "Cache
//! modeling and optimization using miniature simulations", USENIX ATC 2017). The policies are those
//! of the crate. [`estimate`] turns counts into ratios.
//!
//! Invariants
//! * The memory is allocated at the start, within the given limit.
//! * The result depends neither on a clock nor on random numbers.
//!
//! Deliberately absent: sectors. A block is cached as a whole or not at all.

mod estimate;
mod sample;

pub use sample::Estimate;

use braid_level::CachePolicy;

use crate::directory::hash;
use sample::{Sample, drawn};

/// Simulated sizes in eighths of the cache's size.
const EIGHTHS: [u64; 8] = [1, 2, 4, 8, 12, 16, 32, 64];
/// Maximum and minimum number of slots of a miniature cache; with fewer there is no curve.
const MOST: u32 = 1024;
const LEAST: u32 = 24;
/// All counts are halved after this many uses per slot of the cache, so that old uses count less
/// and counts stay finite.
const HALF_LIFE: u64 = 256;

/// A miss-ratio curve for every policy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Reads of blocks behind the curve, until their counts were halved.
    pub reads: u64,
    /// Estimates from the smallest size to the largest; empty if there is too little memory.
    pub estimates: Vec<Estimate>,
}

/// Miniature caches of several sizes.
pub struct Curve {
    /// Threshold of the largest sample; 0 without a curve.
    threshold: u32,
    /// Reads of blocks.
    reads: u64,
    half_life: u64,
    samples: Vec<Sample>,
}

impl Curve {
    /// Creates the curve of a cache of `slots` in front of an origin of `origin` blocks, within
    /// `bytes` of memory.
    pub fn new(slots: u32, origin: u64, bytes: usize) -> Curve {
        let slots = u64::from(slots);
        let mut sizes: Vec<u64> = EIGHTHS.iter().map(|eighths| slots * eighths / 8).collect();
        if let Some(cut) = sizes.iter().position(|size| *size > origin.max(slots)) {
            // The last size holds the whole origin.
            sizes.truncate(cut);
            sizes.push(origin.max(slots));
            sizes.dedup();
        }
        // Large samples dominated the time of small caches.
        let is_possible = sizes.len() * size_of::<Sample>() <= bytes;
        let fewer = |most: &u32| Some(most / 4 * 3).filter(|most| *most >= LEAST);
        let samples = std::iter::successors(is_possible.then_some(MOST), fewer)
            .map(|most| sizes.iter().map(|size| Sample::new(*size, most)).collect())
            .find(|samples: &Vec<Sample>| bytes_of(samples) <= bytes)
            .unwrap_or_default();
        let threshold = samples.iter().map(Sample::threshold).max().unwrap_or(0);
        Curve { threshold, reads: 0, half_life: slots * HALF_LIFE, samples }
    }

    /// Returns its memory in bytes.
    pub fn bytes(&self) -> usize {
        bytes_of(&self.samples)
    }

    /// Counts a read of `block`, which is cached afterwards.
    #[inline]
    pub fn read(&mut self, block: u64) {
        self.reads += 1;
        let hash = hash(block);
        if drawn(hash) < self.threshold {
            self.sampled_read(block, hash);
        }
    }

    #[cold]
    fn sampled_read(&mut self, block: u64, hash: u64) {
        self.each(hash, |sample| sample.read(block, hash));
        if self.reads >= self.half_life {
            self.reads /= 2;
            self.samples.iter_mut().for_each(Sample::halve);
        }
    }

    /// Counts a write of `block`, which is cached afterwards.
    #[inline]
    pub fn write(&mut self, block: u64) {
        let hash = hash(block);
        if drawn(hash) < self.threshold {
            self.each(hash, |sample| sample.write(block));
        }
    }

    /// Notes that `block` is no longer cached.
    #[inline]
    pub fn forget(&mut self, block: u64) {
        let hash = hash(block);
        if drawn(hash) < self.threshold {
            self.each(hash, |sample| sample.forget(block));
        }
    }

    fn each(&mut self, hash: u64, f: impl FnMut(&mut Sample)) {
        let drawn = drawn(hash);
        self.samples.iter_mut().filter(|sample| drawn < sample.threshold()).for_each(f);
    }

    /// Returns the current estimates.
    pub fn report(&self) -> Report {
        let of_size =
            |sample: &Sample| CachePolicy::ALL.map(|policy| sample.estimate(policy, self.reads));
        Report { reads: self.reads, estimates: self.samples.iter().flat_map(of_size).collect() }
    }
}

fn bytes_of(samples: &[Sample]) -> usize {
    samples.iter().map(Sample::bytes).sum()
}
