//! The connections of remote members.

use braid_service::control::{RemoteStatus, Status};
use braid_stack::ByteSize;

/// Returns a line about the connections of `member`, if it is remote.
pub(super) fn of(status: &Status, member: &str) -> String {
    let found = status.members.iter().find(|one| one.member == member);
    match found.and_then(|one| one.remote.as_ref()) {
        Some(remote) => format!("               {}\n", line(remote)),
        None => String::new(),
    }
}

fn line(remote: &RemoteStatus) -> String {
    let times =
        |count: u64, one: &str| format!("{count} {one}{}", if count == 1 { "" } else { "s" });
    let mut parts = vec![
        format!("{} of {} connections", remote.connections, remote.connections_wanted),
        format!("round trip {:.2} ms", remote.round_trip_us as f64 / 1e3),
        format!("{:#} sent", ByteSize(remote.sent_bytes)),
        format!("{:#} received", ByteSize(remote.received_bytes)),
    ];
    for (count, what) in [
        (remote.reconnects, "lost connection"),
        (remote.repeated, "repeated change"),
        (remote.expired, "expired request"),
    ] {
        if count > 0 {
            parts.push(times(count, what));
        }
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_in_the_line_only_if_there_were_some() {
        let mut remote = RemoteStatus {
            connections: 3,
            connections_wanted: 4,
            round_trip_us: 250,
            sent_bytes: 2 << 20,
            ..RemoteStatus::default()
        };
        let plain = "3 of 4 connections, round trip 0.25 ms, 2 MiB sent, 0 B received";
        assert_eq!(line(&remote), plain);
        (remote.reconnects, remote.repeated) = (1, 17);
        assert_eq!(line(&remote), format!("{plain}, 1 lost connection, 17 repeated changes"));
    }
}
