//! What the machine did during a trial, beside what the tool says: bytes that the devices moved,
//! processor time, rebuilds, heat. The rules of `braid_lab_report::trust` hold both against each other.
//!
//! ```text
//! Watch ──take──> Snapshot (before) ┐
//!                                   ├─> Evidence, kept with the trial
//! Watch ──take──> Snapshot (after)  ┘
//! ```
//!
//! Invariants:
//!
//! * what cannot be read is `None` and never 0; a counter that went back (a device that was made
//!   anew) is `None` too;
//! * the parsers take text and are pure: whatever the text, they give a value or nothing;
//! * nothing here judges.
//!
//! Deliberately absent: asking a volume (`braid status` costs a process; the runner does it once and adds
//! what it hears to [`Evidence::activities`]), and sensors that a look would disturb.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

mod counters;
mod heat;
mod mdstat;
mod memory;
mod process;
mod snapshot;

pub use heat::Heat;
pub(crate) use memory::{available_memory_bytes, find_memory_bytes};
pub use snapshot::{Roots, Snapshot, take, take_under};

/// What to look at around a trial of one subject.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Watch {
    /// Kernel name (`sdb`, `loop3`, `md0`) of the block device that the tool uses, if any.
    pub target: Option<String>,
    /// Kernel names of the whole disks that carry the members.
    pub members: Vec<String>,
    /// Process that serves the subject.
    pub server_pid: Option<u32>,
    /// Name of the braid volume, for `braid status NAME --json`.
    pub volume: Option<String>,
    /// Where the file system is mounted.
    pub mountpoint: Option<PathBuf>,
    /// Modelled members with their rates in bytes per second, reading and writing, which nobody
    /// has to measure.
    pub models: Vec<(u64, u64)>,
}

/// What the machine did during one trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Evidence {
    /// Seconds between the two looks.
    pub span_s: Option<f64>,
    /// Bytes that the target block device moved.
    pub target: Option<Moved>,
    /// Bytes that the members' disks moved, each once.
    pub members: Vec<(String, Moved)>,
    /// Rates of modelled members, bytes per second, reading and writing.
    pub models: Vec<(u64, u64)>,
    /// Share of the processors' time that was used, by anybody, 0 to 1.
    pub cpu_busy: Option<f64>,
    /// Processors.
    pub cpu_count: Option<u32>,
    /// Processor time of the tool and its children, in cores: of every child that this process
    /// waited for between the two looks.
    pub tool_cores: Option<f64>,
    /// Processor time of the server in seconds.
    pub server_cpu_s: Option<f64>,
    /// Memory of the machine in bytes.
    pub memory_bytes: Option<u64>,
    /// Activities of the array, or of md's arrays on the same disks, at the start or the end:
    /// "rebuild 43 %".
    pub activities: Vec<String>,
    /// Activities of md's arrays on disks that nobody named as the subject's. They are others'
    /// unless a member lies nobody knows where.
    pub elsewhere: Vec<String>,
    /// The file system and its mount options.
    pub mount: Option<String>,
    /// How often the processor or a device was throttled for heat or power meanwhile.
    pub throttled: Option<u64>,
    /// The sensor nearest to its limit at the end, where there is one.
    pub heat: Option<Heat>,
    /// Processes that moved many bytes to or from storage meanwhile and are not part of the trial:
    /// name and bytes, most first.
    pub strangers: Vec<(String, u64)>,
    /// What was there to be read raw; `None` where nothing was, or it does not matter.
    pub content: Option<RegionContent>,
}

/// What is known of the region of a subject that is read raw, before the trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RegionContent {
    /// The campaign had written all of it.
    Filled,
    /// It had not, and this was seen of the files that hold it.
    Found {
        /// Bytes that were never written.
        holes: u64,
        /// Of so many.
        bytes: u64,
    },
    /// It had not, and nobody knows what is there.
    Unknown,
}

/// What a block device moved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moved {
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Milliseconds in which it was busy.
    pub busy_ms: u64,
}

impl Moved {
    /// What was moved since an earlier look; `None` when a counter went back.
    fn since(self, earlier: Self) -> Option<Self> {
        Some(Self {
            read_bytes: self.read_bytes.checked_sub(earlier.read_bytes)?,
            written_bytes: self.written_bytes.checked_sub(earlier.written_bytes)?,
            busy_ms: self.busy_ms.checked_sub(earlier.busy_ms)?,
        })
    }
}

#[cfg(test)]
mod tests;
