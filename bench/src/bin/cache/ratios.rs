//! The content of caches: hit ratios of policies at equal size, and their memory beside the data.

#[path = "../../../../crates/cache/tests/traces/mod.rs"]
mod traces;

use std::io;

use braid_bench::args::Args;
use braid_bench::stats::{Estimate, Target, median};
use braid_bench::table::Table;
use braid_bench::{Error, Result};
use braid_cache::{Cache, Config};
use braid_device::Ram;
use braid_engine::Dev;
use braid_level::{CacheMode, CachePolicy};

use crate::add;
use traces::{MOVING, TRACES, Trace};

const SLOTS: u32 = 5_000;
const REQUESTS: usize = 400_000;
/// Traces of each kind, each from a seed of its own.
const SEEDS: u64 = 5;

/// Hits of a hundred reads.
type Hits = fn(trace: &[u64]) -> f64;

pub(crate) fn run(args: &Args, table: &mut Table) -> Result<()> {
    for (name, trace) in TRACES.into_iter().chain([MOVING]) {
        for (peer, beside) in [("moka", moka as Hits), ("quick_cache", quick), ("lru", lru)] {
            let points = match (name, peer) {
                ("scans", "lru") => Target::AtLeast(5.0),
                (_, "lru") | ("moving", _) => Target::None,
                _ => Target::AtLeast(0.0),
            };
            let row = format!("hits, {name}: s3-fifo − {peer}, points");
            if args.wants(&row) {
                compare(table, &row, trace, beside, points);
            }
        }
    }
    for policy in CachePolicy::ALL {
        let row = format!("index, {policy}: % of the data");
        if args.wants(&row) {
            add_index(table, &row, policy)?;
        }
    }
    Ok(())
}

fn compare(table: &mut Table, name: &str, trace: Trace, beside: Hits, target: Target) {
    let traces = (1..=SEEDS).map(|seed| trace(SLOTS, REQUESTS, seed));
    let pairs: Vec<(f64, f64)> = traces.map(|trace| (s3_fifo(&trace), beside(&trace))).collect();
    let (mut ours, mut theirs): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let apart: Vec<f64> = pairs.iter().map(|(ours, theirs)| ours - theirs).collect();
    let shown = [&mut ours, &mut theirs].map(|hits| format!("{:.1} %", median(hits)));
    add(table, name, shown, Estimate::of(&apart), target);
}

fn hits(trace: &[u64], mut is_hit: impl FnMut(u64) -> bool) -> f64 {
    let hits = trace.iter().filter(|block| is_hit(**block)).count();
    hits as f64 * 100.0 / trace.len() as f64
}

fn s3_fifo(trace: &[u64]) -> f64 {
    let mut cache = traces::Cache::new(CachePolicy::S3Fifo, SLOTS);
    hits(trace, |block| cache.get(block))
}

fn lru(trace: &[u64]) -> f64 {
    let mut cache = traces::Cache::new(CachePolicy::Lru, SLOTS);
    hits(trace, |block| cache.get(block))
}

fn moka(trace: &[u64]) -> f64 {
    let cache = moka::sync::Cache::<u64, ()>::new(SLOTS.into());
    hits(trace, |block| {
        let is_hit = cache.get(&block).is_some();
        if !is_hit {
            cache.insert(block, ());
        }
        // What it puts off: else it holds more than it was given.
        cache.run_pending_tasks();
        is_hit
    })
}

fn quick(trace: &[u64]) -> f64 {
    let mut cache = quick_cache::unsync::Cache::<u64, ()>::new(SLOTS as usize);
    hits(trace, |block| {
        let is_hit = cache.get(&block).is_some();
        if !is_hit {
            cache.insert(block, ());
        }
        is_hit
    })
}

fn add_index(table: &mut Table, name: &str, policy: CachePolicy) -> Result<()> {
    let failed = || Error::io("memory of a cache");
    let origin = Ram::new(1 << 20).map_err(io::Error::from).map_err(failed())?;
    let mut shares = Vec::new();
    for size in [16 << 20, 56 << 20, 64 << 20, (64 << 20) + 4096] {
        let (mode, block) = (CacheMode::WriteThrough, 4096);
        let config = Config { size, block, mode, policy, sequential_cutoff: None };
        let cache = Cache::new(Dev::new(origin.device()), config).map_err(failed())?;
        shares.push(cache.index_bytes() as f64 * 100.0 / size as f64);
    }
    let most = shares.iter().copied().fold(0.0, f64::max);
    let shown = [format!("{most:.3} %"), String::new()];
    add(table, name, shown, Estimate::of(&[most]), Target::AtMost(1.5));
    Ok(())
}
