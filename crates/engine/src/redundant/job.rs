//! Passes over an array: what they are for, how far one is, how the last one ended.

use std::fmt;
use std::time::Duration;

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
    /// Copies are compared and made the same.
    Repair,
}

impl fmt::Display for JobKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            JobKind::Resync => "resync",
            JobKind::Recovery => "recovery",
            JobKind::Replace => "replace",
            JobKind::Check => "check",
            JobKind::Repair => "repair",
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

/// The last check or repair that ran to its end. Its counts stay when another pass begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastScrub {
    /// Which of them.
    pub kind: JobKind,
    /// When it ended, in unix time.
    pub ended: Duration,
    /// How many bytes differed.
    pub mismatches: u64,
    /// Bytes of which several members were read and compared.
    pub compared: u64,
    /// Bytes that were not compared because a bad-block log lists them.
    pub listed: u64,
    /// Bytes that could not be read and so were not compared.
    pub unread: u64,
    /// The first places of these: in bytes of the array; with parity, of each member's data.
    pub unread_places: Vec<u64>,
}
