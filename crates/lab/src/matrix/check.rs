//! Checks a campaign and works it out.
//!
//! Deliberately absent: what is impossible for single cells, which stands in the matrix with its
//! reason, and whether anything would be overwritten.

use std::collections::BTreeSet;

use super::{Planned, Workload, plan_job};
use crate::campaign::{
    Campaign, Fault, FileSystem, Patterns, Subject, expand_subjects, fault_of, parse_unchecked,
};
use crate::error::LabError;
use crate::settings::Kind;
use crate::tool::{Place, Tool};

impl Planned {
    /// Checks everything that the types do not, and works the campaign out.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong, with what to change.
    pub fn checked(campaign: &Campaign) -> Result<Self, LabError> {
        let all = expand_subjects(&campaign.subjects, &campaign.members);
        let subjects = campaign.choose(all.clone());
        let refused = |(reason, next): Fault| campaign.refused(reason, next);
        let fault = fault_of(campaign, &all, &subjects).or_else(|| fault_of_jobs(campaign, &all));
        if let Some(fault) = fault {
            return Err(refused(fault));
        }
        let planned = Self::on(campaign, subjects);
        workload_twice(&planned).map_or(Ok(planned), |fault| Err(refused(fault)))
    }
}

/// Parses and checks a campaign; `origin` names it in errors.
///
/// # Errors
///
/// When it is not TOML of this form, has a key that is not known, or fails [`Planned::checked`].
pub fn parse_campaign(text: &str, origin: &str) -> Result<Campaign, LabError> {
    let campaign = parse_unchecked(text, origin)?;
    Planned::checked(&campaign).map(|planned| planned.campaign)
}

/// What is wrong with a job, or with a job on these subjects.
fn fault_of_jobs(campaign: &Campaign, subjects: &[Subject]) -> Option<Fault> {
    if campaign.jobs.is_empty() {
        return Some(("it has no job".into(), "add a [[job]]".into()));
    }
    for (index, job) in campaign.jobs.iter().enumerate() {
        let fault = |reason: String, next: &str| {
            Some((format!("job {} ({}): {reason}", index + 1, job.tool), next.to_owned()))
        };
        if let Some(pattern) = Patterns(&job.subjects()).unknown_among(subjects) {
            return fault(format!("no subject is named {pattern:?}"), "correct `subjects`");
        }
        for workload in plan_job(campaign, subjects, job) {
            let Some(tool) = crate::tool::find(&workload.tool) else {
                return fault("its tool is not known".into(), "name another tool");
            };
            if let Some(reason) = unset(tool, &workload) {
                return fault(reason, "correct the job");
            }
            if let Err(reason) = tool.check(&workload.settings, workload.setup.processes) {
                return fault(reason, "correct the job");
            }
            let has_files = workload.setup.filesystem != FileSystem::None;
            for (key, words) in [("mkfs", &workload.setup.mkfs), ("mount", &workload.setup.mount)] {
                if !has_files && !words.is_empty() {
                    let next = "name a file system, or remove it; what runs on raw devices can be \
                                a job of its own";
                    return fault(format!("{key} = {words:?} on a raw device"), next);
                }
            }
            match tool.work(&workload.settings, workload.setup.processes).place {
                Place::Device if has_files => {
                    return fault("it takes a raw device".into(), "remove `filesystem`");
                }
                Place::Folder if !has_files => {
                    return fault("it works on files".into(), "name a file system");
                }
                _ => {}
            }
        }
    }
    None
}

/// That a choice without a default was not made.
fn unset(tool: &dyn Tool, workload: &Workload) -> Option<String> {
    tool.parameters().iter().find_map(|parameter| match parameter.kind {
        Kind::Choice(words) if workload.settings.get(parameter.name).is_none() => {
            Some(format!("{} is not set; take one of: {}", parameter.name, words.join(", ")))
        }
        _ => None,
    })
}

/// A workload that two jobs have for one subject.
fn workload_twice(planned: &Planned) -> Option<Fault> {
    let mut seen = BTreeSet::new();
    for cell in &planned.cells {
        let label = cell.workload.label();
        if !seen.insert((cell.subject, label.clone())) {
            let reason = format!("it has the workload {label:?} twice");
            return Some((reason, "remove one of the two jobs".into()));
        }
    }
    None
}
