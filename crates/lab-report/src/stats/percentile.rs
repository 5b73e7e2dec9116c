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

/// Values that must be expected beyond a quantile.
const BEYOND: u64 = 10;

/// Values needed for the q-quantile: 20 for the median, 1,000 for 99 %, 10,000 for 99.9 %. A low quantile
/// is the mirror image of a high one. `None` of a q that is not between 0 and 1.
pub fn values_needed(q: f64) -> Option<u64> {
    (q > 0.0 && q < 1.0).then(|| round_up(BEYOND as f64 / q.min(1.0 - q)))
}

/// Rounded up, but not for the last digits: 10 / (1 − 0.99) is 1000.0000000000009.
pub(super) fn round_up(value: f64) -> u64 {
    (value - value * 1e-12).ceil() as u64
}
