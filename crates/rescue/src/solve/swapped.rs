//! Members of a raid10 whose roles blocks do not tell apart, because the roles have the same blocks.
//!
//! ```text
//!   near=2, 5 members    A A B B C      roles 0 and 1 have the same in all rows with blocks, as far as there are few:
//!                        C D D E E      copies of other rows tell them apart
//! ```
//!
//! Deliberately absent: swaps of roles that have the same content everywhere, which do not matter.

use braid_level::Level;

use super::answer::Hypothesis;
use super::content::Content;
use super::evidence::Evidence;
use super::judge::{judge, position};
use super::map::Spot;
use super::question::Question;

/// Rows in which copies are compared, all over the members.
const ROWS: u64 = 64;
/// Rows lie at multiples of it.
const UNIT: u64 = 4096;

/// Returns the best hypotheses with two members in each other's roles that explain nearly as many blocks (`near` is the share),
/// and those that follow from them where fewer copies differ.
pub(super) fn swapped(
    found: &[Hypothesis],
    evidence: &Evidence,
    question: &Question,
    content: &Content<'_>,
    near: f64,
) -> Vec<Hypothesis> {
    let best = found.first().map_or(0, Hypothesis::score);
    let is_near = |one: &Hypothesis| one.score() as f64 >= near * best as f64;
    let swaps = |one: &Hypothesis| -> Vec<Hypothesis> {
        let roles = 0..one.seats.len();
        let pairs = roles
            .clone()
            .flat_map(|role| (role + 1..one.seats.len()).map(move |other| (role, other)));
        let swapped =
            pairs.filter(|(role, other)| one.seats[*role].is_some() || one.seats[*other].is_some());
        let swapped = swapped.map(|(role, other)| {
            let mut swapped = one.clone();
            swapped.seats.swap(role, other);
            judge(&mut swapped, evidence, question);
            swapped
        });
        swapped.filter(|swapped| is_near(swapped)).collect()
    };
    let mut all = Vec::new();
    let mirrored = found.iter().filter(|one| one.pattern.level == Level::Raid10 && is_near(one));
    for mut one in mirrored.cloned() {
        let mut differ = differing(&one, question, content);
        // Each step lessens the copies that differ.
        loop {
            let near = swaps(&one);
            let better = near.iter().map(|swap| (differing(swap, question, content), swap));
            match better.min_by_key(|(differ, _)| *differ).filter(|better| better.0 < differ) {
                Some((fewer, swap)) => (differ, one) = (fewer, swap.clone()),
                None => {
                    all.extend(near);
                    all.push(one);
                    break;
                }
            }
        }
    }
    all
}

/// Counts places all over the array at which two copies differ.
pub(super) fn differing(
    hypothesis: &Hypothesis,
    question: &Question,
    content: &Content<'_>,
) -> u32 {
    let seats = hypothesis.seats.iter().flatten();
    let room = seats.map(|seat| question.sizes[seat.member].saturating_sub(seat.data_offset)).min();
    let sections = hypothesis.map.sections();
    let rows = if sections > 1 { hypothesis.distance() } else { room.unwrap_or(0) };
    let (mut differ, mut spots) = (0, Vec::new());
    let places = (0..hypothesis.seats.len())
        .flat_map(|role| (0..ROWS).map(move |index| (role, rows / ROWS * index / UNIT * UNIT)));
    for (role, row) in places {
        let Some(at) = hypothesis.map.owner(Spot { role, row, section: 0 }) else { continue };
        hypothesis.map.spots(at, &mut spots);
        let sectors = spots.iter().filter_map(|spot| {
            let seat = hypothesis.seats[spot.role]?;
            let is_inside = position(hypothesis, &seat, *spot)? < question.sizes[seat.member];
            is_inside.then(|| content.of_seat(hypothesis, &seat, *spot)).flatten()
        });
        let sectors: Vec<Vec<u8>> = sectors.collect();
        differ += u32::from(sectors.iter().any(|sector| *sector != sectors[0]));
    }
    differ
}
