//! Stacks of several arrays: each is meant by its name, its identifier or a member of it, and a
//! scrub is for all of them.

use crate::common::{MIB, Scratch, UpVolume, wait_until};
use crate::{FAILED, REFUSED, SIZE};

const STACK: &str = "raid0(chunk=64K, md(a.img, b.img), md(c.img, d.img))";

/// raid0 over two mirrors, `left` and `right`.
fn nested(stack: &str) -> (Scratch, String) {
    let scratch = Scratch::new();
    for (name, members) in [("left", ["a.img", "b.img"]), ("right", ["c.img", "d.img"])] {
        members.iter().for_each(|member| drop(scratch.sparse(member, SIZE)));
        let create = ["create", name, "--level", "raid1", "--bitmap", "64K", "--assume-clean"];
        scratch.run(&[&create[..], &["--data-offset", "1M"], &members].concat()).ok();
    }
    let path = |name: &str| scratch.join(name).display().to_string();
    let stack = ["a.img", "b.img", "c.img", "d.img"]
        .iter()
        .fold(stack.to_owned(), |stack, name| stack.replace(name, &path(name)));
    (scratch, stack)
}

fn up<'a>(scratch: &'a Scratch, stack: &str) -> UpVolume<'a> {
    scratch.up(stack, &["--name", "both", "--attach", "none"])
}

/// The arrays of a status, by what they are called.
fn array(volume: &UpVolume<'_>, called: &str) -> serde_json::Value {
    let status = volume.status();
    let all = status["arrays"].as_array().expect("arrays").clone();
    all.into_iter().find(|one| one["called"] == called).expect("an array that is called so")
}

#[test]
fn a_scrub_is_for_all_arrays_or_for_the_one_that_is_named() {
    let (scratch, stack) = nested(STACK);
    scratch.patch("d.img", 2 * MIB, &[7; 512]);
    let volume = up(&scratch, &stack);
    let found = scratch.run(&["scrub", "both", "--wait"]);
    assert!(found.out.contains("left: all copies agree"), "{found}");
    found.fails(FAILED, &["right: 4096 bytes differ", "--repair"]);
    let left = scratch.run(&["scrub", "both", "--wait", "--array", "left"]).ok();
    assert_eq!(left.out, "check starts\nall copies agree\n", "{left}");
    let uuid = array(&volume, "right")["uuid"].as_str().expect("an identifier").to_owned();
    scratch.run(&["scrub", "both", "--wait", "--repair", "--force", "--array", &uuid]).ok();
    scratch.run(&["scrub", "both", "--wait"]).ok();
    let parts = ["the stack has no array \"middle\": there are left, right"];
    scratch.run(&["scrub", "both", "--array", "middle"]).fails(REFUSED, &parts);
    let text = scratch.run(&["status", "both"]).ok();
    assert!(text.out.contains("array: left: raid1") && text.out.contains("array: right: raid1"));
}

#[test]
fn limits_are_for_all_arrays_and_growth_for_one() {
    let (scratch, stack) = nested(STACK);
    let volume = up(&scratch, &stack);
    scratch.run(&["speed", "both", "--max", "50M"]).ok();
    scratch.run(&["speed", "both", "--min", "20M", "--array", "right"]).ok();
    let shown = scratch.run(&["speed", "both"]).ok();
    for part in ["left: minimum 10 MiB/s, maximum 50 MiB/s", "right: minimum 20 MiB/s"] {
        assert!(shown.out.contains(part), "{part} in {shown}");
    }
    let parts = ["several arrays", "left, right", "--array left"];
    scratch.run(&["grow", "both", "--raid-devices", "3"]).fails(REFUSED, &parts);
    scratch.run(&["grow", "both", "--raid-devices", "3", "--array", "right"]).ok();
    assert_eq!(array(&volume, "right")["raid_disks"], 3);
    assert_eq!(array(&volume, "left")["raid_disks"], 2);
}

#[test]
fn a_maximum_below_the_minimum() {
    let (scratch, stack) = nested(STACK);
    let volume = up(&scratch, &stack);
    let parts = ["a minimum of 20 MiB/s is above the maximum of 8 MiB/s"];
    scratch.run(&["speed", "both", "--min", "20M", "--max", "8M"]).fails(REFUSED, &parts);
    assert_eq!(array(&volume, "left")["speed_max_bytes_per_second"], serde_json::Value::Null);
    // Alone it is meant as it stands.
    let set = scratch.run(&["speed", "both", "--max", "8M"]).ok();
    assert!(set.out.contains("minimum 8 MiB/s, maximum 8 MiB/s"), "{set}");
}

#[test]
fn members_go_and_come_in_their_array() {
    let (scratch, stack) = nested(STACK);
    scratch.sparse("e.img", SIZE);
    let volume = up(&scratch, &stack);
    scratch.run(&["member", "fail", "both", "d.img"]).ok();
    scratch.run(&["member", "remove", "both", "d.img"]).ok();
    let next = "`braid member add both DEVICE --array right`";
    assert!(volume.status()["next"].to_string().contains(next), "{}", volume.status()["next"]);
    // A device that is new to both has to be given to one of them, …
    let parts = ["several arrays", "left, right"];
    scratch.run(&["member", "add", "both", "e.img"]).fails(REFUSED, &parts);
    scratch.run(&["member", "add", "both", "e.img", "--array", "right"]).ok();
    let is_whole = |called: &str| !array(&volume, called)["in_sync"].to_string().contains("false");
    wait_until("the recovery", || is_whole("right"));
    // … one that was a member has said which it is of, …
    scratch.run(&["member", "fail", "both", "b.img"]).ok();
    scratch.run(&["member", "remove", "both", "b.img"]).ok();
    scratch.run(&["member", "re-add", "both", "b.img"]).ok();
    wait_until("the recovery", || is_whole("left"));
    // … and one that is replaced has an array.
    scratch.run(&["member", "replace", "both", "c.img", "d.img"]).ok();
    wait_until("the replacement", || {
        array(&volume, "right")["members"].to_string().contains("replaced by")
    });
    let told = volume.status()["stack"].as_str().expect("a stack").to_owned();
    scratch.run(&["member", "remove", "both", "c.img"]).ok();
    let now = volume.status()["stack"].as_str().expect("a stack").to_owned();
    assert!(told.contains("e.img") && !now.contains("c.img"), "{told} {now}");
    volume.down();
    // The record contains the array of each member.
    let record = std::fs::read_to_string(scratch.config_file("both")).expect("a record");
    let path = |name: &str| scratch.join(name).display().to_string();
    let pair = |left, right| format!("md({}, {})", path(left), path(right));
    assert!(record.contains(&pair("a.img", "b.img")), "{record}");
    assert!(record.contains(&pair("e.img", "d.img")), "{record}");
    let again = scratch.up("both", &["--attach", "none"]);
    assert_eq!(again.status()["state"], "online");
}

#[test]
fn members_without_superblocks_are_found_by_their_paths() {
    let scratch = Scratch::new();
    let names = ["a.img", "b.img", "c.img", "d.img", "e.img"];
    names.iter().for_each(|name| drop(scratch.sparse(name, SIZE)));
    let stack = "raid0(chunk=64K, raid1(a.img, b.img), raid5(c.img, d.img, e.img))";
    let volume = scratch.up(stack, &["--name", "both", "--attach", "none"]);
    wait_until("the resync", || {
        let status = volume.status();
        status["arrays"].as_array().expect("arrays").iter().all(|one| one["job"].is_null())
    });
    let scrubbed = scratch.run(&["scrub", "both", "--wait"]).ok();
    for part in ["raid1: all copies agree", "raid5: data and parity agree"] {
        assert!(scrubbed.out.contains(part), "{part} in {scrubbed}");
    }
    let status = scratch.run(&["status", "both"]).ok();
    assert!(status.out.contains("a.img  in sync"), "{status}");
    let parts = ["nope.img is no member of an array that survives a failure: there are ", "a.img"];
    scratch.run(&["member", "fail", "both", "nope.img"]).fails(REFUSED, &parts);
    // It is a member; that nothing could remember its failure is another matter.
    let failed = scratch.run(&["member", "fail", "both", "a.img"]);
    assert!(!failed.err.contains("is no member"), "{failed}");
}

#[test]
fn levels_of_the_same_name_are_told_apart() {
    let scratch = Scratch::new();
    let names = ["a.img", "b.img", "c.img", "d.img"];
    names.iter().for_each(|name| drop(scratch.sparse(name, SIZE)));
    let stack = "raid0(chunk=64K, raid1(a.img, b.img), raid1(c.img, d.img))";
    let volume = scratch.up(stack, &["--name", "both", "--attach", "none"]);
    assert_eq!(array(&volume, "raid1")["level"], "raid1");
    assert_eq!(array(&volume, "raid1-1")["level"], "raid1");
}
