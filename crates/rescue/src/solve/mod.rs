//! Solves the geometry of an array from blocks that say where they belong, and from content.
//!
//! ```text
//!   clues ──▶ evidence ──▶ vote, for each pattern ──▶ assign ──▶ build ──▶ judge ──▶ decide ──▶ an answer
//!             places          role, member, offset    seats               places satisfied,
//!                                                                         contradicted, once each
//!   content ─────────────────────────────────────────────▶ rows that agree with parity, or differ
//! ```
//!
//! Votes are additions to a table, so the time grows with clues × patterns, and not with the orders in which
//! members can be: an array of 24 members is solved as fast as one of 4.
//!
//! Invariants
//! * An answer is `Decided` only if no hypothesis that leads to other content has 95 % of its score.
//! * Each place of the array counts once, and members' contradictions count against a hypothesis.
//! * Nothing here knows formats of file systems: clues come from `evidence`, content from the caller.

mod answer;
mod assign;
mod build;
mod candidates;
mod content;
mod decide;
mod equal;
mod evidence;
mod fill;
mod judge;
mod map;
mod question;
mod vote;

pub use answer::{Agreement, Answer, Hypothesis, LeftOver, Reason, Reshape, Seat};
pub use map::Pattern;
pub use question::{Fixed, Question, Rows};

use braid_level::Level;

use build::{Grounds, build, linear, mirror, zoned};
use evidence::Evidence;

/// Patterns of a level that are judged after the first look.
const FINALISTS: usize = 24;
/// Places at which a structure begins if nothing tells: the start of the array, partitions of today and of DOS, and
/// the first extent of a physical volume on the whole array and in a partition.
const BASES: [u64; 4] = [0, 1 << 20, 63 * 512, 2 << 20];

/// Solves a question. Content is asked of `rows`, in some hundreds of small reads.
#[must_use]
pub fn solve(question: &Question, rows: &dyn Rows) -> Answer {
    let evidence = Evidence::new(question);
    let Some(anchor) = evidence.main_anchor() else {
        return Answer::Undecided {
            alternatives: Vec::new(),
            would_decide: vec!["blocks of a file system: scan more of the members".to_owned()],
        };
    };
    let main = evidence.of(anchor);
    let given = question.bases.get(anchor).filter(|bases| !bases.is_empty());
    let mut found = Vec::new();
    for base in given.map_or(&BASES[..], Vec::as_slice) {
        let grounds = Grounds { question, all: &evidence, main: &main, anchor, base: *base };
        found.extend(search(&grounds));
        found.sort_by_key(|one| std::cmp::Reverse(one.score()));
        // Most places are explained: another base can only do the same with other data offsets.
        if found.first().is_some_and(|first| first.score() * 5 > main.places.len() as i64 * 3) {
            break;
        }
    }
    let size = question.anchors[anchor].size;
    decide::decide(question, rows, &evidence, found, (anchor, size))
}

/// Builds the hypotheses that explain most, for one place at which the main structure may begin.
fn search(grounds: &Grounds<'_>) -> Vec<Hypothesis> {
    let sample = grounds.main.sample(grounds.question.sizes.len());
    let mut promising: Vec<(u64, map::Map)> = candidates::maps(grounds.question)
        .into_iter()
        .map(|map| (vote::promise(&map, vote::cells(&map, &sample, grounds.base)), map))
        .collect();
    promising.sort_by_key(|(promise, _)| std::cmp::Reverse(*promise));
    let mut found: Vec<Hypothesis> = mirror(grounds).into_iter().chain(linear(grounds)).collect();
    for level in Level::ALL {
        let of_level = promising.iter().filter(|(_, map)| map.pattern.level == level);
        found.extend(of_level.take(FINALISTS).filter_map(|(_, map)| build(map, grounds)));
    }
    let zones: Vec<Hypothesis> = found.iter().filter_map(|one| zoned(one, grounds)).collect();
    found.extend(zones);
    found
}
