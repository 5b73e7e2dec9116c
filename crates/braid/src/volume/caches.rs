//! What a volume says of its caches: how they are, and what they would be if they were others.

use braid_cache::Cache;
use braid_cache::curve::Estimate;
use braid_uring::Remote;

use super::shard;
use crate::control::{CacheCurve, CacheStatus, CurvePoint};

/// The caches of the shard of `remote`, if it answers: counted at one moment, so that they add up.
pub(super) fn all(remote: &Remote) -> Vec<CacheStatus> {
    shard::ask(remote, |local| local.caches.iter().map(status_of).collect()).unwrap_or_default()
}

/// Their curves; none if the shard does not answer.
pub(super) fn curves(remote: &Remote) -> Option<Vec<CacheCurve>> {
    shard::ask(remote, |local| local.caches.iter().map(curve_of).collect())
}

fn curve_of(named: &(String, Cache)) -> CacheCurve {
    let (report, block) = (named.1.curve(), named.1.config().block);
    let point = |one: &Estimate| CurvePoint {
        policy: one.policy.name().to_owned(),
        size_bytes: one.slots * block,
        miss_ppm: ppm(one.misses),
        error_ppm: ppm(one.error),
        filled: one.is_full,
        sampled_reads: one.sampled,
    };
    let points = report.estimates.iter().map(point).collect();
    CacheCurve { cache: status_of(named), block_reads: report.reads, points }
}

/// Of a million, a share from 0 to 1.
fn ppm(share: f64) -> u64 {
    (share * 1e6).round() as u64
}

fn status_of((text, cache): &(String, Cache)) -> CacheStatus {
    let (counters, config) = (cache.counters(), cache.config());
    let (used, all) = cache.used_blocks();
    let mean = counters.mean_origin_read();
    let micros = |seconds: f64| (seconds * 1e6) as u64;
    CacheStatus {
        cache: text.clone(),
        mode: config.mode.name().to_owned(),
        policy: config.policy.name().to_owned(),
        block_bytes: config.block,
        size_bytes: u64::from(all) * config.block,
        used_bytes: u64::from(used) * config.block,
        index_bytes: cache.index_bytes(),
        reads: counters.reads,
        writes: counters.writes,
        cache_hits: counters.cache_hits,
        cache_misses: counters.cache_misses,
        replacement: counters.replacement,
        write_replacement: counters.write_replacement,
        read_invalidates: 0,
        write_invalidates: counters.write_invalidates,
        uncached_reads: counters.uncached_reads,
        uncached_writes: counters.uncached_writes,
        disk_reads: counters.disk_reads,
        disk_writes: counters.disk_writes,
        cache_reads: counters.cache_reads,
        cache_writes: counters.cache_writes,
        bytes_read: counters.bytes_read,
        bytes_from_ram: counters.bytes_from_ram,
        bytes_from_origin: counters.bytes_from_origin,
        bytes_written: counters.bytes_written,
        origin_read_us: mean.map(|mean| micros(mean.as_secs_f64())),
        saved_us: mean.map_or(0, |mean| micros(mean.as_secs_f64() * counters.cache_hits as f64)),
    }
}
