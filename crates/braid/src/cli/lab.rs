//! What can be typed about the laboratory.

use std::path::PathBuf;
use std::time::Duration;

use braid_stack::ByteSize;
use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub(crate) enum Lab {
    /// List the ready-made campaigns, or print one as a file to begin with
    Presets {
        /// Print this one
        #[arg(value_name = "PRESET")]
        name: Option<String>,
    },
    /// List the tools that measure, or print what one of them can vary
    Tools {
        /// Print the parameters of this one
        #[arg(value_name = "TOOL")]
        name: Option<String>,
    },
    /// Print what `run` with the same words would do, write, and take
    Plan(LabRun),
    /// Run a campaign, or go on with one that was interrupted
    Run(LabRun),
    /// Go on with a campaign, from its folder alone: what is missing, or more repetitions
    Resume {
        /// The folder that `run` wrote
        folder: PathBuf,
        /// So many repetitions in all, no fewer than there are
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
        repetitions: Option<u32>,
        #[command(flatten)]
        how: LabHow,
    },
    /// Write the reports of a finished or running campaign again
    Report(LabReport),
    /// List the results below a folder
    List {
        /// Where to look
        #[arg(default_value = ".")]
        folder: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print every repetition of some cells: numbers, commands, what speaks against them
    Show {
        /// The folder that `run` wrote
        folder: PathBuf,
        /// Only cells whose "subject: workload" has this form; * stands for any letters
        #[arg(value_name = "CELLS")]
        cells: Option<String>,
    },
    /// Say what changed between two results; exit status 1 when something got worse or is gone, 2
    /// when nothing could be compared
    Compare(LabCompare),
}

#[derive(Clone, Debug, Args)]
pub(crate) struct LabTarget {
    /// A campaign file, or the name of a preset
    #[arg(value_name = "FILE.toml|PRESET")]
    pub(crate) campaign: String,
    /// The stack that the others are compared with (quick, thorough, crystal, steady)
    #[arg(long, value_name = "STACK")]
    pub(crate) baseline: Option<String>,
    /// A stack to measure (the same presets; may be repeated)
    #[arg(long, value_name = "NAME=STACK")]
    pub(crate) subject: Vec<String>,
    /// The device of a member: a path, or a stack expression (may be repeated)
    #[arg(long, value_name = "NAME=DEVICE")]
    pub(crate) member: Vec<String>,
    /// Modelled devices for all members that are not named (for a preset with members)
    #[arg(long)]
    pub(crate) modelled: bool,
    /// Arrays of the kernel's md instead of braid's (for a preset whose members are all named)
    #[arg(long)]
    pub(crate) kernel: bool,
    /// Multiplies times and amounts of data: 0.01, 1/100
    #[arg(long, value_name = "FACTOR", value_parser = parse_factor)]
    pub(crate) scale: Option<f64>,
    /// Seconds of each trial, for tools that run for a time
    #[arg(long, value_name = "SECONDS")]
    pub(crate) runtime: Option<f64>,
    /// The time for everything, such as 90s, 10m, 2h: repetitions and the seconds of each trial are
    /// chosen so that it is kept
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(crate) budget: Option<Duration>,
    /// How often everything is repeated
    #[arg(long, value_name = "COUNT")]
    pub(crate) repetitions: Option<u32>,
    /// The first so many bytes of each subject are used
    #[arg(long, value_name = "SIZE")]
    pub(crate) region: Option<ByteSize>,
    /// The seed of orders, offsets and contents
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Only subjects with such a name, and the baselines; * stands for any letters (may be
    /// repeated)
    #[arg(long, value_name = "SUBJECTS")]
    pub(crate) only: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct LabRun {
    #[command(flatten)]
    pub(crate) target: LabTarget,
    /// The folder for results; one that holds a part of them is gone on with
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) how: LabHow,
}

#[derive(Debug, Args)]
pub(crate) struct LabHow {
    /// This file or device may be written to, though there may be something on it (may be
    /// repeated)
    #[arg(long, value_name = "PATH")]
    pub(crate) destroy: Vec<PathBuf>,
    /// The reports to write [default: all]
    #[arg(long, value_name = "FORMAT", value_enum, value_delimiter = ',')]
    pub(crate) format: Vec<LabFormat>,
    /// No progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LabReport {
    /// The folder that `run` wrote
    pub(crate) folder: PathBuf,
    /// The reports to write [default: all]
    #[arg(long, value_name = "FORMAT", value_enum, value_delimiter = ',')]
    pub(crate) format: Vec<LabFormat>,
    /// Print the page, and write nothing
    #[arg(long, conflicts_with = "format")]
    pub(crate) print_html: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LabCompare {
    /// Results of before
    pub(crate) before: PathBuf,
    /// Results of after
    pub(crate) after: PathBuf,
    /// Changes of less than this are not worth a word, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0)]
    pub(crate) threshold: f64,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// A file that a report is written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LabFormat {
    /// One page for the browser
    Html,
    /// Tables for a repository or an issue
    Md,
    /// Everything, for programs
    Json,
    /// Every sample, one line each
    Csv,
    /// A workbook with charts
    Xlsx,
    /// Each chart as a drawing
    Svg,
}

/// A number or a fraction above 0.
fn parse_factor(text: &str) -> Result<f64, String> {
    let number = |text: &str| text.trim().parse::<f64>().ok();
    let factor = match text.split_once('/') {
        Some((above, below)) => number(above).zip(number(below)).map(|(a, b)| a / b),
        None => number(text),
    };
    factor
        .filter(|factor| factor.is_finite() && *factor > 0.0)
        .ok_or_else(|| "a number above 0 is wanted, such as 0.01 or 1/100".to_owned())
}

/// Seconds, minutes or hours above 0.
pub(super) fn parse_time(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let (number, unit_s) = match text.char_indices().next_back() {
        Some((at, 's')) => (&text[..at], 1.0),
        Some((at, 'm')) => (&text[..at], 60.0),
        Some((at, 'h')) => (&text[..at], 3600.0),
        _ => return Err("a number with s, m or h is wanted, such as 10m".to_owned()),
    };
    let seconds = number.trim().parse::<f64>().ok().map(|number| number * unit_s);
    seconds
        .filter(|seconds| *seconds > 0.0)
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| "a number above 0 with s, m or h is wanted, such as 10m".to_owned())
}
