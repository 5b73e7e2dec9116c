//! Ratios of what was measured in turn, and how far they can be trusted.
//!
//! Each round measures all subjects once, so the ratio is taken within a round: what the machine
//! does for others lasts longer than a round, and cancels. The figure is the median over the
//! rounds, its interval the 95 % percentile bootstrap of that median with a fixed seed. With few
//! rounds this is nearly their range.

use std::fmt;

use braid_seed::Rng;

const RESAMPLES: usize = 4000;

/// A median and its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Median over the rounds.
    pub median: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl Estimate {
    /// The estimate from one figure for each round.
    ///
    /// # Panics
    /// If there is none.
    pub fn of(samples: &[f64]) -> Estimate {
        let mut rng = Rng::new(samples.len() as u64);
        let mut medians: Vec<f64> = (0..RESAMPLES)
            .map(|_| {
                let draw = |_| samples[rng.below(samples.len() as u64) as usize];
                median(&mut samples.iter().map(draw).collect::<Vec<f64>>())
            })
            .collect();
        medians.sort_by(f64::total_cmp);
        Estimate {
            median: median(&mut samples.to_vec()),
            low: medians[RESAMPLES / 40],
            high: medians[RESAMPLES - 1 - RESAMPLES / 40],
        }
    }

    /// The estimate of the ratio of two figures for each round.
    ///
    /// # Panics
    /// If there are no figures, or not as many of one as of the other.
    pub fn of_ratio(numerators: &[f64], denominators: &[f64]) -> Estimate {
        assert_eq!(numerators.len(), denominators.len(), "one of each a round");
        let ratios: Vec<f64> = numerators.iter().zip(denominators).map(|(a, b)| a / b).collect();
        Estimate::of(&ratios)
    }
}

impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(2);
        let Estimate { median, low, high } = self;
        write!(f, "{median:.digits$} [{low:.digits$}, {high:.digits$}]")
    }
}

/// The target of a ratio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target {
    /// No more than this.
    AtMost(f64),
    /// No less than this.
    AtLeast(f64),
    /// Only reported.
    None,
}

impl Target {
    /// True if the median meets it; `None` if there is no target.
    pub fn is_met(self, estimate: Estimate) -> Option<bool> {
        match self {
            Target::AtMost(bound) => Some(estimate.median <= bound),
            Target::AtLeast(bound) => Some(estimate.median >= bound),
            Target::None => None,
        }
    }

    /// "met", "missed" or nothing.
    pub fn verdict(self, estimate: Estimate) -> String {
        match self.is_met(estimate) {
            Some(true) => "met".to_owned(),
            Some(false) => "MISSED".to_owned(),
            None => String::new(),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::AtMost(bound) => write!(f, "<= {bound}"),
            Target::AtLeast(bound) => write!(f, ">= {bound}"),
            Target::None => Ok(()),
        }
    }
}

/// The middle of `values`, which it sorts.
///
/// # Panics
/// If there are none.
pub fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() % 2 {
        1 => values[middle],
        _ => (values[middle - 1] + values[middle]) / 2.0,
    }
}

/// The least of `values` that is not below `share` of them, which it sorts: 0.99 for the 99th
/// percentile.
///
/// # Panics
/// If there are none.
pub fn percentile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let rank = (values.len() as f64 * share).ceil() as usize;
    values[rank.clamp(1, values.len()) - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disturbance_that_lasts_a_round_cancels() {
        // The third round found the machine twice as slow.
        let (ours, theirs) = ([1.0, 1.1, 2.0, 1.0, 1.0], [2.0, 2.2, 4.0, 2.0, 2.0]);
        let ratio = Estimate::of_ratio(&ours, &theirs);
        assert_eq!(ratio, Estimate { median: 0.5, low: 0.5, high: 0.5 });
    }

    #[test]
    fn the_interval_lies_around_the_median_and_within_the_range() {
        let estimate = Estimate::of(&[5.0, 1.0, 3.0, 2.0, 4.0]);
        assert_eq!(estimate.median, 3.0);
        assert!(estimate.low >= 1.0 && estimate.low < 3.0);
        assert!(estimate.high <= 5.0 && estimate.high > 3.0);
        assert_eq!(median(&mut [1.0, 2.0]), 1.5);
    }

    #[test]
    fn as_many_values_are_at_most_the_percentile() {
        let mut values: Vec<f64> = (1..=200).rev().map(f64::from).collect();
        assert_eq!(percentile(&mut values, 0.99), 198.0);
        assert_eq!(percentile(&mut values, 0.0), 1.0);
        assert_eq!(percentile(&mut [7.0], 0.99), 7.0);
    }

    #[test]
    fn a_target_is_held_against_the_median() {
        let estimate = Estimate { median: 0.65, low: 0.6, high: 0.7 };
        assert_eq!(Target::AtMost(0.65).is_met(estimate), Some(true));
        assert_eq!(Target::AtLeast(0.7).verdict(estimate), "MISSED");
        assert_eq!(Target::None.is_met(estimate), None);
    }
}
