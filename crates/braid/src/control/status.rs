//! What a volume says of itself. This is the schema of `braid status --json`.

use serde::{Deserialize, Serialize};

use super::cache_status::CacheStatus;

/// Raised when a field changes its meaning or goes; new fields may come without.
pub(crate) const OUTPUT_VERSION: u32 = 1;

/// A volume: what it is, how it is, what it has done.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Status {
    pub(crate) output_version: u32,
    pub(crate) name: String,
    /// `online`; `degraded` when copies are missing; `failing` when members answered with errors;
    /// `failed` when nothing can be written any more; `stalled` when what serves does not answer.
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
    /// The arrays that keep copies, and those of other levels that have superblocks.
    #[serde(default)]
    pub(crate) arrays: Vec<ArrayStatus>,
    #[serde(default)]
    pub(crate) caches: Vec<CacheStatus>,
    #[serde(default)]
    pub(crate) rams: Vec<RamStatus>,
    /// What is recorded of clients' requests, if it is.
    #[serde(default)]
    pub(crate) trace: Option<TraceStatus>,
    /// Memory for content that the volume may take: sizes of RAM disks, models, caches.
    #[serde(default)]
    pub(crate) promised_bytes: u64,
    /// What is not as it should be, though it works.
    pub(crate) warnings: Vec<String>,
    pub(crate) pid: u32,
    pub(crate) uptime_seconds: u64,
    /// `uring` or `threads`.
    pub(crate) io: String,
    pub(crate) shards: usize,
    /// Page faults of the threads that serve, since they began to: each may have had to wait for
    /// memory. None are expected, but for RAM disks and after members were taken in.
    #[serde(default)]
    pub(crate) page_faults: u64,
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
    /// Clients' writes are refused until it is unlocked.
    #[serde(default)]
    pub(crate) locked: bool,
}

/// A trace that is recorded.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct TraceStatus {
    /// The file.
    pub(crate) path: String,
    /// It gets no larger.
    pub(crate) size_limit_bytes: u64,
    pub(crate) size_bytes: u64,
    /// Requests in it, each a line.
    pub(crate) requests: u64,
    /// Requests that are not: the file could not be written as fast, was full, or failed.
    pub(crate) dropped: u64,
    /// Why nothing is recorded any more.
    pub(crate) stopped: Option<String>,
}

/// A RAM disk.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RamStatus {
    /// As it is written in the stack.
    pub(crate) ram: String,
    /// What it promises.
    pub(crate) size_bytes: u64,
    /// What it can be resized to while it is up.
    pub(crate) most_bytes: u64,
    /// What was written and not discarded since, in whole granules of 64 KiB.
    pub(crate) used_bytes: u64,
    /// Memory that the kernel holds for it, in RAM or swapped out (`Anonymous`, `Swap` and
    /// `Private_Hugetlb` in `/proc/PID/smaps`); `null` if it does not say.
    pub(crate) allocated_bytes: Option<u64>,
    pub(crate) logical_block_bytes: u32,
    pub(crate) preallocated: bool,
    /// Of the machine's pool of huge pages.
    pub(crate) huge_pages: bool,
    /// Never swapped out.
    pub(crate) memory_locked: bool,
    /// The file that it is saved to when the volume goes down well.
    pub(crate) image: Option<String>,
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
    /// Why what it holds goes with the volume: its file was deleted, or another one lies at its path.
    #[serde(default)]
    pub(crate) gone: Option<String>,
    /// The error of the first flush that failed: what was written before may not be on the member,
    /// and every flush fails until the volume is brought up anew.
    #[serde(default)]
    pub(crate) lost: Option<String>,
}

/// An array.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ArrayStatus {
    /// Its name, if it has superblocks.
    pub(crate) name: Option<String>,
    /// What it is called where one array of several is meant: its name, or its level.
    #[serde(default)]
    pub(crate) called: String,
    pub(crate) uuid: Option<String>,
    /// `1.2` …, if it has superblocks.
    pub(crate) metadata: Option<String>,
    pub(crate) level: String,
    /// In md's words: `near=2` …, `left-symmetric` …; raid10, raid5 and raid6 only.
    pub(crate) layout: Option<String>,
    /// md's number of it.
    pub(crate) layout_number: u32,
    pub(crate) chunk_bytes: Option<u64>,
    pub(crate) size_bytes: u64,
    /// As md's `array_state`: `clean`, `active`, `readonly`, `broken`.
    pub(crate) state: String,
    pub(crate) raid_disks: usize,
    /// For each role whether its member is in sync.
    pub(crate) in_sync: Vec<bool>,
    pub(crate) members: Vec<ArrayMember>,
    /// Up to where copies agree, in bytes; none if they all do.
    pub(crate) resync_from_bytes: Option<u64>,
    pub(crate) events: u64,
    pub(crate) bitmap_chunk_bytes: Option<u64>,
    pub(crate) bitmap_chunks: Option<u64>,
    pub(crate) bitmap_chunks_set: Option<u64>,
    pub(crate) job: Option<JobStatus>,
    /// `check` or `repair` that waits for its turn, or runs.
    pub(crate) requested: Option<String>,
    /// Members of old that are there and take no part, and whether they can come back by the bitmap.
    #[serde(default)]
    pub(crate) left_out: Vec<LeftOutStatus>,
    /// Places that no member can give any more: offset and length in bytes of the array.
    #[serde(default)]
    pub(crate) lost: Vec<(u64, u64)>,
    pub(crate) last_scrub: Option<ScrubStatus>,
    /// Of the pass that runs, or ran last.
    pub(crate) mismatch_bytes: u64,
    /// The first places, in bytes of the array; with parity, of each member's data.
    pub(crate) mismatch_offsets: Vec<u64>,
    /// Members that alone explain mismatches of that pass (raid6).
    #[serde(default)]
    pub(crate) suspects: Vec<SuspectStatus>,
    /// Bytes of mismatches that no member alone explains, where that can be told (raid6).
    #[serde(default)]
    pub(crate) unexplained_bytes: u64,
    /// Bytes that the pass wrote again.
    #[serde(default)]
    pub(crate) repaired_bytes: u64,
    /// What makes good what a crash leaves, in mdadm's words: `resync`, `bitmap`, `ppl`; or `log`,
    /// braid's stripe log. None for levels that keep nothing twice.
    #[serde(default)]
    pub(crate) consistency: Option<String>,
    /// What the log has cost since the array was brought up, if it has one.
    #[serde(default)]
    pub(crate) log_cost: Option<LogCostStatus>,
    /// Memory for stripes under way, with parity: all of it, and what is in use.
    #[serde(default)]
    pub(crate) stripe_cache_bytes: Option<u64>,
    #[serde(default)]
    pub(crate) stripe_cache_used_bytes: Option<u64>,
    pub(crate) speed_min_bytes_per_second: u64,
    pub(crate) speed_max_bytes_per_second: Option<u64>,
    pub(crate) speed_latency_us_p99: Option<u64>,
    /// What happened, oldest first: seconds since 1970 and what.
    pub(crate) log: Vec<(u64, String)>,
}

impl ArrayStatus {
    /// Whether it survives the loss of a member.
    pub(crate) fn is_redundant(&self) -> bool {
        !matches!(self.level.as_str(), "linear" | "raid0")
    }

    /// Whether it is a raid4, raid5 or raid6.
    pub(crate) fn has_parity(&self) -> bool {
        matches!(self.level.as_str(), "raid4" | "raid5" | "raid6")
    }
}

/// A member of old that takes no part.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LeftOutStatus {
    pub(crate) member: String,
    /// Copying what was written since suffices.
    pub(crate) by_bitmap: bool,
}

/// What the log of an array with parity has cost.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LogCostStatus {
    /// Writes that were logged, of one stripe's rows each.
    pub(crate) writes: u64,
    /// Bytes of data and parity that they stored in place, and bytes of the log.
    pub(crate) stored_bytes: u64,
    pub(crate) log_bytes: u64,
    /// How long they took, added up, and how long of that they waited for the log.
    pub(crate) time_us: u64,
    pub(crate) log_time_us: u64,
}

/// A member that alone explains why data and parity do not agree.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SuspectStatus {
    pub(crate) role: u16,
    /// None if nobody has the role any more.
    pub(crate) member: Option<String>,
    /// Of so many bytes of mismatches.
    pub(crate) bytes: u64,
}

/// A member of such an array.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ArrayMember {
    pub(crate) member: String,
    /// md's device number.
    pub(crate) number: u32,
    pub(crate) role: Option<u16>,
    /// `in_sync`, `recovering`, `spare`, `faulty`.
    pub(crate) state: String,
    /// Up to where it was filled.
    pub(crate) recovered_bytes: Option<u64>,
    pub(crate) replacement: bool,
    pub(crate) write_mostly: bool,
    pub(crate) corrected_reads: u32,
    pub(crate) bad_ranges: usize,
    /// Why it is faulty.
    pub(crate) remark: Option<String>,
}

/// A pass over the array.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct JobStatus {
    /// `resync`, `recovery`, `replace`, `check`, `repair`.
    pub(crate) kind: String,
    pub(crate) member: Option<String>,
    pub(crate) done_bytes: u64,
    pub(crate) total_bytes: u64,
    pub(crate) bytes_per_second: u64,
    /// At best and at worst, by the rates of the last minute.
    pub(crate) eta_seconds: Option<(u64, u64)>,
}

/// A check or repair that ran to its end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ScrubStatus {
    pub(crate) kind: String,
    /// Milliseconds since 1970.
    pub(crate) ended_ms: u64,
    pub(crate) mismatch_bytes: u64,
    /// Bytes of each member's data that were compared with something; `null` where that was not
    /// counted.
    #[serde(default)]
    pub(crate) compared_bytes: Option<u64>,
    /// Bytes that could not be compared because nobody could read them, and the first places.
    #[serde(default)]
    pub(crate) unread_bytes: u64,
    #[serde(default)]
    pub(crate) unread_offsets: Vec<u64>,
    /// Bytes that members' bad-block logs list, which are not read.
    #[serde(default)]
    pub(crate) listed_bytes: u64,
}
