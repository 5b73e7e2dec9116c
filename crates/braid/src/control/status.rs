//! What a volume says of itself. This is the schema of `braid status --json`.

use serde::{Deserialize, Serialize};

/// Raised when a field changes its meaning or goes; new fields may come without.
pub(crate) const OUTPUT_VERSION: u32 = 1;

/// A volume: what it is, how it is, what it has done.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Status {
    pub(crate) output_version: u32,
    pub(crate) name: String,
    /// `online`, or `failing` when members answered with errors.
    pub(crate) state: String,
    /// Why, if it is not online.
    pub(crate) why: Option<String>,
    /// What to do next, if anything.
    pub(crate) next: Option<String>,
    pub(crate) stack: String,
    pub(crate) device: DeviceStatus,
    pub(crate) attached: Option<AttachedStatus>,
    pub(crate) nbd: Option<ExportStatus>,
    pub(crate) members: Vec<MemberStatus>,
    /// What is not as it should be, though it works.
    pub(crate) warnings: Vec<String>,
    pub(crate) pid: u32,
    pub(crate) uptime_seconds: u64,
    /// `uring` or `threads`.
    pub(crate) io: String,
    pub(crate) shards: usize,
    /// Processor time used by the volume's process, in nanoseconds.
    pub(crate) cpu_ns: u64,
}

/// The device that the stack makes. Sizes are in bytes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct DeviceStatus {
    pub(crate) size_bytes: u64,
    pub(crate) logical_block_bytes: u32,
    pub(crate) physical_block_bytes: u32,
    pub(crate) optimal_io_bytes: u32,
    pub(crate) read_only: bool,
    /// Contents end with the process.
    pub(crate) volatile: bool,
}

/// The block device of this machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct AttachedStatus {
    /// `fuse`.
    pub(crate) by: String,
    pub(crate) path: String,
    /// The folder of the file system below it.
    pub(crate) mount: String,
    pub(crate) reads: u64,
    pub(crate) writes: u64,
    pub(crate) flushes: u64,
    pub(crate) errors: u64,
    pub(crate) read_bytes: u64,
    pub(crate) written_bytes: u64,
}

/// The NBD export.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ExportStatus {
    pub(crate) uris: Vec<String>,
    pub(crate) connections: u64,
    pub(crate) connections_accepted: u64,
    pub(crate) connections_refused: u64,
    pub(crate) protocol_errors: u64,
    pub(crate) requests: u64,
    pub(crate) replies: u64,
    pub(crate) errors: u64,
    pub(crate) receives: u64,
    pub(crate) sends: u64,
    pub(crate) requests_per_receive: f64,
    pub(crate) replies_per_send: f64,
    pub(crate) read_bytes: u64,
    pub(crate) written_bytes: u64,
}

/// A leaf of the stack.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct MemberStatus {
    /// As the stack spells it.
    pub(crate) member: String,
    pub(crate) size_bytes: u64,
    /// Whether the page cache is bypassed; `null` where there is none.
    pub(crate) direct: Option<bool>,
    /// Reads, writes and flushes that failed.
    pub(crate) failures: u64,
    pub(crate) last_failure: Option<String>,
}
