//! Content as evidence: what redundancy predicts of a member, beside what the member has.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use braid_array::MemberByte;
use braid_array::geometry::{Column, Raid456};

use super::answer::{Agreement, Hypothesis, Seat};
use super::evidence::{Evidence, Sighting};
use super::judge::{is_parity, position, seat_of};
use super::map::Spot;
use super::question::Rows;

const SECTOR: usize = 512;
/// Blocks of a row are sought at the same multiple of it on all members.
const UNIT: u64 = 4096;
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

/// Counts rows whose parity cannot be parity, which needs no redundancy:
/// * P or Q is zero, although a block lies there that says where it belongs. No data are equal to such a block.
/// * P or Q is a block of another place, other data are not zero, and none equals it. Only a sum of three blocks looks like one.
pub(super) fn impossible(
    hypothesis: &Hypothesis,
    evidence: &Evidence,
    content: &Content<'_>,
) -> u32 {
    let Some(raid) = hypothesis.map.parity() else { return 0 };
    let is_zero = |sector: &Vec<u8>| sector.iter().all(|byte| *byte == 0);
    let all = || evidence.places.iter().flat_map(|place| evidence.sightings(place));
    let units: BTreeSet<(usize, u64)> = all().map(|one| (one.member, one.at / UNIT)).collect();
    let (mut rows, mut sums, mut impossible) = (0, 0, 0);
    let mut spots = Vec::new();
    for place in &evidence.places {
        let Some(base) = hypothesis.bases[place.anchor] else { continue };
        hypothesis.map.spots(base + place.at, &mut spots);
        let Some(&spot) = spots.first() else { continue };
        hypothesis.map.echoes(base + place.at, &mut spots);
        let at = |spot: Spot| {
            let seat = hypothesis.seats[spot.role]?;
            Some(Sighting { member: seat.member, at: position(hypothesis, &seat, spot)? })
        };
        let is_there = |one: Sighting| evidence.sightings(place).contains(&one);
        let columns = |row: u64, columns: &mut dyn Iterator<Item = Column>| -> Vec<Sighting> {
            let stripe = raid.stripe_of_row(MemberByte::new(row));
            let role = |column| raid.role_of(stripe, column).index();
            columns.filter_map(|column| at(Spot { role: role(column), row, section: 0 })).collect()
        };
        let data = || (0..raid.data()).map(Column::Data);
        let mut parity = [Column::P, Column::Q].into_iter().take(raid.parities());
        if rows < 4 * ROWS && at(spot).is_some_and(is_there) {
            rows += 1;
            let mut parities = columns(spot.row, &mut parity).into_iter();
            let mut sectors =
                parities.by_ref().filter_map(|one| content.sector(one.member, one.at));
            impossible += u32::from(sectors.any(|sector| is_zero(&sector)));
        }
        let echoes: Vec<Sighting> = spots.iter().skip(1).filter_map(|spot| at(*spot)).collect();
        for one in evidence.sightings(place).iter().filter(|one| !echoes.contains(one)) {
            if sums == 2 * ROWS || !is_parity(hypothesis, one) {
                continue;
            }
            let Some((_, seat)) = seat_of(hypothesis, one.member) else { continue };
            let row = one.at - seat.data_offset;
            let others = columns(row, &mut data());
            let is_block = |one: &&Sighting| units.contains(&(one.member, one.at / UNIT));
            let is_sum = others.iter().filter(is_block).count() > 1;
            let sector = |one: &Sighting| content.sector(one.member, one.at);
            let sectors: Vec<Vec<u8>> = others.iter().filter_map(sector).collect();
            // A copy in a journal, of which this is the parity.
            let is_copy = sector(one).is_some_and(|own| sectors.contains(&own));
            sums += 1;
            impossible +=
                u32::from(!is_sum && !is_copy && sectors.iter().any(|sector| !is_zero(sector)));
        }
    }
    impossible
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
