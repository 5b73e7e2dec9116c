//! The statements about an array are true: a scrub that compared nothing reports no agreement, a deleted member
//! is gone, a log has the room that it will need.

use std::os::unix::fs::MetadataExt;

use crate::common::{MIB, Mounted, Scratch, UpVolume, skip_unless_root, wait_until};
use crate::{FAILED, SIZE};

fn made(level: &str, names: &[&str], options: &[&str]) -> Scratch {
    let scratch = Scratch::new();
    let real = names.iter().filter(|name| **name != "missing");
    real.for_each(|name| drop(scratch.sparse(name, SIZE)));
    let create = ["create", "home", "--level", level, "--assume-clean"];
    scratch.run(&[&create[..], options, names].concat()).ok();
    scratch
}

fn up<'a>(scratch: &'a Scratch, name: &str) -> UpVolume<'a> {
    scratch.up(name, &["--attach", "none"])
}

#[test]
fn a_scrub_that_compares_nothing_says_so() {
    let one_copy = "nothing was compared: there is one copy only";
    let parity = "nothing was compared: what parity there is stands for the members";
    for (level, names, why) in [
        ("raid1", &["a.img", "missing"][..], one_copy),
        ("raid10", &["a.img", "missing"], one_copy),
        ("raid4", &["a.img", "b.img", "missing"], parity),
        ("raid5", &["a.img", "missing", "c.img"], parity),
        ("raid6", &["missing", "b.img", "missing", "d.img"], parity),
    ] {
        let scratch =
            made(level, names, &["--chunk", "64K"][..if level == "raid1" { 0 } else { 2 }]);
        let volume = up(&scratch, "home");
        let scrubbed = scratch.run(&["scrub", "home", "--wait"]).fails(FAILED, &[why, "next: "]);
        assert!(!scrubbed.out.contains("agree"), "{level}: {scrubbed}");
        let json = scratch.run(&["scrub", "home", "--wait", "--json"]).fails(FAILED, &[why]);
        assert!(json.json()["not_compared"].to_string().contains("nothing was compared"), "{json}");
        let status = scratch.run(&["status", "home"]).ok();
        assert!(status.out.contains(why) && !status.out.contains("agree"), "{level}: {status}");
        drop(volume);
    }
}

#[test]
fn a_scrub_that_compares_what_there_is_says_what_it_left() {
    // Of 4 members with 2 near copies each, 0 and 1 have the same.
    let scratch = made("raid10", &["a.img", "missing", "c.img", "d.img"], &["--chunk", "64K"]);
    let volume = up(&scratch, "home");
    let parts = ["2 of 4 chunks have one copy only and were not compared"];
    scratch.run(&["scrub", "home", "--wait"]).fails(FAILED, &parts);
    drop(volume);
    // One parity is enough to compare with, and so are two copies of three.
    for (level, names) in [
        ("raid6", &["a.img", "missing", "c.img", "d.img"][..]),
        ("raid1", &["a.img", "missing", "c.img"]),
    ] {
        let scratch = made(level, names, &[]);
        let volume = up(&scratch, "home");
        wait_until("idle", || volume.status()["arrays"][0]["job"].is_null());
        let scrubbed = scratch.run(&["scrub", "home", "--wait"]).ok();
        assert!(scrubbed.out.contains("agree"), "{level}: {scrubbed}");
    }
}

#[test]
fn a_scrub_is_taken_back_in_words_that_fit() {
    let scratch = made("raid1", &["a.img", "b.img"], &[]);
    let volume = up(&scratch, "home");
    let none = scratch.run(&["scrub", "home", "--cancel"]).ok();
    assert_eq!(none.out, "no scrub runs\n", "{none}");
    scratch.run(&["speed", "home", "--max", "64K"]).ok();
    scratch.run(&["scrub", "home"]).ok();
    wait_until("the check", || volume.status()["arrays"][0]["job"]["kind"] == "check");
    let ended = scratch.run(&["scrub", "home", "--cancel"]).ok();
    assert_eq!(ended.out, "the check ends\n", "{ended}");
}

#[test]
fn a_scrub_that_waits_says_for_what() {
    let scratch = made("raid1", &["a.img", "b.img"], &[]);
    scratch.sparse("c.img", SIZE);
    let volume = up(&scratch, "home");
    scratch.run(&["speed", "home", "--max", "64K"]).ok();
    scratch.run(&["member", "replace", "home", "b.img", "c.img"]).ok();
    wait_until("the replacement", || volume.status()["arrays"][0]["job"]["kind"] == "replace");
    let waits = scratch.run(&["scrub", "home"]).ok();
    assert_eq!(waits.out, "check waits for the replace that runs\n", "{waits}");
    let back = scratch.run(&["scrub", "home", "--cancel"]).ok();
    assert_eq!(back.out, "the check that waited is taken back\n", "{back}");
}

#[test]
fn members_that_were_deleted_are_said() {
    for (level, names, state) in
        [("raid1", &["a.img", "b.img"][..], "degraded"), ("raid0", &["a.img", "b.img"], "failing")]
    {
        let scratch = made(level, names, &[]);
        let volume = up(&scratch, "home");
        assert_eq!(volume.status()["state"], "online");
        std::fs::remove_file(scratch.join("b.img")).expect("a member");
        let status = volume.status();
        assert_eq!(status["state"], state, "{status}");
        for what in ["why", "warnings"] {
            let text = status[what].to_string();
            assert!(text.contains("b.img: its file was deleted while the volume is up"), "{text}");
        }
        let next =
            if level == "raid1" { "braid member replace home" } else { "copy what home holds" };
        assert!(status["next"].to_string().contains(next), "{status}");
        scratch.run(&["status", "home", "--test"]).fails(if level == "raid1" { 1 } else { 2 }, &[]);
    }
}

#[test]
fn another_file_at_the_path_of_a_member_is_said() {
    let scratch = made("raid1", &["a.img", "b.img"], &[]);
    let volume = up(&scratch, "home");
    std::fs::hard_link(scratch.join("b.img"), scratch.join("kept.img")).expect("a link");
    scratch.sparse("new.img", SIZE);
    std::fs::rename(scratch.join("new.img"), scratch.join("b.img")).expect("a move");
    let text = volume.status()["warnings"].to_string();
    assert!(text.contains("b.img: another file, or none, lies at its path now"), "{text}");
    std::fs::rename(scratch.join("kept.img"), scratch.join("b.img")).expect("a move");
    assert_eq!(volume.status()["state"], "online");
}

/// The number of allocated bytes of the file.
fn allocated(scratch: &Scratch, name: &str) -> u64 {
    std::fs::metadata(scratch.join(name)).expect("a member").blocks() * 512
}

#[test]
fn logs_have_their_room_from_the_start() {
    for (level, consistency, least) in [("raid6", "log", MIB), ("raid5", "ppl", MIB)] {
        let names = ["a.img", "b.img", "c.img", "d.img"];
        let scratch = Scratch::new();
        names.iter().for_each(|name| drop(scratch.sparse(name, 64 * MIB)));
        let create = ["create", "home", "--level", level, "--consistency", consistency];
        let made = scratch.run(&[&create[..], &["--assume-clean"], &names].concat()).ok();
        for name in names {
            assert!(allocated(&scratch, name) >= least, "{made}: {}", allocated(&scratch, name));
        }
        scratch.sparse("e.img", 64 * MIB);
        let volume = up(&scratch, "home");
        scratch.run(&["member", "add", "home", "e.img"]).ok();
        assert!(allocated(&scratch, "e.img") >= least, "{}", allocated(&scratch, "e.img"));
        drop(volume);
    }
}

#[test]
fn members_are_told_in_the_order_of_their_roles() {
    let scratch = made("raid1", &["a.img", "b.img"], &[]);
    scratch.sparse("c.img", SIZE);
    let volume = up(&scratch, "home");
    scratch.run(&["member", "replace", "home", "a.img", "c.img"]).ok();
    let array = || volume.status()["arrays"][0].clone();
    wait_until("the replacement", || array()["members"].to_string().contains("replaced by"));
    scratch.run(&["member", "remove", "home", "a.img"]).ok();
    let members: Vec<String> = array()["members"]
        .as_array()
        .expect("members")
        .iter()
        .map(|member| member["member"].as_str().expect("a path").to_owned())
        .collect();
    let path = |name: &str| scratch.join(name).display().to_string();
    assert_eq!(members, [path("c.img"), path("b.img")]);
    let stack = volume.status()["stack"].as_str().expect("a stack").to_owned();
    assert_eq!(stack, format!("md({}, {})", path("c.img"), path("b.img")));
}

#[test]
fn bytes_that_no_member_has_any_more_are_told() {
    let names = ["a.img", "b.img", "c.img"];
    let scratch = made("raid5", &names, &["--chunk", "64K"]);
    crate::list_as_bad(&scratch, "b.img", 128 << 10, 64 << 10);
    scratch.sparse("d.img", SIZE);
    let volume = up(&scratch, "home");
    // With all the others there it can still be worked out, but not compared.
    let parts = ["65536 bytes are listed as bad on a member", "braid status home"];
    scratch.run(&["scrub", "home", "--wait"]).fails(FAILED, &parts);
    scratch.run(&["member", "fail", "home", "c.img"]).ok();
    scratch.run(&["member", "remove", "home", "c.img"]).ok();
    scratch.run(&["member", "add", "home", "d.img"]).ok();
    let array = || volume.status()["arrays"][0].clone();
    wait_until("the rest is redundant again", || {
        array()["job"].is_null() && !array()["in_sync"].to_string().contains("false")
    });
    let lost = array()["lost"].clone();
    let (offset, len) = (lost[0][0].as_u64(), lost[0][1].as_u64());
    let (Some(offset), Some(len)) = (offset, len) else { panic!("{lost}") };
    assert!(len > 0 && len <= 128 << 10, "{lost}");
    let status = scratch.run(&["status", "home"]).ok();
    let line = format!("lost: bytes {offset} to {} of the array can be given by no", offset + len);
    assert!(status.out.contains(&line), "{status}");
    assert!(status.out.contains("state: failing"), "{status}");
    assert!(status.out.contains("can be read from no member"), "{status}");
    let words = ["status", "home", "--brief", "--test"];
    assert!(scratch.run(&words).fails(2, &[]).out.starts_with("home failing "));
    let metrics = scratch.run(&["metrics"]).ok().out;
    let is_failing = "braid_volume_state{volume=\"home\",state=\"failing\"} 1";
    assert!(metrics.contains(is_failing), "{metrics}");
    assert!(volume.client().read(offset, 4096).is_err(), "they are not made up");
    // Writing them makes them good.
    let bytes = vec![0x5a; len as usize];
    volume.client().write(offset, &bytes, true).expect("a write");
    assert!(volume.client().read(offset, len as u32).expect("a read") == bytes);
    wait_until("the line goes", || array()["lost"].as_array().is_some_and(Vec::is_empty));
    scratch.run(&["status", "home", "--test"]).ok();
}

#[test]
fn a_file_system_that_is_too_full_for_the_logs_is_found_out_when_they_come() {
    skip_unless_root!();
    let scratch = Scratch::new();
    let Some(disk) = Mounted::tmpfs(&scratch.join("disk"), 6 * MIB) else { return };
    let names = ["disk/a.img", "disk/b.img", "disk/c.img", "disk/d.img", "disk/e.img"];
    names.iter().for_each(|name| drop(scratch.sparse(name, 64 * MIB)));
    let create = |names: &[&str]| {
        let create = ["create", "home", "--level", "raid6", "--assume-clean", "--chunk", "64K"];
        scratch.run(&[&create[..], names].concat())
    };
    let parts = ["no room for its log", "next: make room in its file system"];
    create(&names).fails(FAILED, &parts);
    assert!(!scratch.config_file("home").exists());
    for name in names {
        let carried = scratch.run(&["examine", name]);
        carried.fails(FAILED, &["has no md superblock"]);
    }
    drop(disk);
}
