//! The place of a write-intent bitmap on the members of an existing array.
//!
//! ```text
//! 1.1, 1.2   | superblock | free … | bad blocks | free …             | data …
//! 1.0        | data that is used | free …       | bad blocks | superblock |
//! 0.90       | data … | superblock | free, up to the end of its 64 KiB    |
//! ```
//!
//! Invariants
//! * The offset is from the superblock, and free on every member: kernels have one for all.
//! * It is whole blocks of 4 KiB, so that the last page lies in it as well.
//!
//! Deliberately absent: the stripe log, beside which there is no bitmap.
//!
//! Source: Linux `drivers/md/md-bitmap.c` (`write_sb_page`: what a page may not run into), `md.c`
//! (`super_90_validate`, `super_1_sync`); mdadm 4.2 `super1.c` (`add_internal_bitmap1`).

use std::ops::Range;

use super::place::{self, OLD_BITMAP_ROOM, SUPERBLOCK};
use crate::{Superblock, Version};

/// A block, to which places are rounded.
const BLOCK: i64 = 4096;

/// The place and the chunk size of a bitmap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitmapPlace {
    /// In bytes from each member's superblock.
    pub offset: i64,
    /// Number of free bytes there.
    pub room: u64,
    /// Bytes that a bit stands for.
    pub chunk: u64,
}

/// Why there is no place for a bitmap.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoPlace {
    /// No bitmap has such chunks.
    #[error("a bitmap's chunk is a power of two from 4 KiB on and below 4 GiB, not {0} bytes")]
    Chunk(u64),
    /// The members have too little room for so many bits, or none is kept up to date.
    #[error(
        "chunks of {chunk} bytes are more bits than there may be here: at least {least} bytes each"
    )]
    TooFine {
        /// The requested chunk in bytes.
        chunk: u64,
        /// The smallest that fits, in bytes.
        least: u64,
    },
    /// Nothing is free.
    #[error("the members have no room for a bitmap beside their superblocks")]
    NoRoom,
}

/// Returns the place of a bitmap for `sync_size` bytes on all of `members`; an existing bitmap counts as free
/// space. Without a `chunk` it has 64 MiB, or as much more as the room requires.
///
/// # Errors
/// [`NoPlace`].
pub fn bitmap_place<'a>(
    members: impl IntoIterator<Item = &'a Superblock>,
    sync_size: u64,
    chunk: Option<u64>,
) -> Result<BitmapPlace, NoPlace> {
    if let Some(chunk) = chunk.filter(|chunk| !place::is_bitmap_chunk(*chunk)) {
        return Err(NoPlace::Chunk(chunk));
    }
    let mut members = members.into_iter();
    let first = members.next().ok_or(NoPlace::NoRoom)?;
    let free = members.fold(free_on(first), |free, member| in_both(&free, &free_on(member)));
    let (mut best, mut least): (Option<BitmapPlace>, Option<u64>) = (None, None);
    for gap in free {
        let room = (gap.end - gap.start).unsigned_abs();
        match place::bitmap_chunk(room, sync_size, chunk) {
            Ok(chunk) if best.is_none_or(|best| chunk < best.chunk) => {
                let offset = match first.version.is_at_end() && gap.end <= 0 {
                    true => gap.end - place::bitmap_size(sync_size / chunk + 1) as i64,
                    false => gap.start,
                };
                best = Some(BitmapPlace { offset, room, chunk });
            }
            Ok(_) | Err(None) => {}
            Err(Some(fits)) => least = Some(least.map_or(fits, |least| least.min(fits))),
        }
    }
    match (best, chunk, least) {
        (Some(best), ..) => Ok(best),
        (None, Some(chunk), Some(least)) => Err(NoPlace::TooFine { chunk, least }),
        _ => Err(NoPlace::NoRoom),
    }
}

/// Returns the size of a bitmap that lies `offset` bytes from the superblock of a member, up to the next area
/// there.
#[must_use]
pub fn bitmap_room_at(superblock: &Superblock, offset: i64) -> u64 {
    let data = data_of(superblock);
    if data.contains(&offset) {
        return 0;
    }
    let old_end =
        (superblock.version == Version::V0_90).then_some((SUPERBLOCK + OLD_BITMAP_ROOM) as i64);
    let log = superblock.bad_block_log.map(|log| log.offset);
    let ends = [Some(data.start), log, Some(0), old_end];
    let end = ends.into_iter().flatten().filter(|end| *end > offset).min();
    end.map_or(0, |end| (end - offset).unsigned_abs())
}

/// The data that is used, from the superblock on.
fn data_of(superblock: &Superblock) -> Range<i64> {
    let start = superblock.data_offset as i64 - superblock.super_offset as i64;
    start..start + superblock.used() as i64
}

/// Returns the free ranges beside a superblock, in whole blocks, from the superblock on.
fn free_on(superblock: &Superblock) -> Vec<Range<i64>> {
    let all = match superblock.version {
        Version::V0_90 => SUPERBLOCK as i64..(SUPERBLOCK + OLD_BITMAP_ROOM) as i64,
        Version::V1_0 => data_of(superblock).end..0,
        Version::V1_1 | Version::V1_2 => SUPERBLOCK as i64..data_of(superblock).start,
    };
    let log = superblock.bad_block_log.map(|log| log.offset..log.offset + log.size as i64);
    let gaps = match log.filter(|log| log.start < all.end && log.end > all.start) {
        Some(log) => vec![all.start..log.start, log.end..all.end],
        None => vec![all],
    };
    let whole = |gap: Range<i64>| {
        let start = gap.start + (-gap.start).rem_euclid(BLOCK);
        let end = gap.end - gap.end.rem_euclid(BLOCK);
        (start < end).then_some(start..end)
    };
    gaps.into_iter().filter_map(whole).collect()
}

fn in_both(a: &[Range<i64>], b: &[Range<i64>]) -> Vec<Range<i64>> {
    let both = |a: &Range<i64>, b: &Range<i64>| a.start.max(b.start)..a.end.min(b.end);
    let all = a.iter().flat_map(|one| b.iter().map(move |other| both(one, other)));
    all.filter(|range| range.start < range.end).collect()
}
