//! The rules for a superblock of either version, and the size of the array.
//!
//! ```text
//!   1.2   | | sb | bitmap | bad blocks |  ppl …  | data_offset … data_offset + data_size |
//!             no two of these share a byte, and all lie on the member
//! ```
//!
//! The rules are the kernel's: `super_1_load`, `super_1_validate`, `md_run` (`drivers/md/md.c`); the
//! personalities' `setup_conf` and `run` (`raid0.c`, `raid1.c`, `raid5.c`, `raid10.c`); `write_sb_page`
//! (`md-bitmap.c`); `ppl_validate_rdev` (`raid5-ppl.c`). Stricter than the kernel: roles are checked for all
//! devices, and areas may not overlap even if they are empty, because braid writes there.

use braid_level::layout;
use braid_level::size::{redundant_size, used_of_member};

use super::{Contents, Features, Reshape, Role};
use crate::{Level, Rejection, SECTOR, Version};

/// The kernel's page, below which no chunk of a striped level with redundancy goes.
const PAGE: u64 = 4096;
/// The most of `raid_disks` that fits mdadm's superblock of 1 KiB.
const MOST_DISKS: u32 = 384;
/// The most in a superblock of version 0.90.
const MOST_DISKS_OLD: u32 = 27;
/// Event counts stay below this: at a change each microsecond that is 292,000 years, and one more
/// can always be counted.
const EVENTS_LIMIT: u64 = 1 << 63;
/// Sizes in bytes stay below this.
const SIZE_LIMIT: u64 = 1 << 63;

/// Checks all that is the same for both versions. `device_size` is the member's, in bytes.
pub(super) fn check(superblock: &Contents, device_size: u64) -> Result<(), Rejection> {
    let Contents { super_offset, .. } = *superblock;
    let device_size = device_size.min(SIZE_LIMIT - 1);
    check_inside("the superblock", super_offset, superblock.len_on_disk(), device_size)?;
    if superblock.events >= EVENTS_LIMIT {
        return Err(Rejection::Events(superblock.events));
    }
    check_shapes(superblock)?;
    check_features(superblock)?;
    check_data(superblock, device_size)?;
    check_roles(superblock)?;
    check_areas(superblock, device_size)?;
    if superblock.level.is_redundant() && superblock.array_size().is_none() {
        return Err(Rejection::ArraySize {
            raid_disks: superblock.raid_disks,
            component_size: superblock.component_size,
        });
    }
    Ok(())
}

/// The shape of the array: the only one, or the new and the old one of a reshape.
fn check_shapes(superblock: &Contents) -> Result<(), Rejection> {
    let Contents { level, layout, chunk, raid_disks, .. } = *superblock;
    let most = most_disks(superblock.version);
    check_disks("raid_disks", i64::from(raid_disks), level, most)?;
    let Some(reshape) = superblock.reshape else {
        return check_shape(level, layout, chunk, raid_disks);
    };
    let old = i64::from(raid_disks) - i64::from(reshape.delta_disks);
    check_disks("raid_disks before the reshape", old, level, most)?;
    check_shape(level, layout, chunk, old as u32)?;
    let new = Level::from_number(reshape.new_level).ok_or(Rejection::Level(reshape.new_level))?;
    check_shape(new, reshape.new_layout, reshape.new_chunk, raid_disks)
}

fn most_disks(version: Version) -> u32 {
    if version == Version::V0_90 { MOST_DISKS_OLD } else { MOST_DISKS }
}

fn check_disks(field: &'static str, value: i64, level: Level, most: u32) -> Result<(), Rejection> {
    let least = level.least_members() as u32;
    if value < i64::from(least) || value > i64::from(most) {
        return Err(Rejection::RaidDisks { field, value, least, most });
    }
    Ok(())
}

/// Checks that md would run an array of this chunk and layout.
fn check_shape(level: Level, layout: u32, chunk: u64, raid_disks: u32) -> Result<(), Rejection> {
    if let Some(needs) = level.refuses_chunk(chunk) {
        return Err(Rejection::Chunk { chunk, level, needs });
    }
    if layout::is_known(level, layout, raid_disks) {
        Ok(())
    } else {
        Err(Rejection::Layout { layout, level, raid_disks })
    }
}

/// Features that exclude each other, or that the level or the role cannot have.
fn check_features(superblock: &Contents) -> Result<(), Rejection> {
    let features = superblock.features;
    let has = |feature| features.contains(feature);
    let ppl = has(Features::PPL) || has(Features::MULTIPLE_PPLS);
    let wrong = [
        (has(Features::PPL) && has(Features::MULTIPLE_PPLS), "two kinds of partial parity log"),
        (ppl && has(Features::BITMAP), "a partial parity log and a bitmap"),
        (ppl && has(Features::JOURNAL), "a partial parity log and a journal"),
        (ppl && superblock.level != Level::Raid5, "a partial parity log without raid5"),
        (
            has(Features::RAID0_LAYOUT) && superblock.level != Level::Raid0,
            "a raid0 layout without raid0",
        ),
        (
            superblock.role() == Role::Journal && !has(Features::JOURNAL),
            "a journal device without a journal",
        ),
    ];
    match wrong.into_iter().find(|(holds, _)| *holds) {
        Some((_, why)) => Err(Rejection::Features { features: features.0, why }),
        None => Ok(()),
    }
}

/// Checks that the data lies on the member, clear of the superblock, and is as much as the array uses.
fn check_data(superblock: &Contents, device_size: u64) -> Result<(), Rejection> {
    let Contents { data_offset, data_size, component_size, .. } = *superblock;
    // md's lower bound: ten sectors.
    if data_size < 10 * SECTOR {
        return Err(size("data_size", data_size, "at least", 10 * SECTOR));
    }
    let limit = if superblock.version.is_at_end() { superblock.super_offset } else { device_size };
    let start = match superblock.version.is_at_end() {
        true => 0,
        false => superblock.super_offset + superblock.len_on_disk(),
    };
    check_inside("the data", data_offset, data_size, limit)?;
    if data_offset < start {
        return Err(size("data_offset", data_offset, "at least", start));
    }
    if let Some(Reshape { new_offset, .. }) = superblock.reshape {
        let moved = data_offset.checked_add_signed(new_offset).unwrap_or(u64::MAX);
        check_inside("the data after the reshape", moved, component_size, limit)?;
        if moved < start {
            return Err(size("data_offset after the reshape", moved, "at least", start));
        }
    }
    if !superblock.level.is_redundant() || superblock.role() == Role::Journal {
        return Ok(());
    }
    if component_size == 0 {
        return Err(size("size", component_size, "at least", SECTOR));
    }
    if component_size > data_size {
        return Err(size("size", component_size, "at most", data_size));
    }
    match superblock.recovery_offset {
        // A reshape of raid10 counts in the array, not in the member.
        Some(offset) if superblock.reshape.is_none() && offset > component_size => {
            Err(size("recovery_offset", offset, "at most", component_size))
        }
        _ => Ok(()),
    }
}

fn size(what: &'static str, value: u64, needs: &'static str, limit: u64) -> Rejection {
    Rejection::Size { what, value, needs, limit }
}

fn check_inside(what: &'static str, offset: u64, len: u64, limit: u64) -> Result<(), Rejection> {
    match offset.checked_add(len) {
        Some(end) if end <= limit => Ok(()),
        _ => Err(Rejection::DataOutside { what, offset, len, limit }),
    }
}

/// Checks that the member has a role, and that no role is out of range or taken too often.
fn check_roles(superblock: &Contents) -> Result<(), Rejection> {
    let number = superblock.device_number;
    if number as usize >= superblock.roles.len() {
        return Err(Rejection::DeviceNumber { number, roles: superblock.roles.len() as u32 });
    }
    let limit = superblock.raid_disks.max(superblock.previous_raid_disks());
    // A member and the replacement that is being filled beside it share a role.
    let most =
        if superblock.level.is_redundant() && superblock.version != Version::V0_90 { 2 } else { 1 };
    let mut counts = vec![0; limit as usize];
    for (number, role) in superblock.roles.iter().enumerate() {
        let Role::Active(role) = *role else { continue };
        let (number, role) = (number as u32, u32::from(role));
        let count = counts.get_mut(role as usize).ok_or(Rejection::Role { number, role, limit })?;
        *count += 1;
        if *count > most {
            return Err(Rejection::RoleTwice { role, count: *count, most });
        }
    }
    Ok(())
}

/// A piece of the member, in bytes from its start.
struct Area {
    what: &'static str,
    start: u64,
    end: u64,
}

/// Checks that superblock, data, bitmap and logs lie on the member and share no byte.
fn check_areas(superblock: &Contents, device_size: u64) -> Result<(), Rejection> {
    let start = superblock.super_offset;
    let used = match superblock.component_size {
        0 => superblock.data_size,
        used => used.min(superblock.data_size),
    };
    let mut areas = vec![
        Area { what: "the superblock", start, end: start + superblock.len_on_disk() },
        Area {
            what: "the data",
            start: superblock.data_offset,
            end: superblock.data_offset + used,
        },
    ];
    if let Some((_, len)) = superblock.ppl
        && len <= PAGE
    {
        // A page of header, and something to log.
        return Err(size("ppl.size", len, "at least", PAGE + SECTOR));
    }
    // How long the bitmap is, only its own header tells.
    let bitmap = superblock.bitmap_offset.map(|offset| ("the bitmap", offset, SECTOR));
    let ppl = superblock.ppl.map(|(offset, len)| ("the partial parity log", offset, len));
    let log = superblock.bad_block_log.map(|log| ("the bad-block log", log.offset, log.size));
    for (what, offset, len) in [bitmap, ppl, log].into_iter().flatten() {
        let area = start.checked_add_signed(offset).and_then(|start| {
            let end = start.checked_add(len)?;
            (end <= device_size).then_some(Area { what, start, end })
        });
        areas.push(area.ok_or(Rejection::Outside {
            what,
            offset,
            super_offset: start,
            len,
            device_size,
        })?);
    }
    areas.sort_by_key(|area| area.start);
    match areas.windows(2).find(|pair| pair[0].end > pair[1].start) {
        Some([first, second]) => Err(Rejection::Overlap {
            first: first.what,
            first_start: first.start,
            first_end: first.end,
            second: second.what,
            second_start: second.start,
            second_end: second.end,
        }),
        _ => Ok(()),
    }
}

impl Contents {
    /// Returns the size of the array in bytes, if one member can tell: `None` for linear and raid0, whose size
    /// is the sum of their members'. During a reshape, the smaller of both shapes.
    ///
    /// Source: Linux `raid1_size`, `raid5_size`, `raid10_size`.
    #[must_use]
    pub fn array_size(&self) -> Option<u64> {
        let new = self
            .reshape
            .map_or((self.layout, self.chunk), |reshape| (reshape.new_layout, reshape.new_chunk));
        let raid_disks = u64::from(self.raid_disks.min(self.previous_raid_disks()));
        let (layout, chunk) = match self.level {
            Level::Raid10 => new,
            // Both chunks are powers of two: a multiple of the larger one is one of both.
            _ => (self.layout, self.chunk.max(new.1)),
        };
        let size = redundant_size(self.level, layout, chunk, raid_disks, self.component_size)?;
        (size < SIZE_LIMIT).then_some(size)
    }

    /// Returns the bytes of this member's data that the array uses.
    #[must_use]
    pub fn used(&self) -> u64 {
        used_of_member(self.level, self.chunk, self.data_size, self.component_size)
    }

    /// Returns the number of members before the reshape in progress; `raid_disks` without a reshape.
    #[must_use]
    pub fn previous_raid_disks(&self) -> u32 {
        let delta = self.reshape.map_or(0, |reshape| reshape.delta_disks);
        u32::try_from(i64::from(self.raid_disks) - i64::from(delta)).unwrap_or(0)
    }
}
