//! The hypotheses of a case, kept in its folder for `open` and `copy`.
//!
//! Invariant: the text is untrusted when it is read. A stack in it is only opened for reading, and only if all of its
//! files belong to the case.

use std::path::Path;

use braid_rescue::{Answer, Case, CaseError, Hypothesis, Named};
use braid_service::failure::Failure;
use braid_shell::shell_path;
use serde::{Deserialize, Serialize};

use super::examined::{failure, of_case};
use crate::command::stacks;

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

/// Opens a case, and returns its hypothesis of this number, from 1.
pub(super) fn chosen(name: &Path, number: usize) -> Result<(Case, Ranked), Failure> {
    let (case, _) = of_case(name)?;
    let solve = format!("braid rescue solve {}", shell_path(name));
    let failed = |why: String| Failure::failed(why).next(&solve);
    let text = case.text(FILE).map_err(|error| failure(name, &error))?;
    let text = text.ok_or_else(|| failed("the case has no hypotheses yet".to_owned()))?;
    let ranked: Vec<Ranked> = serde_json::from_str(&text)
        .map_err(|error| failed(format!("the hypotheses of the case are damaged: {error}")))?;
    let count = ranked.len();
    let one = number.checked_sub(1).and_then(|index| ranked.into_iter().nth(index));
    let one = one
        .ok_or_else(|| failed(format!("there is no hypothesis {number}: the case has {count}")))?;
    let stack = stacks::parse_for(&one.stack, true)?;
    let is_ours = |path: &&Path| case.members.iter().any(|one| Path::new(&one.path) == *path);
    match stack.member_paths().iter().find(|path| !is_ours(path)) {
        None => Ok((case, one)),
        Some(path) => {
            let text = format!("a hypothesis names {}, which is not of the case", path.display());
            Err(Failure::refused(text).next(&solve))
        }
    }
}

/// Writes them to the folder of the case.
pub(super) fn store(case: &Case, ranked: &[Ranked]) -> Result<(), CaseError> {
    let text =
        serde_json::to_string_pretty(ranked).expect("strings and numbers can be written as JSON");
    case.write(FILE, &(text + "\n")).map(drop)
}
