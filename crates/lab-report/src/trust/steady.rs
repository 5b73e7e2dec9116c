//! Whether a number stays what it is: within a trial, and from repetition to repetition.
//!
//! Within a trial the values over time are averaged in five slices, as the SNIA's performance test
//! specification has five rounds in a window; range and slope of the slices are parts of their
//! average. The limits are wider than SNIA's 20 % and 10 %, which are for rounds of a minute on an
//! idle machine: a verdict must not follow the ordinary noise of trials of a second.

use super::Checked;
use super::case::{CellCase, TrialCase, percent};
use crate::stats::{median, scatter};
use braid_lab::campaign::Health;
use braid_lab::metric::{Metric, TimeSeries};

/// Slices of a trial.
const SLICES: usize = 5;
/// Values of a series from which on it can be sliced: two in each.
const SERIES_FROM: usize = 2 * SLICES;
/// Rise or fall of the line through the slices, as a part of their average, that is a trend: the
/// ends are then off by 15 % either way, and the average depends on the length.
const TREND: f64 = 0.30;
/// Rank correlation of five slices with time that goes with a trend: at most one pair of
/// neighbours out of order. One disturbed slice tilts the line but does not order the others.
const IN_ORDER: f64 = 0.9;
/// Range of the slices, as a part of their average, that is wide: the rate doubled or halved.
const WIDE: f64 = 0.75;
/// Standard deviation of repetitions, as a part of them, that is wide: two of them then differ by a
/// third as often as not.
const WIDE_SCATTER: f64 = 0.25;
/// Repetitions from which on one wild one is passed over.
const WILD_FROM: usize = 5;
/// Rise or fall over the repetitions, as a part of their average, that matters.
const DRIFT: f64 = 0.10;
/// Number of values, and the largest sum of squared rank differences (Spearman's D) in order that
/// chance gives in at most 5 % of cases, both directions together: exact, counted over all orders
/// of 5 to 10 values. Fewer than five are in order too often by chance. The rank correlation is
/// 1 − 6·D/(n³ − n), and no rounding of it may lie above what can be attained.
pub(super) const BY_CHANCE: [(usize, u32); 6] =
    [(5, 0), (6, 4), (7, 12), (8, 22), (9, 36), (10, 58)];
/// Two standard deviations of the normal distribution, with 5 % beyond them.
const NORMAL: f64 = 1.96;

/// Rule `not-steady`.
pub(super) fn check_series(case: &TrialCase<'_>) -> Checked {
    if matches!(case.workload.setup.health, Health::Story | Health::Rebuilding) {
        return Checked::NotApplicable;
    }
    let series = &case.trial.measured.series;
    let of = |metric: Metric| series.iter().find(|series| series.metric == metric);
    let Some(slices) = of(Metric::Throughput).or_else(|| of(Metric::Iops)).and_then(slices) else {
        return Checked::Unknown;
    };
    let Some(line) = Line::through(&slices) else {
        return Checked::Unknown;
    };
    if line.rise.abs() > TREND && line.is_ordered(IN_ORDER) {
        let word = if line.rise > 0.0 { "rose" } else { "fell" };
        Checked::suspect(format!(
            "the rate {word} by {} during the trial",
            percent(line.rise.abs())
        ))
    } else if line.range > WIDE {
        Checked::suspect(format!(
            "parts of the trial differ by {} of their average",
            percent(line.range)
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
    let slices = (0..SLICES).map(|slice| &values[edge(slice)..edge(slice + 1)]);
    Some(slices.map(|slice| slice.iter().sum::<f64>() / slice.len() as f64).collect())
}

/// Rule `unsteady-repetitions`.
pub(super) fn check_repetitions(case: &CellCase<'_>) -> Checked {
    let Some(metric) = case.headline() else {
        return Checked::Unknown;
    };
    let values = case.values(metric);
    if values.len() < 2 {
        return Checked::NotApplicable;
    }
    if let (Some(line), Some(limit)) = (Line::through(&values), least_order(values.len()))
        && line.is_ordered(limit)
        && line.rise.abs() > DRIFT
    {
        let word = if line.rise > 0.0 { "rises" } else { "falls" };
        return Checked::suspect(format!(
            "{metric} {word} from repetition to repetition, by {} over {}",
            percent(line.rise.abs()),
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

/// Of five or more, all but the one that is furthest from the median: of many repetitions one is wild
/// sooner or later.
fn without_the_wildest(values: &[f64]) -> Vec<f64> {
    let mut kept = values.to_vec();
    if let Some(middle) = median(values).filter(|_| values.len() >= WILD_FROM) {
        let far = |value: &f64| (value - middle).abs();
        let furthest = (0..kept.len()).max_by(|a, b| far(&kept[*a]).total_cmp(&far(&kept[*b])));
        kept.remove(furthest.unwrap_or_default());
    }
    kept
}

/// The rank correlation from which on so many values are in order beyond chance; `None` of too few.
pub(super) fn least_order(count: usize) -> Option<f64> {
    let n = count as f64;
    let (most, _) = BY_CHANCE[BY_CHANCE.len() - 1];
    if count > most {
        // The correlation of n values in no order is nearly normal, with a standard deviation of
        // 1/√(n − 1).
        return Some(NORMAL / (n - 1.0).sqrt());
    }
    let (_, squares) = BY_CHANCE.iter().find(|(known, _)| *known == count)?;
    Some(1.0 - 6.0 * f64::from(*squares) / (n * n * n - n))
}

/// The least-squares line through values at equal distances.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Line {
    /// From its start to its end, as a part of the average.
    pub(super) rise: f64,
    /// Largest less smallest value, as a part of the average.
    pub(super) range: f64,
    /// Spearman's rank correlation with the position, -1 to 1.
    pub(super) order: f64,
}

impl Line {
    /// Whether the values go the way that the line does, in such an order at least. One value far
    /// off can turn the line against all the others.
    fn is_ordered(&self, limit: f64) -> bool {
        // What is left of the arithmetic is not to decide.
        self.order * self.rise.signum() >= limit - 1e-9
    }

    /// `None` of fewer than two values, and where the average is not above 0 and finite.
    pub(super) fn through(values: &[f64]) -> Option<Self> {
        let n = values.len();
        let average = values.iter().sum::<f64>() / n as f64;
        if n < 2 || !average.is_finite() || average <= 0.0 {
            return None;
        }
        let positions: Vec<f64> = (0..n).map(|position| position as f64).collect();
        let (slope, _) = regress(&positions, values);
        let (_, order) = regress(&positions, &ranks(values));
        let largest = values.iter().copied().fold(f64::MIN, f64::max);
        let smallest = values.iter().copied().fold(f64::MAX, f64::min);
        let rise = slope * (n - 1) as f64 / average;
        Some(Self { rise, range: (largest - smallest) / average, order })
    }
}

/// Slope of the line and Pearson's correlation; 0 where all are equal.
fn regress(x: &[f64], y: &[f64]) -> (f64, f64) {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (mx, my) = (mean(x), mean(y));
    let pairs = || x.iter().zip(y).map(|(x, y)| (x - mx, y - my));
    let xy: f64 = pairs().map(|(x, y)| x * y).sum();
    let xx: f64 = pairs().map(|(x, _)| x * x).sum();
    let yy: f64 = pairs().map(|(_, y)| y * y).sum();
    let or_zero = |value: f64| if value.is_finite() { value } else { 0.0 };
    (or_zero(xy / xx), or_zero(xy / (xx * yy).sqrt()))
}

/// Ranks from 1; equal values share the mean of theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let rank = |value: &f64| {
        let below = values.iter().filter(|other| *other < value).count();
        let equal = values.iter().filter(|other| *other == value).count();
        below as f64 + (equal as f64 + 1.0) / 2.0
    };
    values.iter().map(rank).collect()
}
