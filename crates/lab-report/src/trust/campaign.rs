//! What befell a cell's trials as a whole: failures, and the machines that they ran on.

use std::collections::BTreeSet;

use super::Checked;
use super::case::Cell;
use braid_lab::store::{Outcome, Session};

/// Rule `failed-trials`. Those that went well may be those that were lucky.
pub(super) fn check_failures(cell: &Cell<'_>, _: &[&Cell<'_>]) -> Checked {
    let failed = cell.failed.len();
    match cell.failed.first().map(|first| &first.outcome) {
        Some(Outcome::Failed(reason)) => Checked::suspect(format!(
            "{failed} of {} repetitions failed; the first said: {reason}",
            failed + cell.good.len()
        )),
        _ => Checked::Fine,
    }
}

/// Rule `mixed-environment`: of this cell and of those that it is compared with.
pub(super) fn check_environment(cell: &Cell<'_>, others: &[&Cell<'_>]) -> Checked {
    let others = others.iter().flat_map(|other| other.sessions());
    let mut sessions: Vec<&Session> = cell.sessions().chain(others).collect();
    sessions.sort_by_key(|session| session.started_unix_s);
    let Some((first, later)) = sessions.split_first() else {
        return Checked::Unknown;
    };
    let differences: BTreeSet<String> = later
        .iter()
        .flat_map(|session| first.environment.differences(&session.environment))
        .collect();
    if differences.is_empty() {
        return Checked::Fine;
    }
    let differences: Vec<String> = differences.into_iter().collect();
    Checked::suspect(format!(
        "the numbers of this workload come from environments that differ: {}",
        differences.join("; ")
    ))
}
