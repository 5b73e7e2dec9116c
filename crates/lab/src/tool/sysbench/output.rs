//! Output of sysbench 1.0: an optional histogram, then `key: value` lines.

use std::collections::BTreeMap;

use super::{NAME, block_size, direction};
use crate::metric::{LatencyBins, Measured, Metric};
use crate::settings::Settings;
use crate::tool::ToolError;
use crate::tool::parts::{excerpt, malformed, number, push, push_percentiles};

const NS_PER_MS: f64 = 1e6;

/// sysbench's figures in its own units.
#[derive(Debug)]
pub(super) struct Report {
    reads_per_s: f64,
    writes_per_s: f64,
    fsyncs_per_s: f64,
    total_s: f64,
    events: f64,
    min_ms: f64,
    max_ms: f64,
    sum_ms: f64,
    /// Mean and standard deviation over the threads.
    events_of_threads: (f64, f64),
    /// Nanoseconds and count, rising.
    histogram: BTreeMap<u64, u64>,
}

pub(super) fn parse_report(stdout: &str) -> Result<Report, ToolError> {
    if let Some(line) = stdout.lines().find(|line| line.contains("FATAL: ")) {
        return Err(ToolError::IoErrors { tool: NAME, reason: excerpt(line) });
    }
    // The histogram comes before; the rest has each key once.
    let (before, report) = stdout
        .split_once("File operations:")
        .ok_or_else(|| malformed(NAME, format!("no \"File operations\" in {}", excerpt(stdout))))?;
    let values: BTreeMap<&str, &str> = report
        .lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(key, value)| (key.trim(), value.trim()))
        .collect();
    let text = |key: &str| {
        values.get(key).copied().ok_or_else(|| malformed(NAME, format!("{key:?} is missing")))
    };
    let bad = |key: &str, text: &str| malformed(NAME, format!("{key} is {text:?}"));
    let value = |key: &str| {
        let text = text(key)?;
        // Times have a unit.
        number(text.strip_suffix('s').unwrap_or(text))
            .filter(|value| *value >= 0.0)
            .ok_or_else(|| bad(key, text))
    };
    let fairness = "events (avg/stddev)";
    let pair = text(fairness)?;
    let events_of_threads = pair
        .split_once('/')
        .and_then(|(mean, deviation)| Some((number(mean)?, number(deviation)?)))
        .ok_or_else(|| bad(fairness, pair))?;
    Ok(Report {
        reads_per_s: value("reads/s")?,
        writes_per_s: value("writes/s")?,
        fsyncs_per_s: value("fsyncs/s")?,
        total_s: value("total time")?,
        events: value("total number of events")?,
        min_ms: value("min")?,
        max_ms: value("max")?,
        sum_ms: value("sum")?,
        events_of_threads,
        histogram: parse_histogram(before)?,
    })
}

/// Parses lines such as `       0.846 |*****                 33`, in milliseconds.
fn parse_histogram(text: &str) -> Result<BTreeMap<u64, u64>, ToolError> {
    let mut histogram = BTreeMap::new();
    for line in text.lines() {
        let Some((value, bar)) = line.split_once('|') else { continue };
        let count = bar.split_whitespace().last().map(str::parse::<u64>);
        let (Some(ms), Some(Ok(count))) = (number(value), count) else {
            return Err(malformed(NAME, format!("its histogram holds {}", excerpt(line))));
        };
        // Microseconds are the last digit; several bins of fast requests print alike.
        let ns = (ms * NS_PER_MS).round().max(0.0) as u64;
        let sum: &mut u64 = histogram.entry(ns).or_default();
        *sum = sum.saturating_add(count);
    }
    Ok(histogram)
}

/// Returns the numbers of a trial with these settings and so many threads.
pub(super) fn measured(
    report: &Report,
    settings: &Settings,
    threads: u32,
) -> Result<Measured, ToolError> {
    let block_bytes = block_size(settings) as f64;
    let requests_per_s = report.reads_per_s + report.writes_per_s;
    if report.events == 0.0 || requests_per_s == 0.0 {
        return Err(ToolError::Nothing { tool: NAME });
    }
    let mut measured = Measured::default();
    let synced = report.fsyncs_per_s > 0.0;
    // Its events include fsyncs, except for those at the end; only the rates count reads and writes. The rates
    // are over a time that is some 0.1 % longer than the total.
    let requests = if synced { requests_per_s * report.total_s } else { report.events };
    let [reads, writes] = [report.reads_per_s, report.writes_per_s]
        .map(|rate| (requests * rate / requests_per_s).round());
    let mut add = |metric, value| push(&mut measured, NAME, metric, value);
    add(Metric::Throughput, requests_per_s * block_bytes)?;
    add(Metric::Iops, requests_per_s)?;
    if settings.count("events").is_some() {
        add(Metric::Seconds, report.total_s)?;
    }
    add(Metric::Requests, reads + writes)?;
    for (metric, count) in [(Metric::BytesRead, reads), (Metric::BytesWritten, writes)] {
        if count > 0.0 {
            add(metric, count * block_bytes)?;
        }
    }
    if threads > 1 {
        // Jain's index of shares is mean² / (mean² + variance); sysbench's deviation is that of all threads,
        // not of a sample.
        let (mean, deviation) = report.events_of_threads;
        add(Metric::Fairness, mean * mean / (mean * mean + deviation * deviation))?;
    }
    // Most fsyncs are of clean files, and fast: figures that include them do not describe writes.
    if !synced {
        push_latencies(&mut measured, report, direction(settings))?;
    }
    Ok(measured)
}

/// Adds the latencies of a report without fsyncs.
fn push_latencies(
    measured: &mut Measured,
    report: &Report,
    direction: Option<&'static str>,
) -> Result<(), ToolError> {
    let mut add = |metric, value| push(measured, NAME, metric, value);
    add(Metric::LatencyMean, report.sum_ms / report.events * NS_PER_MS)?;
    // "0.00" stands for all times below 5 µs.
    for (metric, ms) in [(Metric::LatencyMin, report.min_ms), (Metric::LatencyMax, report.max_ms)] {
        if ms > 0.0 {
            add(metric, ms * NS_PER_MS)?;
        }
    }
    push_percentiles(measured, NAME, &report.histogram)?;
    if let Some(op) = direction {
        let bins = report.histogram.iter().map(|(&ns, &count)| (ns, count)).collect();
        measured.latencies.push(LatencyBins { op, bins });
    }
    Ok(())
}
