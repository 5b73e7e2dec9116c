//! Medians and where the true median may lie.
//!
//! With six repetitions or more the interval is the 95 % percentile bootstrap, computed from the
//! exact distribution (`bootstrap.rs`). With fewer no method gives 95 %: the median of the
//! population lies outside the range of n independent values with probability 2 · ½ⁿ, which is
//! 25 % for three and 6.25 % for five. So for fewer than six the interval is the range and is
//! called that.

use super::bootstrap::MedianDistribution;

/// Repetitions from which an interval is a 95 % interval.
pub const BOOTSTRAP_FROM: usize = 6;

/// What an interval is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntervalKind {
    /// Smallest and largest of this many repetitions.
    Range(usize),
    /// 95 %, by bootstrap.
    Bootstrap95,
    /// 95 %, of a percentile of requests: two of the requests themselves.
    OrderStatistics95,
}

impl IntervalKind {
    /// The part of repeated campaigns, 0 to 1, whose interval holds the true median: 1 − 2 · ½ⁿ
    /// for the range of n, and the nominal 0.95 for the bootstrap (`docs/statistics.md` lists
    /// what it really is for few repetitions).
    pub fn confidence(self) -> f64 {
        match self {
            Self::Range(0) => 0.0,
            Self::Range(n) => 1.0 - (1.0 - n as f64).exp2(),
            Self::Bootstrap95 | Self::OrderStatistics95 => 0.95,
        }
    }
}

/// The middle of some repetitions, or a percentile of requests, and where the true one may lie.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The median, or the percentile.
    pub median: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// What the interval is.
    pub kind: IntervalKind,
}

impl Estimate {
    /// Every number multiplied by a factor above 0.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        Self {
            median: self.median * factor,
            low: self.low * factor,
            high: self.high * factor,
            kind: self.kind,
        }
    }

    /// Whether the interval holds this value.
    pub fn holds(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// Width of the interval as a part of the median; 0.1 is ±5 % if it is symmetric.
    pub fn relative_width(&self) -> f64 {
        if self.median == 0.0 {
            return 0.0;
        }
        // A median that is next to nothing must not make the width infinite.
        ((self.high - self.low) / self.median.abs()).min(f64::MAX)
    }
}

/// The median; `None` of nothing and of anything infinite or undefined.
pub fn median(values: &[f64]) -> Option<f64> {
    median_of_sorted(&sorted_if_finite(values)?)
}

/// Of values in ascending order.
pub(super) fn median_of_sorted(sorted: &[f64]) -> Option<f64> {
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[middle]),
        // Halved before the sum, so that two large values do not overflow.
        _ => Some(sorted[middle - 1] / 2.0 + sorted[middle] / 2.0),
    }
}

/// Median and interval of some repetitions; `None` of nothing and of anything infinite or
/// undefined.
pub fn estimate(values: &[f64]) -> Option<Estimate> {
    estimate_of_sorted(&sorted_if_finite(values)?)
}

/// Of finite values in ascending order.
pub(super) fn estimate_of_sorted(sorted: &[f64]) -> Option<Estimate> {
    let median = median_of_sorted(sorted)?;
    let (low, high, kind) = if sorted.len() < BOOTSTRAP_FROM {
        (sorted[0], sorted[sorted.len() - 1], IntervalKind::Range(sorted.len()))
    } else {
        let (low, high) = MedianDistribution::of_sorted(sorted).interval()?;
        (low.min(median), high.max(median), IntervalKind::Bootstrap95)
    };
    Some(Estimate { median, low, high, kind })
}

fn sorted_if_finite(values: &[f64]) -> Option<Vec<f64>> {
    if values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    Some(sorted)
}
