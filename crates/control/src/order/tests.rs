use serde_json::{Value, json};

use super::*;

fn order_of(text: &str) -> Order {
    serde_json::from_str(text).expect("an order")
}

/// An order in JSON, as it is run and as it is typed.
fn lines(order: &str) -> (String, String) {
    let line = order_of(order).command("home");
    (line.arguments().join(" "), line.typed())
}

#[test]
fn orders_are_command_lines() {
    let cases = [
        (
            r#"{"fail":{"member":"/a b"}}"#,
            "member fail --json -- home /a b",
            "braid member fail home '/a b'",
        ),
        (
            r#"{"add":{"member":"/a","again":true,"force":true,"array":"x"}}"#,
            "member re-add --array=x --force --json -- home /a",
            "braid member re-add --array=x --force home /a",
        ),
        (
            r#"{"replace":{"member":"/a","with":"/b"}}"#,
            "member replace --json -- home /a /b",
            "braid member replace home /a /b",
        ),
        (
            r#"{"replace":{"member":"/a","with":"/b","write_mostly":true}}"#,
            "member replace --write-mostly --json -- home /a /b",
            "braid member replace --write-mostly home /a /b",
        ),
        (
            r#"{"add":{"member":"/a","write_mostly":true}}"#,
            "member add --write-mostly --json -- home /a",
            "braid member add --write-mostly home /a",
        ),
        (
            r#"{"scrub":{"repair":true}}"#,
            "scrub --repair --json -- home",
            "braid scrub --repair home",
        ),
        (
            r#"{"scrub":{"repair":true,"force":true}}"#,
            "scrub --repair --force --json -- home",
            "braid scrub --repair --force home",
        ),
        (
            r#"{"device":{"gone":{"device":"8:16"}}}"#,
            "incremental --fail=8:16 --",
            "braid incremental --fail=8:16",
        ),
        (
            r#"{"scrub":{"repair":true,"cancel":true}}"#,
            "scrub --cancel --json -- home",
            "braid scrub --cancel home",
        ),
        (
            r#"{"speed":{"max_bytes_per_second":0,"latency_us_p99":20000}}"#,
            "speed --max=0 --latency=20000us --json -- home",
            "braid speed --max=0 --latency=20000us home",
        ),
        (r#"{"member-size":{}}"#, "grow --size=max --json -- home", "braid grow --size=max home"),
        (
            r#"{"bitmap":{"chunk_bytes":65536}}"#,
            "grow --bitmap=65536 --json -- home",
            "braid grow --bitmap=65536 home",
        ),
        (
            r#"{"whole":{"resize":{"bytes":4096}}}"#,
            "resize --json -- home 4096",
            "braid resize home 4096",
        ),
        (r#"{"whole":"unlock"}"#, "unlock --json -- home", "braid unlock home"),
        (
            r#"{"cache":{"attach":{"parameters":"size=8M, policy=lru"}}}"#,
            "cache attach --json -- home size=8M policy=lru",
            "braid cache attach home size=8M policy=lru",
        ),
        (
            r#"{"cache":{"drain":{}}}"#,
            "cache drain --json -- home unlimited",
            "braid cache drain home unlimited",
        ),
    ];
    for (order, run, typed) in cases {
        assert_eq!(lines(order), (run.to_owned(), typed.to_owned()), "{order}");
    }
}

#[test]
fn nothing_that_is_named_becomes_an_option() {
    let (run, typed) = lines(r#"{"fail":{"member":"--force","array":"--json"}}"#);
    assert_eq!(run, "member fail --array=--json --json -- home --force");
    assert_eq!(typed, "braid member fail --array=--json home ./--force");
}

#[test]
fn the_path_that_a_volume_opens_is_told() {
    let path = |order: &str| order_of(order).path().map(Path::to_owned);
    assert_eq!(path(r#"{"add":{"member":"a.img"}}"#), Some("a.img".into()));
    assert_eq!(path(r#"{"whole":{"save":{"file":"../x"}}}"#), Some("../x".into()));
    assert_eq!(path(r#"{"fail":{"member":"member 2 of home"}}"#), None, "a name, as status has it");
}

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

#[test]
fn the_redundancy_that_is_left_is_told() {
    let fail = order_of(r#"{"fail":{"member":"/0"}}"#);
    let loses =
        |level, states: &[&str]| fail.effect(&volume(level, 2, states)).loses.expect("a risk");
    let ok = "in_sync";
    assert!(loses("raid1", &[ok, ok]).contains("one more loss may lose data"));
    assert!(loses("raid1", &[ok, ok, ok]).contains("survives one loss less"));
    assert!(loses("raid6", &[ok, ok, ok, ok]).contains("survives one loss less"));
    let effect = fail.effect(&volume("raid1", 0, &[ok, ok]));
    assert!(effect.does.contains("works with 1 of 2 members"), "{effect:?}");
    let spare = fail.effect(&volume("raid1", 0, &["spare", ok, ok]));
    assert_eq!(spare.loses, None, "{spare:?}");
}
