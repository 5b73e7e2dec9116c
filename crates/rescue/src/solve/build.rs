//! Builds hypotheses: from a pattern and the votes to members in their roles.

use braid_level::{Level, Raid0Layout, size};

use super::answer::{Agreement, Hypothesis, Seat};
use super::evidence::Evidence;
use super::judge::{base_of, distance, judge};
use super::map::{Map, Pattern};
use super::question::Question;
use super::vote::{Cell, cells, elect, with_far_copies};

/// The evidence for a hypothesis: all of it, that of the structure with the most, and where this one begins.
#[derive(Clone, Copy)]
pub(super) struct Grounds<'a> {
    pub question: &'a Question,
    pub all: &'a Evidence,
    pub main: &'a Evidence,
    /// The structure of `main`.
    pub anchor: usize,
    /// The byte of the array at which it begins.
    pub base: u64,
}

/// Votes that a member needs for its role.
const LEAST_VOTES: u32 = 2;

/// Builds the best hypothesis of a pattern; `None` if too few members find a role.
pub(super) fn build(map: &Map, grounds: &Grounds<'_>) -> Option<Hypothesis> {
    let mut cells = cells(map, grounds.main, grounds.base);
    if map.sections() > 1 {
        cells = with_far_copies(map, cells);
    }
    let elected = elect(map, &cells, grounds.question.sizes.len());
    let seat = |cell: &Option<Cell>| {
        let cell = cell.filter(|cell| cell.support() >= LEAST_VOTES)?;
        Some(Seat::new(cell.member, cell.data_offset))
    };
    let seats: Vec<Option<Seat>> = elected.iter().map(seat).collect();
    let mut hypothesis = open(map.clone(), seats, grounds);
    if map.sections() > 1 {
        let distance = distance(map, &hypothesis.seats, grounds.main, grounds.base);
        // Without its far copies it is a raid0.
        hypothesis.component = Some(distance? * map.sections());
    }
    settle(&mut hypothesis, grounds);
    for (role, seat) in hypothesis.seats.iter_mut().enumerate() {
        if let Some(seat) = seat {
            seat.runner_up = runner_up(map, &cells, (role, seat), &elected, grounds.all);
        }
    }
    (hypothesis.seats.iter().flatten().count() >= 2).then_some(hypothesis)
}

/// Builds the hypothesis that all members with one offset each are copies.
pub(super) fn mirror(grounds: &Grounds<'_>) -> Option<Hypothesis> {
    let fixed = &grounds.question.fixed;
    if fixed.level.is_some_and(|level| level != Level::Raid1) {
        return None;
    }
    let pattern = |members| Pattern { level: Level::Raid1, layout: 0, chunk: 0, members };
    // Each member has the same votes in all roles.
    let mut votes = cells(&Map::new(pattern(2))?, grounds.main, grounds.base);
    votes.retain(|cell| cell.role == 0);
    let mut best: Vec<Cell> = votes
        .chunk_by(|one, other| one.member == other.member)
        .filter_map(|of_member| of_member.iter().copied().max_by_key(|cell| cell.votes))
        .collect();
    let most = best.iter().map(|cell| cell.votes).max()?;
    best.retain(|cell| cell.votes >= LEAST_VOTES && cell.votes * 2 >= most);
    let mut seats: Vec<Option<Seat>> =
        best.iter().map(|cell| Some(Seat::new(cell.member, cell.data_offset))).collect();
    seats.resize(fixed.members.unwrap_or(0).max(seats.len()).max(1), None);
    let map = Map::new(pattern(seats.len()))?;
    let mut hypothesis = open(map, seats, grounds);
    settle(&mut hypothesis, grounds);
    hypothesis.seats.iter().any(Option::is_some).then_some(hypothesis)
}

/// Builds the hypothesis that the members lie one behind the other, all with the data offset of the first.
pub(super) fn linear(grounds: &Grounds<'_>) -> Option<Hypothesis> {
    let question = grounds.question;
    if question.fixed.level.is_some_and(|level| level != Level::Linear) {
        return None;
    }
    // The distance between a block's place in the array and on its member, which is the same for all of a member.
    let mut starts: Vec<(i128, usize, u32)> = Vec::new();
    for member in 0..question.sizes.len() {
        let mut found: Vec<i128> = Vec::new();
        for place in &grounds.main.places {
            let of_member = grounds.main.sightings(place).iter().filter(|one| one.member == member);
            found.extend(
                of_member.map(|one| i128::from(grounds.base + place.at) - i128::from(one.at)),
            );
        }
        found.sort_unstable();
        let runs = found.chunk_by(|one, other| one == other).map(|run| (run.len(), run[0]));
        if let Some((count, start)) = runs.max() {
            starts.push((start, member, u32::try_from(count).unwrap_or(u32::MAX)));
        }
    }
    starts.retain(|(_, _, count)| *count >= LEAST_VOTES);
    starts.sort_unstable();
    let data_offset = u64::try_from(-starts.first()?.0).ok()?;
    let behind = starts.iter().skip(1).map(|(start, ..)| Some(*start)).chain([None]);
    let seats: Vec<Option<Seat>> = starts
        .iter()
        .zip(behind)
        .map(|(&(start, member, _), next)| {
            let rest = question.sizes[member].saturating_sub(data_offset) / 512 * 512;
            let length = next.map_or(Some(rest), |next| u64::try_from(next - start).ok())?;
            (length > 0 && length <= rest)
                .then(|| Seat { length: Some(length), ..Seat::new(member, data_offset) })
        })
        .collect();
    if seats.len() < 2 || seats.iter().any(Option::is_none) {
        return None;
    }
    let lengths: Vec<u64> = seats.iter().flatten().filter_map(|seat| seat.length).collect();
    let pattern = Pattern { level: Level::Linear, layout: 0, chunk: 0, members: seats.len() };
    let mut hypothesis = open(Map::over(pattern, &lengths)?, seats, grounds);
    judge(&mut hypothesis, grounds.all, question);
    Some(hypothesis)
}

/// Returns the hypothesis with raid0's zones, if the members of a raid0 have different sizes and the evidence
/// agrees better with them.
pub(super) fn zoned(hypothesis: &Hypothesis, grounds: &Grounds<'_>) -> Option<Hypothesis> {
    let Pattern { level: Level::Raid0, chunk, .. } = hypothesis.pattern else { return None };
    let seats: Vec<Seat> = hypothesis.seats.iter().copied().collect::<Option<_>>()?;
    // Bytes behind the data: none, or a superblock of version 0.90 or 1.0.
    let tails = [(0, 512), (64 << 10, 64 << 10), (8 << 10, 4 << 10)];
    let length = |seat: &Seat, (tail, unit): (u64, u64)| {
        let end = (grounds.question.sizes[seat.member] / unit * unit).saturating_sub(tail);
        end.saturating_sub(seat.data_offset) / chunk * chunk
    };
    let mut best: Option<Hypothesis> = None;
    for tail in tails {
        let lengths: Vec<u64> = seats.iter().map(|seat| length(seat, tail)).collect();
        if lengths.iter().all(|length| *length == lengths[0]) {
            continue;
        }
        for layout in Raid0Layout::ALL.into_iter().rev() {
            let pattern = Pattern { layout: layout.number(), ..hypothesis.pattern };
            let Some(map) = Map::over(pattern, &lengths) else { continue };
            let seat =
                |(seat, length): (&Seat, &u64)| Some(Seat { length: Some(*length), ..*seat });
            let mut zoned = Hypothesis {
                pattern,
                seats: seats.iter().zip(&lengths).map(seat).collect(),
                map,
                ..hypothesis.clone()
            };
            judge(&mut zoned, grounds.all, grounds.question);
            if best.as_ref().is_none_or(|best| zoned.score() > best.score()) {
                best = Some(zoned);
            }
        }
    }
    best.filter(|best| best.score() > hypothesis.score())
}

pub(super) fn open(map: Map, seats: Vec<Option<Seat>>, grounds: &Grounds<'_>) -> Hypothesis {
    let mut bases = vec![None; grounds.question.anchors.len()];
    bases[grounds.anchor] = Some(grounds.base);
    Hypothesis {
        pattern: map.pattern,
        seats,
        component: None,
        bases,
        satisfied: 0,
        contradicted: 0,
        echoes: 0,
        in_parity: 0,
        not_in_parity: 0,
        impossible: 0,
        agreement: Agreement::default(),
        files: (0, 0),
        left_over: Vec::new(),
        is_readable: true,
        map,
    }
}

/// Finds the places of the other structures, and drops members that contradict more than they explain, as long as
/// the rest suffices.
fn settle(hypothesis: &mut Hypothesis, grounds: &Grounds<'_>) {
    for anchor in (0..hypothesis.bases.len()).filter(|anchor| *anchor != grounds.anchor) {
        hypothesis.bases[anchor] = base_of(hypothesis, grounds.all, anchor);
    }
    judge(hypothesis, grounds.all, grounds.question);
    loop {
        let worst = hypothesis.seats.iter().enumerate().filter_map(|(role, seat)| {
            let seat = seat.filter(|seat| seat.contradicted > seat.satisfied + seat.echoes)?;
            Some((seat.contradicted - seat.satisfied - seat.echoes, role))
        });
        let Some((_, role)) = worst.max() else { break };
        let seat = hypothesis.seats[role].take();
        if !suffices(hypothesis) {
            hypothesis.seats[role] = seat;
            break;
        }
        judge(hypothesis, grounds.all, grounds.question);
    }
    hypothesis.is_readable = suffices(hypothesis);
}

/// True if the members that are there hold all data of the array.
pub(super) fn suffices(hypothesis: &Hypothesis) -> bool {
    let present: Vec<bool> = hypothesis.seats.iter().map(Option::is_some).collect();
    size::suffice(hypothesis.pattern.level, hypothesis.pattern.layout, &present)
}

/// The support for the best other way to fill a role. Copies of one byte on several members say the same of each
/// other's roles, so with copies only members without a role count.
fn runner_up(
    map: &Map,
    cells: &[Cell],
    (role, seat): (usize, &Seat),
    elected: &[Option<Cell>],
    evidence: &Evidence,
) -> u32 {
    let support = |cell: &Cell| {
        let is_same = cell.member == seat.member || evidence.are_twins(cell.member, seat.member);
        if cell.role != role || is_same && cell.data_offset == seat.data_offset {
            return 0;
        }
        let elsewhere =
            elected.iter().flatten().find(|one| one.member == cell.member && one.role != role);
        match elsewhere {
            None if cell.member == seat.member => cell.votes,
            None => cell.support(),
            // A block is in the row of its parity, so each member with data has echoes in the role of parity.
            Some(one) if map.copies() > 1 || one.support() >= 2 * cell.votes => 0,
            Some(_) => cell.votes,
        }
    };
    cells.iter().map(support).max().unwrap_or(0)
}
