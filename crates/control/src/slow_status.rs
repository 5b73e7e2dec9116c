//! The slowest requests, with the time of each member.

use serde::{Deserialize, Serialize};

/// Requests of clients that were followed for some seconds. The answer to `GET /v1/slow`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlowStatus {
    /// Requests that were answered meanwhile.
    pub requests: u64,
    /// The slowest of them, and of those that had no answer at the end; the slowest first.
    pub slowest: Vec<SlowRequest>,
}

/// A request of a client that took long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlowRequest {
    /// `read`, `write`, `flush`, `discard` or `write-zeroes`.
    pub operation: String,
    /// First byte of the volume.
    pub offset_bytes: u64,
    /// Bytes; 0 for a flush.
    pub length_bytes: u64,
    /// Time from the begin to the answer, or to the end of following, in microseconds.
    pub took_us: u64,
    /// False for a request that had no answer at the end.
    pub answered: bool,
    /// Operations of members on behalf of the request, in the order of their begin.
    pub parts: Vec<SlowPart>,
    /// More parts than are listed.
    pub more_parts: u64,
}

impl SlowRequest {
    /// Returns the time in which no member worked on the request, in microseconds: it waited in the volume, for locks,
    /// memory, other requests.
    pub fn in_volume_us(&self) -> u64 {
        self.took_us.saturating_sub(worked_us(&self.parts))
    }
}

/// Returns the time in which at least one of `parts` was under way, in microseconds.
pub fn worked_us<'a>(parts: impl IntoIterator<Item = &'a SlowPart>) -> u64 {
    let span = |part: &SlowPart| (part.after_us, part.after_us.saturating_add(part.took_us));
    let mut spans: Vec<_> = parts.into_iter().map(span).collect();
    spans.sort_unstable();
    let (mut worked, mut until) = (0, 0);
    for (from, to) in spans {
        worked += to.saturating_sub(from.max(until));
        until = until.max(to);
    }
    worked
}

/// An operation of a member on behalf of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlowPart {
    /// The member.
    pub member: String,
    /// As of the request.
    pub operation: String,
    /// First byte of the member.
    pub offset_bytes: u64,
    /// Bytes; 0 for a flush.
    pub length_bytes: u64,
    /// When the member was asked, from the begin of the request on, in microseconds.
    pub after_us: u64,
    /// Time that the member took, in microseconds.
    pub took_us: u64,
}
