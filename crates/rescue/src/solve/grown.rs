//! Members that are seated one after the other, as files ask for them.
//!
//! ```text
//!   seats      m3  -   -   -      the walk through names stops at a block of role 2
//!              m3  -  m0   -      each free member is tried there: garbage ends the walk, the right one leads on to files
//!              m3  -  m1   -      ✓  the next block that is asked for is of role 1, and so on
//! ```
//!
//! Eight members have 40,320 orders; seated one after the other they take some hundred walks.
//!
//! Invariants
//! * Few orders are kept, so none is believed because the others are worse: an answer is one only if whole files lie on each
//!   member that has data, by themselves ([`LEAST_ON_SEAT`], or one if its superblock names the same role), and none of the
//!   others is near. The last member has the last role without a file.
//! * Where a level has copies or parity, they agree.
//!
//! Deliberately absent: far copies of raid10, members with data offsets of their own.

use std::cell::Cell;
use std::collections::BTreeMap;

use braid_level::Level;

use super::answer::{Answer, Hypothesis, Seat};
use super::build::{Grounds, open, suffices};
use super::candidates;
use super::claimed::offsets;
use super::content::{Content, agreement};
use super::evidence::Evidence;
use super::files::{LEAST_FILES, LEAST_ON_SEAT, Open, Tried};
use super::judge::{judge, seat_of};
use super::map::{Map, Pattern};
use super::question::Claim;
use super::related::{Redundancy, sums};
use super::room::has_room;
use super::unfit::take_stale_out;

/// Orders of members that are kept at a time.
const KEPT: usize = 12;
/// Walks through names from starts of one kind.
const MOST_WALKS: usize = 2000;
/// Chunks that `mdadm --create` may have been given before.
const CHUNKS: std::ops::RangeInclusive<u32> = 12..=22;

/// A hypothesis some of whose roles are open still; those that are closed stay missing.
#[derive(Clone)]
struct Start {
    hypothesis: Hypothesis,
    /// Bytes from the start of each member to its data.
    offset: u64,
    is_closed: Vec<bool>,
}

impl Open<'_> {
    /// Decides by files with members seated one after the other; `None` if they prove nothing. `found` are hypotheses by
    /// blocks, the best first.
    pub(super) fn decide_grown(&self, found: &[Hypothesis]) -> Option<Answer> {
        let near = || {
            let with_offset = |one: Hypothesis| {
                let offset = one.seats.iter().flatten().next()?.data_offset;
                Some((one, offset))
            };
            let near = self.near(found).into_iter().map(|one| self.with_blocks(one));
            near.filter_map(with_offset).collect()
        };
        let phases: [&dyn Fn() -> Vec<(Hypothesis, u64)>; 4] =
            [&|| self.as_superblocks_say(), &near, &|| self.as_claimed(), &|| {
                self.of_all_members()
            }];
        phases.into_iter().find_map(|starts| self.decide_from(starts()))
    }

    fn decide_from(&self, starts: Vec<(Hypothesis, u64)>) -> Option<Answer> {
        let (walks, mut done) = (Cell::new(0), Vec::<Tried>::new());
        for start in starts {
            self.grow(start, &walks, &mut done);
            if walks.get() > MOST_WALKS || done.iter().any(|one| self.is_proved(one)) {
                break;
            }
        }
        done.sort_by_key(|one| {
            std::cmp::Reverse((one.witnesses.good.len(), one.hypothesis.score()))
        });
        let best = done.first().filter(|best| self.is_proved(best))?;
        self.answer(best, &done)
    }

    /// Seats all members, and adds the best orders with the files that were found.
    fn grow(&self, (start, offset): (Hypothesis, u64), walks: &Cell<usize>, done: &mut Vec<Tried>) {
        let is_closed = vec![false; start.seats.len()];
        let mut kept =
            vec![(self.tried(start.clone()), Start { hypothesis: start, offset, is_closed })];
        while !kept.is_empty() {
            let mut next: Vec<(Tried, Start)> = Vec::new();
            for (tried, start) in kept {
                let open = |role: &usize| {
                    start.hypothesis.seats[*role].is_none() && !start.is_closed[*role]
                };
                let demanded = tried.demanded.filter(open);
                let Some(role) = demanded.or_else(|| (0..start.is_closed.len()).find(open)) else {
                    done.push(tried);
                    continue;
                };
                for start in self.seated(&start, role) {
                    walks.set(walks.get() + 1);
                    next.push((self.tried(start.hypothesis.clone()), start));
                }
            }
            if walks.get() > MOST_WALKS {
                return;
            }
            next.sort_by_key(|(tried, _)| std::cmp::Reverse(tried.progress()));
            next.truncate(KEPT);
            kept = next;
        }
    }

    /// The same with each free member in a role, and, where members are too few, with none.
    fn seated(&self, start: &Start, role: usize) -> Vec<Start> {
        let hypothesis = &start.hypothesis;
        let offset = start.offset;
        let free: Vec<usize> = (0..self.question.sizes.len())
            .filter(|member| self.is_free(hypothesis, *member))
            .collect();
        let open = hypothesis.seats.iter().zip(&start.is_closed);
        let open = open.filter(|(seat, is_closed)| seat.is_none() && !**is_closed).count();
        let with = |member: &usize| {
            let mut one = start.clone();
            one.hypothesis.seats[role] = Some(Seat::new(*member, offset));
            one
        };
        let mut seated: Vec<Start> = free.iter().map(with).collect();
        let mut without = start.clone();
        without.is_closed[role] = true;
        let mut full = without.hypothesis.clone();
        let seats = full.seats.iter_mut().zip(&without.is_closed);
        seats
            .filter(|(_, is_closed)| !**is_closed)
            .for_each(|(seat, _)| *seat = Some(Seat::new(0, 0)));
        if free.len() < open && suffices(&full) {
            seated.push(without);
        }
        seated
    }

    fn is_free(&self, hypothesis: &Hypothesis, member: usize) -> bool {
        seat_of(hypothesis, member).is_none()
            && !self.evidence.is_clone(member)
            && !self.question.stale.contains(&member)
    }

    /// True if files by themselves prove the role of each member that has data.
    fn is_proved(&self, tried: &Tried) -> bool {
        let one = &tried.hypothesis;
        let good = tried.witnesses.good.len();
        let content = Content::new(self.rows);
        let (rows, redundancy) = (agreement(one, self.evidence, &content), one.map.copies() > 1);
        let few = |is_asked: &dyn Fn(&Seat) -> bool, least: usize| {
            self.on_seats(tried, is_asked).into_iter().filter(|count| *count < least).count()
        };
        let open = few(&|seat| !self.is_named(one, seat), LEAST_ON_SEAT);
        // One role and one member are left.
        let members = self.question.sizes.len();
        let is_last = one.missing() == 0 && one.seats.len() == members;
        good >= LEAST_FILES
            && tried.is_sound()
            && suffices(one)
            && rows.differ * 4 <= rows.agree
            && (!redundancy || rows.agree > 0)
            && open.max(few(&|_| true, 1)) <= usize::from(is_last)
    }

    /// True if superblocks name the member's role, too: one whole file is enough to confirm them.
    fn is_named(&self, one: &Hypothesis, seat: &Seat) -> bool {
        let role =
            one.seats.iter().position(|other| other.is_some_and(|it| it.member == seat.member));
        let names = |claim: &Claim| {
            claim.pattern.members == one.seats.len()
                && role.is_some_and(|role| claim.roles.get(role) == Some(&Some(seat.member)))
        };
        self.question.claims.iter().any(names)
    }

    /// The hypothesis with those members alone of which blocks speak for their roles.
    fn with_blocks(&self, mut one: Hypothesis) -> Hypothesis {
        one.seats.iter_mut().for_each(|seat| *seat = seat.filter(super::files::has_blocks));
        take_stale_out(&mut one, self.question);
        one
    }

    /// The members in the order of their superblocks, with the chunk that these name, and with others; by the offset that
    /// they name, and by that of most blocks.
    fn as_superblocks_say(&self) -> Vec<(Hypothesis, u64)> {
        let mut starts = Vec::new();
        for claim in &self.question.claims {
            let named = claim.pattern.chunk;
            let chunks =
                CHUNKS.map(|shift| 1 << shift).filter(|chunk| named > 0 && *chunk != named);
            for chunk in std::iter::once(named).chain(chunks) {
                let pattern = Pattern { chunk, ..claim.pattern };
                self.add(pattern, claim, &mut starts, &|offset| {
                    let seat = |member: &Option<usize>| Some(Seat::new((*member)?, offset));
                    claim.roles.iter().map(seat).collect()
                });
            }
        }
        starts.retain(|(start, _)| suffices(start));
        starts
    }

    /// The geometries that superblocks name, without the order of the members.
    fn as_claimed(&self) -> Vec<(Hypothesis, u64)> {
        let mut starts = Vec::new();
        for claim in &self.question.claims {
            let seats = |offset| self.by_blocks(claim.pattern, offset);
            self.add(claim.pattern, claim, &mut starts, &seats);
        }
        starts
    }

    /// All geometries of all members, as far as the sum of all is what their level says.
    fn of_all_members(&self) -> Vec<(Hypothesis, u64)> {
        let members = self.question.sizes.len();
        let redundancy = sums(&self.question.sizes, self.rows);
        let is_possible = |map: &Map| match map.pattern.level {
            Level::Raid4 | Level::Raid5 => redundancy == Some(Redundancy::OneParity),
            Level::Raid6 => redundancy == Some(Redundancy::TwoParities),
            Level::Raid0 => redundancy.is_none(),
            _ => redundancy != Some(Redundancy::TwoParities),
        };
        let mut starts = Vec::new();
        let maps = candidates::maps(self.question).into_iter();
        for map in maps.filter(|map| map.pattern.members == members && is_possible(map)) {
            let claim = Claim { pattern: map.pattern, offset: u64::MAX, roles: Vec::new() };
            let seats = |offset| self.by_blocks(claim.pattern, offset);
            self.add(map.pattern, &claim, &mut starts, &seats);
        }
        starts
    }

    fn add(
        &self,
        pattern: Pattern,
        claim: &Claim,
        starts: &mut Vec<(Hypothesis, u64)>,
        seats: &dyn Fn(u64) -> Vec<Option<Seat>>,
    ) {
        let main = self.evidence.of(self.anchor);
        let map = Map::new(pattern)
            .filter(|map| map.sections() == 1 && self.question.allows(&map.pattern));
        let Some(map) = map else { return };
        let grounds = Grounds {
            question: self.question,
            all: self.evidence,
            main: &main,
            anchor: self.anchor,
            base: 0,
        };
        let is_named = |offset: &u64| *offset < super::map::BOUNDLESS;
        for offset in offsets(claim, &map, &main).into_iter().filter(is_named) {
            let seats = seats(offset);
            if seats.len() != pattern.members {
                continue;
            }
            let mut start = open(map.clone(), seats, &grounds);
            judge(&mut start, self.evidence, self.question);
            // Without a member of which blocks tell the role, where superblocks name the geometry.
            let is_fit = match start.seats.iter().any(Option::is_some) {
                true => has_room(&start, self.question, self.anchor),
                false => is_named(&claim.offset),
            };
            if is_fit {
                starts.push((start, offset));
            }
        }
    }

    /// The members of which blocks say the role by this pattern and offset, and of no other member as many.
    fn by_blocks(&self, pattern: Pattern, offset: u64) -> Vec<Option<Seat>> {
        let mut seats = vec![None; pattern.members];
        let Some(map) = Map::new(pattern) else { return seats };
        let main: Evidence = self.evidence.of(self.anchor);
        let mut votes: BTreeMap<(usize, usize), u32> = BTreeMap::new();
        let mut spots = Vec::new();
        for place in &main.places {
            map.spots(place.at, &mut spots);
            for spot in &spots {
                let seen = main
                    .sightings(place)
                    .iter()
                    .filter(|one| one.at.checked_sub(spot.row) == Some(offset));
                seen.for_each(|one| *votes.entry((spot.role, one.member)).or_default() += 1);
            }
        }
        for (&(role, member), &count) in &votes {
            let is_rival = |(&(other, with), many): (&(usize, usize), &u32)| {
                (other == role) != (with == member) && *many >= count
            };
            if !votes.iter().any(is_rival) {
                seats[role] = Some(Seat::new(member, offset));
            }
        }
        seats
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::Witnesses;
    use crate::{Anchor, Clue, Question, Structure};
    use braid_files::ReadAt;

    const CHUNK: u64 = 64 << 10;
    const SIZE: u64 = 2 << 20;
    const UNIT: u64 = 4096;
    /// The member of each role of a raid0.
    const ORDER: [usize; 8] = [5, 2, 0, 7, 3, 1, 6, 4];

    /// The number of a unit of the array. Sums of them are no others.
    fn number(unit: u64) -> u64 {
        (unit + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    fn read(member: usize, at: u64, length: usize) -> Option<Vec<u8>> {
        let role = ORDER.iter().position(|one| *one == member)? as u64;
        let unit = |row: u64| (row / CHUNK * 8 + role) * CHUNK / UNIT + row % CHUNK / UNIT;
        let byte = |at: u64| number(unit(at)).to_le_bytes()[(at % 8) as usize];
        (at + length as u64 <= SIZE).then(|| (at..at + length as u64).map(byte).collect())
    }

    /// Files of two units, whose units have to have their own numbers.
    fn check(volume: &dyn ReadAt) -> Witnesses {
        let mut found = Witnesses::default();
        for start in (0..100).map(|file| file * 23 * UNIT) {
            let is_own = |at: &u64| {
                let mut bytes = [0; 8];
                volume.read_at(*at, &mut bytes).is_ok()
                    && u64::from_le_bytes(bytes) == number(at / UNIT)
            };
            match [start, start + UNIT].iter().all(is_own) {
                true => found.good.push(std::iter::once(start..start + 2 * UNIT).collect()),
                false => found.bad += 1,
            }
        }
        found
    }

    #[test]
    fn files_seat_one_member_after_the_other() {
        // One block, as of a file system without checksums: the start of the array is on member 5.
        let anchor = Anchor { structure: Structure::Ext, uuid: [1; 16], size: Some(8 * SIZE) };
        let clue = Clue { member: ORDER[0], at: 1024, anchor: 0, place: 1024, length: 1024 };
        let question = Question {
            sizes: vec![SIZE; 8],
            anchors: vec![anchor],
            clues: vec![clue],
            ..Question::default()
        };
        let Answer::Decided { first, .. } = super::super::solve_by_files(&question, &read, &check)
        else {
            panic!("files decide");
        };
        let members: Vec<_> = first.seats.iter().flatten().map(|seat| seat.member).collect();
        assert_eq!((members.as_slice(), first.pattern.chunk), (&ORDER[..], CHUNK));
        // Files on six of the members leave the order of the others open.
        let few = |volume: &dyn ReadAt| {
            let mut found = check(volume);
            found.good.retain(|file| file[0].start / CHUNK % 8 < 6);
            Witnesses { bad: 0, ..found }
        };
        let answer = super::super::solve_by_files(&question, &read, &few);
        assert!(matches!(answer, Answer::Undecided { .. }));
    }
}
