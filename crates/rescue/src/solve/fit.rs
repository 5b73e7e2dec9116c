//! Compares a geometry that is given, as superblocks name it, with blocks that say where they belong.
//!
//! ```text
//!   block on a member ──geometry──▶ byte of the array ── minus its place in the file system ──▶ a start
//! ```
//!
//! If the geometry is right, all blocks of a file system agree where it starts, wherever that is.

use std::collections::BTreeMap;

use braid_level::Level;

use super::evidence::Evidence;
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

/// The blocks that agree with a geometry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fit {
    /// Number of blocks that agree where their file system starts.
    pub agree: u32,
    /// Number of blocks that lie on data of the array.
    pub all: u32,
    /// Roles most of whose blocks do not agree.
    pub contradicted: Vec<usize>,
}

/// Number of blocks on a member that say whether its role is right.
const LEAST: u32 = 4;

/// Compares the blocks of the structure with the most blocks; `None` without evidence, and for linear arrays.
#[must_use]
pub fn fit(question: &Question, given: &Given) -> Option<Fit> {
    let anchor = Evidence::new(question).main_anchor()?;
    let map = Map::new(given.pattern).filter(|map| map.pattern.level != Level::Linear)?;
    let sections = map.sections();
    let distance = (given.component / sections).max(1);
    let distance =
        if sections > 1 { distance / given.pattern.chunk * given.pattern.chunk } else { distance };
    let mut starts: Vec<BTreeMap<u64, u32>> = vec![BTreeMap::new(); given.seats.len()];
    for clue in question.clues.iter().filter(|clue| clue.anchor == anchor) {
        let is_here =
            |seat: &Option<(usize, u64)>| seat.is_some_and(|(member, _)| member == clue.member);
        let Some(role) = given.seats.iter().position(is_here) else { continue };
        let offset = given.seats[role].map_or(0, |(_, offset)| offset);
        let Some(at) = clue.at.checked_sub(offset).filter(|at| *at < given.component) else {
            continue;
        };
        let (section, row) = if sections > 1 { (at / distance, at % distance) } else { (0, at) };
        let Some(owner) = map.owner(Spot { role, row, section }) else { continue };
        // A start before the array's is a contradiction, too.
        *starts[role].entry(owner.wrapping_sub(clue.place)).or_default() += 1;
    }
    let mut sum: BTreeMap<u64, u32> = BTreeMap::new();
    for (start, count) in starts.iter().flatten() {
        *sum.entry(*start).or_default() += count;
    }
    let (start, agree) = sum.into_iter().max_by_key(|(_, count)| *count)?;
    let all_of = |role: &BTreeMap<u64, u32>| role.values().sum::<u32>();
    let is_contradicted = |role: &BTreeMap<u64, u32>| {
        let all = all_of(role);
        all >= LEAST && role.get(&start).copied().unwrap_or(0) * 2 < all
    };
    let contradicted = starts.iter().enumerate().filter(|(_, role)| is_contradicted(role));
    Some(Fit {
        agree,
        all: starts.iter().map(all_of).sum(),
        contradicted: contradicted.map(|(role, _)| role).collect(),
    })
}
