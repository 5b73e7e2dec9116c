//! A raid1 of a local and a remote member: cut, written alone, made whole again by the bitmap; halves that both went
//! on alone.

use crate::REFUSED;
use crate::common::{KIB, MIB, Scratch, UpVolume, pattern, skip_without, wait_until};
use crate::far::{Far, member, socket};

const SIZE: u64 = 64 * MIB;
const CHUNK: u64 = 64 * KIB;

fn nbdkit(scratch: &Scratch) -> Far {
    let disk = scratch.join("far.img");
    Far::nbdkit(&["file", disk.to_str().expect("a plain name")], &socket(scratch))
}

/// A mirror of `a.img` and `far.img` at the far end.
fn mirror(scratch: &Scratch) -> (Far, UpVolume<'_>) {
    scratch.sparse("a.img", SIZE);
    scratch.sparse("far.img", SIZE);
    let far = nbdkit(scratch);
    let remote = member(&socket(scratch), ", deadline=1s");
    let create = ["create", "home", "--level", "1", "--bitmap", "64K", "--assume-clean"];
    scratch.run(&[&create[..], &["a.img", &remote]].concat()).ok();
    let volume = scratch.up("home", &["--attach", "none"]);
    (far, volume)
}

fn is_whole(volume: &UpVolume<'_>) -> bool {
    let array = &volume.status()["arrays"][0];
    array["in_sync"] == serde_json::json!([true, true]) && array["job"].is_null()
}

/// Checks that both members have the same data.
fn assert_same(scratch: &Scratch) {
    let (local, far) = (scratch.read("a.img"), scratch.read("far.img"));
    let start = MIB as usize;
    let blocks = local[start..].chunks(512).zip(far[start..].chunks(512));
    let differ = blocks.enumerate().find(|(_, (one, other))| one != other);
    assert_eq!(differ, None, "the members differ behind their superblocks");
}

#[test]
fn after_a_cut_the_chunks_of_the_bitmap_are_copied_and_no_others() {
    skip_without!("nbdkit");
    let scratch = Scratch::new();
    let (far, volume) = mirror(&scratch);
    let mut client = volume.client();
    for chunk in 0..64 {
        client.write(chunk * CHUNK, &pattern(chunk, 0, CHUNK), false).expect("a write");
    }
    client.flush().expect("a flush");
    wait_until("the bitmap to be clean", || volume.status()["arrays"][0]["bitmap_chunks_set"] == 0);
    drop(far);
    for chunk in [3, 40, 41, 500] {
        client.write(chunk * CHUNK, &pattern(1000 + chunk, 0, CHUNK), false).expect("a write");
    }
    client.flush().expect("a flush");
    let status = volume.status();
    assert_eq!(status["state"], "degraded", "{status}");
    let warnings = status["warnings"].to_string();
    assert!(warnings.contains("is not connected"), "{warnings}");

    let _far = nbdkit(&scratch);
    wait_until("the far member to be in sync", || is_whole(&volume));
    let status = volume.status();
    let members = status["members"].as_array().expect("members");
    let remote = members.iter().find(|one| !one["remote"].is_null()).expect("a remote member");
    // The device was opened anew, so its counts begin with the return.
    let written = remote["io"]["written_bytes"].as_u64().expect("a count");
    let changed = 4 * CHUNK;
    println!(
        "{changed} bytes changed, {written} bytes written to the far member: {}",
        remote["remote"]
    );
    // Beside the chunks: superblocks and the bitmap.
    assert!((changed..changed * 6 / 5 + 128 * KIB).contains(&written), "{written} of {changed}");
    for chunk in [3, 500] {
        let found = client.read(chunk * CHUNK, CHUNK as u32).expect("a read");
        assert!(found == pattern(1000 + chunk, 0, CHUNK), "chunk {chunk}");
    }
    volume.down();
    assert_same(&scratch);
}

#[test]
fn halves_that_both_went_on_alone_are_not_merged() {
    skip_without!("nbdkit");
    let scratch = Scratch::new();
    let (far, volume) = mirror(&scratch);
    let mut client = volume.client();
    client.write(0, &pattern(1, 0, 4096), true).expect("a write");
    drop(far);
    client.write(8192, &pattern(2, 0, 4096), true).expect("a write on the near half");
    drop(client);
    volume.down();

    // The far machine takes over, though the near half was written.
    let other = scratch.up("md(./far.img)", &["--name", "far", "--attach", "none", "--degraded"]);
    other.client().write(16384, &pattern(3, 0, 4096), true).expect("a write on the far half");
    other.down();
    let before = scratch.read("far.img");

    // Both are there: nothing says which of them is meant.
    let far = nbdkit(&scratch);
    let remote = member(&socket(&scratch), ", deadline=1s");
    let up = ["up", "home", "--attach", "none", "--degraded"];
    scratch.run(&up).fails(REFUSED, &["went on by itself"]);
    // Near alone, which far finds when it is back.
    drop(far);
    let near = scratch.up("home", &["--attach", "none", "--degraded"]);
    let _far = nbdkit(&scratch);
    scratch.run(&["member", "add", "home", &remote]).fails(REFUSED, &["they without it"]);
    scratch.run(&["member", "re-add", "home", &remote]).fails(REFUSED, &[]);
    assert!(scratch.read("far.img") == before, "a refusal changes nothing");
    assert_eq!(near.client().read(8192, 4096).expect("a read"), pattern(2, 0, 4096));
    near.down();
}

/// Adds the remote member to a mirror at work, or replaces a member by it: as write-mostly.
#[test]
fn a_member_at_work_is_write_mostly_if_that_is_said() {
    skip_without!("nbdkit");
    let scratch = Scratch::new();
    for name in ["a.img", "b.img", "far.img", "c.img", "d.img", "e.img"] {
        scratch.sparse(name, 16 * MIB);
    }
    let _far = nbdkit(&scratch);
    let remote = member(&socket(&scratch), "");
    let create = ["create", "home", "--level", "1", "--bitmap", "64K", "--assume-clean"];
    scratch.run(&[&create[..], &["a.img", "b.img"]].concat()).ok();
    let volume = scratch.up("home", &["--attach", "none"]);
    scratch.run(&["member", "replace", "home", "--write-mostly", "b.img", &remote]).ok();
    let marked = |volume: &UpVolume<'_>| -> Vec<bool> {
        let array = volume.status()["arrays"][0].clone();
        let members = array["members"].as_array().expect("members");
        let in_sync = members.iter().filter(|one| one["state"] == "in_sync");
        in_sync.map(|one| one["write_mostly"] == true).collect()
    };
    let of_far = |volume: &UpVolume<'_>| {
        let status = volume.status();
        let members = status["members"].as_array().expect("members").clone();
        members.into_iter().find(|one| !one["remote"].is_null()).expect("a remote member")
    };
    wait_until("the far member to be filled", || {
        is_whole(&volume) && marked(&volume) == [false, true]
    });
    let before = of_far(&volume)["io"]["reads"]["count"].clone();
    let mut client = volume.client();
    for at in 0..64 {
        client.read(at * CHUNK, 4096).expect("a read");
    }
    assert_eq!(of_far(&volume)["io"]["reads"]["count"], before, "reads stay here");
    // A further copy, taken out and back: the mark stays.
    scratch.run(&["grow", "home", "--raid-devices", "3"]).ok();
    scratch.run(&["member", "add", "home", "--write-mostly", "d.img"]).ok();
    wait_until("the added member to be filled", || marked(&volume) == [false, true, true]);
    scratch.run(&["member", "fail", "home", "d.img"]).ok();
    scratch.run(&["member", "re-add", "home", "d.img"]).ok();
    wait_until("the added member to be back", || marked(&volume) == [false, true, true]);
    drop(client);
    volume.down();
    let text = scratch.run(&["examine", "d.img"]).ok().out;
    assert!(text.contains("write-mostly"), "{text}");
    let volume = scratch.up("home", &["--attach", "none"]);
    wait_until("the start", || marked(&volume) == [false, true, true]);
    volume.down();

    // Other levels give it no meaning.
    let others = ["create", "other", "--level", "5", "--assume-clean", "b.img", "c.img", "--force"];
    scratch.run(&[&others[..], &["b.img"]].concat()).ok();
    let other = scratch.up("other", &["--attach", "none"]);
    let refused = scratch.run(&["member", "add", "other", "--write-mostly", "e.img"]);
    refused.fails(REFUSED, &["write-mostly, which means something to raid1 only"]);
    other.down();
}
