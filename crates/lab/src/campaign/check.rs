//! What a campaign must be beyond its types: names, ranges, sources that can be read.
//!
//! Deliberately absent: whether its jobs go with their subjects, which is asked where they are worked
//! out ([`crate::matrix`]), and whether anything would be overwritten.

use braid_stack::ByteSize;

use super::{Campaign, MemberDecl, Patterns, Source, Subject, SubjectDecl};

/// What is wrong, and what to change.
pub(crate) type Fault = (String, String);

/// What is wrong with a campaign, jobs apart. `all` are its subjects before any is chosen, `subjects`
/// those that are.
pub(crate) fn fault_of(
    campaign: &Campaign,
    all: &[Subject],
    subjects: &[Subject],
) -> Option<Fault> {
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
        .or_else(|| fault_of_only(campaign, all))
        .or_else(|| fault_of_subjects(subjects))
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

fn fault_of_only(campaign: &Campaign, all: &[Subject]) -> Option<Fault> {
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
        Source::Stack(expression) | Source::Kernel(expression) => {
            expression.stack().err().map(str::to_owned)
        }
        Source::Zram(text) | Source::Tmpfs(text) => {
            text.parse::<ByteSize>().err().map(|error| error.to_string())
        }
        Source::Path(_) | Source::Directory(_) | Source::Nbd(_) => None,
    }
}
