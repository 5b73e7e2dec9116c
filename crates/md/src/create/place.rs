//! The places on a new member: mdadm's choices.
//!
//! ```text
//! 1.2   | 4K | superblock | bitmap | bad blocks |  headroom … stripe log | data …    |
//!            4K           8K       +bitmap      +4K                       data_offset (1 MiB units)
//! 1.0   | data …                        | bitmap | bad blocks | superblock |
//! 0.90  | data …                        | superblock | bitmap |
//! ```
//!
//! A partial parity log takes the bitmap's place. The stripe log ends where the data starts; mdadm does not
//! know it, and its places are the same with and without one, except for the data's start on small members.
//!
//! Source: mdadm 4.2 `super1.c` (`choose_bm_space`, `validate_geometry1`, `add_internal_bitmap1`,
//! `write_init_super1`), `super0.c` (`add_internal_bitmap0`); formulas in sectors there.

use braid_level::size::round_down;

use crate::bitmap::MOST_CHUNKS;
use crate::{SECTOR, Version, ppl};

const K: u64 = 1024;
/// The superblock, for all that may follow it.
pub(super) const SUPERBLOCK: u64 = 4 * K;
/// The bad-block log.
pub(super) const BAD_BLOCKS: u64 = 4 * K;
/// The header of a bitmap.
const BITMAP_HEADER: u64 = 256;
/// Version 0.90's bitmap has the rest of the superblock's 64 KiB.
pub(super) const OLD_BITMAP_ROOM: u64 = 60 * K;
pub(super) const MIB: u64 = K * K;

/// Returns the room that is reserved for a bitmap of `size` bytes.
pub(super) fn bitmap_room(version: Version, size: u64) -> u64 {
    const GIB: u64 = MIB * 1024;
    if version == Version::V0_90 {
        OLD_BITMAP_ROOM
    } else if size < 64 * K {
        0
    } else if size - 64 * K >= 200 * GIB {
        128 * K
    } else if size - 4 * K > 8 * GIB {
        64 * K
    } else {
        4 * K
    }
}

/// Returns the default start of the data: behind the reserved room (`reserved`, for a bitmap or a partial
/// parity log) and some headroom for a later reshape (a thousandth of the member, up to 128 MiB), or more if a
/// stripe log needs it, rounded up to 1 MiB.
pub(super) fn default_data_offset(
    version: Version,
    member_size: u64,
    chunk: u64,
    reserved: u64,
    stripe_log: u64,
) -> u64 {
    if version.is_at_end() {
        return 0;
    }
    let mut headroom = 128 * MIB;
    while headroom << 10 > member_size && (chunk == 0 || headroom / 4 >= chunk) {
        headroom /= 2;
    }
    (12 * K + reserved + headroom.max(stripe_log)).next_multiple_of(MIB)
}

/// Returns the bytes of a member that are free for data before any rounding, with `reserved` bytes for a bitmap
/// or a partial parity log; `None` if not even the metadata fits.
pub(super) fn free_for_data(
    version: Version,
    member_size: u64,
    data_offset: u64,
    reserved: u64,
) -> Option<u64> {
    match version {
        Version::V0_90 => version.superblock_offset(member_size),
        Version::V1_0 => round_down(member_size, 4 * K).checked_sub(8 * K + BAD_BLOCKS + reserved),
        Version::V1_1 | Version::V1_2 => round_down(member_size, SECTOR).checked_sub(data_offset),
    }
    .filter(|free| *free > 0)
}

/// Bytes for the bitmap of `chunks`, with its header, in whole 4 KiB.
pub(super) fn bitmap_size(chunks: u64) -> u64 {
    (chunks.div_ceil(8) + BITMAP_HEADER).next_multiple_of(4 * K)
}

/// Returns true if a bitmap can have such chunks, in bytes.
pub(super) fn is_bitmap_chunk(chunk: u64) -> bool {
    chunk.is_power_of_two() && (4 * K..1 << 32).contains(&chunk)
}

/// A bitmap's chunk in bytes: the given one if it is not too small for the `room`, else 64 MiB or
/// as much more as the room needs. `Err` has the smallest that is possible, or `None` without
/// room for any.
pub(super) fn bitmap_chunk(
    mut room: u64,
    sync_size: u64,
    given: Option<u64>,
) -> Result<u64, Option<u64>> {
    if given.is_none() {
        room = room.min(128 * K);
    }
    let most_bits = (room.checked_sub(BITMAP_HEADER).ok_or(None)? * 8).min(MOST_CHUNKS);
    let mut least = 4 * K;
    while sync_size / least + 1 > most_bits {
        least = least.checked_mul(2).ok_or(None)?;
    }
    match given {
        Some(chunk) if chunk < least => Err(Some(least)),
        Some(chunk) => Ok(chunk),
        None => Ok(least.max(64 * MIB)),
    }
}

/// Returns the offset of a bitmap in bytes from the superblock, and its length.
pub(super) fn bitmap_place(version: Version, sync_size: u64, chunk: u64) -> (i64, u64) {
    let size = bitmap_size(sync_size.div_ceil(chunk));
    match version {
        // mdadm counts one bit more here.
        Version::V1_0 => {
            let room = bitmap_size(sync_size / chunk + 1);
            (-((room + BAD_BLOCKS) as i64), size)
        }
        _ => (SUPERBLOCK as i64, size),
    }
}

/// Returns the offset of a partial parity log in bytes from the superblock, and its length.
pub(super) fn ppl_place(version: Version) -> (i64, u64) {
    let offset = match version {
        Version::V1_0 => -((ppl::AREA_BYTES + BAD_BLOCKS) as i64),
        _ => SUPERBLOCK as i64,
    };
    (offset, ppl::AREA_BYTES)
}

/// Returns the offset of the bad-block log in bytes from the superblock, and the bytes of the member that may
/// hold data. `beside` is the place of the bitmap, or of the partial parity log; `stripe_log` are its bytes in
/// front of the data.
pub(super) fn log_and_data_size(
    version: Version,
    member_size: u64,
    data_offset: u64,
    component_size: u64,
    beside: Option<(i64, u64)>,
    stripe_log: u64,
) -> Option<(Option<i64>, u64)> {
    let super_offset = version.superblock_offset(member_size)?;
    let bitmap_room = match beside {
        Some((_, size)) => size,
        None => bitmap_room(version, component_size),
    };
    match version {
        Version::V0_90 => Some((None, super_offset)),
        Version::V1_0 => {
            let room = match beside {
                Some((offset, _)) => offset.unsigned_abs(),
                None => bitmap_room + BAD_BLOCKS,
            };
            let room = room.min(super_offset.checked_sub(component_size)?);
            let log = (room >= BAD_BLOCKS).then_some(-(BAD_BLOCKS as i64));
            Some((log, super_offset - room))
        }
        Version::V1_1 | Version::V1_2 => {
            let data_size = round_down(member_size, SECTOR).checked_sub(data_offset)?;
            let behind_bitmap = SUPERBLOCK + bitmap_room;
            let before_data = data_offset.checked_sub(stripe_log + super_offset + BAD_BLOCKS)?;
            let log = if before_data >= behind_bitmap {
                Some(behind_bitmap)
            } else {
                // Only without one: its room is not in use.
                (beside.is_none() && before_data >= SUPERBLOCK).then_some(before_data)
            };
            Some((log.map(|offset| offset as i64), data_size))
        }
    }
}
