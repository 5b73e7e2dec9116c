//! Percentiles, only where the sample reaches.
//!
//! The 99.9 % latency of 2,000 requests is decided by its two slowest; measured again it is
//! another number. So a quantile is given only when at least 10 values are expected
//! beyond it. The number beyond is binomial, nearly Poisson, so with 10 its standard deviation is
//! √10, and the point named 99.9 % really cuts off 0.1 % give or take a third. Ten is also the
//! textbooks' mark from which a binomial count is near a normal one (n · p ≥ 10), and from 3.7 on
//! (ln 40) an upper end of the interval exists at all.
//!
//! The interval is that of order statistics: two of the values themselves, free of any assumption
//! about their distribution. What it does assume is that requests are independent; requests
//! behind one another in a queue are not, and then the interval is too narrow.

use super::binomial::quantile_ranks;
use super::check::check_open_unit;
use super::error::StatsError;

/// Values that must be expected beyond a quantile.
const BEYOND: u64 = 10;

/// A quantile, or why there is none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Percentile {
    /// The sample supports it.
    Supported {
        /// The quantile of the sample.
        value: f64,
        /// Lower end of the 95 % interval.
        low: f64,
        /// Upper end of the 95 % interval.
        high: f64,
        /// Number of values.
        count: u64,
    },
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
            Self::Supported { value, .. } => Some(*value),
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

/// `at` gives the value of a rank from 1 to `count`.
pub(super) fn with_support(
    count: u64,
    needed: u64,
    q: f64,
    value: f64,
    at: impl Fn(u64) -> f64,
) -> Percentile {
    let unsupported = Percentile::Unsupported { have: count, needed };
    if count < needed {
        return unsupported;
    }
    match quantile_ranks(count, q) {
        (Some(low), Some(high)) => {
            Percentile::Supported { value, low: at(low), high: at(high), count }
        }
        _ => unsupported,
    }
}
