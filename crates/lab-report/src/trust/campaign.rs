//! What the campaign as a whole says about a cell: failures, machines, repetitions.

use std::collections::BTreeSet;

use super::{CellCase, Checked};
use braid_lab::store::{Outcome, Session};

/// Rule `failed-trials`. Those that went well may be those that were lucky.
pub(super) fn check_failures(case: &CellCase<'_>) -> Checked {
    let Some(first) = case.failed().first() else {
        return Checked::Fine;
    };
    let reason = match &first.outcome {
        Outcome::Failed(reason) => reason.as_str(),
        _ => "",
    };
    let (failed, all) = (case.failed().len(), case.failed().len() + case.trials().len());
    Checked::suspect(format!("{failed} of {all} repetitions failed; the first said: {reason}"))
}

/// Rule `mixed-environment`: of this cell and of those that it is compared with.
pub(super) fn check_environment(case: &CellCase<'_>) -> Checked {
    let others: Vec<CellCase<'_>> = case.others().collect();
    let cells = std::iter::once(case).chain(&others);
    let mut sessions: Vec<&Session> = cells
        .flat_map(|cell| cell.trials().iter().filter_map(|trial| cell.session(trial)))
        .collect();
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

/// Rule `few-repetitions`. A remark and no doubt of the number itself: one number may well be
/// right, only nobody can say how far off it may be, and comparisons with it already say that they
/// cannot tell.
pub(super) fn check_repetitions(case: &CellCase<'_>) -> Checked {
    match case.trials().len() {
        1 => Checked::remark("there is one repetition, so nothing says how far it scatters"),
        _ => Checked::Fine,
    }
}
