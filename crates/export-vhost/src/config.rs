//! The description of a volume for guests: features, and virtio-blk's configuration space.
//!
//! Source: Virtual I/O Device 1.2, sections 5.2.3 and 5.2.4.

use braid_block::Limits;

use crate::request::{SECTOR, SECTOR_BYTES};
use crate::ring::MOST_DESCRIPTORS;

/// Most bytes of configuration that a front-end asks for.
pub(crate) const MOST_CONFIG: usize = 256;

/// Most queues.
pub(crate) const MOST_QUEUES: u16 = 16;

/// Most buffers of data of a request: a queue of 128 without indirect tables has room for them, the header and the
/// status.
const SEGMENTS: u32 = 126;
/// Longest buffer of data, in bytes: all of them together are less than [`crate::request::MOST_DATA`].
const SEGMENT_BYTES: u32 = 256 << 10;
/// Longest discard, in sectors: 2 GiB.
const DISCARD_SECTORS: u32 = 1 << 22;

pub(crate) const SIZE_MAX: u64 = 1 << 1;
pub(crate) const SEG_MAX: u64 = 1 << 2;
pub(crate) const READ_ONLY: u64 = 1 << 5;
pub(crate) const BLK_SIZE: u64 = 1 << 6;
pub(crate) const FLUSH: u64 = 1 << 9;
pub(crate) const TOPOLOGY: u64 = 1 << 10;
pub(crate) const MQ: u64 = 1 << 12;
pub(crate) const DISCARD: u64 = 1 << 13;
pub(crate) const WRITE_ZEROES: u64 = 1 << 14;
pub(crate) const INDIRECT: u64 = 1 << 28;
pub(crate) const EVENT_IDX: u64 = 1 << 29;
/// Messages of vhost-user beyond the first ones.
pub(crate) const PROTOCOL: u64 = 1 << 30;
pub(crate) const VERSION_1: u64 = 1 << 32;

/// The features that are offered.
pub(crate) fn features(limits: &Limits) -> u64 {
    let always = SIZE_MAX
        | SEG_MAX
        | BLK_SIZE
        | FLUSH
        | TOPOLOGY
        | MQ
        | WRITE_ZEROES
        | INDIRECT
        | EVENT_IDX
        | PROTOCOL
        | VERSION_1;
    let read_only = if limits.read_only { READ_ONLY } else { 0 };
    let discard = if limits.discard { DISCARD } else { 0 };
    always | read_only | discard
}

/// The configuration space of a volume that is served over `queues` queues.
pub(crate) fn config(limits: &Limits, queues: u16) -> [u8; MOST_CONFIG] {
    let mut space = [0; MOST_CONFIG];
    let mut put = |at: usize, bytes: &[u8]| space[at..at + bytes.len()].copy_from_slice(bytes);
    let blocks_of = |bytes: u32| bytes / limits.logical_block;
    let block_sectors = limits.logical_block / SECTOR_BYTES;
    put(0, &(limits.size / SECTOR).to_le_bytes());
    put(8, &SEGMENT_BYTES.to_le_bytes());
    put(12, &SEGMENTS.min(u32::from(MOST_DESCRIPTORS) - 2).to_le_bytes());
    put(20, &limits.logical_block.to_le_bytes());
    let physical = blocks_of(limits.physical_block).max(1);
    // The exponent of a power of two is less than 32.
    put(24, &[u8::try_from(physical.ilog2()).unwrap_or(0)]);
    put(26, &u16::try_from(physical).unwrap_or(u16::MAX).to_le_bytes());
    put(28, &blocks_of(limits.optimal_io).to_le_bytes());
    // A cache that is written back, until FLUSH.
    put(32, &[1]);
    put(34, &queues.to_le_bytes());
    put(36, &DISCARD_SECTORS.to_le_bytes());
    put(40, &1u32.to_le_bytes());
    put(44, &block_sectors.to_le_bytes());
    put(48, &DISCARD_SECTORS.to_le_bytes());
    put(52, &1u32.to_le_bytes());
    put(56, &[1]);
    space
}
