//! Solves the geometry of an array from blocks that say where they belong, and from content.
//!
//! ```text
//!   clues ──▶ evidence ──▶ vote, for each pattern ──▶ assign ──▶ build ──▶ judge ──▶ decide ──▶ an answer
//!             places          role, member, offset    seats               places satisfied,
//!                                                                         contradicted, once each
//!   files of a volume ───────────────────────────────────────▶ those that are whole with one answer alone
//!   content ─────────────────────────────────────────────▶ rows that agree with parity, or differ
//! ```
//!
//! Votes are additions to a table, so the time grows with clues × patterns, and not with the orders in which
//! members can be: an array of 24 members is solved as fast as one of 4.
//!
//! Invariants
//! * An answer is `Decided` only if no hypothesis that leads to other content has 95 % of its score, or if files are whole
//!   with it and with no such other one.
//! * Each place of the array counts once, and members' contradictions count against a hypothesis.
//! * Nothing here knows formats of file systems: clues come from `evidence`, content and files from the caller.

mod answer;
mod assign;
mod build;
mod candidates;
mod claimed;
mod content;
mod decide;
mod equal;
mod evidence;
mod expression;
mod files;
mod fill;
mod fit;
mod grown;
mod judge;
mod map;
mod question;
mod related;
mod reshape;
mod room;
mod rotation;
mod search;
mod swapped;
mod unfit;
mod vote;

pub use answer::{Agreement, Answer, Hypothesis, LeftOver, Reason, Reshape, Seat};
pub use expression::Named;
pub use files::Check;
pub(crate) use fit::STARTS;
pub use fit::{Fit, Given, fit};
pub use map::Pattern;
pub use question::{Claim, Fixed, Question, Rows};
pub use related::{Redundancy, Related, related};

use std::cell::Cell;

use evidence::Evidence;
use search::{Grounds, search};

/// Places at which a structure begins if nothing tells: the start of the array, partitions of today and of DOS, and
/// the first extent of a physical volume on the whole array and in a partition.
const BASES: [u64; 4] = [0, 1 << 20, 63 * 512, 2 << 20];

/// Solves a question. Content is asked of `rows`, in some thousands of reads of a sector.
#[must_use]
pub fn solve(question: &Question, rows: &dyn Rows) -> Answer {
    solved(question, rows, None)
}

/// Solves a question as [`solve`]. What blocks and parity leave open, files may decide that are whole with one answer and
/// with no other: `check` finds them in a volume.
#[must_use]
pub fn solve_by_files(question: &Question, rows: &dyn Rows, check: Check<'_>) -> Answer {
    solved(question, rows, Some(check))
}

fn solved(question: &Question, rows: &dyn Rows, check: Option<Check<'_>>) -> Answer {
    let mut evidence = Evidence::new(question);
    evidence.tell_apart(&question.sizes, rows);
    let Some(anchor) = evidence.main_anchor() else {
        let more = "blocks of a file system: scan more of the members".to_owned();
        let related = related(&question.sizes, rows).map(|related| related.to_string());
        let would_decide = related.into_iter().chain([more]).collect();
        return Answer::Undecided { alternatives: Vec::new(), would_decide };
    };
    let main = evidence.of(anchor);
    let given = question.bases.get(anchor).filter(|bases| !bases.is_empty());
    let mut best: Option<(Grounds<'_>, Vec<Hypothesis>)> = None;
    for base in given.map_or(&BASES[..], Vec::as_slice) {
        let grounds = Grounds { question, all: &evidence, main: &main, anchor, base: *base };
        let found = search(&grounds);
        let score = |found: &[Hypothesis]| found.first().map_or(0, Hypothesis::score);
        if best.as_ref().is_none_or(|(_, best)| score(best) < score(&found)) {
            best = Some((grounds, found));
        }
        // Nearly all places are explained: another base can only do the same with other data offsets.
        let satisfied =
            best.as_ref().and_then(|(_, found)| Some(found.first()?.satisfied)).unwrap_or(0);
        if u64::from(satisfied) * 10 > main.places.len() as u64 * 9 {
            break;
        }
    }
    let Some((grounds, found)) = best else {
        return decide::decide(question, rows, &evidence, Vec::new(), anchor);
    };
    match reshape::find(&grounds, rows, &found) {
        Some(Ok(reshape)) => Answer::Reshaping(Box::new(reshape)),
        Some(Err(meeting)) => decide::meeting(found, &meeting),
        None => {
            let raw = check.map(|check| (check, found.clone()));
            let answer = decide::decide(question, rows, &evidence, found, anchor);
            match (decide::with_strangers(answer, &evidence, anchor), raw) {
                (answer @ Answer::Undecided { .. }, Some((check, raw))) => {
                    let open = files::Open {
                        question,
                        rows,
                        evidence: &evidence,
                        anchor,
                        check,
                        read: Cell::new(0),
                    };
                    open.decide(raw.clone())
                        .or_else(|| open.decide_by_rotation())
                        .or_else(|| open.decide_claimed())
                        .or_else(|| open.decide_grown(&raw))
                        .unwrap_or(answer)
                }
                (answer, _) => answer,
            }
        }
    }
}
