//! `braid undo` and `braid wipe`: all overwritten bytes come back, or none of them.

use crate::common::{Scratch, Tool, skip_without};
use crate::{FAILED, REFUSED, Unchanged, edit, members, refuses, superblock};

fn created(level: &str) -> (Scratch, [Vec<u8>; 2]) {
    let scratch = Scratch::new();
    members(&scratch, &["a.img", "b.img"]);
    let before = [scratch.read("a.img"), scratch.read("b.img")];
    let create = ["create", "new", "--level", level, "a.img", "b.img"];
    scratch.run(&create).ok();
    (scratch, before)
}

#[track_caller]
fn is_as_before(scratch: &Scratch, before: &[Vec<u8>; 2]) {
    for (name, before) in ["a.img", "b.img"].iter().zip(before) {
        assert!(scratch.read(name) == *before, "{name} is not as it was");
    }
}

#[test]
fn a_creation_is_undone_to_the_last_byte() {
    for level in ["linear", "raid0", "raid1", "raid10"] {
        let (scratch, before) = created(level);
        assert!(scratch.config_file("new").exists());
        let list = scratch.run(&["undo", "--list"]).ok();
        assert!(list.out.contains("create of new: 2 members, 4 places"), "{list}");
        let undone = scratch.run(&["undo", "new"]).ok();
        assert!(undone.out.contains("undone: create of new"), "{undone}");
        is_as_before(&scratch, &before);
        assert!(!scratch.config_file("new").exists(), "the volume is forgotten");
        refuses(&scratch, &["undo"], FAILED, &["no change to undo", "--list"]);
    }
}

#[test]
fn a_change_is_found_by_name_identifier_and_number() {
    for how in ["new", "1", "UUID"] {
        let (scratch, before) = created("raid1");
        refuses(&scratch, &["undo", "other"], FAILED, &["no change of \"other\" to undo"]);
        refuses(&scratch, &["undo", "2"], FAILED, &["no change of \"2\""]);
        let uuid = superblock(&scratch, "a.img").array_uuid.to_string();
        scratch.run(&["undo", if how == "UUID" { &uuid } else { how }]).ok();
        is_as_before(&scratch, &before);
    }
}

#[test]
fn what_was_used_since_is_kept() {
    let (scratch, before) = created("raid1");
    edit(&scratch, "b.img", |superblock| superblock.events += 1);
    let parts = ["b.img was used since", "byte 4096", "superblock is not what `create` wrote"];
    refuses(&scratch, &["undo"], REFUSED, &parts);
    scratch.run(&["undo", "--force"]).ok();
    is_as_before(&scratch, &before);
}

#[test]
fn a_file_that_took_a_members_place_is_not_written() {
    let (scratch, before) = created("raid1");
    let bytes = scratch.read("b.img");
    std::fs::rename(scratch.join("b.img"), scratch.join("away.img")).expect("renamed");
    std::fs::write(scratch.join("b.img"), bytes).expect("a copy");
    refuses(&scratch, &["undo"], REFUSED, &["b.img is not what it was", "--force"]);
    std::fs::remove_file(scratch.join("b.img")).expect("removed");
    refuses(&scratch, &["undo"], REFUSED, &["b.img is refused", "does not exist"]);
    std::fs::rename(scratch.join("away.img"), scratch.join("b.img")).expect("renamed");
    scratch.run(&["undo"]).ok();
    is_as_before(&scratch, &before);
}

#[test]
fn an_undo_that_was_interrupted_goes_on() {
    let (scratch, before) = created("raid1");
    scratch.patch("b.img", 4096, &before[1][4096..8192]);
    scratch.run(&["undo"]).ok();
    is_as_before(&scratch, &before);
}

#[test]
fn a_member_in_use_is_not_written() {
    let (scratch, _) = created("raid1");
    let volume = scratch.serve("md(a.img, b.img)", &["--read-only"]);
    scratch.run(&["undo"]).fails(REFUSED, &["a.img is refused: it is in use"]);
    scratch.run(&["wipe", "a.img"]).fails(REFUSED, &["a.img is refused: it is in use"]);
    drop(volume);
    scratch.run(&["undo"]).ok();
}

#[test]
fn saved_bytes_that_are_damaged_are_not_put_back() {
    let (scratch, _) = created("raid1");
    scratch.resize("state/undo/1.data", 1000);
    refuses(&scratch, &["undo"], FAILED, &["1.data is damaged", "1000 bytes"]);
}

#[test]
fn a_wipe_removes_all_superblocks_and_is_undone() {
    let scratch = Scratch::new();
    members(&scratch, &["a.img", "b.img"]);
    let create = |metadata| {
        let create = ["create", "new", "--level", "raid1", "a.img", "b.img"];
        let options = ["--metadata", metadata, "--force", "a.img", "--force", "b.img"];
        scratch.run(&[&create[..], &options].concat()).ok();
        std::fs::remove_file(scratch.config_file("new")).expect("a record");
    };
    create("0.90");
    let old = ["a.img", "b.img"].map(|name| scratch.read(name)[6_225_920..][..4096].to_vec());
    create("1.2");
    // `create` removes older superblocks, so they are written here as another tool would leave them.
    scratch.patch("a.img", 6_225_920, &old[0]);
    scratch.patch("b.img", 6_225_920, &old[1]);
    let unchanged = Unchanged::since_now(&scratch);
    let plan = scratch.run(&["wipe", "a.img", "b.img", "--plan"]).ok();
    assert!(plan.out.contains("a.img: the superblock of version 1.2 at byte 4096"), "{plan}");
    assert!(plan.out.contains("b.img: the superblock of version 0.90 at byte 6225920"), "{plan}");
    assert!(plan.out.contains("nothing was written"), "{plan}");
    unchanged.holds("--plan");
    let before = [scratch.read("a.img"), scratch.read("b.img")];
    let wiped = scratch.run(&["wipe", "a.img", "b.img", "--json"]).ok().json();
    assert_eq!(
        (wiped["superblocks"].as_array().map(Vec::len), &wiped["undo"]),
        (Some(4), &3.into())
    );
    let list = scratch.run(&["undo", "--list", "--json"]).ok().json();
    assert_eq!(list["changes"][0]["command"], "wipe", "{list}");
    let parts = ["a.img has no md superblock: no a92b4efc at byte", "4096 (1.2)", "6225920 (0.90)"];
    refuses(&scratch, &["examine", "a.img"], FAILED, &parts);
    refuses(&scratch, &["wipe", "a.img"], FAILED, &parts);
    scratch.run(&["undo", "new"]).ok();
    is_as_before(&scratch, &before);
}

#[test]
fn a_damaged_superblock_is_wiped_too() {
    let (scratch, _) = created("raid1");
    scratch.patch("a.img", 4096 + 100, &[0xff; 8]);
    scratch.run(&["wipe", "a.img"]).ok();
    refuses(&scratch, &["examine", "a.img"], FAILED, &["no md superblock"]);
}

/// The old bytes are durable before they are overwritten, and each kind of bytes is durable before the next kind is written.
#[test]
fn a_creation_is_durable_step_by_step() {
    skip_without!("strace");
    let scratch = Scratch::new();
    members(&scratch, &["a.img", "b.img"]);
    Tool::new("strace")
        .args(["-f", "-y", "-qq", "-o", "calls", "-e", "trace=write,pwrite64,fsync,rename"])
        .args([env!("CARGO_BIN_EXE_braid"), "create", "new", "--level", "raid1", "a.img", "b.img"])
        .env("BRAID_RUN_DIR", scratch.run_folder())
        .env("BRAID_CONFIG_DIR", scratch.join("config"))
        .env("BRAID_STATE_DIR", scratch.join("state"))
        .folder(scratch.path())
        .run()
        .ok();
    let calls = std::fs::read_to_string(scratch.join("calls")).expect("a trace");
    let step = |line: &str| {
        let (call, arguments) = line.split_once('(')?;
        let (_, call) = call.rsplit_once(' ')?;
        let (_, name) = arguments.split(['<', '>', '"']).nth(1)?.rsplit_once('/')?;
        let is_part = ["1.data", "1.new", "undo", "a.img", "b.img"].contains(&name);
        is_part.then(|| format!("{call} {name}"))
    };
    let mut steps: Vec<String> = calls.lines().filter_map(step).collect();
    steps.dedup();
    let saved = ["write 1.data", "fsync 1.data", "write 1.new", "fsync 1.new", "rename 1.new"];
    let group = ["pwrite64 a.img", "pwrite64 b.img", "fsync a.img", "fsync b.img"];
    assert_eq!(steps, [&saved[..], &["fsync undo"], &group, &group].concat(), "{calls}");
}
