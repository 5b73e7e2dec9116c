//! Content as evidence: what redundancy predicts of a member, beside what the member has.

use std::cell::RefCell;
use std::collections::BTreeMap;

use braid_array::MemberByte;
use braid_array::geometry::{Column, Raid456};

use super::answer::{Agreement, Hypothesis, Seat};
use super::evidence::{Evidence, Sighting};
use super::judge::position;
use super::map::Spot;
use super::question::Rows;

const SECTOR: usize = 512;
/// Rows that are compared.
pub(super) const ROWS: usize = 24;

/// A sector; `None` if it cannot be read.
type Sector = Option<Vec<u8>>;

/// Content of members, each sector read once.
pub(super) struct Content<'a> {
    rows: &'a dyn Rows,
    read: RefCell<BTreeMap<(usize, u64), Sector>>,
}

impl<'a> Content<'a> {
    pub(super) fn new(rows: &'a dyn Rows) -> Content<'a> {
        Content { rows, read: RefCell::default() }
    }

    fn sector(&self, member: usize, at: u64) -> Option<Vec<u8>> {
        let mut read = self.read.borrow_mut();
        read.entry((member, at)).or_insert_with(|| self.rows.read(member, at, SECTOR)).clone()
    }

    /// The sector of a member at a spot of its role.
    pub(super) fn of_seat(
        &self,
        hypothesis: &Hypothesis,
        seat: &Seat,
        spot: Spot,
    ) -> Option<Vec<u8>> {
        self.sector(seat.member, position(hypothesis, seat, spot)?)
    }

    /// The sector of a role that the members of `known` roles predict.
    pub(super) fn predict(
        &self,
        hypothesis: &Hypothesis,
        known: &[bool],
        spot: Spot,
    ) -> Option<Vec<u8>> {
        let seat = |role: usize| hypothesis.seats[role].filter(|_| known[role]);
        let Some(raid) = hypothesis.map.parity() else {
            let mut copies = Vec::new();
            hypothesis.map.spots(hypothesis.map.owner(spot)?, &mut copies);
            let others = copies.iter().filter(|copy| **copy != spot);
            return others
                .filter_map(|copy| self.of_seat(hypothesis, &seat(copy.role)?, *copy))
                .next();
        };
        let of_role = |role: usize| self.of_seat(hypothesis, &seat(role)?, Spot { role, ..spot });
        let mut columns: Vec<Option<Vec<u8>>> = (0..known.len()).map(of_role).collect();
        columns[spot.role] = None;
        complete(raid, raid.stripe_of_row(MemberByte::new(spot.row)), &mut columns)?;
        columns.swap_remove(spot.role)
    }
}

/// Completes the columns of a stripe, by role, with the parity that is there; `None` if too few are.
fn complete(raid: &Raid456, stripe: u64, columns: &mut [Option<Vec<u8>>]) -> Option<()> {
    let role = |column| raid.role_of(stripe, column).index();
    let (p, q) = (role(Column::P), (raid.parities() == 2).then(|| role(Column::Q)));
    let data: Vec<usize> = (0..raid.data()).map(|index| role(Column::Data(index))).collect();
    let power =
        |index: usize| if q.is_some() { usize::from(raid.power(stripe, index)) } else { index };
    let gone: Vec<usize> =
        (0..data.len()).filter(|index| columns[data[*index]].is_none()).collect();
    let zero = || vec![0; SECTOR];
    let (mut one, mut other) = (zero(), zero());
    {
        let none = zero();
        let mut sources: Vec<Option<&[u8]>> = vec![Some(&none); raid.powers().max(raid.data())];
        for (index, role) in data.iter().enumerate() {
            sources[power(index)] = columns[*role].as_deref();
        }
        match (gone.as_slice(), &columns[p], q.and_then(|q| columns[q].as_deref())) {
            ([], ..) => {}
            ([_], Some(p), _) => {
                let all: Vec<&[u8]> =
                    sources.iter().flatten().copied().chain([p.as_slice()]).collect();
                braid_parity::xor(&mut one, &all);
            }
            ([index], None, Some(q)) => {
                braid_parity::recover_by_q(
                    &mut one,
                    u8::try_from(power(*index)).ok()?,
                    q,
                    &sources,
                );
            }
            (&[a, b], Some(p), Some(q)) => {
                let (a, b) = (u8::try_from(power(a)).ok()?, u8::try_from(power(b)).ok()?);
                braid_parity::recover_two(&mut one, a, &mut other, b, p, q, &sources);
            }
            _ => return None,
        }
    }
    for (index, recovered) in gone.iter().zip([one, other]) {
        columns[data[*index]] = Some(recovered);
    }
    let mut sources: Vec<Option<&[u8]>> = vec![None; raid.powers().max(raid.data())];
    for (index, role) in data.iter().enumerate() {
        sources[power(index)] = columns[*role].as_deref();
    }
    let (mut new_p, mut new_q) = (zero(), zero());
    braid_parity::xor(&mut new_p, &sources.iter().flatten().copied().collect::<Vec<_>>());
    if let Some(q) = q {
        braid_parity::q(&mut new_q, &sources);
        columns[q].get_or_insert(new_q);
    }
    columns[p].get_or_insert(new_p);
    Some(())
}

/// Spots of all roles in rows that hold metadata, which is not zero.
pub(super) fn rows_with_evidence(hypothesis: &Hypothesis, evidence: &Evidence) -> Vec<(u64, u64)> {
    let mut rows: Vec<(u64, u64)> = Vec::new();
    let mut spots = Vec::new();
    for place in evidence.places.iter().take(4 * ROWS) {
        let Some(base) = hypothesis.bases[place.anchor] else { continue };
        hypothesis.map.spots(base + place.at, &mut spots);
        rows.extend(
            spots.first().map(|spot| (spot.row / SECTOR as u64 * SECTOR as u64, spot.section)),
        );
    }
    rows
}

/// Takes places off that are claimed to be seen in parity although what redundancy computes of them is something else:
/// other data of their rows are not zero.
pub(super) fn check_parity_claims(
    hypothesis: &mut Hypothesis,
    evidence: &Evidence,
    content: &Content<'_>,
) {
    if hypothesis.map.parity().is_none() || hypothesis.in_parity == 0 {
        return;
    }
    let known: Vec<bool> = hypothesis.seats.iter().map(Option::is_some).collect();
    let (mut checked, mut wrong) = (0, 0);
    let mut spots = Vec::new();
    for place in &evidence.places {
        let Some(base) = hypothesis.bases[place.anchor] else { continue };
        hypothesis.map.spots(base + place.at, &mut spots);
        let Some(&spot) = spots.first().filter(|spot| !known[spot.role]) else { continue };
        hypothesis.map.echoes(base + place.at, &mut spots);
        let claimed = spots.iter().skip(1).find_map(|spot| {
            let seat = hypothesis.seats[spot.role]?;
            let (member, at) = (seat.member, position(hypothesis, &seat, *spot)?);
            let is_seen = evidence.sightings(place).contains(&Sighting { member, at });
            is_seen.then(|| content.sector(member, at))
        });
        let Some(claimed) = claimed else { continue };
        let Some(computed) = content.predict(hypothesis, &known, spot) else { continue };
        checked += 1;
        wrong += u32::from(claimed != Some(computed));
        if checked as usize == 2 * ROWS {
            break;
        }
    }
    let refuted = (hypothesis.in_parity * wrong).checked_div(checked).unwrap_or(0);
    hypothesis.in_parity -= refuted;
    hypothesis.not_in_parity = refuted;
    hypothesis.contradicted += refuted;
}

/// Counts rows in which P or Q is zero although a block lies there that says where it belongs. No data are equal to such
/// a block, so parity of its row is not zero: what is taken for parity are data. It needs no redundancy.
pub(super) fn hollow(hypothesis: &Hypothesis, evidence: &Evidence, content: &Content<'_>) -> u32 {
    let Some(raid) = hypothesis.map.parity() else { return 0 };
    let (mut compared, mut hollow) = (0, 0);
    let mut spots = Vec::new();
    for place in &evidence.places {
        let Some(base) = hypothesis.bases[place.anchor] else { continue };
        hypothesis.map.spots(base + place.at, &mut spots);
        let Some(&spot) = spots.first() else { continue };
        let at = |role: usize| {
            let seat = hypothesis.seats[role]?;
            Some((seat.member, position(hypothesis, &seat, spot)?))
        };
        let is_there = at(spot.role).is_some_and(|(member, at)| {
            evidence.sightings(place).contains(&Sighting { member, at })
        });
        if !is_there {
            continue;
        }
        let stripe = raid.stripe_of_row(MemberByte::new(spot.row));
        let parities = [Column::P, Column::Q].into_iter().take(raid.parities());
        let sectors = parities.filter_map(|parity| {
            let (member, at) = at(raid.role_of(stripe, parity).index())?;
            content.sector(member, at)
        });
        let sectors: Vec<Vec<u8>> = sectors.collect();
        compared += u32::from(!sectors.is_empty());
        let is_zero = |sector: &Vec<u8>| sector.iter().all(|byte| *byte == 0);
        hollow += u32::from(sectors.iter().any(is_zero));
        if compared as usize == 4 * ROWS {
            break;
        }
    }
    hollow
}

/// Compares content with redundancy in rows with evidence, as far as all members but as many as redundancy spares
/// are there.
pub(super) fn agreement(
    hypothesis: &Hypothesis,
    evidence: &Evidence,
    content: &Content<'_>,
) -> Agreement {
    let mut agreement = Agreement::default();
    let present: Vec<usize> =
        (0..hypothesis.seats.len()).filter(|role| hypothesis.seats[*role].is_some()).collect();
    let rows = rows_with_evidence(hypothesis, evidence);
    let spare = match hypothesis.map.parity() {
        Some(raid) => raid.parities().saturating_sub(hypothesis.missing()),
        None => usize::from(hypothesis.map.copies() > 1),
    };
    for (index, &(row, section)) in rows.iter().take(if spare > 0 { ROWS } else { 0 }).enumerate() {
        // Other roles each time.
        let tested: Vec<usize> =
            (0..spare).map(|next| present[(index + next) % present.len()]).collect();
        let mut known: Vec<bool> = hypothesis.seats.iter().map(Option::is_some).collect();
        tested.iter().for_each(|role| known[*role] = false);
        for role in tested {
            let spot = Spot { role, row, section };
            let Some(predicted) = content.predict(hypothesis, &known, spot) else { continue };
            let seat =
                hypothesis.seats[role].and_then(|seat| content.of_seat(hypothesis, &seat, spot));
            match seat {
                Some(sector) if sector != predicted => agreement.differ += 1,
                Some(sector) if sector.iter().any(|byte| *byte != 0) => agreement.agree += 1,
                _ => {}
            }
        }
    }
    agreement
}
