//! Places of the bytes of members in their array, and the bytes that are lost.
//!
//! ```text
//!   member 0  ├──────▒▒▒▒────────┤        one hole in a row of a raid5: computed from the others
//!   member 1  ├────────▒▒▒▒──────┤                       ▒▒ where two overlap: lost
//!   member 2  ├──────────────────┤
//! ```

use std::ops::Range;

use braid_array::geometry::{Column, Linear, Raid0, Raid1, Raid10, Raid456};
use braid_array::{ArrayByte, Geometry, GeometryError, MemberByte, Mirrored, Role, Run};
use braid_level::{Level, ParityLayout, Raid0Layout, Raid10Layout};

/// Ranges of bytes, in order, that do not touch.
pub type Ranges = Vec<Range<u64>>;

/// Sorts ranges and joins those that touch; empty ones are dropped.
#[must_use]
pub fn joined(mut ranges: Ranges) -> Ranges {
    ranges.retain(|range| !range.is_empty());
    ranges.sort_by_key(|range| range.start);
    let mut joined: Ranges = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

/// The parts of `ranges` inside `window`.
pub(crate) fn inside(ranges: &[Range<u64>], window: &Range<u64>) -> Ranges {
    let cut = |range: &Range<u64>| range.start.max(window.start)..range.end.min(window.end);
    ranges.iter().map(cut).filter(|range| !range.is_empty()).collect()
}

/// The places of an array's bytes.
pub(crate) enum Layout {
    Plain(Box<dyn Geometry>),
    Mirrored(Box<dyn Mirrored>),
    Parity(Raid456),
}

impl Layout {
    /// Returns the layout of an array that uses `used` bytes of each member, in the order of roles.
    pub(crate) fn new(
        level: Level,
        number: u32,
        chunk: u64,
        used: &[u64],
    ) -> Result<Layout, GeometryError> {
        const BLOCK: u32 = 512;
        let (least, count) = (used.iter().copied().min().unwrap_or(0), used.len());
        Ok(match level {
            Level::Linear => Layout::Plain(Box::new(Linear::new(used, BLOCK)?)),
            Level::Raid0 => {
                let layout = Raid0Layout::from_number(number).unwrap_or_default();
                Layout::Plain(Box::new(Raid0::new(used, chunk, layout, BLOCK)?))
            }
            Level::Raid1 => Layout::Mirrored(Box::new(Raid1::new(least, count)?)),
            Level::Raid10 => {
                let layout = Raid10Layout::from_number(number)?;
                Layout::Mirrored(Box::new(Raid10::new(least, count, chunk, layout)?))
            }
            Level::Raid4 | Level::Raid5 | Level::Raid6 => {
                let level = level.with_parity().expect("a level with parity");
                let layout = ParityLayout::from_number(level, number)?;
                Layout::Parity(Raid456::new(least, count, chunk, level, layout)?)
            }
        })
    }

    /// The size of the array in bytes.
    pub(crate) fn size(&self) -> u64 {
        match self {
            Layout::Plain(geometry) => geometry.size(),
            Layout::Mirrored(geometry) => geometry.size(),
            Layout::Parity(geometry) => Geometry::size(geometry),
        }
    }

    /// The bytes of the array that cannot be read, where `holes` of each role cannot.
    pub(super) fn lost(&self, holes: &[Ranges]) -> Ranges {
        match self {
            Layout::Parity(geometry) => {
                let lost = crowded(holes, geometry.parities());
                let of = |(range, roles): &(Range<u64>, Vec<usize>)| -> Ranges {
                    roles.iter().flat_map(|role| in_stripes(geometry, *role, range)).collect()
                };
                joined(lost.iter().flat_map(of).collect())
            }
            Layout::Plain(geometry) => {
                let locate = |at, _| geometry.locate(at);
                in_all_copies(&locate, 1, holes, 0..geometry.size())
            }
            Layout::Mirrored(geometry) => {
                let locate = |at, copy| geometry.locate(at, copy);
                // Only what the first role with a hole of its own lacks can be lost on all.
                let whole = 0..geometry.size();
                in_all_copies(&locate, geometry.copies(), holes, whole)
            }
        }
    }

    /// The bytes of the array that lie on `ranges` of the member with this role.
    pub(super) fn on_member(&self, role: usize, ranges: &[Range<u64>]) -> Ranges {
        match self {
            Layout::Parity(geometry) => {
                joined(ranges.iter().flat_map(|range| in_stripes(geometry, role, range)).collect())
            }
            Layout::Plain(_) | Layout::Mirrored(_) => Vec::new(),
        }
    }

    /// The bytes of the member with this role on which `ranges` of the array lie.
    pub(super) fn of_array(&self, role: usize, ranges: &[Range<u64>]) -> Ranges {
        let Layout::Mirrored(geometry) = self else { return Vec::new() };
        let mut found = Vec::new();
        for range in inside(ranges, &(0..geometry.size())) {
            for copy in 0..geometry.copies() {
                let mut at = range.start;
                while at < range.end {
                    let run = geometry.locate(ArrayByte::new(at), copy);
                    let length = run.len.min(range.end - at);
                    if run.role.index() == role {
                        found.push(run.offset.get()..run.offset.get() + length);
                    }
                    at += length;
                }
            }
        }
        joined(found)
    }
}

/// The ranges of members in which more than `most` roles have a hole, with these roles.
fn crowded(holes: &[Ranges], most: usize) -> Vec<(Range<u64>, Vec<usize>)> {
    let mut edges: Vec<u64> =
        holes.iter().flatten().flat_map(|range| [range.start, range.end]).collect();
    edges.sort_unstable();
    edges.dedup();
    let mut next = vec![0; holes.len()];
    let mut crowded = Vec::new();
    for pair in edges.windows(2) {
        let range = pair[0]..pair[1];
        let mut roles = Vec::new();
        for (role, holes) in holes.iter().enumerate() {
            while holes.get(next[role]).is_some_and(|hole| hole.end <= range.start) {
                next[role] += 1;
            }
            if holes.get(next[role]).is_some_and(|hole| hole.start <= range.start) {
                roles.push(role);
            }
        }
        if roles.len() > most {
            crowded.push((range, roles));
        }
    }
    crowded
}

/// The bytes of the array whose data lie on a range of one member.
fn in_stripes(geometry: &Raid456, role: usize, range: &Range<u64>) -> Ranges {
    let (chunk, width) = (geometry.chunk(), Geometry::stripe(geometry));
    let mut found = Vec::new();
    let mut at = range.start;
    let end = range.end.min(geometry.member_size());
    while at < end {
        let stripe = geometry.stripe_of_row(MemberByte::new(at));
        let rows = geometry.rows_of_stripe(stripe);
        let stop = rows.end().get().min(end);
        if let Column::Data(index) = geometry.column_of(stripe, Role::nth(role)) {
            let start = stripe * width + index as u64 * chunk + (at - rows.offset.get());
            found.push(start..start + (stop - at));
        }
        at = stop;
    }
    found
}

/// The parts of `whole` each copy of which lies in a hole.
fn in_all_copies(
    locate: &dyn Fn(ArrayByte, usize) -> Run,
    copies: usize,
    holes: &[Ranges],
    whole: Range<u64>,
) -> Ranges {
    if holes.iter().all(Vec::is_empty) {
        return Vec::new();
    }
    let mut lost = vec![whole];
    for copy in 0..copies {
        let mut still = Vec::new();
        for range in lost {
            let mut at = range.start;
            while at < range.end {
                let run = locate(ArrayByte::new(at), copy);
                let length = run.len.min(range.end - at);
                let there = run.offset.get()..run.offset.get() + length;
                let holes = &holes[run.role.index()];
                let first = holes.partition_point(|hole| hole.end <= there.start);
                let hit = holes[first..].iter().take_while(|hole| hole.start < there.end);
                still.extend(hit.map(|hole| {
                    let start = hole.start.max(there.start) - there.start + at;
                    start..hole.end.min(there.end) - there.start + at
                }));
                at += length;
            }
        }
        lost = joined(still);
    }
    lost
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "these are ranges of bytes")]
mod tests {
    use super::*;

    const CHUNK: u64 = 4096;

    #[test]
    fn what_one_parity_cannot_give_is_lost() {
        // Left-symmetric: the first stripe has data 0, data 1, P.
        let layout = Layout::new(Level::Raid5, 2, CHUNK, &[4 * CHUNK; 3]).expect("a raid5");
        assert_eq!(layout.size(), 8 * CHUNK);
        let whole = 0..4 * CHUNK;
        let lost = |holes: [Ranges; 3]| layout.lost(&holes);
        assert_eq!(lost([vec![whole.clone()], vec![], vec![]]), []);
        assert_eq!(lost([vec![0..512], vec![512..1024], vec![]]), []);
        assert_eq!(lost([vec![0..1024], vec![512..1536], vec![]]), [512..1024, 4608..5120]);
        // Data that is there is not lost with its parity.
        assert_eq!(lost([vec![0..1024], vec![], vec![512..1536]]), [512..1024]);
        assert_eq!(layout.on_member(2, &[0..CHUNK]), []);
        assert_eq!(layout.on_member(2, &[CHUNK..CHUNK + 512]), [2 * CHUNK..2 * CHUNK + 512]);
    }

    #[test]
    fn what_all_copies_lack_is_lost() {
        let layout = Layout::new(Level::Raid10, 0x102, CHUNK, &[4 * CHUNK; 4]).expect("a raid10");
        let lost = |holes: [Ranges; 4]| layout.lost(&holes);
        let whole = vec![0..4 * CHUNK];
        assert_eq!(lost([whole.clone(), vec![], whole.clone(), vec![]]), []);
        assert_eq!(lost([whole.clone(), vec![512..1024], vec![], vec![]]), [512..1024]);
        assert_eq!(layout.of_array(1, &[0..512, 2 * CHUNK..3 * CHUNK]), [0..512, CHUNK..2 * CHUNK]);
        let plain = Layout::new(Level::Raid0, 2, CHUNK, &[4 * CHUNK; 2]).expect("a raid0");
        assert_eq!(plain.lost(&[vec![], vec![0..512]]), [CHUNK..CHUNK + 512]);
    }
}
