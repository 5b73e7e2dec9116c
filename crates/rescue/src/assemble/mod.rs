//! Assembly by time: which members an array that does not start is read from, and what is then in doubt.
//!
//! ```text
//!   members by events ──▶ those of the last state, as the freshest one's table names them
//!                    ──▶ without which it had failed: in order, until the level can bear the rest
//!                    ──▶ stale ones, the chunks of the write-intent bitmap taken out
//!                           │
//!                           ▼ seats ──▶ expression      doubts: ranges of the array, and why
//! ```
//!
//! The event counts alone do not tell whether a member is stale: a failed array goes on counting. A member without
//! which the array could not run holds everything that was acknowledged, however many events it is behind.
//!
//! Invariants
//! * The result depends on the superblocks, bitmaps and holes alone, not on the order in which they are given.
//! * A member is taken in without a doubt only if nothing can have been written after it left.
//!
//! Deliberately absent: I/O, and members without a superblock.
//!
//! Source: Linux `drivers/md/raid5.c` (`raid5_error`: a failed array takes no writes), `md-bitmap.c`
//! (`md_bitmap_endwrite`: no bit is cleared while a member is missing).

mod agreement;
pub mod backup;
mod doubt;
mod expression;
mod layout;
mod reshape;
mod seats;

use std::ops::Range;

use braid_array::Role;
use braid_array::geometry::Column;
use braid_level::Level;
use braid_level::size::suffice;
use braid_md::{Bitmap, Features, Resync, Role as MdRole, Superblock, ppl};

pub use agreement::Cell;
pub(crate) use agreement::compare;
pub use doubt::{Doubt, OpenError};
pub(crate) use expression::{array_text, linear_text, member_text, slice_text};
pub(crate) use layout::{Layout, inside};
pub use layout::{Ranges, joined};
pub use reshape::{Half, Halves, halves, reshape_of};
pub use seats::{LeftOut, Seat, Standing, WhyLeftOut};

use crate::patient::Patient;
use seats::Seats;

/// A superblock, with all that assembly needs to know of its member.
#[derive(Clone, Debug)]
pub struct Claimant {
    /// The index of the file or device in the case.
    pub member: usize,
    /// Its name in messages.
    pub label: String,
    /// The path of the file or device.
    pub path: String,
    /// The start of the member in it, in bytes.
    pub start: u64,
    /// The length of the member in bytes.
    pub length: u64,
    /// The superblock.
    pub superblock: Superblock,
    /// The member's copy of the array's write-intent bitmap, if it is sound.
    pub bitmap: Option<Bitmap>,
    /// Writes that the member's partial parity log says were under way; `None` without a log that can be read.
    pub logged: Option<Vec<ppl::Entry>>,
    /// The bytes of the file or device that cannot be read, joined.
    pub holes: Ranges,
    /// Equal for members with equal content at both ends.
    pub content: String,
    /// True if the member has no superblock: this one is made up.
    pub is_guessed: bool,
}

/// An array, as it can be read.
#[derive(Clone, Debug)]
pub struct Opening {
    /// The claimant that defines the array: an index.
    pub freshest: usize,
    /// The member of each role.
    pub seats: Vec<Option<Seat>>,
    /// Members that are not used, and why.
    pub left_out: Vec<LeftOut>,
    /// Reasons for which data that are read may be wrong.
    pub doubts: Vec<Doubt>,
    /// Bytes of a missing member that nothing replaces: they cannot be read.
    pub gap: Option<u64>,
    /// The size of the array in bytes.
    pub size: u64,
}

/// Decides how the array of these claimants, which have one UUID, is read. `content`: bytes of what begins with the array, if
/// that is known. From it follows the length of a missing member of a linear array.
///
/// # Errors
/// [`OpenError`]: too few members, a reshape that stopped, a layout that is not known.
///
/// # Panics
/// Without any claimant.
pub fn open(claimants: &[Claimant], content: Option<u64>) -> Result<Opening, OpenError> {
    let mut seats = Seats::of(claimants);
    let freshest = seats.freshest;
    let array = &claimants[freshest].superblock;
    if let Some(reshape) = array.reshape {
        return Err(OpenError::Reshape { position: reshape.position });
    }
    seats.take_stale(claimants);
    if let Some(exchange) = forced(claimants, array, &seats.seats) {
        seats.exchange(claimants, &exchange);
    }
    let Seats { seats, left_out, .. } = seats;
    let missing = |seat: &(usize, &Option<Seat>)| seat.1.is_none();
    let roles: Vec<usize> =
        seats.iter().enumerate().filter(missing).map(|(role, _)| role).collect();
    let gap = gap(claimants, array, &seats, content);
    if gap.is_none() && !suffice(array.level, array.layout, &present(&seats)) {
        return Err(OpenError::TooFew { level: array.level, disks: seats.len(), roles });
    }
    let layout = layout_of(claimants, array, &seats, gap)?;
    let doubts = doubts(claimants, array, &seats, &layout);
    Ok(Opening { freshest, seats, left_out, doubts, gap, size: layout.size() })
}

/// Bytes of the one missing member of an array without redundancy: as many as each of the others has in a raid0, and the rest of
/// its content in a linear array.
fn gap(
    claimants: &[Claimant],
    array: &Superblock,
    seats: &[Option<Seat>],
    content: Option<u64>,
) -> Option<u64> {
    let used = seats.iter().flatten().map(|seat| claimants[seat.claimant].superblock.used());
    let used: Vec<u64> = used.collect();
    if array.level.is_redundant() || used.len() + 1 != seats.len() {
        return None;
    }
    match array.level {
        Level::Linear => {
            // Members have whole chunks.
            let end = content?.checked_next_multiple_of(array.chunk.max(4096))?;
            end.checked_sub(used.iter().sum()).filter(|gap| *gap > 0)
        }
        _ => used.first().copied().filter(|first| used.iter().all(|one| one == first)),
    }
}

/// Returns the claimants without which the array went on: indices.
///
/// # Panics
/// Without any claimant.
#[must_use]
pub fn stale(claimants: &[Claimant]) -> Vec<usize> {
    Seats::of(claimants).stale()
}

/// The places of the bytes of an array that is read from these seats.
fn layout_of(
    claimants: &[Claimant],
    array: &Superblock,
    seats: &[Option<Seat>],
    gap: Option<u64>,
) -> Result<Layout, OpenError> {
    let used = seats.iter().map(|seat| match seat {
        Some(seat) if !array.level.is_redundant() => claimants[seat.claimant].superblock.used(),
        Some(_) => array.component_size,
        None => gap.unwrap_or(array.component_size),
    });
    let used: Vec<u64> = used.collect();
    Layout::new(array.level, array.layout, array.chunk, &used)
        .map_err(|error| OpenError::Layout { why: error.to_string() })
}

impl Opening {
    /// Compares copies, or data and parity, in windows of all regions of the array; with `all`, everywhere. Levels
    /// without redundancy have no cells. `members` are those of the case.
    #[must_use]
    pub fn agreement(&self, claimants: &[Claimant], members: &[&Patient], all: bool) -> Vec<Cell> {
        let array = &claimants[self.freshest].superblock;
        let layout = layout_of(claimants, array, &self.seats, self.gap);
        let cells = layout
            .map(|layout| agreement::agreement(&layout, claimants, &self.seats, members, all));
        cells.unwrap_or_default()
    }
}

impl Opening {
    /// Returns the bytes of the members that have parity, by their indices in the case. There are none without parity, or if
    /// the array has more than `most` stripes.
    #[must_use]
    pub fn parity(&self, claimants: &[Claimant], most: u64) -> Vec<(usize, Ranges)> {
        let array = &claimants[self.freshest].superblock;
        let Ok(Layout::Parity(geometry)) = layout_of(claimants, array, &self.seats, self.gap)
        else {
            return Vec::new();
        };
        let chunk = geometry.chunk();
        let stripes = geometry.member_size() / chunk;
        if stripes > most {
            return Vec::new();
        }
        let of_role = |(role, seat): (usize, &Option<Seat>)| {
            let one = &claimants[seat.as_ref()?.claimant];
            let start = one.start + one.superblock.data_offset;
            let is_parity = |stripe: &u64| {
                !matches!(geometry.column_of(*stripe, Role::nth(role)), Column::Data(_))
            };
            let range = |stripe: u64| start + stripe * chunk..start + (stripe + 1) * chunk;
            Some((one.member, joined((0..stripes).filter(is_parity).map(range).collect())))
        };
        self.seats.iter().enumerate().filter_map(of_role).collect()
    }
}

/// Decides which members are used, whether or not they suffice: the seats, by role, and the others.
///
/// # Panics
/// Without any claimant.
#[must_use]
pub fn seats(claimants: &[Claimant]) -> (Vec<Option<Seat>>, Vec<LeftOut>) {
    let mut seats = Seats::of(claimants);
    seats.take_stale(claimants);
    (seats.seats, seats.left_out)
}

/// For each role, whether there is a member.
fn present(seats: &[Option<Seat>]) -> Vec<bool> {
    seats.iter().map(Option::is_some).collect()
}

/// Returns the doubts about an array that is read from these seats.
fn doubts(
    claimants: &[Claimant],
    array: &Superblock,
    seats: &[Option<Seat>],
    layout: &Layout,
) -> Vec<Doubt> {
    let mut doubts = Vec::new();
    let holes: Vec<Ranges> = seats
        .iter()
        .map(|seat| match seat {
            Some(seat) => seat.holes.clone(),
            None => std::iter::once(0..u64::MAX).collect(),
        })
        .collect();
    let lost = layout.lost(&holes);
    if !lost.is_empty() {
        doubts.push(Doubt::Lost { ranges: lost });
    }
    if array.features.contains(Features::JOURNAL) {
        doubts.push(Doubt::Journal);
    }
    let bitmap = bitmap_of(claimants, array);
    for (role, seat) in seats.iter().enumerate() {
        let Some(seat) = seat else { continue };
        let one = &claimants[seat.claimant];
        let (label, at) = (one.label.clone(), one.superblock.updated.seconds);
        match seat.standing {
            Standing::Stale => doubts.push(Doubt::Stale { label, role, at }),
            Standing::Guessed => doubts.push(Doubt::Guessed { label, role }),
            Standing::Ambiguous => doubts.push(Doubt::Ambiguous { label, role }),
            _ => {}
        }
    }
    // What is computed from parity may be wrong where a write was under way.
    let computed: Vec<usize> = (0..seats.len()).filter(|role| !holes[*role].is_empty()).collect();
    let has_parity = array.level.with_parity().is_some();
    let torn = seats.iter().flatten().map(|seat| &claimants[seat.claimant].superblock);
    let mut torn = torn.filter(|superblock| superblock.resync != Resync::Clean);
    if let (true, false, Some(last)) = (has_parity, computed.is_empty(), torn.next()) {
        let at = torn.map(|one| one.updated.seconds).fold(last.updated.seconds, u64::max);
        let dirty = bitmap.map(dirty_ranges).or_else(|| logged(claimants, seats, layout));
        let ranges = dirty.map(|dirty| {
            let of = |role: &usize| {
                let holes = joined(holes[*role].clone());
                let both = dirty.iter().flat_map(|range| inside(&holes, range)).collect();
                layout.on_member(*role, &joined(both))
            };
            joined(computed.iter().flat_map(of).collect())
        });
        if ranges.as_ref().is_none_or(|ranges| !ranges.is_empty()) {
            doubts.push(Doubt::Torn { at, ranges });
        }
    }
    doubts
}

/// A member that was forced in, and the member that is better.
struct Exchange {
    /// The role whose member was forced in.
    forced: usize,
    /// The claimant that is better, and its role.
    better: (usize, u16),
}

/// Finds a member that was forced in: the array had gone on without it when another one left, which is not used, and without
/// both it had failed. The other one has all that was written until then; the forced one lacks what was written since it
/// failed, and nothing says when that was.
fn forced(claimants: &[Claimant], array: &Superblock, seats: &[Option<Seat>]) -> Option<Exchange> {
    let is_used = |index: &usize| seats.iter().flatten().any(|seat| seat.claimant == *index);
    (0..claimants.len()).filter(|index| !is_used(index)).find_map(|index| {
        let last = &claimants[index].superblock;
        let MdRole::Active(own) = last.role() else { return None };
        // An old copy of a member that is used says nothing new.
        let is_missing = matches!(seats.get(usize::from(own)), Some(None));
        if !is_missing || last.events >= array.events || last.raid_disks != array.raid_disks {
            return None;
        }
        let was_there = |role: &usize| {
            u16::try_from(*role).is_ok_and(|role| last.roles.contains(&MdRole::Active(role)))
        };
        let left = (0..seats.len()).map(|role| was_there(&role) && role != usize::from(own));
        if suffice(array.level, array.layout, &left.collect::<Vec<bool>>()) {
            return None;
        }
        let mut forced = (0..seats.len()).filter(|role| seats[*role].is_some() && !was_there(role));
        let (forced, others) = (forced.next()?, forced.count());
        (others == 0).then_some(Exchange { forced, better: (index, own) })
    })
}

/// The bitmap that has every write since the first member left: the freshest one's.
fn bitmap_of<'a>(claimants: &'a [Claimant], array: &Superblock) -> Option<&'a Bitmap> {
    let is_current = |one: &&Claimant| one.superblock.events == array.events;
    claimants.iter().filter(is_current).find_map(|one| {
        let bitmap = one.bitmap.as_ref()?;
        (bitmap.header.events >= array.events && !bitmap.header.stale).then_some(bitmap)
    })
}

/// The bytes of each member that the logs of all seats say were being written; `None` if one has no log.
fn logged(claimants: &[Claimant], seats: &[Option<Seat>], layout: &Layout) -> Option<Ranges> {
    let Layout::Parity(geometry) = layout else { return None };
    let (chunk, data, size) = (geometry.chunk(), geometry.data(), layout.size());
    let mut rows = Vec::new();
    for seat in seats.iter().flatten() {
        for entry in claimants[seat.claimant].logged.as_ref()? {
            let covered = ppl::covered(entry, chunk, data, size).ok()?;
            rows.push(covered.rows.0..covered.rows.1);
        }
    }
    Some(joined(rows))
}

/// Returns the ranges of the set bits of a bitmap: bytes of each member, of the array for raid10.
fn dirty_ranges(bitmap: &Bitmap) -> Ranges {
    let (chunk, size) = (bitmap.header.chunk_size, bitmap.header.sync_size);
    let mut ranges = Vec::new();
    let mut next = bitmap.next_set(0);
    while let Some(found) = next {
        ranges.push(found * chunk..((found + 1) * chunk).min(size));
        next = bitmap.next_set(found + 1);
    }
    joined(ranges)
}

/// The bytes of its data that a member of this role lacks, by a bitmap that has every write since it left.
fn changed_since(array: &Superblock, bitmap: &Bitmap, role: usize) -> Option<Ranges> {
    let dirty = dirty_ranges(bitmap);
    if array.level != Level::Raid10 {
        return Some(dirty);
    }
    let used = vec![array.component_size; array.raid_disks as usize];
    let layout = Layout::new(array.level, array.layout, array.chunk, &used).ok()?;
    Some(layout.of_array(role, &dirty))
}

/// Moves the parts of `holes` that lie in a member's data to where they are in the data.
fn in_data(one: &Claimant, used: u64) -> Ranges {
    let start = one.start + one.superblock.data_offset;
    let window: Range<u64> = start..start.saturating_add(used);
    let moved = inside(&one.holes, &window).into_iter();
    moved.map(|hole| hole.start - start..hole.end - start).collect()
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "these are ranges of bytes")]
mod tests;
