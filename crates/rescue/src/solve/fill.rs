//! Finds members for roles of which clues say nothing: the parity of raid4, a part that holds no metadata.
//!
//! Members whose roles are sure predict the content of the others. Only they do: P vanishes for any order of the
//! members, so a prediction that rests on a doubtful one says nothing of its role.

use braid_array::geometry::Column;
use braid_array::{Role, geometry::Raid456};

use super::answer::{Hypothesis, Seat};
use super::content::{Content, ROWS, rows_with_evidence};
use super::evidence::Evidence;
use super::map::Spot;

/// Rows that have to agree for a member to get a role.
const LEAST_ROWS: usize = 6;
const LEAST_SUMS: usize = 4;
/// Data offsets of mdadm's versions, in bytes: version 0.90 and 1.0, 1.1 and 1.2 of different years.
pub(super) const OFFSETS: [u64; 5] = [0, 1 << 20, 128 << 20, 264_192 * 512, 8192];

/// Fills roles that are not sure, as far as redundancy predicts their content.
pub(super) fn fill(
    hypothesis: &mut Hypothesis,
    evidence: &Evidence,
    content: &Content<'_>,
    is_sure: &[bool],
) {
    let rows = rows_with_evidence(hypothesis, evidence);
    for role in (0..is_sure.len()).filter(|role| !is_sure[*role]) {
        let spots = rows.iter().map(|&(row, section)| Spot { role, row, section });
        let predicted: Vec<(Spot, Vec<u8>)> = spots
            .filter_map(|spot| Some((spot, content.predict(hypothesis, is_sure, spot)?)))
            .filter(|(_, sector)| !is_zero(sector))
            .take(ROWS)
            .collect();
        if predicted.len() < LEAST_ROWS {
            continue;
        }
        let holds = |seat: &Seat| {
            let mut rows = predicted.iter();
            rows.all(|(spot, sector)| {
                content.of_seat(hypothesis, seat, *spot).as_ref() == Some(sector)
            })
        };
        let found = candidates(hypothesis, evidence, is_sure, role).into_iter().find(holds);
        if let Some(seat) = found {
            take(hypothesis, role, seat);
        }
    }
}

/// Finds the member of a role that is nothing but P, where one data member is missing. The sum of all others then
/// is the missing member's content: zero in many rows, while the sum with a wrong member never is.
pub(super) fn fill_parity(
    hypothesis: &mut Hypothesis,
    evidence: &Evidence,
    content: &Content<'_>,
    is_sure: &[bool],
) {
    let Some(raid) = hypothesis.map.parity() else { return };
    let is_parity = |role: &usize| is_only_p(raid, *role);
    let Some(role) = (0..is_sure.len()).filter(|role| !is_sure[*role]).find(is_parity) else {
        return;
    };
    let data = |role: &usize| {
        is_sure[*role] && matches!(raid.column_of(0, Role::nth(*role)), Column::Data(_))
    };
    let data: Vec<usize> = (0..is_sure.len()).filter(data).collect();
    if data.len() + 1 != raid.data() {
        return;
    }
    let mut sums: Vec<(Spot, Vec<u8>)> = Vec::new();
    for (row, section) in rows_with_evidence(hypothesis, evidence) {
        let spot = Spot { role, row, section };
        let sector = |role: &usize| {
            let seat = hypothesis.seats[*role]?;
            content.of_seat(hypothesis, &seat, Spot { role: *role, ..spot })
        };
        let Some(sectors) = data.iter().map(sector).collect::<Option<Vec<_>>>() else { continue };
        let Some(mut sum) = sectors.first().map(|first| vec![0; first.len()]) else { continue };
        sectors.iter().for_each(|sector| braid_parity::xor_into(&mut sum, sector));
        // A single block that is not zero may as well be equal to its own copy.
        if sectors.iter().filter(|sector| !is_zero(sector)).count() > 1 {
            sums.push((spot, sum));
        }
    }
    let holds = |seat: &Seat| {
        let rows = sums
            .iter()
            .filter(|(spot, sum)| content.of_seat(hypothesis, seat, *spot).as_ref() == Some(sum));
        rows.take(LEAST_SUMS).count() == LEAST_SUMS
    };
    let found = candidates(hypothesis, evidence, is_sure, role).into_iter().find(holds);
    if let Some(seat) = found {
        take(hypothesis, role, seat);
    }
}

fn is_only_p(raid: &Raid456, role: usize) -> bool {
    // All layouts repeat after as many stripes as there are members, or fewer by one.
    let mut stripes = 0..2 * (raid.data() + raid.parities()) as u64;
    stripes.all(|stripe| raid.column_of(stripe, Role::nth(role)) == Column::P)
}

fn is_zero(sector: &[u8]) -> bool {
    sector.iter().all(|byte| *byte == 0)
}

/// The member that the role has, then all that have no sure role, with each data offset that others have or mdadm
/// chooses.
fn candidates(
    hypothesis: &Hypothesis,
    evidence: &Evidence,
    is_sure: &[bool],
    role: usize,
) -> Vec<Seat> {
    let mut offsets: Vec<u64> = Vec::new();
    let others = hypothesis.seats.iter().flatten().map(|seat| seat.data_offset);
    for offset in others.chain(OFFSETS) {
        if !offsets.contains(&offset) {
            offsets.push(offset);
        }
    }
    let sure = |member: usize| {
        let mut seats = hypothesis.seats.iter().zip(is_sure);
        seats.any(|(seat, sure)| *sure && seat.is_some_and(|seat| seat.member == member))
    };
    let mut candidates: Vec<Seat> = hypothesis.seats[role].into_iter().collect();
    let is_clone = |member: usize| {
        let mut seats = hypothesis.seats.iter().flatten();
        seats.any(|seat| seat.member != member && evidence.are_twins(seat.member, member))
    };
    let is_parity = hypothesis.map.parity().is_some();
    let is_free = |member: &usize| !(sure(*member) || is_parity && is_clone(*member));
    for member in (0..evidence.members).filter(is_free) {
        candidates.extend(offsets.iter().map(|offset| Seat::new(member, *offset)));
    }
    candidates
}

/// Gives a role to a member, and takes it from all others.
fn take(hypothesis: &mut Hypothesis, role: usize, seat: Seat) {
    for one in &mut hypothesis.seats {
        if one.is_some_and(|one| one.member == seat.member) {
            *one = None;
        }
    }
    hypothesis.seats[role] = Some(Seat { is_verified: true, ..seat });
}
