//! fio's json+ output: one job for each process, merged by adding.
//!
//! Percentiles are taken from the bins of all processes together, by fio's own rule, because
//! percentiles of processes cannot be merged.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{NAME, Ops};
use crate::metric::{LatencyBins, Measured, Metric};
use crate::tool::parts::{jain, malformed, percentile, push, spread};
use crate::tool::{RunOutput, ToolError};

// Only what is read is named; fio's output holds some hundred fields more, and new ones with
// each version.

#[derive(Deserialize)]
struct Output {
    jobs: Vec<Job>,
}

/// What one process did.
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
    /// In milliseconds.
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

/// The jobs of a run's output. Text before the first line that is `{` is fio talking ("fio:
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
struct Total {
    op: &'static str,
    bytes: u64,
    requests: u64,
    runtime_s: f64,
    bins: BTreeMap<u64, u64>,
}

fn total(op: &'static str, directions: &[&Direction]) -> Total {
    let mut bins = BTreeMap::new();
    for (&ns, &count) in directions.iter().flat_map(|direction| &direction.clat_ns.bins) {
        let sum: &mut u64 = bins.entry(ns).or_default();
        *sum = sum.saturating_add(count);
    }
    let sum = |of: fn(&Direction) -> u64| {
        directions.iter().fold(0_u64, |sum, direction| sum.saturating_add(of(direction)))
    };
    let runtime_ms = directions.iter().map(|direction| direction.runtime).max().unwrap_or(0);
    Total {
        op,
        bytes: sum(|direction| direction.io_bytes),
        requests: sum(|direction| direction.total_ios),
        runtime_s: runtime_ms as f64 / 1000.0,
        bins,
    }
}

/// Numbers and distributions of all jobs together, in the directions that were asked for.
pub(super) fn totals(ops: Ops, jobs: &[Job]) -> Result<Measured, ToolError> {
    let mut totals = Vec::new();
    let mut moved: Vec<&Direction> = Vec::new();
    for (wanted, op, of) in [
        (ops.read, "read", (|job| &job.read) as fn(&Job) -> &Direction),
        (ops.write, "write", |job| &job.write),
    ] {
        let directions: Vec<&Direction> = jobs.iter().map(of).collect();
        let total = total(op, &directions);
        if wanted && total.requests > 0 {
            totals.push(total);
            moved.extend(directions);
        }
    }
    // fio ends with error 0 and no request at all when an NBD server is not there.
    if totals.is_empty() {
        return Err(ToolError::Nothing { tool: NAME });
    }
    let mut measured = Measured::default();
    let sum = |of: fn(&Total) -> f64| totals.iter().map(of).sum::<f64>();
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
    push_latencies(&mut measured, &moved, &totals)?;
    push_shares(&mut measured, ops, jobs);
    measured.latencies = totals
        .into_iter()
        .map(|total| LatencyBins { op: total.op, bins: total.bins.into_iter().collect() })
        .collect();
    Ok(measured)
}

/// Mean, ends and percentiles of the requests in these directions together.
fn push_latencies(
    measured: &mut Measured,
    moved: &[&Direction],
    totals: &[Total],
) -> Result<(), ToolError> {
    // Bins are of the completion time (submission to completion); mean and ends are taken of the
    // same quantity, so that they agree, except from engines for which fio has none.
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
    let mut bins = BTreeMap::new();
    for (&ns, &requests) in totals.iter().flat_map(|total| &total.bins) {
        let sum: &mut u64 = bins.entry(ns).or_default();
        *sum = sum.saturating_add(requests);
    }
    push(measured, NAME, Metric::LatencyMean, weighted / count)?;
    push(measured, NAME, Metric::LatencyMin, min)?;
    for (metric, percent) in [
        (Metric::LatencyP50, 50.0),
        (Metric::LatencyP95, 95.0),
        (Metric::LatencyP99, 99.0),
        (Metric::LatencyP999, 99.9),
    ] {
        let value = percentile(&bins, percent)
            .ok_or_else(|| malformed(NAME, "the bins of its latencies are missing (json+)"))?;
        push(measured, NAME, metric, value)?;
    }
    push(measured, NAME, Metric::LatencyMax, max)
}

/// How evenly the processes were served. They run for the same time, so the time that one needs
/// for a byte stands for its time.
fn push_shares(measured: &mut Measured, ops: Ops, jobs: &[Job]) {
    let bytes = |wanted: bool, direction: &Direction| {
        if wanted { direction.io_bytes as f64 } else { 0.0 }
    };
    let shares: Vec<f64> =
        jobs.iter().map(|job| bytes(ops.read, &job.read) + bytes(ops.write, &job.write)).collect();
    // Of two shares the spread of x is that of 1/x. A process that got nothing has no spread.
    for (metric, value) in
        [(Metric::SpreadOfProcesses, spread(&shares)), (Metric::Fairness, jain(&shares))]
    {
        let _absent: Option<()> = value.and_then(|value| measured.push(metric, value));
    }
}
