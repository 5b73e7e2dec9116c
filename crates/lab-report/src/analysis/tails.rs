//! Percentiles of a trial's requests, only where there are enough.
//!
//! A tool prints a 99 % latency of any sample; of 130 requests it is the second slowest, and no
//! two trials agree on it. So a trial's percentile is passed on only when its requests support it, and
//! a cell has one only when all of its trials have: the median of theirs, and how far it scatters is seen
//! over them. The curve of all latencies is that of the merged bins. Percentiles are not averaged.

use super::Cell;
use crate::stats::{Histogram, values_needed};
use braid_lab::metric::Metric;
use braid_lab::store::{Outcome, Results, StoredTrial};

/// The metrics that are percentiles, and of which part of the requests.
const PERCENTILES: [(Metric, f64); 4] = [
    (Metric::LatencyP50, 0.5),
    (Metric::LatencyP95, 0.95),
    (Metric::LatencyP99, 0.99),
    (Metric::LatencyP999, 0.999),
];

/// True if a trial has enough requests for a metric; false if their number is unknown.
pub(super) fn is_supported(trial: &StoredTrial, metric: Metric) -> bool {
    let quantile = PERCENTILES.iter().find(|(percentile, _)| *percentile == metric);
    let Some(needed) = quantile.and_then(|(_, q)| values_needed(*q)) else { return true };
    let bins = trial.measured.latencies.iter().flat_map(|latencies| &latencies.bins);
    let binned = bins.map(|(_, requests)| *requests).reduce(u64::saturating_add);
    let counted = binned.map(|requests| requests as f64);
    counted.or(trial.measured.get(Metric::Requests)).is_some_and(|all| all >= needed as f64)
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
    Histogram::from_bins(bins).filter(|histogram| !histogram.is_empty())
}

/// Leaves out the percentiles that one of the repetitions that count gave without the requests for them: those
/// that had enough requests were the faster ones, and no fair part of all.
pub(super) fn leave_out_unsupported(results: &Results, cell: &mut Cell) {
    for (metric, _) in PERCENTILES {
        let mut trials = cell.trials.iter().map(|index| &results.trials[*index]);
        let lacks = trials.any(|trial| {
            let is_given = trial.measured.get(metric).is_some() && cell.counts(trial.repetition);
            is_given && !is_supported(trial, metric)
        });
        if lacks {
            cell.values.remove(&metric);
            cell.unsupported.insert(metric);
        }
    }
}
