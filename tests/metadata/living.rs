//! The life of an array that is up: members out, in, replaced; scrub, growth, limits, status.

use crate::common::{MIB, Scratch, UpVolume, wait_until};
use crate::{FAILED, REFUSED, SIZE, refuses};

/// Bytes of each member's data that are written and compared.
const LEN: usize = 1 << 20;

fn write(volume: &UpVolume<'_>, byte: u8) {
    let mut client = volume.client();
    client.write(0, &[byte; LEN], false).expect("a write");
    client.flush().expect("a flush");
}

fn wait_until_whole(volume: &UpVolume<'_>, members: usize) {
    wait_until("every role has a member in sync", || {
        let status = volume.status();
        let in_sync = status["arrays"][0]["in_sync"].as_array().expect("a list").clone();
        in_sync.len() == members && in_sync.iter().all(|one| one == true)
    });
}

#[test]
fn members_go_and_come_while_it_is_written() {
    let scratch = Scratch::new();
    for name in ["a.img", "b.img", "c.img"] {
        scratch.sparse(name, SIZE);
    }
    let create = ["create", "home", "--level", "raid1", "--bitmap", "64K", "--assume-clean"];
    scratch.run(&[&create[..], &["a.img", "b.img"]].concat()).ok();
    let volume = UpVolume::start(&scratch, "home", &["--attach", "none"])
        .unwrap_or_else(|output| panic!("{output}"));
    write(&volume, 1);
    scratch.run(&["status", "home", "--test"]).ok();

    scratch.run(&["member", "fail", "home", "b.img"]).ok();
    let status = scratch.run(&["status", "home", "--test"]).fails(FAILED, &[]);
    assert!(status.out.contains("state: degraded") && status.out.contains("next: "), "{status}");
    assert!(scratch.run(&["mdstat"]).ok().out.contains("b.img[1](F)"));
    // Nothing is written to members later than that by the volume itself.
    wait_until("superblocks that say clean", || scratch.states("a.img").0 == "clean");
    let last = "holds the only copy";
    refuses(&scratch, &["member", "fail", "home", "a.img"], REFUSED, &[last]);
    let in_use = "only a faulty member or a spare can be removed";
    refuses(&scratch, &["member", "remove", "home", "a.img"], REFUSED, &[in_use]);
    refuses(&scratch, &["member", "add", "home", "b.img"], REFUSED, &["it is a member already"]);
    write(&volume, 2);

    scratch.run(&["member", "remove", "home", "b.img"]).ok();
    let back = scratch.run(&["member", "re-add", "home", "b.img"]).ok();
    assert!(back.out.contains("is back in role 1"), "{back}");
    wait_until_whole(&volume, 2);
    let agreed = scratch.run(&["scrub", "home", "--wait"]).ok();
    assert!(agreed.out.contains("all copies agree"), "{agreed}");

    scratch.run(&["member", "replace", "home", "a.img", "c.img"]).ok();
    wait_until("the old one is out", || {
        let text = volume.status()["arrays"][0]["members"].to_string();
        text.contains("replaced by")
    });
    scratch.run(&["member", "remove", "home", "a.img"]).ok();
    scratch.run(&["grow", "home", "--raid-devices", "3"]).ok();
    scratch.run(&["member", "add", "home", "a.img"]).ok();
    wait_until_whole(&volume, 3);
    scratch.run(&["speed", "home", "--max", "50M", "--latency", "20ms"]).ok();
    assert_eq!(volume.status()["arrays"][0]["speed_latency_us_p99"], 20_000);
    drop(volume);

    // The record contains the present members, and each of them holds the written data.
    for stack in ["home", "md(./a.img)", "md(./b.img)", "md(./c.img)"] {
        let copy = format!("\"$0\" cat '{stack}' --length {LEN} > copy");
        crate::assembling::scratch_shell(&scratch, &copy).run().ok();
        assert!(scratch.read("copy") == [2; LEN], "{stack}");
    }
}

/// Neither the stack nor the record knows a member that was removed, so that its absence is no news.
#[test]
fn a_member_that_was_removed_is_not_asked_for() {
    let scratch = Scratch::new();
    ["a.img", "b.img", "c.img"].iter().for_each(|name| drop(scratch.sparse(name, SIZE)));
    scratch.run(&["create", "home", "--level", "raid1", "a.img", "b.img", "--spare", "c.img"]).ok();
    for (gone, how) in [("c.img", "c.img"), ("b.img", "failed")] {
        let volume = scratch.up("home", &["--attach", "none", "--degraded"]);
        if gone == "b.img" {
            scratch.run(&["member", "fail", "home", gone]).ok();
        }
        scratch.run(&["member", "remove", "home", how]).ok();
        let record = std::fs::read_to_string(scratch.config_file("home")).expect("a record");
        assert!(record.contains("a.img") && !record.contains(gone), "{record}");
        volume.down();
        std::fs::remove_file(scratch.join(gone)).expect("a member that goes");
        let up = scratch.run(&["up", "home", "--attach", "none", "--degraded"]).ok();
        assert!(!up.err.contains(gone), "{up}");
        scratch.run(&["down", "home"]).ok();
    }
}

/// The array has no place for it any more; its record still names it.
#[test]
fn a_member_that_was_replaced_can_be_removed_in_the_next_life() {
    let scratch = Scratch::new();
    ["a.img", "b.img", "c.img"].iter().for_each(|name| drop(scratch.sparse(name, SIZE)));
    scratch.run(&["create", "home", "--level", "raid1", "a.img", "b.img"]).ok();
    let volume = scratch.up("home", &["--attach", "none"]);
    let next = format!("next: `braid member remove home {}`", scratch.join("b.img").display());
    let says = || scratch.run(&["status", "home"]).ok().out.contains(&next);
    scratch.run(&["member", "replace", "home", "b.img", "c.img"]).ok();
    wait_until("the replacement", says);
    volume.down();
    let volume = scratch.up("home", &["--attach", "none"]);
    assert!(says());
    let removed = scratch.run(&["member", "remove", "home", "b.img"]).ok();
    assert!(removed.out.contains("b.img is forgotten"), "{removed}");
    volume.down();
    let up = scratch.run(&["up", "home", "--attach", "none"]).ok();
    assert_eq!(up.err, "", "the removed member is not mentioned");
    assert!(!says());
    scratch.run(&["down", "home"]).ok();
}

#[test]
fn the_volume_with_the_worst_problem_is_the_first_of_those_with_problems() {
    let scratch = Scratch::new();
    let start = |name: &str, members: [&str; 2]| {
        members.iter().for_each(|name| drop(scratch.sparse(name, SIZE)));
        let create = ["create", name, "--level", "raid1", "--data-offset", "1M", "--assume-clean"];
        scratch.run(&[&create[..], &members].concat()).ok();
        scratch.patch(members[1], 2 * MIB, &[7; 512]);
        scratch.up(name, &["--attach", "none"])
    };
    let _volumes = [start("first", ["a.img", "b.img"]), start("second", ["c.img", "d.img"])];
    scratch.run(&["scrub", "first", "--wait"]).fails(FAILED, &["4096 bytes differ"]);
    scratch.run(&["member", "fail", "second", "d.img"]).ok();
    let told = scratch.run(&["status", "-x"]).ok();
    let at = |name: &str| told.out.find(&format!("\n{name} ")).expect("a volume");
    assert!(at("second") < at("first"), "what is critical comes before a warning: {told}");
}

#[test]
fn a_disk_that_was_cut_is_told_with_its_size_before() {
    for level in ["raid0", "raid1"] {
        let scratch = Scratch::new();
        ["a.img", "b.img"].iter().for_each(|name| drop(scratch.sparse(name, SIZE)));
        scratch.run(&["create", "home", "--level", level, "a.img", "b.img"]).ok();
        scratch.up("home", &["--attach", "none"]).down();
        scratch.resize("b.img", SIZE - MIB);
        let sizes = format!("b.img has {} bytes, and had {SIZE}", SIZE - MIB);
        scratch.run(&["up", "home", "--attach", "none"]).fails(REFUSED, &["goes beyond", &sizes]);
        if level == "raid1" {
            let up = scratch.run(&["up", "home", "--attach", "none", "--degraded"]).ok();
            assert!(up.err.contains(&sizes), "{up}");
            scratch.run(&["down", "home"]).ok();
        }
    }
}

#[test]
fn a_scrub_finds_and_repairs_what_differs() {
    let scratch = Scratch::new();
    for name in ["a.img", "b.img"] {
        scratch.sparse(name, SIZE);
    }
    let create = ["create", "home", "--level", "raid1", "--data-offset", "1M", "--assume-clean"];
    scratch.run(&[&create[..], &["a.img", "b.img"]].concat()).ok();
    scratch.patch("b.img", 2 * MIB + 4096, &[7; 512]);
    let volume = UpVolume::start(&scratch, "home", &["--attach", "none"])
        .unwrap_or_else(|output| panic!("{output}"));
    let found = scratch.run(&["scrub", "home", "--wait"]);
    found.fails(FAILED, &["4096 bytes differ, at 1052672", "--repair"]);
    let (a, b) =
        (scratch.join("a.img").display().to_string(), scratch.join("b.img").display().to_string());
    let place = format!(
        "bytes 1052672 to 1056768 of the array: not proved, {a} (role 0) from 2101248 against {b} (role 1) from 2101248"
    );
    // One of two copies: nothing is written without a word.
    let before = scratch.read("b.img");
    let left = scratch.run(&["scrub", "home", "--repair", "--wait"]);
    left.fails(FAILED, &["0 bytes were written again", &place, "Which copy is right", "--force"]);
    assert!(scratch.read("b.img")[2 << 20..3 << 20] == before[2 << 20..3 << 20]);
    let status = scratch.run(&["status", "home"]).ok();
    assert!(status.out.contains(&format!("differs: {place}")), "{status}");
    let repaired = scratch.run(&["scrub", "home", "--repair", "--force", "--wait"]).ok();
    assert!(repaired.out.contains("4096 bytes differed"), "{repaired}");
    scratch.run(&["scrub", "home", "--wait"]).ok();
    drop(volume);
    assert!(scratch.read("b.img")[2 << 20..3 << 20] == scratch.read("a.img")[2 << 20..3 << 20]);
}
