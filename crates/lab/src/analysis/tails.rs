//! Percentiles of a cell's requests: read from all of them together, and only where there are
//! enough.
//!
//! A tool prints a 99 % latency of any sample; of 130 requests it is the second slowest, and no
//! two trials agree on it. So a trial's own percentile is passed on only when its requests support
//! it, which is what comparisons in pairs are made of, and a cell's is that of the merged bins of
//! its trials. Percentiles are not averaged.

use super::Cell;
use crate::metric::Metric;
use crate::stats::{Estimate, Histogram, IntervalKind, Percentile, values_needed};
use crate::store::{Outcome, Results, StoredTrial};

/// The metrics that are percentiles, and of which part of the requests.
const PERCENTILES: [(Metric, f64); 4] = [
    (Metric::LatencyP50, 0.5),
    (Metric::LatencyP95, 0.95),
    (Metric::LatencyP99, 0.99),
    (Metric::LatencyP999, 0.999),
];

/// Requests that a trial must have for a metric; `None` for what is no percentile.
fn requests_needed(metric: Metric) -> Option<u64> {
    let (_, q) = PERCENTILES.iter().find(|(percentile, _)| *percentile == metric)?;
    // The parts above are within 0 and 1, so none is refused.
    values_needed(*q).ok()
}

/// Whether a trial has enough requests for a metric; of an unknown number it has not.
pub(super) fn is_supported(trial: &StoredTrial, metric: Metric) -> bool {
    let Some(needed) = requests_needed(metric) else { return true };
    let binned = || trial.measured.latencies.iter().flat_map(|latencies| &latencies.bins);
    match trial.measured.get(Metric::Requests) {
        _ if binned().next().is_some() => {
            let all = binned().fold(0_u64, |all, (_, requests)| all.saturating_add(*requests));
            all >= needed
        }
        Some(requests) => requests >= needed as f64,
        None => false,
    }
}

/// The requests of all trials of a cell that went well and count; of one direction ("read" or
/// "write") or of both. `None` when no tool said how long they took.
pub(crate) fn merged_latencies(
    results: &Results,
    cell: &Cell,
    op: Option<&str>,
) -> Option<Histogram> {
    let trials = cell.trials.iter().map(|index| &results.trials[*index]);
    let bins = trials
        .filter(|trial| trial.outcome == Outcome::Ok && cell.counts(trial.repetition))
        .flat_map(|trial| &trial.measured.latencies)
        .filter(|latencies| op.is_none_or(|op| latencies.op == op))
        .flat_map(|latencies| latencies.bins.iter().copied());
    // More than 2^64 requests are no measurement.
    Histogram::from_bins(bins).ok().filter(|histogram| !histogram.is_empty())
}

/// Puts the percentiles of the merged requests in the place of the medians of the trials', for
/// those that a tool gave.
pub(super) fn add_percentiles(results: &Results, cell: &mut Cell) {
    let given = |metric| {
        let mut trials = cell.trials.iter().map(|index| &results.trials[*index]);
        trials.any(|trial| trial.measured.get(metric).is_some() && cell.counts(trial.repetition))
    };
    let given: Vec<(Metric, f64)> =
        PERCENTILES.into_iter().filter(|(metric, _)| given(*metric)).collect();
    if given.is_empty() {
        return;
    }
    let merged = merged_latencies(results, cell, None);
    for (metric, q) in given {
        match merged.as_ref().map(|merged| merged.percentile(q)) {
            Some(Ok(Percentile::Supported { value, low, high, .. })) => {
                let kind = IntervalKind::OrderStatistics95;
                cell.estimates.insert(metric, Estimate { median: value, low, high, kind });
            }
            Some(Ok(Percentile::Unsupported { needed, .. })) => {
                cell.estimates.remove(&metric);
                cell.unsupported.insert(metric, needed);
            }
            // Without bins the trials' own stand, if they are supported.
            Some(Err(_)) | None => {
                let needed = requests_needed(metric).filter(|_| cell.get(metric).is_none());
                cell.unsupported.extend(needed.map(|needed| (metric, needed)));
            }
        }
    }
}
