//! Finds a reshape that stopped: two geometries, and where they meet.
//!
//! ```text
//!   array      ├───── below: one geometry ──────┼───── above: another ─────┤
//!   places       +   +  ++ +    +   +  +        │ -  --   -   -   -  -       the geometry below
//!                -  --   -   -   -  -      + +  │ +   +  ++ +    +   +       the geometry above
//!                                          ├────┤ position
//! ```
//!
//! Geometries are searched in the first and in the last places alone, where one of them holds. The position is where
//! the sum of places explained below and above is largest. Blocks that were copied and not yet overwritten are where
//! both geometries have them, so the position is a range; within it both give the same content.

use std::ops::Range;

use super::answer::{Answer, Hypothesis, Reshape};
use super::decide::decide;
use super::evidence::Evidence;
use super::judge::{Verdict, verdicts};
use super::question::Rows;
use super::search::{Grounds, search};

/// Parts of the places, in order, in which geometries are searched: the first and the last so many of 16.
const PARTS: [usize; 3] = [1, 4, 8];
/// Places that a part must have, and hypotheses of it that are tried.
const LEAST_PLACES: usize = 24;
const TRIED: usize = 4;
/// Contradictions of one geometry alone that two have to explain.
const LEAST_GAIN: u32 = 8;

/// Finds a reshape; `None` if one geometry explains the places as well. `found` are hypotheses for all of them.
///
/// # Errors
/// If two geometries explain more than one, and the evidence on one side is too little to decide: the range of the
/// array in which the two meet.
pub(super) fn find(
    grounds: &Grounds<'_>,
    rows: &dyn Rows,
    found: &[Hypothesis],
) -> Option<Result<Reshape, Range<u64>>> {
    let best = found.first()?;
    if best.contradicted < LEAST_GAIN {
        return None;
    }
    let mut order: Vec<usize> = (0..grounds.main.places.len()).collect();
    order.sort_unstable_by_key(|index| grounds.main.places[*index].at);
    let at =
        |index: usize| order.get(index).map_or(u64::MAX, |index| grounds.main.places[*index].at);
    let (mut below, mut above) = (Vec::new(), Vec::new());
    for part in PARTS {
        let count = order.len() * part / 16;
        if count >= LEAST_PLACES {
            below.extend(candidates(grounds, 0..at(count)));
            above.extend(candidates(grounds, at(order.len() - count)..u64::MAX));
        }
    }
    let gains = |hypothesis: &Hypothesis| -> Vec<i64> {
        let verdicts = verdicts(hypothesis, grounds.main, grounds.question);
        let gain = |index: &usize| match verdicts[*index].0 {
            Verdict::Satisfied => 1,
            Verdict::Contradicted => -1,
            Verdict::Absent => 0,
        };
        order.iter().map(gain).collect()
    };
    let below: Vec<Vec<i64>> = below.iter().map(gains).collect();
    let above: Vec<Vec<i64>> = above.iter().map(gains).collect();
    let splits = below.iter().flat_map(|below| above.iter().map(|above| split(below, above)));
    let (gain, position) = splits.max_by_key(|(gain, position)| (*gain, position.end))?;
    let plain = |one: &Hypothesis| i64::from(one.satisfied) - i64::from(one.contradicted);
    let alone = found.iter().map(plain).max().unwrap_or(0);
    if gain < alone + i64::from(LEAST_GAIN) || gain * 2 < order.len() as i64 {
        return None;
    }
    if position.start < LEAST_GAIN as usize || position.end + LEAST_GAIN as usize > order.len() {
        return None;
    }
    let position = at(position.start)..at(position.end);
    let below = settled(grounds, rows, 0..position.end);
    let above = settled(grounds, rows, position.start..u64::MAX);
    let position = grounds.base + position.start..grounds.base.saturating_add(position.end);
    match (below, above) {
        (Some(below), Some(above)) if below.pattern != above.pattern => {
            Some(Ok(Reshape { below, above, position }))
        }
        _ => Some(Err(position)),
    }
}

/// The best hypotheses for a range of the structure.
fn candidates(grounds: &Grounds<'_>, range: Range<u64>) -> Vec<Hypothesis> {
    let part = grounds.all.within(grounds.anchor, range);
    let mut found = search(&Grounds { all: &part, main: &part, ..*grounds });
    found.truncate(TRIED);
    found
}

/// The decided hypothesis for a range of the structure.
fn settled(grounds: &Grounds<'_>, rows: &dyn Rows, range: Range<u64>) -> Option<Hypothesis> {
    let part: Evidence = grounds.all.within(grounds.anchor, range);
    let found = search(&Grounds { all: &part, main: &part, ..*grounds });
    match decide(grounds.question, rows, &part, found, grounds.anchor) {
        Answer::Decided { first, .. } => Some(*first),
        _ => None,
    }
}

/// Returns the largest sum of gains of `below` up to a place and of `above` from there on, and the first and the
/// last place with that sum.
fn split(below: &[i64], above: &[i64]) -> (i64, Range<usize>) {
    let mut sum: i64 = above.iter().sum();
    let (mut best, mut range) = (sum, 0..0);
    for (index, (below, above)) in below.iter().zip(above).enumerate() {
        sum += below - above;
        if sum > best {
            (best, range) = (sum, index + 1..index + 1);
        } else if sum == best {
            range.end = index + 1;
        }
    }
    (best, range)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_split_is_where_both_sides_gain_most() {
        assert_eq!(split(&[1, 1, -1, -1], &[-1, -1, 1, 1]), (4, 2..2));
        // The third place is where both have it.
        assert_eq!(split(&[1, 1, 1, -1], &[-1, -1, 1, 1]), (4, 2..3));
        assert_eq!(split(&[-1, -1], &[1, 1]), (2, 0..0));
    }
}
