//! Spares that arrays of one group share: which of them has to go where.
//!
//! An array that lacks a member, has no spare and fills none is given one of another volume's in its group, if
//! that one lacks nothing. What a plan says is carried out in two steps, the spare's removal and its addition;
//! in between it belongs to no volume.
//!
//! Invariants: pure; a spare is promised once, an array is given one at a time, and a spare that is too small for
//! any member is not.
//!
//! Deliberately absent: asking and ordering, which `braid monitor` does for what mdadm calls `MoveSpare`.
//!
//! Source: mdadm 4.2 `Monitor.c` (`try_spare_migration`).

use serde::{Deserialize, Serialize};

use crate::array_status::ArrayStatus;
use crate::status::Status;

/// A spare that has to go from one volume to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpareMove {
    /// The spare's path.
    pub member: String,
    /// The volume that has it.
    pub from: String,
    /// Name of its array.
    pub from_array: String,
    /// Identifier of that array, which the spare carries.
    pub from_uuid: Option<String>,
    /// The volume that lacks a member.
    pub to: String,
    /// Name of that array.
    pub array: String,
}

impl SpareMove {
    /// Returns true if the array that it is for, among these, still needs it.
    pub fn is_wanted(&self, statuses: &[&Status]) -> bool {
        let to = statuses.iter().find(|one| one.name == self.to);
        to.is_some_and(|to| to.arrays.iter().any(|one| one.called == self.array && is_short(one)))
    }
}

/// The moves that volumes with these statuses ask for, in the order of those that lack a member.
pub fn plan_moves(statuses: &[&Status]) -> Vec<SpareMove> {
    let mut moves: Vec<SpareMove> = Vec::new();
    for (needy, array) in
        statuses.iter().flat_map(|one| one.arrays.iter().map(move |array| (one, array)))
    {
        let Some(group) = needy.spare_group.as_ref().filter(|_| is_short(array)) else { continue };
        let least = least_member(needy, array);
        let donors = statuses
            .iter()
            .filter(|one| one.name != needy.name && one.spare_group.as_ref() == Some(group));
        let spare = donors.flat_map(|donor| {
            let arrays = donor.arrays.iter().filter(|array| !array.in_sync.contains(&false));
            arrays.flat_map(move |array| {
                let spares = array.members.iter().filter(|one| one.state == "spare");
                spares.map(move |spare| (*donor, array, spare.member.as_str()))
            })
        });
        let mut fitting = spare.filter(|(donor, _, spare)| {
            size_of(donor, spare) >= least && moves.iter().all(|one| one.member != *spare)
        });
        if let Some((donor, from, spare)) = fitting.next() {
            moves.push(SpareMove {
                member: spare.to_owned(),
                from: donor.name.clone(),
                from_array: from.called.clone(),
                from_uuid: from.uuid.clone(),
                to: needy.name.clone(),
                array: array.called.clone(),
            });
        }
    }
    moves
}

/// Returns true if a member is missing, and no spare replaces it, or waits to: what is being filled may make the array
/// whole, and what comes after it is seen then. An array that cannot be changed is given nothing.
fn is_short(array: &ArrayStatus) -> bool {
    let takes_over =
        |state: &str| array.members.iter().any(|one| one.state == state && !one.replacement);
    array.in_sync.contains(&false)
        && !takes_over("spare")
        && !takes_over("recovering")
        && !matches!(array.state.as_str(), "readonly" | "broken")
}

/// The smallest of the members that work: none is used beyond it.
fn least_member(status: &Status, array: &ArrayStatus) -> u64 {
    let works = array.members.iter().filter(|one| one.state == "in_sync");
    works.map(|one| size_of(status, &one.member)).min().unwrap_or(u64::MAX)
}

fn size_of(status: &Status, member: &str) -> u64 {
    status.members.iter().find(|one| one.member == member).map_or(0, |one| one.size_bytes)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// A volume of a group with one array of two roles, whose members are in these states.
    fn volume(name: &str, group: Option<&str>, states: &[&str], size: u64) -> Status {
        let label = |index: usize| format!("/dev/{name}{index}");
        let member = |(index, state): (usize, &&str)| {
            json!({
                "member": label(index), "number": index, "role": null, "state": state,
                "recovered_bytes": null, "replacement": false, "write_mostly": false,
                "corrected_reads": 0, "bad_ranges": 0, "remark": null,
            })
        };
        let members: Vec<Value> = states.iter().enumerate().map(member).collect();
        let leaf = |index| {
            json!({
                "member": label(index), "size_bytes": size, "direct": true, "failures": 0,
                "last_failure": null,
            })
        };
        let leaves: Vec<Value> = (0..states.len()).map(leaf).collect();
        let in_sync = states.iter().filter(|state| **state == "in_sync").count();
        let array = json!({
            "name": name, "called": name, "uuid": null, "metadata": "1.2", "level": "raid1", "layout": null,
            "layout_number": 0, "chunk_bytes": null, "size_bytes": 1, "state": "active", "raid_disks": 2,
            "in_sync": [in_sync > 0, in_sync > 1], "members": members, "resync_from_bytes": null,
            "events": 7, "bitmap_chunk_bytes": null, "bitmap_chunks": null, "bitmap_chunks_set": null,
            "job": null, "requested": null, "last_scrub": null, "mismatch_bytes": 0,
            "mismatch_offsets": [], "speed_min_bytes_per_second": 0,
            "speed_max_bytes_per_second": null, "speed_latency_us_p99": null, "log": [],
        });
        let status = json!({
            "output_version": 1, "name": name, "state": "online", "why": null, "next": null, "stack": "",
            "device": {
                "size_bytes": 1, "logical_block_bytes": 512, "physical_block_bytes": 512,
                "optimal_io_bytes": 512, "read_only": false, "volatile": false,
            },
            "members": leaves, "arrays": [array], "warnings": [], "pid": 1,
            "uptime_seconds": 1, "io": "threads", "shards": 1, "cpu_ns": 0, "spare_group": group,
        });
        serde_json::from_value(status).expect("a status")
    }

    const WHOLE: [&str; 3] = ["in_sync", "in_sync", "spare"];
    const SHORT: [&str; 2] = ["in_sync", "faulty"];

    fn moved(statuses: &[Status]) -> Vec<(String, String, String)> {
        plan_moves(&statuses.iter().collect::<Vec<_>>())
            .into_iter()
            .map(|one| (one.member, one.from, one.to))
            .collect()
    }

    #[test]
    fn a_spare_goes_to_who_lacks_a_member() {
        let give = volume("a", Some("g"), &WHOLE, 100);
        let expected = [("/dev/a2".to_owned(), "a".to_owned(), "b".to_owned())];
        assert_eq!(moved(&[give.clone(), volume("b", Some("g"), &SHORT, 100)]), expected);
        for (why, group, states, size) in [
            ("another group", Some("h"), &SHORT[..], 100),
            ("no group", None, &SHORT, 100),
            ("it lacks nothing", Some("g"), &WHOLE, 100),
            ("a spare of its own takes over", Some("g"), &["in_sync", "faulty", "spare"], 100),
            ("it is being filled", Some("g"), &["in_sync", "faulty", "recovering"], 100),
            ("too small", Some("g"), &SHORT, 101),
            ("no member works", Some("g"), &["faulty", "faulty"], 100),
        ] {
            assert_eq!(moved(&[give.clone(), volume("b", group, states, size)]), [], "{why}");
        }
        let short_too = volume("a", Some("g"), &["in_sync", "faulty", "spare"], 100);
        assert_eq!(
            moved(&[short_too, volume("b", Some("g"), &SHORT, 100)]),
            [],
            "it needs it itself"
        );
    }

    #[test]
    fn an_array_that_recovers_or_cannot_be_changed_waits() {
        let give = volume("a", Some("g"), &WHOLE, 100);
        // Two of three are missing, and one of them is being filled.
        let mut needy = volume("b", Some("g"), &["in_sync", "recovering"], 100);
        needy.arrays[0].in_sync.push(false);
        assert_eq!(moved(&[give.clone(), needy.clone()]), []);
        needy.arrays[0].members[1].replacement = true;
        assert_eq!(
            moved(&[give.clone(), needy.clone()]).len(),
            1,
            "that fills no role that is missing"
        );
        for state in ["readonly", "broken"] {
            needy.arrays[0].state = state.to_owned();
            assert_eq!(moved(&[give.clone(), needy.clone()]), [], "{state}");
        }
    }

    #[test]
    fn one_spare_goes_to_one_of_two() {
        let volumes = [
            volume("b", Some("g"), &SHORT, 100),
            volume("a", Some("g"), &WHOLE, 100),
            volume("c", Some("g"), &SHORT, 100),
        ];
        assert_eq!(moved(&volumes), [("/dev/a2".into(), "a".into(), "b".into())]);
    }
}
