//! An array in the middle of a reshape: two plain arrays over the same members, and the byte where they meet.
//!
//! ```text
//!   forwards    ├── new geometry ──┤ position ├──── old geometry ────┤
//!   backwards   ├── old geometry ──┤ position ├──── new geometry ────┤
//! ```
//!
//! Each half is decided as an array of its own, from superblocks that say its geometry alone.
//!
//! Invariant: superblocks say a position up to which the old data are still there, if data move on the members or
//! are spread wider. A reshape in place has overwritten what lies behind it, and only mdadm's backup file has that.
//!
//! Source: Linux `drivers/md/raid5.c` (`raid5_run`, `reshape_request`), `md.c` (`super_1_sync`).

use std::ops::Range;

use braid_level::Level;
use braid_md::{Features, Reshape, Role, Superblock};

use super::backup::Section;
use super::expression::{linear_text, slice_text};
use super::{Claimant, Doubt, OpenError, Opening, Ranges, Seats, inside, joined};

/// A part of an array, which is read by one geometry.
#[derive(Clone, Debug)]
pub struct Half {
    /// The members, as superblocks of this geometry alone would describe them.
    pub claimants: Vec<Claimant>,
    /// Their reading.
    pub opening: Opening,
}

/// An array in the middle of a reshape.
#[derive(Clone, Debug)]
pub struct Halves {
    /// The geometry of the bytes before the position.
    pub below: Half,
    /// The geometry of the others.
    pub above: Half,
    /// Bytes of the array at which they meet.
    pub position: u64,
    /// The size of the array in bytes: the smaller of both.
    pub size: u64,
    /// Bytes of the array that are in a backup file: the start of each, and its bytes in the file.
    pub saved: Vec<Section>,
    /// The doubts about the array.
    pub doubts: Vec<Doubt>,
}

/// Returns the reshape in which the array of these claimants is.
#[must_use]
pub fn reshape_of(claimants: &[Claimant]) -> Option<Reshape> {
    claimants[Seats::of(claimants).freshest].superblock.reshape
}

/// Decides how an array in the middle of a reshape is read. `saved` are the sections of its backup file.
///
/// # Errors
/// [`OpenError`]: one of its geometries cannot be read, or is not known.
pub fn halves(
    claimants: &[Claimant],
    reshape: Reshape,
    saved: &[Section],
) -> Result<Halves, OpenError> {
    let half = |is_new: bool| {
        let claimants: Vec<Claimant> =
            claimants.iter().filter_map(|one| plain(one, is_new)).collect();
        if claimants.is_empty() {
            let why = format!(
                "no superblock describes its {} geometry",
                if is_new { "new" } else { "old" }
            );
            return Err(OpenError::Layout { why });
        }
        let opening = super::open(&claimants, None)?;
        Ok(Half { claimants, opening })
    };
    let (new, old) = (half(true)?, half(false)?);
    let size = new.opening.size.min(old.opening.size);
    let position = reshape.position.min(size);
    let shape = |half: &Half| half.claimants[half.opening.freshest].superblock.clone();
    let critical = critical(&shape(&new), &shape(&old), reshape, size);
    let (below, above) = if reshape.backwards { (old, new) } else { (new, old) };
    let mut this = Halves { below, above, position, size, saved: Vec::new(), doubts: Vec::new() };
    this.take_saved(saved, reshape, critical);
    let (low, high) = (0..this.position, this.position..size);
    let mut doubts = Vec::new();
    for (half, range) in [(&this.below, &low), (&this.above, &high)] {
        if !range.is_empty() {
            let of = half.opening.doubts.iter();
            doubts.extend(of.filter_map(|doubt| doubt.within(|ranges| inside(ranges, range))));
        }
    }
    doubts.dedup();
    this.doubts.splice(0..0, doubts);
    Ok(this)
}

/// The claimant with a superblock that describes one of the geometries; `None` if that is none of md's rules.
fn plain(one: &Claimant, is_new: bool) -> Option<Claimant> {
    let superblock = &one.superblock;
    let reshape = superblock.reshape?;
    let mut contents = superblock.clone().into_contents();
    let is_incomplete = contents.recovery_offset.take().is_some();
    contents.reshape = None;
    let off = [
        Features::RESHAPE,
        Features::RESHAPE_BACKWARDS,
        Features::NEW_OFFSET,
        Features::RECOVERY_OFFSET,
        Features::BITMAP,
    ];
    contents.features = Features(off.iter().fold(contents.features.0, |left, off| left & !off.0));
    contents.bitmap_offset = None;
    contents.data_size = contents.component_size;
    if is_new {
        contents.level = Level::from_number(reshape.new_level)?;
        (contents.layout, contents.chunk) = (reshape.new_layout, reshape.new_chunk);
        contents.data_offset = contents.data_offset.checked_add_signed(reshape.new_offset)?;
    } else {
        contents.raid_disks = superblock.previous_raid_disks();
    }
    let disks = contents.raid_disks;
    let is_in = |role: &Role| matches!(role, Role::Active(role) if u32::from(*role) < disks);
    // The reshape fills a member that is not in sync as it goes: it has no data of the old geometry.
    if is_incomplete && !is_new || !is_in(&superblock.role()) {
        return None;
    }
    for role in contents.roles.iter_mut().filter(|role| !is_in(role)) {
        *role = Role::Spare;
    }
    let superblock = Superblock::new(contents, one.length).ok()?;
    Some(Claimant { superblock, bitmap: None, ..one.clone() })
}

/// The bytes of the array that may be half moved: superblocks do not vouch for them.
fn critical(new: &Superblock, old: &Superblock, reshape: Reshape, size: u64) -> Option<Range<u64>> {
    let data = |one: &Superblock| -> u64 {
        let parities = match one.level {
            Level::Raid4 | Level::Raid5 => 1,
            Level::Raid6 => 2,
            _ => 0,
        };
        u64::from(one.raid_disks).saturating_sub(parities).max(1)
    };
    let (at, moved) = (reshape.position.min(size), reshape.new_offset.unsigned_abs());
    let (row, old_row) = (at / data(new), at / data(old));
    let chunk = new.chunk.max(old.chunk);
    let is_safe = match data(new) == data(old) {
        true => moved >= chunk && chunk > 0,
        false if reshape.backwards => row.saturating_add(moved) > old_row,
        false => row < old_row.saturating_add(moved),
    };
    let stripe = chunk * data(new) * data(old);
    match (is_safe, reshape.backwards) {
        (true, _) => None,
        // Nothing bounds how far a reshape in place came: with real mdadm superblocks said 0 when 60 % were moved.
        (false, false) if data(new) == data(old) => Some(at..size),
        (false, true) if data(new) == data(old) => Some(0..at),
        (false, false) => Some(at..at.saturating_add(stripe).min(size)),
        (false, true) => Some(at.saturating_sub(stripe)..at),
    }
}

impl Halves {
    /// Takes what the backup file has of the bytes that superblocks do not vouch for.
    fn take_saved(&mut self, saved: &[Section], reshape: Reshape, critical: Option<Range<u64>>) {
        let Some(critical) = critical.filter(|range| !range.is_empty()) else { return };
        let is_needed = |one: &&Section| {
            one.array.end <= self.size
                && match reshape.backwards {
                    true => one.array.start < self.position,
                    false => one.array.end > self.position,
                }
        };
        let mut needed: Vec<Section> = saved.iter().filter(is_needed).cloned().collect();
        needed.sort_by_key(|one| one.array.start);
        needed.dedup_by(|next, last| next.array.start < last.array.end);
        let (Some(first), Some(last)) = (needed.first(), needed.last()) else {
            self.doubts.push(Doubt::Critical { ranges: joined(vec![critical]) });
            return;
        };
        // The reshape came as far as the backup: what is before it has the new geometry, what is behind it the old one.
        let reached = if reshape.backwards { last.array.end } else { first.array.start };
        let unknown = self.position.min(reached)..self.position.max(reached);
        let gaps = needed.windows(2).map(|two| two[0].array.end..two[1].array.start);
        let unknown = joined(gaps.chain([unknown]).collect());
        let unknown: Ranges = unknown.iter().flat_map(|range| outside(range, &needed)).collect();
        if !unknown.is_empty() {
            self.doubts.push(Doubt::Critical { ranges: unknown });
        }
        self.position = reached.min(self.size);
        self.saved = needed;
    }

    /// Returns the expression that reads the array, where `below` and `above` are those of its halves. `path` is the
    /// backup file's.
    #[must_use]
    pub fn expression(&self, below: &str, above: &str, path: &str) -> String {
        let (low, high) = (0..self.position, self.position..self.size);
        let plain = |range: Range<u64>| -> Vec<String> {
            let halves = [(below, &low), (above, &high)].into_iter();
            let of = |(text, window): (&str, &Range<u64>)| {
                let parts = inside(std::slice::from_ref(&range), window);
                parts.into_iter().map(|part| slice_text(text, &part)).collect::<Vec<_>>()
            };
            halves.flat_map(of).collect()
        };
        let mut parts = Vec::new();
        let mut at = 0;
        for one in &self.saved {
            parts.extend(plain(at..one.array.start));
            parts.push(one.expression(path));
            at = one.array.end;
        }
        parts.extend(plain(at..self.size));
        linear_text(&parts)
    }
}

/// The parts of a range that no section has.
fn outside(range: &Range<u64>, sections: &[Section]) -> Ranges {
    let mut left = Vec::new();
    let mut at = range.start;
    for one in sections {
        left.push(at..one.array.start.min(range.end));
        at = at.max(one.array.end);
    }
    left.push(at..range.end);
    joined(left.into_iter().filter(|range| range.start < range.end).collect())
}
