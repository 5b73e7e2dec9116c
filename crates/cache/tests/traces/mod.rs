//! Requests as they come to caches, and a cache without data that they are given to.

#![allow(dead_code, unreachable_pub)] // Each test has its part of it.

use std::collections::BTreeSet;

use braid_cache::policy::{Occupants, Policy, policy};
use braid_cache::{Directory, Slot};
use braid_level::CachePolicy;
use braid_seed::{Rng, Zipf};

/// Blocks in slots, as a cache has them, without data.
pub struct Blocks {
    pub directory: Directory,
    pub pinned: BTreeSet<u64>,
}

impl Occupants for Blocks {
    fn block_of(&self, slot: Slot) -> u64 {
        self.directory.block_of(slot)
    }

    fn may_leave(&self, slot: Slot) -> bool {
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

    /// Uses `block`; answers whether it was there.
    pub fn get(&mut self, block: u64) -> bool {
        if let Some(slot) = self.blocks.directory.find(block) {
            self.policy.touch(slot);
            return true;
        }
        if self.blocks.directory.used() == self.blocks.directory.slots() {
            let Some(slot) = self.policy.evict(block, &self.blocks) else { return false };
            assert!(self.blocks.may_leave(slot), "who was pinned left");
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

/// Blocks that are read, one after the other: of about ten times as many as `slots`.
pub type Trace = fn(slots: u32, requests: usize, seed: u64) -> Vec<u64>;

pub const TRACES: [(&str, Trace); 4] =
    [("zipf", zipf), ("scans", zipf_with_scans), ("loop", looping), ("mixed", mixed)];

/// The one that punishes who keeps to what was popular. A curve's samples are of too few blocks for it:
/// they are off by more than they tell.
pub const MOVING: (&str, Trace) = ("moving", moving);

/// Ten times as many blocks as slots, by Zipf 0.9.
pub fn zipf(slots: u32, requests: usize, seed: u64) -> Vec<u64> {
    let (zipf, mut rng) = (Zipf::new(u64::from(slots) * 10, 0.9), Rng::new(seed));
    (0..requests).map(|_| zipf.draw(&mut rng)).collect()
}

/// After every four requests a slot a scan over as many blocks as there are slots, none of them seen
/// before.
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

/// Of ten requests six by Zipf 0.9, three of a loop over one and a half times the slots, and one of
/// anything.
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

/// By Zipf 0.9, and after every ten requests the next block is the most popular one.
pub fn moving(slots: u32, requests: usize, seed: u64) -> Vec<u64> {
    let (zipf, mut rng) = (Zipf::new(u64::from(slots) * 10, 0.9), Rng::new(seed));
    (0..requests as u64).map(|index| zipf.draw(&mut rng) + index / 10).collect()
}
