//! The status of the leaves of a volume's stack: a part of the schema of `braid status --json`.

use braid_status::figures;
use serde::{Deserialize, Serialize};

use crate::disk_status::DiskStatus;

figures! {
    /// A leaf of the stack.
    #[derive(Clone, Debug, Serialize, Deserialize)]
    pub struct MemberStatus {
        /// As the stack spells it.
        pub member: String,
        /// Size of the member.
        pub size_bytes: u64 = Gauge "braid_member_size_bytes",
        /// Whether the page cache is bypassed; `null` where there is none.
        pub direct: Option<bool>,
        /// Reads, writes and flushes that failed.
        pub failures: u64 = Counter "braid_member_failures_total",
        /// The error of the last of them.
        pub last_failure: Option<String>,
        /// Why what it holds goes with the volume: its file was deleted, or another one lies at its path.
        #[serde(default)]
        pub gone: Option<String>,
        /// The error of the first flush that failed: what was written before may not be on the member,
        /// and every flush fails until the volume is brought up anew.
        #[serde(default)]
        pub lost: Option<String>,
        /// What it was asked for, and how long that took.
        #[serde(default)]
        pub io: MemberIo,
        /// Why it is an outlier among its siblings, if it is.
        #[serde(default)]
        pub slow: Option<String>,
        /// The disk below, where somebody looked at it: `braid status NAME`, `braid monitor`.
        #[serde(default)]
        pub disk: Option<DiskStatus>,
    }
}

figures! {
    /// What a member was asked for since it was opened.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default)]
    pub struct MemberIo {
        /// Bytes read from the member.
        pub read_bytes: u64 = Counter "braid_member_read_bytes_total",
        /// Bytes written to the member.
        pub written_bytes: u64 = Counter "braid_member_written_bytes_total",
        /// Requests that the member has not answered yet.
        pub in_flight: u64 = Gauge "braid_member_in_flight",
        /// Requests that were answered with an error at their deadline, and that the medium still has: until it is
        /// through with them, it gets no other request.
        pub overdue: u64 = Gauge "braid_member_overdue",
        /// Requests that were answered with an error at their deadline, or because others had been.
        pub timeouts: u64 = Counter "braid_member_timeouts_total",
        /// Of reads.
        pub reads: Latencies,
        /// Of writes and discards.
        pub writes: Latencies,
        /// Of flushes.
        pub flushes: Latencies,
    }
}

/// How many requests took how long: a histogram of powers of two.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Latencies {
    /// Requests.
    pub count: u64,
    /// Their times, added up.
    pub sum_us: u64,
    /// Of these, those that took less than 2^i µs and no less than half of that, for i from 0;
    /// the last has also what took longer. Buckets at the end that are 0 may be left out.
    pub buckets: Vec<u64>,
}

impl Latencies {
    /// These and `other` together.
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

    /// Below which `share` of the requests are, in µs, to a power of two; none before the first.
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
