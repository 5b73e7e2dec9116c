//! Decides: ranks hypotheses, and compares the first with those that lead to other content.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use braid_level::Level;

use super::answer::{Agreement, Answer, Hypothesis, LeftOver, Reason, Seat};
use super::build::suffices;
use super::content::{Content, agreement, check_parity_claims, impossible};
use super::equal::have_same_content;
use super::evidence::Evidence;
use super::fill::{fill, fill_parity};
use super::judge::{Verdict, judge, seat_of, seen_as_data, verdicts};
use super::question::{Question, Rows};
use super::room::has_room;
use super::swapped::{differing, swapped};
use super::unfit::{needed, take_overwritten_out, take_stale_out};

/// Share of the first score from which on another hypothesis leaves the question open.
pub(super) const TOO_NEAR: f64 = 0.95;
/// Places that have to be satisfied for any decision, and for one seat.
const LEAST_PLACES: u32 = 8;
pub(super) const LEAST_OF_SEAT: u32 = 3;
/// Places that another hypothesis has to lose for it to be far although its score is near.
const LEAST_LOST: usize = 10;
const LEAST_IF_PARITY_HOLDS: u32 = 2;
/// Rows that content must refute for a hypothesis to be far.
const LEAST_IMPOSSIBLE: u32 = 4;
/// Share of the evidence of a usual member, as its divisor, below which a member's role is in doubt.
const FEW: u32 = 5;
/// Places of a seat that suffice whatever others have, if nothing speaks against them.
const LEAST_ALONE: u32 = 10;
/// Hypotheses of a level for which content is read, so that many of one level do not hide those of another; and those that
/// an answer lists.
const FINALISTS: usize = 16;
const MOST: usize = 8;

/// Answers with the best of `found`. Content is compared over the structure of `anchor`.
pub(super) fn decide(
    question: &Question,
    rows: &dyn Rows,
    evidence: &Evidence,
    mut found: Vec<Hypothesis>,
    anchor: usize,
) -> Answer {
    found.retain(|one| one.score() > 0 && has_room(one, question, anchor));
    found.sort_by_key(|one| (std::cmp::Reverse(one.score()), one.missing()));
    let mut counts: HashMap<Level, usize> = HashMap::new();
    found.retain(|one| {
        let count = counts.entry(one.pattern.level).or_default();
        *count += 1;
        *count <= FINALISTS
    });
    found.extend(in_parity(&found, evidence, question));
    let content = Content::new(rows);
    found.extend(swapped(&found, evidence, question, &content, TOO_NEAR));
    for hypothesis in &mut found {
        complete(hypothesis, evidence, &content, question);
    }
    if found.iter().any(|one| one.is_readable) {
        found.retain(|one| one.is_readable);
    }
    found.sort_by_key(|one| (std::cmp::Reverse(one.score()), one.impossible));
    let refuted =
        found.iter().filter(|one| is_refuted(one)).map(Hypothesis::score).max().unwrap_or(0);
    refute(&mut found, evidence);
    let Some(best) = found.first() else {
        return undecided(
            found,
            vec!["evidence that agrees with any geometry: scan more of the members".to_owned()],
        );
    };
    let size = extent(best, question, question.anchors[anchor].size);
    let (mut same, other): (Vec<Hypothesis>, Vec<Hypothesis>) = {
        let best = best.clone();
        found.into_iter().partition(|one| have_same_content(&best, one, evidence, anchor, size))
    };
    // The same content: the one that explains the most members, and misses the fewest.
    same.sort_by_key(|one| {
        (is_refuted(one), one.left_over.len() + one.missing(), std::cmp::Reverse(one.score()))
    });
    if same.is_empty() {
        return undecided(
            other,
            vec!["more members: those that are there do not hold all data".to_owned()],
        );
    }
    let (rival, second) = rival(&same, &other, question, evidence);
    let mut would_decide = doubts(&same[0], rival.map(|rival| (rival, second)), evidence);
    let unfit = needed(&same[0], question, &content).into_iter();
    would_decide
        .extend(unfit.map(|(member, why)| format!("a fresh copy of member {member}: {why}")));
    if (same[0].score() as f64) < TOO_NEAR * refuted as f64 {
        would_decide.push("the reason why parity differs where blocks agree best".to_owned());
    }
    if !would_decide.is_empty() {
        let mut alternatives = vec![same.remove(0)];
        alternatives.extend(other);
        return undecided(alternatives, would_decide);
    }
    let first = Box::new(same.remove(0));
    let rest = same.into_iter().chain(other).take(MOST).collect();
    Answer::Decided { first, rest, second }
}

/// Answers that two geometries meet in a range of the array, and that the evidence for one of them is too little.
pub(super) fn meeting(found: Vec<Hypothesis>, range: &Range<u64>) -> Answer {
    let (start, end) = (range.start, range.end);
    let sentence = format!(
        "more blocks on both sides of the bytes {start} to {end} of the array: two geometries meet there, as in a \
         reshape that stopped"
    );
    undecided(found, vec![sentence])
}

/// Returns the hypothesis of other content that comes nearest to those of the first one's, and its share of their
/// score: with second copies; and without, where all its members are sure and parity does not confirm the first. One
/// that explains hardly anything that the first does not, and much less, is far.
fn rival<'a>(
    same: &[Hypothesis],
    other: &'a [Hypothesis],
    question: &Question,
    evidence: &Evidence,
) -> (Option<&'a Hypothesis>, f64) {
    let share = |one: &Hypothesis, score: &dyn Fn(&Hypothesis) -> i64| {
        let best = same.iter().map(score).max().unwrap_or(0).max(1);
        score(one) as f64 / best as f64
    };
    let first = explained(&same[0], evidence, question);
    let is_far = |one: &Hypothesis| {
        let other = explained(one, evidence, question);
        let only = |these: &[bool], those: &[bool]| {
            these.iter().zip(those).filter(|(this, that)| **this && !**that).count()
        };
        let (lost, gained) = (only(&first, &other), only(&other, &first));
        let impossible = |one: &Hypothesis| one.impossible + one.not_in_parity;
        lost >= LEAST_LOST && gained * 8 <= lost
            || impossible(one) >= LEAST_IMPOSSIBLE && impossible(&same[0]) * 8 <= impossible(one)
    };
    let share = |one: &Hypothesis| {
        let is_sure = sure(one, evidence);
        let is_strong = one.seats.iter().zip(is_sure).all(|(seat, sure)| seat.is_none() || sure);
        let is_plain = is_strong && !same.iter().any(holds);
        let plain = if is_plain { share(one, &Hypothesis::plain_score) } else { 0.0 };
        let share = plain.max(share(one, &Hypothesis::score));
        if share >= TOO_NEAR && is_far(one) { TOO_NEAR - 0.01 } else { share }
    };
    let shares = other.iter().map(|one| (Some(one), share(one)));
    shares.max_by(|one, other| one.1.total_cmp(&other.1)).unwrap_or((None, 0.0))
}

/// For each place, whether the hypothesis explains it: by its member, or by parity unless content refutes that. Behind
/// these, whether it explains that the place was seen a second time: as a copy, or in parity that equals it.
fn explained(hypothesis: &Hypothesis, evidence: &Evidence, question: &Question) -> Vec<bool> {
    let is_in_parity = hypothesis.not_in_parity <= hypothesis.in_parity;
    let verdicts = verdicts(hypothesis, evidence, question);
    let explains = |&(verdict, seen): &(Verdict, u32)| match verdict {
        Verdict::Satisfied => true,
        Verdict::Contradicted => false,
        Verdict::Absent => seen > 0 && is_in_parity,
    };
    let twice = verdicts.iter().map(|one| one.1 > 1 && explains(one));
    verdicts.iter().map(explains).chain(twice).collect()
}

fn undecided(mut alternatives: Vec<Hypothesis>, would_decide: Vec<String>) -> Answer {
    alternatives.truncate(MOST);
    Answer::Undecided { alternatives, would_decide }
}

/// Bytes of the structure over which content is compared: all of it, or as much as the smallest member has.
pub(super) fn extent(hypothesis: &Hypothesis, question: &Question, size: Option<u64>) -> u64 {
    let rest = |seat: &Seat| question.sizes[seat.member].saturating_sub(seat.data_offset);
    let least = hypothesis.seats.iter().flatten().map(rest).min().unwrap_or(0);
    size.unwrap_or(least)
}

/// Returns the best hypotheses with one member moved to a role that is empty, if its blocks are explained as well by
/// parity that equals the data of a missing member.
fn in_parity(found: &[Hypothesis], evidence: &Evidence, question: &Question) -> Vec<Hypothesis> {
    let best = found.first().map_or(0, Hypothesis::score);
    let near = |score: i64| score as f64 >= TOO_NEAR * best as f64;
    let mut moved = Vec::new();
    for one in found.iter().filter(|one| one.map.parity().is_some() && near(one.score())) {
        let empty: Vec<usize> =
            (0..one.seats.len()).filter(|role| one.seats[*role].is_none()).collect();
        for role in (0..one.seats.len()).filter(|role| one.seats[*role].is_some()) {
            for &other in &empty {
                let mut variant = one.clone();
                variant.seats.swap(role, other);
                judge(&mut variant, evidence, question);
                if near(variant.score()) {
                    moved.push(variant);
                }
            }
        }
    }
    moved
}

/// For each role, whether the evidence for its member excludes other members and other offsets.
fn sure(hypothesis: &Hypothesis, evidence: &Evidence) -> Vec<bool> {
    let seen = seen_as_data(hypothesis, evidence);
    let support = |seat: &Seat| seat.satisfied + seat.echoes;
    let mut all: Vec<u32> = hypothesis.seats.iter().flatten().map(support).collect();
    all.sort_unstable();
    let least = LEAST_OF_SEAT.max(all.get(all.len() / 2).copied().unwrap_or(0) / FEW);
    let is_sure = |(role, seat): (usize, &Seat)| {
        let support = support(seat);
        // A member with parity is seen in the place of many data members, and explains few of its blocks as data.
        let is_stranger = seen[role] > 2 * seat.satisfied + LEAST_OF_SEAT;
        // All that was seen on it lies where it must, and nothing else explains it.
        let is_alone = seat.satisfied >= LEAST_ALONE
            && (seat.runner_up, seat.contradicted) == (0, 0)
            && seen[role] <= seat.satisfied + seat.satisfied / 4;
        let is_enough =
            is_alone || support >= least && support >= 2 * seat.runner_up && !is_stranger;
        (seat.is_verified || is_enough) && seat.contradicted * 2 <= support
    };
    let seats = hypothesis.seats.iter().enumerate();
    seats.map(|(role, seat)| seat.as_ref().is_some_and(|seat| is_sure((role, seat)))).collect()
}

/// Asks content for members of roles that are not sure. Takes those out that stay unsure, as long as the others
/// hold all data without them.
fn complete(
    hypothesis: &mut Hypothesis,
    evidence: &Evidence,
    content: &Content<'_>,
    question: &Question,
) {
    take_stale_out(hypothesis, question);
    let before = agreement(hypothesis, evidence, content);
    hypothesis.agreement = before;
    if is_refuted(hypothesis) {
        drop_liar(hypothesis, evidence, content);
    }
    if holds(hypothesis) {
        // All members and offsets are right, and in each role blocks speak for its member only.
        for seat in hypothesis.seats.iter_mut().flatten() {
            let support = seat.satisfied + seat.echoes;
            seat.is_verified |= support >= LEAST_IF_PARITY_HOLDS && support >= 2 * seat.runner_up;
        }
    }
    fill(hypothesis, evidence, content, &sure(hypothesis, evidence));
    fill_parity(hypothesis, evidence, content, &sure(hypothesis, evidence));
    judge(hypothesis, evidence, question);
    let is_sure = sure(hypothesis, evidence);
    for role in (0..is_sure.len()).filter(|role| !is_sure[*role]) {
        let seat = hypothesis.seats[role].take();
        if !suffices(hypothesis) {
            hypothesis.seats[role] = seat;
        }
    }
    take_stale_out(hypothesis, question);
    take_overwritten_out(hypothesis, question, content);
    judge(hypothesis, evidence, question);
    hypothesis.agreement = agreement(hypothesis, evidence, content);
    if hypothesis.agreement == Agreement::default() && before.differ > before.agree {
        // A member was taken out, and the reason for the difference may be another one.
        hypothesis.agreement = before;
    }
    check_parity_claims(hypothesis, evidence, content);
    hypothesis.impossible = match hypothesis.pattern.level {
        Level::Raid10 => differing(hypothesis, question, content),
        _ => impossible(hypothesis, evidence, content),
    };
    hypothesis.is_readable = suffices(hypothesis);
    hypothesis.left_over = left_over(hypothesis, question, evidence);
}

/// Takes the one member out of its role without which redundancy agrees with content, if there is such a member. It
/// may have another role instead: Q equals the data of power 0 where all others are zero.
fn drop_liar(hypothesis: &mut Hypothesis, evidence: &Evidence, content: &Content<'_>) {
    for role in 0..hypothesis.seats.len() {
        let mut without = hypothesis.clone();
        without.seats[role] = None;
        if without.missing() == hypothesis.missing() || !suffices(&without) {
            continue;
        }
        let known: Vec<bool> = without.seats.iter().map(Option::is_some).collect();
        fill(&mut without, evidence, content, &known);
        without.agreement = agreement(&without, evidence, content);
        if holds(&without) {
            *hypothesis = without;
            return;
        }
    }
}

/// True if redundancy differs from content.
pub(super) fn is_refuted(hypothesis: &Hypothesis) -> bool {
    hypothesis.agreement.differ > hypothesis.agreement.agree
}

/// True if redundancy agrees with content.
pub(super) fn holds(hypothesis: &Hypothesis) -> bool {
    let Agreement { agree, differ } = hypothesis.agreement;
    agree >= LEAST_PLACES && differ * 4 <= agree
}

/// Takes hypotheses out whose redundancy does not agree with content, if that of a near one does.
fn refute(found: &mut Vec<Hypothesis>, evidence: &Evidence) {
    let best = found.first().map_or(0, Hypothesis::score);
    let near = |one: &Hypothesis| one.score() as f64 >= TOO_NEAR * best as f64;
    let explains = |one: &Hypothesis| {
        let seats = one.seats.iter().zip(seen_as_data(one, evidence));
        let mut seats = seats.filter_map(|(seat, seen)| Some(((*seat)?, seen)));
        seats.all(|(seat, seen)| seat.is_verified || seen <= 2 * seat.satisfied + LEAST_OF_SEAT)
    };
    if found.iter().any(|one| near(one) && explains(one)) {
        // A member of which most blocks are not where they must be has another role, such as that of parity.
        found.retain(explains);
    }
    if found.iter().any(|one| near(one) && holds(one)) {
        found.retain(|one| !is_refuted(one));
    }
}

/// Returns the sentences that say why the first hypothesis is not decided; none if it is.
fn doubts(
    first: &Hypothesis,
    rival: Option<(&Hypothesis, f64)>,
    evidence: &Evidence,
) -> Vec<String> {
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
    if differ * 4 > agree {
        doubts.push(format!(
            "the reason why parity differs from data: in {differ} of {} rows",
            agree + differ
        ));
    }
    let most = if holds(first) { first.satisfied / 3 } else { first.satisfied / 8 };
    if first.contradicted > most {
        let (yes, no) = (first.satisfied, first.contradicted);
        doubts.push(format!(
            "the reason for contradictions: {no} places are against it, {yes} for it"
        ));
    }
    if first.impossible >= LEAST_IMPOSSIBLE.max(first.satisfied / 16) {
        let rows = first.impossible;
        doubts.push(match first.pattern.level {
            Level::Raid10 => format!("the reason why copies differ at {rows} places"),
            _ => format!("the reason why {rows} rows have something else where parity must be"),
        });
    }
    if let Some((second, _)) = rival.filter(|(_, share)| *share >= TOO_NEAR) {
        let (one, other) = (first.pattern, second.pattern);
        doubts.push(format!("evidence at other places: {one} and {other} explain nearly the same"));
    }
    doubts.extend(first.emptiness().map(str::to_owned));
    let is_sure = sure(first, evidence);
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

/// The answer, which is not decided if members with blocks of the structure are left over and fit into no role.
pub(super) fn with_strangers(answer: Answer, evidence: &Evidence, anchor: usize) -> Answer {
    let Answer::Decided { first, rest, second } = answer else { return answer };
    let strangers = strangers(&first, evidence, anchor);
    if strangers.is_empty() {
        return Answer::Decided { first, rest, second };
    }
    let sentence = |member: &usize| {
        format!(
            "the role of member {member}: it has blocks of the same structure, and most do not fit"
        )
    };
    undecided(
        std::iter::once(*first).chain(rest).collect(),
        strangers.iter().map(sentence).collect(),
    )
}

/// Members without a role on which blocks of the structure lie, most of which fit into no role: an old copy of a member,
/// or a stale one, fits into one.
fn strangers(hypothesis: &Hypothesis, evidence: &Evidence, anchor: usize) -> Vec<usize> {
    let Some(base) = hypothesis.bases[anchor] else { return Vec::new() };
    let offsets: BTreeSet<u64> =
        hypothesis.seats.iter().flatten().map(|seat| seat.data_offset).collect();
    let seats = hypothesis.seats.iter().flatten();
    let usual = seats.map(|seat| seat.satisfied + seat.echoes).max().unwrap_or(0);
    let has_role = |member: &usize| seat_of(hypothesis, *member).is_some();
    let is_strange = |member: &usize| {
        let (mut all, mut spots) = (0, Vec::new());
        let mut fitting: BTreeMap<(usize, u64), u32> = BTreeMap::new();
        for place in evidence.places.iter().filter(|place| place.anchor == anchor) {
            hypothesis.map.spots(base + place.at, &mut spots);
            hypothesis.map.echoes(base + place.at, &mut spots);
            let seen = evidence.sightings(place).iter().filter(|one| one.member == *member);
            for one in seen {
                all += 1;
                for spot in &spots {
                    let offset =
                        one.at.checked_sub(spot.row).filter(|offset| offsets.contains(offset));
                    offset
                        .into_iter()
                        .for_each(|offset| *fitting.entry((spot.role, offset)).or_default() += 1);
                }
            }
        }
        let fit = fitting.into_values().max().unwrap_or(0);
        hypothesis.map.sections() == 1 && all >= LEAST_PLACES && all * 4 >= usual && fit * 2 < all
    };
    (0..evidence.members).filter(|member| !has_role(member) && is_strange(member)).collect()
}

pub(super) fn left_over(
    hypothesis: &Hypothesis,
    question: &Question,
    evidence: &Evidence,
) -> Vec<LeftOver> {
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
            let reason = match (question.stale.contains(&member), has_evidence[member]) {
                (true, _) => Reason::Stale,
                (_, true) => Reason::Contradicts,
                (_, false) => Reason::NoEvidence,
            };
            LeftOver { member, reason }
        })
        .collect()
}
