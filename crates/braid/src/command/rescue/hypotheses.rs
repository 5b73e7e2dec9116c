//! The hypotheses of a case, kept in its folder for `open` and `copy`.
//!
//! Invariant: the text is untrusted when it is read. A stack in it is only opened for reading, and only if all of its
//! files belong to the case.

use braid_rescue::{Answer, Case, CaseError, Hypothesis, Named};
use serde::{Deserialize, Serialize};

const FILE: &str = "hypotheses.json";

/// A hypothesis that can be read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ranked {
    /// Its geometry, in words.
    pub(super) geometry: String,
    /// The weight of its evidence.
    pub(super) score: i64,
    /// The number of missing members.
    pub(super) missing: usize,
    /// The expression that reads it.
    pub(super) stack: String,
    /// Sentences about what is in doubt.
    pub(super) doubts: Vec<String>,
}

/// The hypotheses of an answer that can be read, best first.
pub(super) fn of(answer: &Answer, members: &[Named]) -> Vec<Ranked> {
    let undecided = "other hypotheses have nearly as much evidence";
    let ranked = |one: &Hypothesis, doubts: &[&str]| Ranked {
        geometry: one.pattern.to_string(),
        score: one.score(),
        missing: one.missing(),
        stack: one.expression(members),
        doubts: doubts.iter().map(|text| (*text).to_owned()).collect(),
    };
    let readable = |one: &&Hypothesis| one.is_readable;
    match answer {
        Answer::Decided { first, rest, .. } => {
            let first = std::iter::once(&**first).filter(readable).map(|one| ranked(one, &[]));
            let rest = rest.iter().filter(readable);
            first
                .chain(rest.map(|one| ranked(one, &["another hypothesis has more evidence"])))
                .collect()
        }
        Answer::Undecided { alternatives, .. } => {
            alternatives.iter().filter(readable).map(|one| ranked(one, &[undecided])).collect()
        }
        Answer::Reshaping(reshape) => {
            let (below, above) = (&reshape.below, &reshape.above);
            if !below.is_readable || !above.is_readable {
                return Vec::new();
            }
            let (start, end) = (reshape.position.start, reshape.position.end);
            vec![Ranked {
                geometry: format!("{} below byte {start}, {} above", below.pattern, above.pattern),
                score: below.score() + above.score(),
                missing: below.missing().max(above.missing()),
                stack: reshape.expression(members),
                doubts: vec![format!("the reshape stopped between byte {start} and byte {end}")],
            }]
        }
    }
}

/// Writes them to the folder of the case.
pub(super) fn store(case: &Case, ranked: &[Ranked]) -> Result<(), CaseError> {
    let text = serde_json::to_string_pretty(ranked).unwrap_or_default();
    case.write(FILE, &(text + "\n")).map(drop)
}
