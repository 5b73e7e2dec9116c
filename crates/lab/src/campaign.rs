//! The campaign file: the subjects, the workloads, and the number of repetitions.
//!
//! `docs/laboratory.md` shows one, and explains every key.
//!
//! Invariants of a [`Campaign`] that came from [`crate::matrix::parse_campaign`]: at least one subject and one
//! job, names unique, every number in its range, every parameter known to its tool.
//!
//! Deliberately absent: paths relative to the file (they are relative to `working_dir`, or without it to the
//! working directory, as on the command line), includes, variables beyond the members' names.

use std::path::{Path, PathBuf};

use braid_stack::ByteSize;
use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::settings::{Kind, Parameter, Value};

mod check;
mod control;
mod expression;
mod job;
mod keys;
mod patterns;
mod rooted;
mod setup;
mod subject;

pub(crate) use check::{Fault, fault_of};
pub(crate) use control::draw_seed;
pub use expression::Expression;
pub use job::{Job, common_parameters};
pub use patterns::Patterns;
pub(crate) use rooted::resolve_device;
pub use setup::{FileSystem, Health, Setup};
pub use subject::{MemberDecl, Source, Subject, SubjectDecl, expand_subjects};

use keys::{Lists, hint};

/// The seed of a campaign without a named or drawn seed: for plans and predictions.
const UNDRAWN_SEED: u64 = 42;

/// A campaign.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Campaign {
    /// A short name; it heads the report.
    pub name: String,
    /// The question that the campaign answers.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Number of measurements of each cell, 1 to 1000.
    pub repetitions: u32,
    /// Seed of orders, offsets and contents, below 2^63. If none is named, a run draws one and keeps it with
    /// the results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Measured time of one trial in seconds, 0.1 to 86 400, for tools that run for a time.
    pub runtime_s: f64,
    /// Time before the measured time in seconds, 0 to 3600; requests in it are not counted.
    pub ramp_s: f64,
    /// Number of bytes at the start of each subject that are used, or the whole subject if it is smaller.
    pub region: ByteSize,
    /// True if the region is written once before a subject's first trial. Reading blocks that were never
    /// written measures nothing: a hole in a file, an unmapped block of a flash disk. Subjects that the
    /// campaign only reads are not written.
    pub fill: bool,
    /// True if the page cache is dropped before each trial, unless its job differs.
    pub drop_caches: bool,
    /// True if the repetitions are rounds of one long run: only rounds in which a subject has settled count.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub rounds: bool,
    /// True if the baseline is measured a second time as a subject of its own, which shows how far apart equal
    /// subjects are here. `None`: the first run decides, and adds it if a winner can be named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control: Option<bool>,
    /// Seconds of rest before each trial, 0 to 3600: flash and hot disks recover.
    pub rest_s: f64,
    /// Only subjects whose expanded names match one of these patterns (`*` for any letters), the baselines and
    /// the control. Empty: all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub only: Vec<String>,
    /// Absolute base of relative paths. A run stores its own working directory here if there is a relative
    /// path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub working_dir: Option<PathBuf>,
    /// The devices from which subjects are made.
    #[serde(rename = "member", skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<MemberDecl>,
    /// The subjects.
    #[serde(rename = "subject")]
    pub subjects: Vec<SubjectDecl>,
    /// The workloads.
    #[serde(rename = "job")]
    pub jobs: Vec<Job>,
}

impl Default for Campaign {
    fn default() -> Self {
        Self {
            name: String::new(),
            description: String::new(),
            repetitions: 3,
            seed: None,
            runtime_s: 10.0,
            ramp_s: 0.0,
            region: ByteSize(1 << 30),
            fill: true,
            drop_caches: true,
            rounds: false,
            control: None,
            rest_s: 0.0,
            only: Vec::new(),
            working_dir: None,
            members: Vec::new(),
            subjects: Vec::new(),
            jobs: Vec::new(),
        }
    }
}

/// Reads a campaign file that may be incomplete: the devices of members may be given otherwise.
/// [`crate::matrix::Planned::checked`] checks the complete campaign.
///
/// # Errors
///
/// The file cannot be read, is not TOML of this form, or has an unknown key.
pub(crate) fn read_draft(path: &Path) -> Result<Campaign, LabError> {
    let text = std::fs::read_to_string(path).map_err(LabError::file("read the campaign", path))?;
    parse_unchecked(&text, &path.display().to_string())
}

/// Parses a campaign that may be incomplete, such as a preset without its members.
///
/// # Errors
///
/// The text is not TOML of this form, or has an unknown key.
pub(crate) fn parse_unchecked(text: &str, origin: &str) -> Result<Campaign, LabError> {
    toml::from_str(text).map_err(|error: toml::de::Error| {
        let hint = hint(error.message());
        let reason = format!("{}{hint}", error.to_string().trim_end());
        LabError::CampaignSyntax { origin: origin.to_owned(), reason }
    })
}

/// Renders the campaign as TOML; [`crate::matrix::parse_campaign`] parses it to an equal value.
///
/// # Errors
///
/// A value cannot be written as TOML (a number that is not finite).
pub fn render_campaign(campaign: &Campaign) -> Result<String, LabError> {
    toml::to_string(campaign)
        .map_err(|error| LabError::Serialise { what: "the campaign", reason: error.to_string() })
}

impl Campaign {
    /// Returns the error that the campaign cannot be run: why, and what to change.
    pub(crate) fn refused(&self, reason: impl Into<String>, next: impl Into<String>) -> LabError {
        let (reason, next) = (reason.into(), next.into());
        LabError::CampaignRefused { name: self.name.clone(), reason, next }
    }

    /// Returns the named or drawn seed, or one that is the same for all campaigns without.
    pub fn seed(&self) -> u64 {
        self.seed.unwrap_or(UNDRAWN_SEED)
    }

    /// Returns the expanded subjects; with absolute paths if the campaign has a `working_dir`.
    pub fn expand(&self) -> Vec<Subject> {
        self.choose(expand_subjects(&self.subjects, &self.members))
    }

    /// Returns the subjects that the campaign wants.
    pub(crate) fn choose(&self, mut subjects: Vec<Subject>) -> Vec<Subject> {
        if !self.only.is_empty() {
            let wanted = Patterns(&self.only);
            let stays = |one: &Subject| one.baseline || one.control || wanted.matches(&one.name);
            subjects.retain(stays);
        }
        if let Some(folder) = &self.working_dir {
            for subject in &mut subjects {
                subject.source = rooted::resolve(subject.source.clone(), folder);
            }
        }
        subjects
    }

    /// Returns the campaign with amounts of data and times multiplied by `factor`, above 0: a short run of a
    /// long campaign. Times stay at least 0.2 s and amounts at least 8 MiB (those that may be 0 at least 1
    /// MiB), or their value if that is less, and hold a block. 0 stays 0, and shapes (block sizes, depths,
    /// processes, repetitions) do not change.
    #[must_use]
    pub fn scaled(mut self, factor: f64) -> Self {
        let size_from = |least_mib: u64, size: ByteSize| {
            let scaled = (size.0 as f64 * factor) as u64;
            let whole = (scaled >> 20).max(least_mib) << 20;
            // A reduced amount never grows, and an unchanged one is equal to the byte.
            ByteSize(if factor <= 1.0 && whole > size.0 || factor == 1.0 { size.0 } else { whole })
        };
        let size = |size| size_from(8, size);
        self.runtime_s = (self.runtime_s * factor).max(0.2_f64.min(self.runtime_s));
        self.ramp_s *= factor;
        self.rest_s *= factor;
        self.region = size(self.region);
        let scale = |parameter: &Parameter, value: &Value| match (value, parameter.kind) {
            // 0 stays 0.
            (Value::Size(ByteSize(0)), _) => value.clone(),
            (Value::Size(bytes), Kind::Size { min: 0, .. }) => Value::Size(size_from(1, *bytes)),
            (Value::Size(bytes), _) => Value::Size(size(*bytes)),
            (Value::Count(count), _) if *count > 0 => {
                Value::Count(((*count as f64 * factor) as u64).max(1))
            }
            (Value::Count(_) | Value::Flag(_) | Value::Word(_), _) => value.clone(),
        };
        for job in &mut self.jobs {
            let Some(tool) = crate::tool::find(&job.tool) else { continue };
            let defaults = crate::settings::Settings::defaults(tool.parameters());
            let block = largest_block(tool.parameters(), &job.settings);
            let scale =
                |parameter: &Parameter, value: &Value| match (scale(parameter, value), value) {
                    (Value::Size(scaled), Value::Size(before)) => {
                        Value::Size(scaled.max(block.min(*before)))
                    }
                    (scaled, _) => scaled,
                };
            for parameter in tool.parameters().iter().filter(|parameter| parameter.scales) {
                if let Some(values) = job.settings.get_mut(parameter.name) {
                    *values = values.iter().map(|value| scale(parameter, value)).collect();
                    values.dedup();
                } else if let Some(default) = defaults.get(parameter.name) {
                    let scaled = scale(parameter, default);
                    if scaled != *default {
                        job.settings.insert(parameter.name.to_owned(), vec![scaled]);
                    }
                }
            }
        }
        self
    }
}

/// Returns the largest of a job's sizes that do not scale: an amount holds a block of it.
fn largest_block(parameters: &[Parameter], given: &Lists) -> ByteSize {
    let shapes = parameters.iter().filter(|parameter| !parameter.scales);
    let values = shapes.filter_map(|parameter| given.get(parameter.name)).flatten();
    let size = |value: &Value| match value {
        Value::Size(size) => Some(*size),
        _ => None,
    };
    values.filter_map(size).max().unwrap_or(ByteSize(0))
}

#[cfg(test)]
mod tests;
