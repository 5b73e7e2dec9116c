//! Percentiles, only where the sample reaches.
//!
//! The 99.9 % latency of 2,000 requests is decided by its two slowest; measured again it is
//! another number. So a quantile is given only when at least 10 values are expected
//! beyond it. The number beyond is binomial, nearly Poisson, so with 10 its standard deviation is
//! √10, and the point named 99.9 % really cuts off 0.1 % give or take a third. Ten is also the
//! textbooks' mark from which a binomial count is near a normal one (n · p ≥ 10).
//!
//! Deliberately absent: an interval from one sample. It would take requests for independent of each
//! other, and requests behind one another in a queue are not: of two identical subjects such
//! intervals were disjoint in 27 of 30 runs. How far a percentile scatters is seen over repetitions.

use super::StatsError;
use super::check::check_open_unit;

/// Values that must be expected beyond a quantile.
const BEYOND: u64 = 10;

/// A quantile, or why there is none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Percentile {
    /// The sample supports it.
    Supported(f64),
    /// It does not: too few values.
    Unsupported {
        /// How many there are.
        have: u64,
        /// How many it takes.
        needed: u64,
    },
}

impl Percentile {
    /// The quantile, if the sample supports it.
    pub fn value(&self) -> Option<f64> {
        match self {
            Self::Supported(value) => Some(*value),
            Self::Unsupported { .. } => None,
        }
    }
}

/// Values needed for the q-quantile, 0 < q < 1: 20 for the median, 1,000 for 99 %, 10,000 for
/// 99.9 %. A low quantile is the mirror image of a high one.
///
/// # Errors
///
/// For a q outside the range.
pub fn values_needed(q: f64) -> Result<u64, StatsError> {
    check_open_unit("quantile", q)?;
    Ok(round_up(BEYOND as f64 / q.min(1.0 - q)))
}

/// Rounded up, but not for the last digits: 10 / (1 − 0.99) is 1000.0000000000009.
pub(super) fn round_up(value: f64) -> u64 {
    (value - value * 1e-12).ceil() as u64
}
