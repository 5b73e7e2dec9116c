//! The stability of a number: within a trial, and from repetition to repetition.
//!
//! Both use a window of values in the same way as the steady state ([`judge_window`]): the range of the values,
//! and the slope of the line through them. A slope is a trend if values that only scatter would have such a
//! slope in at most 5 % of cases, by Student's test.
//!
//! Within a trial the values over time are averaged in five slices, as the SNIA's performance test
//! specification has five rounds in a window. The limits are wider than SNIA's 20 % and 10 %, which are
//! for rounds of a minute on an idle machine: a verdict must not follow the ordinary noise of trials of a
//! second.

use super::Checked;
use super::case::{Cell, TrialCase, percent};
use crate::stats::{Window, judge_window, mean, median, scatter};
use braid_lab::campaign::Health;
use braid_lab::metric::{Metric, TimeSeries};

/// Slices of a trial.
const SLICES: usize = 5;
/// Values of a series from which on it can be sliced: two in each.
const SERIES_FROM: usize = 2 * SLICES;
/// The probability that chance makes a trend.
const BY_CHANCE: f64 = 0.05;
/// The rise or fall over a trial, as a part of its average, that matters: the ends then differ by 15 % from the
/// average, which depends on the length.
const TREND: f64 = 0.30;
/// Range of the slices, as a part of their average, that is wide: the rate doubled or halved.
const WIDE: f64 = 0.75;
/// Rise or fall over the repetitions, as a part of their average, that matters.
const DRIFT: f64 = 0.10;
/// Standard deviation of repetitions, as a part of them, that is wide: two of them then differ by a
/// third as often as not.
const WIDE_SCATTER: f64 = 0.25;
/// Repetitions from which on they can drift, and one wild one is passed over.
const MANY: usize = 5;

/// Rule `not-steady`.
pub(super) fn check_series(case: &TrialCase<'_>) -> Checked {
    if matches!(case.workload.setup.health, Health::Story | Health::Rebuilding) {
        return Checked::Fine;
    }
    let series = &case.trial.measured.series;
    let of = |metric: Metric| series.iter().find(|series| series.metric == metric);
    let slices = of(Metric::Throughput).or_else(|| of(Metric::Iops)).and_then(slices);
    let Some(window) = slices.and_then(|slices| judge_window(&slices, 0)) else {
        return Checked::Unknown;
    };
    if has_trend(&window, TREND) {
        let word = if window.slope > 0.0 { "rose" } else { "fell" };
        Checked::suspect(format!(
            "the rate {word} by {} during the trial",
            percent(window.slope.abs())
        ))
    } else if window.range > WIDE {
        Checked::suspect(format!(
            "parts of the trial differ by {} of their average",
            percent(window.range)
        ))
    } else {
        Checked::Fine
    }
}

/// Averages of five parts of a series, equal to within one value.
fn slices(series: &TimeSeries) -> Option<Vec<f64>> {
    let values: Vec<f64> = series.points.iter().map(|(_, value)| *value).collect();
    if values.len() < SERIES_FROM {
        return None;
    }
    let edge = |slice: usize| slice * values.len() / SLICES;
    Some((0..SLICES).map(|slice| mean(&values[edge(slice)..edge(slice + 1)])).collect())
}

/// Rule `unsteady-repetitions`.
pub(super) fn check_repetitions(cell: &Cell<'_>, _: &[&Cell<'_>]) -> Checked {
    let metric = cell.workload.headline();
    let values = cell.values(metric);
    if values.is_empty() {
        return Checked::Unknown;
    }
    if let Some(slope) = drifts(&values) {
        let word = if slope > 0.0 { "rises" } else { "falls" };
        return Checked::suspect(format!(
            "{metric} {word} from repetition to repetition, by {} over {}",
            percent(slope.abs()),
            values.len()
        ));
    }
    match scatter(&without_the_wildest(&values)) {
        Some(scatter) if scatter > WIDE_SCATTER => Checked::suspect(format!(
            "{metric} scatters over {} repetitions, by {} (standard deviation)",
            values.len(),
            percent(scatter)
        )),
        _ => Checked::Fine,
    }
}

/// The rise or fall of repetitions from the first to the last, as a part of their average; `None` if it may be
/// chance, or is too small to matter.
pub(super) fn drifts(values: &[f64]) -> Option<f64> {
    let window = judge_window(values, 0).filter(|_| values.len() >= MANY)?;
    has_trend(&window, DRIFT).then_some(window.slope)
}

fn has_trend(window: &Window, limit: f64) -> bool {
    window.slope.abs() > limit && window.slope_p <= BY_CHANCE
}

/// For five or more values, all but the one that is furthest from the median: among many repetitions there will
/// be an outlier.
fn without_the_wildest(values: &[f64]) -> Vec<f64> {
    let mut kept = values.to_vec();
    if let Some(middle) = median(values).filter(|_| values.len() >= MANY) {
        let far = |value: &f64| (value - middle).abs();
        kept.sort_by(|a, b| far(a).total_cmp(&far(b)));
        kept.pop();
    }
    kept
}
