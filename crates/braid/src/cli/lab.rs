//! Arguments of `braid lab`.

use std::path::PathBuf;
use std::time::Duration;

use braid_stack::ByteSize;
use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub(crate) enum Lab {
    /// List the presets, or print one as a campaign file to start from
    Presets {
        /// Print this preset
        #[arg(value_name = "PRESET")]
        name: Option<String>,
    },
    /// List the measuring tools, or print the parameters of one
    Tools {
        /// Print the parameters of this tool
        #[arg(value_name = "TOOL")]
        name: Option<String>,
    },
    /// Show what `run` with the same arguments would do and write, and how long it would take
    Plan(LabRun),
    /// Run a campaign, or continue an interrupted one
    Run(LabRun),
    /// Continue a campaign from its folder: run missing trials, or add repetitions
    Resume {
        /// Folder that `run` wrote
        folder: PathBuf,
        /// Total number of repetitions; not below the current number
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
        repetitions: Option<u32>,
        #[command(flatten)]
        how: LabHow,
    },
    /// Rewrite the reports of a finished or running campaign
    Report(LabReport),
    /// List the results below a folder
    List {
        /// Folder to search
        #[arg(default_value = ".")]
        folder: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print every repetition of the selected cells: numbers, commands, doubts
    Show {
        /// Folder that `run` wrote
        folder: PathBuf,
        /// Only cells whose "subject: workload" matches this pattern; * matches any characters
        #[arg(value_name = "CELLS")]
        cells: Option<String>,
    },
    /// Compare two results. Exit status 1: something is slower or missing; 2: nothing is comparable
    Compare(LabCompare),
}

#[derive(Clone, Debug, Args)]
pub(crate) struct LabTarget {
    /// A campaign file, or the name of a preset
    #[arg(value_name = "FILE.toml|PRESET")]
    pub(crate) campaign: String,
    /// The stack that others are compared with (for quick, thorough, crystal, steady)
    #[arg(long, value_name = "STACK")]
    pub(crate) baseline: Option<String>,
    /// A stack to measure (same presets; may be given several times)
    #[arg(long, value_name = "NAME=STACK")]
    pub(crate) subject: Vec<String>,
    /// The device of a member: a path or a stack expression (may be given several times)
    #[arg(long, value_name = "NAME=DEVICE")]
    pub(crate) member: Vec<String>,
    /// Use modelled devices for all members that are not named (for presets with members)
    #[arg(long)]
    pub(crate) modelled: bool,
    /// Measure arrays of the kernel's md instead of braid's (for presets whose members are all
    /// named)
    #[arg(long)]
    pub(crate) kernel: bool,
    /// Factor for times and amounts of data, such as 0.01 or 1/100
    #[arg(long, value_name = "FACTOR", value_parser = parse_factor)]
    pub(crate) scale: Option<f64>,
    /// Seconds per trial, for tools that run for a fixed time
    #[arg(long, value_name = "SECONDS")]
    pub(crate) runtime: Option<f64>,
    /// Time limit of the campaign, such as 90s, 10m, 2h; repetitions and trial times are chosen to
    /// fit
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(crate) budget: Option<Duration>,
    /// Number of repetitions
    #[arg(long, value_name = "COUNT")]
    pub(crate) repetitions: Option<u32>,
    /// Use only the first SIZE bytes of each subject
    #[arg(long, value_name = "SIZE")]
    pub(crate) region: Option<ByteSize>,
    /// Seed of the trial order, offsets and contents
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Only the subjects that match this pattern, and the baselines; * matches any characters (may
    /// be given several times)
    #[arg(long, value_name = "SUBJECTS")]
    pub(crate) only: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct LabRun {
    #[command(flatten)]
    pub(crate) target: LabTarget,
    /// Folder for the results; a campaign that it holds in part is continued
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) how: LabHow,
}

#[derive(Debug, Args)]
pub(crate) struct LabHow {
    /// Permit writing to this file or device even if it carries data (may be given several times)
    #[arg(long, value_name = "PATH")]
    pub(crate) destroy: Vec<PathBuf>,
    /// Reports to write [default: all]
    #[arg(long, value_name = "FORMAT", value_enum, value_delimiter = ',')]
    pub(crate) format: Vec<LabFormat>,
    /// Do not show progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LabReport {
    /// Folder that `run` wrote
    pub(crate) folder: PathBuf,
    /// Reports to write [default: all]
    #[arg(long, value_name = "FORMAT", value_enum, value_delimiter = ',')]
    pub(crate) format: Vec<LabFormat>,
    /// Print the HTML page, and write nothing
    #[arg(long, conflicts_with = "format")]
    pub(crate) print_html: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LabCompare {
    /// Results before the change
    pub(crate) before: PathBuf,
    /// Results after the change
    pub(crate) after: PathBuf,
    /// Smallest change to report, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0)]
    pub(crate) threshold: f64,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Format of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LabFormat {
    /// One page for the browser
    Html,
    /// Tables for a repository or an issue
    Md,
    /// All results, for programs
    Json,
    /// All samples, one per line
    Csv,
    /// A workbook with charts
    Xlsx,
    /// Each chart as a drawing
    Svg,
}

/// Parses a number or a fraction above 0.
fn parse_factor(text: &str) -> Result<f64, String> {
    let number = |text: &str| text.trim().parse::<f64>().ok();
    let factor = match text.split_once('/') {
        Some((above, below)) => number(above).zip(number(below)).map(|(a, b)| a / b),
        None => number(text),
    };
    factor
        .filter(|factor| factor.is_finite() && *factor > 0.0)
        .ok_or_else(|| "expected a number above 0, such as 0.01 or 1/100".to_owned())
}

/// Parses a time above 0 in seconds, minutes, hours or days.
pub(super) fn parse_time(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let (number, unit_s) = match text.char_indices().next_back() {
        Some((at, 's')) => (&text[..at], 1.0),
        Some((at, 'm')) => (&text[..at], 60.0),
        Some((at, 'h')) => (&text[..at], 3600.0),
        Some((at, 'd')) => (&text[..at], 86_400.0),
        _ => return Err("expected a number with s, m, h or d, such as 10m".to_owned()),
    };
    let seconds = number.trim().parse::<f64>().ok().map(|number| number * unit_s);
    seconds
        .filter(|seconds| *seconds > 0.0)
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| "expected a number above 0 with s, m, h or d, such as 10m".to_owned())
}
