//! What a campaign must be beyond its types: names, ranges, and jobs that go with their subjects.
//!
//! Deliberately absent: what is impossible for single cells, which stands in the matrix with its
//! reason, and whether anything would be overwritten.

use braid_stack::ByteSize;

use super::{
    Campaign, FileSystem, Job, MemberDecl, Patterns, Source, Subject, SubjectDecl, expand_subjects,
};
use crate::error::LabError;
use crate::tool::Place;

/// Checks everything that the types do not.
///
/// # Errors
///
/// The first thing that is wrong, with what to change.
pub fn check_campaign(campaign: &Campaign) -> Result<(), LabError> {
    match fault_of(campaign) {
        None => Ok(()),
        Some((reason, next)) => {
            Err(LabError::CampaignRefused { name: campaign.name.clone(), reason, next })
        }
    }
}

/// What is wrong, and what to change.
type Fault = (String, String);

fn fault_of(campaign: &Campaign) -> Option<Fault> {
    let fault = |reason: String, next: &str| Some((reason, next.to_owned()));
    if campaign.name.trim().is_empty() {
        return fault("it has no name".into(), "set name = \"...\"");
    }
    if !(1..=1000).contains(&campaign.repetitions) {
        return fault(format!("{} repetitions", campaign.repetitions), "take 1 to 1000");
    }
    if !(0.1..=86_400.0).contains(&campaign.runtime_s) {
        return fault(format!("runtime_s is {}", campaign.runtime_s), "take 0.1 to 86400");
    }
    if i64::try_from(campaign.seed).is_err() {
        return fault(
            format!("the seed is {}", campaign.seed),
            "take one below 2^63, as TOML does",
        );
    }
    for (name, value) in [("ramp_s", campaign.ramp_s), ("rest_s", campaign.rest_s)] {
        if !(0.0..=3600.0).contains(&value) {
            return fault(format!("{name} is {value}"), "take 0 to 3600");
        }
    }
    if campaign.region.0 < 4096 {
        return fault(format!("region is {}", campaign.region), "take at least 4K");
    }
    if let Some(folder) = campaign.working_dir.as_ref().filter(|folder| !folder.is_absolute()) {
        let reason = format!("working_dir is {:?}", folder.display().to_string());
        return fault(reason, "write it with all that is above it, from / on, or leave it out");
    }
    fault_of_members(&campaign.members)
        .or_else(|| fault_of_names(&campaign.subjects))
        .or_else(|| campaign.subjects.iter().find_map(fault_of_lists))
        .or_else(|| fault_of_only(campaign))
        .or_else(|| fault_of_subjects(&campaign.expand()))
        .or_else(|| fault_of_jobs(campaign))
}

fn fault_of_members(members: &[MemberDecl]) -> Option<Fault> {
    for (index, member) in members.iter().enumerate() {
        let is_name = !member.name.is_empty()
            && member.name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
            && !["members", "chunk"].contains(&member.name.as_str());
        if !is_name {
            return Some((
                format!("member {} is named {:?}", index + 1, member.name),
                "take letters, digits, - and _, and neither \"members\" nor \"chunk\"".into(),
            ));
        }
        if members[..index].iter().any(|other| other.name == member.name) {
            return Some((format!("two members are named {:?}", member.name), "rename one".into()));
        }
        if member.device.trim().is_empty() {
            return Some((
                format!("member {:?} has no device", member.name),
                format!("add --member {}=DEVICE, or set its device", member.name),
            ));
        }
    }
    None
}

fn fault_of_names(subjects: &[SubjectDecl]) -> Option<Fault> {
    let twice = subjects
        .iter()
        .enumerate()
        .find(|(index, subject)| subjects[..*index].iter().any(|other| other.name == subject.name));
    let (_, subject) = twice?;
    Some((format!("two subjects are named {:?}", subject.name), "rename one".into()))
}

/// A list that the template does not take: subjects of different names that are one and the same.
fn fault_of_lists(subject: &SubjectDecl) -> Option<Fault> {
    let (key, place) = subject.unused_list()?;
    Some((
        format!(
            "subject {:?} has `{key}`, but no {place} in {:?}",
            subject.name,
            subject.source.text()
        ),
        format!("write {place} where it belongs, or remove `{key}`"),
    ))
}

fn fault_of_only(campaign: &Campaign) -> Option<Fault> {
    let all = expand_subjects(&campaign.subjects, &campaign.members);
    let unknown = campaign.only.iter().find(|pattern| {
        let one = Patterns(std::slice::from_ref(pattern));
        !all.iter().any(|subject| one.matches(&subject.name))
    })?;
    let names: Vec<&str> = all.iter().map(|subject| subject.name.as_str()).take(20).collect();
    Some((format!("no subject is named {unknown:?}"), format!("subjects are {}", names.join("; "))))
}

fn fault_of_subjects(subjects: &[Subject]) -> Option<Fault> {
    if subjects.is_empty() {
        return Some(("it has no subject".into(), "add a [[subject]]".into()));
    }
    for (index, subject) in subjects.iter().enumerate() {
        if subject.name.trim().is_empty() {
            return Some((format!("subject {} has no name", index + 1), "set its name".into()));
        }
        if subject.source.text().trim().is_empty() {
            return Some((format!("subject {:?} is empty", subject.name), "say what it is".into()));
        }
        if subjects[..index].iter().any(|other| other.name == subject.name) {
            return Some((
                format!("two subjects are named {:?}", subject.name),
                "rename one".into(),
            ));
        }
        if let Some(reason) = fault_of_source(subject) {
            let reason =
                format!("subject {:?} = {:?}: {reason}", subject.name, subject.source.text());
            return Some((reason, "correct it".into()));
        }
    }
    let baselines = subjects.iter().filter(|subject| subject.baseline);
    if subjects.len() > 1 && baselines.count() == 0 {
        return Some((
            "no subject is the baseline".into(),
            "add `baseline = true` to the one that the others are compared with (of several, with \
             their average)"
                .into(),
        ));
    }
    None
}

fn fault_of_source(subject: &Subject) -> Option<String> {
    if subject.impossible.is_some() {
        return None;
    }
    let text = subject.source.text();
    if let Some((_, rest)) = text.split_once('{') {
        let name = rest.split_once('}').map_or(rest, |(name, _)| name);
        return Some(format!("{{{name}}} is neither a member nor a list of the subject"));
    }
    match &subject.source {
        Source::Stack(text) | Source::Kernel(text) => {
            braid_stack::Stack::parse(text).err().map(|error| error.to_string())
        }
        Source::Zram(text) | Source::Tmpfs(text) => {
            text.parse::<ByteSize>().err().map(|error| error.to_string())
        }
        Source::Path(_) | Source::Directory(_) | Source::Nbd(_) => None,
    }
}

fn fault_of_jobs(campaign: &Campaign) -> Option<Fault> {
    if campaign.jobs.is_empty() {
        return Some(("it has no job".into(), "add a [[job]]".into()));
    }
    let subjects = expand_subjects(&campaign.subjects, &campaign.members);
    for (index, job) in campaign.jobs.iter().enumerate() {
        let fault = |reason: String, next: &str| {
            Some((format!("job {} ({}): {reason}", index + 1, job.tool), next.to_owned()))
        };
        if let Some(pattern) = job.subjects.iter().find(|pattern| {
            let one = Patterns(std::slice::from_ref(pattern));
            !subjects.iter().any(|subject| one.matches(&subject.name))
        }) {
            return fault(format!("no subject is named {pattern:?}"), "correct `subjects`");
        }
        if let Some(reason) = fault_of_folders(job, &subjects) {
            return fault(reason, "remove it: folders are measured as they are mounted");
        }
        for workload in crate::matrix::plan_job(campaign, &subjects, job) {
            let Some(tool) = crate::tool::find(&workload.tool) else {
                return fault("its tool is not known".into(), "name another tool");
            };
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
            match tool.place(&workload.settings) {
                Place::Device { .. } if has_files => {
                    return fault("it takes a raw device".into(), "remove `filesystem`");
                }
                Place::Folder if !has_files => {
                    return fault("it works on files".into(), "name a file system");
                }
                _ => {}
            }
        }
    }
    let mut seen = std::collections::BTreeSet::new();
    for cell in crate::matrix::plan_matrix(campaign) {
        let label = cell.workload.label();
        if !seen.insert((cell.subject, label.clone())) {
            let reason = format!("it has the workload {label:?} twice");
            return Some((reason, "remove one of the two jobs".into()));
        }
    }
    None
}

/// What a job wants of folders, and of nothing else, that they cannot give.
fn fault_of_folders(job: &Job, subjects: &[Subject]) -> Option<String> {
    let mut mine = subjects.iter().filter(|subject| job.is_for(&subject.name)).peekable();
    mine.peek()?;
    let is_set = |words: &[String]| words.iter().any(|word| !word.is_empty());
    let wanted = [
        ("filesystem", !job.filesystem.is_empty()),
        ("mkfs", is_set(&job.mkfs)),
        ("mount", is_set(&job.mount)),
    ];
    let (key, _) = wanted.into_iter().find(|(_, is_wanted)| *is_wanted)?;
    mine.all(|subject| matches!(subject.source, Source::Directory(_)))
        .then(|| format!("it has `{key}`, and all of its subjects are folders"))
}
