//! The clues in the order of the places that they name.
//!
//! Invariant: each place is there once, with all its sightings. However many clues there are, at most
//! [`MOST_PLACES`] places are kept, so the time of a solution is bounded.

use std::collections::BTreeMap;
use std::ops::Range;

use super::question::{Question, Rows};
use crate::Clue;

/// Places that are kept, and those of them that a first look over all patterns takes into account.
const MOST_PLACES: usize = 6000;
const FIRST_LOOK: usize = 600;
/// Sectors in which two members are compared that look like copies.
const COMPARED: u64 = 512;
/// Bytes that a clue has at most, and clues before a place that may cover it.
const LONGEST: u64 = 4096;
const MOST_BEFORE: usize = 64;

/// A byte of a structure that at least one clue names.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub anchor: usize,
    /// Bytes from the start of the structure.
    pub at: u64,
    sightings: Range<usize>,
}

/// A block that says that it belongs to a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Sighting {
    pub member: usize,
    /// Bytes from the start of the member.
    pub at: u64,
}

/// All places, with their sightings. The order is arbitrary, the same for the same clues, and without any
/// relation to chunks: the first places are a fair sample of all.
#[derive(Clone, Debug)]
pub(super) struct Evidence {
    pub places: Vec<Place>,
    /// Number of members, with and without evidence.
    pub members: usize,
    /// For each member a digest of all that was seen on it; 0 for nothing, and for a single block, which parity may equal.
    digests: Vec<u64>,
    sightings: Vec<Sighting>,
}

impl Evidence {
    /// Gathers the clues of a question. A clue that covers the place of another is a sighting of it. Clues of members or anchors that are not there are ignored.
    pub(super) fn new(question: &Question) -> Evidence {
        let is_known = |clue: &&Clue| {
            clue.member < question.sizes.len()
                && clue.anchor < question.anchors.len()
                && clue.place < super::map::BOUNDLESS
        };
        let mut clues: Vec<&Clue> = question.clues.iter().filter(is_known).collect();
        clues.sort_unstable_by_key(|clue| (clue.anchor, clue.place, clue.member, clue.at));
        let mut by_place: BTreeMap<(u64, usize, u64), Vec<Sighting>> = BTreeMap::new();
        for (index, clue) in clues.iter().enumerate() {
            let key = (scatter(clue.place), clue.anchor, clue.place);
            let seen = by_place.entry(key).or_default();
            seen.push(Sighting { member: clue.member, at: clue.at });
            // Neighbours are one clue, while copies of them in a journal are several.
            let before = clues[..index].iter().rev();
            let near = before
                .take(MOST_BEFORE)
                .take_while(|one| one.anchor == clue.anchor && clue.place - one.place < LONGEST);
            let covers = near.filter(|one| clue.place - one.place < u64::from(one.length));
            seen.extend(covers.map(|one| {
                let at = one.at + (clue.place - one.place);
                Sighting { member: one.member, at }
            }));
        }
        let mut evidence = Evidence {
            places: Vec::new(),
            members: question.sizes.len(),
            digests: vec![0; question.sizes.len()],
            sightings: Vec::new(),
        };
        let mut counts = vec![0; question.sizes.len()];
        for ((_, anchor, at), mut sightings) in by_place.into_iter().take(MOST_PLACES) {
            sightings.sort_unstable();
            sightings.dedup();
            for sighting in &sightings {
                let digest = &mut evidence.digests[sighting.member];
                *digest = digest.wrapping_add(scatter(sighting.at ^ scatter(at)));
                counts[sighting.member] += 1;
            }
            let first = evidence.sightings.len();
            evidence.sightings.extend(sightings);
            evidence.places.push(Place { anchor, at, sightings: first..evidence.sightings.len() });
        }
        let single = evidence.digests.iter_mut().zip(counts).filter(|(_, count)| *count < 2);
        single.for_each(|(digest, _)| *digest = 0);
        evidence
    }

    /// Tells members apart on which the same blocks were seen although their content differs: parity equals data where all
    /// else of the row is zero.
    pub(super) fn tell_apart(&mut self, sizes: &[u64], rows: &dyn Rows) {
        for member in 1..self.members {
            let original = self.original(member);
            if original == member {
                continue;
            }
            let size = sizes[member].min(sizes[original]);
            let places = (0..COMPARED).map(|index| size / COMPARED * index / 512 * 512);
            let sector = |member: usize, at: u64| rows.read(member, at, 512);
            let (mut equal, mut differ) = (0, 0);
            for at in places {
                let (Some(one), Some(other)) = (sector(original, at), sector(member, at)) else {
                    continue;
                };
                differ += usize::from(one != other);
                equal += usize::from(one == other && one.iter().any(|byte| *byte != 0));
            }
            // An old copy differs in what was written since.
            if differ > equal {
                self.digests[member] = scatter(self.digests[member] ^ member as u64);
            }
        }
    }

    /// Sightings of a place, each once.
    pub(super) fn sightings(&self, place: &Place) -> &[Sighting] {
        &self.sightings[place.sightings.clone()]
    }

    /// True if the same blocks were seen on both members, in the same places: one is a copy of the other.
    pub(super) fn are_twins(&self, one: usize, other: usize) -> bool {
        self.digests[one] != 0 && self.digests[one] == self.digests[other]
    }

    /// True if the member is a copy of one before it.
    pub(super) fn is_clone(&self, member: usize) -> bool {
        self.original(member) != member
    }

    /// The first member of which this one is a copy; itself if it is of none.
    pub(super) fn original(&self, member: usize) -> usize {
        (0..member).find(|other| self.are_twins(*other, member)).unwrap_or(member)
    }

    /// The anchor with the most places; `None` without evidence.
    pub(super) fn main_anchor(&self) -> Option<usize> {
        let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
        for place in &self.places {
            *counts.entry(place.anchor).or_default() += 1;
        }
        counts
            .into_iter()
            .max_by_key(|&(anchor, count)| (count, usize::MAX - anchor))
            .map(|(anchor, _)| anchor)
    }

    /// The places of one anchor.
    pub(super) fn of(&self, anchor: usize) -> Evidence {
        let places = self.places.iter().filter(|place| place.anchor == anchor).cloned().collect();
        Evidence { places, ..self.clone() }
    }

    /// The places of one anchor in a range of its structure.
    pub(super) fn within(&self, anchor: usize, range: Range<u64>) -> Evidence {
        let is_within = |place: &&Place| place.anchor == anchor && range.contains(&place.at);
        Evidence { places: self.places.iter().filter(is_within).cloned().collect(), ..self.clone() }
    }

    /// A sample that is large enough to tell good patterns from bad ones over so many members.
    pub(super) fn sample(&self, members: usize) -> Evidence {
        let count = FIRST_LOOK.max(8 * members).min(self.places.len());
        Evidence { places: self.places[..count].to_vec(), ..self.clone() }
    }
}

/// A number without any relation to the one given: the fractional part of a multiple of the golden ratio.
fn scatter(place: u64) -> u64 {
    (place / 512 + 1)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .rotate_left(29)
        .wrapping_mul(0xd6e8_feb8_6659_fd93)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Anchor, Clue, Structure};

    #[test]
    fn parity_that_equals_blocks_is_no_copy() {
        let clue = |(member, place): (usize, u64)| Clue {
            member,
            at: place,
            anchor: 0,
            place,
            length: 4096,
        };
        let places = [(0, 0), (0, 8192), (1, 0), (1, 8192)];
        let question = Question {
            sizes: vec![1 << 20; 2],
            anchors: vec![Anchor { structure: Structure::Ext, uuid: [1; 16], size: None }],
            clues: places.into_iter().map(clue).collect(),
            ..Question::default()
        };
        let is_clone = |rows: &dyn Rows| {
            let mut evidence = Evidence::new(&question);
            evidence.tell_apart(&question.sizes, rows);
            evidence.is_clone(1)
        };
        assert!(is_clone(&|_: usize, _: u64, length: usize| Some(vec![7; length])));
        // The same blocks, and other content elsewhere.
        let other = |member: usize, at: u64, length: usize| {
            Some(vec![if at < 65536 { 7 } else { member as u8 + 1 }; length])
        };
        assert!(!is_clone(&other));
    }
}
