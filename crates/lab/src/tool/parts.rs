//! Functions that tools share: labels of settings, parsing of numbers, comparison of processes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub(super) use braid_level::size::round_down;
use braid_stack::ByteSize;

use super::{RunOutput, ToolError, TrialSpec};
use crate::command::Target;
use crate::metric::{Measured, Metric};
use crate::settings::{Parameter, Settings};

/// Returns the label of the parameters that differ from their defaults: the words of each, with the value in
/// place of `{}`.
pub(super) fn told(
    settings: &Settings,
    parameters: &[Parameter],
    words: &[(&str, &str)],
) -> String {
    let defaults = Settings::defaults(parameters);
    let tell = |(name, words): &(&str, &str)| {
        let value = settings.get(name).filter(|value| defaults.get(name) != Some(value))?;
        Some(words.replace("{}", &value.to_string()))
    };
    words.iter().filter_map(tell).collect()
}

/// Returns the folder of a trial on a file system.
pub(super) fn folder_of<'a>(spec: &TrialSpec<'a>) -> Result<&'a Path, String> {
    match spec.target {
        Target::Folder(folder) => Ok(folder),
        Target::Device(_) | Target::Nbd(_) => {
            Err("it needs a folder on a file system; set filesystem".to_owned())
        }
    }
}

/// Checks that the trial's room has so many bytes.
pub(super) fn check_room(spec: &TrialSpec<'_>, bytes: u64) -> Result<(), String> {
    if bytes <= spec.room_bytes {
        return Ok(());
    }
    let (needs, has) = (ByteSize(bytes), ByteSize(spec.room_bytes));
    Err(format!("it needs {needs:#} and has {has:#}; take a smaller size or a larger region"))
}

/// Returns the bytes of all processes together.
pub(super) fn together(bytes: u64, processes: u32) -> u64 {
    bytes.saturating_mul(u64::from(processes.max(1)))
}

/// Returns a path as an argument.
pub(super) fn arg(path: &Path) -> String {
    path.display().to_string()
}

/// Returns the folder or file of one process inside the trial's: `dir/NAME1`, `dir/NAME2`, ...
pub(super) fn own(folder: &Path, name: &str, process: u32) -> PathBuf {
    folder.join(format!("{name}{}", process + 1))
}

/// Parses a finite number.
pub(super) fn number(text: &str) -> Option<f64> {
    // Rust also parses "inf" and "nan".
    text.trim().parse::<f64>().ok().filter(|value| value.is_finite())
}

/// Returns the error that the output is not the tool's.
pub(super) fn malformed(tool: &'static str, reason: impl Into<String>) -> ToolError {
    ToolError::Malformed { tool, reason: reason.into() }
}

/// Returns the start of a text, for messages.
pub(super) fn excerpt(text: &str) -> String {
    const LONGEST: usize = 120;
    let line = text.trim().lines().next().unwrap_or_default();
    if line.is_empty() {
        return "nothing".to_owned();
    }
    let short: String = line.chars().take(LONGEST).collect();
    format!("{short:?}")
}

/// Adds a number that must be finite.
pub(super) fn push(
    measured: &mut Measured,
    tool: &'static str,
    metric: Metric,
    value: f64,
) -> Result<(), ToolError> {
    measured
        .push(metric, value)
        .ok_or_else(|| malformed(tool, format!("{metric} is not a finite number")))
}

/// Returns the slowest process's time over the fastest's. `None` for one process, or if one took no time.
fn spread(times: &[f64]) -> Option<f64> {
    if times.len() < 2 {
        return None;
    }
    let slowest = times.iter().copied().fold(0.0, f64::max);
    let fastest = times.iter().copied().fold(f64::INFINITY, f64::min);
    let spread = slowest / fastest;
    spread.is_finite().then_some(spread)
}

/// Returns Jain's index of several shares, (Σx)² / (n Σx²): 1 if all are equal, 1/n if one has all. `None` for
/// one share, or if all are 0.
fn jain(shares: &[f64]) -> Option<f64> {
    if shares.len() < 2 {
        return None;
    }
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    let index = sum * sum / (shares.len() as f64 * squares);
    index.is_finite().then_some(index)
}

/// Returns the first bin at or below which so many percent of the requests lie, as fio does; `None` without
/// requests.
fn percentile(bins: &BTreeMap<u64, u64>, percent: f64) -> Option<f64> {
    let all: f64 = bins.values().map(|&count| count as f64).sum();
    let wanted = all * percent / 100.0;
    let mut below = 0.0;
    for (&ns, &count) in bins {
        below += count as f64;
        if count > 0 && below >= wanted {
            return Some(ns as f64);
        }
    }
    None
}

/// Adds percentiles of these latencies.
pub(super) fn push_percentiles(
    measured: &mut Measured,
    tool: &'static str,
    bins: &BTreeMap<u64, u64>,
) -> Result<(), ToolError> {
    for (metric, percent) in [
        (Metric::LatencyP50, 50.0),
        (Metric::LatencyP95, 95.0),
        (Metric::LatencyP99, 99.0),
        (Metric::LatencyP999, 99.9),
    ] {
        let value = percentile(bins, percent)
            .ok_or_else(|| malformed(tool, "the bins of its latencies are missing or empty"))?;
        push(measured, tool, metric, value)?;
    }
    Ok(())
}

/// Adds spread and fairness of processes that did equal work in these times.
pub(super) fn push_processes(measured: &mut Measured, times: &[f64]) {
    let rates: Vec<f64> = times.iter().map(|time| 1.0 / time).collect();
    push_shares(measured, times, &rates);
}

/// Adds the spread of the first values, and the fairness of the second.
pub(super) fn push_shares(measured: &mut Measured, spread_of: &[f64], fair: &[f64]) {
    let values = [(Metric::SpreadOfProcesses, spread(spread_of)), (Metric::Fairness, jain(fair))];
    for (metric, value) in values {
        // One process has neither; nor have processes of which one got nothing or took no time.
        let _absent: Option<()> = value.and_then(|value| measured.push(metric, value));
    }
}

/// Returns the numbers of programs of which only the time counts, each of which moved the same bytes. `bytes`:
/// of all together.
pub(super) fn timed(
    tool: &'static str,
    run: &RunOutput,
    bytes: u64,
) -> Result<Measured, ToolError> {
    if run.processes.is_empty() {
        return Err(ToolError::Nothing { tool });
    }
    let mut measured = Measured::default();
    push(&mut measured, tool, Metric::Seconds, run.wall_s)?;
    push(&mut measured, tool, Metric::Throughput, bytes as f64 / run.wall_s)?;
    let times: Vec<f64> = run.processes.iter().map(|process| process.wall_s).collect();
    push_processes(&mut measured, &times);
    Ok(measured)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_compared() {
        assert_eq!(spread(&[2.0, 1.0, 4.0]), Some(4.0));
        assert_eq!(spread(&[2.0]), None);
        assert_eq!(spread(&[2.0, 0.0]), None);
        assert_eq!(jain(&[3.0, 3.0]), Some(1.0));
        assert_eq!(jain(&[5.0, 0.0]), Some(0.5));
        assert_eq!(jain(&[1.0, 2.0]), Some(0.9));
        assert_eq!((jain(&[1.0]), jain(&[0.0, 0.0])), (None, None));
    }

    #[test]
    fn only_finite_numbers_are_read() {
        assert_eq!(number(" 6.5e-05"), Some(6.5e-5));
        assert_eq!([number("inf"), number("nan"), number("1e999"), number("")], [None; 4]);
    }
}
