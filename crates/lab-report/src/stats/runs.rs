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

use super::effect::{Effect, LEAST_NOISE, ends, mean, mean_and_deviation};
use super::student::Student;

/// The logarithms of a number's repetitions in the first run and in the second.
pub type BothRuns = [Vec<f64>; 2];

/// Difference of equal subjects from run to run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drift {
    /// Standard deviation of a logarithm.
    pub deviation: f64,
    /// Degrees of freedom with which it is known.
    pub freedom: f64,
}

impl Drift {
    /// By things that are the same in both runs: what their changes scatter by beyond the noise of their
    /// repetitions. Twice, since what is compared with them drifts, too. `None` of nothing.
    pub fn of_the_same(same: &[&BothRuns]) -> Option<Self> {
        let moved = same.iter().filter_map(|runs| change_of(runs));
        let (changes, noises): (Vec<f64>, Vec<f64>) = moved.unzip();
        let (_, all) = mean_and_deviation(&changes)?;
        let noise = mean(&noises.iter().map(|noise| noise.powi(2)).collect::<Vec<f64>>());
        let deviation = (2.0 * (all.powi(2) - noise).max(0.0)).sqrt();
        Some(Self { deviation, freedom: (changes.len() - 1) as f64 })
    }
}

impl Effect {
    /// The second run over the first. The p-value is one-sided: how often a change up to `threshold` (0.05
    /// for 5 %) would look like this one, or larger. Where a run has one repetition there is no interval.
    /// `None` of nothing, and of anything not finite.
    pub fn between_runs(runs: &BothRuns, drift: Drift, threshold: f64) -> Option<Self> {
        let (change, noise) = change_of(runs)?;
        let noise = noise.max(LEAST_NOISE);
        let pairs = runs[0].len().min(runs[1].len());
        let error = noise.hypot(drift.deviation);
        let parts = noise.powi(4) / (pairs - 1) as f64 + drift.deviation.powi(4) / drift.freedom;
        let (ratio, log_sd) = (change.exp(), noise * (pairs as f64).sqrt());
        let Some(t) = Student::new(error.powi(4) / parts).filter(|_| pairs > 1) else {
            return Some(Self { ratio, low: ratio, high: ratio, pairs, log_sd, p_value: 1.0 });
        };
        let (low, high) = ends(change, error, &t);
        let beyond = change.abs() - threshold.ln_1p();
        let p_value = t.above(beyond / error).clamp(f64::MIN_POSITIVE, 1.0);
        Some(Self { ratio, low, high, pairs, log_sd, p_value })
    }
}

/// The logarithm of the second run over the first, and its standard error by the repetitions.
fn change_of([first, second]: &BothRuns) -> Option<(f64, f64)> {
    let (mean_1, sd_1) = mean_and_deviation(first)?;
    let (mean_2, sd_2) = mean_and_deviation(second)?;
    let error = |deviation: f64, all: &[f64]| deviation / (all.len() as f64).sqrt();
    Some((mean_2 - mean_1, error(sd_1, first).hypot(error(sd_2, second))))
}
