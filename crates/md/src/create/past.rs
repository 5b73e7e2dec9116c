//! Start of the data on members that a version of mdadm made.
//!
//! ```text
//!   mdadm            1.1, 1.2: data from                                        large members
//!   3.0 to 3.1.1     the superblock and the room for a bitmap                   132, 136 KiB
//!   3.1.2 to 3.2.3   that, rounded up to 1 MiB                                  1 MiB
//!   3.2.4 to 3.2.6   a thousandth of the data, up to 128 MiB, rounded down      128 MiB
//!   3.3 to 4.0       a thousandth of the member and the room, rounded down      128 MiB
//!   4.1 and later    the same, rounded up                                       129 MiB
//! ```
//!
//! A new array over members of an older one finds the data only at its old start.
//!
//! Deliberately absent: a partial parity log, `--data-offset`, and the effect of a reshape; 3.2.4 itself, which
//! lived for nine days, differs on members below 2 GiB.
//!
//! Source: mdadm `super1.c` (`choose_bm_space`, `avail_size1`, `validate_geometry1`, `write_init_super1`) of the
//! tags 3.0, 3.1.2, 3.2.5, 3.3 and 4.2; the changes are a380e275, 508a7f16, d9751e06, 72ca9bcf and 795bd44e.

use braid_level::size::round_down;

use super::DEFAULT_CHUNK;
use super::place::{self, MIB};
use crate::{Level, SECTOR, Version};

const K: u64 = 1024;

/// The start of the data for versions of mdadm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastOffset {
    /// The versions.
    pub by: &'static str,
    /// In bytes from the start of each member.
    pub offset: u64,
}

/// Returns the starts of the data for mdadm's versions, the oldest first, on members of `member_size` bytes;
/// for unequal members the later versions use the first. Versions for which the member is too small are left
/// out. Empty for versions of the metadata whose data starts at the member's start. Without a `chunk` it has
/// mdadm's default.
#[must_use]
pub fn past_offsets(
    version: Version,
    level: Level,
    chunk: Option<u64>,
    member_size: u64,
) -> Vec<PastOffset> {
    if version.is_at_end() {
        return Vec::new();
    }
    let chunk = match level {
        Level::Raid1 => 0,
        Level::Linear => chunk.unwrap_or(0),
        _ => chunk.unwrap_or(DEFAULT_CHUNK),
    };
    let of = |by, offset: Option<u64>| Some(PastOffset { by, offset: offset? });
    let late = |round: fn(u64) -> u64| {
        let reserved = place::bitmap_room(version, member_size);
        Some(round(12 * K + reserved + headroom(member_size, chunk)))
    };
    let size = round_down(member_size, SECTOR);
    let all = [
        of("3.0 to 3.1.1", by_room(version, level, chunk, size, 0, |room| room)),
        of(
            "3.1.2 to 3.2.3",
            by_room(version, level, chunk, size, MIB, |room| room.next_multiple_of(MIB)),
        ),
        of("3.2.4 to 3.2.6", by_headroom(version, level, chunk, size)),
        of("3.3 to 4.0", late(down_to_mib)),
        of("4.1 and later", late(|offset| offset.next_multiple_of(MIB))),
    ];
    all.into_iter().flatten().filter(|one| one.offset < member_size).collect()
}

/// Rounded down to 1 MiB, if it is more.
fn down_to_mib(offset: u64) -> u64 {
    if offset > MIB { round_down(offset, MIB) } else { offset }
}

/// A power of two up to 128 MiB, at most a thousandth of `size`, and no less than two chunks, if that counts.
fn headroom(size: u64, chunk: u64) -> u64 {
    let mut headroom = 128 * MIB;
    while headroom << 10 > size && headroom > 0 && (chunk == 0 || headroom / 4 >= chunk) {
        headroom /= 2;
    }
    round_down(headroom, SECTOR)
}

/// Returns the bytes in front of the room for a bitmap.
fn before_room(version: Version) -> u64 {
    if version == Version::V1_2 { 8 * K } else { 4 * K }
}

/// Returns the used part of `free` bytes for data; 0 for levels that use all of each member.
fn used(level: Level, chunk: u64, free: u64) -> u64 {
    match level {
        Level::Linear | Level::Raid0 => 0,
        _ => round_down(free, chunk.max(K)),
    }
}

/// Before 3.2.4: `round` of the room for superblock and bitmap, or less where the data needs it. `slack` is what
/// was kept free for the rounding on members of more than 1 GiB.
fn by_room(
    version: Version,
    level: Level,
    chunk: u64,
    size: u64,
    slack: u64,
    round: fn(u64) -> u64,
) -> Option<u64> {
    let before = before_room(version);
    let slack = if size > 1 << 30 { slack } else { 0 };
    let free = size.checked_sub(place::bitmap_room(version, size) + slack + before)?;
    let used = used(level, chunk, free);
    let offset = round(place::bitmap_room(version, used) + before);
    Some(round_down(offset.min(size - used), 4 * K))
}

/// 3.2.5 and 3.2.6.
fn by_headroom(version: Version, level: Level, chunk: u64, size: u64) -> Option<u64> {
    let before = before_room(version);
    let left = size.checked_sub(place::bitmap_room(version, size))?;
    let used = used(level, chunk, left.checked_sub(headroom(left, 0) + before)?);
    let offset = (place::bitmap_room(version, used) + before).max(headroom(used, 0));
    Some(round_down(down_to_mib(offset.min(size - used)), 4 * K))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sectors(version: Version, level: Level, size: u64) -> Vec<u64> {
        let all = past_offsets(version, level, None, size);
        all.iter().map(|one| one.offset / SECTOR).collect()
    }

    /// Output of `mdadm --examine` for arrays on such disks, quoted in public reports: 2 TB and 4 TB.
    #[test]
    fn large_members() {
        for sectors_of_member in [3_907_029_168, 7_814_037_168] {
            let size = sectors_of_member * SECTOR;
            let of = |version, level| sectors(version, level, size);
            assert_eq!(of(Version::V1_2, Level::Raid5), [272, 2048, 262_144, 262_144, 264_192]);
            assert_eq!(of(Version::V1_1, Level::Raid1), [264, 2048, 262_144, 262_144, 264_192]);
            // These recorded no size, so there was no room for a bitmap, nor headroom.
            assert_eq!(of(Version::V1_2, Level::Raid0), [16, 2048, 16, 262_144, 264_192]);
            assert!(of(Version::V1_0, Level::Raid5).is_empty());
        }
        // 100 GB: a smaller bitmap, and a thousandth.
        assert_eq!(
            sectors(Version::V1_2, Level::Raid5, 100 << 30),
            [144, 2048, 131_072, 131_072, 133_120]
        );
    }

    #[test]
    fn small_members_have_places_inside() {
        for size in (0..4096).map(|blocks| blocks * 4096 + blocks % 8 * SECTOR) {
            for level in [Level::Raid0, Level::Raid1, Level::Raid5] {
                for one in past_offsets(Version::V1_2, level, Some(65536), size) {
                    assert!(one.offset < size && one.offset % SECTOR == 0, "{size}: {one:?}");
                }
            }
        }
    }
}
