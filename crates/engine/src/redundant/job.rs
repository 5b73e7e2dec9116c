//! Passes over an array: the progress of the running pass, the result of the last scrub.

use std::time::Duration;

use super::kind::JobKind;
use super::scrub::ScrubFound;

/// A running pass.
#[derive(Clone, Debug)]
pub struct JobStatus {
    /// The purpose of the pass.
    pub kind: JobKind,
    /// The member that is being filled.
    pub member: Option<String>,
    /// Bytes that are done.
    pub done: u64,
    /// Bytes in total.
    pub total: u64,
    /// Recent rate in bytes per second.
    pub rate: u64,
    /// Remaining time: at best and at worst, by the rates of the last minute.
    pub eta: Option<(Duration, Duration)>,
}

/// The last check or repair that ran to its end. Its findings stay when another pass begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastScrub {
    /// Check or repair.
    pub kind: JobKind,
    /// End of the scrub in Unix time.
    pub ended: Duration,
    /// Findings of the scrub.
    pub found: ScrubFound,
}
