//! fio's json+ output: one job for each process, merged by adding.
//!
//! Percentiles come from the bins of all processes together, by fio's own rule, because percentiles of
//! processes cannot be merged.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{NAME, Ops};
use crate::metric::{LatencyBins, Measured, Metric};
use crate::tool::parts::{malformed, push, push_percentiles, push_shares};
use crate::tool::{RunOutput, ToolError};

// Only the fields in use are named; fio's output has some hundred more, and new ones with each version.

#[derive(Deserialize)]
struct Output {
    jobs: Vec<Job>,
}

/// The work of one process.
#[derive(Deserialize)]
pub(super) struct Job {
    #[serde(default)]
    error: i64,
    #[serde(default)]
    total_err: i64,
    read: Direction,
    write: Direction,
    usr_cpu: f64,
    sys_cpu: f64,
}

#[derive(Deserialize)]
struct Direction {
    io_bytes: u64,
    /// Time in milliseconds.
    runtime: u64,
    total_ios: u64,
    clat_ns: Latency,
    lat_ns: Latency,
}

#[derive(Deserialize)]
struct Latency {
    min: f64,
    max: f64,
    mean: f64,
    #[serde(rename = "N")]
    count: u64,
    #[serde(default)]
    bins: BTreeMap<u64, u64>,
}

/// Returns the jobs in a run's output. Text before the first line that is `{` is a message of fio ("fio:
/// connected to NBD server") and is skipped.
pub(super) fn parse_jobs(run: &RunOutput) -> Result<Vec<Job>, ToolError> {
    let output = run.processes.first().map_or("", |process| process.stdout.as_str());
    let json = json_part(output).ok_or_else(|| malformed(NAME, "it holds no JSON"))?;
    let parsed: Output =
        serde_json::from_str(json).map_err(|error| malformed(NAME, error.to_string()))?;
    for job in &parsed.jobs {
        if job.error != 0 || job.total_err != 0 {
            let reason = format!("error {}, {} errors in all", job.error, job.total_err);
            return Err(ToolError::IoErrors { tool: NAME, reason });
        }
    }
    Ok(parsed.jobs)
}

fn json_part(output: &str) -> Option<&str> {
    let mut at = 0;
    for line in output.split_inclusive('\n') {
        if line.starts_with('{') {
            return output.get(at..);
        }
        at += line.len();
    }
    None
}

/// One direction of all jobs together.
struct Total<'j> {
    op: &'static str,
    directions: Vec<&'j Direction>,
    bytes: u64,
    requests: u64,
    runtime_s: f64,
}

impl<'j> Total<'j> {
    fn of(op: &'static str, directions: Vec<&'j Direction>) -> Self {
        let sum = |of: fn(&Direction) -> u64| {
            directions.iter().fold(0_u64, |sum, direction| sum.saturating_add(of(direction)))
        };
        let runtime_ms = directions.iter().map(|direction| direction.runtime).max().unwrap_or(0);
        Self {
            op,
            bytes: sum(|direction| direction.io_bytes),
            requests: sum(|direction| direction.total_ios),
            runtime_s: runtime_ms as f64 / 1000.0,
            directions,
        }
    }
}

/// Returns the counts of completion times, in these directions together.
fn bins<'j>(directions: impl IntoIterator<Item = &'j Direction>) -> BTreeMap<u64, u64> {
    let mut bins = BTreeMap::new();
    for (&ns, &count) in directions.into_iter().flat_map(|direction| &direction.clat_ns.bins) {
        let sum: &mut u64 = bins.entry(ns).or_default();
        *sum = sum.saturating_add(count);
    }
    bins
}

/// Returns numbers and distributions of all jobs together, in the given directions.
pub(super) fn totals(ops: Ops, jobs: &[Job]) -> Result<Measured, ToolError> {
    let reads = ops.read.then(|| Total::of("read", jobs.iter().map(|job| &job.read).collect()));
    let writes = ops.write.then(|| Total::of("write", jobs.iter().map(|job| &job.write).collect()));
    let totals: Vec<Total<'_>> =
        [reads, writes].into_iter().flatten().filter(|total| total.requests > 0).collect();
    // fio ends with error 0 and no request at all if an NBD server is absent.
    if totals.is_empty() {
        return Err(ToolError::Nothing { tool: NAME });
    }
    let mut measured = Measured::default();
    let sum = |of: fn(&Total<'_>) -> f64| totals.iter().map(of).sum::<f64>();
    let mut add = |metric, value| push(&mut measured, NAME, metric, value);
    add(Metric::Throughput, sum(|total| total.bytes as f64 / total.runtime_s))?;
    add(Metric::Iops, sum(|total| total.requests as f64 / total.runtime_s))?;
    add(Metric::Requests, sum(|total| total.requests as f64))?;
    for total in &totals {
        let reads = total.op == "read";
        let metric = if reads { Metric::BytesRead } else { Metric::BytesWritten };
        add(metric, total.bytes as f64)?;
    }
    add(Metric::ToolCpuUser, jobs.iter().map(|job| job.usr_cpu).sum())?;
    add(Metric::ToolCpuSystem, jobs.iter().map(|job| job.sys_cpu).sum())?;
    let moved: Vec<&Direction> =
        totals.iter().flat_map(|total| total.directions.iter().copied()).collect();
    push_latencies(&mut measured, &moved)?;
    // Evenness of the processes. They run for the same time, so the time per byte of a process stands for its
    // time, and of two shares the spread of x is that of 1/x.
    let bytes =
        |wanted: bool, direction: &Direction| if wanted { direction.io_bytes as f64 } else { 0.0 };
    let share = |job: &Job| bytes(ops.read, &job.read) + bytes(ops.write, &job.write);
    let shares: Vec<f64> = jobs.iter().map(share).collect();
    push_shares(&mut measured, &shares, &shares);
    let latencies = totals.into_iter().map(|total| LatencyBins {
        op: total.op,
        bins: bins(total.directions).into_iter().collect(),
    });
    measured.latencies = latencies.collect();
    Ok(measured)
}

/// Adds mean, extremes and percentiles of the requests in these directions together.
fn push_latencies(measured: &mut Measured, moved: &[&Direction]) -> Result<(), ToolError> {
    // Bins are of the completion time (submission to completion). Mean and extremes are of the same quantity,
    // so that they agree, except for engines without completion times.
    let completion = moved.iter().any(|direction| direction.clat_ns.mean > 0.0);
    let seen: Vec<&Latency> = moved
        .iter()
        .map(|direction| if completion { &direction.clat_ns } else { &direction.lat_ns })
        .filter(|latency| latency.count > 0)
        .collect();
    let count: f64 = seen.iter().map(|latency| latency.count as f64).sum();
    let weighted: f64 = seen.iter().map(|latency| latency.mean * latency.count as f64).sum();
    let min = seen.iter().map(|latency| latency.min).fold(f64::INFINITY, f64::min);
    let max = seen.iter().map(|latency| latency.max).fold(f64::NEG_INFINITY, f64::max);
    push(measured, NAME, Metric::LatencyMean, weighted / count)?;
    push(measured, NAME, Metric::LatencyMin, min)?;
    push_percentiles(measured, NAME, &bins(moved.iter().copied()))?;
    push(measured, NAME, Metric::LatencyMax, max)
}
