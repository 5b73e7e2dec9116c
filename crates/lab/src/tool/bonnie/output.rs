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

/// Rates: column, metric, what one is in the metric's unit.
const RATES: [(usize, Metric, f64); 12] = [
    (9, Metric::BonniePutc, 1024.0),
    (11, Metric::BonnieWrite, 1024.0),
    (13, Metric::BonnieRewrite, 1024.0),
    (15, Metric::BonnieGetc, 1024.0),
    (17, Metric::BonnieRead, 1024.0),
    (19, Metric::BonnieSeeks, 1.0),
    (26, Metric::BonnieSeqCreate, 1.0),
    (28, Metric::BonnieSeqStat, 1.0),
    (30, Metric::BonnieSeqDelete, 1.0),
    (32, Metric::BonnieRanCreate, 1.0),
    (34, Metric::BonnieRanStat, 1.0),
    (36, Metric::BonnieRanDelete, 1.0),
];

/// The longest waits, from this column on.
const FIRST_WAIT: usize = 38;
const WAITS: [Metric; 12] = [
    Metric::BonniePutcLatency,
    Metric::BonnieWriteLatency,
    Metric::BonnieRewriteLatency,
    Metric::BonnieGetcLatency,
    Metric::BonnieReadLatency,
    Metric::BonnieSeekLatency,
    Metric::BonnieSeqCreateLatency,
    Metric::BonnieSeqStatLatency,
    Metric::BonnieSeqDeleteLatency,
    Metric::BonnieRanCreateLatency,
    Metric::BonnieRanStatLatency,
    Metric::BonnieRanDeleteLatency,
];

/// A phase that was left out or too short has no number.
type Phases = Vec<(Metric, Option<f64>)>;

/// Numbers of one process.
#[derive(Debug, PartialEq)]
pub(super) struct Report {
    rates: Phases,
    waits_ns: Phases,
}

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
    let mut rates = Vec::new();
    for (column, metric, unit) in RATES {
        rates.push((metric, optional(cell(column), |text| Some(number(text)? * unit))?));
    }
    let mut waits_ns = Vec::new();
    for ((metric, column), (rate, ..)) in WAITS.into_iter().zip(FIRST_WAIT..).zip(RATES) {
        // A phase was done or not: a rate, even one too fast to tell, has a wait.
        if cell(rate).is_empty() != cell(column).is_empty() {
            let reason = format!("{metric} and its rate are not both there; was it cut off?");
            return Err(malformed(NAME, reason));
        }
        waits_ns.push((metric, optional(cell(column), nanoseconds)?));
    }
    Ok(Report { rates, waits_ns })
}

/// Nothing for a phase that was left out (empty) or took less than half a second (`+++++`).
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

/// Rates added up, the longest of the waits; of a phase that all processes have.
pub(super) fn merge(reports: &[Report]) -> Vec<(Metric, f64)> {
    let sum = |values: Vec<f64>| values.into_iter().sum::<f64>();
    let longest = |values: Vec<f64>| values.into_iter().fold(0.0, f64::max);
    let mut merged = merge_with(reports, |report| &report.rates, sum);
    merged.extend(merge_with(reports, |report| &report.waits_ns, longest));
    merged
}

fn merge_with(
    reports: &[Report],
    of: fn(&Report) -> &Phases,
    join: impl Fn(Vec<f64>) -> f64,
) -> Vec<(Metric, f64)> {
    let Some(first) = reports.first() else { return Vec::new() };
    let mut merged = Vec::new();
    for (index, (metric, _)) in of(first).iter().enumerate() {
        let values: Option<Vec<f64>> = reports
            .iter()
            .map(|report| of(report).get(index).and_then(|(_, value)| *value))
            .collect();
        merged.extend(values.map(|values| (*metric, join(values))));
    }
    merged
}
