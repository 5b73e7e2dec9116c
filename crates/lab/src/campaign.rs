//! The campaign file: what is measured, how often, on which subjects.
//!
//! ```toml
//! name = "stripe"
//! repetitions = 3
//! region = "256M"
//!
//! [[subject]]
//! name = "single"
//! stack = "/srv/a.img"
//! baseline = true
//!
//! [[subject]]
//! name = "stripe"
//! stack = "raid0(chunk=64K, /srv/a.img, /srv/b.img)"
//!
//! [[job]]
//! pattern = ["seq", "rand"]
//! op = ["read", "write"]
//! block_size = ["1M", "4K"]
//! ```
//!
//! Invariants of a [`Campaign`] that came from [`parse_campaign`]: at least one subject and one
//! job, names unique, exactly one baseline, every number in its range.
//!
//! Deliberately absent: paths relative to the file (they are relative to the working directory,
//! as on the command line), includes, variables.

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::LabError;
use braid_stack::ByteSize;

mod one_or_many;
pub use one_or_many::OneOrMany;

/// The seed that is used when the campaign names none.
pub const DEFAULT_SEED: u64 = 42;

/// One campaign.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Campaign {
    /// A short name; it heads the report.
    pub name: String,
    /// What the campaign is to find out.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// How often each cell is measured, 1 to 1000.
    #[serde(default = "default_repetitions")]
    pub repetitions: u32,
    /// Seed of the shuffle and of the offsets; recorded with the results.
    #[serde(default = "default_seed")]
    pub seed: u64,
    /// Measured time of one trial in seconds, 0.1 to 86 400.
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
    #[serde(default = "default_fill")]
    pub fill: bool,
    /// What is measured.
    #[serde(rename = "subject", default)]
    pub subjects: Vec<Subject>,
    /// The workloads.
    #[serde(rename = "job", default)]
    pub jobs: Vec<Job>,
}

/// Something that can be measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "RawSubject", into = "RawSubject")]
pub struct Subject {
    /// Unique in the campaign.
    pub name: String,
    /// What it is.
    pub source: Source,
    /// Whether the others are compared with it.
    pub baseline: bool,
}

/// Where a subject's bytes are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A stack expression, served by `braid serve` and measured through NBD.
    Stack(String),
    /// A block device or a file, opened by the tool itself.
    Path(String),
    /// An NBD server that somebody else runs.
    Nbd(String),
}

impl Source {
    /// What a word on the command line means: an `nbd://` or `nbd+unix://` URI, else a stack.
    pub fn from_argument(word: &str) -> Self {
        if word.starts_with("nbd://") || word.starts_with("nbd+unix://") {
            Self::Nbd(word.to_owned())
        } else {
            Self::Stack(word.to_owned())
        }
    }

    /// "stack", "path" or "nbd".
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Stack(_) => "stack",
            Self::Path(_) => "path",
            Self::Nbd(_) => "nbd",
        }
    }

    /// The expression, path or URI.
    pub fn text(&self) -> &str {
        match self {
            Self::Stack(text) | Self::Path(text) | Self::Nbd(text) => text,
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSubject {
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stack: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    nbd: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    baseline: bool,
}

impl TryFrom<RawSubject> for Subject {
    type Error = String;

    fn try_from(raw: RawSubject) -> Result<Self, String> {
        let source = match (raw.stack, raw.path, raw.nbd) {
            (Some(text), None, None) => Source::Stack(text),
            (None, Some(text), None) => Source::Path(text),
            (None, None, Some(text)) => Source::Nbd(text),
            _ => {
                return Err(format!(
                    "subject {:?} needs exactly one of `stack = \"raid0(...)\"`, `path = \"/dev/...\"` \
                     and `nbd = \"nbd+unix:///?socket=...\"`",
                    raw.name
                ));
            }
        };
        Ok(Self { name: raw.name, source, baseline: raw.baseline })
    }
}

impl From<Subject> for RawSubject {
    fn from(subject: Subject) -> Self {
        let mut raw = Self {
            name: subject.name,
            stack: None,
            path: None,
            nbd: None,
            baseline: subject.baseline,
        };
        match subject.source {
            Source::Stack(text) => raw.stack = Some(text),
            Source::Path(text) => raw.path = Some(text),
            Source::Nbd(text) => raw.nbd = Some(text),
        }
        raw
    }
}

/// A family of workloads: every pattern x every direction x every block size is a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// The tool that runs it.
    #[serde(default = "default_tool")]
    pub tool: String,
    /// Order of the offsets.
    pub pattern: OneOrMany<Pattern>,
    /// Direction.
    pub op: OneOrMany<Op>,
    /// Bytes of one request, 512 to 64 MiB, a multiple of 512.
    pub block_size: OneOrMany<ByteSize>,
    /// Requests in flight of each process, 1 to 4096. Without it: 8 for requests of 256 KiB and
    /// more, else 32.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iodepth: Option<u32>,
    /// Processes that run it at the same time, 1 to 256.
    #[serde(default = "default_processes")]
    pub processes: u32,
    /// Past the page cache (O_DIRECT). Has no meaning for NBD, which has no page cache on the
    /// client's side.
    #[serde(default = "default_direct")]
    pub direct: bool,
    /// A flush after so many writes; 0 is one flush at the end of the trial.
    #[serde(default)]
    pub flush_every: u32,
}

/// Order of the offsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pattern {
    /// Rising.
    Seq,
    /// Uniformly random, aligned to the block size.
    Rand,
}

/// Direction of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Op {
    /// From the subject.
    Read,
    /// To the subject.
    Write,
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Seq => "sequential",
            Self::Rand => "random",
        })
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
        })
    }
}

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
fn default_fill() -> bool {
    true
}
fn default_tool() -> String {
    "fio".to_owned()
}
fn default_processes() -> u32 {
    1
}
fn default_direct() -> bool {
    true
}

/// Reads a campaign file.
///
/// # Errors
///
/// When the file cannot be read, is not TOML of this form, or fails [`check_campaign`].
pub fn read_campaign(path: &Path) -> Result<Campaign, LabError> {
    let text = std::fs::read_to_string(path).map_err(LabError::file("read the campaign", path))?;
    parse_campaign(&text, &path.display().to_string())
}

/// Parses and checks a campaign; `origin` names it in errors.
///
/// # Errors
///
/// As [`read_campaign`], without the reading.
pub fn parse_campaign(text: &str, origin: &str) -> Result<Campaign, LabError> {
    let campaign: Campaign = toml::from_str(text).map_err(|error| LabError::CampaignSyntax {
        origin: origin.to_owned(),
        reason: error.to_string().trim_end().to_owned(),
    })?;
    check_campaign(&campaign)?;
    Ok(campaign)
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

/// Checks everything that the types do not.
///
/// # Errors
///
/// The first thing that is wrong, with what to change.
pub fn check_campaign(campaign: &Campaign) -> Result<(), LabError> {
    let refuse = |reason: String, next: &str| {
        Err(LabError::CampaignRefused {
            name: campaign.name.clone(),
            reason,
            next: next.to_owned(),
        })
    };
    if campaign.name.trim().is_empty() {
        return refuse("it has no name".into(), "set name = \"...\"");
    }
    if !(1..=1000).contains(&campaign.repetitions) {
        return refuse(format!("{} repetitions", campaign.repetitions), "take 1 to 1000");
    }
    if !(0.1..=86_400.0).contains(&campaign.runtime_s) {
        return refuse(format!("runtime_s is {}", campaign.runtime_s), "take 0.1 to 86400");
    }
    if !(0.0..=3600.0).contains(&campaign.ramp_s) {
        return refuse(format!("ramp_s is {}", campaign.ramp_s), "take 0 to 3600");
    }
    if let Some((reason, next)) = fault_of_subjects(&campaign.subjects) {
        return refuse(reason, next);
    }
    for subject in &campaign.subjects {
        if let Some(reason) = fault_of_stack(subject) {
            return refuse(reason, "correct the stack");
        }
    }
    if campaign.jobs.is_empty() {
        return refuse("it has no job".into(), "add a [[job]]");
    }
    for (index, job) in campaign.jobs.iter().enumerate() {
        if let Some((reason, next)) = fault_of_job(job, campaign.region) {
            return refuse(format!("job {}: {reason}", index + 1), &next);
        }
    }
    let cells = crate::matrix::plan_matrix(campaign);
    let mut seen = std::collections::BTreeSet::new();
    for cell in &cells {
        if !seen.insert((cell.subject, cell.workload.label())) {
            return refuse(
                format!("it has the workload {:?} twice", cell.workload.label()),
                "remove one of the two jobs",
            );
        }
    }
    Ok(())
}

fn fault_of_subjects(subjects: &[Subject]) -> Option<(String, &'static str)> {
    if subjects.is_empty() {
        return Some(("it has no subject".into(), "add a [[subject]]"));
    }
    for (index, subject) in subjects.iter().enumerate() {
        if subject.name.trim().is_empty() {
            return Some((format!("subject {} has no name", index + 1), "set its name"));
        }
        if subject.source.text().trim().is_empty() {
            return Some((format!("subject {:?} is empty", subject.name), "say what it is"));
        }
        if subjects[..index].iter().any(|other| other.name == subject.name) {
            return Some((format!("two subjects are named {:?}", subject.name), "rename one"));
        }
    }
    match subjects.iter().filter(|subject| subject.baseline).count() {
        1 => None,
        0 => Some((
            "no subject is the baseline".into(),
            "add `baseline = true` to the one that the others are compared with",
        )),
        n => Some((format!("{n} subjects are baselines"), "keep one `baseline = true`")),
    }
}

fn fault_of_stack(subject: &Subject) -> Option<String> {
    let Source::Stack(text) = &subject.source else {
        return None;
    };
    let error = braid_stack::Stack::parse(text).err()?;
    Some(format!("subject {:?} = {text:?}: {error}", subject.name))
}

fn fault_of_job(job: &Job, region: ByteSize) -> Option<(String, String)> {
    if crate::tool::find(&job.tool).is_none() {
        let known = crate::tool::names().join(", ");
        return Some((
            format!("tool {:?} is not known", job.tool),
            format!("take one of: {known}"),
        ));
    }
    for (what, empty) in [
        ("pattern", job.pattern.0.is_empty()),
        ("op", job.op.0.is_empty()),
        ("block_size", job.block_size.0.is_empty()),
    ] {
        if empty {
            return Some((format!("{what} is empty"), "name at least one".into()));
        }
    }
    for size in &job.block_size.0 {
        if !(512..=64 << 20).contains(&size.0) || !size.0.is_multiple_of(512) {
            return Some((format!("block_size {size}"), "take a multiple of 512 up to 64M".into()));
        }
        let needed = size.0 * u64::from(job.processes);
        if needed > region.0 {
            let next = format!("set region to at least {}", ByteSize(needed));
            return Some((format!("block_size {size} does not fit the region {region}"), next));
        }
    }
    if !(1..=256).contains(&job.processes) {
        return Some((format!("{} processes", job.processes), "take 1 to 256".into()));
    }
    match job.iodepth {
        Some(depth) if !(1..=4096).contains(&depth) => {
            Some((format!("iodepth {depth}"), "take 1 to 4096".into()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
