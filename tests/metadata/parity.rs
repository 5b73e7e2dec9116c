//! raid4, raid5 and raid6 over image files: members out, in, replaced; scrubs; what is refused.

use crate::common::{MIB, Scratch, UpVolume, pattern, wait_until};
use crate::{FAILED, REFUSED, SIZE, USAGE, edit, refuses, superblock};

pub(crate) const MEMBERS: [&str; 5] = ["a.img", "b.img", "c.img", "d.img", "e.img"];

/// A chunk that makes some of a load's writes whole stripes.
pub(crate) const SMALL: &str = "16K";
/// A chunk that makes none of them one.
pub(crate) const LARGE: &str = "64K";

pub(crate) fn array(options: &str, members: usize) -> Scratch {
    array_of(options, SMALL, members)
}

/// An array called `home` of the first members, all zeroes and so in sync; 1 MiB of each is used.
pub(crate) fn array_of(options: &str, chunk: &str, members: usize) -> Scratch {
    let scratch = Scratch::new();
    for name in MEMBERS {
        scratch.sparse(name, SIZE);
    }
    let mut create = vec!["create", "home", "--assume-clean", "--chunk", chunk, "--size", "1M"];
    create.push("--level");
    create.extend(options.split(' '));
    create.extend(&MEMBERS[..members]);
    scratch.run(&create).ok();
    scratch
}

/// Brings a volume up as soon as its members are free: a process that was killed a moment ago may
/// still hold them.
pub(crate) fn up<'a>(scratch: &'a Scratch, target: &str, options: &[&str]) -> UpVolume<'a> {
    let mut volume = None;
    wait_until("the members to be free", || {
        match UpVolume::start(scratch, target, &[options, &["--attach", "none"]].concat()) {
            Ok(started) => volume = Some(started),
            Err(output) => assert!(output.err.contains("in use"), "{output}"),
        }
        volume.is_some()
    });
    volume.expect("waited for")
}

pub(crate) fn size_of(volume: &UpVolume<'_>) -> u64 {
    volume.status()["device"]["size_bytes"].as_u64().expect("a size")
}

pub(crate) fn wait_until_whole(volume: &UpVolume<'_>) {
    wait_until("every role has a member in sync", || {
        let status = volume.status();
        let in_sync = status["arrays"][0]["in_sync"].as_array().expect("a list").clone();
        in_sync.iter().all(|one| one == true)
    });
}

#[track_caller]
pub(crate) fn refuses_up(scratch: &Scratch, up: &[&str], parts: &[&str]) {
    let before: Vec<_> = MEMBERS.iter().map(|name| scratch.read(name)).collect();
    scratch.run(&[up, &["--attach", "none"]].concat()).fails(REFUSED, parts);
    let after: Vec<_> = MEMBERS.iter().map(|name| scratch.read(name)).collect();
    assert!(before == after, "a member was changed");
}

#[test]
fn members_go_come_and_are_replaced() {
    for (options, members, lost) in [("raid5", 3, 1), ("raid6", 4, 2), ("raid4", 3, 1)] {
        let scratch = array(options, members);
        let volume = up(&scratch, "home", &[]);
        let size = size_of(&volume);
        let write = |seed| {
            let mut client = volume.client();
            client.write(0, &pattern(seed, 0, size), false).expect("a write");
            client.flush().expect("a flush");
        };
        write(1);
        for name in &MEMBERS[..lost] {
            scratch.run(&["member", "fail", "home", name]).ok();
            scratch.run(&["member", "remove", "home", name]).ok();
        }
        scratch.run(&["status", "home", "--test"]).fails(FAILED, &[]);
        let kept = ["holds the only copy of some of the data: it is kept"];
        scratch.run(&["member", "fail", "home", MEMBERS[lost]]).fails(REFUSED, &kept);
        assert_eq!(volume.client().read(0, size as u32).expect("a read"), pattern(1, 0, size));
        write(2);
        for name in &MEMBERS[..lost] {
            scratch.run(&["member", "add", "home", name]).ok();
        }
        wait_until_whole(&volume);
        let last = MEMBERS[members - 1];
        scratch.run(&["member", "replace", "home", last, "e.img"]).ok();
        wait_until("the old one is out", || {
            volume.status()["arrays"][0]["members"].to_string().contains("replaced by")
        });
        scratch.run(&["scrub", "home", "--wait"]).ok();
        let grow = ["grow", "home", "--raid-devices", "5"];
        scratch.run(&grow).fails(REFUSED, &["only raid1"]);
        scratch.run(&["grow", "home", "--size", "max"]).fails(REFUSED, &["only raid1"]);
        volume.down();
        // Without as many as can be lost, from the new ones, too.
        let left: Vec<&str> = [&MEMBERS[..members - 1], &["e.img"]].concat()[lost..].to_vec();
        let stack = format!("md(./{})", left.join(", ./"));
        let copy = format!("\"$0\" cat '{stack}' > copy");
        crate::assembling::scratch_shell(&scratch, &copy).run().ok();
        assert!(scratch.read("copy") == pattern(2, 0, size), "{options}");
    }
}

#[test]
fn a_scrub_of_raid6_names_the_member_that_lies() {
    let scratch = array("raid6", 4);
    let volume = up(&scratch, "home", &[]);
    let size = size_of(&volume);
    volume.client().write(0, &pattern(3, 0, size), true).expect("a write");
    volume.down();
    let at = superblock(&scratch, "c.img").data_offset + 40 * 1024;
    let before = scratch.read("c.img");
    let lies: Vec<u8> = before[at as usize..][..4096].iter().map(|byte| !byte).collect();
    scratch.patch("c.img", at, &lies);

    let volume = up(&scratch, "home", &[]);
    let found = scratch.run(&["scrub", "home", "--wait"]);
    let name = scratch.join("c.img").display().to_string();
    let culprit = format!("{name} (role 2) alone explains 4096 of them, if one member is wrong");
    let parts = ["4096 bytes differ, at 40960 of each member's data", &culprit, "--repair"];
    found.fails(FAILED, &parts);
    let array = &volume.status()["arrays"][0];
    assert_eq!(array["suspects"][0]["member"], name, "{array}");
    assert_eq!(array["unexplained_bytes"], 0);
    let status = scratch.run(&["status", "home"]).ok();
    assert!(status.out.contains(&culprit), "{status}");
    let repaired = scratch.run(&["scrub", "home", "--repair", "--wait"]).ok();
    assert!(repaired.out.contains("repaired"), "{repaired}");
    let agreed = scratch.run(&["scrub", "home", "--wait"]).ok();
    assert!(agreed.out.contains("data and parity agree"), "{agreed}");
    volume.down();
    let range = at as usize..at as usize + 4096;
    assert!(scratch.read("c.img")[range.clone()] == before[range], "what was there is there again");
}

#[test]
fn a_scrub_of_raid5_makes_parity_fit() {
    let scratch = array("raid5", 3);
    let at = superblock(&scratch, "b.img").data_offset;
    scratch.patch("b.img", at, &[9; 512]);
    let volume = up(&scratch, "home", &[]);
    let found = scratch.run(&["scrub", "home", "--wait"]);
    let parts = ["4096 bytes differ, at 0 of", "makes parity fit the data", "--repair --force"];
    let found = found.fails(FAILED, &parts);
    assert!(!found.err.contains("explains"), "{found}");
    let left = scratch.run(&["scrub", "home", "--repair", "--wait"]);
    left.fails(FAILED, &["0 bytes were written again", "not proved"]);
    scratch.run(&["scrub", "home", "--repair", "--force", "--wait"]).ok();
    scratch.run(&["scrub", "home", "--wait"]).ok();
    volume.down();
}

#[test]
fn what_does_not_protect_is_refused_when_an_array_is_made() {
    let scratch = Scratch::new();
    for name in MEMBERS {
        scratch.sparse(name, SIZE);
    }
    for (options, parts) in [
        ("raid6 --consistency ppl", ["ppl does not go with raid6", "only with raid5"]),
        ("raid10 --consistency log", ["log does not go with raid10", "no parity"]),
        ("raid5 --consistency ppl --bitmap internal", ["ppl does not go with", "bitmap"]),
        ("raid6 --consistency log --metadata 1.0", ["log does not go with metadata 1.0", "1.1"]),
        ("raid5 --consistency journal", ["journal", "possible values: resync, bitmap, ppl, log"]),
    ] {
        let mut create = vec!["create", "home", "--level"];
        create.extend(options.split(' '));
        create.extend(&MEMBERS[..4]);
        refuses(&scratch, &create, USAGE, &parts);
    }
    let plan = ["create", "home", "--level", "raid6", "--plan"];
    let plan = scratch.run(&[&plan[..], &MEMBERS[..4]].concat()).ok();
    assert!(plan.out.contains("stripe log of ") && plan.out.contains("head of the"), "{plan}");
}

#[test]
fn too_few_members_and_layouts_that_do_not_exist() {
    let scratch = array("raid6", 5);
    std::fs::remove_file(scratch.config_file("home")).expect("a record");
    let parts = ["too few members: 2 of 5 members in sync; roles 0, 1 and 2 missing"];
    refuses(&scratch, &["assemble", "d.img", "e.img"], REFUSED, &parts);
    let up_two = ["up", "md(./d.img, ./e.img)", "--name", "two", "--degraded"];
    refuses_up(&scratch, &up_two, &["too few members"]);
    edit(&scratch, "a.img", |superblock| superblock.layout = 11);
    let parts = ["a.img: its superblock cannot be used", "layout"];
    refuses_up(&scratch, &["up", "md(./a.img, ./b.img)", "--name", "odd"], &parts);
}

#[test]
fn stacks_without_superblocks() {
    let scratch = Scratch::new();
    for (stack, size) in [
        ("raid4(chunk=64K, ram(1M), ram(1M), ram(1M))", 2 * MIB),
        ("raid5(chunk=16K, layout=ra, ram(1M), missing, ram(1M))", 2 * MIB),
        ("raid6(chunk=4K, ram(1M), ram(1M), missing, ram(1M), missing)", 3 * MIB),
    ] {
        let volume = up(&scratch, stack, &["--name", "memory"]);
        assert_eq!(size_of(&volume), size, "{stack}");
        let mut client = volume.client();
        client.write(0, &pattern(4, 0, size), false).expect("a write");
        assert!(client.read(0, size as u32).expect("a read") == pattern(4, 0, size), "{stack}");
        let array = &volume.status()["arrays"][0];
        assert!(array["resync_from_bytes"].is_null(), "{array}");
        let status = scratch.run(&["status", "memory"]).ok().out;
        assert!(!status.contains("crash:") && !status.contains("member add"), "{status}");
        volume.down();
        std::fs::remove_file(scratch.config_file("memory")).expect("a record");
    }
    // The data of files is made to fit, unless some of it is only what the parity says.
    for name in ["x", "y", "z"] {
        scratch.file(name, MIB, 9);
    }
    let whole = "raid5(chunk=16K, ./x, ./y, ./z)";
    let volume = up(&scratch, whole, &["--name", "files", "--force", "x", "--force", "y"]);
    wait_until("the resync", || volume.status()["arrays"][0]["resync_from_bytes"].is_null());
    let mut client = volume.client();
    client.write(0, &pattern(5, 0, 2 * MIB), true).expect("a write");
    volume.down();
    let parity = scratch.read("x");
    let missing = "raid5(chunk=16K, ./x, ./y, missing)";
    let volume = up(&scratch, missing, &["--name", "degraded"]);
    let warnings = volume.status()["warnings"].to_string();
    assert!(warnings.contains("is worked out from parity"), "{warnings}");
    let status = scratch.run(&["status", "degraded"]).ok().out;
    assert!(status.contains("crash: write hole open, and nothing is recorded"), "{status}");
    let found = volume.client().read(0, 2 * MIB as u32).expect("a read");
    assert!(found == pattern(5, 0, 2 * MIB));
    volume.down();
    assert!(scratch.read("x") == parity, "nothing was resynchronised");
}
