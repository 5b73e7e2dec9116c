//! Judges a hypothesis: places that were seen where they must lie, and contradictions.
//!
//! A place counts once, however many blocks name it. Copies of metadata in journals and parity that equals data
//! name places that lie elsewhere; they do not count against a hypothesis as long as the place itself was seen
//! where it must lie. Places of missing members count neither way.

use std::collections::BTreeMap;

use braid_array::geometry::{Column, Raid456};
use braid_array::{MemberByte, Role};

use super::answer::{Hypothesis, Seat};
use super::evidence::{Evidence, Place, Sighting};
use super::map::{Map, Spot};
use super::question::Question;

/// The verdict on a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Satisfied,
    Contradicted,
    /// Nothing is known of it: its member is missing, or was not read there.
    Absent,
}

/// Bytes from a member's start to what a spot of its role has.
pub(super) fn position(hypothesis: &Hypothesis, seat: &Seat, spot: Spot) -> Option<u64> {
    let distance = hypothesis.distance();
    (spot.section == 0 || distance > 0)
        .then(|| seat.data_offset + spot.section * distance + spot.row)
}

/// Counts the places that a hypothesis explains, in all and for each seat.
pub(super) fn judge(hypothesis: &mut Hypothesis, evidence: &Evidence, question: &Question) {
    for seat in hypothesis.seats.iter_mut().flatten() {
        (seat.satisfied, seat.echoes, seat.contradicted) = (0, 0, 0);
    }
    (hypothesis.satisfied, hypothesis.echoes) = (0, 0);
    (hypothesis.in_parity, hypothesis.contradicted) = (0, 0);
    let mut spots = Vec::new();
    for place in &evidence.places {
        let (verdict, seen) = verdict(hypothesis, evidence, question, place, &mut spots);
        match verdict {
            Verdict::Satisfied => hypothesis.satisfied += 1,
            Verdict::Contradicted => hypothesis.contradicted += 1,
            Verdict::Absent => hypothesis.in_parity += u32::from(seen > 0),
        }
        hypothesis.echoes += u32::from(verdict != Verdict::Contradicted && seen > 1);
    }
}

/// Judges each place. Returns also where it was seen, as [`verdict`].
pub(super) fn verdicts(
    hypothesis: &Hypothesis,
    evidence: &Evidence,
    question: &Question,
) -> Vec<(Verdict, u32)> {
    let (mut hypothesis, mut spots) = (hypothesis.clone(), Vec::new());
    let judge = |place| verdict(&mut hypothesis, evidence, question, place, &mut spots);
    evidence.places.iter().map(judge).collect()
}

/// Judges one place, and adds it to the seats that it lies on. Returns also where it was seen: on copies, and in
/// parity that equals it.
fn verdict(
    hypothesis: &mut Hypothesis,
    evidence: &Evidence,
    question: &Question,
    place: &Place,
    spots: &mut Vec<Spot>,
) -> (Verdict, u32) {
    let Some(base) = hypothesis.bases.get(place.anchor).copied().flatten() else {
        return (Verdict::Absent, 0);
    };
    hypothesis.map.spots(base + place.at, spots);
    let direct = spots.len();
    hypothesis.map.echoes(base + place.at, spots);
    let sightings = evidence.sightings(place);
    let (mut verdict, mut seen, mut on) = (Verdict::Absent, 0, None);
    for (index, &spot) in spots.iter().enumerate() {
        let Some(mut seat) = hypothesis.seats.get(spot.role).copied().flatten() else { continue };
        let Some(at) = position(hypothesis, &seat, spot) else { continue };
        let is_seen = sightings.contains(&Sighting { member: seat.member, at });
        // A clone of a member is no second witness. Only mirrors have both, and their content is the same.
        if is_seen && on.is_none_or(|one| !evidence.are_twins(one, seat.member)) {
            (seen, on) = (seen + 1, Some(seat.member));
        }
        if index >= direct {
            // Parity equals a block only if the block is there, or its member is missing.
            seat.echoes += u32::from(is_seen && verdict != Verdict::Contradicted);
        } else if is_seen {
            seat.satisfied += 1;
            verdict = Verdict::Satisfied;
        } else if at >= question.sizes[seat.member] || question.was_scanned(seat.member, at) {
            seat.contradicted += 1;
            if verdict == Verdict::Absent {
                verdict = Verdict::Contradicted;
            }
        }
        hypothesis.seats[spot.role] = Some(seat);
    }
    // A sum of blocks may look like a block, which belongs anywhere.
    let is_sum = |one| is_parity(hypothesis, one);
    if verdict == Verdict::Contradicted && sightings.iter().all(is_sum) {
        (verdict, seen) = (Verdict::Absent, 0);
        let on = spots.first().and_then(|spot| hypothesis.seats[spot.role].as_mut());
        on.into_iter().for_each(|seat| seat.contradicted -= 1);
    }
    (verdict, seen)
}

/// True if the hypothesis has parity where a block was seen.
pub(super) fn is_parity(hypothesis: &Hypothesis, sighting: &Sighting) -> bool {
    let lies_in = |raid: &Raid456| {
        let (role, seat) = seat_of(hypothesis, sighting.member)?;
        let row = MemberByte::new(sighting.at.checked_sub(seat.data_offset)?);
        let column = raid.column_of(raid.stripe_of_row(row), Role::nth(role));
        (!matches!(column, Column::Data(_))).then_some(())
    };
    hypothesis.map.parity().and_then(lies_in).is_some()
}

/// For each role, the number of blocks that were seen on its member where the hypothesis has data.
pub(super) fn seen_as_data(hypothesis: &Hypothesis, evidence: &Evidence) -> Vec<u32> {
    let mut role_of = vec![None; evidence.members];
    for (role, seat) in hypothesis.seats.iter().enumerate() {
        seat.iter().for_each(|seat| role_of[seat.member] = Some(role));
    }
    let mut seen = vec![0; hypothesis.seats.len()];
    for sighting in evidence.places.iter().flat_map(|place| evidence.sightings(place)) {
        if let Some(role) = role_of[sighting.member].filter(|_| !is_parity(hypothesis, sighting)) {
            seen[role] += 1;
        }
    }
    seen
}

/// Finds the byte of the array at which a structure begins, from where its blocks lie on seated members. At least
/// half of its places have to agree.
pub(super) fn base_of(hypothesis: &Hypothesis, evidence: &Evidence, anchor: usize) -> Option<u64> {
    let mut bases: BTreeMap<u64, usize> = BTreeMap::new();
    let mut places = 0;
    for place in evidence.places.iter().filter(|place| place.anchor == anchor) {
        places += 1;
        let found = evidence.sightings(place).iter().filter_map(|sighting| {
            let (role, seat) = seat_of(hypothesis, sighting.member)?;
            let row = sighting.at.checked_sub(seat.data_offset)?;
            hypothesis.map.owner(Spot { role, row, section: 0 })?.checked_sub(place.at)
        });
        let mut found: Vec<u64> = found.collect();
        found.sort_unstable();
        found.dedup();
        for base in found {
            *bases.entry(base).or_default() += 1;
        }
    }
    let (base, count) = bases.into_iter().max_by_key(|&(base, count)| (count, u64::MAX - base))?;
    (count * 2 > places).then_some(base)
}

/// The role and seat of a member.
pub(super) fn seat_of(hypothesis: &Hypothesis, member: usize) -> Option<(usize, &Seat)> {
    let seats = hypothesis.seats.iter().enumerate();
    seats
        .filter_map(|(role, seat)| Some((role, seat.as_ref()?)))
        .find(|(_, seat)| seat.member == member)
}

/// Finds the distance of the sections of a member's data: that of most sightings of far copies.
pub(super) fn distance(
    map: &Map,
    seats: &[Option<Seat>],
    evidence: &Evidence,
    base: u64,
) -> Option<u64> {
    let mut distances: BTreeMap<u64, usize> = BTreeMap::new();
    let mut spots = Vec::new();
    for place in &evidence.places {
        map.spots(base + place.at, &mut spots);
        for spot in spots.iter().filter(|spot| spot.section > 0) {
            let Some(seat) = seats.get(spot.role).copied().flatten() else { continue };
            for sighting in evidence.sightings(place).iter().filter(|one| one.member == seat.member)
            {
                let behind = sighting.at.checked_sub(seat.data_offset + spot.row);
                let distance = behind.map(|bytes| bytes / spot.section);
                if let Some(distance) =
                    distance.filter(|one| *one > 0 && one % map.pattern.chunk == 0)
                {
                    *distances.entry(distance).or_default() += 1;
                }
            }
        }
    }
    let (distance, count) = distances.into_iter().max_by_key(|&(_, count)| count)?;
    (count > 1).then_some(distance)
}
