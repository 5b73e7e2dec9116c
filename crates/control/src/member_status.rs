//! The status of the leaves of a volume's stack: a part of the schema of `braid status --json`.

use braid_status::{MemberIo, figures};
use serde::{Deserialize, Serialize};

use crate::disk_status::DiskStatus;
use crate::remote_status::RemoteStatus;

figures! {
    /// A leaf of the stack.
    #[derive(Clone, Debug, Serialize, Deserialize)]
    pub struct MemberStatus {
        /// As the stack spells it.
        pub member: String,
        /// Size of the member.
        pub size_bytes: u64 = Gauge "braid_member_size_bytes",
        /// Requests bypass the page cache; `null` for a member without one.
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
        /// Requests, and their latencies.
        #[serde(default)]
        pub io: MemberIo,
        /// Why it is an outlier among its siblings, if it is.
        #[serde(default)]
        pub slow: Option<String>,
        /// The disk below the member, if the caller of the status asked the disk: `braid status NAME`, `braid monitor`.
        #[serde(default)]
        pub disk: Option<DiskStatus>,
        /// The connections of a remote member.
        #[serde(default)]
        pub remote: Option<RemoteStatus>,
    }
}
