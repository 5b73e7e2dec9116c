use serde_json::{Value, json};

use super::*;
use crate::offers::offers;

fn member(name: &str, role: Option<u16>, state: &str) -> Value {
    json!({ "member": name, "number": 0, "role": role, "state": state, "recovered_bytes": null,
        "replacement": false, "write_mostly": false, "corrected_reads": 0, "bad_ranges": 0, "remark": null })
}

/// A volume with one array, whose members are `/0`, `/1`, … in these states.
fn volume(level: &str, layout: u32, states: &[&str]) -> Status {
    let members: Vec<Value> = (0..)
        .zip(states)
        .map(|(role, state)| {
            member(&format!("/{role}"), (*state != "spare").then_some(role), state)
        })
        .collect();
    let roles: Vec<&&str> = states.iter().filter(|state| **state != "spare").collect();
    let in_sync: Vec<bool> = roles.iter().map(|state| ***state == *"in_sync").collect();
    let array = json!({ "name": "a", "called": "a", "uuid": "u", "metadata": "1.2", "level": level, "layout": null,
        "layout_number": layout, "chunk_bytes": null, "size_bytes": 1, "state": "clean",
        "raid_disks": in_sync.len(), "in_sync": in_sync, "members": members, "resync_from_bytes": null, "events": 1,
        "bitmap_chunk_bytes": null, "bitmap_chunks": null, "bitmap_chunks_set": null, "job": null,
        "requested": null, "last_scrub": null, "mismatch_bytes": 0, "mismatch_offsets": [],
        "speed_min_bytes_per_second": 0, "speed_max_bytes_per_second": null, "speed_latency_us_p99": null,
        "log": [] });
    let status = json!({ "output_version": 1, "name": "v", "state": "online", "why": null, "next": null,
        "stack": "md()", "device": { "size_bytes": 1, "logical_block_bytes": 512, "physical_block_bytes": 512,
        "optimal_io_bytes": 512, "read_only": false, "volatile": false },
        "members": [], "arrays": [array], "warnings": [], "pid": 1, "uptime_seconds": 0, "io": "uring",
        "shards": 1, "cpu_ns": 0 });
    serde_json::from_value(status).expect("a status")
}

fn order(text: &str) -> Order {
    serde_json::from_str(text).expect("an order")
}

fn fail(member: &str) -> Order {
    order(&format!(r#"{{"fail":{{"member":"{member}"}}}}"#))
}

/// Why an order is not possible; empty if it is.
fn why_not(status: &Status, order: &Order) -> String {
    let plan = plan(status, order);
    assert_eq!(plan.possible, plan.why_not.is_none());
    plan.why_not.unwrap_or_default()
}

#[test]
fn the_last_copy_is_kept_in_every_small_array() {
    let near2 = 0x102;
    let levels = [
        ("raid1", 0, 2, 4, 0),
        ("raid5", 2, 3, 4, 1),
        ("raid6", 2, 4, 5, 2),
        ("raid10", near2, 4, 4, 9),
    ];
    for (level, layout, least, most, parities) in levels {
        for count in least..=most {
            for absent in 0..1_u32 << count {
                let is_there = |role: usize| absent >> role & 1 == 0;
                let states: Vec<&str> = (0..count)
                    .map(|role| if is_there(role) { "in_sync" } else { "faulty" })
                    .collect();
                let status = volume(level, layout, &states);
                for role in (0..count).filter(|role| is_there(*role)) {
                    let left: Vec<bool> =
                        (0..count).map(|one| is_there(one) && one != role).collect();
                    let lost = left.iter().filter(|one| !**one).count();
                    let is_enough = match level {
                        "raid1" => lost < count,
                        "raid10" => (left[0] || left[1]) && (left[2] || left[3]),
                        _ => lost <= parities,
                    };
                    let why = why_not(&status, &fail(&format!("/{role}")));
                    assert_eq!(why.is_empty(), is_enough, "{level} {states:?} /{role}: {why}");
                    assert!(is_enough || why.contains("only copy"), "{why}");
                }
            }
        }
    }
}

#[test]
fn what_is_left_is_said() {
    let loses = |level, states: &[&str]| {
        plan(&volume(level, 2, states), &fail("/0")).loses.expect("a risk")
    };
    let ok = "in_sync";
    assert!(loses("raid1", &[ok, ok]).contains("one more loss may lose data"));
    assert!(loses("raid1", &[ok, ok, ok]).contains("survives one loss less"));
    assert!(loses("raid6", &[ok, ok, ok, ok]).contains("survives one loss less"));
    let said = plan(&volume("raid1", 0, &[ok, ok]), &fail("/0"));
    assert!(said.does.contains("works on with 1 of 2 members"), "{}", said.does);
    assert_eq!(said.command, "braid member fail v /0");
}

#[test]
fn what_is_no_longer_possible_has_a_reason() {
    let status = volume("raid1", 0, &["in_sync", "faulty", "spare"]);
    let cases = [
        (r#"{"fail":{"member":"/1"}}"#, "is faulty already"),
        (r#"{"fail":{"member":"/9"}}"#, "is no member of an array: there are /0, /1, /2"),
        (r#"{"remove":{"member":"/0"}}"#, "/0 is in_sync: only a faulty member or a spare"),
        (r#"{"remove":{"member":"/1"}}"#, ""),
        (r#"{"remove":{"member":"/2"}}"#, ""),
        (r#"{"add":{"member":"/1"}}"#, "is a member already, and is faulty"),
        (r#"{"add":{"member":"/3"}}"#, ""),
        (r#"{"add":{"member":"/3","array":"b"}}"#, "no array called b"),
        (r#"{"replace":{"member":"/1","with":"/3"}}"#, "/1 is faulty: only one that works"),
        (r#"{"replace":{"member":"/0","with":"/3"}}"#, ""),
        (r#"{"scrub":{"cancel":true}}"#, "no scrub runs"),
        (r#"{"raid-disks":{"count":2}}"#, "has 2 roles already"),
        (r#"{"raid-disks":{"count":3}}"#, ""),
        (r#"{"whole":"unlock"}"#, "is not locked"),
        (r#"{"whole":{"erase":{}}}"#, "is no RAM disk"),
        (r#"{"cache":"detach"}"#, "has no cache"),
    ];
    for (text, why) in cases {
        let said = why_not(&status, &order(text));
        assert!(said.contains(why) && said.is_empty() == why.is_empty(), "{text}: {said}");
    }
    let striped = volume("raid0", 2, &["in_sync", "in_sync"]);
    assert!(why_not(&striped, &fail("/0")).contains("no copies"));
    assert!(why_not(&striped, &order(r#"{"scrub":{}}"#)).contains("no array that keeps copies"));
}

#[test]
fn what_is_offered_is_possible() {
    let labels = |states: &[&str]| {
        let status = volume("raid1", 0, states);
        let offers = offers(&status);
        assert!(offers.iter().all(|offer| plan(&status, &offer.order).possible));
        offers
            .iter()
            .map(|one| (one.label, one.member.clone().unwrap_or_default()))
            .collect::<Vec<_>>()
    };
    let about = |label, member: &str| (label, member.to_owned());
    let whole = [about("Check copies", ""), about("Check and repair", ""), about("Lock", "")];
    let expect = |members: &[(&'static str, &str)]| {
        let members = members.iter().map(|(label, member)| about(label, member));
        members.chain(whole.clone()).collect::<Vec<_>>()
    };
    assert_eq!(labels(&["in_sync", "in_sync"]), expect(&[("Take out", "/0"), ("Take out", "/1")]));
    assert_eq!(labels(&["in_sync", "faulty"]), expect(&[("Remove", "/1")]));
}
