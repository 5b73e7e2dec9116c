//! The status of a volume's caches, and estimates for other sizes and policies.

use std::time::Duration;

use braid_cache::curve::Estimate;
use braid_cache::{Phase, Standing};
use braid_uring::Remote;

use super::build::AtCache;
use super::shard;
use crate::control::{
    AsideFigures, AsideStatus, CacheCurve, CacheStatus, CurvePoint, WriteBackStatus,
};

/// The caches of the shard of `remote`, if it answers: counted at one moment, so that they add up.
pub(super) fn all(remote: &Remote) -> Vec<CacheStatus> {
    shard::ask(remote, |_, local| local.caches.borrow().iter().map(status_of).collect())
        .unwrap_or_default()
}

/// Their curves; none if the shard does not answer.
pub(super) fn curves(remote: &Remote) -> Option<Vec<CacheCurve>> {
    shard::ask(remote, |_, local| local.caches.borrow().iter().map(curve_of).collect())
}

fn curve_of(one: &AtCache) -> CacheCurve {
    let (report, block) = (one.cache.curve(), one.cache.config().block);
    let point = |at: &Estimate| CurvePoint {
        policy: at.policy.name().to_owned(),
        size_bytes: at.slots * block,
        miss_ppm: ppm(at.misses),
        error_ppm: ppm(at.error),
        filled: at.is_full,
        sampled_reads: at.sampled,
    };
    let points = report.estimates.iter().map(point).collect();
    CacheCurve { cache: status_of(one), block_reads: report.reads, points }
}

/// Returns a share from 0 to 1 in parts per million.
fn ppm(share: f64) -> u64 {
    (share * 1e6).round() as u64
}

fn aside_of(status: &braid_cache::AsideStatus) -> AsideStatus {
    let standing = match status.standing {
        Standing::Serving => "serving",
        Standing::Aside => "aside",
        Standing::Trying => "trying",
    };
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let figures = |figures: braid_cache::Figures| AsideFigures {
        hits_ppm: ppm(figures.hits),
        hit_ns: nanos(figures.hit),
        origin_ns: nanos(figures.origin),
        insertion_ns: nanos(figures.insertion),
        gain_ns: (figures.gain() * 1e9).round() as i64,
    };
    AsideStatus {
        standing: standing.to_owned(),
        for_ms: nanos(status.since) / 1_000_000,
        judged_by: status.figures.map(figures),
    }
}

fn write_back_of(one: &AtCache) -> Option<WriteBackStatus> {
    let status = one.cache.write_back_status()?;
    let flushed_to = match status.phase {
        Phase::Logged => "log",
        Phase::LogFailing => "log failing",
        Phase::LogGivenUp | Phase::Volatile => "origin",
    };
    let oldest = status.oldest.map(|oldest| u64::try_from(oldest.as_millis()).unwrap_or(u64::MAX));
    Some(WriteBackStatus {
        flushed_to: flushed_to.to_owned(),
        dirty_bytes: status.dirty,
        dirty_limit_bytes: status.dirty_limit,
        oldest_dirty_ms: oldest,
        drained_bytes: status.drained,
        drain_bytes_per_second: status.drain_rate,
        log: status.log.map(|_| one.log.clone()),
        log_size_bytes: status.log.map(|log| log.size),
        log_used_bytes: status.log.map(|log| log.used),
        log_writes: status.log.map(|log| log.writes),
        log_written_bytes: status.log.map(|log| log.bytes),
        replayed_bytes: status.replayed.map_or(0, |replayed| replayed.bytes),
        drain_error: status.drain_error.map(|errno| errno.to_string()),
        log_error: status.log_error.map(|errno| errno.to_string()),
    })
}

fn status_of(one: &AtCache) -> CacheStatus {
    let AtCache { text, cache, .. } = one;
    let (counts, config) = (cache.counters(), cache.config());
    let (used, all) = cache.used_blocks();
    let mean = counts.mean_origin_read();
    let micros = |seconds: f64| (seconds * 1e6) as u64;
    CacheStatus {
        cache: text.clone(),
        mode: config.mode.name().to_owned(),
        policy: config.policy.name().to_owned(),
        block_bytes: config.block,
        size_bytes: u64::from(all) * config.block,
        used_bytes: u64::from(used) * config.block,
        index_bytes: cache.index_bytes(),
        counts,
        read_invalidates: 0,
        origin_read_us: mean.map(|mean| micros(mean.as_secs_f64())),
        saved_us: mean.map_or(0, |mean| micros(mean.as_secs_f64() * counts.cache_hits as f64)),
        aside: aside_of(&cache.aside()),
        write_back: write_back_of(one),
    }
}
