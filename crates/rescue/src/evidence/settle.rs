//! Blocks of which a structure has two copies: which one is it?
//!
//! ```text
//!   place  │          ∙ ∙   other        On a member, places rise with the offset, at every level but some layouts
//!          │    ∙ ∙ o o                  of raid10. A choice that no rising sequence has is wrong; if one
//!          │ o o             place       is left, it is right. If both are possible, or none, there is no clue.
//!          └──────────────── at
//! ```

use std::collections::BTreeMap;

use super::Found;

/// Decides for all clues of one member to which of two places each belongs, and removes those that cannot be decided.
pub fn settle(found: &mut Vec<Found>) {
    found.sort_unstable();
    for same in found.chunk_by_mut(|one, next| one.anchor == next.anchor) {
        let forwards = possible(same.iter(), |last, place| last < place);
        let backwards = possible(same.iter().rev(), |last, place| last > place);
        for ((one, ahead), behind) in same.iter_mut().zip(forwards).zip(backwards.into_iter().rev())
        {
            let Some(other) = one.other else { continue };
            match (ahead[0] && behind[0], ahead[1] && behind[1]) {
                (true, false) => one.other = None,
                (false, true) => (one.place, one.other) = (other, None),
                _ => {}
            }
        }
    }
    found.retain(|one| one.other.is_none());
}

/// Blocks of a structure that suffice without those that may be copies in its journal.
const ENOUGH: usize = 100;

/// Removes the blocks that may be copies in a journal, if their structure has enough others. `found` has those of each
/// member. In a small file system all blocks are near the journal; copies are in no order, while the blocks themselves are.
pub fn choose(found: &mut [Vec<Found>]) {
    let mut sure: BTreeMap<usize, usize> = BTreeMap::new();
    for one in found.iter().flatten().filter(|one| !one.is_doubtful) {
        *sure.entry(one.anchor).or_default() += 1;
    }
    let is_enough = |anchor| sure.get(&anchor).is_some_and(|count| *count >= ENOUGH);
    found.iter_mut().for_each(|of| of.retain(|one| !(one.is_doubtful && is_enough(one.anchor))));
}

/// Returns which of the two places of each clue can follow a possible place of each clue before it.
fn possible<'f>(
    found: impl Iterator<Item = &'f Found>,
    follows: impl Fn(u64, u64) -> bool,
) -> Vec<[bool; 2]> {
    let mut last: Option<Vec<u64>> = None;
    let each = found.map(|one| {
        let places = [Some(one.place), one.other];
        let is_possible = places.map(|place| {
            place.is_some_and(|place| {
                last.as_ref().is_none_or(|last| last.iter().any(|last| follows(*last, place)))
            })
        });
        let left = places.iter().zip(is_possible).filter(|(_, is)| *is);
        last = Some(left.filter_map(|(place, _)| *place).collect());
        is_possible
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(places: &[(u64, Option<u64>)]) -> Vec<(u64, u64)> {
        let clue = |(at, (place, other)): (u64, &(u64, Option<u64>))| Found {
            anchor: 0,
            at,
            place: *place,
            length: 512,
            other: *other,
            is_doubtful: false,
        };
        let mut found: Vec<Found> = (0..).zip(places).map(clue).collect();
        settle(&mut found);
        found.iter().map(|one| (one.at, one.place)).collect()
    }

    #[test]
    fn a_fall_tells_where_the_second_copies_begin() {
        let two = [(10, Some(110)), (20, Some(120)), (10, Some(110)), (30, Some(130))];
        assert_eq!(member(&two), [(0, 10), (1, 20), (2, 110), (3, 130)]);
        assert_eq!(member(&[(10, Some(110)), (20, Some(120))]), []);
        assert_eq!(member(&[(10, Some(110)), (115, None), (20, Some(120))]), [(1, 115), (2, 120)]);
    }

    #[test]
    fn members_whose_places_do_not_rise_settle_nothing() {
        assert_eq!(member(&[(200, None), (10, Some(110)), (20, None)]), [(0, 200), (2, 20)]);
    }
}
