//! Policies: what they may never do, whatever is asked, and how often they hit.

use std::cell::RefCell;
use std::collections::BTreeSet;

use braid_cache::policy::{Occupants, Policy, policy};
use braid_cache::{Directory, Slot};
use braid_level::CachePolicy;
use braid_seed::Rng;
use proptest::prelude::*;

/// Blocks in slots, as a cache has them, without data.
struct Blocks {
    directory: Directory,
    pinned: BTreeSet<u64>,
}

impl Occupants for Blocks {
    fn block_of(&self, slot: Slot) -> u64 {
        self.directory.block_of(slot)
    }

    fn may_leave(&self, slot: Slot) -> bool {
        !self.pinned.contains(&self.directory.block_of(slot))
    }
}

struct Cache {
    blocks: Blocks,
    policy: Box<dyn Policy>,
}

impl Cache {
    fn new(name: CachePolicy, slots: u32) -> Cache {
        let blocks = Blocks { directory: Directory::new(slots), pinned: BTreeSet::new() };
        Cache { blocks, policy: policy(name, slots) }
    }

    /// Uses `block`; answers whether it was there.
    fn get(&mut self, block: u64) -> bool {
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

    fn forget(&mut self, block: u64) {
        if let Some(slot) = self.blocks.directory.find(block) {
            self.policy.forget(slot);
            self.blocks.directory.remove(slot);
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Get(u64),
    Forget(u64),
    Pin(u64),
    Unpin,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..40_u64).prop_map(Step::Get),
        1 => (0..40_u64).prop_map(Step::Forget),
        1 => (0..40_u64).prop_map(Step::Pin),
        1 => Just(Step::Unpin),
    ]
}

proptest! {
    /// Whoever may leave makes room, whoever may not stays, and nothing is counted twice.
    #[test]
    fn room_is_made_by_who_may_leave(slots in 1..12_u32, steps in prop::collection::vec(step(), 1..300)) {
        for name in CachePolicy::ALL {
            let mut cache = Cache::new(name, slots);
            let mut there = BTreeSet::new();
            for step in &steps {
                match *step {
                    Step::Get(block) => {
                        let before: BTreeSet<u64> = there.clone();
                        let hit = cache.get(block);
                        prop_assert_eq!(hit, before.contains(&block), "{}", name.name());
                        let directory = &cache.blocks.directory;
                        there = directory.iter().map(|slot| directory.block_of(slot)).collect();
                        let left: Vec<_> = before.difference(&there).collect();
                        prop_assert!(left.len() <= 1 && there.len() <= slots as usize);
                        let all_pinned = before.iter().all(|one| cache.blocks.pinned.contains(one));
                        let is_full = before.len() == slots as usize;
                        prop_assert!(there.contains(&block) || is_full && all_pinned, "{}", name.name());
                    }
                    Step::Forget(block) => {
                        cache.forget(block);
                        there.remove(&block);
                    }
                    Step::Pin(block) => drop(cache.blocks.pinned.insert(block)),
                    Step::Unpin => cache.blocks.pinned.clear(),
                }
            }
        }
    }

    /// Of LRU it is known who leaves.
    #[test]
    fn lru_is_lru(slots in 1..8_u32, blocks in prop::collection::vec(0..20_u64, 1..200)) {
        let mut cache = Cache::new(CachePolicy::Lru, slots);
        let mut order: Vec<u64> = Vec::new();
        for block in blocks {
            prop_assert_eq!(cache.get(block), order.contains(&block));
            order.retain(|one| *one != block);
            order.push(block);
            if order.len() > slots as usize {
                order.remove(0);
            }
        }
    }
}

/// Draws from 0 to `items`, the n-th with a probability like n to the power of -`skew`.
struct Zipf {
    sums: Vec<f64>,
    rng: RefCell<Rng>,
}

impl Zipf {
    fn new(items: u64, skew: f64, seed: u64) -> Zipf {
        let mut sum = 0.0;
        let sums = (1..=items).map(|rank| {
            sum += (rank as f64).powf(-skew);
            sum
        });
        Zipf { sums: sums.collect(), rng: RefCell::new(Rng::new(seed)) }
    }

    fn draw(&self) -> u64 {
        let all = self.sums.last().copied().unwrap_or(0.0);
        let at = self.rng.borrow_mut().below(1 << 53) as f64 / (1_u64 << 53) as f64 * all;
        self.sums.partition_point(|sum| *sum < at) as u64
    }
}

const ITEMS: u64 = 50_000;
const SLOTS: u32 = 5_000;

fn zipf(requests: usize) -> Vec<u64> {
    let zipf = Zipf::new(ITEMS, 0.9, 1);
    (0..requests).map(|_| zipf.draw()).collect()
}

/// Every 20,000 requests a scan over as many blocks as the cache holds, none of them seen before.
fn zipf_with_scans(requests: usize) -> Vec<u64> {
    let zipf = Zipf::new(ITEMS, 0.9, 2);
    let mut next = 1 << 40;
    let mut trace = Vec::new();
    while trace.len() < requests {
        trace.extend((0..20_000).map(|_| zipf.draw()));
        trace.extend(next..next + u64::from(SLOTS));
        next += u64::from(SLOTS);
    }
    trace
}

/// A loop that is a fifth longer than the cache.
fn looping(requests: usize) -> Vec<u64> {
    let length = u64::from(SLOTS) * 6 / 5;
    (0..requests as u64).map(|index| index % length).collect()
}

fn hit_ratio(name: CachePolicy, trace: &[u64]) -> f64 {
    let mut cache = Cache::new(name, SLOTS);
    let hits = trace.iter().filter(|block| cache.get(**block)).count();
    hits as f64 / trace.len() as f64
}

#[test]
fn s3_fifo_keeps_what_is_popular_through_scans() {
    let traces = [zipf(400_000), zipf_with_scans(400_000), looping(400_000)];
    let ratios: Vec<Vec<f64>> = traces
        .iter()
        .map(|trace| CachePolicy::ALL.iter().map(|name| hit_ratio(*name, trace)).collect())
        .collect();
    println!("s3-fifo, sieve, arc, lru: {ratios:.3?}");
    let [zipf, scans, looping] = &ratios[..] else { panic!("three traces") };
    assert!(zipf[0] > zipf[3], "{ratios:?}");
    assert!(scans[0] > scans[3] + 0.05, "{ratios:?}");
    assert!(looping[0] > looping[3], "{ratios:?}");
}
