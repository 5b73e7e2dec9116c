//! What a campaign would do, before it does it: the matrix, what is written where, how long.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::campaign::{Campaign, Subject};
use crate::facts::{note_on_sharing, place_members};
use crate::matrix::{Cell, Planned, Trial, Workload};
use crate::safety::plan_overwrites;

mod render;
mod spread;
mod work;

pub use render::render_plan;
use work::{Work, plan_work};

/// A campaign, worked out.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The campaign.
    pub campaign: Campaign,
    /// Its subjects.
    pub subjects: Vec<Subject>,
    /// The workloads.
    pub workloads: Vec<Workload>,
    /// The cells.
    pub cells: Vec<Cell>,
    /// The trials in their order.
    pub trials: Vec<Trial>,
    /// What would be overwritten: paths and NBD URIs.
    pub overwrites: Vec<String>,
    /// What each member would be written, by its text in the campaign.
    pub written: BTreeMap<String, Written>,
    /// Estimated time.
    pub duration: Duration,
    /// Sentences about subjects, with the subject's name: members that share hardware, nothing that
    /// the baseline does as well, too little room.
    pub notes: Vec<(String, String)>,
}

/// What a member would be written.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Written {
    /// Bytes that are known beforehand.
    pub bytes: f64,
    /// Seconds in which it is written as fast as it goes.
    pub seconds: f64,
}

/// Works a campaign out. Reads `/sys` and asks members for their sizes; writes nothing.
pub fn plan_campaign(planned: Planned) -> Plan {
    let Work { duration, written, tight } = plan_work(&planned);
    let overwrites = plan_overwrites(&planned);
    let Planned { campaign, subjects, workloads, cells, trials } = planned;
    let notes = subjects
        .iter()
        .enumerate()
        .flat_map(|(index, subject)| {
            let sharing = note_on_sharing(&place_members(&subject.source));
            let tight = tight.iter().filter(move |(subject, _)| *subject == index);
            let notes = sharing
                .into_iter()
                .chain(note_on_comparing(&subjects, &cells, index))
                .chain(tight.map(|(_, why)| why.clone()));
            notes.map(|note| (subject.name.clone(), note))
        })
        .collect();
    Plan { duration, overwrites, written, campaign, subjects, workloads, cells, trials, notes }
}

/// What is said of a subject that no comparison can say anything of: it is compared with all
/// baselines together, in the workloads that they and it have.
fn note_on_comparing(subjects: &[Subject], cells: &[Cell], subject: usize) -> Option<String> {
    let has = |subject: usize, workload: usize| {
        cells.iter().any(|cell| {
            (cell.subject, cell.workload_index) == (subject, workload) && cell.impossible.is_none()
        })
    };
    let baselines = || (0..subjects.len()).filter(|&one| subjects[one].baseline);
    let mut own = cells.iter().filter(|cell| cell.subject == subject && cell.impossible.is_none());
    if subjects[subject].baseline
        || baselines().next().is_none()
        || own.clone().next().is_none()
        || own.any(|cell| baselines().all(|baseline| has(baseline, cell.workload_index)))
    {
        return None;
    }
    let names: Vec<&str> = baselines().map(|one| subjects[one].name.as_str()).collect();
    Some(format!(
        "It is compared with nothing: no job on it runs on the baseline ({}) in the same way. A \
         folder has a file system of its own, which compares with that of other folders only.",
        names.join(", ")
    ))
}

#[cfg(test)]
mod tests;
