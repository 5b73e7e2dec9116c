//! The campaign file: what is measured, how often, on which subjects.
//!
//! ```toml
//! name = "stripe"
//! repetitions = 6
//! region = "256M"
//!
//! [[member]]
//! name = "a"
//! device = "/srv/a.img"
//!
//! [[member]]
//! name = "b"
//! device = "/srv/b.img"
//!
//! [[subject]]
//! name = "single"
//! stack = "{a}"
//! baseline = true
//!
//! [[subject]]
//! name = "stripe"
//! stack = "raid0(chunk={chunk}, {members})"
//! chunk = ["64K", "512K"]
//!
//! [[job]]
//! tool = "fio"
//! pattern = ["seq", "rand"]
//! op = ["read", "write"]
//! block_size = ["1M", "4K"]
//! ```
//!
//! Invariants of a [`Campaign`] that came from [`parse_campaign`]: at least one subject and one
//! job, names unique, every number in its range, every parameter known to its tool.
//!
//! Deliberately absent: paths relative to the file (they are relative to the working directory,
//! as on the command line), includes, variables beyond the members' names.

use std::path::Path;

use braid_stack::ByteSize;
use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::settings::Value;
use crate::tool::Place;

mod job;
mod keys;
mod one_or_many;
mod patterns;
mod setup;
mod subject;

pub use job::{Job, common_parameters};
pub use one_or_many::OneOrMany;
pub use patterns::Patterns;
pub use setup::{FileSystem, Health, Setup};
pub use subject::{MemberDecl, Order, Source, Subject, SubjectDecl, expand_subjects};

use keys::check_keys;

/// The seed that is used when the campaign names none.
pub const DEFAULT_SEED: u64 = 42;

/// One campaign.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Campaign {
    /// A short name; it heads the report.
    pub name: String,
    /// What the campaign is to find out.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// How often each cell is measured, 1 to 1000.
    #[serde(default = "default_repetitions")]
    pub repetitions: u32,
    /// Seed of the shuffle, of offsets and of contents; recorded with the results.
    #[serde(default = "default_seed")]
    pub seed: u64,
    /// Measured time of one trial in seconds, 0.1 to 86 400, for tools that run for a time.
    #[serde(default = "default_runtime")]
    pub runtime_s: f64,
    /// Time before the measured time in seconds, 0 to 3600; what happens in it is not counted.
    #[serde(default)]
    pub ramp_s: f64,
    /// The first so many bytes of each subject are used, or the whole subject if it is smaller.
    #[serde(default = "default_region")]
    pub region: ByteSize,
    /// Whether the region is written once before a subject's first trial. Reading what was
    /// never written measures nothing: a hole in a file, an unmapped block of a flash disk.
    /// Has no effect in a campaign that only reads.
    #[serde(default = "default_true")]
    pub fill: bool,
    /// Whether the page cache is dropped before each trial, unless its job says otherwise.
    #[serde(default = "default_true")]
    pub drop_caches: bool,
    /// Whether the repetitions are rounds of one long run: only those in which a subject has
    /// settled count.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rounds: bool,
    /// Seconds of rest before each trial, 0 to 3600: flash and hot disks recover.
    #[serde(default)]
    pub rest_s: f64,
    /// Only subjects whose worked-out names have one of these forms, `*` standing for any letters,
    /// and the baselines. Empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub only: Vec<String>,
    /// The devices that subjects are made of.
    #[serde(rename = "member", default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<MemberDecl>,
    /// What is measured.
    #[serde(rename = "subject", default)]
    pub subjects: Vec<SubjectDecl>,
    /// The workloads.
    #[serde(rename = "job", default)]
    pub jobs: Vec<Job>,
}

/// The keys of a campaign's first level.
const KEYS: [&str; 15] = [
    "name",
    "description",
    "repetitions",
    "seed",
    "runtime_s",
    "ramp_s",
    "region",
    "fill",
    "drop_caches",
    "rounds",
    "rest_s",
    "only",
    "member",
    "subject",
    "job",
];

fn default_repetitions() -> u32 {
    3
}
fn default_seed() -> u64 {
    DEFAULT_SEED
}
fn default_runtime() -> f64 {
    10.0
}
fn default_region() -> ByteSize {
    ByteSize(1 << 30)
}
fn default_true() -> bool {
    true
}

/// Reads a campaign file that may still lack something: the devices of members that are given
/// otherwise. What is made of it is checked by [`check_campaign`].
///
/// # Errors
///
/// When it cannot be read, is not TOML of this form, or has a key that is not known.
pub(crate) fn read_draft(path: &Path) -> Result<Campaign, LabError> {
    let text = std::fs::read_to_string(path).map_err(LabError::file("read the campaign", path))?;
    parse_unchecked(&text, &path.display().to_string())
}

/// Parses and checks a campaign; `origin` names it in errors.
///
/// # Errors
///
/// When it is not TOML of this form, has a key that is not known, or fails [`check_campaign`].
pub fn parse_campaign(text: &str, origin: &str) -> Result<Campaign, LabError> {
    let campaign = parse_unchecked(text, origin)?;
    check_campaign(&campaign)?;
    Ok(campaign)
}

/// Parses a campaign that may still lack something, such as a preset without its members.
///
/// # Errors
///
/// When it is not TOML of this form, or has a key that is not known.
pub(crate) fn parse_unchecked(text: &str, origin: &str) -> Result<Campaign, LabError> {
    let refuse = |reason: String| LabError::CampaignSyntax { origin: origin.to_owned(), reason };
    let table: toml::Table =
        toml::from_str(text).map_err(|error| refuse(error.to_string().trim_end().to_owned()))?;
    check_all_keys(&table).map_err(refuse)?;
    toml::from_str(text).map_err(|error| refuse(error.to_string().trim_end().to_owned()))
}

/// The keys of jobs depend on their tools and are checked where jobs are read.
fn check_all_keys(table: &toml::Table) -> Result<(), String> {
    check_keys(table, "the campaign", KEYS.into_iter())?;
    for (list, keys) in
        [("member", MemberDecl::KEYS.as_slice()), ("subject", SubjectDecl::KEYS.as_slice())]
    {
        let entries = table.get(list).and_then(toml::Value::as_array);
        for (index, entry) in entries.into_iter().flatten().enumerate() {
            if let Some(entry) = entry.as_table() {
                check_keys(entry, &format!("{list} {}", index + 1), keys.iter().copied())?;
            }
        }
    }
    Ok(())
}

/// The campaign as TOML; [`parse_campaign`] reads it back to an equal value.
///
/// # Errors
///
/// When a value cannot be written as TOML (a number that is no number).
pub fn render_campaign(campaign: &Campaign) -> Result<String, LabError> {
    toml::to_string(campaign)
        .map_err(|error| LabError::Serialise { what: "the campaign", reason: error.to_string() })
}

impl Campaign {
    /// The subjects, worked out.
    pub fn expand(&self) -> Vec<Subject> {
        let mut subjects = expand_subjects(&self.subjects, &self.members);
        if !self.only.is_empty() {
            let wanted = Patterns(&self.only);
            subjects.retain(|subject| subject.baseline || wanted.matches(&subject.name));
        }
        subjects
    }

    /// The campaign with amounts of data and times multiplied by `factor`, above 0: a short run
    /// of a long campaign. Times stay at least 0.2 s and amounts at least 8 MiB; shapes (block
    /// sizes, depths, processes, repetitions) stay as they are.
    #[must_use]
    pub fn scaled(mut self, factor: f64) -> Self {
        let size = |size: ByteSize| {
            let scaled = (size.0 as f64 * factor) as u64;
            ByteSize((scaled >> 20).max(8) << 20)
        };
        self.runtime_s = (self.runtime_s * factor).max(0.2);
        self.ramp_s *= factor;
        self.rest_s *= factor;
        self.region = size(self.region);
        let scale = |value: &Value| match value {
            Value::Size(bytes) => Value::Size(size(*bytes)),
            // None of something stays none.
            Value::Count(count) if *count > 0 => {
                Value::Count(((*count as f64 * factor) as u64).max(1))
            }
            Value::Count(_) | Value::Flag(_) | Value::Word(_) => value.clone(),
        };
        for job in &mut self.jobs {
            let Some(tool) = crate::tool::find(&job.tool) else { continue };
            let defaults = crate::settings::Settings::defaults(tool.parameters());
            for parameter in tool.parameters().iter().filter(|parameter| parameter.scales) {
                if let Some(values) = job.settings.get_mut(parameter.name) {
                    *values = values.iter().map(scale).collect();
                    values.dedup();
                } else if let Some(default) = defaults.get(parameter.name) {
                    let scaled = scale(default);
                    if scaled != *default {
                        job.settings.insert(parameter.name.to_owned(), vec![scaled]);
                    }
                }
            }
        }
        self
    }
}

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
    fault_of_members(&campaign.members)
        .or_else(|| fault_of_names(&campaign.subjects))
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
        for workload in crate::matrix::plan_job(campaign, job) {
            let Some(tool) = crate::tool::find(&workload.tool) else {
                return fault("its tool is not known".into(), "name another tool");
            };
            if let Err(reason) = tool.check(&workload.settings, workload.setup.processes) {
                return fault(reason, "correct the job");
            }
            let has_files = workload.setup.filesystem != FileSystem::None;
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

#[cfg(test)]
mod tests;
