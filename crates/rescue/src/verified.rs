//! Results of `verify` on the answers of a case, kept in its folder: for later commands, and for the page.
//!
//! Invariant: the text is untrusted. A result says something of exactly one stack expression, by which it is found.

use serde::{Deserialize, Serialize};

use crate::case::{Case, CaseError};

const FILE: &str = "verified.json";
/// Results that are kept.
const MOST: usize = 64;

/// The judgement of `verify` of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Something was checked, and nothing contradicts the answer.
    Right,
    /// Some checked files are bad.
    Doubtful,
    /// Most checked files are bad.
    Wrong,
    /// Nothing could be checked.
    Unknown,
}

/// The comparison of parity or copies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compared {
    /// Windows that agree.
    pub agreeing: u64,
    /// Windows that differ.
    pub differing: u64,
    /// Windows that could not be compared.
    pub unknown: u64,
    /// Regions from the start of the array to its end: agreeing, differing and unknown windows of each.
    pub cells: Vec<(u64, u64, u64)>,
}

/// The end of a file system's checker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It found nothing to complain of.
    Clean,
    /// It found errors.
    Errors,
    /// It could not check.
    Failed,
    /// It was ended because it took too long.
    Unfinished,
    /// It did not run.
    Skipped,
}

/// The answer of the file system's own checker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checked {
    /// The program; empty if there is none for this content.
    pub program: String,
    /// The end of its run.
    pub outcome: Outcome,
    /// Its first complaints.
    pub complaints: Vec<String>,
    /// The number of its other complaints.
    pub more: u64,
    /// Other remarks: a journal that was replayed, a package that is missing.
    pub notes: Vec<String>,
}

/// A file that does not fit its own checksums.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BadFile {
    /// Its path, or the place of its first byte if it was found by its header.
    pub name: String,
    /// Its format.
    pub format: String,
    /// The difference, in words.
    pub why: String,
    /// The bytes of the volume that it lies in, [offset, length].
    pub ranges: Vec<(u64, u64)>,
    /// The members that have these bytes.
    pub members: Vec<String>,
}

/// The samples of files that carry their own checksums.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sampled {
    /// The way in which they were found, in words.
    pub how: String,
    /// Files that fit their checksums.
    pub good: u64,
    /// Files that do not.
    pub bad: u64,
    /// Files whose format was recognised, and that could not be checked.
    pub unchecked: u64,
    /// The bounds of the share of good files in the volume, with a confidence of 95 %; absent without files.
    pub interval: Option<(f64, f64)>,
    /// The first bad files.
    pub files: Vec<BadFile>,
    /// The member that is the only one on which all bad ranges lie, or without which bad files are good.
    pub suspect: Option<String>,
    /// The number of bad files that are good if they are computed without the suspect, and of those that were tried.
    pub mended: Option<(u64, u64)>,
}

/// A member of the array, as `scan` and `open` show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemberRow {
    /// Its role, in words.
    pub role: String,
    /// Its label.
    pub member: String,
    /// Its event count; empty without a superblock.
    pub events: String,
    /// When its superblock was last written, in words.
    pub written: String,
    /// The reason for which it is used, or not.
    pub how: String,
}

/// The result of verifying a volume that is read by one stack.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verified {
    /// The name of the volume.
    pub volume: String,
    /// The expression that reads it.
    pub stack: String,
    /// Size in bytes.
    pub size_bytes: u64,
    /// When, in seconds since 1970.
    pub at_s: u64,
    /// The verdict.
    pub verdict: Verdict,
    /// Sentences about what is in doubt, whatever was checked.
    pub doubts: Vec<String>,
    /// The members of the arrays on which it lies, if superblocks say.
    pub members: Vec<MemberRow>,
    /// The comparison of parity or copies; absent without redundancy.
    pub compared: Option<Compared>,
    /// The answer of the file system's checker.
    pub checker: Option<Checked>,
    /// The samples of files.
    pub samples: Option<Sampled>,
}

impl Verified {
    /// Returns the results of a case, the last one first.
    ///
    /// # Errors
    /// The text cannot be read, or is none.
    pub fn all(case: &Case) -> Result<Vec<Verified>, CaseError> {
        let Some(text) = case.text(FILE)? else { return Ok(Vec::new()) };
        serde_json::from_str(&text).map_err(|error| CaseError::Text {
            path: case.folder().join(FILE),
            why: error.to_string(),
        })
    }

    /// Returns the result for an answer that is read by exactly this stack.
    ///
    /// # Errors
    /// The text cannot be read, or is none.
    pub fn of(case: &Case, stack: &str) -> Result<Option<Verified>, CaseError> {
        Ok(Verified::all(case)?.into_iter().find(|one| one.stack == stack))
    }

    /// Writes this result to the case, in place of an earlier one for the same stack. Damaged text is replaced.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn note(self, case: &Case) -> Result<(), CaseError> {
        let earlier = Verified::all(case).unwrap_or_default();
        let mut all: Vec<Verified> =
            earlier.into_iter().filter(|one| one.stack != self.stack).collect();
        all.insert(0, self);
        all.truncate(MOST);
        let text = serde_json::to_string_pretty(&all).expect("a result is plain data");
        case.write(FILE, &(text + "\n")).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_result_of_a_stack_counts() {
        let folder = tempfile::tempdir().expect("a folder");
        let case = Case::new(&folder.path().join("x.rescue"));
        let result = |stack: &str, verdict| Verified {
            volume: "home".to_owned(),
            stack: stack.to_owned(),
            size_bytes: 4096,
            at_s: 1,
            verdict,
            doubts: Vec::new(),
            members: Vec::new(),
            compared: None,
            checker: None,
            samples: Some(Sampled { interval: Some((0.5, 1.0)), ..Sampled::default() }),
        };
        assert_eq!(Verified::of(&case, "a").expect("none yet"), None);
        let noted = [("a", Verdict::Wrong), ("b", Verdict::Unknown), ("a", Verdict::Right)];
        for (stack, verdict) in noted {
            result(stack, verdict).note(&case).expect("it is written");
        }
        let of = |stack: &str| Verified::of(&case, stack).expect("it was written");
        assert_eq!(of("a"), Some(result("a", Verdict::Right)));
        assert_eq!(of("b"), Some(result("b", Verdict::Unknown)));
        case.write(FILE, "[{").expect("it is written");
        assert!(Verified::all(&case).is_err());
    }
}
