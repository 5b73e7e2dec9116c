//! Kinds of passes over an array.

use std::fmt;

/// The purpose of a pass.
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
    /// Copies, or data and parity, are compared, and contents that are proved wrong are rewritten.
    Repair,
    /// As a repair. Without a proof, copies are made equal to the first one, and parity is recomputed from the
    /// data.
    ForcedRepair,
}

impl JobKind {
    /// Returns true for a check or a repair, which an operator asks for.
    #[must_use]
    pub fn is_scrub(self) -> bool {
        matches!(self, JobKind::Check | JobKind::Repair | JobKind::ForcedRepair)
    }

    /// Returns true if members are made to agree even if nothing proves which of them is right.
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
