//! Scrubs that run in parts: the order, and the progress.
//!
//! ```text
//!   order, from the beginning ──▶ runs ──▶ its time is over ──▶ a place: how far, what was found below
//!                                  │                              │
//!                                  ▼                              ▼
//!                    a member is filled: begins anew     order, from that place ──▶ … ──▶ ends: the sum
//! ```
//!
//! Invariant: the findings of a place cover all bytes below it, and no others.
//!
//! Deliberately absent: storing a place between two starts of an array, and checking that the array is the same
//! then.

use std::time::Duration;

use braid_array::Role;

use super::found::{BLOCK, Found, Mismatch};
use super::kind::JobKind;
use super::layout::{SyncByte, SyncSpan};
use super::throttle::Speed;

/// An order for a check or a repair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScrubOrder {
    /// Check or repair.
    pub kind: JobKind,
    /// Place to start from. The beginning if it is `None`, or of another scrub.
    pub from: Option<ScrubPlace>,
    /// Time of a pause, in Unix time. `None`: at the end.
    pub until: Option<Duration>,
    /// Limits while the scrub runs. `None`: the array's limits.
    pub speed: Option<Speed>,
}

/// Progress of a scrub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScrubPlace {
    /// Check or repair.
    pub kind: JobKind,
    /// All bytes below were compared: bytes of the array, with parity of each member's data.
    pub done: u64,
    /// End of the scrub.
    pub total: u64,
    /// Findings below `done`.
    pub found: ScrubFound,
}

/// Findings of a scrub, as in [`super::Status`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are those of `Status`, with the same meaning")]
pub struct ScrubFound {
    pub mismatches: u64,
    pub mismatch_places: Vec<Mismatch>,
    pub suspects: Vec<(Role, u64)>,
    pub unproved: u64,
    pub repaired: u64,
    pub compared: u64,
    pub listed: u64,
    pub unread: u64,
    /// Offset and length of each, in order.
    pub unread_places: Vec<(u64, u64)>,
}

impl ScrubPlace {
    /// Returns true if a scrub of this kind with this end can continue here.
    pub(super) fn is_of(&self, kind: JobKind, total: SyncByte) -> bool {
        self.kind == kind
            && self.total == total.get()
            && self.done <= self.total
            && self.done.is_multiple_of(BLOCK as u64)
    }
}

impl From<Found> for ScrubFound {
    fn from(found: Found) -> ScrubFound {
        ScrubFound {
            unread_places: found.unread_ranges(),
            mismatches: found.mismatches,
            mismatch_places: found.places,
            suspects: found.suspects.into_iter().collect(),
            unproved: found.unproved,
            repaired: found.repaired,
            compared: found.compared,
            listed: found.listed,
            unread: found.unread,
        }
    }
}

impl From<ScrubFound> for Found {
    fn from(found: ScrubFound) -> Found {
        Found {
            mismatches: found.mismatches,
            places: found.mismatch_places,
            suspects: found.suspects.into_iter().collect(),
            unproved: found.unproved,
            repaired: found.repaired,
            compared: found.compared,
            listed: found.listed,
            unread: found.unread,
            unread_places: (found.unread_places.into_iter())
                .map(|(offset, len)| SyncSpan::new(SyncByte::new(offset), len))
                .collect(),
            ..Found::default()
        }
    }
}
