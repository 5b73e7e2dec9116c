//! Latencies of requests.

use serde::{Deserialize, Serialize};

/// Numbers of requests by latency: a histogram of powers of two.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Latencies {
    /// Requests.
    pub count: u64,
    /// Their times, added up.
    pub sum_us: u64,
    /// Numbers of requests that took less than 2^i µs and no less than half of that, for i from 0;
    /// the last bucket includes longer ones. Buckets at the end that are 0 may be left out.
    pub buckets: Vec<u64>,
}

impl Latencies {
    /// Returns the sum with `other`.
    #[must_use]
    pub fn plus(&self, other: &Latencies) -> Latencies {
        let at = |of: &Latencies, index| of.buckets.get(index).copied().unwrap_or(0);
        let len = self.buckets.len().max(other.buckets.len());
        Latencies {
            count: self.count + other.count,
            sum_us: self.sum_us + other.sum_us,
            buckets: (0..len).map(|index| at(self, index) + at(other, index)).collect(),
        }
    }

    /// Returns the latencies of requests that completed after `before` was read.
    #[must_use]
    pub fn since(&self, before: &Latencies) -> Latencies {
        let earlier = before.buckets.iter().copied().chain(std::iter::repeat(0));
        let buckets = self.buckets.iter().zip(earlier).map(|(now, then)| now.saturating_sub(then));
        Latencies {
            count: self.count.saturating_sub(before.count),
            sum_us: self.sum_us.saturating_sub(before.sum_us),
            buckets: buckets.collect(),
        }
    }

    /// Returns the power of two, in µs, below which `share` of the requests are; `None` before the first request.
    pub fn quantile_us(&self, share: f64) -> Option<u64> {
        let all: u64 = self.buckets.iter().sum();
        let wanted = (share.clamp(0.0, 1.0) * all as f64).ceil();
        let mut seen = 0;
        let found = self.buckets.iter().position(|count| {
            seen += count;
            *count > 0 && seen as f64 >= wanted
        })?;
        Some(1 << found.min(63))
    }
}
