//! The start of a member in its file or device, from the place of its data.

use braid_md::Superblock;
use braid_probe::read_table;

use super::Part;
use crate::Examined;
use crate::scan::{How, Place};

/// A member of the array, as a part of the file or device that it lies on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member<'a> {
    /// Its place.
    pub(super) place: Place,
    /// The superblock that is left of it, if there is one.
    pub(super) superblock: Option<&'a Superblock>,
    /// True if a sound partition table lies where its superblock belongs.
    pub(super) is_over_table: bool,
}

/// Finds the member of which `part` is the data: by a superblock that is left, by a partition that has all of it and
/// room for a superblock, or as the whole file or device.
pub(super) fn member<'a>(examined: &'a Examined, part: &Part) -> Member<'a> {
    let has_data = |place: &Place| {
        place.start <= part.start && part.end() <= place.start.saturating_add(place.length)
    };
    let left = examined.findings.superblocks.iter();
    let left = left.filter_map(|found| Some((found.place, found.result.as_ref().ok()?)));
    let left = left.filter(|(place, _)| has_data(place));
    // The superblock that names this start of the data, then one where a member is; the newest of them.
    let best = left.max_by_key(|(place, superblock)| {
        let is_exact = place.start.checked_add(superblock.data_offset) == Some(part.start);
        let is_placed = place.how != How::Displaced;
        (is_exact, is_placed, superblock.created.seconds, superblock.events)
    });
    if let Some((place, superblock)) = best {
        return Member { place, superblock: Some(superblock), is_over_table: false };
    }
    let size = examined.patient.size();
    let whole = Place { start: 0, length: size, how: How::Whole };
    let Ok(Some(Ok(table))) = read_table(&examined.patient) else {
        return Member { place: whole, superblock: None, is_over_table: false };
    };
    const ROOM: u64 = 8 << 10;
    let mut partitions = table.iter().map(|one| {
        let how = How::Partition(one.number);
        Place { start: one.start, length: one.length, how }
    });
    let partition = partitions
        .find(|place| has_data(place) && part.start.saturating_sub(place.start) >= ROOM)
        .filter(|place| place.start.saturating_add(place.length) <= size);
    let place = partition.unwrap_or(whole);
    Member { place, superblock: None, is_over_table: partition.is_none() }
}
