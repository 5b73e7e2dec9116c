//! The kernel's arrays: examined as mdadm did, assembled with the expected verdict, read as what
//! they hold.

use braid_golden::Golden;

use crate::Unchanged;
use crate::common::{Scratch, Tool, with_files_open};

fn each_array(levels: &[&str], least: usize) {
    let arrays = braid_golden::all();
    let mut count = 0;
    for array in arrays.iter().filter(|array| levels.contains(&array.level.as_str())) {
        let scratch = Scratch::new();
        with_files_open(|| array.expand_into(scratch.path())).expect("a folder of members");
        let unchanged = Unchanged::since_now(&scratch);
        examine(&scratch, array);
        assemble(&scratch, array);
        cat(&scratch, array);
        unchanged.holds(&array.name);
        count += 1;
    }
    assert!(count >= least, "only {count} arrays of {levels:?}");
}

fn examine(scratch: &Scratch, array: &Golden) {
    for member in array.present() {
        let name = format!("m{}.img", member.index);
        let ours = scratch.braid().args(["examine", &name]).env("TZ", "UTC").run().ok().out;
        let theirs = member.examine.as_deref().expect("mdadm's text");
        assert_eq!(ours, theirs, "{} {name}", array.name);
    }
}

fn assemble(scratch: &Scratch, array: &Golden) {
    let assemble = ["assemble", "--in", ".", "--plan", "--json"];
    let output = scratch.run(&assemble);
    let json = output.json();
    let found = &json["arrays"][0];
    assert_eq!(found["uuid"], array.uuid, "{output}");
    assert_eq!(found["level"], array.level, "{output}");
    let output = output.ok();
    assert_eq!(found["array_bytes"], array.array_bytes, "{output}");
    let roles = found["roles"].as_array().expect("a list");
    let in_sync = roles.iter().filter(|role| role["state"] == "in_sync").count();
    assert_eq!(in_sync as u32 + array.degraded, array.raid_disks, "{output}");
    let state = found["state"].as_str().expect("a text");
    assert_eq!(state.starts_with("degraded"), array.degraded > 0, "{output}");
    assert!(!array.clean_shutdown || !state.contains("dirty"), "{output}");
}

fn cat(scratch: &Scratch, array: &Golden) {
    let members: Vec<String> =
        array.present().map(|member| format!("m{}.img", member.index)).collect();
    let stack = format!("md({})", members.join(", "));
    let copy = format!("{} cat '{stack}' > content", env!("CARGO_BIN_EXE_braid"));
    let shell = Tool::new("sh").arg("-c").arg(copy).folder(scratch.path());
    shell.run().ok();
    let ours = scratch.read("content");
    std::fs::remove_file(scratch.join("content")).expect("a file");
    assert_eq!(ours.len() as u64, array.array_bytes, "{}", array.name);
    let expected = array.content_block(0, ours.len());
    // By blocks: byte by byte, a build that is not optimised compares for most of the test's time.
    let blocks = ours.chunks(512).zip(expected.chunks(512));
    let different = blocks.enumerate().find(|(_, (ours, expected))| ours != expected);
    assert!(different.is_none(), "{}: the first block that differs: {different:?}", array.name);
}

#[test]
fn linear_and_raid0() {
    each_array(&["linear", "raid0"], 8);
}

#[test]
fn raid1() {
    each_array(&["raid1"], 12);
}

#[test]
fn raid10() {
    each_array(&["raid10"], 8);
}

#[test]
fn parity() {
    each_array(&["raid4", "raid5", "raid6"], 15);
}
