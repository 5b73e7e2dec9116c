//! The status of a volume. This is the schema of `braid status --json`.

use braid_status::{Counters as _, ExportCounts, figures};
use serde::{Deserialize, Serialize};

use crate::array_status::ArrayStatus;
use crate::cache_status::CacheStatus;
use crate::export_status::{ClientIo, ExportStatus};
use crate::job::Job;
use crate::member_status::MemberStatus;

/// Raised when a field changes its meaning or goes; new fields may come without.
pub const OUTPUT_VERSION: u32 = 2;

figures! {
    /// A volume: what it is, how it is, what it has done.
    #[derive(Clone, Debug, Serialize, Deserialize)]
    pub struct Status {
        /// [`OUTPUT_VERSION`].
        pub output_version: u32,
        /// The volume's name.
        pub name: String,
        /// `online`; `resyncing` while copies or parity are made to fit; `degraded` when copies are missing;
        /// `failing` when members answered with errors that nothing makes up for, or bytes can be read from no
        /// member; `failed` when nothing can be written any more; `stalled` when what serves does not answer.
        pub state: String,
        /// Why, if it is not online.
        pub why: Option<String>,
        /// The next command, if there is one.
        pub next: Option<String>,
        /// The stack, as an operator types it.
        pub stack: String,
        /// The device that the stack makes.
        pub device: DeviceStatus,
        /// The ways by which clients reach the volume.
        #[serde(default)]
        pub exports: Vec<ExportStatus>,
        /// The entry of `exports` that is a block device of this machine, for programs that know no list.
        #[serde(default)]
        pub attached: Option<ExportStatus>,
        /// The entry of `exports` over NBD, for programs that know no list.
        #[serde(default)]
        pub nbd: Option<ExportStatus>,
        /// In the order of the stack.
        pub members: Vec<MemberStatus>,
        /// The arrays that keep copies, and those of other levels that have superblocks.
        #[serde(default)]
        pub arrays: Vec<ArrayStatus>,
        /// Caches of the stack, the outermost first.
        #[serde(default)]
        pub caches: Vec<CacheStatus>,
        /// Long orders for the volume as a whole that are carried out, and the last ones that ended, the oldest first.
        #[serde(default)]
        pub jobs: Vec<Job>,
        /// RAM disks of the stack.
        #[serde(default)]
        pub rams: Vec<RamStatus>,
        /// The recording of client requests, if there is one.
        #[serde(default)]
        pub trace: Option<TraceStatus>,
        /// Memory for content that the volume may take: sizes of RAM disks, models, caches.
        #[serde(default)]
        pub promised_bytes: u64 = Gauge "braid_volume_promised_bytes",
        /// Policy for a member that comes back: `auto`, `ask`, `never`; none for a volume without
        /// arrays that take members in.
        #[serde(default)]
        pub re_add: Option<String>,
        /// Volumes of one group share their spares.
        #[serde(default)]
        pub spare_group: Option<String>,
        /// Faults that do not stop the volume.
        pub warnings: Vec<String>,
        /// The volume's process.
        pub pid: u32,
        /// The version of the program that serves; empty of one that did not say it yet.
        #[serde(default)]
        pub version: String,
        /// The file of the program was replaced or removed since the start.
        #[serde(default)]
        pub program_replaced: bool,
        /// Memory that the process has in RAM, in bytes (`VmRSS` in `/proc/PID/status`).
        #[serde(default)]
        pub memory_bytes: u64 = Gauge "braid_volume_memory_bytes",
        /// Memory of the process that is never swapped out, in bytes (`VmLck`).
        #[serde(default)]
        pub memory_locked_bytes: u64 = Gauge "braid_volume_memory_locked_bytes",
        /// Memory that serving keeps for itself also while it is idle, in bytes: buffers for the longest requests, heap for
        /// as many requests as the block device has at once, and a reserve for members that do not answer.
        #[serde(default)]
        pub memory_kept_bytes: u64 = Gauge "braid_volume_memory_kept_bytes",
        /// The most memory that serving takes under load, in bytes, beside the content of RAM disks and caches and the
        /// program: `--memory` bounds it.
        #[serde(default)]
        pub memory_most_bytes: u64 = Gauge "braid_volume_memory_most_bytes",
        /// Time since the volume was brought up.
        pub uptime_seconds: u64 = Gauge "braid_volume_uptime_seconds",
        /// `uring` or `threads`.
        pub io: String,
        /// Threads that serve.
        pub shards: usize = Gauge "braid_volume_shards",
        /// Page faults of the threads that serve, since they began to: each may have had to wait for
        /// memory. None are expected, but for RAM disks and after members were taken in.
        #[serde(default)]
        pub page_faults: u64 = Counter "braid_volume_page_faults_total",
        /// Processor time of the volume's process.
        pub cpu_ns: u64 = Counter "braid_volume_cpu_seconds_total",
    }
}

figures! {
    /// The device that the stack makes. Sizes are in bytes.
    #[derive(Clone, Debug, Serialize, Deserialize)]
    pub struct DeviceStatus {
        /// Size of the volume's device.
        pub size_bytes: u64 = Gauge "braid_volume_size_bytes",
        /// The least that is read or written.
        pub logical_block_bytes: u32,
        /// Size of the smallest write that needs no read.
        pub physical_block_bytes: u32,
        /// Best size of one write: a stripe.
        pub optimal_io_bytes: u32,
        /// Nothing is ever written.
        pub read_only: bool = Gauge "braid_volume_read_only",
        /// Contents end with the process.
        pub volatile: bool,
        /// Writes of clients are refused until the volume is unlocked.
        #[serde(default)]
        pub locked: bool = Gauge "braid_volume_locked",
    }
}

figures! {
    /// A trace that is recorded.
    #[derive(Clone, Debug, Serialize, Deserialize)]
    pub struct TraceStatus {
        /// The file.
        pub path: String,
        /// It gets no larger.
        pub size_limit_bytes: u64,
        /// In bytes.
        pub size_bytes: u64,
        /// Requests in the trace, each a line.
        pub requests: u64 = Counter "braid_trace_requests_total",
        /// Requests that are not: the file could not be written as fast, was full, or failed.
        pub dropped: u64 = Counter "braid_trace_dropped_total",
        /// Why nothing is recorded any more.
        pub stopped: Option<String>,
    }
}

figures! {
    /// A RAM disk.
    #[derive(Clone, Debug, Serialize, Deserialize)]
    pub struct RamStatus {
        /// As it is written in the stack.
        pub ram: String,
        /// Size of the RAM disk.
        pub size_bytes: u64 = Gauge "braid_ram_size_bytes",
        /// Greatest size that the RAM disk can be resized to while it is up.
        pub most_bytes: u64,
        /// Bytes that were written and not discarded since, in whole granules of 64 KiB.
        pub used_bytes: u64 = Gauge "braid_ram_used_bytes",
        /// Memory that the kernel holds for it, in RAM or swapped out (`Anonymous`, `Swap` and
        /// `Private_Hugetlb` in `/proc/PID/smaps`); `null` if it does not say. It is asked for at most a hundredth of
        /// the time, so that of a large RAM disk it may be some seconds old.
        pub allocated_bytes: Option<u64> = Gauge "braid_ram_allocated_bytes",
        /// The least that is read or written.
        pub logical_block_bytes: u32,
        /// All of its memory was taken at once.
        pub preallocated: bool,
        /// Pages come from the machine's pool of huge pages.
        pub huge_pages: bool,
        /// Never swapped out.
        pub memory_locked: bool,
        /// The file that it is saved to when the volume goes down well.
        pub image: Option<String>,
    }
}

impl Status {
    /// Completes the status that a process of an earlier version of braid sent, which has no list of exports.
    pub(crate) fn completed(mut self) -> Status {
        if self.exports.is_empty() {
            self.exports = [&self.attached, &self.nbd].into_iter().flatten().cloned().collect();
            self.exports.iter_mut().for_each(ExportStatus::complete);
        }
        self
    }

    /// Returns the export that is a block device of this machine, if there is one.
    pub fn device_export(&self) -> Option<&ExportStatus> {
        self.exports.iter().find(|export| export.is_device())
    }

    /// Returns the number of clients that are connected now, to all exports together. A block device has none.
    pub fn connections(&self) -> u64 {
        self.exports.iter().map(|export| export.connections).sum()
    }

    /// Returns what all exports have served together.
    pub fn served(&self) -> ExportCounts {
        self.exports.iter().fold(ExportCounts::default(), |sum, one| sum.plus(one.counts))
    }

    /// Returns how long clients waited for the volume, over all exports.
    #[must_use]
    pub fn waited(&self) -> ClientIo {
        self.exports.iter().fold(ClientIo::default(), |sum, one| sum.plus(&one.io))
    }
}
