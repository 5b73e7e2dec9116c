//! The status of a volume's arrays: a part of the schema of `braid status --json`.

use braid_status::{LogCost, figures};
use serde::{Deserialize, Serialize};

use crate::job::Job;

figures! {
    /// An array.
    #[derive(Clone, Debug, Default, Serialize, Deserialize)]
    pub struct ArrayStatus {
        /// Its name, if it has superblocks.
        pub name: Option<String>,
        /// Label that selects one array of several: the array's name, or its level.
        #[serde(default)]
        pub called: String,
        /// Its name with the host that it belongs to, as its superblocks have it: `HOST:NAME`; version 0.90
        /// has none.
        #[serde(default)]
        pub full_name: Option<String>,
        /// Its identifier, if it has superblocks.
        pub uuid: Option<String>,
        /// `1.2` …, if it has superblocks.
        pub metadata: Option<String>,
        /// As mdadm has it: `linear`, `raid0`, `raid1`, `raid10`, `raid4`, `raid5`, `raid6`.
        pub level: String,
        /// In md's words: `near=2` …, `left-symmetric` …; raid10, raid5 and raid6 only.
        pub layout: Option<String>,
        /// md's number of it.
        pub layout_number: u32,
        /// Chunk size, of levels that have chunks.
        pub chunk_bytes: Option<u64>,
        /// In bytes.
        pub size_bytes: u64,
        /// As md's `array_state`: `clean`, `active`, `readonly`, `broken`.
        pub state: String,
        /// Number of roles.
        pub raid_disks: usize,
        /// For each role whether its member is in sync.
        pub in_sync: Vec<bool>,
        /// In the order of the stack.
        pub members: Vec<ArrayMember>,
        /// Up to where copies agree, in bytes; none if they all do.
        pub resync_from_bytes: Option<u64>,
        /// A number in the superblocks that grows with each change.
        pub events: u64,
        /// Bytes that a bit of the write-intent bitmap stands for.
        pub bitmap_chunk_bytes: Option<u64>,
        /// Bits of the write-intent bitmap.
        pub bitmap_chunks: Option<u64>,
        /// Chunks of the write-intent bitmap that are set: they may differ after a crash.
        pub bitmap_chunks_set: Option<u64> = Gauge "braid_array_bitmap_chunks_set",
        /// Writes that write-mostly members may have later than others, until a flush; 0 for none.
        #[serde(default)]
        pub write_behind: u32,
        /// Writes that write-mostly members do not have yet.
        #[serde(default)]
        pub writes_behind: Option<u64> = Gauge "braid_array_writes_behind",
        /// The pass that runs.
        pub job: Option<JobStatus>,
        /// Its jobs that wait or run, and the last ones that ended, the oldest first.
        #[serde(default)]
        pub jobs: Vec<Job>,
        /// `check` or `repair` that waits for its turn, or runs.
        pub requested: Option<String>,
        /// Members of old that are there and take no part, and whether they can come back by the bitmap.
        #[serde(default)]
        pub left_out: Vec<LeftOutStatus>,
        /// Places that no member can give any more: offset and length in bytes of the array.
        #[serde(default)]
        pub lost: Vec<(u64, u64)>,
        /// Progress of a scrub in parts, while a part runs (a few seconds old) and between two parts.
        #[serde(default)]
        pub scrub_place: Option<ScrubPlaceStatus>,
        /// The last check or repair that ran to its end; of one in parts, of all parts together.
        pub last_scrub: Option<ScrubStatus>,
        /// Bytes that differ, of the comparison that runs or ran last.
        pub mismatch_bytes: u64 = Gauge "braid_array_mismatch_bytes",
        /// The first places, in bytes of the array; with parity, of each member's data.
        pub mismatch_offsets: Vec<u64>,
        /// Members that are proved to be wrong somewhere by that pass: by a majority of copies, or by both parities.
        #[serde(default)]
        pub suspects: Vec<SuspectStatus>,
        /// Bytes of mismatches of which it is not proved which member is wrong.
        #[serde(default)]
        pub unexplained_bytes: u64 = Gauge "braid_array_unexplained_bytes",
        /// Bytes that the pass wrote again.
        #[serde(default)]
        pub repaired_bytes: u64 = Gauge "braid_array_repaired_bytes",
        /// Consistency policy in mdadm's words: `resync`, `bitmap`, `ppl`; or `log`, braid's stripe log. None for levels
        /// without redundancy.
        #[serde(default)]
        pub consistency: Option<String>,
        /// Cost of the log since the array was brought up, if there is a log.
        #[serde(default)]
        pub log_cost: Option<LogCost>,
        /// Memory for stripes under way, with parity.
        #[serde(default)]
        pub stripe_cache_bytes: Option<u64> = Gauge "braid_stripe_cache_size_bytes",
        /// Memory for stripes that is in use.
        #[serde(default)]
        pub stripe_cache_used_bytes: Option<u64> = Gauge "braid_stripe_cache_used_bytes",
        /// Least rate of a pass, whatever the load of clients.
        pub speed_min_bytes_per_second: u64,
        /// Greatest rate of a pass; `null` for no limit.
        pub speed_max_bytes_per_second: Option<u64>,
        /// Target of a pass for the 99th percentile of clients' latency; `null` for no target.
        pub speed_latency_us_p99: Option<u64>,
        /// Events, the oldest first: seconds since 1970 and a text.
        pub log: Vec<(u64, String)>,
    }
}

impl ArrayStatus {
    /// Returns true if the array survives the loss of a member.
    pub fn is_redundant(&self) -> bool {
        !matches!(self.level.as_str(), "linear" | "raid0")
    }

    /// Bytes that no member can give any more.
    pub fn lost_bytes(&self) -> u64 {
        self.lost.iter().fold(0, |sum, (_, length)| sum.saturating_add(*length))
    }

    /// Returns true for raid4, raid5 and raid6.
    pub fn has_parity(&self) -> bool {
        matches!(self.level.as_str(), "raid4" | "raid5" | "raid6")
    }
}

/// A member of old that takes no part.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LeftOutStatus {
    /// As the stack spells it.
    pub member: String,
    /// Copying what was written since suffices.
    pub by_bitmap: bool,
}

/// A member that is proved to be wrong, if the copies went wrong independently of each other, or if one member
/// of the stripe is wrong.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SuspectStatus {
    /// Which part of the data it has.
    pub role: u16,
    /// `None` if no member has the role any more.
    pub member: Option<String>,
    /// Bytes of mismatches that prove it.
    pub bytes: u64,
}

/// Neighbouring blocks of members that do not agree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MismatchStatus {
    /// In bytes of the array; with parity, of each member's data.
    pub offset_bytes: u64,
    /// At each of the places below.
    pub length_bytes: u64,
    /// Offsets of the bytes of the array that are wrong, or may be wrong; empty if parity alone is wrong.
    pub array_offsets: Vec<u64>,
    /// Those that were compared.
    pub members: Vec<MismatchMember>,
}

/// One member's bytes where members do not agree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MismatchMember {
    /// Which part of the data it has.
    pub role: u16,
    /// As the stack spells it; `None` if no member has the role any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
    /// Offset of its bytes on the member.
    pub offset_bytes: u64,
    /// Copies with the same number are equal; 0 for all with parity.
    pub group: usize,
    /// It is proved to be wrong.
    pub wrong: bool,
}

impl MismatchStatus {
    /// Returns true if it is proved which members are wrong.
    pub fn is_proved(&self) -> bool {
        self.members.iter().any(|member| member.wrong)
    }
}

figures! {
    /// A member of such an array.
    #[derive(Clone, Debug, Default, Serialize, Deserialize)]
    pub struct ArrayMember {
        /// As the stack spells it.
        pub member: String,
        /// md's device number.
        pub number: u32,
        /// Which part of the data it has.
        pub role: Option<u16>,
        /// `in_sync`, `recovering`, `spare`, `faulty`.
        pub state: String,
        /// Up to where it was filled.
        pub recovered_bytes: Option<u64>,
        /// It is filled beside another, which it then replaces.
        pub replacement: bool,
        /// It is read only where no other has the data.
        pub write_mostly: bool,
        /// Reads that failed and were put right from the others, as md counts them.
        pub corrected_reads: u32 = Counter "braid_array_member_corrected_reads_total",
        /// Entries in its bad-block log.
        pub bad_ranges: usize = Gauge "braid_array_member_bad_ranges",
        /// Some data cannot be read without it: it cannot be failed by order.
        #[serde(default)]
        pub needed: bool,
        /// Why it is faulty.
        pub remark: Option<String>,
    }
}

figures! {
    /// A pass over the array.
    #[derive(Clone, Debug, Serialize, Deserialize)]
    pub struct JobStatus {
        /// `resync`, `recovery`, `replace`, `check`, `repair`.
        pub kind: String,
        /// As the stack spells it.
        pub member: Option<String>,
        /// Progress of the pass that runs.
        pub done_bytes: u64 = Gauge "braid_array_pass_done_bytes",
        /// Size of the pass that runs.
        pub total_bytes: u64 = Gauge "braid_array_pass_size_bytes",
        /// Its rate over the last seconds.
        pub bytes_per_second: u64 = Gauge "braid_array_pass_bytes_per_second",
        /// At best and at worst, by the rates of the last minute.
        pub eta_seconds: Option<(u64, u64)>,
    }
}

figures! {
    /// A check or repair that ran to its end.
    #[derive(Clone, Debug, Serialize, Deserialize)]
    pub struct ScrubStatus {
        /// `check` or `repair`.
        pub kind: String,
        /// When the last scrub that went through ended: in milliseconds since 1970, as a metric in seconds.
        pub ended_ms: u64 = Gauge "braid_scrub_ended_timestamp_seconds",
        /// Bytes that the last scrub found to differ.
        pub mismatch_bytes: u64 = Gauge "braid_scrub_mismatch_bytes",
        /// Bytes of each member's data that were compared with something; `null` where that was not
        /// counted.
        #[serde(default)]
        pub compared_bytes: Option<u64>,
        /// Bytes that the last scrub could not read and did not compare.
        #[serde(default)]
        pub unread_bytes: u64 = Gauge "braid_scrub_unread_bytes",
        /// The first places of these.
        #[serde(default)]
        pub unread_offsets: Vec<u64>,
        /// Offset and length of these places.
        #[serde(default)]
        pub unread_ranges: Vec<(u64, u64)>,
        /// Bytes that members' bad-block logs list, which are not read.
        #[serde(default)]
        pub listed_bytes: u64,
        /// Bytes that differ without a proof of which member is wrong.
        #[serde(default)]
        pub unproved_bytes: u64,
        /// Bytes that were written again.
        #[serde(default)]
        pub repaired_bytes: u64,
        /// Members that are proved to be wrong somewhere.
        #[serde(default)]
        pub suspects: Vec<SuspectStatus>,
        /// Bytes that still differed when it ended; `null` where that was not counted.
        #[serde(default)]
        pub left_bytes: Option<u64>,
        /// The first places that differ, neighbours as one; `mismatch_bytes` counts all.
        #[serde(default)]
        pub mismatches: Vec<MismatchStatus>,
    }
}

impl ScrubStatus {
    /// Bytes that still differed when it ended.
    pub fn left(&self) -> u64 {
        let of_check = if self.kind == "check" { self.mismatch_bytes } else { 0 };
        self.left_bytes.unwrap_or(of_check)
    }

    /// The next commands: for the array `called` so of `volume`, which has parity or copies.
    pub fn next(&self, volume: &str, has_parity: bool) -> String {
        let rest = match has_parity {
            true => "makes parity fit the data: which of the two was right is not known",
            false => "makes all copies as the first one is, right or wrong",
        };
        let proved =
            format!("`braid scrub {volume} --repair` writes again what is proved to be wrong");
        let rest = format!(
            "docs/arrays.md, \"Which copy is right\", says how to find out; `braid scrub {volume} --repair \
             --force` {rest}"
        );
        match self.left() - self.left().min(self.unproved_bytes) {
            0 => rest,
            _ if self.unproved_bytes == 0 => proved,
            _ => format!("{proved}. Of the rest {rest}"),
        }
    }
}

figures! {
    /// Progress of a check or repair in parts.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub struct ScrubPlaceStatus {
        /// `check` or `repair`.
        pub kind: String,
        /// Progress of a scrub in parts.
        pub done_bytes: u64 = Gauge "braid_scrub_part_done_bytes",
        /// Size of a scrub in parts.
        pub total_bytes: u64 = Gauge "braid_scrub_part_size_bytes",
        /// When its first part began, in milliseconds since 1970.
        pub began_ms: u64,
        /// When it was there, in milliseconds since 1970.
        pub seen_ms: u64,
        /// Bytes that differed so far.
        pub mismatch_bytes: u64,
        /// Bytes that could not be read so far, and were not compared.
        pub unread_bytes: u64,
    }
}
