//! Passes over an array: what they are for, how far one is, how the last one ended.

use std::fmt;
use std::time::Duration;

use super::scrub::ScrubFound;

/// What a pass is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobKind {
    /// After a crash: copies that may differ are made the same.
    Resync,
    /// A member is filled.
    Recovery,
    /// A member is filled beside the one that it replaces.
    Replace,
    /// Copies are compared.
    Check,
    /// Copies, or data and parity, are compared, and what is proved to be wrong is written again.
    Repair,
    /// As a repair; where nothing is proved, copies are made as the first one is, and parity as the data is.
    ForcedRepair,
}

impl JobKind {
    /// Whether it is a check or a repair, which are asked for.
    #[must_use]
    pub fn is_scrub(self) -> bool {
        matches!(self, JobKind::Check | JobKind::Repair | JobKind::ForcedRepair)
    }

    /// Whether members are made to agree where nothing proves which of them is right.
    pub(super) fn settles(self) -> bool {
        matches!(self, JobKind::Resync | JobKind::ForcedRepair)
    }
}

impl fmt::Display for JobKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            JobKind::Resync => "resync",
            JobKind::Recovery => "recovery",
            JobKind::Replace => "replace",
            JobKind::Check => "check",
            JobKind::Repair | JobKind::ForcedRepair => "repair",
        })
    }
}

/// A pass under way.
#[derive(Clone, Debug)]
pub struct JobStatus {
    /// What it is for.
    pub kind: JobKind,
    /// The member that is filled.
    pub member: Option<String>,
    /// How far it is, and how far it goes, in bytes.
    pub done: u64,
    /// In bytes.
    pub total: u64,
    /// In bytes a second, of late.
    pub rate: u64,
    /// How long the rest takes: at best and at worst, by the last minute.
    pub eta: Option<(Duration, Duration)>,
}

/// The last check or repair that ran to its end. What it found stays when another pass begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastScrub {
    /// Which of them.
    pub kind: JobKind,
    /// When it ended, in unix time.
    pub ended: Duration,
    /// What it found.
    pub found: ScrubFound,
}
