//! The vote: each sighting says for each pattern which role its member has, and where the member's data begin.
//!
//! ```text
//!   a sighting at 1.5 MiB of member 2, which says that it belongs to 3 MiB of the array;
//!   by the pattern, that is role 1, row 0.5 MiB   ⇒   a vote for the cell (role 1, member 2, data from 1 MiB on)
//! ```
//!
//! With the right pattern, all sightings of a member vote for one cell; with a wrong one they scatter. A place has
//! one vote in a cell, however often it was seen.

use std::collections::BTreeMap;

use super::assign::{Assignment, assign};
use super::evidence::Evidence;
use super::map::Map;

/// Votes for one role of a member, and one data offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    pub role: usize,
    pub member: usize,
    /// Bytes from the member's start to its data.
    pub data_offset: u64,
    /// Number of places that voted for it.
    pub votes: u32,
    /// Number of places that were seen where the cell has parity, which may equal data.
    pub echoes: u32,
}

impl Cell {
    /// All that speaks for it.
    pub(super) fn support(&self) -> u32 {
        self.votes + self.echoes
    }
}

const SECTOR: u64 = 512;
/// Cells of a member that may be those of its first copies, or of its far ones.
const OF_MEMBER: usize = 16;
const MEMBER_BITS: u32 = 12;
const SECTOR_BITS: u32 = 42;

/// Returns all cells with at least one vote of section 0, in the order of role, member, offset. `base` is where
/// the structure of the evidence begins in the array.
pub(super) fn cells(map: &Map, evidence: &Evidence, base: u64) -> Vec<Cell> {
    let mut votes: Vec<u64> = Vec::with_capacity(evidence.places.len() * 2);
    let mut spots = Vec::new();
    let has_copies = map.copies() > 1;
    for place in &evidence.places {
        map.spots(base + place.at, &mut spots);
        let direct = spots.len();
        map.echoes(base + place.at, &mut spots);
        for (index, spot) in spots.iter().enumerate().filter(|(_, spot)| spot.section == 0) {
            // A clone of a member says nothing new, and has no role of its own where there are no copies.
            let sightings = evidence.sightings(place).iter();
            for sighting in sightings.filter(|one| has_copies || !evidence.is_clone(one.member)) {
                let Some(offset) = sighting.at.checked_sub(spot.row) else { continue };
                let sector = offset / SECTOR;
                if offset % SECTOR == 0
                    && sector >> SECTOR_BITS == 0
                    && sighting.member >> MEMBER_BITS == 0
                {
                    let holder = (spot.role as u64) << MEMBER_BITS | sighting.member as u64;
                    votes.push((holder << SECTOR_BITS | sector) << 1 | u64::from(index >= direct));
                }
            }
        }
    }
    votes.sort_unstable();
    let cell = |run: &[u64]| {
        let (holder, sector) = (run[0] >> 1 >> SECTOR_BITS, run[0] >> 1 & ((1 << SECTOR_BITS) - 1));
        let direct = run.partition_point(|vote| vote & 1 == 0);
        Cell {
            role: (holder >> MEMBER_BITS) as usize,
            member: (holder & ((1 << MEMBER_BITS) - 1)) as usize,
            data_offset: sector * SECTOR,
            votes: u32::try_from(direct).unwrap_or(u32::MAX),
            echoes: u32::try_from(run.len() - direct).unwrap_or(u32::MAX),
        }
    };
    votes.chunk_by(|one, other| one >> 1 == other >> 1).map(cell).collect()
}

/// Returns an estimate of the number of places that the pattern explains, with the best member for each role. For
/// patterns with copies it counts a place as explained in part if some of its copies are.
pub(super) fn promise(map: &Map, mut cells: Vec<Cell>) -> u64 {
    cells.sort_unstable_by_key(|cell| std::cmp::Reverse(cell.votes));
    let (mut roles, mut members) = (vec![false; map.pattern.members], Vec::new());
    let mut total = 0;
    for cell in cells {
        if members.len() <= cell.member {
            members.resize(cell.member + 1, false);
        }
        if !roles[cell.role] && !members[cell.member] {
            (roles[cell.role], members[cell.member]) = (true, true);
            total += u64::from(cell.votes);
        }
    }
    total / (map.copies() as u64 / map.sections())
}

/// Adds to each cell the votes for the far copies that its member has by the same offset. A far copy, taken for a first
/// one, votes for another role and for an offset that is larger by the distance of the sections.
pub(super) fn with_far_copies(map: &Map, cells: Vec<Cell>) -> Vec<Cell> {
    let from = map.roles_of_sections();
    let votes: BTreeMap<(usize, usize, u64), u32> =
        cells.iter().map(|cell| ((cell.role, cell.member, cell.data_offset), cell.votes)).collect();
    let mut best = cells;
    best.sort_unstable_by_key(|cell| (cell.member, std::cmp::Reverse(cell.votes)));
    let of_members = best.chunk_by(|one, next| one.member == next.member);
    let best: Vec<&[Cell]> = of_members.map(|cells| &cells[..cells.len().min(OF_MEMBER)]).collect();
    let mut distances: BTreeMap<u64, u32> = BTreeMap::new();
    for (first, far) in best
        .iter()
        .flat_map(|cells| cells.iter().flat_map(|one| cells.iter().map(move |far| (one, far))))
    {
        let distance = far.data_offset.saturating_sub(first.data_offset);
        let is_copy = far.role == from[1][first.role];
        if is_copy && distance > 0 && distance % map.pattern.chunk == 0 {
            *distances.entry(distance).or_default() += first.votes.min(far.votes);
        }
    }
    let best: Vec<Cell> = best.into_iter().flatten().copied().collect();
    let Some((distance, _)) = distances.into_iter().max_by_key(|&(_, votes)| votes) else {
        return best;
    };
    let joined = |cell: Cell| {
        let of = |(section, roles): (u64, &Vec<usize>)| {
            votes.get(&(roles[cell.role], cell.member, cell.data_offset + section * distance))
        };
        Cell { votes: (0..).zip(&from).filter_map(of).sum(), ..cell }
    };
    best.into_iter().map(joined).collect()
}

/// Seats members in roles so that as many votes as possible agree. Of equal ones, the offset that most cells have
/// is preferred. Returns the cell of each role that has one.
pub(super) fn elect(map: &Map, cells: &[Cell], members: usize) -> Vec<Option<Cell>> {
    let common = common_offset(cells);
    let weight = |cell: &Cell| {
        let votes = i64::from(cell.votes) * 64 + i64::from(cell.echoes) * 63;
        votes + i64::from(Some(cell.data_offset) == common)
    };
    let roles = map.pattern.members;
    let mut best: Vec<Vec<Option<Cell>>> = vec![vec![None; members]; roles];
    for cell in cells {
        let place = &mut best[cell.role][cell.member];
        if place.is_none_or(|one| weight(&one) < weight(cell)) {
            *place = Some(*cell);
        }
    }
    let weights: Assignment = best
        .iter()
        .map(|row| row.iter().map(|cell| cell.as_ref().map_or(0, weight)).collect())
        .collect();
    let seated = assign(&weights);
    seated.into_iter().zip(best).map(|(member, row)| row[member?]).collect()
}

/// The data offset with the most votes.
pub(super) fn common_offset(cells: &[Cell]) -> Option<u64> {
    let mut offsets: Vec<(u64, u32)> =
        cells.iter().map(|cell| (cell.data_offset, cell.support())).collect();
    offsets.sort_unstable();
    let sum = |run: &[(u64, u32)]| {
        (run.iter().map(|(_, votes)| u64::from(*votes)).sum::<u64>(), run[0].0)
    };
    offsets.chunk_by(|one, other| one.0 == other.0).map(sum).max().map(|(_, offset)| offset)
}
