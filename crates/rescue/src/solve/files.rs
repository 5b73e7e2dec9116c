//! Files as evidence, where blocks and parity leave roles open.
//!
//! ```text
//!   a hypothesis    m3  m0   -   -      two roles of which no block says anything
//!   its fillings    m3  m0  m1  m2      each order of the members that are left
//!                   m3  m0  m2  m1
//!                    └── a volume ──▶ names ──▶ extents ──▶ files whose own checksums are right, or wrong
//! ```
//!
//! A small array has its metadata on few members, but files on all. With members in a wrong order their checksums
//! are wrong, or their beginnings are not what they are.
//!
//! Invariants
//! * All fillings of all hypotheses that explain nearly as many blocks are tried, or none is believed: first those that
//!   have a member in each role, then the others.
//! * A member without blocks needs whole files on it, or parity that agrees.
//! * A filling is believed only if each one with other content has much fewer whole files.

use std::cell::Cell;
use std::io;
use std::ops::Range;

use braid_files::ReadAt;

use super::answer::{Answer, Hypothesis, Seat};
use super::build::suffices;
use super::content::{Content, agreement};
use super::decide::{LEAST_OF_SEAT, TOO_NEAR, extent, holds, is_refuted, left_over};
use super::equal::have_same_content;
use super::evidence::Evidence;
use super::judge::{judge, position, seat_of};
use super::map::Spot;
use super::question::{Question, Rows};
use super::room::has_room;
use super::unfit::{needed, take_stale_out};
use crate::samples::{HOLE, Witnesses};

/// Finds files in a volume, and checks them.
pub type Check<'a> = &'a dyn Fn(&dyn ReadAt) -> Witnesses;

/// Fillings that are tried. The orders of five members are 120.
pub(super) const MOST_FILLINGS: usize = 1000;
/// Those that are listed, at most.
pub(super) const MOST_LISTED: usize = 100_000;
/// Bytes that all of them read, at most.
const MOST_BYTES: u64 = 8 << 30;
/// Share of the best score, as a fraction, from which on a hypothesis is tried.
const NEAR: (i64, i64) = (9, 10);
/// Whole files that a decision needs, in all and on each member without blocks.
pub(super) const LEAST_FILES: usize = 8;
pub(super) const LEAST_ON_SEAT: usize = 3;
/// Damaged ones that it bears, as a divisor of the whole ones: files that were open when the array failed.
const MOST_BAD: u32 = 16;
/// Bytes that no chunk divides.
const UNIT: u64 = 4096;
const SECTOR: usize = 512;

/// A question that is still open.
pub(super) struct Open<'a> {
    pub question: &'a Question,
    pub rows: &'a dyn Rows,
    pub evidence: &'a Evidence,
    pub anchor: usize,
    pub check: Check<'a>,
    /// Bytes that were read.
    pub read: Cell<u64>,
}

/// A filling with the files that were found.
pub(super) struct Tried {
    pub hypothesis: Hypothesis,
    pub witnesses: Witnesses,
    /// Files that may be wrong.
    bad: u32,
    /// The role of the first bytes that could not be read.
    pub demanded: Option<usize>,
    /// Units that could be read before.
    read: u64,
}

impl Tried {
    /// The progress of the walk with an order of the members: larger is better.
    pub(super) fn progress(&self) -> (i64, u64) {
        let good = i64::try_from(self.witnesses.good.len()).unwrap_or(i64::MAX);
        (good * 2 - i64::from(self.bad), self.read)
    }

    /// True if enough files are whole, and content agrees.
    pub(super) fn is_good(&self) -> bool {
        let rows = self.hypothesis.agreement;
        self.witnesses.good.len() >= LEAST_FILES && self.is_sound() && rows.differ * 4 <= rows.agree
    }

    /// True if no more files are damaged than were open when the array failed.
    pub(super) fn is_sound(&self) -> bool {
        self.bad.saturating_mul(MOST_BAD) <= self.hypothesis.files.0
    }
}

/// True if blocks alone say that a member has this role.
pub(super) fn has_blocks(seat: &Seat) -> bool {
    let support = seat.satisfied + seat.echoes;
    support >= LEAST_OF_SEAT && support >= 2 * seat.runner_up && seat.contradicted == 0
}

impl Open<'_> {
    /// Decides with the hypotheses `found`, the best of which is first; `None` if files do not decide.
    pub(super) fn decide(&self, mut found: Vec<Hypothesis>) -> Option<Answer> {
        found = self.near(&found);
        let mut fillings = Vec::new();
        found.iter().for_each(|one| self.fill(one, &mut fillings));
        if fillings.len() > MOST_LISTED {
            return None;
        }
        let (whole, rest): (Vec<Hypothesis>, Vec<Hypothesis>) =
            fillings.into_iter().partition(|one| one.missing() == 0);
        self.decide_among(whole).or_else(|| self.decide_among(rest))
    }

    /// The hypotheses that explain nearly as many blocks as the first, and can be filled.
    pub(super) fn near(&self, found: &[Hypothesis]) -> Vec<Hypothesis> {
        let best = found.first().map_or(0, Hypothesis::score);
        let is_near = |one: &&Hypothesis| one.score() * NEAR.1 >= best * NEAR.0;
        found.iter().filter(is_near).filter(|one| self.is_candidate(one)).cloned().collect()
    }

    pub(super) fn decide_among(&self, fillings: Vec<Hypothesis>) -> Option<Answer> {
        self.judge(&self.tried_all(fillings)?)
    }

    /// Tries all of these, and returns those that content does not refute, the best first; `None` if that takes too long.
    pub(super) fn tried_all(&self, fillings: Vec<Hypothesis>) -> Option<Vec<Tried>> {
        if fillings.len() > MOST_FILLINGS {
            return None;
        }
        let content = Content::new(self.rows);
        let mut tried = Vec::new();
        for mut hypothesis in fillings {
            judge(&mut hypothesis, self.evidence, self.question);
            hypothesis.agreement = agreement(&hypothesis, self.evidence, &content);
            if !is_refuted(&hypothesis) {
                tried.push(self.tried(hypothesis));
            }
            if self.read.get() > MOST_BYTES {
                return None;
            }
        }
        let rank = |one: &Tried| (one.witnesses.good.len(), one.hypothesis.score());
        tried.sort_by_key(|one| std::cmp::Reverse(rank(one)));
        Some(tried)
    }

    /// True if a hypothesis can be filled: its data begin at one byte on all members, and it has no other lengths.
    fn is_candidate(&self, one: &Hypothesis) -> bool {
        let mut seats = one.seats.iter().flatten();
        let Some(first) = seats.clone().next() else { return false };
        one.map.sections() == 1
            && has_room(one, self.question, self.anchor)
            && seats.all(|seat| seat.length.is_none() && seat.data_offset == first.data_offset)
    }

    /// Adds all fillings of a hypothesis: members for roles without blocks, so that it can be read.
    fn fill(&self, one: &Hypothesis, fillings: &mut Vec<Hypothesis>) {
        let mut open = one.clone();
        for seat in &mut open.seats {
            *seat = seat.filter(has_blocks);
        }
        let Some(offset) = one.seats.iter().flatten().map(|seat| seat.data_offset).next() else {
            return;
        };
        take_stale_out(&mut open, self.question);
        let is_free = |member: &usize| {
            seat_of(&open, *member).is_none()
                && !self.evidence.is_clone(*member)
                && !self.question.stale.contains(member)
        };
        let free: Vec<Seat> = (0..self.question.sizes.len())
            .filter(is_free)
            .map(|member| Seat::new(member, offset))
            .collect();
        self.fill_from(0, &mut open, &free, fillings);
    }

    pub(super) fn fill_from(
        &self,
        role: usize,
        open: &mut Hypothesis,
        free: &[Seat],
        fillings: &mut Vec<Hypothesis>,
    ) {
        if fillings.len() > MOST_LISTED {
            return;
        }
        let Some(role) = (role..open.seats.len()).find(|role| open.seats[*role].is_none()) else {
            fillings.push(open.clone());
            return;
        };
        for (index, seat) in free.iter().enumerate() {
            let mut rest = free.to_vec();
            rest.remove(index);
            open.seats[role] = Some(*seat);
            self.fill_from(role + 1, open, &rest, fillings);
        }
        open.seats[role] = None;
        // Only as many stay missing as there are too few members.
        let empty = open.seats.iter().filter(|seat| seat.is_none()).count();
        if free.len() < empty && suffices_with(open, role, free.len()) {
            self.fill_from(role + 1, open, free, fillings);
        }
    }

    pub(super) fn tried(&self, mut hypothesis: Hypothesis) -> Tried {
        let content = Content::new(self.rows);
        let base = hypothesis.bases[self.anchor].unwrap_or(0);
        let size = extent(&hypothesis, self.question, self.question.anchors[self.anchor].size);
        let (demanded, read) = (Cell::new(None), Cell::new(0));
        let volume = Volume {
            hypothesis: &hypothesis,
            open: self,
            content,
            base,
            size,
            demanded: &demanded,
            read: &read,
        };
        let witnesses = (self.check)(&volume);
        let bad = witnesses.bad + witnesses.lost;
        hypothesis.files = (u32::try_from(witnesses.good.len()).unwrap_or(u32::MAX), bad);
        Tried { hypothesis, witnesses, bad, demanded: demanded.get(), read: read.get() }
    }

    /// Decides for the first, if it is good enough and no other content is near.
    fn judge(&self, tried: &[Tried]) -> Option<Answer> {
        let best = tried.first().filter(|best| best.is_good())?;
        let is_open = |seat: &Seat| seat.satisfied + seat.echoes < LEAST_OF_SEAT;
        let mut on_seats = self.on_seats(best, &is_open).into_iter();
        if !holds(&best.hypothesis) && on_seats.any(|count| count < LEAST_ON_SEAT) {
            return None;
        }
        self.answer(best, tried)
    }

    /// The answer with `best`, unless one of `tried`, the best of which are first, has other content and nearly as many whole
    /// files.
    pub(super) fn answer(&self, best: &Tried, tried: &[Tried]) -> Option<Answer> {
        let good = best.witnesses.good.len();
        let size = extent(&best.hypothesis, self.question, self.question.anchors[self.anchor].size);
        let is_same = |one: &Hypothesis| {
            have_same_content(&best.hypothesis, one, self.evidence, self.anchor, size)
        };
        // The next one has the most of those behind it.
        let mut others = tried.iter().skip(1).take_while(|one| !one.witnesses.good.is_empty());
        let second = others.find(|one| !is_same(&one.hypothesis));
        let second = second.map_or(0, |one| one.witnesses.good.len());
        // A file that is whole with one and not with the other is never so by accident. Two members that change places leave
        // most files whole: where nothing speaks against the best, a few are enough.
        let is_far = match best.bad {
            0 => second + LEAST_ON_SEAT <= good,
            _ => second + LEAST_FILES / 2 <= good && second * 4 <= good * 3,
        };
        let content = Content::new(self.rows);
        if !is_far || !needed(&best.hypothesis, self.question, &content).is_empty() {
            return None;
        }
        let mut first = Box::new(best.hypothesis.clone());
        for seat in first.seats.iter_mut().flatten() {
            seat.is_verified = true;
        }
        first.is_readable = suffices(&first);
        first.left_over = left_over(&first, self.question, self.evidence);
        let second = (second as f64 / good as f64).min(TOO_NEAR - 0.01);
        first.is_readable.then_some(Answer::Decided { first, rest: Vec::new(), second })
    }

    /// For each member that is asked for and has data, the number of whole files that have bytes on it.
    pub(super) fn on_seats(&self, tried: &Tried, is_asked: &dyn Fn(&Seat) -> bool) -> Vec<usize> {
        let one = &tried.hypothesis;
        let base = one.bases[self.anchor].unwrap_or(0);
        let mut counts = vec![0; one.seats.len()];
        let mut spots = Vec::new();
        for file in &tried.witnesses.good {
            let mut on = vec![false; counts.len()];
            for at in
                file.iter().flat_map(|range: &Range<u64>| range.clone().step_by(UNIT as usize))
            {
                one.map.spots(base + at, &mut spots);
                spots.iter().for_each(|spot| on[spot.role] = true);
            }
            counts.iter_mut().zip(on).for_each(|(count, on)| *count += usize::from(on));
        }
        // The parity member of a raid4 has no files. It is the one that is left over.
        let has_data = |role: usize| {
            let mut stripes = 0..one.seats.len() as u64;
            let spot = |stripe| Spot { role, row: stripe * one.pattern.chunk, section: 0 };
            stripes.any(|stripe| one.map.owner(spot(stripe)).is_some())
        };
        let seats = one.seats.iter().zip(counts).enumerate();
        let without = seats
            .filter(|(role, (seat, _))| seat.as_ref().is_some_and(is_asked) && has_data(*role));
        without.map(|(_, (_, count))| count).collect()
    }
}

/// True if the array can be read with `role` missing, and with `members` in other roles without one.
fn suffices_with(open: &Hypothesis, role: usize, members: usize) -> bool {
    let mut with = open.clone();
    let behind = (role + 1..with.seats.len()).filter(|role| open.seats[*role].is_none());
    for role in behind.take(members) {
        with.seats[role] = Some(Seat::new(0, 0));
    }
    suffices(&with)
}

/// The structure of a hypothesis, as a volume.
struct Volume<'a> {
    hypothesis: &'a Hypothesis,
    open: &'a Open<'a>,
    content: Content<'a>,
    base: u64,
    size: u64,
    demanded: &'a Cell<Option<usize>>,
    read: &'a Cell<u64>,
}

impl Volume<'_> {
    /// Bytes of the array, which lie in one [`UNIT`].
    fn unit(&self, at: u64, length: usize) -> Option<Vec<u8>> {
        let mut spots = Vec::new();
        self.hypothesis.map.spots(at, &mut spots);
        let seated =
            spots.iter().filter_map(|spot| Some((spot, self.hypothesis.seats[spot.role]?)));
        for (spot, seat) in seated {
            let place = position(self.hypothesis, &seat, *spot)?;
            if let Some(bytes) = self.open.rows.read(seat.member, place, length) {
                return Some(bytes);
            }
        }
        let known: Vec<bool> = self.hypothesis.seats.iter().map(Option::is_some).collect();
        let (first, end) = (at / SECTOR as u64, (at + length as u64).div_ceil(SECTOR as u64));
        let mut bytes = Vec::new();
        for sector in first..end {
            self.hypothesis.map.spots(sector * SECTOR as u64, &mut spots);
            bytes.extend(self.content.predict(self.hypothesis, &known, *spots.first()?)?);
        }
        let from = (at - first * SECTOR as u64) as usize;
        bytes.get(from..from + length).map(<[u8]>::to_vec)
    }

    /// True if the members of all these spots are there, and lack the bytes.
    fn is_hole(&self, spots: &[Spot]) -> bool {
        let lacks = |spot: &Spot| {
            let seat = self.hypothesis.seats[spot.role]?;
            let place = position(self.hypothesis, &seat, *spot)?;
            (place < self.open.question.sizes[seat.member]).then_some(())
        };
        !spots.is_empty() && spots.iter().all(|spot| lacks(spot).is_some())
    }
}

impl ReadAt for Volume<'_> {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        self.open.read.set(self.open.read.get() + buf.len() as u64);
        if self.open.read.get() > MOST_BYTES {
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        let mut done = 0;
        while done < buf.len() {
            let at = self.base + offset + done as u64;
            let length = (UNIT - at % UNIT).min((buf.len() - done) as u64) as usize;
            let Some(bytes) = self.unit(at, length) else {
                let mut spots = Vec::new();
                self.hypothesis.map.spots(at, &mut spots);
                if self.is_hole(&spots) {
                    return Err(HOLE.into());
                }
                if self.demanded.get().is_none() {
                    self.demanded.set(spots.first().map(|spot| spot.role));
                }
                return Err(io::ErrorKind::UnexpectedEof.into());
            };
            self.read.set(self.read.get() + u64::from(self.demanded.get().is_none()));
            buf[done..done + length].copy_from_slice(&bytes);
            done += length;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Anchor, Clue, Structure};

    const CHUNK: u64 = 64 << 10;
    const SIZE: u64 = 4 << 20;
    /// The member of each role of a raid0.
    const ORDER: [usize; 4] = [2, 0, 3, 1];

    /// Each unit of the array has its own number, so a file is whole if its units have theirs.
    fn read(member: usize, at: u64, length: usize) -> Option<Vec<u8>> {
        let role = ORDER.iter().position(|one| *one == member)? as u64;
        let unit = |row: u64| (row / CHUNK * 4 + role) * CHUNK / UNIT + row % CHUNK / UNIT;
        let byte = |at: u64| unit(at).to_le_bytes()[(at % 8) as usize];
        (at + length as u64 <= SIZE).then(|| (at..at + length as u64).map(byte).collect())
    }

    fn check(volume: &dyn ReadAt) -> Witnesses {
        let mut found = Witnesses::default();
        for start in (0..40).map(|file| file * 23 * UNIT) {
            let is_own = |at: &u64| {
                let mut number = [0; 8];
                volume.read_at(*at, &mut number).is_ok() && u64::from_le_bytes(number) == at / UNIT
            };
            match [start, start + UNIT].iter().all(is_own) {
                true => found.good.push(std::iter::once(start..start + 2 * UNIT).collect()),
                false => found.bad += 1,
            }
        }
        found
    }

    /// Blocks that say where they belong, on two members alone.
    fn question() -> Question {
        let anchor = Anchor { structure: Structure::Ext, uuid: [1; 16], size: Some(4 * SIZE) };
        let clue = |(role, chunk): (usize, u64)| {
            let at = chunk * CHUNK + chunk % 5 * UNIT;
            let place = (chunk * 4 + role as u64) * CHUNK + chunk % 5 * UNIT;
            Clue { member: ORDER[role], at, anchor: 0, place, length: 4096 }
        };
        let clues = (0..40).flat_map(|chunk| [(0, chunk), (2, chunk)]).map(clue).collect();
        Question { sizes: vec![SIZE; 4], anchors: vec![anchor], clues, ..Question::default() }
    }

    #[test]
    fn a_geometry_that_superblocks_name_is_tried_in_each_order() {
        // Three blocks alone, which explain nothing.
        let mut question = question();
        question.clues.truncate(3);
        let solve = |question: &Question| super::super::solve_by_files(question, &read, &check);
        assert!(matches!(solve(&question), Answer::Undecided { .. }));
        let (level, layout, chunk) = (braid_level::Level::Raid0, 0, CHUNK);
        let pattern = crate::Pattern { level, layout, chunk, members: 4 };
        question.claims = vec![crate::Claim { pattern, offset: 0, roles: Vec::new() }];
        let Answer::Decided { first, .. } = solve(&question) else { panic!("files decide") };
        let members: Vec<_> = first.seats.iter().flatten().map(|seat| seat.member).collect();
        assert_eq!((members.as_slice(), first.files), (&ORDER[..], (40, 0)));
        // The caller knows that it was another one.
        question.fixed.chunk = Some(2 * CHUNK);
        assert!(matches!(solve(&question), Answer::Undecided { .. }));
    }

    #[test]
    fn members_without_blocks_have_the_roles_with_which_files_are_whole() {
        let question = question();
        let Answer::Decided { first, .. } = super::super::solve_by_files(&question, &read, &check)
        else {
            panic!("files decide");
        };
        let members: Vec<_> = first.seats.iter().flatten().map(|seat| seat.member).collect();
        assert_eq!((members.as_slice(), first.files), (&ORDER[..], (40, 0)));
        let none = |_: &dyn ReadAt| Witnesses::default();
        let answer = super::super::solve_by_files(&question, &read, &none);
        assert!(matches!(answer, Answer::Undecided { .. }));
        // The file system is whole on the members with blocks alone: nothing tells the others apart.
        let few = |volume: &dyn ReadAt| {
            let mut found = check(volume);
            found.good.retain(|file| (file[0].start / CHUNK).is_multiple_of(2));
            Witnesses { bad: 0, ..found }
        };
        let answer = super::super::solve_by_files(&question, &read, &few);
        assert!(matches!(answer, Answer::Undecided { .. }));
    }
}
