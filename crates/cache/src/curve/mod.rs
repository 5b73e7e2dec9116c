//! What the cache would hit with another policy or another size: miniature caches beside it, fed with a
//! sample of its blocks.
//!
//! ```text
//!   block ──hash──▶ below the largest threshold? ── no ──▶ counted, nothing else       nearly all
//!                             │ yes
//!                             ▼
//!      size/8   size/4   size/2   size   …   8 × size      a threshold each: the smaller the size, the
//!     ┌──────┐ ┌──────┐ ┌──────┐                           more of its blocks are looked at
//!     │s3-fifo, sieve, arc, lru │   …                      each with as many slots as of its size are
//!     └──────┘ └──────┘ └──────┘                           sampled, whatever the size: at most `MOST`
//! ```
//!
//! A block is sampled by its hash, so all of its uses are or none (Waldspurger et al., "Efficient MRC
//! construction with SHARDS", FAST 2015), and a cache of a share of the slots, run on the same share of
//! the blocks, misses as often as the whole (Waldspurger et al., "Cache modeling and optimization using
//! miniature simulations", USENIX ATC 2017). They are the crate's own policies, so a curve is of what
//! would be served. How counts of a sample become a ratio: [`estimate`].
//!
//! Invariants
//! * Its memory is taken when it is made, and is no more than it was given.
//! * Nothing of it depends on a clock or on chance.
//!
//! Deliberately absent: sectors. A block counts as held as a whole, as if all requests were of blocks.

mod estimate;
mod sample;

pub use sample::Estimate;

use braid_level::CachePolicy;

use crate::directory::hash;
use sample::{Sample, drawn};

/// The sizes, in eighths of the cache's own.
const EIGHTHS: [u64; 8] = [1, 2, 4, 8, 12, 16, 32, 64];
/// Slots of a miniature cache, at most and at least: with fewer there is no curve.
const MOST: u32 = 1024;
const LEAST: u32 = 24;
/// After so many uses of blocks for each slot of the cache, all counts are halved: what was long ago
/// counts for less, and no count grows for ever.
const HALF_LIFE: u64 = 256;

/// A miss-ratio curve of every policy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Reads of blocks that it is of: all that were, until their counts were halved.
    pub reads: u64,
    /// From the smallest size to the largest; nothing if there is too little memory for a curve.
    pub estimates: Vec<Estimate>,
}

/// Miniature caches of several sizes.
pub struct Curve {
    /// Of the sample that has most; 0 if there is no curve.
    threshold: u32,
    /// Reads of blocks, of which all counts are.
    reads: u64,
    half_life: u64,
    samples: Vec<Sample>,
}

impl Curve {
    /// The curve of a cache of `slots` in front of an origin of so many blocks, within `bytes` of memory.
    pub fn new(slots: u32, origin: u64, bytes: usize) -> Curve {
        let slots = u64::from(slots);
        let mut sizes: Vec<u64> = EIGHTHS.iter().map(|eighths| slots * eighths / 8).collect();
        if let Some(cut) = sizes.iter().position(|size| *size > origin.max(slots)) {
            // The last is all that there is.
            sizes.truncate(cut);
            sizes.push(origin.max(slots));
            sizes.dedup();
        }
        // Most of a small cache's time went into building samples that were too large.
        let is_possible = sizes.len() * size_of::<Sample>() <= bytes;
        let fewer = |most: &u32| Some(most / 4 * 3).filter(|most| *most >= LEAST);
        let samples = std::iter::successors(is_possible.then_some(MOST), fewer)
            .map(|most| sizes.iter().map(|size| Sample::new(*size, most)).collect())
            .find(|samples: &Vec<Sample>| bytes_of(samples) <= bytes)
            .unwrap_or_default();
        let threshold = samples.iter().map(Sample::threshold).max().unwrap_or(0);
        Curve { threshold, reads: 0, half_life: slots * HALF_LIFE, samples }
    }

    /// Bytes that it takes.
    pub fn bytes(&self) -> usize {
        bytes_of(&self.samples)
    }

    /// `block` is read, and held from now on.
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

    /// `block` is written, and held from now on.
    #[inline]
    pub fn write(&mut self, block: u64) {
        let hash = hash(block);
        if drawn(hash) < self.threshold {
            self.each(hash, |sample| sample.write(block));
        }
    }

    /// `block` is not held any more.
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

    /// What is known by now.
    pub fn report(&self) -> Report {
        let of_size =
            |sample: &Sample| CachePolicy::ALL.map(|policy| sample.estimate(policy, self.reads));
        Report { reads: self.reads, estimates: self.samples.iter().flat_map(of_size).collect() }
    }
}

fn bytes_of(samples: &[Sample]) -> usize {
    samples.iter().map(Sample::bytes).sum()
}
