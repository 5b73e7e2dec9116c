//! `braid create`, with mdadm as a judge of what was written.

use crate::common::{MIB, Scratch, Tool, UpVolume, skip_without};
use crate::{FAILED, REFUSED, SIZE, USAGE, Unchanged, members, refuses, superblock};

/// Arrays of all kinds: level and options, members.
const KINDS: [(&str, &[&str]); 14] = [
    ("linear", &["a.img", "b.img"]),
    ("raid0 --chunk 64K", &["a.img", "b.img", "c.img"]),
    ("raid0 --layout original", &["a.img", "b.img"]),
    ("raid1", &["a.img", "b.img"]),
    ("raid1 --bitmap internal", &["a.img", "b.img", "c.img"]),
    ("raid1 --bitmap 64K --assume-clean", &["a.img", "missing"]),
    ("raid1 --write-mostly ./b.img --spare c.img", &["a.img", "b.img"]),
    ("raid10", &["a.img", "b.img", "c.img"]),
    ("raid10 --layout f2 --chunk 32K", &["a.img", "b.img", "c.img", "d.img"]),
    ("raid10 --layout o2 --chunk 4K", &["a.img", "missing", "c.img", "d.img"]),
    ("raid4", &["a.img", "b.img", "c.img"]),
    ("raid5 --layout ra --size 1M --chunk 64K", &["a.img", "b.img", "c.img"]),
    ("raid6", &["a.img", "b.img", "c.img", "d.img"]),
    ("raid1 --homehost elsewhere --uuid 00112233:44556677:8899aabb:ccddeeff", &["a.img", "b.img"]),
];

fn command<'a>(options: &'a str, given: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec!["create", "new", "--level"];
    args.extend(options.split(' '));
    args.extend(more);
    args.push("--");
    args.extend(given);
    args
}

fn each_kind(version: &str, check: impl Fn(&Scratch, &[&str])) {
    let mut count = 0;
    for (options, given) in KINDS {
        // 0.90 keeps no record of raid0's layout.
        if version == "0.90" && options.contains("--layout original") {
            continue;
        }
        let scratch = Scratch::new();
        members(&scratch, &["a.img", "b.img", "c.img", "d.img"]);
        scratch.run(&command(options, given, &["--metadata", version])).ok();
        let spare = options.contains("--spare").then_some("c.img");
        let present: Vec<&str> =
            given.iter().copied().filter(|name| *name != "missing").chain(spare).collect();
        check(&scratch, &present);
        count += 1;
    }
    assert!(count > 10);
}

fn mdadm_reads_the_same(version: &str) {
    skip_without!("mdadm");
    each_kind(version, |scratch, present| {
        for name in present {
            for (option, zone) in [("", "UTC"), ("", "America/New_York"), ("--export", "UTC")] {
                let run = |tool: Tool| {
                    let arguments = ["--examine", option, name].into_iter();
                    let arguments = arguments.filter(|argument| !argument.is_empty());
                    tool.args(arguments).env("TZ", zone).folder(scratch.path()).run().ok().out
                };
                let ours = ["examine", option, name].into_iter().filter(|one| !one.is_empty());
                let ours = scratch.braid().args(ours).env("TZ", zone).run().ok().out;
                assert_eq!(ours, run(Tool::new("mdadm")), "{version} {name} {option}");
            }
        }
    });
}

#[test]
fn mdadm_reads_1_2_as_we_do() {
    mdadm_reads_the_same("1.2");
}

#[test]
fn mdadm_reads_1_1_as_we_do() {
    mdadm_reads_the_same("1.1");
}

#[test]
fn mdadm_reads_1_0_as_we_do() {
    mdadm_reads_the_same("1.0");
}

#[test]
fn mdadm_reads_0_90_as_we_do() {
    mdadm_reads_the_same("0.90");
}

#[test]
fn a_plan_names_every_byte_that_is_written_and_writes_none() {
    for (options, given) in KINDS {
        let scratch = Scratch::new();
        members(&scratch, &["a.img", "b.img", "c.img", "d.img"]);
        let unchanged = Unchanged::since_now(&scratch);
        let text = scratch.run(&command(options, given, &["--plan"])).ok();
        assert!(text.out.contains("nothing was written"), "{text}");
        let plan = scratch.run(&command(options, given, &["--plan", "--json"])).ok().json();
        unchanged.holds(options);
        assert_eq!(plan["written"], false);
        let done = scratch.run(&command(options, given, &["--json"])).ok().json();
        assert_eq!((&done["written"], &done["writes"]), (&true.into(), &plan["writes"]));
        for (path, before) in &unchanged.before {
            let mut after = scratch.read(&path.to_string_lossy());
            for write in done["writes"].as_array().expect("a list") {
                if write["member"] == path.to_str().expect("a path") {
                    let [offset, length] = ["offset_bytes", "length_bytes"]
                        .map(|key| write[key].as_u64().expect("a number") as usize);
                    let place = offset..offset + length;
                    assert!(after[place.clone()] != before[place.clone()], "{options}: {write}");
                    after[place.clone()].copy_from_slice(&before[place]);
                }
            }
            assert!(after == *before, "{options}: {} elsewhere", path.display());
        }
    }
}

#[test]
fn what_was_created_is_up_with_the_next_command() {
    for level in ["linear", "raid0", "raid1", "raid10"] {
        let scratch = Scratch::new();
        members(&scratch, &["a.img", "b.img"]);
        let created = scratch.run(&["create", "new", "--level", level, "a.img", "b.img"]).ok();
        assert!(created.out.contains("next: braid up new"), "{created}");
        assert!(created.out.contains("`braid undo new`"), "{created}");
        let volume = UpVolume::start(&scratch, "new", &["--attach", "none"])
            .unwrap_or_else(|output| panic!("{level}: {output}"));
        let again = scratch.run(&["wipe", "a.img"]);
        again.fails(REFUSED, &["it is a member of new, which is up", "next: braid down new"]);
        drop(volume);
    }
}

#[test]
fn what_a_member_carries_is_not_overwritten_unasked() {
    let scratch = Scratch::new();
    members(&scratch, &["a.img", "b.img", "c.img"]);
    scratch.run(&["create", "old", "--level", "raid1", "a.img", "b.img"]).ok();
    let create = ["create", "new", "--level", "raid1", "a.img", "c.img"];
    let parts = ["a.img is refused: it contains md 1.2", "next: to overwrite it: --force"];
    refuses(&scratch, &create, REFUSED, &parts);
    refuses(&scratch, &[&create[..], &["--plan"]].concat(), REFUSED, &parts);
    let other = [&create[..], &["--force", "b.img"]].concat();
    refuses(&scratch, &other, USAGE, &["--force", "b.img: that is none of the members"]);
    scratch.run(&[&create[..], &["--force", "./a.img"]].concat()).ok();
    assert_eq!(superblock(&scratch, "a.img").array_uuid, superblock(&scratch, "c.img").array_uuid);
}

#[test]
fn what_is_no_member() {
    let scratch = Scratch::new();
    members(&scratch, &["a.img", "b.img"]);
    scratch.sparse("tiny.img", 64 << 10);
    std::fs::hard_link(scratch.join("a.img"), scratch.join("link.img")).expect("a link");
    std::os::unix::fs::symlink("a.img", scratch.join("soft.img")).expect("a link");
    let raid1 = |more: &[&'static str]| [&["create", "new", "--level", "raid1"], more].concat();
    for (given, code, parts) in [
        (vec!["a.img", "nope.img"], REFUSED, vec!["nope.img is refused", "does not exist"]),
        (vec!["a.img", "a.img"], REFUSED, vec!["it is the same as", "name each member once"]),
        (vec!["a.img", "link.img"], REFUSED, vec!["it is the same as"]),
        (vec!["a.img", "soft.img"], REFUSED, vec!["it is the same as"]),
        (vec!["a.img", "b.img", "--spare", "a.img"], REFUSED, vec!["it is the same as"]),
        (vec!["a.img", "/dev"], REFUSED, vec!["/dev is refused", "directory"]),
        (vec!["a.img", "tiny.img"], USAGE, vec!["tiny.img is too small", "65536 bytes"]),
        (vec!["a.img"], USAGE, vec!["raid1 needs at least 2 members, and 1 were given"]),
        (vec!["missing", "missing"], USAGE, vec!["raid1 does not hold its data"]),
        (vec!["a.img", "b.img", "--chunk", "64K"], USAGE, vec!["raid1 has no chunk"]),
        (vec!["a.img", "b.img", "--bitmap", "5000"], USAGE, vec!["power of two"]),
        (
            vec!["a.img", "b.img", "--bitmap", "x"],
            USAGE,
            vec!["not none, internal or a chunk size"],
        ),
        (vec!["a.img", "b.img", "--size", "1T"], USAGE, vec!["is too small"]),
        (vec!["a.img", "b.img", "--data-offset", "5000"], USAGE, vec!["multiple of 4096"]),
        (vec!["a.img", "b.img", "--layout", "n2"], USAGE, vec!["raid1 has no layout"]),
        (vec!["a.img", "b.img", "--write-mostly", "c"], USAGE, vec!["none of the members"]),
    ] {
        refuses(&scratch, &raid1(&given), code, &parts);
    }
    for (args, part) in [
        (["create", "..", "--level", "raid1"], "cannot name a volume"),
        (["create", "new", "--level", "raid9"], "no level"),
        (["create", "a-name-that-is-longer-than-32-bytes", "--level", "raid1"], "room for 32"),
    ] {
        refuses(&scratch, &[&args[..], &["a.img", "b.img"]].concat(), USAGE, &[part]);
    }
}

#[test]
fn a_name_is_taken_once() {
    let scratch = Scratch::new();
    members(&scratch, &["a.img", "b.img", "c.img", "d.img"]);
    scratch.run(&["create", "new", "--level", "raid1", "a.img", "b.img"]).ok();
    let again = ["create", "new", "--level", "raid1", "c.img", "d.img"];
    refuses(&scratch, &again, REFUSED, &["there is a volume called new", "next:"]);
}

#[test]
fn nothing_is_written_if_it_cannot_be_saved_or_remembered() {
    let scratch = Scratch::new();
    members(&scratch, &["a.img", "b.img"]);
    scratch.file("state", 1, 1);
    let create = ["create", "new", "--level", "raid1", "a.img", "b.img"];
    refuses(&scratch, &create, FAILED, &["cannot save in", "so nothing was", "BRAID_STATE_DIR"]);
    std::fs::remove_file(scratch.join("state")).expect("a file");
    scratch.file("config", 1, 1);
    let before = [scratch.read("a.img"), scratch.read("b.img")];
    scratch.run(&create).fails(FAILED, &["cannot make the folder", "was put back"]);
    assert!(before == [scratch.read("a.img"), scratch.read("b.img")], "put back");
    scratch.run(&["undo"]).fails(FAILED, &["no change to undo"]);
}

#[test]
fn members_of_unequal_sizes_give_what_the_smallest_has() {
    let scratch = Scratch::new();
    members(&scratch, &["a.img"]);
    scratch.file("b.img", 4 * MIB, 2);
    scratch.run(&["create", "one", "--level", "raid1", "a.img", "b.img"]).ok();
    assert_eq!(superblock(&scratch, "a.img").component_size, 3 * MIB);
    scratch.run(&["undo"]).ok();
    scratch.run(&["create", "all", "--level", "raid0", "--chunk", "64K", "a.img", "b.img"]).ok();
    let assembled = scratch.run(&["assemble", "a.img", "b.img", "--plan", "--json"]).ok().json();
    assert_eq!(assembled["arrays"][0]["array_bytes"], SIZE + 4 * MIB - 2 * MIB);
}
