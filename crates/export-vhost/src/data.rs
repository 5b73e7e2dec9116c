//! Data of a request: memory for them here, and copies between it and the pieces in the guest's memory.
//!
//! Each byte is copied once, in either direction, and never looked at in the guest's memory.

use std::task::{Context, Poll};

use braid_block::Payload;
use braid_mem::Pool;

use crate::memory::{Memory, MemoryFault};
use crate::ring::{Piece, RingFault};

/// Longest single buffer of a payload, in bytes.
const PIECE: usize = 1 << 20;

/// Part of the memory that is left to what the volume does for requests, as a divisor.
const SHARE_LEFT: usize = 4;

/// Memory for `len` bytes of data, at most `MOST_DATA`, or the task is woken when there is some.
pub(crate) fn payload(pool: &Pool, len: u64, cx: &mut Context<'_>) -> Poll<Payload> {
    let len = usize::try_from(len).unwrap_or(usize::MAX);
    Payload::poll_take(pool, len, PIECE, pool.total_bytes() / SHARE_LEFT, cx)
}

/// Gives `each` the places of `len` bytes from byte `at` of `pieces` on.
fn places(
    pieces: &[Piece],
    mut at: u64,
    len: usize,
    mut each: impl FnMut(u64, std::ops::Range<usize>) -> Result<(), MemoryFault>,
) -> Result<(), RingFault> {
    let mut done = 0;
    for piece in pieces {
        let there = u64::from(piece.len);
        if at >= there {
            at -= there;
            continue;
        }
        if done == len {
            break;
        }
        // At most a piece's length.
        let count = (there - at).min((len - done) as u64) as usize;
        each(piece.address.wrapping_add(at), done..done + count)?;
        done += count;
        at = 0;
    }
    if done == len { Ok(()) } else { Err(RingFault::Short) }
}

/// Copies the bytes from byte `at` of `pieces` on out of the guest's memory.
pub(crate) fn copy_out(
    memory: &Memory,
    pieces: &[Piece],
    at: u64,
    into: &mut [u8],
) -> Result<(), RingFault> {
    places(pieces, at, into.len(), |address, part| memory.read(address, &mut into[part]))
}

/// Copies `from` to byte `at` of `pieces`.
pub(crate) fn copy_back(
    memory: &Memory,
    pieces: &[Piece],
    at: u64,
    from: &[u8],
) -> Result<(), RingFault> {
    places(pieces, at, from.len(), |address, part| memory.write(address, &from[part]))
}
