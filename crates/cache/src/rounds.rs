//! Sizes of rounds of draining: constants of write-back mode, and of its predictions.

use std::time::Duration;

/// Runs on their way at once.
pub(crate) const DEPTH: usize = 8;
/// Parts of a full round: after each the origin is flushed.
const PARTS: u64 = 64;
/// Bytes of a run, at most.
const RUN: u64 = 512 << 10;
/// After so long without a write the origin has time.
pub(crate) const IDLE: Duration = Duration::from_millis(500);

/// Blocks that are drained before the origin is flushed, where `dirty_blocks` may be dirty.
pub(crate) fn part_blocks(dirty_blocks: u64) -> u64 {
    (dirty_blocks / PARTS).max(DEPTH as u64 / 2)
}

/// Blocks of a run, at most.
pub(crate) fn run_blocks(block_bytes: u64) -> u64 {
    (RUN / block_bytes).max(1)
}
