//! The part of a member that is used neither by data nor by metadata (version 1).
//!
//! ```text
//! 1.1, 1.2  | sb … log bitmap |<── before ──>|  data …  |<── after ──>|
//! 1.0       |<── before ──>|  data …  |<── after ──>| bitmap log … sb |
//! ```
//!
//! Source: mdadm 4.2 `super1.c` (`getinfo_super1`): the numbers wrap like mdadm's.

use super::bitmap::Header;
use super::written::{Written, role, v1};
use super::{Surroundings, words};
use braid_md::Features;

/// Both in sectors. `after` above `i64::MAX` stands for a member that is too short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Space {
    pub(super) before: u64,
    pub(super) after: u64,
}

impl Space {
    /// By how many sectors, less one, the member is too short for its data: mdadm's number.
    pub(super) fn missing(self) -> Option<u64> {
        (self.after > i64::MAX as u64).then(|| u64::MAX - self.after)
    }
}

/// mdadm's `Unused Space`; `None` where mdadm prints none because there is none.
pub(super) fn unused(sb: &Written<'_>, around: &Surroundings<'_>) -> Option<Space> {
    let super_offset = sb.u64(v1::SUPER_OFFSET);
    let data_offset = sb.u64(v1::DATA_OFFSET);
    let data_size = if sb.level() <= 0 { sb.u64(v1::DATA_SIZE) } else { sb.u64(v1::SIZE) };
    let log_at = bad_block_log_at(sb);
    let device_size = around.device_size / braid_md::SECTOR;
    let mut space = if data_offset < super_offset {
        let mut end = super_offset;
        for place in [log_at, Some(offset_from(super_offset, log_offset(sb)))] {
            end = place.map_or(end, |place| place.min(end));
        }
        let data_end = data_offset.wrapping_add(data_size);
        Space { before: data_offset, after: end.saturating_sub(data_end) }
    } else {
        // The kernel keeps 4 KiB and 32 KiB behind the superblock free for growth.
        let mut earliest = super_offset.wrapping_add(72);
        earliest = earliest.max(log_end(sb, around));
        if let Some(at) = log_at {
            earliest = earliest.max(at.wrapping_add(u64::from(sb.u16(v1::BAD_SIZE))));
        }
        Space {
            before: data_offset.saturating_sub(earliest),
            after: device_size.wrapping_sub(data_size).wrapping_sub(data_offset),
        }
    };
    let none = space == Space { before: 0, after: 0 };
    if sb.role() == role::JOURNAL {
        // A journal uses all whole blocks of 4 KiB.
        space.after = device_size.wrapping_sub(data_offset) % 8;
    } else if none {
        return None;
    }
    (space.after != 1).then_some(space)
}

fn offset_from(super_offset: u64, sectors: i32) -> u64 {
    super_offset.wrapping_add_signed(i64::from(sectors))
}

fn bad_block_log_at(sb: &Written<'_>) -> Option<u64> {
    let offset = sb.i32(v1::BAD_OFFSET);
    (offset != 0 && sb.u16(v1::BAD_SIZE) != 0)
        .then(|| offset_from(sb.u64(v1::SUPER_OFFSET), offset))
}

/// The offset of the bitmap or of the partial parity log, 0 for none.
fn log_offset(sb: &Written<'_>) -> i32 {
    if sb.features().contains(Features::BITMAP) {
        sb.i32(v1::BITMAP_OFFSET)
    } else if words::has_ppl(sb.features()) {
        i32::from(sb.u16(v1::PPL_OFFSET).cast_signed())
    } else {
        0
    }
}

/// The end of the bitmap or the partial parity log, counted as in mdadm: from the superblock, although it is
/// compared with places on the member.
fn log_end(sb: &Written<'_>, around: &Surroundings<'_>) -> u64 {
    let Ok(offset @ 1..) = u64::try_from(log_offset(sb)) else { return 0 };
    if !sb.features().contains(Features::BITMAP) {
        return offset + u64::from(sb.u16(v1::PPL_SIZE));
    }
    let header = around.bitmap.map(Header::new);
    offset + header.map_or(0, |header| header.size().next_multiple_of(4096) / 512)
}
