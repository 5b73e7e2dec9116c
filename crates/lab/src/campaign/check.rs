//! Checks of a campaign beyond its types: names, ranges, sources that can be read.
//!
//! Deliberately absent: whether jobs fit their subjects, which the expansion checks ([`crate::matrix`]), and
//! whether anything would be overwritten.

use braid_stack::ByteSize;

use super::{Campaign, Patterns, Source, Subject, SubjectDecl};

/// The fault, and the change that mends it.
pub(crate) type Fault = (String, String);

/// Returns the fault of a campaign, jobs apart. `all` are its subjects before the choice, `subjects` those that
/// are chosen.
pub(crate) fn fault_of(
    campaign: &Campaign,
    all: &[Subject],
    subjects: &[Subject],
) -> Option<Fault> {
    fault_of_values(campaign)
        .or_else(|| fault_of_members(campaign))
        .or_else(|| twice("subject", campaign.subjects.iter().map(|subject| &subject.name)))
        .or_else(|| campaign.subjects.iter().find_map(fault_of_lists))
        .or_else(|| fault_of_only(campaign, all))
        .or_else(|| fault_of_subjects(subjects))
}

fn fault_of_values(campaign: &Campaign) -> Option<Fault> {
    let Campaign { repetitions, runtime_s, ramp_s, rest_s, seed, region, .. } = campaign;
    let is_up_to_an_hour = |seconds: &f64| (0.0..=3600.0).contains(seconds);
    let folder = campaign.working_dir.as_deref();
    let folder_text = folder.map(|folder| folder.display().to_string()).unwrap_or_default();
    let values = [
        (!campaign.name.trim().is_empty(), "it has no name".to_owned(), "set name = \"...\""),
        ((1..=1000).contains(repetitions), format!("{repetitions} repetitions"), "take 1 to 1000"),
        (
            (0.1..=86_400.0).contains(runtime_s),
            format!("runtime_s is {runtime_s}"),
            "take 0.1 to 86400",
        ),
        (
            seed.is_none_or(|seed| i64::try_from(seed).is_ok()),
            format!("the seed is {}", campaign.seed()),
            "take one below 2^63, as TOML does",
        ),
        (is_up_to_an_hour(ramp_s), format!("ramp_s is {ramp_s}"), "take 0 to 3600"),
        (is_up_to_an_hour(rest_s), format!("rest_s is {rest_s}"), "take 0 to 3600"),
        (region.0 >= 4096, format!("region is {region}"), "take at least 4K"),
        (
            folder.is_none_or(|folder| folder.is_absolute()),
            format!("working_dir is {folder_text:?}"),
            "write it with all that is above it, from / on, or leave it out",
        ),
    ];
    let wrong = values.into_iter().find(|(is_fine, ..)| !is_fine);
    wrong.map(|(_, reason, next)| (reason, next.to_owned()))
}

/// Returns the fault of a name that occurs twice.
fn twice<'n>(what: &str, names: impl Iterator<Item = &'n String> + Clone) -> Option<Fault> {
    let mut all = names.clone().enumerate();
    let (_, name) = all.find(|(index, name)| names.clone().take(*index).any(|one| one == *name))?;
    Some((format!("two {what}s are named {name:?}"), "rename one".into()))
}

fn fault_of_members(campaign: &Campaign) -> Option<Fault> {
    let of_one = |(index, member): (usize, &super::MemberDecl)| {
        let is_name = !member.name.is_empty()
            && member.name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
            && !["members", "chunk"].contains(&member.name.as_str());
        if !is_name {
            return Some((
                format!("member {} is named {:?}", index + 1, member.name),
                "take letters, digits, - and _, and neither \"members\" nor \"chunk\"".into(),
            ));
        }
        member.device.trim().is_empty().then(|| {
            (
                format!("member {:?} has no device", member.name),
                format!("add --member {}=DEVICE, or set its device", member.name),
            )
        })
    };
    let members = &campaign.members;
    twice("member", members.iter().map(|member| &member.name))
        .or_else(|| members.iter().enumerate().find_map(of_one))
}

/// Returns the fault of a list that the template does not use: its subjects would differ only in name.
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
    let unknown = Patterns(&campaign.only).unknown_among(all)?;
    let names: Vec<&str> = all.iter().map(|subject| subject.name.as_str()).take(20).collect();
    Some((format!("no subject is named {unknown:?}"), format!("subjects are {}", names.join("; "))))
}

fn fault_of_subjects(subjects: &[Subject]) -> Option<Fault> {
    if subjects.is_empty() {
        return Some(("it has no subject".into(), "add a [[subject]]".into()));
    }
    let of_one = |(index, subject): (usize, &Subject)| {
        let (name, text) = (&subject.name, subject.source.text());
        if name.trim().is_empty() {
            return Some((format!("subject {} has no name", index + 1), "set its name".into()));
        }
        if text.trim().is_empty() {
            return Some((format!("subject {name:?} is empty"), "say what it is".into()));
        }
        let reason = fault_of_source(subject)?;
        Some((format!("subject {name:?} = {text:?}: {reason}"), "correct it".into()))
    };
    let fault = twice("subject", subjects.iter().map(|subject| &subject.name))
        .or_else(|| subjects.iter().enumerate().find_map(of_one))
        .or_else(|| fault_of_control(subjects));
    if fault.is_some() || subjects.len() == 1 || subjects.iter().any(|subject| subject.baseline) {
        return fault;
    }
    Some((
        "no subject is the baseline".into(),
        "add `baseline = true` to the one that the others are compared with (of several, with their \
         average)"
            .into(),
    ))
}

/// Returns the fault of a useless control: of no baseline, or of one of several.
fn fault_of_control(subjects: &[Subject]) -> Option<Fault> {
    let controls: Vec<&Subject> = subjects.iter().filter(|subject| subject.control).collect();
    let baselines = subjects.iter().filter(|subject| subject.baseline).count();
    let reason = match controls.as_slice() {
        [] => return None,
        [_, second, ..] => format!("{:?} is a second control", second.name),
        [only] if only.baseline => format!("{:?} is the baseline and its control", only.name),
        [only] if baselines != 1 => {
            format!("{:?} is a control, and there are {baselines} baselines", only.name)
        }
        [_] => return None,
    };
    Some((reason, "leave `control = true` to one subject beside the only baseline".into()))
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
