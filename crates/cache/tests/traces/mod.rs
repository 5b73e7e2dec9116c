//! Traces of requests, and a cache without data to run them on.

#![allow(dead_code, unreachable_pub)] // Each test has its part of it.

use std::collections::BTreeSet;

use braid_cache::policy::{Occupants, Policy, policy};
use braid_cache::{Directory, Slot};
use braid_level::CachePolicy;
use braid_seed::{Rng, Zipf};

/// Blocks in slots, as in a cache, without data.
pub struct Blocks {
    pub directory: Directory,
    pub pinned: BTreeSet<u64>,
}

impl Occupants for Blocks {
    fn block_of(&self, slot: Slot) -> u64 {
        self.directory.block_of(slot)
    }

    fn can_evict(&self, slot: Slot) -> bool {
        self.pinned.is_empty() || !self.pinned.contains(&self.directory.block_of(slot))
    }
}

pub struct Cache {
    pub blocks: Blocks,
    policy: Box<dyn Policy>,
}

impl Cache {
    pub fn new(name: CachePolicy, slots: u32) -> Cache {
        let blocks = Blocks { directory: Directory::new(slots), pinned: BTreeSet::new() };
        Cache { blocks, policy: policy(name, slots) }
    }

    /// Uses `block`. Returns whether it was cached.
    pub fn get(&mut self, block: u64) -> bool {
        if let Some(slot) = self.blocks.directory.find(block) {
            self.policy.touch(slot);
            return true;
        }
        if self.blocks.directory.used() == self.blocks.directory.slots() {
            let Some(slot) = self.policy.evict(block, &self.blocks) else { return false };
            assert!(self.blocks.can_evict(slot), "a pinned block was evicted");
            self.blocks.directory.remove(slot);
        }
        let slot = self.blocks.directory.insert(block).expect("room was made");
        self.policy.admit(slot, block);
        false
    }

    pub fn forget(&mut self, block: u64) {
        if let Some(slot) = self.blocks.directory.find(block) {
            self.policy.forget(slot);
            self.blocks.directory.remove(slot);
        }
    }
}

/// Generates reads of about ten times as many blocks as `slots`.
pub type Trace = fn(slots: u32, requests: usize, seed: u64) -> Vec<u64>;

pub const TRACES: [(&str, Trace); 4] =
    [("zipf", zipf), ("scans", zipf_with_scans), ("loop", looping), ("mixed", mixed)];

/// Penalizes policies that keep formerly popular blocks. The samples of a curve have too few blocks
/// for this trace: their error exceeds their standard error.
pub const MOVING: (&str, Trace) = ("moving", moving);

/// Ten times as many blocks as slots, with Zipf 0.9.
pub fn zipf(slots: u32, requests: usize, seed: u64) -> Vec<u64> {
    let (zipf, mut rng) = (Zipf::new(u64::from(slots) * 10, 0.9), Rng::new(seed));
    (0..requests).map(|_| zipf.draw(&mut rng)).collect()
}

/// Zipf 0.9; after four requests per slot, a scan over as many new blocks as there are slots.
pub fn zipf_with_scans(slots: u32, requests: usize, seed: u64) -> Vec<u64> {
    let (zipf, mut rng) = (Zipf::new(u64::from(slots) * 10, 0.9), Rng::new(seed));
    let mut next = 1 << 40;
    let mut trace = Vec::new();
    while trace.len() < requests {
        trace.extend((0..slots * 4).map(|_| zipf.draw(&mut rng)));
        trace.extend(next..next + u64::from(slots));
        next += u64::from(slots);
    }
    trace
}

/// A loop that is a fifth longer than the cache.
pub fn looping(slots: u32, requests: usize, _seed: u64) -> Vec<u64> {
    let length = u64::from(slots) * 6 / 5;
    (0..requests as u64).map(|index| index % length).collect()
}

/// Six of ten requests follow Zipf 0.9, three a loop over one and a half times the slots, and one
/// is random.
pub fn mixed(slots: u32, requests: usize, seed: u64) -> Vec<u64> {
    let slots = u64::from(slots);
    let (zipf, mut rng) = (Zipf::new(slots * 10, 0.9), Rng::new(seed));
    let mut place = 0;
    let mut draw = || match rng.below(10) {
        0..6 => zipf.draw(&mut rng),
        6..9 => {
            place = (place + 1) % (slots * 3 / 2);
            (1 << 40) + place
        }
        _ => rng.below(slots * 10),
    };
    (0..requests).map(|_| draw()).collect()
}

/// Zipf 0.9; after every ten requests, another block becomes the most popular.
pub fn moving(slots: u32, requests: usize, seed: u64) -> Vec<u64> {
    let (zipf, mut rng) = (Zipf::new(u64::from(slots) * 10, 0.9), Rng::new(seed));
    (0..requests as u64).map(|index| zipf.draw(&mut rng) + index / 10).collect()
}
