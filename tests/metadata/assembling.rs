//! `braid assemble`: what is found, and what is remembered; `braid cat`.

use crate::common::{LoopDevice, MIB, Scratch, Tool, UpVolume, skip_unless_root, skip_without};
use crate::{FAILED, REFUSED, SIZE, USAGE, Unchanged, edit, members, refuses, superblock};

/// A mirror of `a.img` and `b.img` without the record that `create` wrote.
fn mirror() -> Scratch {
    let scratch = Scratch::new();
    members(&scratch, &["a.img", "b.img"]);
    let create = ["create", "data", "--level", "raid1", "--homehost", "here", "--assume-clean"];
    scratch.run(&[&create[..], &["a.img", "b.img"]].concat()).ok();
    std::fs::remove_file(scratch.config_file("data")).expect("a record");
    scratch
}

fn record(scratch: &Scratch, name: &str) -> String {
    std::fs::read_to_string(scratch.config_file(name)).expect("a record")
}

#[test]
fn members_that_are_named_are_remembered_and_come_up() {
    let scratch = mirror();
    let output = scratch.run(&["assemble", "./b.img", "a.img"]).ok();
    let uuid = superblock(&scratch, "a.img").array_uuid;
    for part in [
        format!("data ({uuid}): raid1 of 2 members, metadata 1.2, 5 MiB"),
        "state: clean; can be started".to_owned(),
        format!("role 1: {}, in sync", scratch.join("b.img").display()),
        "next: braid up data".to_owned(),
    ] {
        assert!(output.out.contains(&part), "{part:?} in {output}");
    }
    let paths = ["a.img", "b.img"].map(|name| scratch.join(name).display().to_string());
    let stack = format!("stack = \"md({}, {})\"", paths[0], paths[1]);
    assert!(record(&scratch, "data").contains(&stack), "{}", record(&scratch, "data"));
    let volume = UpVolume::start(&scratch, "data", &["--attach", "none"]);
    volume.unwrap_or_else(|output| panic!("{output}")).down();
}

#[test]
fn processes_are_looked_into_once_for_all_members() {
    skip_without!("strace");
    let scratch = Scratch::new();
    let names = ["a.img", "b.img", "c.img", "d.img"];
    members(&scratch, &names);
    let create = ["create", "data", "--level", "raid5", "--assume-clean"];
    scratch.run(&[&create[..], &names].concat()).ok();
    let listings = |options: &[&str]| {
        Tool::new("strace")
            .args(["-f", "-qq", "-o", "calls", "-e", "trace=openat"])
            .args([env!("CARGO_BIN_EXE_braid"), "assemble"])
            .args(options)
            .args(names)
            .env("BRAID_RUN_DIR", scratch.run_folder())
            .env("BRAID_CONFIG_DIR", scratch.join("config"))
            .env("BRAID_STATE_DIR", scratch.join("state"))
            .folder(scratch.path())
            .run()
            .ok();
        let calls = std::fs::read_to_string(scratch.join("calls")).expect("a trace");
        calls.lines().filter(|line| line.contains("\"/proc\", ")).count()
    };
    assert_eq!(listings(&["--plan"]), 1);
    // Once more before the record is written.
    assert_eq!(listings(&[]), 2);
}

#[test]
fn a_folder_is_searched_and_other_files_are_passed_over() {
    let scratch = mirror();
    std::fs::write(scratch.join("notes.txt"), "nothing of md's").expect("a file");
    std::fs::hard_link(scratch.join("a.img"), scratch.join("again.img")).expect("a link");
    let output = scratch.run(&["assemble", "--in", ".", "--as", "mine", "--json"]).ok().json();
    assert_eq!(output["arrays"].as_array().map(Vec::len), Some(1), "{output}");
    assert_eq!(output["next"], "braid up mine");
    assert!(scratch.config_file("mine").exists() && !scratch.config_file("data").exists());
}

#[test]
fn an_array_is_meant_by_name_or_identifier() {
    let scratch = mirror();
    let uuid = superblock(&scratch, "a.img").array_uuid.to_string();
    let assemble = ["assemble", "--in", ".", "--plan"];
    for meant in [["--name", "data"], ["--name", "here:data"], ["--uuid", &uuid]] {
        scratch.run(&[&assemble[..], &meant].concat()).ok();
    }
    for other in [["--name", "here"], ["--uuid", "00112233445566778899aabbccddeeff"]] {
        let args = [&assemble[..], &other].concat();
        refuses(&scratch, &args, FAILED, &["no md array was found"]);
    }
}

/// Disks of a fake RAID say what they are, and what starts them.
#[test]
fn members_of_external_metadata_are_named() {
    let scratch = Scratch::new();
    scratch.sparse("imsm.img", SIZE);
    scratch.patch("imsm.img", SIZE - 1024, b"Intel Raid ISM Cfg Sig. 1.3.00");
    scratch.sparse("ddf.img", SIZE);
    scratch.patch("ddf.img", SIZE - 512, b"\xde\x11\xde\x11");
    for (member, kind) in [("imsm.img", "Intel Matrix RAID"), ("ddf.img", "DDF RAID")] {
        let words = [kind, "which braid does not start", "mdadm --assemble --scan"];
        refuses(&scratch, &["examine", member], FAILED, &words);
        refuses(&scratch, &["assemble", member], FAILED, &words);
    }
}

#[test]
fn a_plan_and_a_refusal_remember_nothing() {
    let scratch = mirror();
    let unchanged = Unchanged::since_now(&scratch);
    let plan = scratch.run(&["assemble", "a.img", "b.img", "--plan"]).ok();
    assert!(plan.out.contains("state: clean"), "{plan}");
    unchanged.holds("--plan");
    refuses(&scratch, &["assemble"], USAGE, &["nothing says where to look", "--scan"]);
    refuses(&scratch, &["assemble", "nope.img"], REFUSED, &["nope.img is refused"]);
    refuses(&scratch, &["assemble", "--in", "nope"], FAILED, &["cannot list"]);
    scratch.sparse("plain.img", SIZE);
    let parts = ["plain.img carries no md superblock", "nothing that is known is on it"];
    refuses(&scratch, &["assemble", "a.img", "b.img", "plain.img"], FAILED, &parts);
}

#[test]
fn the_record_of_another_volume_is_kept() {
    let scratch = mirror();
    members(&scratch, &["c.img", "d.img"]);
    scratch.run(&["create", "other", "--level", "raid0", "c.img", "d.img"]).ok();
    let take = |name: &'static str| ["assemble", "a.img", "b.img", "--as", name];
    refuses(&scratch, &take("other"), REFUSED, &["is about another volume", "--as NAME"]);
    refuses(&scratch, &take(".."), USAGE, &["cannot name a volume", "--as NAME"]);
    scratch.run(&take("mine")).ok();
    // The same array again: its record is renewed, and keeps what the user has set.
    let with_address = record(&scratch, "mine").replace("attach = \"auto\"", "attach = \"none\"");
    std::fs::write(scratch.config_file("mine"), with_address).expect("a record");
    scratch.run(&["assemble", "a.img", "b.img", "--as", "mine", "--read-only"]).ok();
    let renewed = record(&scratch, "mine");
    assert!(renewed.contains("attach = \"none\"") && renewed.contains("read_only = true"));
}

#[test]
fn a_degraded_array_needs_a_word_and_its_superblocks_come_back() {
    let scratch = mirror();
    let parts = ["role 1 missing", "can be started read-only", "a.img --read-only"];
    let refused = refuses(&scratch, &["assemble", "a.img"], REFUSED, &parts);
    for way in ["a.img --read-only", "a.img --degraded", "a.img --force"] {
        assert!(refused.out.contains(way), "{way} in {refused}");
    }
    let before = [scratch.read("a.img"), scratch.read("b.img")];
    let read_only = scratch.run(&["assemble", "a.img", "--read-only", "--as", "look"]).ok();
    assert!(read_only.out.contains("state: degraded"), "{read_only}");
    assert!(scratch.read("a.img") == before[0], "--read-only writes to no member");
    let degraded = scratch.run(&["assemble", "a.img", "--degraded", "--as", "alone"]).ok();
    assert!(degraded.out.contains("next: braid up alone --degraded"), "{degraded}");
    assert!(scratch.read("a.img") == before[0], "--degraded writes to no member");
    let forced = scratch.run(&["assemble", "a.img", "--force"]).ok();
    for part in ["risk: role 1 was there", "1 superblocks were rewritten: `braid undo 2`"] {
        assert!(forced.out.contains(part), "{part:?} in {forced}");
    }
    // From now on the array knows that it goes on alone, and the other one does not count.
    let all = scratch.run(&["assemble", "a.img", "b.img", "--plan"]).ok();
    assert!(all.out.contains("left out") && all.out.contains("it claims role 1"), "{all}");
    scratch.run(&["undo", "2"]).ok();
    assert!([scratch.read("a.img"), scratch.read("b.img")] == before);
}

#[test]
fn stale_members_are_taken_in_by_force_only() {
    for metadata in ["1.2", "1.1", "1.0", "0.90"] {
        let scratch = Scratch::new();
        members(&scratch, &["a.img", "b.img"]);
        let create = ["create", "data", "--level", "raid0", "--metadata", metadata];
        scratch.run(&[&create[..], &["a.img", "b.img"]].concat()).ok();
        let expected = cat(&scratch, "md(a.img, b.img)");
        edit(&scratch, "a.img", |superblock| superblock.events += 12);
        let before = [scratch.read("a.img"), scratch.read("b.img")];
        let parts = ["too few members: 1 of 2", "cannot be started", "--force"];
        let refused = refuses(&scratch, &["assemble", "a.img", "b.img"], REFUSED, &parts);
        assert!(refused.out.contains("b.img: it is stale"), "{refused}");
        let forced = scratch.run(&["assemble", "a.img", "b.img", "--force", "--as", "data"]).ok();
        assert!(forced.out.contains("risk: ") && forced.out.contains("(role 1)"), "{forced}");
        let events = |name| superblock(&scratch, name).events;
        assert_eq!(events("a.img"), events("b.img"), "{metadata}");
        assert!(scratch.read("a.img") == before[0], "only the stale member is rewritten");
        assert!(cat(&scratch, "data") == expected, "{metadata}: the same content again");
        scratch.run(&["undo"]).ok();
        assert!([scratch.read("a.img"), scratch.read("b.img")] == before, "{metadata}");
    }
}

/// The output of `braid cat`.
fn cat(scratch: &Scratch, stack: &str) -> Vec<u8> {
    let copy = format!("\"$0\" cat '{stack}' > copy");
    scratch_shell(scratch, &copy).run().ok();
    let bytes = scratch.read("copy");
    std::fs::remove_file(scratch.join("copy")).expect("a file");
    bytes
}

/// A shell in the folder, with braid as `$0`.
pub(crate) fn scratch_shell(scratch: &Scratch, command: &str) -> Tool {
    Tool::new("sh")
        .args(["-c", command, env!("CARGO_BIN_EXE_braid")])
        .env("BRAID_CONFIG_DIR", scratch.join("config"))
        .folder(scratch.path())
}

#[test]
fn cat_writes_what_is_asked_for() {
    let scratch = Scratch::new();
    members(&scratch, &["a.img", "b.img"]);
    let unchanged = Unchanged::since_now(&scratch);
    let all = [scratch.read("a.img"), scratch.read("b.img")].concat();
    assert!(cat(&scratch, "linear(a.img, b.img)") == all);
    for (offset, length) in
        [(0, 0), (0, 1), (511, 2), (SIZE - 5, 10), (MIB, 3 * MIB), (7, 2 * SIZE - 8)]
    {
        let range =
            format!("\"$0\" cat 'linear(a.img, b.img)' --offset {offset} --length {length}");
        let output = scratch_shell(&scratch, &format!("{range} > copy")).run().ok();
        assert_eq!(output.err, "");
        let expected = &all[offset as usize..(offset + length) as usize];
        assert!(scratch.read("copy") == expected, "{length} bytes at {offset}");
        std::fs::remove_file(scratch.join("copy")).expect("a file");
    }
    let head = scratch_shell(&scratch, "\"$0\" cat 'linear(a.img, b.img)' | head -c 100 | wc -c");
    let head = head.run().ok();
    assert_eq!((head.out.trim(), head.err.as_str()), ("100", ""), "a closed pipe is a quiet end");
    unchanged.holds("cat");
    let too_much = ["cat", "linear(a.img, b.img)", "--length", "1G"];
    refuses(&scratch, &too_much, USAGE, &["the volume has 12582912 bytes"]);
    refuses(&scratch, &["cat", "nothing"], USAGE, &["this stack cannot be read"]);
    refuses(&scratch, &["cat", "nope.img"], REFUSED, &["nope.img is refused"]);
}

#[test]
fn block_devices_are_members_like_files() {
    skip_unless_root!();
    skip_without!("losetup");
    let scratch = Scratch::new();
    members(&scratch, &["a.img", "b.img"]);
    let before = [scratch.read("a.img"), scratch.read("b.img")];
    let Some(first) = LoopDevice::attach(&scratch.join("a.img")) else { return };
    let Some(second) = LoopDevice::attach(&scratch.join("b.img")) else { return };
    let paths = [&first, &second].map(|device| device.path().display().to_string());
    let create = ["create", "loops", "--level", "raid1", "--assume-clean"];
    scratch.run(&[&create[..], &[&paths[0], &paths[1]]].concat()).ok();
    let members = record(&scratch, "loops");
    for path in &paths {
        assert!(members.contains(&format!("path = \"{path}\"")), "{path} in {members}");
    }
    let uuid = scratch.run(&["examine", "--export", &paths[0]]).ok();
    let uuid = uuid.out.lines().find_map(|line| line.strip_prefix("MD_UUID="));
    let scan = ["assemble", "--scan", "--in", ".", "--plan", "--json", "--uuid"];
    let found = scratch.run(&[&scan[..], &[uuid.expect("an identifier")]].concat()).ok().json();
    for (role, path) in paths.iter().enumerate() {
        assert_eq!(found["arrays"][0]["roles"][role]["member"]["path"], **path, "{found}");
    }
    let volume = UpVolume::start(&scratch, "loops", &["--attach", "none", "--read-only"]);
    drop(volume.unwrap_or_else(|output| panic!("{output}")));
    scratch.run(&["undo", "loops"]).ok();
    drop((first, second));
    assert!([scratch.read("a.img"), scratch.read("b.img")] == before);
}

#[test]
fn an_array_goes_on_without_a_member_and_the_member_becomes_stale() {
    let scratch = mirror();
    scratch.run(&["assemble", "a.img", "--degraded"]).ok();
    let up = |options: &[&str]| UpVolume::start(&scratch, "data", options);
    let refused = up(&["--attach", "none"]).err().expect("it needs a word");
    assert!(refused.err.contains("role 1 missing"), "{refused}");
    let volume = up(&["--attach", "none", "--degraded"]);
    let volume = volume.unwrap_or_else(|output| panic!("{output}"));
    // A volume without writes of clients writes nothing, either.
    volume.client().write(0, &[0x5a; 4096], false).expect("it can be written");
    volume.down();
    let both = scratch.run(&["assemble", "a.img", "b.img", "--plan"]).ok();
    assert!(both.out.contains("left out") && both.out.contains("state: degraded"), "{both}");
    up(&["--attach", "none"]).unwrap_or_else(|output| panic!("{output}")).down();
    assert!(cat(&scratch, "md(a.img, b.img)").starts_with(&[0x5a; 4096]));
    refuses(&scratch, &["undo"], REFUSED, &["a.img was used since"]);
}

#[test]
fn a_search_that_finds_what_is_up_already_is_no_failure() {
    let scratch = Scratch::new();
    members(&scratch, &["a.img", "b.img"]);
    let create = ["create", "home", "--level", "raid1", "--assume-clean", "a.img", "b.img"];
    scratch.run(&create).ok();
    let volume = scratch.up("home", &["--attach", "none"]);
    let before = std::fs::read_to_string(scratch.config_file("home")).expect("a record");
    let here = scratch.path().display().to_string();
    let found = scratch.run(&["assemble", "--in", &here]).ok();
    assert!(found.err.contains("it is up already: home"), "{found}");
    scratch
        .run(&["assemble", "a.img", "b.img"])
        .fails(REFUSED, &["it is a member of home, which is up"]);
    assert_eq!(std::fs::read_to_string(scratch.config_file("home")).expect("a record"), before);
    volume.down();
    assert_eq!(scratch.run(&["assemble", "--in", &here]).ok().err, "");
}
