//! Counters of a cache, with RapidCache's names where it has them.

use std::time::Duration;

use crate::counters;

counters! {
    /// Counts since the cache was attached, of successful requests. At any time `reads = cache_hits + cache_misses +
    /// uncached_reads` and `bytes_read = bytes_from_ram + bytes_from_origin`.
    pub struct CacheCounts {
        /// Completed read requests.
        reads = "braid_cache_reads_total",
        /// Completed write requests.
        writes = "braid_cache_writes_total",
        /// Read requests with all bytes in memory.
        cache_hits = "braid_cache_hits_total",
        /// Read requests that the origin served, except those that bypassed the cache.
        cache_misses = "braid_cache_misses_total",
        /// Blocks evicted for a read.
        replacement = "braid_cache_read_replacements_total",
        /// Blocks evicted for a write.
        write_replacement = "braid_cache_write_replacements_total",
        /// Blocks invalidated, at least in part, by a write.
        write_invalidates = "braid_cache_write_invalidates_total",
        /// Reads that bypassed the cache.
        uncached_reads = "braid_cache_uncached_reads_total",
        /// Writes that bypassed the cache.
        uncached_writes = "braid_cache_uncached_writes_total",
        /// Reads of the origin, including failed ones.
        disk_reads = "braid_cache_origin_reads_total",
        /// Writes to the origin.
        disk_writes = "braid_cache_origin_writes_total",
        /// Blocks copied from memory.
        cache_reads = "braid_cache_block_reads_total",
        /// Blocks copied to memory.
        cache_writes = "braid_cache_block_writes_total",
        /// Bytes that clients read.
        bytes_read = "braid_cache_read_bytes_total",
        /// Bytes of these that came from memory.
        bytes_from_ram = "braid_cache_hit_bytes_total",
        /// Bytes of these that came from the origin.
        bytes_from_origin = "braid_cache_origin_read_bytes_total",
        /// Total time of successful reads of the origin; zero without a clock.
        origin_read_ns = "braid_cache_origin_read_seconds_total",
        /// Bytes that clients wrote.
        bytes_written = "braid_cache_written_bytes_total",
    }
}

impl CacheCounts {
    /// Returns the mean latency of reads of the origin; `None` before the first read, or without a clock.
    pub fn mean_origin_read(&self) -> Option<Duration> {
        let asked = self.cache_misses + self.uncached_reads;
        let mean = self.origin_read_ns as f64 / 1e9 / asked.max(1) as f64;
        Some(Duration::from_secs_f64(mean)).filter(|mean| !mean.is_zero())
    }
}
