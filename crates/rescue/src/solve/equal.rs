//! Equality of content: two hypotheses that say the same of each byte of a structure.
//!
//! raid4 without its parity member is a raid0; raid6 with Q on the last member is a raid5 if that member is
//! missing; the members of a mirror may be swapped. Evidence cannot tell such hypotheses apart, and the content
//! that they give does not depend on which is chosen.

use super::answer::{Hypothesis, Seat};
use super::evidence::Evidence;
use super::judge::position;
use super::map::Spot;
use braid_array::geometry::Column;
use braid_array::{MemberByte, Role};

/// Chunks from the start on that are compared one by one, and places that are compared beyond.
const FIRST: u64 = 3000;
const BEYOND: u64 = 400;

/// The source of a byte.
#[derive(Debug, PartialEq, Eq)]
enum Recipe {
    /// It lies at these places: member, bytes from its start.
    Copies(Vec<(usize, u64)>),
    /// It is computed from these: member, bytes from its start, its part in the parity.
    Computed(Vec<(usize, u64, usize)>),
    Lost,
}

/// Returns true if both give the same content for the first `size` bytes of the structure of `anchor`. No evidence tells
/// a member from its clone.
pub(super) fn have_same_content(
    one: &Hypothesis,
    other: &Hypothesis,
    evidence: &Evidence,
    anchor: usize,
    size: u64,
) -> bool {
    let (Some(base), Some(other_base)) = (one.bases[anchor], other.bases[anchor]) else {
        return false;
    };
    let chunks = [one.pattern.chunk, other.pattern.chunk];
    let unit = chunks.into_iter().filter(|chunk| *chunk > 0).min().unwrap_or(1 << 16);
    let first = (0..FIRST).map(|index| index * unit);
    let step = (size / BEYOND).max(1) | 1;
    let beyond = (0..BEYOND).map(|index| index * step / 4096 * 4096);
    first.chain(beyond).filter(|at| *at < size).all(|at| {
        let (one, other) =
            (recipe(one, evidence, base + at), recipe(other, evidence, other_base + at));
        match (&one, &other) {
            (Recipe::Copies(one), Recipe::Copies(other)) => {
                one.iter().any(|place| other.contains(place))
            }
            _ => one == other && one != Recipe::Lost,
        }
    })
}

fn recipe(hypothesis: &Hypothesis, evidence: &Evidence, at: u64) -> Recipe {
    let mut spots = Vec::new();
    hypothesis.map.spots(at, &mut spots);
    let place = |spot: &Spot| {
        let seat = hypothesis.seats.get(spot.role)?.as_ref()?;
        Some((evidence.original(seat.member), position(hypothesis, seat, *spot)?))
    };
    let copies: Vec<(usize, u64)> = spots.iter().filter_map(place).collect();
    if !copies.is_empty() {
        return Recipe::Copies(copies);
    }
    let (Some(raid), Some(spot)) = (hypothesis.map.parity(), spots.first()) else {
        return Recipe::Lost;
    };
    let stripe = raid.stripe_of_row(MemberByte::new(spot.row));
    let part = |role: usize| match raid.column_of(stripe, Role::nth(role)) {
        Column::P => usize::MAX,
        Column::Q => usize::MAX - 1,
        Column::Data(index) if raid.parities() == 2 => raid.power(stripe, index).into(),
        Column::Data(_) => 0,
    };
    let seats =
        hypothesis.seats.iter().enumerate().filter_map(|(role, seat)| Some((role, seat.as_ref()?)));
    let place = |(role, seat): (usize, &Seat)| {
        (evidence.original(seat.member), seat.data_offset + spot.row, part(role))
    };
    let mut parts: Vec<(usize, u64, usize)> = seats.map(place).collect();
    let (gone, is_q) =
        (hypothesis.missing(), |part: &(usize, u64, usize)| part.2 == usize::MAX - 1);
    if gone > raid.parities() {
        return Recipe::Lost;
    }
    if parts.iter().filter(|part| !is_q(part)).count() == raid.data() {
        // P computes it, from all other data.
        parts.retain(|part| !is_q(part));
        parts.iter_mut().for_each(|(_, _, part)| *part = 0);
    }
    // The parts of missing data in Q count as well: two missing ones are told apart by them.
    let missing = hypothesis.seats.iter().enumerate().filter(|(_, seat)| seat.is_none());
    if parts.iter().any(is_q) {
        let part = |(role, _)| (usize::MAX, u64::from(role == spot.role), part(role));
        parts.extend(missing.map(part));
    }
    parts.sort_unstable();
    Recipe::Computed(parts)
}
