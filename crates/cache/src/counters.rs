//! What a cache counts, under the names that RapidCache gave to it, and what those leave out.
//!
//! At every moment `reads = cache_hits + disk_reads` and `bytes_read = bytes_from_ram + bytes_from_origin`,
//! of requests that were answered well.

/// Numbers since the cache was attached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Read requests that were answered.
    pub reads: u64,
    /// Write requests that were answered.
    pub writes: u64,
    /// Read requests of which every byte was in memory.
    pub cache_hits: u64,
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
    /// Reads of the origin.
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
    /// Bytes that clients wrote.
    pub bytes_written: u64,
}
