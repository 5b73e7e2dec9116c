//! A number of one run against the same number of another. Repetitions of two runs have nothing in common,
//! so there are no pairs; and runs of the same thing differ by more than their repetitions do, so the drift
//! from run to run is a part of the error.
//!
//! ```text
//! t = (|ln ratio| - ln(1 + threshold)) / error      error² = sd₁²/n₁ + sd₂²/n₂ + drift²
//! ```
//!
//! The degrees of freedom are Welch's and Satterthwaite's: the part that is larger says how well the sum
//! is known.

use statrs::distribution::ContinuousCDF;

use super::effect::{Effect, LEAST_NOISE, ends, mean_and_deviation, student};

/// How far equal things move from run to run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drift {
    /// Standard deviation of a logarithm.
    pub deviation: f64,
    /// Degrees of freedom with which it is known.
    pub freedom: f64,
}

impl Effect {
    /// The second over the first, from the logarithms of their repetitions. The p-value is one-sided: how
    /// often a change up to `threshold` (0.05 for 5 %) would look like this one, or larger. Where a
    /// side has one repetition there is no interval. `None` of nothing, and of anything not finite.
    pub fn between_runs(
        first: &[f64],
        second: &[f64],
        drift: Drift,
        threshold: f64,
    ) -> Option<Self> {
        let ((mean_1, sd_1), (mean_2, sd_2)) =
            (mean_and_deviation(first)?, mean_and_deviation(second)?);
        let change = mean_2 - mean_1;
        let pairs = first.len().min(second.len());
        let noise = standard_error(sd_1, first).hypot(standard_error(sd_2, second));
        let noise = noise.max(LEAST_NOISE);
        let error = noise.hypot(drift.deviation);
        let parts = noise.powi(4) / (pairs - 1) as f64 + drift.deviation.powi(4) / drift.freedom;
        let (ratio, log_sd) = (change.exp(), sd_1.hypot(sd_2));
        let Some(t) = student(error.powi(4) / parts).filter(|_| pairs > 1) else {
            return Some(Self { ratio, low: ratio, high: ratio, pairs, log_sd, p_value: 1.0 });
        };
        let (low, high) = ends(change, error, &t);
        let beyond = change.abs() - threshold.ln_1p();
        let p_value = t.sf(beyond / error).clamp(f64::MIN_POSITIVE, 1.0);
        Some(Self { ratio, low, high, pairs, log_sd, p_value })
    }
}

/// Of the mean of some repetitions with this deviation.
pub fn standard_error(deviation: f64, repetitions: &[f64]) -> f64 {
    deviation / (repetitions.len() as f64).sqrt()
}
