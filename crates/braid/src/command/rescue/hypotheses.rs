//! The hypotheses of a case, kept in its folder for all commands that read its content.
//!
//! Invariants
//! * The text is untrusted when it is read. A stack in it is only opened for reading, and only if all of its
//!   files belong to the case.
//! * A hypothesis that was verified stays, whatever a later search finds.

use std::ops::Range;
use std::path::Path;

use braid_rescue::assemble::Doubt;
use braid_rescue::{Answer, Case, CaseError, Hypothesis, Named};
use braid_service::failure::Failure;
use braid_shell::shell_path;
use serde::{Deserialize, Serialize};

use super::examined::failure;
use crate::command::stacks;

const FILE: &str = "hypotheses.json";

/// The hypotheses of a case.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Hypotheses {
    /// True if the first one is decided.
    pub(super) is_decided: bool,
    /// Those that can be read, best first, then those of earlier searches that were verified.
    pub(super) ranked: Vec<Ranked>,
}

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
    /// Its doubts.
    pub(super) doubts: Vec<Open>,
    /// True if `verify` found no contradiction in it.
    #[serde(default)]
    pub(super) is_verified: bool,
}

/// A question that a search leaves open.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Open {
    why: String,
    /// The bytes of the array; `None` if nothing says which.
    ranges: Option<Vec<Range<u64>>>,
}

impl Ranked {
    /// Its doubts.
    pub(super) fn doubts(&self) -> Vec<Doubt> {
        let doubt =
            |open: &Open| Doubt::Evidence { why: open.why.clone(), ranges: open.ranges.clone() };
        self.doubts.iter().map(doubt).collect()
    }
}

/// The hypotheses of an answer that can be read. `doubts` are those about a decided one.
pub(super) fn of(answer: &Answer, members: &[Named], doubts: &[String]) -> Hypotheses {
    let undecided = "other hypotheses have nearly as much evidence";
    let ranked = |one: &Hypothesis, doubts: &[&str]| Ranked {
        geometry: one.pattern.to_string(),
        score: one.score(),
        missing: one.missing(),
        stack: one.expression(members),
        doubts: doubts.iter().map(|why| Open { why: (*why).to_owned(), ranges: None }).collect(),
        is_verified: false,
    };
    let readable = |one: &&Hypothesis| one.is_readable;
    match answer {
        Answer::Decided { first, rest, .. } => {
            let is_decided = first.is_readable;
            let doubts: Vec<&str> = doubts.iter().map(String::as_str).collect();
            let first = std::iter::once(&**first).filter(readable).map(|one| ranked(one, &doubts));
            let rest = rest.iter().filter(readable);
            let rest = rest.map(|one| ranked(one, &["another hypothesis has more evidence"]));
            Hypotheses { is_decided, ranked: first.chain(rest).collect() }
        }
        Answer::Undecided { alternatives, .. } => {
            let all = alternatives.iter().filter(readable).map(|one| ranked(one, &[undecided]));
            Hypotheses { is_decided: false, ranked: all.collect() }
        }
        Answer::Reshaping(reshape) => {
            let (below, above) = (&reshape.below, &reshape.above);
            if !below.is_readable || !above.is_readable {
                return Hypotheses::default();
            }
            let (start, end) = (reshape.position.start, reshape.position.end);
            let why = format!("the reshape stopped between byte {start} and byte {end}");
            let one = Ranked {
                geometry: format!("{} below byte {start}, {} above", below.pattern, above.pattern),
                score: below.score() + above.score(),
                missing: below.missing().max(above.missing()),
                stack: reshape.expression(members),
                doubts: vec![Open { why, ranges: Some(std::iter::once(start..end).collect()) }],
                is_verified: false,
            };
            Hypotheses { is_decided: true, ranked: vec![one] }
        }
    }
}

/// The hypotheses of a case; none if `solve` was not run.
pub(super) fn read(case: &Case, name: &Path) -> Result<Hypotheses, Failure> {
    let Some(text) = case.text(FILE).map_err(|error| failure(name, &error))? else {
        return Ok(Hypotheses::default());
    };
    serde_json::from_str(&text).map_err(|error| {
        Failure::failed(format!("the hypotheses of the case are damaged: {error}"))
            .next(format!("braid rescue solve {}", shell_path(name)))
    })
}

/// Returns the hypothesis of this number, from 1.
pub(super) fn chosen(case: &Case, name: &Path, number: usize) -> Result<Ranked, Failure> {
    let ranked = read(case, name)?.ranked;
    let solve = format!("braid rescue solve {}", shell_path(name));
    let count = ranked.len();
    let one = number.checked_sub(1).and_then(|index| ranked.into_iter().nth(index));
    let one = one.ok_or_else(|| {
        let text = format!("there is no hypothesis {number}: the case has {count}");
        Failure::failed(text).next(&solve)
    })?;
    let stack = stacks::parse_for(&one.stack, true)?;
    let is_ours = |path: &&Path| case.members.iter().any(|one| Path::new(&one.path) == *path);
    match stack.member_paths().iter().find(|path| !is_ours(path)) {
        None => Ok(one),
        Some(path) => {
            let text = format!("a hypothesis names {}, which is not of the case", path.display());
            Err(Failure::refused(text).next(&solve))
        }
    }
}

/// Writes the hypotheses of a search to the folder of the case. Earlier ones that were verified stay behind them.
pub(super) fn store(case: &Case, name: &Path, found: &mut Hypotheses) -> Result<(), Failure> {
    // Damaged text is replaced.
    let earlier = read(case, name).unwrap_or_default().ranked.into_iter();
    for one in earlier.filter(|one| one.is_verified) {
        match found.ranked.iter_mut().find(|other| other.stack == one.stack) {
            Some(same) => same.is_verified = true,
            None => found.ranked.push(one),
        }
    }
    write(case, found).map_err(|error| failure(name, &error))
}

/// Notes that `verify` found no contradiction in the hypothesis of this number.
pub(super) fn note_verified(case: &Case, name: &Path, number: usize) -> Result<(), Failure> {
    let mut found = read(case, name)?;
    if let Some(one) = number.checked_sub(1).and_then(|index| found.ranked.get_mut(index)) {
        one.is_verified = true;
    }
    write(case, &found).map_err(|error| failure(name, &error))
}

fn write(case: &Case, hypotheses: &Hypotheses) -> Result<(), CaseError> {
    let text =
        serde_json::to_string_pretty(hypotheses).expect("strings and numbers are written as JSON");
    case.write(FILE, &(text + "\n")).map(drop)
}
