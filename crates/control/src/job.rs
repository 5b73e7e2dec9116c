//! Jobs of a volume: long work that an order or the volume itself began. A part of the schema of `braid status --json`.

use serde::{Deserialize, Serialize};

/// The state of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JobState {
    /// Asked for; something else goes first.
    Waiting,
    /// Under way.
    Running,
    /// Came to its end.
    Done,
    /// Could not go on, or left something undone.
    Failed,
    /// Ended before its end: by an order, or because its reason or its time is over.
    Ended,
}

impl JobState {
    /// Returns whether the job waits or runs.
    pub fn is_open(self) -> bool {
        matches!(self, JobState::Waiting | JobState::Running)
    }
}

/// A job. The last 16 are kept for each array, and for the volume as a whole, while the volume is up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Tells the job from others of the same array, or of the same volume; later jobs have larger numbers.
    pub number: u64,
    /// `resync`, `recovery`, `replace`, `check`, `repair` of an array; `save`, `restore`, `retest`, `cache-attach`,
    /// `cache-detach`, `cache-resize`, `cache-mode` of the volume.
    pub kind: String,
    /// The member that is filled, as the stack spells it.
    pub member: Option<String>,
    /// Its state.
    pub state: JobState,
    /// Progress in bytes.
    pub done_bytes: u64,
    /// End of the progress in bytes; 0 if it is not known.
    pub total_bytes: u64,
    /// When it was asked for or began, in milliseconds since 1970.
    pub began_ms: u64,
    /// When it ended, in milliseconds since 1970.
    pub ended_ms: Option<u64>,
    /// Why it failed.
    pub why: Option<String>,
}
