//! How a cache is made.

use braid_level::{CacheMode, CachePolicy};

/// How a cache is made.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Memory for data, in bytes: whole blocks of it are used.
    pub size: u64,
    /// Bytes of a block: a power of two from 4 KiB to 64 KiB.
    pub block: u64,
    /// What becomes of writes.
    pub mode: CacheMode,
    /// Who leaves.
    pub policy: CachePolicy,
    /// Runs that are longer than this many bytes go past the cache; none if none does. In write-back mode
    /// only those of reads.
    pub sequential_cutoff: Option<u64>,
}

/// Returns the number of `slots` blocks that may be dirty, where `dirty` bytes may be: one at least.
pub(crate) fn dirty_blocks(dirty: u64, block: u64, slots: u32) -> u64 {
    (dirty / block).clamp(1, slots.into())
}

/// How many blocks of `block` bytes there is room for in `size`; none if that is no cache.
pub(crate) fn slots_of(size: u64, block: u64) -> Option<u32> {
    let is_block = block.is_power_of_two() && (4096..=65536).contains(&block);
    let slots = if is_block { u32::try_from(size / block).ok()? } else { 0 };
    (slots > 0 && slots < u32::MAX).then_some(slots)
}
