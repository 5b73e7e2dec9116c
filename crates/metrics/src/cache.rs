//! Caches: hits, memory, and what the origin does not have yet.

use braid_control::{CacheStatus, Status, WriteBackStatus};

use crate::page::Of;
use crate::told_apart;

pub(crate) fn add(of: &mut Of<'_>, status: &Status) {
    let names = told_apart(status.caches.iter().map(|cache| cache.cache.as_str()));
    for (name, cache) in names.iter().zip(&status.caches) {
        add_cache(&mut of.part("cache", name), cache);
    }
}

fn add_cache(of: &mut Of<'_>, cache: &CacheStatus) {
    of.figures("", cache);
    of.figures("", &cache.counts);
    of.counter(
        "braid_cache_replacements_total",
        "Blocks that left for others.",
        cache.counts.replacement + cache.counts.write_replacement,
    );
    let is_aside = matches!(cache.aside.standing.as_str(), "aside" | "trying");
    let help = "Whether reads go past the cache because it makes them no faster.";
    of.gauge("braid_cache_aside", help, is_aside);
    if let Some(write_back) = &cache.write_back {
        add_write_back(of, write_back);
    }
}

fn add_write_back(of: &mut Of<'_>, cache: &WriteBackStatus) {
    of.figures("", cache);
    of.gauge(
        "braid_cache_oldest_dirty_seconds",
        "How long the oldest of these may have been dirty; 0 without any.",
        cache.oldest_dirty_ms.unwrap_or(0) as f64 / 1e3,
    );
    of.gauge(
        "braid_cache_drain_failing",
        "Whether the origin does not take what is dirty.",
        cache.drain_error.is_some(),
    );
    of.gauge(
        "braid_cache_log_failing",
        "Whether the log is not used any more.",
        cache.log_error.is_some(),
    );
}
