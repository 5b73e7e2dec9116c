//! The tools that measure. A tool is one file under `tool/` and one line in
//! `tool/registry.rs`.
//!
//! ```text
//! TrialSpec ──plan──> Script: prepare │ warm │ measured (all at once) │ clean up
//!                                        runner ──> RunOutput ──parse──> Measured
//! ```
//!
//! A tool turns a trial into a script and the script's output into numbers; it starts nothing
//! itself, so every tool is tested without one. Output is untrusted: whatever it holds gives
//! numbers or a [`ToolError`].

use std::collections::BTreeMap;
use std::path::Path;

use crate::command::{CommandLine, Step, Target, ToolOutput};
use crate::metric::{Measured, Metric};
use crate::settings::{Parameter, Settings};

mod bonnie;
mod command;
mod copy;
mod dd;
pub mod enough;
mod fio;
mod hdparm;
mod parts;
mod recipe;
mod registry;
mod replay;
pub mod source;
mod sysbench;

pub use recipe::places_in_shell;
#[cfg(feature = "brought-tool")]
pub use registry::bring;
pub use registry::{all, find, names};
pub use source::SourceData;

/// What a tool asks of the subject.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Place {
    /// Raw bytes: a block device or a file.
    Device,
    /// A folder on a file system.
    #[default]
    Folder,
    /// Raw bytes when the workload has no file system, else a folder.
    Either,
}

/// What a trial writes to the subject, for the plan and for safety.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Writes {
    /// Nothing at all.
    #[default]
    Nothing,
    /// So many bytes.
    Bytes(u64),
    /// As much as the subject takes in the trial's time.
    UntilTime,
}

/// What a trial's data are to something that compresses: what it writes to the subject, and what it
/// wrote there before in order to read it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Content {
    /// Incompressible, as is the first content that the laboratory gives raw subjects.
    #[default]
    Random,
    /// About so many percent of each block compress away.
    Compressible(u64),
    /// Text as people have it, of which about so many percent compress away; where something
    /// compresses it, that is what is to be measured.
    Text(u64),
    /// Zeros or a pattern, of which next to nothing is left.
    Constant,
}

/// Everything that a tool needs to know about a trial.
#[derive(Debug, Clone)]
pub struct TrialSpec<'a> {
    /// The tool's parameters.
    pub settings: &'a Settings,
    /// Where.
    pub target: &'a Target,
    /// Processes at once, at least 1.
    pub processes: u32,
    /// The first so many bytes are used of a raw target; in a folder, what a tool uses that takes as
    /// much as it gets.
    pub region_bytes: u64,
    /// What a tool may ask for that says what it needs: in a folder more than the region, up to what
    /// the file system needs itself; of a raw target the region.
    pub room_bytes: u64,
    /// Measured seconds, for tools that run for a time.
    pub runtime_s: f64,
    /// Seconds before them.
    pub ramp_s: f64,
    /// Seed of offsets and contents.
    pub seed: u64,
    /// A folder beside the subject, empty at the trial's start. Text files that the tool leaves
    /// here are given to [`Tool::parse`] and kept.
    pub scratch: &'a Path,
    /// A folder beside the subject with what [`Work::source`] asks for.
    pub sources: &'a Path,
}

/// A trial, as programs to run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Script {
    /// Before the page cache is dropped.
    pub prepare: Vec<Step>,
    /// After it was dropped.
    pub warm: Vec<Step>,
    /// The programs that are measured: all are started at once, one a process.
    pub measured: Vec<CommandLine>,
    /// Whether writing everything back to the subject (syncfs) counts in the time.
    pub sync: bool,
    /// After the trial, also after a failed one.
    pub clean_up: Vec<Step>,
}

/// How a trial's programs went.
#[derive(Debug, Clone, PartialEq)]
pub struct RunOutput {
    /// One for each program, in the script's order.
    pub processes: Vec<ToolOutput>,
    /// Seconds from the start of all to the end of the last, with the final sync if it counts.
    pub wall_s: f64,
    /// Text files left in the scratch folder, by name.
    pub files: BTreeMap<String, String>,
}

/// Why a tool's output gave no numbers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    /// The output is not in the tool's format.
    #[error("{tool} wrote something that is not its output format: {reason}")]
    Malformed {
        /// The tool.
        tool: &'static str,
        /// Where it stops making sense.
        reason: String,
    },
    /// The tool reports I/O errors.
    #[error("{tool} met I/O errors: {reason}")]
    IoErrors {
        /// The tool.
        tool: &'static str,
        /// What it said.
        reason: String,
    },
    /// The tool moved no data in the measured time.
    #[error("{tool} completed no request in the measured time; take a longer runtime_s")]
    Nothing {
        /// The tool.
        tool: &'static str,
    },
}

/// What a tool is, whatever its settings.
#[derive(Debug, Clone, Copy)]
pub struct About {
    /// Its name in campaigns.
    pub name: &'static str,
    /// The program that it starts.
    pub program: &'static str,
    /// The Debian package that has the program.
    pub package: &'static str,
    /// One line for people: what it measures.
    pub summary: &'static str,
    /// What a campaign can set.
    pub parameters: &'static [Parameter],
    /// The arguments that make the program print its version.
    pub version_args: &'static [&'static str],
    /// Where the version stands in what it prints then.
    pub version: Version,
}

/// Where a program's version stands in what it prints.
#[derive(Debug, Clone, Copy)]
pub enum Version {
    /// Behind these words, on a line of its own.
    After(&'static str),
    /// In the first line, `NAME (PACKAGE) VERSION`.
    Gnu,
}

impl Version {
    /// The version, as in `fio-3.33`.
    fn read(self, program: &str, output: &ToolOutput) -> Option<String> {
        let numbered = |rest: &str| {
            let word = rest.split_whitespace().next()?;
            word.starts_with(|c: char| c.is_ascii_digit()).then(|| word.to_owned())
        };
        match self {
            Self::After(words) => {
                let lines = output.stderr.lines().chain(output.stdout.lines());
                let mut found = lines.filter_map(|line| numbered(line.trim().strip_prefix(words)?));
                let version = found.next()?;
                found.next().is_none().then(|| format!("{program}-{version}"))
            }
            Self::Gnu => {
                let (_, rest) = output.stdout.lines().next()?.split_once('(')?;
                let (package, rest) = rest.split_once(')')?;
                let package = package.trim_start_matches("GNU ").replace(' ', "-");
                Some(format!("{package}-{}", numbered(rest)?))
            }
        }
    }
}

/// What a tool does with some settings, as far as plan, safety and reports ask. The default reads for
/// the campaign's time, in a folder.
#[derive(Debug, Clone, Copy)]
pub struct Work {
    /// What it asks of the subject.
    pub place: Place,
    /// Whether an NBD server will do where it takes raw bytes.
    pub speaks_nbd: bool,
    /// What one trial writes, by all processes together.
    pub writes: Writes,
    /// What the data are that it writes.
    pub content: Content,
    /// Whether the content of a raw subject matters, so that it must have been written once before
    /// the first trial: reading a hole measures nothing.
    pub reads_raw: bool,
    /// Whether it reads a raw subject on beyond the region, for a program that takes no limit.
    pub reads_past_region: bool,
    /// How long a trial takes.
    pub effort: Effort,
    /// The number that is compared between subjects.
    pub headline: Metric,
    /// What must lie ready beside the subject.
    pub source: Option<SourceData>,
}

impl Default for Work {
    fn default() -> Self {
        Self {
            place: Place::default(),
            speaks_nbd: false,
            writes: Writes::default(),
            content: Content::default(),
            reads_raw: false,
            reads_past_region: false,
            effort: Effort::Runtime,
            headline: Metric::Throughput,
            source: None,
        }
    }
}

/// A program that measures.
pub trait Tool: Sync {
    /// What it is.
    fn about(&self) -> &'static About;

    /// Its name in campaigns.
    fn name(&self) -> &'static str {
        self.about().name
    }

    /// What a campaign can set.
    fn parameters(&self) -> &'static [Parameter] {
        self.about().parameters
    }

    /// Prints the version.
    fn version_command(&self) -> CommandLine {
        CommandLine::new(self.about().program).args(self.about().version_args.iter().copied())
    }

    /// The version, as in `fio-3.33`, from what [`Tool::version_command`] printed. The exit
    /// status is not looked at before: some tools print their version and fail.
    ///
    /// # Errors
    ///
    /// When it holds no version.
    fn parse_version(&self, output: &ToolOutput) -> Result<String, ToolError> {
        let About { program, version, .. } = *self.about();
        version.read(program, output).ok_or_else(|| {
            let said = [&output.stdout, &output.stderr].map(|text| parts::excerpt(text));
            parts::malformed(program, format!("no version in {}", said.join(" or ")))
        })
    }

    /// What the settings mean together, for checks that one parameter alone cannot make.
    ///
    /// # Errors
    ///
    /// What contradicts what, and what to change.
    fn check(&self, settings: &Settings, processes: u32) -> Result<(), String> {
        let _ = (settings, processes);
        Ok(())
    }

    /// What it does with these settings.
    fn work(&self, settings: &Settings, processes: u32) -> Work;

    /// What lies in the subject's folder before the clock starts and is not counted by
    /// [`Work::writes`]: bytes, of all processes together. `room_bytes` is what a trial may use.
    fn lays_out(&self, settings: &Settings, processes: u32, room_bytes: u64) -> u64 {
        let _ = (settings, processes, room_bytes);
        0
    }

    /// Seconds before the measured time in which it works and counts nothing, of the `asked_s` that
    /// the campaign wants: all of them if it has a ramp, else 0.
    fn ramp_s(&self, asked_s: f64) -> f64 {
        let _ = asked_s;
        0.0
    }

    /// The settings in words, unique among those that differ: `random read 4K, depth 32`.
    fn label(&self, settings: &Settings) -> String;

    /// The trial as programs.
    ///
    /// # Errors
    ///
    /// Why it cannot be done on this target (too small, not a block device), as a sentence: the
    /// cell is then impossible and the campaign goes on.
    fn plan(&self, spec: &TrialSpec<'_>) -> Result<Script, String>;

    /// Makes numbers of the output of [`Tool::plan`]'s programs, which all ended with status 0.
    ///
    /// # Errors
    ///
    /// When the output is malformed, reports I/O errors, or holds no request at all.
    fn parse(&self, spec: &TrialSpec<'_>, run: &RunOutput) -> Result<Measured, ToolError>;
}

/// How long a trial takes, for the estimate of the plan.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Effort {
    /// The campaign's runtime, and before it the tool's ramp.
    Runtime,
    /// So many seconds, whatever the subject.
    Seconds(f64),
    /// So many bytes to move, of all processes together.
    Bytes(u64),
}

#[cfg(test)]
mod tests;
