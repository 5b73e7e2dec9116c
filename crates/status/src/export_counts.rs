//! Counters of an export.

use crate::counters;

counters! {
    /// Requests and bytes that an export has served since the volume was brought up. A count that its kind does not have is 0.
    pub struct ExportCounts {
        /// Clients that connected.
        connections_accepted = "connections_accepted_total",
        /// Connections that have ended, for whatever reason.
        connections_ended = "connections_ended_total",
        /// Clients that were turned away because there were too many.
        connections_refused = "connections_refused_total",
        /// Connections that were cut off for breaking the protocol, or stalling inside a request.
        protocol_errors = "protocol_errors_total",
        /// Requests of clients.
        requests = "requests_total",
        /// Requests that were answered.
        replies = "replies_total",
        /// Requests that were answered with an error.
        errors = "errors_total",
        /// System calls that received something.
        receives = "receives_total",
        /// System calls that sent something.
        sends = "sends_total",
        /// Bytes that clients read.
        read_bytes = "read_bytes_total",
        /// Bytes that clients wrote.
        written_bytes = "written_bytes_total",
    }
}

impl ExportCounts {
    /// Clients that are connected now.
    pub fn connections(&self) -> u64 {
        self.connections_accepted.saturating_sub(self.connections_ended)
    }

    /// Requests that came together, in the mean; 0 before the first.
    pub fn requests_per_receive(&self) -> f64 {
        ratio(self.requests, self.receives)
    }

    /// Replies that went together, in the mean; 0 before the first.
    pub fn replies_per_send(&self) -> f64 {
        ratio(self.replies, self.sends)
    }
}

fn ratio(a: u64, b: u64) -> f64 {
    if b == 0 { 0.0 } else { a as f64 / b as f64 }
}
