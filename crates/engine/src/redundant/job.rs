//! Passes over an array: how far one is, how the last one ended.

use std::time::Duration;

use super::kind::JobKind;
use super::scrub::ScrubFound;

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
    /// Its findings.
    pub found: ScrubFound,
}
