//! Latencies by the bin, as fio's json+ writes them: `{ "nanoseconds": requests, ... }`.
//!
//! Several runs are merged by adding their bins, and percentiles are read from the sum. The
//! average of two runs' percentiles is the percentile of nothing: of 1,000 requests at 1 ms and
//! 10 at 100 ms the 99 % latency is 1 ms, and the average of the two runs' is 50 ms.
//!
//! A bin's number stands for all requests in it; fio's bins are up to 1.6 % wide, and so exact
//! are the percentiles.
//!
//! The 99.9 % latency of 2,000 requests is decided by its two slowest; measured again it is
//! another number. So a quantile is given only when at least 10 values are expected
//! beyond it. The number beyond is binomial, nearly Poisson, so with 10 its standard deviation is
//! √10, and the point named 99.9 % really cuts off 0.1 % give or take a third.
//!
//! Deliberately absent: an interval from one sample. It would take requests for independent of each
//! other, and requests behind one another in a queue are not. How far a percentile scatters is seen over
//! repetitions.

use std::collections::BTreeMap;

/// Values that must be expected beyond a quantile.
const BEYOND: u64 = 10;
/// Fewest points of a cumulative curve.
const FEWEST_POINTS: usize = 4;

/// The number of requests for each latency.
///
/// Invariants: no bin is empty; the requests fit into 64 bits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Histogram {
    bins: BTreeMap<u64, u64>,
    total: u64,
}

/// A point of the cumulative distribution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CumulativePoint {
    /// The bin's value, in nanoseconds.
    pub value_ns: u64,
    /// The part of all requests, above 0 to 1, that took at most this long.
    pub at_most: f64,
}

impl Histogram {
    /// From bins of one or of several runs: value in nanoseconds and requests, in any order; bins of the
    /// same value add up and empty ones are left out. `None` when there are more requests than 64 bits
    /// count.
    pub fn from_bins(bins: impl IntoIterator<Item = (u64, u64)>) -> Option<Self> {
        let mut histogram = Self::default();
        for (value_ns, requests) in bins.into_iter().filter(|(_, requests)| *requests > 0) {
            histogram.total = histogram.total.checked_add(requests)?;
            *histogram.bins.entry(value_ns).or_default() += requests;
        }
        Some(histogram)
    }

    /// Value in nanoseconds and requests of each bin, ascending.
    pub fn bins(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.bins.iter().map(|(value, requests)| (*value, *requests))
    }

    /// Number of requests.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// True if there are no requests.
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// The fastest request's bin, in nanoseconds; `None` of nothing.
    pub fn min_ns(&self) -> Option<u64> {
        self.bins.first_key_value().map(|(value, _)| *value)
    }

    /// The slowest request's bin, in nanoseconds; `None` of nothing.
    pub fn max_ns(&self) -> Option<u64> {
        self.bins.last_key_value().map(|(value, _)| *value)
    }

    /// The q-quantile in nanoseconds: the first bin up to which q of all requests lie, which is also
    /// fio's rule. `None` when there are too few requests, and of a q that is not between 0 and 1.
    pub fn percentile(&self, q: f64) -> Option<f64> {
        if self.total < values_needed(q)? {
            return None;
        }
        let rank = round_up(self.total as f64 * q).clamp(1, self.total);
        let mut seen = 0;
        let mut bins = self.bins();
        let (value, _) = bins.find(|(_, requests)| {
            seen += requests;
            seen >= rank
        })?;
        Some(value as f64)
    }

    /// The cumulative distribution for a chart drawn in steps, thinned to at most `max_points`
    /// (no fewer than 4).
    ///
    /// Half of the points go to equal steps of the share of requests, half to equal steps of the
    /// logarithm of the latency, and a bin that enters no new step is left out. So the curve
    /// drawn is nowhere lower than the true one by 2 / `max_points` or more, and the long tail,
    /// which is a single step of the share, keeps its shape. The first and last bins stay.
    pub fn cumulative(&self, max_points: usize) -> Vec<CumulativePoint> {
        let max_points = max_points.max(FEWEST_POINTS);
        let share_steps = max_points.div_ceil(2);
        let thinning = self.bins.len() > max_points;
        let log = |value: u64| (value as f64 + 1.0).ln();
        let low = log(self.min_ns().unwrap_or(0));
        let width = (log(self.max_ns().unwrap_or(0)) - low).max(f64::MIN_POSITIVE);
        let step_of = |part: f64, steps: usize| ((part * steps as f64) as usize).min(steps - 1);
        let mut points = Vec::new();
        let (mut seen, mut last_step) = (0, None);
        for (value_ns, requests) in self.bins() {
            seen += requests;
            let at_most = seen as f64 / self.total as f64;
            let step = (
                step_of(at_most, share_steps),
                step_of((log(value_ns) - low) / width, max_points - share_steps),
            );
            if !thinning || last_step != Some(step) || seen == self.total {
                points.push(CumulativePoint { value_ns, at_most });
            }
            last_step = Some(step);
        }
        points
    }
}

/// Values needed for the q-quantile: 20 for the median, 1,000 for 99 %, 10,000 for 99.9 %. A low quantile
/// is the mirror image of a high one. `None` of a q that is not between 0 and 1.
pub fn values_needed(q: f64) -> Option<u64> {
    (q > 0.0 && q < 1.0).then(|| round_up(BEYOND as f64 / q.min(1.0 - q)))
}

/// Rounded up, but not for the last digits: 10 / (1 − 0.99) is 1000.0000000000009.
fn round_up(value: f64) -> u64 {
    (value - value * 1e-12).ceil() as u64
}
