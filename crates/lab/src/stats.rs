//! Medians, intervals, ratios. Pure.
//!
//! Every interval here is for the median. With six repetitions or more it is a 95 % percentile
//! bootstrap. With fewer no method gives 95 %: the median of the population lies outside the
//! range of n independent values with probability 2 · ½ⁿ, which is 25 % for three and 6.25 % for
//! five. So for fewer than six the interval is the range and is called that.
//!
//! Deliberately absent: means and standard deviations (a trial disturbed by a neighbour is an
//! outlier, not noise around a mean), and any averaging of percentiles.

use crate::rng::SplitMix64;

/// Repetitions from which an interval is a 95 % interval.
pub const BOOTSTRAP_FROM: usize = 6;
/// Resamples of a bootstrap.
const RESAMPLES: usize = 4000;
/// The bootstrap's seed, fixed so that a report rendered twice says the same.
const BOOTSTRAP_SEED: u64 = 0xb001;

/// What an interval is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntervalKind {
    /// Smallest and largest of this many repetitions.
    Range(usize),
    /// 95 %, by bootstrap.
    Bootstrap95,
}

/// The middle of some repetitions and where the true middle may lie.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The median.
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
        if self.median == 0.0 { 0.0 } else { (self.high - self.low) / self.median.abs() }
    }
}

/// The median; `None` of nothing.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    median_of_sorted(&sorted)
}

fn median_of_sorted(sorted: &[f64]) -> Option<f64> {
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[middle]),
        // Halved before the sum, so that two large values do not overflow.
        _ => Some(sorted[middle - 1] / 2.0 + sorted[middle] / 2.0),
    }
}

/// Median and interval of some repetitions; `None` of nothing.
pub fn estimate(values: &[f64]) -> Option<Estimate> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let median = median_of_sorted(&sorted)?;
    let (low, high, kind) = if sorted.len() < BOOTSTRAP_FROM {
        (sorted[0], sorted[sorted.len() - 1], IntervalKind::Range(sorted.len()))
    } else {
        let (low, high) = bootstrap_median(&sorted);
        (low.min(median), high.max(median), IntervalKind::Bootstrap95)
    };
    Some(Estimate { median, low, high, kind })
}

/// The 2.5 % and 97.5 % quantiles of the medians of resamples.
fn bootstrap_median(sorted: &[f64]) -> (f64, f64) {
    let mut rng = SplitMix64::new(BOOTSTRAP_SEED);
    let mut medians: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            // Indices are sorted instead of values: `sorted[i]` rises with i.
            let mut picks: Vec<usize> = sorted.iter().map(|_| rng.below(sorted.len())).collect();
            picks.sort_unstable();
            let resample: Vec<f64> = picks.into_iter().map(|index| sorted[index]).collect();
            median_of_sorted(&resample).unwrap_or(f64::NAN)
        })
        .collect();
    medians.sort_by(f64::total_cmp);
    (medians[RESAMPLES / 40], medians[RESAMPLES - 1 - RESAMPLES / 40])
}

/// A comparison with the baseline, in percent of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    /// 100 is equal, 200 is twice the baseline.
    pub percent: Estimate,
}

/// What a comparison says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The whole interval is above 100 %.
    Above,
    /// The whole interval is below 100 %.
    Below,
    /// The interval holds 100 %, or there is only one repetition.
    NotDistinguishable,
}

impl Ratio {
    /// What may be said.
    pub fn verdict(&self) -> Verdict {
        let alone = self.percent.kind == IntervalKind::Range(1);
        if alone || self.percent.holds(100.0) {
            Verdict::NotDistinguishable
        } else if self.percent.low > 100.0 {
            Verdict::Above
        } else {
            Verdict::Below
        }
    }
}

/// The ratio to the baseline, made in pairs: value and baseline of the same repetition, so that
/// what drifts between repetitions cancels out. Pairs with a baseline of 0 are left out.
pub fn compare(pairs: &[(f64, f64)]) -> Option<Ratio> {
    let percents: Vec<f64> = pairs
        .iter()
        .filter(|(_, baseline)| *baseline > 0.0)
        .map(|(value, baseline)| value / baseline * 100.0)
        .collect();
    estimate(&percents).map(|percent| Ratio { percent })
}

#[cfg(test)]
mod tests;
