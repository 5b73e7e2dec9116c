//! The estimated curve of a cache compared with the truth: stack distances of LRU, and every policy
//! at full size.

mod traces;

use std::collections::BTreeMap;

use braid_cache::curve::{Curve, Estimate};
use braid_level::CachePolicy;
use braid_seed::Rng;
use proptest::prelude::*;
use traces::{Cache, TRACES};

/// Returns for each read the number of other blocks read since the last read of its block: LRU with
/// more slots than that hits. A Fenwick tree holds the most recent reads.
fn stack_distances(trace: &[u64]) -> Vec<Option<u64>> {
    let mut last = BTreeMap::new();
    let mut tree = vec![0_i64; trace.len() + 1];
    let mut distances = Vec::new();
    for (now, block) in trace.iter().enumerate() {
        let sum = |tree: &[i64], mut place: usize| {
            let mut sum = 0;
            while place > 0 {
                sum += tree[place];
                place &= place - 1;
            }
            sum
        };
        let add = |tree: &mut [i64], mut place: usize, what: i64| {
            while place < tree.len() {
                tree[place] += what;
                place += place & place.wrapping_neg();
            }
        };
        let before = last.insert(*block, now);
        distances.push(before.map(|before| {
            add(&mut tree, before + 1, -1);
            (sum(&tree, now) - sum(&tree, before)) as u64
        }));
        add(&mut tree, now + 1, 1);
    }
    distances
}

fn curve_of(trace: &[u64], slots: u32, bytes: usize) -> Vec<Estimate> {
    let mut curve = Curve::new(slots, u64::MAX, bytes);
    trace.iter().for_each(|block| curve.read(*block));
    let report = curve.report();
    assert_eq!(report.reads, trace.len() as u64);
    report.estimates
}

fn misses(policy: CachePolicy, slots: u64, trace: &[u64]) -> f64 {
    let mut cache = Cache::new(policy, slots as u32);
    let misses = trace.iter().filter(|block| !cache.get(**block)).count();
    misses as f64 / trace.len() as f64
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let values: Vec<f64> = values.collect();
    values.iter().sum::<f64>() / values.len() as f64
}

#[test]
fn lru_is_as_its_stack_distances_say() {
    let (slots, requests) = (4096, 400_000);
    for (name, trace) in TRACES {
        let trace = trace(slots, requests, 1);
        let distances = stack_distances(&trace);
        let exact = |slots: u64| {
            let is_miss = |distance: &&Option<u64>| distance.is_none_or(|far| far >= slots);
            distances.iter().filter(is_miss).count() as f64 / trace.len() as f64
        };
        let estimates = curve_of(&trace, slots, 256 << 10);
        let lru = estimates.iter().filter(|one| one.policy == CachePolicy::Lru);
        let error = mean(lru.map(|one| (one.misses - exact(one.slots)).abs()));
        println!("{name}: {error:.4}");
        assert!(error <= 0.025, "{name}: {error}");
    }
}

/// With the memory of the curve in caches of 16 MiB, 64 MiB and 256 MiB: the mean error over the
/// sizes, and that the standard error covers it.
#[test]
fn every_policy_is_as_at_full_size() {
    const BOUNDS: [(usize, f64); 3] = [(64 << 10, 0.05), (256 << 10, 0.03), (1 << 20, 0.015)];
    let (slots, requests) = (4096, 300_000);
    for (name, trace) in TRACES {
        let trace = trace(slots, requests, 1);
        let mut truth = Vec::new();
        for (bytes, bound) in BOUNDS {
            let estimates = curve_of(&trace, slots, bytes);
            if truth.is_empty() {
                truth.extend(estimates.iter().map(|one| misses(one.policy, one.slots, &trace)));
            }
            for policy in CachePolicy::ALL {
                let pairs = || estimates.iter().zip(&truth).filter(|(one, _)| one.policy == policy);
                let error = mean(pairs().map(|(one, truth)| (one.misses - truth).abs()));
                let told = mean(pairs().map(|(one, _)| one.error));
                println!("{name}, {} KiB, {policy}: {error:.4}, told {told:.4}", bytes >> 10);
                assert!(
                    error <= bound && error <= 2.0 * told + 0.015,
                    "{name} {bytes} {policy}: {error}"
                );
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Read(u64),
    Write(u64),
    Forget(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..200_u64).prop_map(Step::Read),
        2 => (0..200_u64).prop_map(Step::Write),
        1 => (0..200_u64).prop_map(Step::Forget),
    ]
}

proptest! {
    /// If every block is sampled, the curve is exact, also after blocks were written and
    /// invalidated.
    #[test]
    fn a_curve_of_everything_is_exact(slots in 8..64_u32, steps in prop::collection::vec(step(), 1..600)) {
        let mut curve = Curve::new(slots, 1000, 8 << 20);
        let run = |step: &Step, curve: &mut Curve| match *step {
            Step::Read(block) => curve.read(block),
            Step::Write(block) => curve.write(block),
            Step::Forget(block) => curve.forget(block),
        };
        steps.iter().for_each(|step| run(step, &mut curve));
        let report = curve.report();
        let reads = steps.iter().filter(|step| matches!(step, Step::Read(_))).count();
        prop_assert_eq!(report.reads, reads as u64);
        prop_assert_eq!(report.estimates.len(), 8 * CachePolicy::ALL.len());
        for one in report.estimates.iter().filter(|_| reads > 0) {
            let mut cache = Cache::new(one.policy, one.slots as u32);
            let mut misses = 0;
            for step in &steps {
                match *step {
                    Step::Read(block) => misses += u32::from(!cache.get(block)),
                    Step::Write(block) if cache.blocks.directory.find(block).is_none() => {
                        cache.get(block);
                    }
                    Step::Write(_) => {}
                    Step::Forget(block) => cache.forget(block),
                }
            }
            let truth = f64::from(misses) / reads as f64;
            prop_assert!((one.misses - truth).abs() < 1e-6, "{:?} is {}", one, truth);
            prop_assert_eq!(one.sampled, reads as u64);
        }
    }

    /// For any configuration: the memory stays within its limit, the sizes end with the origin,
    /// ratios are between 0 and 1, and equal requests give equal curves.
    #[test]
    fn a_curve_keeps_its_bounds(slots in 1..20_000_u32, origin in 1..200_000_u64, bytes in 0..300_000_usize, seed: u64) {
        let new = || Curve::new(slots, origin, bytes);
        let (mut one, mut same, taken) = (new(), new(), new().bytes());
        let mut rng = Rng::new(seed);
        for _ in 0..5000 {
            let block = rng.below(origin);
            let draw = rng.below(10);
            for curve in [&mut one, &mut same] {
                match draw {
                    0 => curve.forget(block),
                    1 => curve.write(block),
                    _ => curve.read(block),
                }
            }
        }
        prop_assert!(taken <= bytes && one.bytes() == taken);
        prop_assert_eq!(one.report(), same.report());
        let report = one.report();
        let mut sizes: Vec<u64> = report.estimates.iter().map(|one| one.slots).collect();
        sizes.dedup();
        prop_assert!(sizes.is_sorted() && sizes.iter().all(|size| *size <= origin.max(slots.into())));
        prop_assert!(sizes.is_empty() || sizes.contains(&slots.into()));
        for one in report.estimates {
            prop_assert!((0.0..=1.0).contains(&one.misses) && (0.0..=1.0).contains(&one.error));
        }
    }
}

/// Old uses count less: a loop that never hit is followed by one block that always hits.
#[test]
fn old_reads_fade() {
    let slots = 64;
    let mut curve = Curve::new(slots, u64::MAX, 1 << 20);
    let at = |curve: &Curve| {
        let report = curve.report();
        let own = report.estimates.iter().find(|one| one.slots == u64::from(slots));
        own.map(|one| one.misses).expect("a curve has the cache's own size")
    };
    (0..20_000_u64).for_each(|index| curve.read(index % 1000));
    assert!(at(&curve) > 0.9, "{:?}", curve.report());
    (0..200_000).for_each(|_| curve.read(0));
    assert!(at(&curve) < 0.01, "{:?}", curve.report());
}
