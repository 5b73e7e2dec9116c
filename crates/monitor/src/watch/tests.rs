//! Small worlds of volumes: every pair of looks, and walks through them.

use std::collections::BTreeMap;

use braid_control::{ArrayMember, ArrayStatus, Status};
use braid_seed::Rng;
use serde_json::json;

use super::*;
use crate::event::Severity;

const NAMES: [&str; 3] = ["a.img", "b.img", "c.img"];
/// States of a member; the first: there is none.
const STATES: [&str; 5] = ["", "in_sync", "faulty", "recovering", "spare"];

pub(super) fn policy() -> Policy {
    Policy {
        increment: 20,
        settle: 0,
        reminder: 0,
        write_back_age: 300,
        log_full: 90,
        memory: None,
        spares: BTreeMap::new(),
    }
}

fn status(name: &str) -> Status {
    let status = json!({
        "output_version": 1, "name": name, "state": "online", "why": null, "next": null, "stack": "raid1(…)",
        "device": {"size_bytes": 1, "logical_block_bytes": 512, "physical_block_bytes": 512,
            "optimal_io_bytes": 512, "read_only": false, "volatile": false},
        "members": [], "warnings": [], "pid": 1, "uptime_seconds": 1,
        "io": "threads", "shards": 1, "cpu_ns": 1,
    });
    serde_json::from_value(status).expect("a status")
}

fn array(members: &[(&str, &str)]) -> ArrayStatus {
    let array = json!({
        "name": "mirror", "called": "mirror", "uuid": null, "metadata": "1.2", "level": "raid1",
        "layout": null, "layout_number": 0, "chunk_bytes": null, "size_bytes": 1000, "state": "clean",
        "raid_disks": 2, "in_sync": [], "members": [], "resync_from_bytes": null, "events": 1,
        "bitmap_chunk_bytes": null, "bitmap_chunks": null, "bitmap_chunks_set": null, "job": null,
        "requested": null, "last_scrub": null, "mismatch_bytes": 0, "mismatch_offsets": [],
        "speed_min_bytes_per_second": 0, "speed_max_bytes_per_second": null,
        "speed_latency_us_p99": null, "log": [],
    });
    let mut array: ArrayStatus = serde_json::from_value(array).expect("an array");
    let member = |(name, state): &(&str, &str)| ArrayMember {
        member: (*name).to_owned(),
        state: (*state).to_owned(),
        ..ArrayMember::default()
    };
    array.members = members.iter().map(member).collect();
    let in_sync = members.iter().filter(|(_, state)| *state == "in_sync").count();
    array.in_sync = (0..2).map(|role| role < in_sync).collect();
    array
}

fn home(arrays: Vec<ArrayStatus>) -> Status {
    Status { arrays, ..status("home") }
}

fn seen(volumes: impl IntoIterator<Item = Status>) -> Observation {
    let up = |status: Status| (status.name.clone(), Seen::Up(Box::new(status)));
    Observation { volumes: volumes.into_iter().map(up).collect(), memory: None }
}

/// Names, with what they are of.
fn told(events: &[Event]) -> Vec<String> {
    let mut told: Vec<String> = events
        .iter()
        .map(|event| {
            let of = event.ended.as_ref().map_or(String::new(), |ended| format!("({ended})"));
            let member = event.member.as_ref().map_or(String::new(), |name| format!(" {name}"));
            format!("{}{of}{member}", event.name)
        })
        .collect();
    told.sort();
    told
}

/// All states of three members.
fn worlds() -> Vec<[usize; 3]> {
    (0..125).map(|index| [index % 5, index / 5 % 5, index / 25]).collect()
}

fn of_world(world: [usize; 3]) -> Status {
    let there = NAMES.iter().zip(world).filter(|(_, state)| *state != 0);
    let members: Vec<(&str, &str)> = there.map(|(name, state)| (*name, STATES[state])).collect();
    home(vec![array(&members)])
}

/// Returns the events between two worlds, by mdadm's rules.
fn expected(before: [usize; 3], now: [usize; 3]) -> Vec<String> {
    let is_degraded = |world: [usize; 3]| world.iter().filter(|state| **state == 1).count() < 2;
    let mut events = Vec::new();
    let mut failed = false;
    for ((name, old), new) in NAMES.iter().zip(before).zip(now) {
        let event = match (STATES[old], STATES[new]) {
            ("in_sync", "faulty") => "Fail",
            ("in_sync", "") if is_degraded(now) => "Fail",
            ("recovering" | "spare", "faulty") => "FailSpare",
            ("recovering" | "spare", "in_sync") => "SpareActive",
            _ => continue,
        };
        failed |= event != "SpareActive";
        events.push(format!("{event} {name}"));
    }
    match (is_degraded(before), is_degraded(now)) {
        (false, true) if !failed => events.push("DegradedArray".to_owned()),
        (true, false) => events.push("WellAgain(DegradedArray)".to_owned()),
        _ => {}
    }
    events.sort();
    events
}

#[test]
fn every_pair_of_small_arrays_tells_what_mdadm_would() {
    let worlds: Vec<([usize; 3], Status)> =
        worlds().into_iter().map(|world| (world, of_world(world))).collect();
    for (before, first) in &worlds {
        let mut start = Known::default();
        let events = start.step(&seen([first.clone()]), &policy(), 10);
        let is_degraded = first.arrays[0].in_sync.contains(&false);
        let wanted = if is_degraded { vec!["DegradedArray", "NewArray"] } else { vec!["NewArray"] };
        assert_eq!(told(&events), wanted, "{before:?}");
        for (now, second) in &worlds {
            let mut known = start.clone();
            let look = seen([second.clone()]);
            let events = known.step(&look, &policy(), 20);
            assert_eq!(told(&events), expected(*before, *now), "{before:?} {now:?}");
            assert_eq!(known.step(&look, &policy(), 30), [], "{before:?} {now:?}: told twice");
        }
    }
}

#[test]
fn a_member_that_was_replaced_has_not_failed() {
    let before = array(&[("a.img", "in_sync"), ("b.img", "in_sync"), ("c.img", "recovering")]);
    let mut after = array(&[("a.img", "faulty"), ("b.img", "in_sync"), ("c.img", "in_sync")]);
    let mut told_of = |remark: &str| {
        after.members[0].remark = Some(remark.to_owned());
        let mut known = Known::default();
        known.step(&seen([home(vec![before.clone()])]), &policy(), 10);
        told(&known.step(&seen([home(vec![after.clone()])]), &policy(), 20))
    };
    assert_eq!(told_of("replaced by c.img"), ["SpareActive c.img"]);
    assert_eq!(told_of("EIO"), ["Fail a.img", "SpareActive c.img"]);
}

/// Passes as kind, member and percent.
#[test]
fn every_pair_of_passes_tells_what_began_and_ended() {
    let passes: Vec<Option<(&str, u64)>> = std::iter::once(None)
        .chain(["recovery", "check"].iter().flat_map(|kind| {
            [0, 19, 20, 59, 100].into_iter().map(move |percent| Some((*kind, percent)))
        }))
        .collect();
    let of = |pass: Option<(&str, u64)>| {
        let mut array = array(&[("a.img", "in_sync"), ("b.img", "in_sync")]);
        array.job = pass.map(|(kind, percent)| braid_control::JobStatus {
            kind: kind.to_owned(),
            member: None,
            done_bytes: percent * 10,
            total_bytes: 1000,
            bytes_per_second: 1,
            eta_seconds: None,
        });
        seen([home(vec![array])])
    };
    for before in &passes {
        for now in &passes {
            let mut known = Known::default();
            known.step(&of(*before), &policy(), 10);
            let events = known.step(&of(*now), &policy(), 20);
            let step = |percent: u64| percent / 20 * 20;
            let wanted: Vec<String> = match (before, now) {
                (None, None) => vec![],
                (None, Some(_)) => vec!["RebuildStarted".into()],
                (Some(_), None) => vec!["RebuildFinished".into()],
                (Some((one, from)), Some((other, to)))
                    if one == other && step(*from) <= step(*to) =>
                {
                    match step(*from) < step(*to) {
                        true => vec![format!("Rebuild{:02}", step(*to))],
                        false => vec![],
                    }
                }
                // Another one, also where it is of the same kind and has begun anew.
                _ => vec!["RebuildFinished".into(), "RebuildStarted".into()],
            };
            assert_eq!(told(&events), wanted, "{before:?} {now:?}");
        }
    }
}

/// Each condition alone: it is told once, held while the volume is silent, and well again.
#[test]
fn each_condition_is_told_once_and_ends_once() {
    let with = |change: fn(&mut Status)| {
        let mut status = home(vec![array(&[("a.img", "in_sync"), ("b.img", "in_sync")])]);
        change(&mut status);
        seen([status])
    };
    let cache = |change: fn(&mut braid_control::WriteBackStatus)| {
        let mut status = home(vec![array(&[("a.img", "in_sync"), ("b.img", "in_sync")])]);
        let mut cache: braid_control::CacheStatus = serde_json::from_value(json!({
            "cache": "cache(…)", "mode": "write-back", "policy": "lru", "block_bytes": 4096,
            "size_bytes": 1 << 20, "used_bytes": 8192, "index_bytes": 0, "reads": 0, "writes": 2,
            "cache_hits": 0, "cache_misses": 0, "replacement": 0, "write_replacement": 0,
            "read_invalidates": 0, "write_invalidates": 0, "uncached_reads": 0, "uncached_writes": 0,
            "disk_reads": 0, "disk_writes": 1, "cache_reads": 0, "cache_writes": 2, "bytes_read": 0,
            "bytes_from_ram": 0, "bytes_from_origin": 0, "bytes_written": 8192,
            "write_back": {
                "flushed_to": "log", "dirty_bytes": 8192, "dirty_limit_bytes": 1 << 19,
                "oldest_dirty_ms": 299_999, "drained_bytes": 0, "log": "l.img", "log_size_bytes": 100,
                "log_used_bytes": 89, "log_writes": 1, "log_written_bytes": 8192,
                "replayed_bytes": 0, "drain_error": null, "log_error": null,
            },
        }))
        .expect("a cache");
        change(cache.write_back.as_mut().expect("it is of write-back"));
        status.caches.push(cache);
        seen([status])
    };
    fn disk(change: fn(&mut braid_control::SmartStatus)) -> braid_control::DiskStatus {
        let mut smart = braid_control::SmartStatus::default();
        change(&mut smart);
        let disk = Some("sdx".to_owned());
        braid_control::DiskStatus { disk, smart: Some(smart), ..Default::default() }
    }
    fn member(status: &mut Status) -> &mut braid_control::MemberStatus {
        let member = json!({"member": "a.img", "size_bytes": 1, "direct": true, "failures": 0, "last_failure": null});
        status.members.push(serde_json::from_value(member).expect("a member"));
        status.members.last_mut().expect("one was added")
    }
    fn scrub(
        kind: &str,
        ended_ms: u64,
        mismatch_bytes: u64,
        unread_bytes: u64,
    ) -> braid_control::ScrubStatus {
        let scrub = json!({"kind": kind, "ended_ms": ended_ms, "mismatch_bytes": mismatch_bytes,
            "unread_bytes": unread_bytes});
        serde_json::from_value(scrub).expect("a scrub")
    }
    let fine = with(|_| {});
    let mut thirsty = fine.clone();
    thirsty.memory = Some(Memory { total: 1000, available: 49 });
    let mut quenched = fine.clone();
    quenched.memory = Some(Memory { total: 1000, available: 50 });
    let cases: Vec<(&str, Observation)> = vec![
        (
            "SlowMember a.img",
            with(|status| member(status).slow = Some("5 times its siblings".into())),
        ),
        ("MemberHangs a.img", with(|status| member(status).io.overdue = 2)),
        (
            "MemberUnreachable a.img",
            with(|status| member(status).remote = Some(braid_control::RemoteStatus::default())),
        ),
        (
            "DiskFailing a.img",
            with(|status| {
                member(status).disk =
                    Some(disk(|smart| smart.failing.push("it takes no more writes".into())));
            }),
        ),
        (
            "SmartWarning a.img",
            with(|status| {
                member(status).disk =
                    Some(disk(|smart| smart.warnings.push("17 media errors".into())));
            }),
        ),
        (
            "MemberGone a.img",
            with(|status| member(status).gone = Some("its file was deleted".into())),
        ),
        ("DataLost", with(|status| status.arrays[0].lost = vec![(0, 512)])),
        ("ScrubFound", with(|status| status.arrays[0].last_scrub = Some(scrub("check", 1, 8, 0)))),
        ("ScrubFound", with(|status| status.arrays[0].last_scrub = Some(scrub("repair", 1, 0, 8)))),
        (
            "Certificate",
            with(|status| {
                let warning = Some("the certificate expires in 3 days".into());
                let tls = Some(braid_control::TlsStatus { warning, ..Default::default() });
                status.exports.push(braid_control::ExportStatus { tls, ..Default::default() });
            }),
        ),
        ("VolumeFailed", with(|status| status.state = "failed".into())),
        ("VolumeFailing", with(|status| status.state = "failing".into())),
        ("LogFull cache", cache(|cache| cache.log_used_bytes = Some(90))),
        (
            "LogFailed cache",
            cache(|cache| {
                cache.log_error = Some("EIO".into());
                cache.log_used_bytes = Some(100);
            }),
        ),
        ("DrainFailed cache", cache(|cache| cache.drain_error = Some("ENOSPC".into()))),
        ("WriteBackAge cache", cache(|cache| cache.oldest_dirty_ms = Some(300_000))),
        ("MemoryShort", thirsty),
        (
            "VolumeGone",
            Observation {
                volumes: [("home".into(), Seen::Dead("gone".into()))].into(),
                memory: None,
            },
        ),
        (
            "VolumeStalled",
            Observation {
                volumes: [("home".into(), Seen::Silent("hangs".into()))].into(),
                memory: None,
            },
        ),
        (
            "VolumeUnreadable",
            Observation {
                volumes: [("home".into(), Seen::Unreadable("EACCES".into()))].into(),
                memory: None,
            },
        ),
    ];
    let silent = &cases.iter().find(|(name, _)| *name == "VolumeStalled").expect("there").1.clone();
    let nothing_wrong = cache(|_| {});
    for (name, wrong) in &cases {
        let mut known = Known::default();
        known.step(&nothing_wrong, &policy(), 10);
        let events = known.step(wrong, &policy(), 20);
        assert_eq!(told(&events), [*name]);
        let event = &events[0];
        assert!(event.severity > Severity::Info && !event.what.is_empty(), "{event:?}");
        assert!(event.next.is_some() || event.name.starts_with("VolumeFail"), "{event:?}");
        assert_eq!(known.step(wrong, &policy(), 30), []);
        let parts: Vec<&str> = name.split(' ').collect();
        let member = parts.get(1).map_or(String::new(), |member| format!(" {member}"));
        let ended = format!("WellAgain({}){member}", parts[0]);
        if *name != "MemoryShort"
            && !wrong.volumes.values().any(|seen| !matches!(seen, Seen::Up(_)))
        {
            let events = known.step(silent, &policy(), 40);
            assert_eq!(told(&events), ["VolumeStalled"], "{name}: of a silent volume nothing ends");
            let events = known.step(&quenched, &policy(), 50);
            let mut wanted = vec![ended, "WellAgain(VolumeStalled)".to_owned()];
            wanted.sort();
            assert_eq!(told(&events), wanted);
        } else {
            assert_eq!(told(&known.step(&quenched, &policy(), 50)), [ended]);
        }
        assert_eq!(known.step(&quenched, &policy(), 60), []);
        assert!(known.open().is_empty());
    }
    // A repair that made something good is told once, and lasts not.
    let repaired = with(|status| status.arrays[0].last_scrub = Some(scrub("repair", 7, 8, 0)));
    let mut known = Known::default();
    known.step(&fine, &policy(), 10);
    assert_eq!(told(&known.step(&repaired, &policy(), 20)), ["ScrubFound"]);
    assert_eq!(known.step(&repaired, &policy(), 30), []);
    assert_eq!(known.step(&fine, &policy(), 40), []);
}

#[test]
fn volumes_come_and_go() {
    let mirror = || array(&[("a.img", "in_sync"), ("b.img", "faulty")]);
    let mut known = Known::default();
    let both = seen([home(vec![mirror(), mirror()]), status("plain")]);
    let events = known.step(&both, &policy(), 10);
    let wanted = ["DegradedArray", "DegradedArray", "NewArray", "NewArray", "NewArray"];
    assert_eq!(told(&events), wanted);
    let events = known.step(&seen([status("plain")]), &policy(), 20);
    assert_eq!(told(&events), ["DeviceDisappeared", "DeviceDisappeared"]);
    assert!(known.open().is_empty(), "of what is not there nothing lasts");
    let events = known.step(&seen([status("plain"), home(vec![mirror()])]), &policy(), 30);
    assert_eq!(told(&events), ["DegradedArray", "NewArray"]);
    // One that was dead before it was ever seen is new when it answers.
    let dead = Seen::Dead("gone".to_owned());
    let dead = Observation { volumes: [("other".to_owned(), dead)].into(), memory: None };
    let mut known = Known::default();
    assert_eq!(told(&known.step(&dead, &policy(), 10)), ["VolumeGone"]);
    let events = known.step(&seen([status("other")]), &policy(), 20);
    assert_eq!(told(&events), ["NewArray", "WellAgain(VolumeGone)"]);
}

#[test]
fn spares_are_counted_and_followed() {
    let with = |name: &str, spare: bool| {
        let mut members = vec![("a.img", "in_sync"), ("b.img", "in_sync")];
        members.extend(spare.then_some(("s.img", "spare")));
        Status { arrays: vec![array(&members)], ..status(name) }
    };
    let policy = Policy { spares: [("home".to_owned(), 1)].into(), ..policy() };
    let mut known = Known::default();
    let look = |home, other| seen([with("home", home), with("other", other)]);
    assert_eq!(told(&known.step(&look(true, false), &policy, 10)), ["NewArray", "NewArray"]);
    let events = known.step(&look(false, true), &policy, 20);
    assert_eq!(told(&events), ["MoveSpare s.img", "SparesMissing"]);
    let moved = events.iter().find(|event| event.name == "MoveSpare").expect("told");
    assert_eq!(
        (moved.volume.as_str(), moved.what.as_str()),
        ("other", "s.img was a spare of home mirror")
    );
    let events = known.step(&look(true, false), &policy, 30);
    assert_eq!(told(&events), ["MoveSpare s.img", "WellAgain(SparesMissing)"]);
}

#[test]
fn what_comes_back_soon_is_the_same_cause_and_what_lasts_is_told_again() {
    let policy = Policy { settle: 60, reminder: 1000, ..policy() };
    let wrong = || seen([home(vec![array(&[("a.img", "in_sync")])])]);
    let fine = || seen([home(vec![array(&[("a.img", "in_sync"), ("b.img", "in_sync")])])]);
    let mut known = Known::default();
    let at = |known: &mut Known, look: Observation, now| {
        let only = |event: &Event| event.name != "NewArray" && event.name != "Fail";
        let events: Vec<Event> = known.step(&look, &policy, now);
        told(&events.into_iter().filter(only).collect::<Vec<_>>())
    };
    assert_eq!(at(&mut known, wrong(), 100), ["DegradedArray"]);
    for round in 0..10 {
        assert_eq!(at(&mut known, fine(), 101 + round * 70), [""; 0], "{round}");
        assert_eq!(at(&mut known, wrong(), 160 + round * 70), [""; 0], "{round}");
    }
    assert_eq!(at(&mut known, wrong(), 1099), [""; 0]);
    let events = known.step(&wrong(), &policy, 1100);
    assert_eq!((events[0].reminder, events[0].since), (true, 100));
    assert_eq!(at(&mut known, wrong(), 1101), [""; 0]);
    // A clock that was set back reminds late, and ends nothing early.
    assert_eq!(at(&mut known, fine(), 50), [""; 0]);
    assert_eq!(at(&mut known, fine(), 109), [""; 0]);
    let events = known.step(&fine(), &policy, 110);
    assert_eq!(told(&events), ["WellAgain(DegradedArray)"]);
    assert!(events[0].what.contains("of 1970-01-01T00:01:40Z"), "{}", events[0].what);
}

fn is_degraded(look: &Observation, volume: &str) -> bool {
    matches!(&look.volumes[volume], Seen::Up(status) if status.arrays[0].in_sync.contains(&false))
}

/// Walks through everything with restarts in between: a cause is told, and well again, in turn, and a monitor
/// that was started anew says nothing that one that ran on would not have said.
#[test]
fn a_cause_is_told_and_ends_in_turn_also_over_restarts() {
    let worlds = worlds();
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let policy = Policy { settle: rng.below(3) * 10, ..policy() };
        let (mut known, mut restarted) = (Known::default(), Known::default());
        let mut open: BTreeMap<String, bool> = BTreeMap::new();
        for now in (0..1000).step_by(10) {
            let volumes = ["home", "other"].into_iter().filter_map(|name| {
                let seen = match rng.below(8) {
                    0 => return None,
                    1 => Seen::Dead("gone".to_owned()),
                    2 => Seen::Silent("hangs".to_owned()),
                    _ => Seen::Up(Box::new(Status {
                        name: name.to_owned(),
                        ..of_world(worlds[rng.index(worlds.len())])
                    })),
                };
                Some((name.to_owned(), seen))
            });
            let look = Observation { volumes: volumes.collect(), memory: None };
            let events = known.step(&look, &policy, now);
            let text = serde_json::to_string(&restarted).expect("JSON");
            restarted = serde_json::from_str(&text).expect("what was written");
            assert_eq!(restarted.step(&look, &policy, now), events, "seed {seed}");
            for event in events {
                let is_over = event.name == "WellAgain";
                let lasts = ["DegradedArray", "VolumeGone", "VolumeStalled"];
                match event.name.as_str() {
                    "DeviceDisappeared" => {
                        open.retain(|cause, _| !cause.contains(&format!(":{}:", event.volume)));
                    }
                    // It stands for the array that is degraded by it.
                    "Fail" | "FailSpare" if is_degraded(&look, &event.volume) => {
                        let array = event.array.unwrap_or_default();
                        open.insert(format!("DegradedArray:{}:{array}:-", event.volume), true);
                    }
                    name if lasts.contains(&name) => {
                        let was = open.insert(event.cause.clone(), true);
                        assert_ne!(was, Some(true), "{} twice, seed {seed}", event.cause);
                    }
                    _ if is_over => {
                        let was = open.insert(event.cause.clone(), false);
                        assert_eq!(was, Some(true), "{} ended, seed {seed}", event.cause);
                    }
                    _ => {}
                }
            }
        }
    }
}

#[test]
fn a_test_is_of_every_array() {
    let mirrors = || array(&[("a.img", "in_sync")]);
    let look = seen([home(vec![mirrors(), mirrors()]), status("plain")]);
    let events = Known::test_messages(&look, 10);
    assert_eq!(told(&events), ["TestMessage"; 3]);
    assert_eq!(Known::test_messages(&Observation::default(), 10).len(), 1);
}
