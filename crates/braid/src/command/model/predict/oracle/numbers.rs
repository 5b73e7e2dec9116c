//! Numbers of a tool, as the laboratory keeps them, from the outcome of a load.

use braid_lab::matrix::Workload;
use braid_lab::metric::{Measured, Metric};
use braid_predict::Outcome;

use super::Amount;

/// The tool's numbers, and the seconds that it takes.
pub(super) fn numbers(workload: &Workload, outcome: &Outcome, amount: Amount) -> (Measured, f64) {
    let rate = match amount {
        Amount::Files(bytes) => bytes as f64 / outcome.seconds,
        Amount::Seconds(_) | Amount::Bytes(_) | Amount::Whole => outcome.rate(),
    };
    let seconds = match amount {
        Amount::Seconds(seconds) => seconds + outcome.flush_s,
        Amount::Bytes(bytes) => bytes as f64 / rate,
        Amount::Whole | Amount::Files(_) => outcome.seconds,
    };
    let moved = (outcome.read + outcome.written) as f64;
    let is_of_files = matches!(amount, Amount::Files(_));
    let share = |bytes: u64| match is_of_files {
        true => bytes as f64,
        false => bytes as f64 / moved * rate * seconds,
    };
    let mut all = Vec::new();
    // bonnie++ gives the rates of its phases, and no one rate.
    if workload.tool != "bonnie" {
        all.push((Metric::Throughput, rate));
    }
    if is_of_files || (matches!(amount, Amount::Bytes(_)) && workload.tool == "dd") {
        all.push((Metric::Seconds, seconds));
    }
    for (metric, bytes) in
        [(Metric::BytesRead, outcome.read), (Metric::BytesWritten, outcome.written)]
    {
        if bytes > 0 {
            all.push((metric, share(bytes)));
        }
    }
    let is_direct = matches!(workload.tool.as_str(), "fio" | "fio-jobs" | "replay");
    let counts = is_direct || workload.tool == "sysbench";
    if outcome.requests > 0 && counts {
        let per_second = outcome.per_second();
        all.extend([(Metric::Iops, per_second), (Metric::Requests, per_second * seconds)]);
    }
    if is_direct && !outcome.latencies_ns.is_empty() {
        all.push((Metric::LatencyMean, outcome.mean_ns()));
        let percentiles = outcome.percentiles().map(|(percent, ns)| (named(percent), ns as f64));
        all.extend(percentiles.filter_map(|(metric, ns)| Some((metric?, ns))));
    }
    let mut measured = Measured::default();
    for (metric, value) in all {
        // What is not finite is no number, and is not there.
        let _ = measured.push(metric, value);
    }
    (measured, seconds)
}

/// The laboratory's name of a percentile.
fn named(percent: f64) -> Option<Metric> {
    let all = [
        (50.0, Metric::LatencyP50),
        (95.0, Metric::LatencyP95),
        (99.0, Metric::LatencyP99),
        (99.9, Metric::LatencyP999),
    ];
    all.into_iter().find(|one| one.0 == percent).map(|one| one.1)
}
