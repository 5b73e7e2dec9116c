//! The status of the connections of a remote member: a part of the schema of `braid status --json`.

use braid_status::figures;
use serde::{Deserialize, Serialize};

/// Time from which on a request without an answer is reported, in microseconds.
const LONG_US: u64 = 1_000_000;

figures! {
    /// The connections of a remote member.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default)]
    pub struct RemoteStatus {
        /// Connections to the remote member that are in use.
        pub connections: u64 = Gauge "braid_member_connections",
        /// Connections to the remote member that are to be in use.
        pub connections_wanted: u64 = Gauge "braid_member_connections_wanted",
        /// Losses of the connections to the remote member.
        pub reconnects: u64 = Counter "braid_member_reconnects_total",
        /// Changes that were sent to the remote member again.
        pub repeated: u64 = Counter "braid_member_repeated_total",
        /// Requests that failed at the deadline of the remote member.
        pub expired: u64 = Counter "braid_member_expired_total",
        /// Bytes sent to the remote member, with the protocol's.
        pub sent_bytes: u64 = Counter "braid_member_sent_bytes_total",
        /// Bytes received from the remote member, with the protocol's.
        pub received_bytes: u64 = Counter "braid_member_received_bytes_total",
        /// Time from a question to its answer when the last connection to the remote member was made.
        pub round_trip_us: u64 = Gauge "braid_member_round_trip_seconds",
        /// Time that the oldest request to the remote member has waited.
        pub waiting_us: u64 = Gauge "braid_member_waiting_seconds",
        /// Time after which a request to the remote member fails; a flush may take twice as long.
        pub deadline_us: u64 = Gauge "braid_member_deadline_seconds",
        /// Why there is no connection.
        pub trouble: Option<String>,
    }
}

impl RemoteStatus {
    /// Returns the present delay in words, for the member called `member`: a request waits for long, or there is no
    /// connection.
    pub fn delay(&self, member: &str) -> Option<String> {
        let why = self.trouble.as_ref().map_or(String::new(), |why| format!(": {why}"));
        let seconds = |us: u64| us / 1_000_000;
        if self.waiting_us >= LONG_US {
            let (waited, limit) = (seconds(self.waiting_us), seconds(self.deadline_us));
            return Some(format!("waits {waited} s for {member}, fails at {limit} s{why}"));
        }
        (self.connections == 0).then(|| format!("{member} is not connected{why}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_wait_and_a_lost_connection_are_told_with_the_reason() {
        let mut remote = RemoteStatus {
            connections: 1,
            waiting_us: 4_200_000,
            deadline_us: 30_000_000,
            ..RemoteStatus::default()
        };
        let told = |remote: &RemoteStatus| remote.delay("nbd(nbd://nas)");
        assert_eq!(told(&remote).as_deref(), Some("waits 4 s for nbd(nbd://nas), fails at 30 s"));
        remote.waiting_us = 900_000;
        assert_eq!(told(&remote), None);
        (remote.connections, remote.trouble) = (0, Some("refused".to_owned()));
        assert_eq!(told(&remote).as_deref(), Some("nbd(nbd://nas) is not connected: refused"));
    }
}
