//! Checking and expanding a campaign.
//!
//! Deliberately absent: impossible cells, which are in the matrix with their reason, and the check whether
//! anything would be overwritten.

use std::collections::BTreeSet;

use super::{Planned, Workload, plan_job};
use crate::campaign::{
    Campaign, Fault, FileSystem, Patterns, Subject, expand_subjects, fault_of, parse_unchecked,
};
use crate::error::LabError;
use crate::settings::Kind;
use crate::tool::{Place, Tool};

impl Planned {
    /// Checks everything that the types do not, and expands the campaign.
    ///
    /// # Errors
    ///
    /// The first fault, with the change that mends it.
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
/// The text is not TOML of this form, has an unknown key, or fails [`Planned::checked`].
pub fn parse_campaign(text: &str, origin: &str) -> Result<Campaign, LabError> {
    let campaign = parse_unchecked(text, origin)?;
    Planned::checked(&campaign).map(|planned| planned.campaign)
}

/// Returns the fault of a job, or of a job with these subjects.
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

/// Returns the fault of a choice without a default that is not set.
fn unset(tool: &dyn Tool, workload: &Workload) -> Option<String> {
    tool.parameters().iter().find_map(|parameter| match parameter.kind {
        Kind::Choice(words) if workload.settings.get(parameter.name).is_none() => {
            Some(format!("{} is not set; take one of: {}", parameter.name, words.join(", ")))
        }
        _ => None,
    })
}

/// Returns the fault of a workload that two jobs have for one subject.
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
