//! Counters of a member.

use serde::{Deserialize, Serialize};

use crate::{Latencies, figures};

figures! {
    /// Requests to a member since it was opened.
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
        /// Reads.
        pub reads: Latencies,
        /// Writes, discards and zeroes.
        pub writes: Latencies,
        /// Flushes.
        pub flushes: Latencies,
    }
}
