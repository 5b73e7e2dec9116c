//! Configuration of a cache.

use braid_level::{CacheMode, CachePolicy};

/// Configuration of a cache.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Memory for data in bytes; only whole blocks are used.
    pub size: u64,
    /// Block size in bytes: a power of two from 4 KiB to 64 KiB.
    pub block: u64,
    /// Write mode.
    pub mode: CacheMode,
    /// Eviction policy.
    pub policy: CachePolicy,
    /// Sequential runs longer than this many bytes bypass the cache; `None` for no limit. In
    /// write-back mode this applies to runs of reads, and to single writes of at least this size.
    pub sequential_cutoff: Option<u64>,
}

/// Returns the number of `slots` blocks that may be dirty, where `dirty` bytes may be: one at least.
pub(crate) fn dirty_blocks(dirty: u64, block: u64, slots: u32) -> u64 {
    (dirty / block).clamp(1, slots.into())
}

/// Returns the number of blocks of `block` bytes that fit in `size`; `None` if the values are
/// invalid.
pub(crate) fn slots_of(size: u64, block: u64) -> Option<u32> {
    let is_block = block.is_power_of_two() && (4096..=65536).contains(&block);
    let slots = if is_block { u32::try_from(size / block).ok()? } else { 0 };
    (slots > 0 && slots < u32::MAX).then_some(slots)
}
