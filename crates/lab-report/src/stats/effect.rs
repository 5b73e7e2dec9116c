//! Ratio of the speeds of two subjects, in pairs of the same repetition.
//!
//! ```text
//! repetition     1      2      3      4        ln of each ratio ── mean, standard deviation
//! subject        205    198    201    196           │
//! baseline       101    99     102    97            └──> e^mean, and e^(mean ± t · sd / √n)
//! ```
//!
//! The logarithm makes half and twice equally far from 1, and the noise of storage, which scales with
//! the rate, alike at all rates. The interval and the test are Student's for the mean of the
//! logarithms (1908). A drift between repetitions hits both sides of a pair and cancels out.
//!
//! Invariants: every number is finite; `low` ≤ `ratio` ≤ `high`; the p-value is at most 5 % exactly
//! where the 95 % interval does not hold 1. One pair has no interval, and a p-value of 1.
//!
//! Deliberately absent: ranks and sign flips (of n pairs their p-value is never below 2/2ⁿ, so that five
//! prove nothing, whatever the difference), and any test that is chosen after the numbers were seen.

use std::collections::BTreeMap;

use super::student::Student;

/// One value for each repetition that was measured.
pub type ByRepetition = BTreeMap<u32, f64>;

/// Values outside are no measurement of storage: what is below has no logarithm, and products of
/// what is within stay finite.
pub const SANE: std::ops::Range<f64> = 1e-90..1e90;
/// Standard deviation of a logarithm below which no noise is believed. Tools print three or four
/// digits, clocks tick, and three equal numbers do not prove that the fourth is equal, too.
pub(super) const LEAST_NOISE: f64 = 0.001;
/// Ends of intervals are no further out than e^±690, which is 1e±299.
const LARGEST_LOG: f64 = 690.0;
/// Part of a distribution outside a 95 % interval.
const OUTSIDE: f64 = 0.05;
/// The chance with which a planned comparison is to find what is there.
const POWER: f64 = 0.8;
/// More repetitions than this are not recommended to anybody.
const MOST_PAIRS: usize = 200;

/// Ratio of two speeds, and its uncertainty.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effect {
    /// The geometric mean of the repetitions' ratios: 2 is twice as fast.
    pub ratio: f64,
    /// Lower end of the 95 % interval; the ratio itself of one pair.
    pub low: f64,
    /// Upper end of the 95 % interval; the ratio itself of one pair.
    pub high: f64,
    /// Repetitions measured on both sides.
    pub pairs: usize,
    /// Standard deviation of the logarithms of the ratios; 0 of one pair.
    pub log_sd: f64,
    /// Probability that equal subjects differ so much or more, two-sided, above 0 and at most 1.
    pub p_value: f64,
}

impl Effect {
    /// A subject against another, by repetitions that both have. `None` without such a repetition,
    /// and when a value is not above 0 or not finite.
    pub fn of(subject: &ByRepetition, other: &ByRepetition) -> Option<Self> {
        let pairs =
            subject.iter().filter_map(|(repetition, a)| Some((*a, *other.get(repetition)?)));
        let ratios: Option<Vec<f64>> = pairs
            .map(|(a, b)| (SANE.contains(&a) && SANE.contains(&b)).then(|| (a / b).ln()))
            .collect();
        Self::of_logarithms(&ratios?)
    }

    /// From the logarithms of the repetitions' ratios. `None` of nothing, and when one is not finite.
    pub fn of_logarithms(logarithms: &[f64]) -> Option<Self> {
        let (mean, log_sd) = mean_and_deviation(logarithms)?;
        let pairs = logarithms.len();
        let ratio = mean.exp();
        let Some(t) = Student::new((pairs - 1) as f64) else {
            return Some(Self { ratio, low: ratio, high: ratio, pairs, log_sd, p_value: 1.0 });
        };
        let error = log_sd.max(LEAST_NOISE) / (pairs as f64).sqrt();
        let p_value = (2.0 * t.above((mean / error).abs())).clamp(f64::MIN_POSITIVE, 1.0);
        let (low, high) = ends(mean, error, &t);
        Some(Self { ratio, low, high, pairs, log_sd, p_value })
    }

    /// Returns true if there is an interval.
    pub fn has_interval(&self) -> bool {
        self.low < self.high
    }

    /// The same of two numbers that models predicted and that may be off by so much, as a logarithm: the
    /// interval is that, and the two are told apart (with a p-value of next to 0) where it does not hold
    /// 1. How many such pairs are compared does not matter: a model's error is no chance.
    #[must_use]
    pub(crate) fn of_models(self, log_error: f64) -> Self {
        let reach = log_error.exp();
        let is_told = self.ratio.ln().abs() > log_error;
        let p_value = if is_told { f64::MIN_POSITIVE } else { 1.0 };
        Self { low: self.ratio / reach, high: self.ratio * reach, p_value, ..self }
    }

    /// Returns the greatest distance from equality within the interval: 0.03 for "within 3 %". `None` of
    /// one pair.
    pub fn at_most_apart(&self) -> Option<f64> {
        self.has_interval().then(|| self.high.max(1.0 / self.low) - 1.0)
    }

    /// Repetitions after which, with a chance of 80 %, a difference of `factor` (above 1, or below) is told
    /// apart at a level of significance and is seen to be larger than `least` (a logarithm, 0 or more), if
    /// repetitions scatter as these do. `None` of one pair, and when it takes more than 200.
    pub fn pairs_to_tell(&self, factor: f64, least: f64, level: f64) -> Option<usize> {
        let noise = self.log_sd.max(LEAST_NOISE);
        let distance = factor.ln().abs();
        (2..=MOST_PAIRS).filter(|_| self.pairs > 1).find(|pairs| {
            Student::new((pairs - 1) as f64).is_some_and(|t| {
                let errors = |distance: f64| distance / noise * (*pairs as f64).sqrt();
                let beyond = t.quantile_above(1.0 - POWER);
                errors(distance) >= t.quantile_above(level / 2.0) + beyond
                    && errors(distance - least) >= beyond
            })
        })
    }
}

/// The ends of the 95 % interval of e^mean.
pub(super) fn ends(mean: f64, error: f64, t: &Student) -> (f64, f64) {
    let reach = t.quantile_above(OUTSIDE / 2.0) * error;
    // Of two wild repetitions an end may be beyond what a number holds.
    let end = |logarithm: f64| logarithm.clamp(-LARGEST_LOG, LARGEST_LOG).exp();
    (end(mean - reach).min(mean.exp()), end(mean + reach).max(mean.exp()))
}

/// Mean and sample standard deviation (0 of one value); `None` of nothing and of anything not finite.
pub(super) fn mean_and_deviation(values: &[f64]) -> Option<(f64, f64)> {
    if values.is_empty() || !values.iter().all(|value| value.is_finite()) {
        return None;
    }
    let n = values.len() as f64;
    let mean = mean(values);
    // Two passes: Σ(x − mean)² does not cancel as Σx² − n·mean² does.
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let deviation = if values.len() > 1 { (squares / (n - 1.0)).sqrt() } else { 0.0 };
    Some((mean, deviation))
}

/// Returns the scatter of repetitions: the standard deviation of their logarithms, which is the coefficient
/// of variation for small ones. `None` of fewer than two and of values not above 0.
pub fn scatter(values: &[f64]) -> Option<f64> {
    let logarithm = |value: &f64| SANE.contains(value).then(|| value.ln());
    let logarithms: Vec<f64> = values.iter().map(logarithm).collect::<Option<_>>()?;
    let (_, deviation) = mean_and_deviation(&logarithms)?;
    (values.len() > 1).then_some(deviation)
}

/// The p-values with all of them counted: Holm's step-down method (1979). The i-th smallest of m is
/// multiplied by m − i + 1, and none is below the one before it.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut least: f64 = 0.0;
    for (place, index) in order.into_iter().enumerate() {
        least = least.max(p_values[index] * (p_values.len() - place) as f64).min(1.0);
        adjusted[index] = least;
    }
    adjusted
}

/// Combines several numbers in each repetition that all of them have. A part of them is not combined: a mean
/// over fewer disks, or over fewer kinds of work, is another number.
pub fn together(all: &[ByRepetition], mean: fn(&[f64]) -> f64) -> ByRepetition {
    let repetitions = all.first().into_iter().flat_map(BTreeMap::keys);
    let in_one = |repetition: &u32| {
        let values: Option<Vec<f64>> = all.iter().map(|one| one.get(repetition).copied()).collect();
        Some((*repetition, mean(&values?)))
    };
    repetitions.filter_map(in_one).collect()
}

/// The mean of at least one number.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The geometric mean of at least one number above 0: none weighs more for being larger.
pub fn geometric_mean(values: &[f64]) -> f64 {
    (values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64).exp()
}
