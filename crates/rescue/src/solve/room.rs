//! Tells whether an array can hold the structure that was found on it.

use super::answer::{Hypothesis, Seat};
use super::question::Question;

/// Returns false if the structure of `anchor` is larger than an array of this geometry, even if each of its members
/// were as large as the largest. A few blocks at the start of one member look like a mirror of it alone otherwise.
pub(super) fn has_room(hypothesis: &Hypothesis, question: &Question, anchor: usize) -> bool {
    let Some(size) = question.anchors[anchor].size else { return true };
    let base = hypothesis.bases.get(anchor).copied().flatten().unwrap_or(0);
    let room = |seat: &Seat| question.sizes[seat.member].saturating_sub(seat.data_offset);
    let most = hypothesis.seats.iter().flatten().map(room).max().unwrap_or(0);
    let has = hypothesis.pattern.shape().size_over(&vec![Some(most); hypothesis.seats.len()]);
    has.is_none_or(|has| base.saturating_add(size) <= has)
}
