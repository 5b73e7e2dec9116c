//! Evidence: the activity of the machine during a trial, beside the tool's output: bytes that the devices
//! moved, processor time, rebuilds, heat. The rules of `braid_lab_report::trust` compare both.
//!
//! ```text
//! Watch ──take──> Snapshot (before) ┐
//!                                   ├─> Evidence, kept with the trial
//! Watch ──take──> Snapshot (after)  ┘
//! ```
//!
//! Invariants:
//!
//! * an unreadable value is `None` and never 0; so is a counter that went back (of a device that was made
//!   anew);
//! * the parsers are pure: any text gives a value or nothing;
//! * nothing here judges a number.
//!
//! Deliberately absent: asking a volume (`braid status` costs a process; the runner calls it once and adds the
//! result to [`Evidence::activities`]), and sensors that a read would disturb.

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

/// The objects to observe around a trial of one subject.
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
    /// Mount point of the file system.
    pub mountpoint: Option<PathBuf>,
    /// Rates of modelled members in bytes per second, reading and writing, which need no measurement.
    pub models: Vec<(u64, u64)>,
}

/// The activity of the machine during one trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Evidence {
    /// Seconds between the two snapshots.
    pub span_s: Option<f64>,
    /// Bytes that the target block device moved.
    pub target: Option<Moved>,
    /// Bytes that the members' disks moved, each disk once.
    pub members: Vec<(String, Moved)>,
    /// Rates of modelled members, bytes per second, reading and writing.
    pub models: Vec<(u64, u64)>,
    /// Used share of the processors' time, by all processes, 0 to 1.
    pub cpu_busy: Option<f64>,
    /// Number of processors.
    pub cpu_count: Option<u32>,
    /// Processor time of the tool and its children, in cores: of every child that this process waited for
    /// between the two snapshots.
    pub tool_cores: Option<f64>,
    /// Processor time of the server in seconds.
    pub server_cpu_s: Option<f64>,
    /// Memory of the machine in bytes.
    pub memory_bytes: Option<u64>,
    /// Activities of the array, or of md's arrays on the same disks, at the start or the end:
    /// "rebuild 43 %".
    pub activities: Vec<String>,
    /// Activities of md's arrays on disks that are not known to be the subject's. They do not concern the
    /// subject unless the place of a member is unknown.
    pub elsewhere: Vec<String>,
    /// The file system and its mount options.
    pub mount: Option<String>,
    /// Number of throttles of the processor or a device for heat or power during the trial.
    pub throttled: Option<u64>,
    /// The sensor nearest to its limit at the end, where there is one.
    pub heat: Option<Heat>,
    /// Processes outside the trial that moved many bytes to or from storage: name and bytes, most first.
    pub strangers: Vec<(String, u64)>,
    /// Content of the region for raw reads; `None` if the trial does not read raw, or the content does not
    /// matter.
    pub content: Option<RegionContent>,
}

/// The known content of a subject's region before a raw read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RegionContent {
    /// The campaign had written all of it.
    Filled,
    /// The campaign had not written it; this was found in its files.
    Found {
        /// Bytes that were never written.
        holes: u64,
        /// Bytes in total.
        bytes: u64,
    },
    /// The campaign had not written it, and its content is unknown.
    Unknown,
}

/// The activity of a block device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moved {
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Busy time in milliseconds.
    pub busy_ms: u64,
}

impl Moved {
    /// Returns the difference to an earlier value; `None` if a counter went back.
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
