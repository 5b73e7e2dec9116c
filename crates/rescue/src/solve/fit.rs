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

/// Number of blocks on a member that say whether its role is right.
const LEAST: u32 = 4;

/// Returns the roles on whose members most blocks do not agree with the others; `None` without evidence, and for linear
/// arrays. Only blocks of the structure with the most blocks are compared.
#[must_use]
pub fn contradicted(question: &Question, given: &Given) -> Option<Vec<usize>> {
    let anchor = Evidence::new(question).main_anchor()?;
    let map = Map::new(given.pattern).filter(|map| map.pattern.level != Level::Linear)?;
    let sections = map.sections();
    let chunk = given.pattern.chunk.max(1);
    let distance = given.component / sections / chunk * chunk;
    let mut starts: Vec<BTreeMap<u64, u32>> = vec![BTreeMap::new(); given.seats.len()];
    for clue in question.clues.iter().filter(|clue| clue.anchor == anchor) {
        let is_here =
            |seat: &Option<(usize, u64)>| seat.is_some_and(|(member, _)| member == clue.member);
        let Some(role) = given.seats.iter().position(is_here) else { continue };
        let offset = given.seats[role].map_or(0, |(_, offset)| offset);
        let Some(at) = clue.at.checked_sub(offset).filter(|at| *at < given.component) else {
            continue;
        };
        let (section, row) = match sections {
            1 => (0, at),
            _ => (at.checked_div(distance)?, at % distance),
        };
        let Some(owner) = map.owner(Spot { role, row, section }) else { continue };
        // A start before the array's is a contradiction, too.
        *starts[role].entry(owner.wrapping_sub(clue.place)).or_default() += 1;
    }
    let mut sum: BTreeMap<u64, u32> = BTreeMap::new();
    for (start, count) in starts.iter().flatten() {
        *sum.entry(*start).or_default() += count;
    }
    let (start, _) = sum.into_iter().max_by_key(|(_, count)| *count)?;
    let is_contradicted = |role: &BTreeMap<u64, u32>| {
        let all: u32 = role.values().sum();
        all >= LEAST && role.get(&start).copied().unwrap_or(0) * 2 < all
    };
    let roles = starts.iter().enumerate().filter(|(_, role)| is_contradicted(role));
    Some(roles.map(|(role, _)| role).collect())
}
