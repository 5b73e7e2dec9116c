//! A raid6 whose members are all there: where Q lies, row by row, is the order of its members.
//!
//! ```text
//!   row       m0  m1  m2  m3      the sum of all is Q: the member that equals it has it
//!   0         D   D   P   Q       m3
//!   1         D   P   Q   D       m2      runs of rows of one chunk; from one to the next Q moves by one role
//!   2         P   Q   D   D       m1
//!   3         Q   D   D   P       m0
//! ```
//!
//! The sum of all members of a row is Q, because P is the sum of the data. So rows name the member with Q without any
//! geometry, and a geometry has to give all members roles that agree with that. Its chunk and the direction in which parity
//! rotates follow. The data offset turns the roles: it comes from the few blocks that say where they belong.
//!
//! Deliberately absent: raid5, where P is the same in any order; members with data offsets of their own; a missing member.

use std::collections::BTreeMap;

use braid_array::MemberByte;
use braid_array::geometry::Column;
use braid_level::Level;

use super::answer::{Answer, Hypothesis, Seat};
use super::build::{Grounds, open};
use super::candidates;
use super::claimed::offsets;
use super::files::Open;
use super::fill::OFFSETS;
use super::judge::judge;
use super::map::{BOUNDLESS, Map};
use super::question::{Claim, Rows};
use super::room::has_room;

const SECTOR: usize = 512;
const UNIT: u64 = 4096;
/// Rows that are read, half of them side by side; those with content that are enough, and that have to be there.
const READ: u64 = 8192;
const ENOUGH: usize = 768;
const LEAST: usize = 64;
/// Rows side by side.
const RUN: u64 = 64;
/// The share of rows, as a divisor, that may be wrong: members that were overwritten in places.
const MOST_WRONG: usize = 50;

/// The member that has Q at a byte.
type Seen = (u64, usize);

impl Open<'_> {
    /// Decides a raid6 by the members that have Q, and by files; `None` if it is none, or files do not decide.
    pub(super) fn decide_by_rotation(&self) -> Option<Answer> {
        let seen = seen(&self.question.sizes, self.rows);
        if seen.len() < LEAST {
            return None;
        }
        let main = self.evidence.of(self.anchor);
        let (question, all, anchor) = (self.question, self.evidence, self.anchor);
        let grounds = Grounds { question, all, main: &main, anchor, base: 0 };
        let mut fillings: Vec<Hypothesis> = Vec::new();
        let maps = candidates::maps(question).into_iter();
        let members = question.sizes.len();
        for map in maps.filter(|map| map.pattern.members == members) {
            if map.pattern.level != Level::Raid6 {
                continue;
            }
            let claim = Claim { pattern: map.pattern, offset: BOUNDLESS, roles: Vec::new() };
            let of_claims = question.claims.iter().map(|claim| claim.offset);
            let named = offsets(&claim, &map, &main).into_iter().chain(of_claims).chain(OFFSETS);
            let mut named: Vec<u64> = named.filter(|offset| *offset < BOUNDLESS).collect();
            named.sort_unstable();
            named.dedup();
            for offset in named {
                let Some(order) = order(&map, offset, &seen) else { continue };
                let seats = order.into_iter().map(|member| Some(Seat::new(member, offset)));
                let mut one = open(map.clone(), seats.collect(), &grounds);
                judge(&mut one, all, question);
                if has_room(&one, question, anchor) {
                    fillings.push(one);
                }
            }
        }
        // The rows prove the member of each role; files tell the layouts apart that have Q in the same places.
        let tried = self.tried_all(fillings)?;
        self.answer(tried.first().filter(|best| best.is_good())?, &tried)
    }
}

/// Returns the members that have Q, in rows with content.
fn seen(sizes: &[u64], rows: &dyn Rows) -> Vec<Seen> {
    let end = sizes.iter().copied().min().unwrap_or(0);
    let units = end / UNIT;
    let spread =
        (0..READ / 2).map(|index| u128::from(units) * u128::from(index) / u128::from(READ / 2));
    let first = |run: u128| u128::from(units) * (2 * run + 1) / u128::from(READ / RUN);
    let side_by_side =
        (0..READ / 2).map(|index| first(u128::from(index / RUN)) + u128::from(index % RUN));
    let mut places: Vec<u64> = spread
        .zip(side_by_side)
        .flat_map(|(one, other)| [one, other])
        .filter_map(|unit| u64::try_from(unit).ok().filter(|unit| *unit < units))
        .map(|unit| unit * UNIT)
        .collect();
    // In an order that meets all parts of the members soon.
    places.sort_unstable();
    places.dedup();
    let step = places.len() / 16 + 1;
    let order = (0..step).flat_map(|from| (from..places.len()).step_by(step));
    order.filter_map(|index| seen_at(places[index], sizes.len(), rows)).take(ENOUGH).collect()
}

/// The one member that equals the sum of all; `None` where there is no content, or several do.
fn seen_at(at: u64, members: usize, rows: &dyn Rows) -> Option<Seen> {
    let read = |member| rows.read(member, at, SECTOR);
    let sectors: Vec<Vec<u8>> = (0..members).map(read).collect::<Option<_>>()?;
    let mut sum = vec![0; SECTOR];
    sectors.iter().for_each(|sector| braid_parity::xor_into(&mut sum, sector));
    let mut equal = (0..members).filter(|member| sectors[*member] == sum);
    let member = equal.next().filter(|_| sum.iter().any(|byte| *byte != 0))?;
    equal.next().is_none().then_some((at, member))
}

/// Returns the member of each role with this data offset; `None` if rows contradict it, or two members have no row.
fn order(map: &Map, offset: u64, seen: &[Seen]) -> Option<Vec<usize>> {
    let raid = map.parity()?;
    let members = map.pattern.members;
    let mut votes: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for (at, member) in seen {
        let Some(row) = at.checked_sub(offset) else { continue };
        let stripe = raid.stripe_of_row(MemberByte::new(row));
        let role = raid.role_of(stripe, Column::Q).index();
        *votes.entry((role, *member)).or_default() += 1;
    }
    let best = |role: usize| {
        let of_role = votes.iter().filter(|((one, _), _)| *one == role);
        of_role.max_by_key(|(_, count)| **count).map(|((_, member), count)| (*member, *count))
    };
    let order: Vec<Option<(usize, usize)>> = (0..members).map(best).collect();
    let is_seen = |member: &usize| order.iter().flatten().any(|(one, _)| one == member);
    let mut left = (0..members).filter(|member| !is_seen(member));
    let last = left.next();
    // Not two that have no row, and none with two roles.
    let without = order.iter().filter(|one| one.is_none()).count();
    if left.next().is_some() || without != usize::from(last.is_some()) {
        return None;
    }
    let (all, right): (usize, usize) =
        (votes.values().sum(), order.iter().flatten().map(|(_, count)| count).sum());
    let is_right = all >= LEAST && (all - right) * MOST_WRONG <= all;
    let order: Option<Vec<usize>> =
        order.into_iter().map(|one| one.map(|(member, _)| member).or(last)).collect();
    order.filter(|_| is_right)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::Witnesses;
    use crate::{Anchor, Clue, Pattern, Question, Structure};
    use braid_array::Role;
    use braid_array::geometry::Raid456;
    use braid_files::ReadAt;

    const CHUNK: u64 = 64 << 10;
    const OFFSET: u64 = 1 << 20;
    const SIZE: u64 = OFFSET + (4 << 20);
    /// The member of each role.
    const ORDER: [usize; 6] = [4, 2, 0, 5, 1, 3];
    const PATTERN: Pattern =
        Pattern { level: Level::Raid6, layout: 2, chunk: CHUNK, members: ORDER.len() };

    fn map() -> Map {
        Map::new(PATTERN).expect("a raid6")
    }

    /// The sector of the array that holds its own number.
    fn data(at: u64) -> Vec<u8> {
        let number = (at / 512 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        number.to_le_bytes().repeat(64)
    }

    fn column(raid: &Raid456, row: u64, column: Column) -> Vec<u8> {
        let stripe = raid.stripe_of_row(MemberByte::new(row));
        let first = raid.span_of_stripe(stripe).offset.get() + row % CHUNK;
        let of = |index: usize| data(first + index as u64 * CHUNK);
        match column {
            Column::Data(index) => of(index),
            _ => {
                let mut sources: Vec<Vec<u8>> = vec![vec![0; 512]; raid.powers().max(raid.data())];
                for index in 0..raid.data() {
                    sources[usize::from(raid.power(stripe, index))] = of(index);
                }
                let sources: Vec<Option<&[u8]>> =
                    sources.iter().map(|one| Some(one.as_slice())).collect();
                let (mut p, mut q) = (vec![0; 512], vec![0; 512]);
                braid_parity::pq(&mut p, &mut q, &sources);
                if column == Column::P { p } else { q }
            }
        }
    }

    fn read(member: usize, at: u64, length: usize) -> Option<Vec<u8>> {
        let (map, role) = (map(), ORDER.iter().position(|one| *one == member)?);
        let raid = map.parity()?;
        let sector = |at: u64| match at.checked_sub(OFFSET) {
            None => vec![0; 512],
            Some(row) => {
                let stripe = raid.stripe_of_row(MemberByte::new(row));
                column(raid, row / 512 * 512, raid.column_of(stripe, Role::nth(role)))
            }
        };
        let (first, end) = (at / 512 * 512, at + length as u64);
        let all: Vec<u8> = (first..end).step_by(512).flat_map(sector).collect();
        let from = (at - first) as usize;
        (end <= SIZE).then(|| all[from..from + length].to_vec())
    }

    #[test]
    fn the_places_of_q_tell_the_order_of_all_members() {
        // One block, as of a file system without checksums. Of two members no file says anything.
        let anchor = Anchor { structure: Structure::Ext, uuid: [1; 16], size: Some(16 << 20) };
        let mut spots = Vec::new();
        map().spots(0, &mut spots);
        let member = ORDER[spots[0].role];
        let clue = Clue { member, at: OFFSET + 1024, anchor: 0, place: 1024, length: 1024 };
        let question = Question {
            sizes: vec![SIZE; ORDER.len()],
            anchors: vec![anchor],
            clues: vec![clue],
            ..Question::default()
        };
        let check = |volume: &dyn ReadAt| {
            let mut found = Witnesses::default();
            for at in (0..40u64).map(|file| file * 4 * CHUNK) {
                let mut sector = [0; 512];
                let is_own = volume.read_at(at, &mut sector).is_ok() && sector[..] == data(at);
                match is_own {
                    true => found.good.push(std::iter::once(at..at + 512).collect()),
                    false => found.bad += 1,
                }
            }
            found
        };
        let Answer::Decided { first, .. } = super::super::solve_by_files(&question, &read, &check)
        else {
            panic!("Q tells the order");
        };
        let members: Vec<_> = first.seats.iter().flatten().map(|seat| seat.member).collect();
        assert_eq!((members.as_slice(), first.pattern), (&ORDER[..], PATTERN));
    }

    #[test]
    fn rows_that_do_not_fit_are_contradictions() {
        let map = map();
        let raid = map.parity().expect("it has parity");
        let row = |row: u64| {
            let role = raid.role_of(raid.stripe_of_row(MemberByte::new(row)), Column::Q);
            (OFFSET + row, ORDER[role.index()])
        };
        let rows = |step: usize| (0..24 * CHUNK).step_by(step).map(row);
        let seen: Vec<Seen> = rows(8192).collect();
        assert_eq!(order(&map, OFFSET, &seen), Some(ORDER.to_vec()));
        // Another chunk, and an offset that cuts chunks in two.
        let other = Map::new(Pattern { chunk: 2 * CHUNK, ..PATTERN }).expect("a raid6");
        assert_eq!(order(&other, OFFSET, &seen), None);
        assert_eq!(order(&map, OFFSET - CHUNK / 2, &seen), None);
        // By an offset that is off by a chunk all members have another role.
        assert_ne!(order(&map, OFFSET - CHUNK, &seen), Some(ORDER.to_vec()));
        // One member is left, or two.
        let without = |members: &[usize]| -> Vec<Seen> {
            rows(4096).filter(|(_, member)| !members.contains(member)).collect()
        };
        assert_eq!(order(&map, OFFSET, &without(&[5])), Some(ORDER.to_vec()));
        assert_eq!(order(&map, OFFSET, &without(&[5, 1])), None);
    }
}
