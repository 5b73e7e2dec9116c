//! Geometries that superblocks name, where blocks are too few for a vote: `mdadm --create` is mostly given the parameters
//! of the array before, and the members in another order.
//!
//! Each order of the members that no block contradicts is tried, or, if there are many, each that explains as many blocks as
//! the best one. Files decide, as in [`super::files`]: the blocks may have been overwritten.

use std::collections::BTreeMap;

use super::answer::{Answer, Hypothesis, Seat};
use super::build::{Grounds, open};
use super::evidence::Evidence;
use super::files::{MOST_FILLINGS, MOST_LISTED, Open};
use super::judge::judge;
use super::map::Map;
use super::question::Claim;
use super::room::has_room;

impl Open<'_> {
    /// Decides with the geometries that superblocks name; `None` if files do not decide.
    pub(super) fn decide_claimed(&self) -> Option<Answer> {
        let main = self.evidence.of(self.anchor);
        let (question, all, anchor) = (self.question, self.evidence, self.anchor);
        let grounds = Grounds { question, all, main: &main, anchor, base: 0 };
        let mut fillings = Vec::new();
        for claim in question.claims.iter().filter(|claim| question.allows(&claim.pattern)) {
            let Some(map) = Map::new(claim.pattern).filter(|map| map.sections() == 1) else {
                continue;
            };
            for offset in offsets(claim, &map, &main) {
                let seats = vec![None; claim.pattern.members];
                // Also members that look like clones: parity equals data where all else is zero.
                let free = (0..question.sizes.len()).map(|member| Seat::new(member, offset));
                let free: Vec<Seat> = free.collect();
                self.fill_from(0, &mut open(map.clone(), seats, &grounds), &free, &mut fillings);
                if fillings.len() > MOST_LISTED {
                    return None;
                }
            }
        }
        fillings.retain_mut(|one| {
            judge(one, all, question);
            one.contradicted == 0 && has_room(one, question, anchor)
        });
        if fillings.len() > MOST_FILLINGS {
            let best = fillings.iter().map(Hypothesis::score).max()?;
            fillings.retain(|one| one.score() == best);
        }
        let (whole, rest): (Vec<Hypothesis>, Vec<Hypothesis>) =
            fillings.into_iter().partition(|one| one.missing() == 0);
        self.decide_among(whole).or_else(|| self.decide_among(rest))
    }
}

/// The offset that superblocks name, and that of most blocks: versions of mdadm differ in it.
pub(super) fn offsets(claim: &Claim, map: &Map, main: &Evidence) -> Vec<u64> {
    let mut counts: BTreeMap<u64, u32> = BTreeMap::new();
    let mut spots = Vec::new();
    for place in &main.places {
        map.spots(place.at, &mut spots);
        for (sighting, spot) in main.sightings(place).iter().zip(spots.iter().cycle()) {
            let offset = sighting.at.checked_sub(spot.row);
            offset.into_iter().for_each(|offset| *counts.entry(offset).or_default() += 1);
        }
    }
    let most = counts.into_iter().max_by_key(|(_, count)| *count).map(|(offset, _)| offset);
    let most = most.filter(|offset| *offset != claim.offset);
    std::iter::once(claim.offset).chain(most).collect()
}
