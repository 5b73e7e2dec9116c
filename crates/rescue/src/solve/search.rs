//! Searches the hypotheses that explain most: a first look over all patterns, then those that promise most.

use braid_level::Level;

use super::answer::Hypothesis;
use super::build::{build, linear, mirror, zoned};
use super::candidates;
use super::map::Map;
use super::vote::{cells, promise};

pub(super) use super::build::Grounds;

/// Patterns of a level that are built after the first look.
const FINALISTS: usize = 24;

/// Builds the hypotheses that explain most, for one place at which the main structure may begin. The best is first.
pub(super) fn search(grounds: &Grounds<'_>) -> Vec<Hypothesis> {
    let sample = grounds.main.sample(grounds.question.sizes.len());
    let mut promising: Vec<(u64, Map)> = candidates::maps(grounds.question)
        .into_iter()
        .map(|map| (promise(&map, cells(&map, &sample, grounds.base)), map))
        .collect();
    promising.sort_by_key(|(promise, _)| std::cmp::Reverse(*promise));
    let mut found: Vec<Hypothesis> = mirror(grounds).into_iter().chain(linear(grounds)).collect();
    for level in Level::ALL {
        let of_level = promising.iter().filter(|(_, map)| map.pattern.level == level);
        found.extend(of_level.take(FINALISTS).filter_map(|(_, map)| build(map, grounds)));
    }
    let zones: Vec<Hypothesis> = found.iter().filter_map(|one| zoned(one, grounds)).collect();
    found.extend(zones);
    found.sort_by_key(|one| std::cmp::Reverse(one.score()));
    found
}
