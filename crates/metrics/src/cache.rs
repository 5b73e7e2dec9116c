//! Caches: hits, memory, and what the origin does not have yet.

use braid_control::{CacheStatus, Status, WriteBackStatus};

use crate::page::{Of, micros};
use crate::told_apart;

pub(crate) fn add(of: &mut Of<'_>, status: &Status) {
    let names = told_apart(status.caches.iter().map(|cache| cache.cache.as_str()));
    for (name, cache) in names.iter().zip(&status.caches) {
        add_cache(&mut of.part("cache", name), cache);
    }
}

fn add_cache(of: &mut Of<'_>, cache: &CacheStatus) {
    of.gauge("braid_cache_size_bytes", "Memory for data.", cache.size_bytes);
    of.gauge("braid_cache_used_bytes", "Of it, of blocks that are held.", cache.used_bytes);
    of.gauge("braid_cache_index_bytes", "Memory beside that.", cache.index_bytes);
    for (name, help, count) in [
        ("braid_cache_reads_total", "Requests to read.", cache.reads),
        ("braid_cache_writes_total", "Requests to write.", cache.writes),
        ("braid_cache_hits_total", "Reads that the cache had all of.", cache.cache_hits),
        ("braid_cache_misses_total", "Reads that asked the origin.", cache.cache_misses),
        (
            "braid_cache_uncached_reads_total",
            "Reads that went past the cache.",
            cache.uncached_reads,
        ),
        (
            "braid_cache_uncached_writes_total",
            "Writes that went past the cache.",
            cache.uncached_writes,
        ),
        (
            "braid_cache_replacements_total",
            "Blocks that left for others.",
            cache.replacement + cache.write_replacement,
        ),
        ("braid_cache_origin_reads_total", "Reads of the origin.", cache.disk_reads),
        ("braid_cache_origin_writes_total", "Writes to the origin.", cache.disk_writes),
        ("braid_cache_read_bytes_total", "What reads answered.", cache.bytes_read),
        ("braid_cache_hit_bytes_total", "What reads answered from memory.", cache.bytes_from_ram),
        ("braid_cache_written_bytes_total", "What writes brought.", cache.bytes_written),
    ] {
        of.counter(name, help, count);
    }
    of.counter(
        "braid_cache_saved_seconds_total",
        "What the hits would have waited for the origin.",
        micros(cache.saved_us),
    );
    let is_aside = matches!(cache.aside.standing.as_str(), "aside" | "trying");
    let help = "Whether reads go past the cache because it makes them no faster.";
    of.gauge("braid_cache_aside", help, is_aside);
    if let Some(write_back) = &cache.write_back {
        add_write_back(of, write_back);
    }
}

fn add_write_back(of: &mut Of<'_>, cache: &WriteBackStatus) {
    of.gauge("braid_cache_dirty_bytes", "Bytes that the origin does not have.", cache.dirty_bytes);
    of.gauge(
        "braid_cache_dirty_limit_bytes",
        "Beyond so many writers wait.",
        cache.dirty_limit_bytes,
    );
    of.gauge(
        "braid_cache_oldest_dirty_seconds",
        "How long the oldest of these may have been dirty; 0 without any.",
        cache.oldest_dirty_ms.unwrap_or(0) as f64 / 1e3,
    );
    of.counter("braid_cache_drained_bytes_total", "Written to the origin.", cache.drained_bytes);
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
    if let (Some(size), Some(used)) = (cache.log_size_bytes, cache.log_used_bytes) {
        of.gauge("braid_cache_log_size_bytes", "Room for records in the log.", size);
        of.gauge("braid_cache_log_used_bytes", "Of it, what would be replayed.", used);
    }
    if let Some(written) = cache.log_written_bytes {
        of.counter("braid_cache_log_written_bytes_total", "Written to the log.", written);
    }
}
