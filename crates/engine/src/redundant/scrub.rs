//! Scrubs that do not run in one go: what is asked for, how far one is.
//!
//! ```text
//!   order, from the beginning ──▶ runs ──▶ its time is over ──▶ a place: how far, what was found below
//!                                  │                              │
//!                                  ▼                              ▼
//!                    a member is filled: begins anew     order, from that place ──▶ … ──▶ ends: the sum
//! ```
//!
//! Invariant: what a place says was found is of all bytes below it, and of no others.
//!
//! Deliberately absent: where a place is kept between two lives of an array, and whether it is still the
//! same array by then.

use std::time::Duration;

use braid_array::Role;

use super::found::{BLOCK, Found, Mismatch};
use super::kind::JobKind;
use super::layout::{SyncByte, SyncSpan};
use super::throttle::Speed;

/// A check or a repair that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScrubOrder {
    /// Which of them.
    pub kind: JobKind,
    /// Where it goes on; from the beginning without, or if the place is of another scrub.
    pub from: Option<ScrubPlace>,
    /// When it pauses, in unix time; not before it is through without.
    pub until: Option<Duration>,
    /// The limits while it runs; those that are set without.
    pub speed: Option<Speed>,
}

/// How far a scrub is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScrubPlace {
    /// Check or repair.
    pub kind: JobKind,
    /// All below was compared; bytes of the array, with parity of each member's data.
    pub done: u64,
    /// Where it ends.
    pub total: u64,
    /// What was found below.
    pub found: ScrubFound,
}

/// What a scrub found: as [`super::Status`] has it.
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
    /// Whether a scrub of this kind, that goes as far, can go on here.
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
