//! What a volume's status says of its caches.

use braid_cache::Cache;
use braid_uring::Remote;

use super::shard;
use crate::control::CacheStatus;

/// The caches of the shard of `remote`, if it answers: counted at one moment, so that they add up.
pub(super) fn all(remote: &Remote) -> Vec<CacheStatus> {
    shard::ask(remote, |local| local.caches.iter().map(status_of).collect()).unwrap_or_default()
}

fn status_of((text, cache): &(String, Cache)) -> CacheStatus {
    let (counters, config) = (cache.counters(), cache.config());
    let (used, all) = cache.used_blocks();
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
    }
}
