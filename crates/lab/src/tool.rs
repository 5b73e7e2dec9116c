//! The tools that measure. A tool is one file under `tool/` and one line in `TOOLS`.
//!
//! A tool turns a trial into a command line and the command's output into samples; it starts
//! nothing itself. Output is untrusted: whatever it holds gives samples or a [`ToolError`].

use std::fmt;

use crate::matrix::Workload;
use crate::world::CommandLine;

mod fio;

/// Every tool.
const TOOLS: &[&dyn Tool] = &[&fio::Fio];

/// The tool with this name.
pub fn find(name: &str) -> Option<&'static dyn Tool> {
    TOOLS.iter().copied().find(|tool| tool.name() == name)
}

/// Names of all tools.
pub fn names() -> Vec<&'static str> {
    TOOLS.iter().map(|tool| tool.name()).collect()
}

/// Where a tool finds the subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A file or block device.
    Path(String),
    /// An NBD server.
    Nbd(String),
}

/// Everything a tool needs to know about a trial.
#[derive(Debug, Clone)]
pub struct TrialSpec<'a> {
    /// What to do.
    pub workload: &'a Workload,
    /// Where.
    pub target: &'a Target,
    /// The first so many bytes are used.
    pub region_bytes: u64,
    /// Measured seconds.
    pub runtime_s: f64,
    /// Seconds before them.
    pub ramp_s: f64,
    /// Seed of the offsets.
    pub seed: u64,
}

/// What a number means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the table in `Metric::about` says it")]
pub enum Metric {
    Throughput,
    Iops,
    LatencyMean,
    LatencyP50,
    LatencyP95,
    LatencyP99,
    LatencyP999,
    LatencyMax,
    ToolCpuUser,
    ToolCpuSystem,
    ServerCpu,
    Requests,
}

/// Every metric, in the order of reports.
pub const METRICS: &[Metric] = &[
    Metric::Throughput,
    Metric::Iops,
    Metric::LatencyMean,
    Metric::LatencyP50,
    Metric::LatencyP95,
    Metric::LatencyP99,
    Metric::LatencyP999,
    Metric::LatencyMax,
    Metric::ToolCpuUser,
    Metric::ToolCpuSystem,
    Metric::ServerCpu,
    Metric::Requests,
];

impl Metric {
    /// Name in the store, unit in the store, and what it is.
    pub fn about(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Throughput => ("throughput", "B/s", "bytes moved per second"),
            Self::Iops => ("iops", "1/s", "requests completed per second"),
            Self::LatencyMean => ("latency_mean", "ns", "mean completion time"),
            Self::LatencyP50 => ("latency_p50", "ns", "half of the requests took at most this"),
            Self::LatencyP95 => ("latency_p95", "ns", "95 % took at most this"),
            Self::LatencyP99 => ("latency_p99", "ns", "99 % took at most this"),
            Self::LatencyP999 => ("latency_p99_9", "ns", "99.9 % took at most this"),
            Self::LatencyMax => ("latency_max", "ns", "the slowest request"),
            Self::ToolCpuUser => ("tool_cpu_user", "%", "user time of the tool, of one core"),
            Self::ToolCpuSystem => ("tool_cpu_system", "%", "system time of the tool, of one core"),
            Self::ServerCpu => ("server_cpu", "ns", "processor time of the server per request"),
            Self::Requests => ("requests", "1", "requests completed in the measured time"),
        }
    }

    /// Name in the store.
    pub fn name(self) -> &'static str {
        self.about().0
    }

    /// Unit in the store.
    pub fn unit(self) -> &'static str {
        self.about().1
    }

    /// The metric with this name.
    pub fn find(name: &str) -> Option<Self> {
        METRICS.iter().copied().find(|metric| metric.name() == name)
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One number of one trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// What it means and its unit.
    pub metric: Metric,
    /// The value; always finite.
    pub value: f64,
}

/// Why a tool's output gave no samples.
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

/// A program that measures.
pub trait Tool: Sync {
    /// Its name in campaigns.
    fn name(&self) -> &'static str;
    /// Prints the version on standard output.
    fn version_command(&self) -> CommandLine;
    /// Writes the whole region once, so that later reads read something.
    fn fill_command(&self, target: &Target, region_bytes: u64) -> CommandLine;
    /// Runs one trial; the result is on standard output.
    fn trial_command(&self, spec: &TrialSpec<'_>) -> CommandLine;
    /// Makes samples of the output of [`Tool::trial_command`].
    ///
    /// # Errors
    ///
    /// When the output is malformed, reports I/O errors, or holds no request at all.
    fn parse_output(&self, workload: &Workload, output: &str) -> Result<Vec<Sample>, ToolError>;
}
