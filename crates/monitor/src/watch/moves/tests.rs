//! Two volumes of a group, and what becomes of the spare of one of them.

use std::cell::Cell;

use serde_json::{Value, json};

use super::*;
use crate::watch::Known;
use crate::watch::tests::policy;

/// A raid1 of two roles; members by name and state.
fn volume(name: &str, members: &[(&str, &str)]) -> Seen {
    let member = |(name, state): &(&str, &str)| {
        json!({"member": name, "number": 0, "role": null, "state": state, "recovered_bytes": null,
            "replacement": false, "write_mostly": false, "corrected_reads": 0, "bad_ranges": 0, "remark": null})
    };
    let leaf = |(name, _): &(&str, &str)| json!({"member": name, "size_bytes": 100, "direct": true, "failures": 0, "last_failure": null});
    let in_sync = members.iter().filter(|(_, state)| *state == "in_sync").count();
    let leaves: Vec<Value> = members.iter().map(leaf).collect();
    let members: Vec<Value> = members.iter().map(member).collect();
    let array = json!({
        "name": name, "called": name, "uuid": format!("{name}-uuid"), "metadata": "1.2", "level": "raid1",
        "layout": null, "layout_number": 0, "chunk_bytes": null, "size_bytes": 1, "state": "active",
        "raid_disks": 2, "in_sync": [in_sync > 0, in_sync > 1], "members": members,
        "resync_from_bytes": null, "events": 7, "bitmap_chunk_bytes": null, "bitmap_chunks": null,
        "bitmap_chunks_set": null, "job": null, "requested": null, "last_scrub": null, "mismatch_bytes": 0,
        "mismatch_offsets": [], "speed_min_bytes_per_second": 0, "speed_max_bytes_per_second": null,
        "speed_latency_us_p99": null, "log": [],
    });
    let status = json!({
        "output_version": 1, "name": name, "state": "online", "why": null, "next": null, "stack": "",
        "device": {"size_bytes": 1, "logical_block_bytes": 512, "physical_block_bytes": 512,
            "optimal_io_bytes": 512, "read_only": false, "volatile": false},
        "members": leaves, "arrays": [array], "warnings": [], "pid": 1,
        "uptime_seconds": 1, "io": "threads", "shards": 1, "cpu_ns": 0, "spare_group": "g",
    });
    Seen::Up(serde_json::from_value(status).expect("a status"))
}

const HOME: [(&str, &str); 2] = [("/dev/h0", "in_sync"), ("/dev/h1", "in_sync")];
const NEEDY: [(&str, &str); 2] = [("/dev/n0", "in_sync"), ("/dev/n1", "faulty")];
const SPARE: (&str, &str) = ("/dev/s", "spare");

/// Volumes `home` and `needy`; `None` is one that does not answer.
fn look(home: Option<&[(&str, &str)]>, needy: Option<&[(&str, &str)]>) -> Observation {
    let seen = |name: &str, members: Option<&[(&str, &str)]>| {
        let silent = || Seen::Silent("hangs".to_owned());
        (name.to_owned(), members.map_or_else(silent, |members| volume(name, members)))
    };
    Observation { volumes: [seen("home", home), seen("needy", needy)].into(), memory: None }
}

fn with<'a>(members: &[(&'a str, &'a str)], more: (&'a str, &'a str)) -> Vec<(&'a str, &'a str)> {
    [members, &[more]].concat()
}

fn steps(moves: &mut Moves, observation: &Observation, now: u64) -> Option<Step> {
    moves.next(observation, now).map(|(step, spare)| {
        assert_eq!(
            (spare.member.as_str(), spare.from.as_str(), spare.to.as_str()),
            ("/dev/s", "home", "needy")
        );
        assert_eq!(spare.from_uuid.as_deref(), Some("home-uuid"));
        step
    })
}

#[test]
fn a_spare_moves_once_and_the_move_ends_when_it_is_seen_there() {
    let (before, between) =
        (look(Some(&with(&HOME, SPARE)), Some(&NEEDY)), look(Some(&HOME), Some(&NEEDY)));
    let after = look(Some(&HOME), Some(&with(&NEEDY, ("/dev/s", "recovering"))));
    let mut moves = Moves::default();
    assert_eq!(steps(&mut moves, &before, 10), Some(Step::Move));
    assert_eq!(moves.on_its_way(), Some(("/dev/s".to_owned(), "home home".to_owned())));
    moves.ended(Ok(()), 12);
    assert_eq!(steps(&mut moves, &after, 15), None);
    assert_eq!(moves, Moves::default());
    // A monitor that was started anew half way has the move in its state.
    let mut moves = Moves::default();
    assert_eq!(steps(&mut moves, &before, 10), Some(Step::Move));
    let text = serde_json::to_string(&moves).expect("JSON");
    let mut anew: Moves = serde_json::from_str(&text).expect("what was written");
    assert_eq!(steps(&mut anew, &between, 20), Some(Step::Place));
    assert!(anew.conditions().is_empty(), "nothing has failed");
    anew.ended(Ok(()), 21);
    assert_eq!(steps(&mut anew, &after, 25), None);
    assert_eq!(anew, Moves::default());
}

#[test]
fn one_that_is_not_taken_is_told_and_not_offered_again_for_an_hour() {
    let before = look(Some(&with(&HOME, SPARE)), Some(&NEEDY));
    let mut moves = Moves::default();
    assert_eq!(steps(&mut moves, &before, 10), Some(Step::Move));
    moves.ended(Err("it is too small".to_owned()), 12);
    assert_eq!(steps(&mut moves, &before, 15), None);
    let told = moves.conditions().remove("needy").expect("it is told");
    assert!(told[0].what.contains("too small; it is where it was"), "{told:?}");
    assert_eq!(told[0].next.as_deref(), Some("`braid member add needy DEVICE` gives it another"));
    assert_eq!(steps(&mut moves, &before, 15 + HELD - 1), None);
    assert_eq!(moves.conditions().len(), 1);
    assert_eq!(steps(&mut moves, &before, 15 + HELD), Some(Step::Move));
    // It is over as soon as the array needs none.
    moves.ended(Err("it is too small".to_owned()), 5000);
    assert_eq!(steps(&mut moves, &before, 5001), None);
    let whole = with(&[("/dev/n0", "in_sync")], ("/dev/n2", "in_sync"));
    assert_eq!(steps(&mut moves, &look(Some(&with(&HOME, SPARE)), Some(&whole)), 5002), None);
    assert_eq!(moves, Moves::default());
}

#[test]
fn one_that_nobody_takes_is_tried_there_then_here_and_given_up() {
    let between = look(Some(&HOME), Some(&NEEDY));
    let mut moves = Moves::default();
    assert_eq!(
        steps(&mut moves, &look(Some(&with(&HOME, SPARE)), Some(&NEEDY)), 0),
        Some(Step::Move)
    );
    let now = Cell::new(0);
    let mut tried = Vec::new();
    for failures in 1..=MOST {
        moves.ended(Err("EIO".to_owned()), now.get());
        assert_eq!(steps(&mut moves, &between, now.get() + 1), None, "not at once");
        let told = moves.conditions().remove("needy").expect("it is told");
        assert!(told[0].what.contains("EIO"), "{told:?}");
        assert!(told[0].next.as_ref().is_some_and(|next| next.contains("add home /dev/s")));
        now.set(now.get() + PAUSE);
        let step = steps(&mut moves, &between, now.get());
        assert_eq!(step.is_some(), failures < MOST, "{failures}");
        tried.extend(step);
    }
    let placed = tried.iter().filter(|step| **step == Step::Place).count();
    assert_eq!((placed, tried.len()), (2, 19));
    assert!(tried[2..].iter().all(|step| *step == Step::Return), "{tried:?}");
    assert!(moves.on_its_way().is_none());
    assert!(moves.conditions()["needy"][0].what.contains("nothing more is tried"));
    // Back at home it is no news.
    let mut moves = Moves::default();
    assert_eq!(
        steps(&mut moves, &look(Some(&with(&HOME, SPARE)), Some(&NEEDY)), 0),
        Some(Step::Move)
    );
    let whole = [("/dev/n0", "in_sync"), ("/dev/n2", "in_sync")];
    assert_eq!(
        steps(&mut moves, &look(Some(&HOME), Some(&whole)), 0),
        Some(Step::Return),
        "nobody needs it"
    );
    assert_eq!(steps(&mut moves, &look(Some(&with(&HOME, SPARE)), Some(&whole)), 5), None);
    assert_eq!(moves, Moves::default());
}

#[test]
fn nothing_is_done_while_one_of_them_is_silent() {
    let with_spare = with(&HOME, SPARE);
    let mut moves = Moves::default();
    assert_eq!(steps(&mut moves, &look(Some(&with_spare), None), 0), None);
    assert_eq!(steps(&mut moves, &look(Some(&with_spare), Some(&NEEDY)), 0), Some(Step::Move));
    for silent in [look(None, Some(&NEEDY)), look(Some(&HOME), None), look(None, None)] {
        assert_eq!(steps(&mut moves, &silent, 5), None);
        assert!(moves.on_its_way().is_some());
    }
    assert_eq!(steps(&mut moves, &look(Some(&HOME), Some(&NEEDY)), 5), Some(Step::Place));
}

/// A look in between sees the spare nowhere.
#[test]
fn a_move_that_takes_longer_than_a_look_is_told_when_it_is_there() {
    let policy = policy();
    let mut known = Known::default();
    let told = |known: &mut Known, observation: &Observation, now| {
        let events = known.step(observation, &policy, now);
        events
            .iter()
            .filter(|event| event.name == "MoveSpare")
            .map(|event| event.what.clone())
            .collect::<Vec<_>>()
    };
    let before = look(Some(&with(&HOME, SPARE)), Some(&NEEDY));
    assert_eq!(told(&mut known, &before, 10), [""; 0]);
    assert_eq!(known.next_move(&before, 10).map(|(step, _)| step), Some(Step::Move));
    for now in [15, 20] {
        assert_eq!(told(&mut known, &look(Some(&HOME), Some(&NEEDY)), now), [""; 0]);
    }
    let after = look(Some(&HOME), Some(&with(&NEEDY, ("/dev/s", "recovering"))));
    assert_eq!(told(&mut known, &after, 25), ["/dev/s was a spare of home home"]);
    assert_eq!(known.next_move(&after, 25), None);
    assert_eq!(told(&mut known, &after, 30), [""; 0]);
    // One that is given back was moved nowhere.
    let mut known = Known::default();
    assert_eq!(told(&mut known, &before, 10), [""; 0]);
    assert!(known.next_move(&before, 10).is_some());
    assert_eq!(told(&mut known, &look(Some(&HOME), Some(&NEEDY)), 15), [""; 0]);
    assert_eq!(told(&mut known, &before, 20), [""; 0]);
}
