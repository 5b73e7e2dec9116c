//! Members that must not be read although blocks agree with them: stale ones, and those that were overwritten in places.
//!
//! ```text
//!   a stale member     A   B   C   D'     nearly all blocks of D' lie where they must: they are older than the array
//!   mkfs on a member   A   B   C   D      blocks of a structure that is not the array's lie on D, and parity differs there
//! ```
//!
//! Rows with evidence are a sample. Parity may agree in all of them, and differ where few blocks were overwritten.
//!
//! Deliberately absent: without redundancy nothing tells remains of an older structure from a newer one.

use super::answer::Hypothesis;
use super::build::suffices;
use super::content::Content;
use super::judge::seat_of;
use super::map::Spot;
use super::question::Question;

/// Blocks of other structures that are compared, for each member.
const MOST_BLOCKS: usize = 24;

/// Takes the members out that their superblocks call stale, as far as the others hold all data. Returns whether any was.
pub(super) fn take_stale_out(hypothesis: &mut Hypothesis, question: &Question) -> bool {
    let is_stale = |role: &usize, one: &Hypothesis| {
        one.seats[*role].is_some_and(|seat| question.stale.contains(&seat.member))
    };
    take_out(hypothesis, &is_stale)
}

/// Takes the members out that were overwritten in places, as far as the others hold all data. Returns whether any was.
pub(super) fn take_overwritten_out(
    hypothesis: &mut Hypothesis,
    question: &Question,
    content: &Content<'_>,
) -> bool {
    let overwritten = overwritten(hypothesis, question, content);
    take_out(hypothesis, &|role, _| overwritten.contains(role))
}

/// Members that are unfit and still have a role, because the array cannot be read without them, each with the reason.
pub(super) fn needed(
    hypothesis: &Hypothesis,
    question: &Question,
    content: &Content<'_>,
) -> Vec<(usize, &'static str)> {
    let overwritten = overwritten(hypothesis, question, content);
    let seats = hypothesis.seats.iter().enumerate();
    let why = |(role, seat): (usize, &Option<super::answer::Seat>)| {
        let member = seat.as_ref()?.member;
        match (question.stale.contains(&member), overwritten.contains(&role)) {
            (true, _) => Some((member, "its superblock says that the array went on without it")),
            (_, true) => Some((member, "another structure was written over it")),
            _ => None,
        }
    };
    seats.filter_map(why).collect()
}

fn take_out(hypothesis: &mut Hypothesis, is_unfit: &dyn Fn(&usize, &Hypothesis) -> bool) -> bool {
    let before = hypothesis.missing();
    for role in 0..hypothesis.seats.len() {
        if !is_unfit(&role, hypothesis) {
            continue;
        }
        let seat = hypothesis.seats[role].take();
        if !suffices(hypothesis) {
            hypothesis.seats[role] = seat;
        }
    }
    hypothesis.missing() > before
}

/// The roles of members on which blocks of a structure lie that the hypothesis does not have, where redundancy differs.
fn overwritten(hypothesis: &Hypothesis, question: &Question, content: &Content<'_>) -> Vec<usize> {
    if hypothesis.map.sections() > 1 {
        return Vec::new();
    }
    let mut compared = vec![0; hypothesis.seats.len()];
    let mut roles = Vec::new();
    let is_foreign = |anchor: usize| hypothesis.bases.get(anchor).is_none_or(Option::is_none);
    for clue in question.clues.iter().filter(|clue| is_foreign(clue.anchor)) {
        let Some((role, seat)) = seat_of(hypothesis, clue.member) else { continue };
        let Some(row) = clue.at.checked_sub(seat.data_offset) else { continue };
        if compared[role] == MOST_BLOCKS || roles.contains(&role) {
            continue;
        }
        let mut known: Vec<bool> = hypothesis.seats.iter().map(Option::is_some).collect();
        known[role] = false;
        let spot = Spot { role, row, section: 0 };
        let Some(predicted) = content.predict(hypothesis, &known, spot) else { continue };
        compared[role] += 1;
        if content.of_seat(hypothesis, seat, spot).is_some_and(|sector| sector != predicted) {
            roles.push(role);
        }
    }
    roles
}
