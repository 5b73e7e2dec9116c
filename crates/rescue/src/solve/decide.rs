//! Decides: ranks hypotheses, and compares the first with those that lead to other content.

use super::answer::{Agreement, Answer, Hypothesis, LeftOver, Reason, Seat};
use super::build::suffices;
use super::content::{Content, agreement, check_parity_claims};
use super::equal::have_same_content;
use super::evidence::Evidence;
use super::fill::{fill, fill_parity};
use super::judge::{judge, seat_of};
use super::question::{Question, Rows};

/// Share of the first score from which on another hypothesis leaves the question open.
const TOO_NEAR: f64 = 0.95;
/// Places that have to be satisfied for any decision, and for one seat.
const LEAST_PLACES: u32 = 8;
const LEAST_OF_SEAT: u32 = 3;
const LEAST_IF_PARITY_HOLDS: u32 = 2;
/// Share of the evidence of a usual member, as its divisor, below which a member's role is in doubt.
const FEW: u32 = 5;
/// Hypotheses for which content is read, and those that an answer lists.
const FINALISTS: usize = 32;
const MOST: usize = 8;

/// Answers with the best of `found`. `main` is the structure with the most evidence, and its size.
pub(super) fn decide(
    question: &Question,
    rows: &dyn Rows,
    evidence: &Evidence,
    mut found: Vec<Hypothesis>,
    main: (usize, Option<u64>),
) -> Answer {
    found.retain(|one| one.score() > 0);
    found.sort_by_key(|one| std::cmp::Reverse(one.score()));
    found.truncate(FINALISTS);
    let content = Content::new(rows);
    for hypothesis in &mut found {
        complete(hypothesis, evidence, &content, question);
    }
    if found.iter().any(|one| one.is_readable) {
        found.retain(|one| one.is_readable);
    }
    found.sort_by_key(|one| std::cmp::Reverse(one.score()));
    refute(&mut found);
    let Some(best) = found.first() else {
        return undecided(
            found,
            vec!["evidence that agrees with any geometry: scan more of the members".to_owned()],
        );
    };
    let size = extent(best, question, main.1);
    let (mut same, other): (Vec<Hypothesis>, Vec<Hypothesis>) = {
        let best = best.clone();
        found.into_iter().partition(|one| have_same_content(&best, one, main.0, size))
    };
    // The same content: the one that explains the most members, and misses the fewest.
    same.sort_by_key(|one| {
        let is_refuted = one.agreement.differ > one.agreement.agree;
        (is_refuted, one.left_over.len() + one.missing(), std::cmp::Reverse(one.score()))
    });
    if same.is_empty() {
        return undecided(
            other,
            vec!["more members: those that are there do not hold all data".to_owned()],
        );
    }
    let second =
        other.first().map_or(0.0, |one| one.score() as f64 / same[0].score().max(1) as f64);
    let would_decide = doubts(&same[0], other.first(), second);
    if !would_decide.is_empty() {
        let mut alternatives = vec![same.remove(0)];
        alternatives.extend(other);
        return undecided(alternatives, would_decide);
    }
    let first = Box::new(same.remove(0));
    let rest = same.into_iter().chain(other).take(MOST).collect();
    Answer::Decided { first, rest, second }
}

fn undecided(mut alternatives: Vec<Hypothesis>, would_decide: Vec<String>) -> Answer {
    alternatives.truncate(MOST);
    Answer::Undecided { alternatives, would_decide }
}

/// Bytes of the structure over which content is compared: all of it, or as much as the smallest member has.
fn extent(hypothesis: &Hypothesis, question: &Question, size: Option<u64>) -> u64 {
    let rest = |seat: &Seat| question.sizes[seat.member].saturating_sub(seat.data_offset);
    let least = hypothesis.seats.iter().flatten().map(rest).min().unwrap_or(0);
    size.unwrap_or(least)
}

/// For each role, whether the evidence for its member excludes other members and other offsets. A member with much
/// less evidence than the others may have it from parity that equals data.
fn sure(hypothesis: &Hypothesis) -> Vec<bool> {
    let support = |seat: &Seat| seat.satisfied + seat.echoes;
    let mut all: Vec<u32> = hypothesis.seats.iter().flatten().map(support).collect();
    all.sort_unstable();
    let least = LEAST_OF_SEAT.max(all.get(all.len() / 2).copied().unwrap_or(0) / FEW);
    let is_sure = |seat: &Seat| {
        let is_enough = support(seat) >= least && support(seat) >= 2 * seat.runner_up;
        seat.is_verified || is_enough && seat.contradicted * 2 <= support(seat)
    };
    hypothesis.seats.iter().map(|seat| seat.as_ref().is_some_and(is_sure)).collect()
}

/// Asks content for members of roles that are not sure. Takes those out that stay unsure, as long as the others
/// hold all data without them.
fn complete(
    hypothesis: &mut Hypothesis,
    evidence: &Evidence,
    content: &Content<'_>,
    question: &Question,
) {
    let before = agreement(hypothesis, evidence, content);
    hypothesis.agreement = before;
    if before.differ > before.agree {
        drop_liar(hypothesis, evidence, content);
    }
    if holds(hypothesis) {
        // All members and offsets are right, and in each role blocks speak for its member only.
        for seat in hypothesis.seats.iter_mut().flatten() {
            let support = seat.satisfied + seat.echoes;
            seat.is_verified |= support >= LEAST_IF_PARITY_HOLDS && support >= 2 * seat.runner_up;
        }
    }
    fill(hypothesis, evidence, content, &sure(hypothesis));
    fill_parity(hypothesis, evidence, content, &sure(hypothesis));
    let is_sure = sure(hypothesis);
    for role in (0..is_sure.len()).filter(|role| !is_sure[*role]) {
        let seat = hypothesis.seats[role].take();
        if !suffices(hypothesis) {
            hypothesis.seats[role] = seat;
        }
    }
    judge(hypothesis, evidence, question);
    hypothesis.agreement = agreement(hypothesis, evidence, content);
    if hypothesis.agreement == Agreement::default() && before.differ > before.agree {
        // A member was taken out, and the reason for the difference may be another one.
        hypothesis.agreement = before;
    }
    check_parity_claims(hypothesis, evidence, content);
    hypothesis.is_readable = suffices(hypothesis);
    hypothesis.left_over = left_over(hypothesis, question, evidence);
}

/// Takes the one member out without which redundancy agrees with content, if there is such a member.
fn drop_liar(hypothesis: &mut Hypothesis, evidence: &Evidence, content: &Content<'_>) {
    let before = hypothesis.agreement;
    for role in 0..hypothesis.seats.len() {
        let Some(seat) = hypothesis.seats[role].take() else { continue };
        hypothesis.agreement = agreement(hypothesis, evidence, content);
        if suffices(hypothesis) && holds(hypothesis) {
            return;
        }
        hypothesis.seats[role] = Some(seat);
    }
    hypothesis.agreement = before;
}

/// True if redundancy agrees with content.
fn holds(hypothesis: &Hypothesis) -> bool {
    let Agreement { agree, differ } = hypothesis.agreement;
    agree >= LEAST_PLACES && differ * 4 <= agree
}

/// Takes hypotheses out whose redundancy does not agree with content, if that of a near one does.
fn refute(found: &mut Vec<Hypothesis>) {
    let best = found.first().map_or(0, Hypothesis::score);
    let near = |one: &Hypothesis| one.score() as f64 >= TOO_NEAR * best as f64;
    if found.iter().any(|one| near(one) && holds(one)) {
        found.retain(|one| one.agreement.differ <= one.agreement.agree);
    }
}

/// Returns the sentences that say why the first hypothesis is not decided; none if it is.
fn doubts(first: &Hypothesis, second: Option<&Hypothesis>, share: f64) -> Vec<String> {
    let mut doubts = Vec::new();
    if !first.is_readable {
        doubts.push("more members: those that are there do not hold all data".to_owned());
    }
    if first.satisfied < LEAST_PLACES {
        let found = first.satisfied;
        doubts.push(format!(
            "more blocks that say where they belong: {found} agree, {LEAST_PLACES} are needed"
        ));
    }
    let Agreement { agree, differ } = first.agreement;
    if differ > agree {
        doubts.push(format!(
            "the reason why parity differs from data: in {differ} of {} rows",
            agree + differ
        ));
    }
    if first.contradicted * 8 > first.satisfied {
        let (yes, no) = (first.satisfied, first.contradicted);
        doubts.push(format!(
            "the reason for contradictions: {no} places are against it, {yes} for it"
        ));
    }
    if let Some(second) = second.filter(|_| share >= TOO_NEAR) {
        let (one, other) = (first.pattern, second.pattern);
        doubts.push(format!("evidence at other places: {one} and {other} explain nearly the same"));
    }
    let is_sure = sure(first);
    for (role, seat) in first.seats.iter().enumerate() {
        if let Some(seat) = seat.filter(|_| !is_sure[role]) {
            let (member, places, other) = (seat.member, seat.satisfied, seat.runner_up);
            doubts.push(format!(
                "evidence for role {role}: {places} places agree with member {member}, {other} with another one"
            ));
        }
    }
    doubts
}

fn left_over(hypothesis: &Hypothesis, question: &Question, evidence: &Evidence) -> Vec<LeftOver> {
    let mut has_evidence = vec![false; question.sizes.len()];
    for place in &evidence.places {
        evidence.sightings(place).iter().for_each(|sighting| has_evidence[sighting.member] = true);
    }
    let without = (0..question.sizes.len()).filter(|member| seat_of(hypothesis, *member).is_none());
    without
        .map(|member| {
            let mut seats = hypothesis.seats.iter().flatten();
            if let Some(seat) = seats.find(|seat| evidence.are_twins(seat.member, member)) {
                return LeftOver { member, reason: Reason::CloneOf(seat.member) };
            }
            let reason =
                if has_evidence[member] { Reason::Contradicts } else { Reason::NoEvidence };
            LeftOver { member, reason }
        })
        .collect()
}
