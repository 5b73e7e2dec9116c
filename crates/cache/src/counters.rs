//! Counters of a cache, with RapidCache's names where it has them.
//!
//! At any time `reads = cache_hits + cache_misses + uncached_reads` and `bytes_read =
//! bytes_from_ram + bytes_from_origin`. Both count successful requests only.

use std::time::Duration;

/// Counts since the cache was attached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Completed read requests.
    pub reads: u64,
    /// Completed write requests.
    pub writes: u64,
    /// Read requests with all bytes in memory.
    pub cache_hits: u64,
    /// Read requests that the origin served, except those that bypassed the cache.
    pub cache_misses: u64,
    /// Blocks evicted for a read.
    pub replacement: u64,
    /// Blocks evicted for a write.
    pub write_replacement: u64,
    /// Blocks invalidated, at least in part, by a write.
    pub write_invalidates: u64,
    /// Reads that bypassed the cache.
    pub uncached_reads: u64,
    /// Writes that bypassed the cache.
    pub uncached_writes: u64,
    /// Reads of the origin, including failed ones.
    pub disk_reads: u64,
    /// Writes to the origin.
    pub disk_writes: u64,
    /// Blocks copied from memory.
    pub cache_reads: u64,
    /// Blocks copied to memory.
    pub cache_writes: u64,
    /// Bytes that clients read.
    pub bytes_read: u64,
    /// Bytes of `bytes_read` that came from memory.
    pub bytes_from_ram: u64,
    /// Bytes of `bytes_read` that came from the origin.
    pub bytes_from_origin: u64,
    /// Total time of successful reads of the origin; zero without a clock.
    pub origin_read_time: Duration,
    /// Bytes that clients wrote.
    pub bytes_written: u64,
}

impl Counters {
    /// Returns the mean latency of reads of the origin; `None` before the first read, or without a
    /// clock.
    pub fn mean_origin_read(&self) -> Option<Duration> {
        let asked = self.cache_misses + self.uncached_reads;
        let mean = self.origin_read_time.as_secs_f64() / asked.max(1) as f64;
        Some(Duration::from_secs_f64(mean)).filter(|mean| !mean.is_zero())
    }
}
