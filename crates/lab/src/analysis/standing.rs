//! Whether a number can be believed.

use std::collections::BTreeMap;

use crate::matrix::Workload;
use crate::store::Results;

/// How far a number can be believed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// Nothing speaks against it.
    #[default]
    Ok,
    /// Something does.
    Suspect,
    /// It is not to be used.
    Invalid,
}

/// What speaks against a cell's numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The rule's name.
    pub rule: &'static str,
    /// How grave it is; [`Standing::Ok`] is a remark.
    pub standing: Standing,
    /// What was seen, with numbers.
    pub why: String,
    /// What to do about it.
    pub action: String,
}

/// What is thought of one cell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdict {
    /// The worst of the findings.
    pub standing: Standing,
    /// What was found.
    pub findings: Vec<Finding>,
}

/// What is thought of a campaign's numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Judgement {
    /// By subject's name and workload's label.
    pub cells: BTreeMap<(String, String), Verdict>,
    /// By trial's number.
    pub trials: BTreeMap<u32, Vec<Finding>>,
    /// By rule: how often it lacked evidence.
    pub unchecked: BTreeMap<&'static str, usize>,
}

/// Judges every cell.
pub(super) fn judge(_results: &Results, _workloads: &[Workload]) -> Judgement {
    Judgement::default()
}
