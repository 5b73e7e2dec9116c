//! Counters of requests.

use std::sync::atomic::AtomicU64;

/// Requests over one descriptor: counted by its shard, read from any thread.
#[derive(Debug, Default)]
pub struct Counters {
    /// READ requests.
    pub reads: AtomicU64,
    /// Bytes that they asked for.
    pub read_bytes: AtomicU64,
    /// WRITE requests.
    pub writes: AtomicU64,
    /// Bytes that they brought.
    pub written_bytes: AtomicU64,
    /// FSYNC requests.
    pub flushes: AtomicU64,
    /// Ranges punched or zeroed.
    pub zeroes: AtomicU64,
    /// All other requests.
    pub others: AtomicU64,
    /// Block requests that the volume failed.
    pub failures: AtomicU64,
    /// Times that no request was there and the shard waited for one.
    pub waits: AtomicU64,
}
