//! Compares a geometry that is given, as superblocks name it, with blocks that say where they belong.
//!
//! ```text
//!   block on a member ──geometry──▶ byte of the array ── minus its place in the file system ──▶ a start
//! ```
//!
//! If the geometry is right, all blocks of a file system agree where it starts, wherever that is. A place of which there
//! are copies elsewhere, as in a journal, agrees if one of its blocks does.

use std::collections::{BTreeMap, BTreeSet};

use braid_level::Level;

use super::evidence::{Evidence, Sighting};
use super::map::{Map, Pattern, Spot};
use super::question::Question;

/// A geometry that is not in question.
#[derive(Clone, Debug)]
pub struct Given {
    /// The geometry.
    pub pattern: Pattern,
    /// For each role its member, and the bytes from the member's start to its data; `None` for a missing one.
    pub seats: Vec<Option<(usize, u64)>>,
    /// Bytes of data of the smallest member.
    pub component: u64,
}

/// The agreement of a geometry with the blocks of one structure: the one with the most blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fit {
    /// The structure: an index of the question's anchors.
    pub anchor: usize,
    /// Roles on whose members most blocks do not agree with the others, or all roles with blocks if there is no start.
    pub contradicted: Vec<usize>,
    /// Roles on whose members blocks of it lie.
    pub roles: Vec<usize>,
    /// The byte of the array at which two thirds of its places say that it starts; `None` if fewer agree.
    pub start: Option<u64>,
    /// Number of its places that were seen on data of the array.
    pub places: usize,
    /// True if blocks prove the member of each role but one, which is left for the last member.
    pub is_proved: bool,
}

/// Bytes of an array at which a structure starts, also where the table of its partitions is lost.
pub(crate) const STARTS: [u64; 3] = [0, 63 * 512, 1 << 20];

impl Fit {
    /// Returns true if the blocks belong elsewhere.
    #[must_use]
    pub fn contradicts(&self) -> bool {
        !self.contradicted.is_empty() || self.start.is_none_or(|start| !STARTS.contains(&start))
    }
}

/// Number of blocks on a member that say whether its role is right.
const LEAST: u32 = 4;

/// Compares a geometry with the structure that has the most blocks; `None` without evidence, and for linear arrays. Blocks
/// that all lie before or behind the data of their members agree with nothing.
#[must_use]
pub fn fit(question: &Question, given: &Given) -> Option<Fit> {
    let evidence = Evidence::new(question);
    let anchor = evidence.main_anchor()?;
    let map = Map::new(given.pattern).filter(|map| map.pattern.level != Level::Linear)?;
    let located = |sighting: &Sighting| located(given, &map, sighting);
    // The role and the start of each sighting, by place. A start before the array's is a contradiction, too.
    let of_anchor = evidence.places.iter().filter(|place| place.anchor == anchor);
    let starts = of_anchor.map(|place| {
        let located = evidence.sightings(place).iter().filter_map(located);
        located.map(|(role, at)| (role, at.wrapping_sub(place.at))).collect()
    });
    let starts: Vec<Vec<(usize, u64)>> = starts.filter(|one: &Vec<_>| !one.is_empty()).collect();
    let (mut by_place, places) = (BTreeMap::<u64, usize>::new(), starts.len());
    for place in &starts {
        let each: BTreeSet<u64> = place.iter().map(|(_, start)| *start).collect();
        each.into_iter().for_each(|start| *by_place.entry(start).or_default() += 1);
    }
    let Some((start, agreeing)) = by_place.into_iter().max_by_key(|(_, count)| *count) else {
        return outside(&evidence, anchor, given);
    };
    let mut votes = vec![Votes::default(); given.seats.len()];
    for place in &starts {
        let agrees = place.iter().any(|(_, one)| *one == start);
        for (role, one) in place {
            let vote = &mut votes[*role];
            vote.agreeing += u32::from(*one == start);
            // Beside one that agrees, the others are copies.
            vote.against += u32::from(!agrees);
            vote.copies += u32::from(agrees && *one != start);
        }
    }
    let is_majority = agreeing * 3 >= places * 2;
    let outvoted =
        |role: &Votes, others: u32| role.agreeing + others >= LEAST && role.agreeing < others;
    // A copy contradicts nothing, and proves nothing: parity over zeroes is one, too.
    let is_doubtful = |role: &Votes| outvoted(role, role.against + role.copies);
    let is_contradicted = |role: &Votes| match is_majority {
        true => outvoted(role, role.against),
        false => role.all() > 0,
    };
    let roles = |is: &dyn Fn(&Votes) -> bool| -> Vec<usize> {
        votes.iter().enumerate().filter(|(_, one)| is(one)).map(|(role, _)| role).collect()
    };
    let contradicted = roles(&is_contradicted);
    let proved = votes.iter().filter(|role| role.agreeing > 0).count();
    let present = given.seats.iter().flatten().count();
    Some(Fit {
        anchor,
        start: is_majority.then_some(start),
        roles: roles(&|role| role.all() > 0),
        places,
        is_proved: is_majority && !votes.iter().any(is_doubtful) && proved + 1 >= present,
        contradicted,
    })
}

/// Blocks on the member of a role.
#[derive(Clone, Copy, Default)]
struct Votes {
    /// Those that agree where the structure starts.
    agreeing: u32,
    /// Those of places of which no block agrees.
    against: u32,
    /// Copies of blocks that agree, as in a journal.
    copies: u32,
}

impl Votes {
    fn all(&self) -> u32 {
        self.agreeing + self.against + self.copies
    }
}

/// The fit of blocks that all lie outside of the array's data on its members: none agrees. `None` if there are none.
fn outside(evidence: &Evidence, anchor: usize, given: &Given) -> Option<Fit> {
    let of_anchor = evidence.places.iter().filter(|place| place.anchor == anchor);
    let seen: Vec<&Sighting> = of_anchor.flat_map(|place| evidence.sightings(place)).collect();
    let has_blocks = |seat: &Option<(usize, u64)>| {
        seat.is_some_and(|(member, offset)| {
            let data = offset..offset.saturating_add(given.component);
            seen.iter().any(|one| one.member == member && !data.contains(&one.at))
        })
    };
    let seats = given.seats.iter().enumerate();
    let roles: Vec<usize> =
        seats.filter(|(_, seat)| has_blocks(seat)).map(|(role, _)| role).collect();
    (!roles.is_empty()).then(|| Fit {
        anchor,
        contradicted: roles.clone(),
        roles,
        start: None,
        places: 0,
        is_proved: false,
    })
}

/// The role of a block's member, and the byte of the array on which it lies; `None` for parity and unused bytes.
fn located(given: &Given, map: &Map, sighting: &Sighting) -> Option<(usize, u64)> {
    let is_here = |seat: &Option<(usize, u64)>| seat.is_some_and(|one| one.0 == sighting.member);
    let role = given.seats.iter().position(is_here)?;
    let offset = given.seats[role].map_or(0, |(_, offset)| offset);
    let at = sighting.at.checked_sub(offset).filter(|at| *at < given.component)?;
    let sections = map.sections();
    let chunk = given.pattern.chunk.max(1);
    let distance = given.component / sections / chunk * chunk;
    let (section, row) = match sections {
        1 => (0, at),
        _ => (at.checked_div(distance)?, at % distance),
    };
    Some((role, map.owner(Spot { role, row, section })?))
}
