//! What a cache counts, under the names that RapidCache gave to it, and what those leave out.
//!
//! At every moment `reads = cache_hits + cache_misses + uncached_reads` and `bytes_read = bytes_from_ram +
//! bytes_from_origin`, of requests that were answered well.

use std::time::Duration;

/// Numbers since the cache was attached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Read requests that were answered.
    pub reads: u64,
    /// Write requests that were answered.
    pub writes: u64,
    /// Read requests of which every byte was in memory.
    pub cache_hits: u64,
    /// Read requests that the origin was asked for, but those that went past the cache.
    pub cache_misses: u64,
    /// Blocks that left for one that was read.
    pub replacement: u64,
    /// Blocks that left for one that was written.
    pub write_replacement: u64,
    /// Blocks of which some was dropped when they were written.
    pub write_invalidates: u64,
    /// Reads that went past the cache: long runs.
    pub uncached_reads: u64,
    /// Writes that went past the cache.
    pub uncached_writes: u64,
    /// Reads of the origin, also those that failed.
    pub disk_reads: u64,
    /// Writes to the origin.
    pub disk_writes: u64,
    /// Blocks that were copied from memory.
    pub cache_reads: u64,
    /// Blocks that were copied to memory.
    pub cache_writes: u64,
    /// Bytes that clients read.
    pub bytes_read: u64,
    /// Of these, from memory.
    pub bytes_from_ram: u64,
    /// Of these, from the origin.
    pub bytes_from_origin: u64,
    /// How long the origin took for reads that it answered well, added up; nothing without a clock.
    pub origin_read_time: Duration,
    /// Bytes that clients wrote.
    pub bytes_written: u64,
}

impl Counters {
    /// How long the origin takes for a read, in the mean; none before the first, and without a clock.
    pub fn mean_origin_read(&self) -> Option<Duration> {
        let asked = self.cache_misses + self.uncached_reads;
        let mean = self.origin_read_time.as_secs_f64() / asked.max(1) as f64;
        Some(Duration::from_secs_f64(mean)).filter(|mean| !mean.is_zero())
    }
}
