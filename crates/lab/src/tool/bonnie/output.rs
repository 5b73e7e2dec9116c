//! bonnie++'s line of comma-separated values, format 1.98.
//!
//! ```text
//! 1.98,2.00a,lab,1,1795355434,16M,,8192,5,1149,99,+++++,+++,...,7307us,33us,...
//! │                           │   │      │ └ first of six rates, each with its %CP
//! │                           └ size, chunk, seeks, seekers
//! └ the format: another one has other columns
//! ```

use super::NAME;
use crate::metric::Metric;
use crate::tool::ToolError;
use crate::tool::parts::{excerpt, malformed, number};

const FORMAT: &str = "1.98";
const COLUMNS: usize = 50;

/// Phases: the column of the rate, its metric, the factor to the metric's unit, and the longest wait, whose
/// columns are consecutive from [`FIRST_WAIT`] on.
const PHASES: [(usize, Metric, f64, Metric); 12] = [
    (9, Metric::BonniePutc, 1024.0, Metric::BonniePutcLatency),
    (11, Metric::BonnieWrite, 1024.0, Metric::BonnieWriteLatency),
    (13, Metric::BonnieRewrite, 1024.0, Metric::BonnieRewriteLatency),
    (15, Metric::BonnieGetc, 1024.0, Metric::BonnieGetcLatency),
    (17, Metric::BonnieRead, 1024.0, Metric::BonnieReadLatency),
    (19, Metric::BonnieSeeks, 1.0, Metric::BonnieSeekLatency),
    (26, Metric::BonnieSeqCreate, 1.0, Metric::BonnieSeqCreateLatency),
    (28, Metric::BonnieSeqStat, 1.0, Metric::BonnieSeqStatLatency),
    (30, Metric::BonnieSeqDelete, 1.0, Metric::BonnieSeqDeleteLatency),
    (32, Metric::BonnieRanCreate, 1.0, Metric::BonnieRanCreateLatency),
    (34, Metric::BonnieRanStat, 1.0, Metric::BonnieRanStatLatency),
    (36, Metric::BonnieRanDelete, 1.0, Metric::BonnieRanDeleteLatency),
];
const FIRST_WAIT: usize = 38;

/// Rate and longest wait (ns) of each phase of one process; absent for a phase that was skipped or too short.
pub(super) type Report = Vec<[Option<f64>; 2]>;

pub(super) fn parse_csv(stdout: &str) -> Result<Report, ToolError> {
    let line = stdout
        .lines()
        .find(|line| line.starts_with(|c: char| c.is_ascii_digit()) && line.contains(','))
        .ok_or_else(|| malformed(NAME, format!("no line of values in {}", excerpt(stdout))))?;
    let columns: Vec<&str> = line.split(',').map(str::trim).collect();
    let format = columns.first().copied().unwrap_or_default();
    if format != FORMAT {
        let reason = format!("its format is {format:?}, known is {FORMAT} (bonnie++ 2.00)");
        return Err(malformed(NAME, reason));
    }
    if columns.len() != COLUMNS {
        let reason = format!("{} columns instead of {COLUMNS}; was it cut off?", columns.len());
        return Err(malformed(NAME, reason));
    }
    let cell = |column: usize| columns.get(column).copied().unwrap_or_default();
    let mut report = Report::new();
    for ((column, metric, unit, _), wait) in PHASES.into_iter().zip(FIRST_WAIT..) {
        let (rate, wait) = (cell(column), cell(wait));
        // A phase that ran has both: even a rate that is too fast to measure has a wait.
        if rate.is_empty() != wait.is_empty() {
            let reason = format!("{metric} and its wait are not both there; was it cut off?");
            return Err(malformed(NAME, reason));
        }
        let rate = optional(rate, |text| Some(number(text)? * unit))?;
        report.push([rate, optional(wait, nanoseconds)?]);
    }
    Ok(report)
}

/// Returns `None` for a phase that was skipped (empty) or took less than half a second (`+++++`).
fn optional(text: &str, read: impl Fn(&str) -> Option<f64>) -> Result<Option<f64>, ToolError> {
    if text.chars().all(|c| c == '+') {
        return Ok(None);
    }
    match read(text).filter(|value| *value >= 0.0) {
        Some(value) => Ok(Some(value)),
        None => Err(malformed(NAME, format!("{text:?} is neither a number nor a time"))),
    }
}

fn nanoseconds(text: &str) -> Option<f64> {
    for (unit, ns) in [("us", 1e3), ("ms", 1e6), ("s", 1e9)] {
        if let Some(value) = text.strip_suffix(unit) {
            return Some(number(value)? * ns);
        }
    }
    None
}

/// Returns the sums of the rates, then the longest of the waits, of phases that all processes have.
pub(super) fn merge(reports: &[Report]) -> Vec<(Metric, f64)> {
    let join = |which: usize, join: fn(f64, f64) -> f64| {
        PHASES.iter().enumerate().filter_map(move |(phase, (_, rate, _, wait))| {
            let values = reports.iter().map(|report| report.get(phase)?[which]);
            let values: Vec<f64> = values.collect::<Option<_>>()?;
            Some(([*rate, *wait][which], values.into_iter().reduce(join)?))
        })
    };
    join(0, |sum, rate| sum + rate).chain(join(1, f64::max)).collect()
}
