//! The tools that measure. A tool is one file under `tool/` and one line in `tool/registry.rs`.
//!
//! ```text
//! TrialSpec ──plan──> Script: prepare │ warm │ measured (all at once) │ clean up
//!                                        runner ──> RunOutput ──parse──> Measured
//! ```
//!
//! A tool turns a trial into a script and the script's output into numbers. It starts nothing itself, so every
//! tool is tested without its program. Output is untrusted: any output gives numbers or a [`ToolError`].

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

/// The kind of target that a tool needs.
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

/// The writes of a trial to the subject, for the plan and for safety.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Writes {
    /// Nothing at all.
    #[default]
    Nothing,
    /// This number of bytes.
    Bytes(u64),
    /// As much as the subject takes in the trial's time.
    UntilTime,
}

/// Compressibility of a trial's data: of its writes to the subject, and of the data that it wrote there before
/// to read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Content {
    /// Incompressible, like the first content that the laboratory writes to raw subjects.
    #[default]
    Random,
    /// About this percentage of each block compresses away.
    Compressible(u64),
    /// Natural text, of which about this percentage compresses away; if the subject compresses it, that is to
    /// be measured.
    Text(u64),
    /// Zeros or a pattern, which compress to almost nothing.
    Constant,
}

/// The facts about a trial that a tool needs.
#[derive(Debug, Clone)]
pub struct TrialSpec<'a> {
    /// The tool's parameters.
    pub settings: &'a Settings,
    /// The target.
    pub target: &'a Target,
    /// Processes at once, at least 1.
    pub processes: u32,
    /// Bytes of a raw target that are used, from its start; in a folder, the bytes for a tool that takes all it
    /// gets.
    pub region_bytes: u64,
    /// Bytes that a tool may ask for if it knows its needs: in a folder more than the region, except for the
    /// file system's own needs; of a raw target the region.
    pub room_bytes: u64,
    /// Measured seconds, for tools that run for a time.
    pub runtime_s: f64,
    /// Seconds before the measured ones.
    pub ramp_s: f64,
    /// Seed of offsets and contents.
    pub seed: u64,
    /// A folder beside the subject, empty at the trial's start. Text files that the tool leaves here are passed
    /// to [`Tool::parse`] and stored.
    pub scratch: &'a Path,
    /// A folder beside the subject with the source from [`Work::source`].
    pub sources: &'a Path,
}

/// A trial as programs to run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Script {
    /// Steps before the page cache is dropped.
    pub prepare: Vec<Step>,
    /// Steps after it was dropped.
    pub warm: Vec<Step>,
    /// The measured programs, started all at once, one per process.
    pub measured: Vec<CommandLine>,
    /// True if writing everything back to the subject (syncfs) counts in the time.
    pub sync: bool,
    /// Steps after the trial, also after a failed one.
    pub clean_up: Vec<Step>,
}

/// The results of a trial's programs.
#[derive(Debug, Clone, PartialEq)]
pub struct RunOutput {
    /// One for each program, in the script's order.
    pub processes: Vec<ToolOutput>,
    /// Seconds from the start of all to the end of the last, with the final sync if it counts.
    pub wall_s: f64,
    /// Text files left in the scratch folder, by name.
    pub files: BTreeMap<String, String>,
}

/// Reasons why a tool's output has no numbers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    /// The output is not in the tool's format.
    #[error("{tool} wrote something that is not its output format: {reason}")]
    Malformed {
        /// The tool.
        tool: &'static str,
        /// The place of the fault.
        reason: String,
    },
    /// The tool reports I/O errors.
    #[error("{tool} met I/O errors: {reason}")]
    IoErrors {
        /// The tool.
        tool: &'static str,
        /// The tool's message.
        reason: String,
    },
    /// The tool moved no data in the measured time.
    #[error("{tool} completed no request in the measured time; take a longer runtime_s")]
    Nothing {
        /// The tool.
        tool: &'static str,
    },
}

/// The facts about a tool, for any settings.
#[derive(Debug, Clone, Copy)]
pub struct About {
    /// The name in campaigns.
    pub name: &'static str,
    /// The program.
    pub program: &'static str,
    /// The Debian package that has the program.
    pub package: &'static str,
    /// One line for help: the quantity that it measures.
    pub summary: &'static str,
    /// The parameters of a campaign.
    pub parameters: &'static [Parameter],
    /// The arguments that make the program print its version.
    pub version_args: &'static [&'static str],
    /// The place of the version in that output.
    pub version: Version,
}

/// The place of a program's version in its output.
#[derive(Debug, Clone, Copy)]
pub enum Version {
    /// Behind these words, on a line of its own.
    After(&'static str),
    /// In the first line, `NAME (PACKAGE) VERSION`.
    Gnu,
}

impl Version {
    /// Returns the version, as in `fio-3.33`.
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

/// A tool's work with some settings, for plan, safety and reports. The default reads for the campaign's time,
/// in a folder.
#[derive(Debug, Clone, Copy)]
pub struct Work {
    /// The kind of target.
    pub place: Place,
    /// True if an NBD server can replace a raw target.
    pub speaks_nbd: bool,
    /// The writes of one trial, by all processes together.
    pub writes: Writes,
    /// The compressibility of these data.
    pub content: Content,
    /// True if the content of a raw subject matters, so that it must have been written once before the first
    /// trial: reading a hole measures nothing.
    pub reads_raw: bool,
    /// True if it reads a raw subject beyond the region: the program accepts no limit.
    pub reads_past_region: bool,
    /// The length of a trial.
    pub effort: Effort,
    /// The number that is compared between subjects.
    pub headline: Metric,
    /// The data that must be ready beside the subject.
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
    /// Returns the facts about the tool.
    fn about(&self) -> &'static About;

    /// Returns the name in campaigns.
    fn name(&self) -> &'static str {
        self.about().name
    }

    /// Returns the parameters of a campaign.
    fn parameters(&self) -> &'static [Parameter] {
        self.about().parameters
    }

    /// Returns the command that prints the version.
    fn version_command(&self) -> CommandLine {
        CommandLine::new(self.about().program).args(self.about().version_args.iter().copied())
    }

    /// Returns the version, as in `fio-3.33`, from the output of [`Tool::version_command`]. The exit status is
    /// ignored: some tools print their version and fail.
    ///
    /// # Errors
    ///
    /// The output has no version.
    fn parse_version(&self, output: &ToolOutput) -> Result<String, ToolError> {
        let About { program, version, .. } = *self.about();
        version.read(program, output).ok_or_else(|| {
            let said = [&output.stdout, &output.stderr].map(|text| parts::excerpt(text));
            parts::malformed(program, format!("no version in {}", said.join(" or ")))
        })
    }

    /// Checks settings that depend on each other.
    ///
    /// # Errors
    ///
    /// The contradiction, and the change that mends it.
    fn check(&self, settings: &Settings, processes: u32) -> Result<(), String> {
        let _ = (settings, processes);
        Ok(())
    }

    /// Returns the tool's work with these settings.
    fn work(&self, settings: &Settings, processes: u32) -> Work;

    /// Returns the bytes of all processes in the subject's folder before the clock starts, which
    /// [`Work::writes`] does not count. `room_bytes` is the limit of a trial.
    fn lays_out(&self, settings: &Settings, processes: u32, room_bytes: u64) -> u64 {
        let _ = (settings, processes, room_bytes);
        0
    }

    /// Returns the seconds before the measured time in which the tool works without counting, of the campaign's
    /// `asked_s`: all of them if it has a ramp, else 0.
    fn ramp_s(&self, asked_s: f64) -> f64 {
        let _ = asked_s;
        0.0
    }

    /// Returns the settings in words, unique for different settings: `random read 4K, depth 32`.
    fn label(&self, settings: &Settings) -> String;

    /// Returns the trial as programs.
    ///
    /// # Errors
    ///
    /// The reason why it is impossible on this target (too small, not a block device), as a sentence: the cell
    /// is then impossible and the campaign continues.
    fn plan(&self, spec: &TrialSpec<'_>) -> Result<Script, String>;

    /// Returns the numbers in the output of [`Tool::plan`]'s programs, which all ended with status 0.
    ///
    /// # Errors
    ///
    /// The output is malformed, reports I/O errors, or holds no request at all.
    fn parse(&self, spec: &TrialSpec<'_>, run: &RunOutput) -> Result<Measured, ToolError>;
}

/// The length of a trial, for the plan's estimate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Effort {
    /// The campaign's runtime, and before it the tool's ramp.
    Runtime,
    /// Seconds, on any subject.
    Seconds(f64),
    /// Bytes to move, by all processes together.
    Bytes(u64),
}

#[cfg(test)]
mod tests;
