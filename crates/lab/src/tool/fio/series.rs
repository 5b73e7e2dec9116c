//! fio's logs of time slices: `fio_bw.1.log`, `fio_iops.1.log`, `fio_clat.1.log`, one of each
//! for every process.
//!
//! ```text
//! 250, 167072, 0, 4096, 0
//! │    │       └ direction: 0 read, 1 write, 2 trim        (columns after it are not read)
//! │    └ KiB/s, requests/s or ns of the slice
//! └ milliseconds since the measured time began, at the slice's end
//! ```
//!
//! What fio 3.33 does: slices end a few milliseconds beside their mark; a slice without any
//! request is left out, so a missing slice is a stall and counts as zero; the last slice may be
//! missing for some processes because they ended first, so it counts only if all have it.

use std::collections::{BTreeMap, BTreeSet};

use super::NAME;
use crate::metric::{Metric, TimeSeries};
use crate::tool::ToolError;
use crate::tool::parts::{excerpt, malformed, number};

/// How the logs' names begin.
pub(super) const PREFIX: &str = "fio";

/// A slice's number (1 is the first), the job, the direction.
type Slices = BTreeMap<(u64, u32, u32), f64>;

/// Rates and one latency over time, of all processes together.
pub(super) fn parse_series(
    files: &BTreeMap<String, String>,
    slice_ms: u64,
    longest: bool,
) -> Result<Vec<TimeSeries>, ToolError> {
    let throughput = parse_kind(files, "bw", slice_ms)?;
    let iops = parse_kind(files, "iops", slice_ms)?;
    let latency = parse_kind(files, "clat", slice_ms)?;
    let last = last_slice(&throughput).min(last_slice(&iops));
    let latency = TimeSeries {
        metric: if longest { Metric::LatencyMax } else { Metric::LatencyMean },
        points: latency_points(&latency, &iops, last, slice_ms, longest),
    };
    let rate = |metric, slices: &Slices, unit: f64| TimeSeries {
        metric,
        points: rate_points(slices, last, slice_ms, unit),
    };
    let all =
        [rate(Metric::Throughput, &throughput, 1024.0), rate(Metric::Iops, &iops, 1.0), latency];
    Ok(all.into_iter().filter(|series| !series.points.is_empty()).collect())
}

/// All logs of a kind.
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

/// The last slice that counts.
fn last_slice(slices: &Slices) -> u64 {
    let Some(last) = slices.keys().map(|(slice, ..)| *slice).max() else { return 0 };
    let jobs: BTreeSet<u32> = slices.keys().map(|(_, job, _)| *job).collect();
    let there: BTreeSet<u32> =
        slices.keys().filter(|(slice, ..)| *slice == last).map(|(_, job, _)| *job).collect();
    if jobs == there { last } else { last.saturating_sub(1) }
}

fn rate_points(slices: &Slices, last: u64, slice_ms: u64, unit: f64) -> Vec<(u64, f64)> {
    let mut sums: BTreeMap<u64, f64> = BTreeMap::new();
    for ((slice, ..), value) in slices {
        *sums.entry(*slice).or_default() += value * unit;
    }
    // An hour of slices of 1 ms; more is no output of a trial that was planned here.
    const MOST: u64 = 3_600_000;
    (1..=last.min(MOST))
        .map(|slice| {
            let value = sums.get(&slice).copied().unwrap_or(0.0);
            (slice.saturating_mul(slice_ms), value)
        })
        .collect()
}

/// The longest, or the mean weighted with the requests of each process and direction. A slice in
/// which no request ended has no latency.
fn latency_points(
    slices: &Slices,
    iops: &Slices,
    last: u64,
    slice_ms: u64,
    longest: bool,
) -> Vec<(u64, f64)> {
    let mut sums: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
    for (key, value) in slices.iter().filter(|((slice, ..), _)| (1..=last).contains(slice)) {
        let (sum, weights) = sums.entry(key.0).or_default();
        let weight = if longest { 1.0 } else { iops.get(key).copied().unwrap_or(0.0).max(1.0) };
        *sum = if longest { sum.max(*value) } else { *sum + value * weight };
        *weights += weight;
    }
    let value = |(sum, weights): (f64, f64)| if longest { sum } else { sum / weights };
    let points = sums.into_iter().map(|(slice, sum)| (slice.saturating_mul(slice_ms), value(sum)));
    points.filter(|(_, value)| value.is_finite()).collect()
}
