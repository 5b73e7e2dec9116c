//! fio's logs of time slices: `fio_bw.1.log`, `fio_iops.1.log`, `fio_clat.1.log`, one of each
//! for every process.
//!
//! ```text
//! 250, 167072, 0, 4096, 0
//! │    │       └ direction: 0 read, 1 write, 2 trim        (further columns are ignored)
//! │    └ KiB/s, requests/s or ns of the slice
//! └ milliseconds since the measured time began, at the slice's end
//! ```
//!
//! Behaviour of fio 3.33: slices end a few milliseconds beside their mark; a slice without any request is left
//! out, so a missing slice is a stall and counts as zero; the last slice may be missing for processes that
//! ended first, so it counts only if all have it.

use std::collections::{BTreeMap, BTreeSet};

use super::NAME;
use crate::metric::{Metric, TimeSeries};
use crate::tool::ToolError;
use crate::tool::parts::{excerpt, malformed, number};

/// Prefix of the logs' names.
pub(super) const PREFIX: &str = "fio";

/// Values by slice number (1 is the first), job and direction.
type Slices = BTreeMap<(u64, u32, u32), f64>;

/// Returns rates and the longest latency over time, of all processes together.
pub(super) fn parse_series(
    files: &BTreeMap<String, String>,
    slice_ms: u64,
) -> Result<Vec<TimeSeries>, ToolError> {
    let throughput = parse_kind(files, "bw", slice_ms)?;
    let iops = parse_kind(files, "iops", slice_ms)?;
    let latency = parse_kind(files, "clat", slice_ms)?;
    // An hour of slices of 1 ms: no planned trial has more.
    const MOST: u64 = 3_600_000;
    let last = last_slice(&throughput).min(last_slice(&iops)).min(MOST);
    let end = |slice: u64| slice.saturating_mul(slice_ms);
    let rate = |slices: &Slices, unit: f64| {
        let sums = join(slices, |sum, value| sum + value * unit);
        let value = |slice| sums.get(&slice).copied().unwrap_or(0.0);
        (1..=last).map(|slice| (end(slice), value(slice))).collect()
    };
    // A slice in which no request completed has no latency.
    let longest = join(&latency, f64::max);
    let all: [(Metric, Vec<(u64, f64)>); 3] = [
        (Metric::Throughput, rate(&throughput, 1024.0)),
        (Metric::Iops, rate(&iops, 1.0)),
        (
            Metric::LatencyMax,
            longest.range(1..=last.max(1)).map(|(slice, value)| (end(*slice), *value)).collect(),
        ),
    ];
    let series = all.into_iter().map(|(metric, points)| TimeSeries { metric, points });
    Ok(series.filter(|series| last > 0 && !series.points.is_empty()).collect())
}

/// Joins the values of each slice, of all processes and directions.
fn join(slices: &Slices, with: impl Fn(f64, f64) -> f64) -> BTreeMap<u64, f64> {
    let mut joined = BTreeMap::new();
    for ((slice, ..), value) in slices {
        let so_far = joined.entry(*slice).or_insert(0.0);
        *so_far = with(*so_far, *value);
    }
    joined
}

/// Parses all logs of a kind.
fn parse_kind(
    files: &BTreeMap<String, String>,
    kind: &str,
    slice_ms: u64,
) -> Result<Slices, ToolError> {
    let start = format!("{PREFIX}_{kind}.");
    let mut slices = Slices::new();
    let mut found = false;
    for (name, text) in files {
        let job = name.strip_prefix(&start).and_then(|rest| rest.strip_suffix(".log"));
        let Some(job) = job.and_then(|job| job.parse().ok()) else { continue };
        found = true;
        for line in text.lines() {
            let (time_ms, value, direction) = parse_line(line)
                .ok_or_else(|| malformed(NAME, format!("{name} holds {}", excerpt(line))))?;
            // To the nearest mark; the rest at the end of a run is no slice of its own.
            let slice = time_ms.saturating_add(slice_ms / 2) / slice_ms.max(1);
            slices.entry((slice, job, direction)).or_insert(value);
        }
    }
    if found { Ok(slices) } else { Err(malformed(NAME, format!("it left no {start}*.log"))) }
}

fn parse_line(line: &str) -> Option<(u64, f64, u32)> {
    let mut columns = line.split(',').map(str::trim);
    let time_ms = columns.next()?.parse().ok()?;
    let value = number(columns.next()?)?;
    let direction = columns.next()?.parse().ok()?;
    Some((time_ms, value, direction))
}

/// Returns the last slice that counts.
fn last_slice(slices: &Slices) -> u64 {
    let Some(last) = slices.keys().map(|(slice, ..)| *slice).max() else { return 0 };
    let jobs: BTreeSet<u32> = slices.keys().map(|(_, job, _)| *job).collect();
    let there: BTreeSet<u32> =
        slices.keys().filter(|(slice, ..)| *slice == last).map(|(_, job, _)| *job).collect();
    if jobs == there { last } else { last.saturating_sub(1) }
}
