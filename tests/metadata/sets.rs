//! Members that are damaged, contradict each other, or are newer than braid: the message names
//! the cause, and no file changes.

use braid_md::{Features, Level, Reshape};

use crate::common::Scratch;
use crate::{FAILED, REFUSED, edit, members, refuses, superblock};

fn array(level: &str, names: &[&str]) -> Scratch {
    let scratch = Scratch::new();
    members(&scratch, names);
    let create = ["create", "data", "--level", level, "--assume-clean", "--"];
    scratch.run(&[&create[..], names].concat()).ok();
    std::fs::remove_file(scratch.config_file("data")).expect("a record");
    scratch
}

const BOTH: [&str; 3] = ["assemble", "a.img", "b.img"];

#[test]
fn a_truncated_member() {
    let scratch = array("raid1", &["a.img", "b.img"]);
    scratch.resize("b.img", crate::SIZE / 2);
    refuses(&scratch, &BOTH, FAILED, &["b.img: its superblock cannot be used", "goes beyond"]);
    let parts = ["b.img: the superblock of version 1.2 at byte 4096 is damaged", "--explain"];
    let examined = refuses(&scratch, &["examine", "a.img", "b.img"], FAILED, &parts);
    assert!(examined.out.contains("a.img:\n") && examined.out.contains("b.img:\n"), "{examined}");
    scratch.resize("b.img", 100);
    let parts = ["b.img has no md superblock: its 100 bytes have room for none"];
    refuses(&scratch, &["examine", "b.img"], FAILED, &parts);
    refuses(&scratch, &BOTH, REFUSED, &["b.img is refused: it has 100 B", "a.img --degraded"]);
}

#[test]
fn a_flipped_bit() {
    let scratch = array("raid1", &["a.img", "b.img"]);
    scratch.patch("a.img", 4096 + 72, &[3]);
    refuses(&scratch, &BOTH, FAILED, &["a.img: its superblock cannot be used: the checksum is"]);
    let examined = refuses(&scratch, &["examine", "a.img"], FAILED, &["the bytes add up to"]);
    assert!(examined.out.contains(" - expected "), "{examined}");
    let explained = refuses(&scratch, &["examine", "--explain", "a.img"], FAILED, &["damaged"]);
    assert!(explained.out.contains("!! everyone"), "{explained}");
    let json = refuses(&scratch, &["examine", "--json", "a.img", "b.img"], FAILED, &[]).json();
    assert!(json["members"][0]["superblocks"][0]["rejected"].is_string(), "{json}");
    assert!(json["members"][1]["error"].is_null(), "{json}");
    // A search goes on without it.
    let parts = ["passed over", "a.img: its superblock", "can be started read-only"];
    refuses(&scratch, &["assemble", "--in", "."], REFUSED, &parts);
}

#[test]
fn the_same_member_twice() {
    let scratch = array("raid1", &["a.img", "b.img"]);
    refuses(&scratch, &["assemble", "a.img", "a.img"], REFUSED, &["it is the same as"]);
    std::fs::hard_link(scratch.join("a.img"), scratch.join("link.img")).expect("a link");
    refuses(&scratch, &["assemble", "a.img", "link.img"], REFUSED, &["it is the same as"]);
    std::fs::copy(scratch.join("a.img"), scratch.join("copy.img")).expect("a copy");
    let parts = ["conflicting", "a.img", "copy.img contradict each other", "braid examine"];
    refuses(&scratch, &["assemble", "a.img", "copy.img", "b.img"], REFUSED, &parts);
    let forced = ["assemble", "a.img", "copy.img", "b.img", "--force"];
    refuses(&scratch, &forced, REFUSED, &parts);
}

#[test]
fn two_arrays_of_one_name() {
    let scratch = array("raid1", &["a.img", "b.img"]);
    members(&scratch, &["c.img", "d.img"]);
    scratch.run(&["create", "data", "--level", "raid1", "c.img", "d.img"]).ok();
    std::fs::remove_file(scratch.config_file("data")).expect("a record");
    let uuids = ["a.img", "c.img"].map(|name| superblock(&scratch, name).array_uuid.to_string());
    let parts = ["the members are of data (", " and of data (", &uuids[0], &uuids[1], "--uuid"];
    let mixed = ["assemble", "a.img", "b.img", "c.img", "d.img"];
    refuses(&scratch, &mixed, REFUSED, &parts);
    let unchanged = crate::Unchanged::since_now(&scratch);
    let found = scratch.run(&["assemble", "--in", "."]).ok();
    unchanged.holds("no choice is made");
    for part in ["another array has the same name", &uuids[0], &uuids[1], "--uuid UUID"] {
        assert!(found.out.contains(part), "{part:?} in {found}");
    }
    scratch.run(&["assemble", "--in", ".", "--uuid", &uuids[1]]).ok();
    let record = std::fs::read_to_string(scratch.config_file("data")).expect("a record");
    assert!(record.contains("c.img") && !record.contains("a.img"), "{record}");
}

#[test]
fn members_of_unequal_sizes_without_a_layout() {
    let scratch = Scratch::new();
    members(&scratch, &["a.img"]);
    scratch.file("b.img", 2 * crate::SIZE, 2);
    scratch.run(&["create", "data", "--level", "raid0", "a.img", "b.img"]).ok();
    for name in ["a.img", "b.img"] {
        edit(&scratch, name, |superblock| {
            superblock.layout = 0;
            superblock.features = superblock.features.without(Features::RAID0_LAYOUT);
        });
    }
    let parts = ["differ in size", "which of raid0's two layouts was used is not recorded"];
    refuses(&scratch, &BOTH, REFUSED, &parts);
    refuses(&scratch, &[&BOTH[..], &["--force"]].concat(), REFUSED, &parts);
    refuses(&scratch, &["cat", "md(a.img, b.img)"], FAILED, &parts);
}

#[test]
fn events_far_apart() {
    let scratch = array("raid1", &["a.img", "b.img"]);
    edit(&scratch, "b.img", |superblock| superblock.events += 1000);
    let refused = refuses(&scratch, &BOTH, REFUSED, &["role 0 missing", "read-only"]);
    let stale = "a.img: it is stale: 0 events against 1000";
    assert!(refused.out.contains(stale), "{refused}");
}

#[test]
fn two_sides_that_went_on_alone() {
    let scratch = array("raid1", &["a.img", "b.img"]);
    let alone = |name, other: usize, events| {
        edit(&scratch, name, |superblock| {
            superblock.roles[other] = braid_md::Role::Spare;
            superblock.events = events;
        });
    };
    alone("a.img", 1, 30);
    alone("b.img", 0, 40);
    let refused = refuses(&scratch, &BOTH, REFUSED, &["next: braid assemble", "b.img"]);
    assert!(refused.out.contains("a.img: it went on by itself"), "{refused}");
    assert!(refused.out.contains("--force"), "{refused}");
    let up = ["up", "md(a.img, b.img)", "--name", "both", "--attach", "none"];
    scratch.run(&up).fails(REFUSED, &["a.img is left out: it went on by itself"]);
    let before = [scratch.read("a.img"), scratch.read("b.img")];
    let forced = scratch.run(&[&BOTH[..], &["--force"]].concat()).ok();
    assert!(forced.out.contains("what was written there is given up"), "{forced}");
    let record = std::fs::read_to_string(scratch.config_file("data")).expect("a record");
    assert!(record.contains("b.img") && !record.contains("a.img"), "{record}");
    assert!([scratch.read("a.img"), scratch.read("b.img")] == before, "nothing to rewrite");
}

#[test]
fn a_reshape_that_was_not_finished() {
    let scratch = array("raid10", &["a.img", "b.img"]);
    for name in ["a.img", "b.img"] {
        edit(&scratch, name, |superblock| {
            superblock.reshape = Some(Reshape {
                position: 1 << 20,
                delta_disks: 0,
                new_level: Level::Raid10.number(),
                new_layout: superblock.layout,
                new_chunk: superblock.chunk / 2,
                new_offset: 0,
                backwards: false,
            });
        });
    }
    let parts = ["a reshape is under way, at 1048576 bytes", "cannot be started", "next:"];
    refuses(&scratch, &BOTH, REFUSED, &parts);
    refuses(&scratch, &[&BOTH[..], &["--read-only"]].concat(), REFUSED, &parts);
    refuses(&scratch, &[&BOTH[..], &["--force"]].concat(), REFUSED, &parts);
}

#[test]
fn a_feature_that_nobody_knows() {
    let scratch = array("raid1", &["a.img", "b.img"]);
    edit(&scratch, "b.img", |superblock| {
        superblock.features = superblock.features.union(Features(1 << 20));
    });
    let parts = ["b.img uses something unknown (feature bits 0x100000)", "--read-only"];
    refuses(&scratch, &BOTH, REFUSED, &parts);
    refuses(&scratch, &[&BOTH[..], &["--force"]].concat(), REFUSED, &parts[..1]);
    let before = [scratch.read("a.img"), scratch.read("b.img")];
    scratch.run(&[&BOTH[..], &["--read-only"]].concat()).ok();
    assert!([scratch.read("a.img"), scratch.read("b.img")] == before);
}

#[test]
fn examine_says_where_it_looked_and_what_cannot_be_looked_at() {
    let scratch = Scratch::new();
    members(&scratch, &["a.img"]);
    let parts = ["no a92b4efc at byte", "4096 (1.2)", "0 (1.1)", "(1.0)", "6225920 (0.90)"];
    refuses(&scratch, &["examine", "a.img"], FAILED, &parts);
    for (path, part) in [
        ("nope.img", "cannot open nope.img"),
        ("/dev", "neither a regular file nor a block device"),
        ("/dev/null", "neither a regular file nor a block device"),
    ] {
        refuses(&scratch, &["examine", path], FAILED, &[part]);
    }
    let bitmap = array("raid1", &["a.img", "b.img"]);
    refuses(&bitmap, &["examine", "--bitmap", "a.img"], FAILED, &["no write-intent bitmap"]);
}
