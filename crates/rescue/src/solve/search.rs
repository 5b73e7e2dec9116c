//! Searches the hypotheses that explain most: a first look over all patterns, then those that promise most.

use std::collections::HashMap;

use braid_level::Level;

use super::answer::Hypothesis;
use super::build::{build, linear, mirror, zoned};
use super::candidates;
use super::map::Map;
use super::vote::{cells, promise};

pub(super) use super::build::Grounds;

/// Patterns of a level and layout that are built after the first look.
const FINALISTS: usize = 10;

/// Builds the hypotheses that explain most, for one place at which the main structure may begin. The best is first.
pub(super) fn search(grounds: &Grounds<'_>) -> Vec<Hypothesis> {
    let sample = grounds.main.sample(grounds.question.sizes.len());
    let mut promising: Vec<(u64, Map)> = candidates::maps(grounds.question)
        .into_iter()
        .map(|map| (promise(&map, cells(&map, &sample, grounds.base)), map))
        .collect();
    // Few blocks promise as much with many patterns: those with all members, and none missing, are first.
    let there = grounds.question.sizes.len();
    promising.sort_by_key(|(promise, map)| {
        (std::cmp::Reverse(*promise), map.pattern.members.abs_diff(there))
    });
    let mut found: Vec<Hypothesis> = mirror(grounds).into_iter().chain(linear(grounds)).collect();
    let mut counts: HashMap<(Level, u32), usize> = HashMap::new();
    for (_, map) in &promising {
        let count = counts.entry((map.pattern.level, map.pattern.layout)).or_default();
        *count += 1;
        found.extend((*count <= FINALISTS).then(|| build(map, grounds)).flatten());
    }
    let zones: Vec<Hypothesis> = found.iter().filter_map(|one| zoned(one, grounds)).collect();
    found.extend(zones);
    found.sort_by_key(|one| std::cmp::Reverse(one.score()));
    found
}
