//! Features that users of mdadm and RapidDisk expect: status for scripts, stable names, forget and rename,
//! words for several members, bad blocks, completions.

mod common;

use std::path::{Path, PathBuf};

use common::{MIB, Scratch, Tool, UpVolume, is_alive, skip_unless_root, skip_without, wait_until};

const FAILED: i32 = 1;
const USAGE: i32 = 2;
const REFUSED: i32 = 3;

/// The output of `mdadm --detail --export` of mdadm 4.2 for a raid5 of three members and a spare, after the
/// failure of the first: Linux 6.12, `mdadm --create /dev/md0 -l 5 -n 3 -x 1 --name=foo`.
const OF_MDADM: &str = "\
MD_LEVEL=raid5
MD_DEVICES=3
MD_METADATA=1.2
MD_UUID=b36c001e:aeabc619:59a6b028:516b8b8a
MD_NAME=any:foo
MD_DEVICE_dev_vdc_ROLE=2
MD_DEVICE_dev_vdc_DEV=/dev/vdc
MD_DEVICE_dev_vda_ROLE=spare
MD_DEVICE_dev_vda_DEV=/dev/vda
MD_DEVICE_dev_vdd_ROLE=0
MD_DEVICE_dev_vdd_DEV=/dev/vdd
MD_DEVICE_dev_vdb_ROLE=1
MD_DEVICE_dev_vdb_DEV=/dev/vdb
";

/// A raid5 of three members and a spare, up over NBD.
fn raid5(scratch: &Scratch) -> UpVolume<'_> {
    for member in ["vda", "vdb", "vdc", "vdd"] {
        scratch.sparse(member, 32 * MIB);
    }
    let create = ["create", "foo", "--level", "raid5", "--assume-clean", "--homehost", "any"];
    let members = ["--uuid", "b36c001e:aeabc619:59a6b028:516b8b8a", "vda", "vdb", "vdc"];
    scratch.braid().args(create).args(members).args(["--spare", "vdd"]).run().ok();
    scratch.up("foo", &["--attach", "none"])
}

#[test]
fn an_array_is_exported_in_mdadms_words() {
    let scratch = Scratch::new();
    let volume = raid5(&scratch);
    scratch.run(&["member", "fail", "foo", "vda"]).ok();
    let in_sync = || volume.status()["state"] == "online";
    wait_until("the spare in the place of the member", in_sync);
    let exported = scratch.run(&["status", "foo", "--export"]).ok().out;

    let folder = scratch.path().to_str().expect("a plain path").to_owned();
    let key = folder.trim_start_matches('/').replace(|one: char| !one.is_ascii_alphanumeric(), "_");
    let expected = OF_MDADM.replace("/dev/", &format!("{folder}/"));
    let expected = expected.replace("_dev_", &format!("_{key}_"));
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(ToOwned::to_owned).collect();
        lines.sort();
        lines
    };
    let mut lines = sorted(&exported);
    // mdadm has it of arrays that have a name in /dev/md.
    lines.retain(|line| line != "MD_DEVNAME=foo");
    assert_eq!(lines, sorted(&expected));
    // Shells read it.
    let shell = Tool::new("sh").args(["-c", "eval \"$1\"; echo $MD_LEVEL $MD_DEVNAME", "-"]);
    assert_eq!(shell.arg(&exported).run().ok().out, "raid5 foo\n");

    scratch
        .run(&["status", "foo", "--export", "--array", "none"])
        .fails(FAILED, &["no such array"]);
    scratch.run(&["status", "--export"]).fails(USAGE, &["NAME"]);
    let ram = scratch.up("ram(1M)", &["--name", "r", "--attach", "none"]);
    scratch.run(&["status", "r", "--export"]).fails(FAILED, &["no such array", "--json"]);
    ram.down();
    volume.down();
}

#[test]
fn of_several_arrays_one_is_exported_by_its_name() {
    let scratch = Scratch::new();
    for member in ["a.img", "b.img", "c.img", "d.img"] {
        scratch.sparse(member, 16 * MIB);
    }
    let create = |name: &str, members: [&str; 2]| {
        let args = ["create", name, "--level", "raid1", "--assume-clean"];
        scratch.braid().args(args).args(members).run().ok();
    };
    create("left", ["a.img", "b.img"]);
    create("right", ["c.img", "d.img"]);
    let both = scratch
        .up("raid0(md(a.img, b.img), md(c.img, d.img))", &["--name", "v", "--attach", "none"]);
    let several = scratch.run(&["status", "v", "--export"]);
    several.fails(USAGE, &["v has 2 arrays: left, right", "--array NAME"]);
    let one = scratch.run(&["status", "v", "--export", "--array", "right"]).ok();
    assert!(one.out.contains("_c_img_ROLE=0\n") && !one.out.contains("_a_img_ROLE"), "{one}");
    both.down();
}

#[test]
fn a_brief_status_is_a_line_for_each_volume() {
    let scratch = Scratch::new();
    assert_eq!(scratch.run(&["status", "--brief"]).ok().out, "");
    let first = scratch.up("ram(1M)", &["--name", "a", "--attach", "none"]);
    let second = scratch.up("ram(1M)", &["--name", "b", "--attach", "none"]);
    let uri = |volume: &UpVolume<'_>| volume.uris[0].clone();
    let expected = format!("a online {}\nb online {}\n", uri(&first), uri(&second));
    assert_eq!(scratch.run(&["status", "--brief"]).ok().out, expected);
    second.kill();
    let expected = format!("a online {}\nb unanswered -\n", uri(&first));
    assert_eq!(scratch.run(&["status", "--brief"]).ok().out, expected);
    first.down();
}

#[test]
fn status_says_how_much_memory_is_in_use_and_by_which_version() {
    let scratch = Scratch::new();
    let volume = scratch.up("ram(64M)", &["--name", "v", "--attach", "none"]);
    let status = volume.status();
    let before = status["memory_bytes"].as_u64().expect("a number");
    assert!(before > MIB, "{before}");
    assert_eq!(status["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(status["program_replaced"], false);
    volume.client().write(0, &vec![7; 32 << 20], false).expect("a write");
    let after = volume.status()["memory_bytes"].as_u64().expect("a number");
    assert!(after >= before + 24 * MIB, "{before} and then {after}");
    let text = scratch.run(&["status", "v"]).ok();
    assert!(text.out.contains(" in memory, ") && !text.out.contains("version:"), "{text}");
    volume.down();
}

#[test]
fn status_says_that_another_program_was_installed_since() {
    let scratch = Scratch::new();
    let program = scratch.join("braid");
    let install = || {
        // As packages do: the file that runs is replaced, not written.
        let built = Path::new(env!("CARGO_BIN_EXE_braid")).parent().expect("a folder");
        for name in ["braid", "braid-volume"] {
            let new = scratch.join("new");
            std::fs::copy(built.join(name), &new).expect("a copy");
            std::fs::rename(&new, scratch.join(name)).expect("a new program");
        }
    };
    let run = |args: &[&str]| {
        let here = |what| scratch.join(what);
        let tool = Tool::new(&program).env("BRAID_RUN_DIR", scratch.run_folder());
        let tool = tool.env("BRAID_CONFIG_DIR", here("config")).env("BRAID_DEV_DIR", here("dev"));
        tool.env("BRAID_STATE_DIR", here("state")).args(args).run()
    };
    install();
    run(&["up", "ram(1M)", "--name", "v", "--attach", "none"]).ok();
    assert!(!run(&["status", "v"]).ok().out.contains("version:"));
    install();
    let text = run(&["status", "v"]).ok();
    for part in ["version: ", "replaced since", "`braid down v`, then `braid up v`"] {
        assert!(text.out.contains(part), "{part} in {text}");
    }
    assert_eq!(run(&["status", "--json"]).ok().json()["volumes"][0]["program_replaced"], true);
    run(&["down", "v"]).ok();
}

#[test]
fn failed_and_detached_members_are_let_go() {
    let scratch = Scratch::new();
    let volume = raid5(&scratch);
    let none = scratch.run(&["member", "remove", "foo", "failed"]).ok();
    assert_eq!(none.out, "no member of foo is failed\n");
    let members = |volume: &UpVolume<'_>| {
        let status = volume.status();
        let members = status["arrays"][0]["members"].as_array().expect("members").clone();
        let name = |member: &serde_json::Value| {
            let path = member["member"].as_str().expect("a path").to_owned();
            PathBuf::from(path).file_name().expect("a name").to_string_lossy().into_owned()
        };
        members.iter().map(name).collect::<Vec<String>>()
    };
    scratch.run(&["member", "fail", "foo", "vda"]).ok();
    wait_until("the spare in the place of the member", || volume.status()["state"] == "online");
    scratch.run(&["member", "fail", "foo", "vdb"]).ok();
    // One is still there, and the other was pulled out.
    std::fs::remove_file(scratch.join("vda")).expect("a file");
    let gone = scratch.run(&["member", "remove", "foo", "detached"]).ok();
    assert!(gone.out.contains("vda was removed") && !gone.out.contains("vdb"), "{gone}");
    assert_eq!(members(&volume).len(), 3);
    let failed = scratch.run(&["member", "remove", "foo", "failed", "--json"]).ok().json();
    assert_eq!(failed["done"].as_array().map(Vec::len), Some(1), "{failed}");
    let mut left = members(&volume);
    left.sort();
    assert_eq!(left, ["vdc", "vdd"]);
    let record = std::fs::read_to_string(scratch.config_file("foo")).expect("the record");
    let stack = record.lines().find(|line| line.starts_with("stack")).expect("a stack");
    assert!(!stack.contains("vda") && !stack.contains("vdb"), "{stack}");
    volume.down();
}

#[test]
fn members_whose_device_has_gone_are_taken_out() {
    let scratch = Scratch::new();
    let volume = raid5(&scratch);
    let none = scratch.run(&["member", "fail", "foo", "detached"]).ok();
    assert_eq!(none.out, "no member of foo is detached\n");
    std::fs::remove_file(scratch.join("vda")).expect("a file");
    let gone = scratch.run(&["member", "fail", "foo", "detached", "--json"]).ok().json();
    let text = gone["done"][0].as_str().expect("what was done");
    assert!(text.contains("vda is faulty"), "{gone}");
    assert_eq!(gone["done"].as_array().map(Vec::len), Some(1), "{gone}");
    let in_sync =
        || volume.status()["arrays"][0]["in_sync"] == serde_json::json!([true, true, true]);
    wait_until("the spare in the place of the member", in_sync);
    // It is not taken out twice.
    let none = scratch.run(&["member", "fail", "foo", "detached"]).ok();
    assert_eq!(none.out, "no member of foo is detached\n");
    volume.down();
}

#[test]
fn a_bitmap_comes_changes_and_goes_while_the_volume_is_up() {
    let scratch = Scratch::new();
    for member in ["a", "b"] {
        scratch.sparse(member, 32 * MIB);
    }
    let create = ["create", "foo", "--level", "raid1", "--assume-clean", "--bitmap", "none"];
    scratch.run(&[&create[..], &["a", "b"]].concat()).ok();
    let volume = scratch.up("foo", &["--attach", "none"]);
    let bitmap = |volume: &UpVolume<'_>| volume.status()["arrays"][0]["bitmap_chunk_bytes"].clone();
    assert!(bitmap(&volume).is_null());
    let fine = scratch.run(&["grow", "foo", "--bitmap", "1K"]);
    fine.fails(REFUSED, &["a power of two from 4 KiB on"]);
    let added = scratch.run(&["grow", "foo", "--bitmap", "internal"]).ok();
    assert!(added.out.contains("64 MiB"), "{added}");
    assert_eq!(bitmap(&volume), 64 * MIB);
    volume.client().write(0, &[7; 65536], true).expect("a write");
    scratch.run(&["grow", "foo", "--bitmap", "64K"]).ok();
    assert_eq!(bitmap(&volume), 65536);
    volume.client().write(MIB, &[8; 65536], true).expect("a write");
    volume.down();
    let examined = scratch.run(&["examine", "--bitmap", "a"]).ok();
    assert!(examined.out.contains("64 KB"), "{examined}");

    let volume = scratch.up("foo", &["--attach", "none"]);
    assert_eq!(bitmap(&volume), 65536);
    assert_eq!(volume.client().read(0, 65536).expect("a read"), vec![7; 65536]);
    let removed = scratch.run(&["grow", "foo", "--bitmap", "none", "--json"]).ok().json();
    assert_eq!(removed["done"], "the array has no write-intent bitmap any more");
    assert!(bitmap(&volume).is_null());
    scratch.run(&["grow", "foo", "--bitmap", "none"]).ok();
    volume.down();
    let examined = scratch.run(&["examine", "a"]).ok();
    assert!(!examined.out.contains("Internal Bitmap"), "{examined}");
}

#[test]
fn readonly_stops_a_recovery_and_readwrite_lets_it_go_on() {
    let scratch = Scratch::new();
    for member in ["a", "b", "c"] {
        scratch.sparse(member, 64 * MIB);
    }
    let create = ["create", "foo", "--level", "raid1", "--assume-clean", "--bitmap", "none"];
    scratch.run(&[&create[..], &["a", "b"]].concat()).ok();
    let volume = scratch.up("foo", &["--attach", "none"]);
    scratch.run(&["speed", "foo", "--max", "1M"]).ok();
    scratch.run(&["member", "fail", "foo", "a"]).ok();
    scratch.run(&["member", "add", "foo", "c"]).ok();
    let done = || {
        let status = volume.status();
        status["arrays"][0]["job"]["done_bytes"].as_u64()
    };
    wait_until("some of the recovery", || done().is_some_and(|done| done > 0));
    let before = done();
    scratch.run(&["readonly", "foo"]).ok();
    assert_eq!(done(), None, "{}", volume.status());
    assert_eq!(volume.status()["state"], "degraded");
    volume.client().write(0, &[1; 512], false).expect_err("read-only for all");
    scratch.run(&["readwrite", "foo"]).ok();
    wait_until("the recovery", || done().is_some());
    assert!(done() >= before, "it goes on where it was: {before:?}");
    scratch.run(&["speed", "foo", "--max", "0"]).ok();
    wait_until("all members in sync", || volume.status()["state"] == "online");
    volume.down();
}

#[test]
fn bad_blocks_are_printed_as_mdadm_does() {
    let scratch = Scratch::new();
    let array = braid_golden::named("raid1-2-badblocks");
    array.expand_into(scratch.path()).expect("its members");
    let mut lists = 0;
    for member in array.present() {
        let file = format!("m{}.img", member.index);
        let printed = scratch.run(&["examine", "--badblocks", &file]).ok().out;
        match &member.examine_badblocks {
            Some(expected) => assert_eq!(printed, *expected),
            None => assert_eq!(printed, format!("Bad-blocks list is empty in {file}\n")),
        }
        lists += usize::from(member.examine_badblocks.is_some());
    }
    assert!(lists > 0);
    braid_golden::named("raid1-2-v0.90").expand_into(scratch.path()).expect("its members");
    let none = scratch.run(&["examine", "--badblocks", "m0.img"]).ok();
    assert_eq!(none.out, "No bad-blocks list configured on m0.img\n");
    scratch.sparse("blank", MIB);
    scratch.run(&["examine", "--badblocks", "blank"]).fails(FAILED, &["no md superblock"]);
}

#[test]
fn readonly_and_readwrite_are_names_of_lock_and_unlock() {
    let scratch = Scratch::new();
    let volume = scratch.up("ram(1M)", &["--name", "v", "--attach", "none"]);
    scratch.run(&["readonly", "v"]).ok();
    assert_eq!(volume.status()["device"]["locked"], true);
    volume.client().write(0, &[1; 512], false).expect_err("read-only for all");
    scratch.run(&["readwrite", "v"]).ok();
    volume.client().write(0, &[1; 512], false).expect("a write");
    volume.down();
}

#[test]
fn a_volume_is_forgotten_and_comes_back() {
    let scratch = Scratch::new();
    scratch.file("a.img", MIB, 1);
    let before = scratch.read("a.img");
    let volume = scratch.up("linear(a.img)", &["--name", "v", "--attach", "none"]);
    scratch.run(&["forget", "v"]).fails(REFUSED, &["v is up", "braid down v"]);
    assert!(scratch.config_file("v").exists());
    volume.kill();
    scratch.run(&["forget", "v"]).fails(REFUSED, &["process was killed", "braid down v"]);
    scratch.run(&["down", "v"]).ok();
    let forgotten = scratch.run(&["forget", "v"]).ok();
    assert!(!scratch.config_file("v").exists());
    scratch.run(&["forget", "v"]).fails(FAILED, &["no volume called v is known"]);
    scratch.run(&["up", "v"]).fails(USAGE, &["names no volume"]);
    // As it says.
    let command = forgotten.out.split('`').nth(1).expect("a command");
    let words: Vec<&str> = command.split(' ').collect();
    assert_eq!(words[..2], ["braid", "up"], "{forgotten}");
    let again = scratch.up(words[2], &[]);
    assert_eq!(again.name, "v");
    again.down();
    assert!(scratch.read("a.img") == before, "its member is as it was");
    let json = scratch.run(&["forget", "v", "--json"]).ok().json();
    assert!(Path::new(json["kept"].as_str().expect("a path")).exists(), "{json}");
    scratch.run(&["forget", "../v"]).fails(USAGE, &["cannot name a volume"]);
}

#[test]
fn a_volume_gets_another_name() {
    let scratch = Scratch::new();
    scratch.sparse("a.img", MIB);
    let volume = scratch.up("linear(a.img)", &["--name", "old", "--attach", "none"]);
    scratch.run(&["rename", "old", "new"]).fails(REFUSED, &["old is up", "braid down old"]);
    volume.down();
    let record = std::fs::read(scratch.config_file("old")).expect("a record");
    let renamed = scratch.run(&["rename", "old", "new"]).ok();
    assert!(!renamed.out.contains("superblocks"), "{renamed}");
    assert!(!scratch.config_file("old").exists());
    assert!(std::fs::read(scratch.config_file("new")).expect("a record") == record);
    let volume = scratch.up("new", &[]);
    let other = scratch.up("ram(1M)", &["--name", "other", "--attach", "none"]);
    other.down();
    scratch.run(&["rename", "other", "new"]).fails(REFUSED, &["new is up"]);
    volume.down();
    scratch.run(&["rename", "other", "new"]).fails(REFUSED, &["there is a volume called new"]);
    assert!(std::fs::read(scratch.config_file("new")).expect("a record") == record);
    scratch.run(&["rename", "none", "any"]).fails(FAILED, &["no volume called none"]);
    scratch.run(&["rename", "new", "a/b"]).fails(USAGE, &["cannot name a volume"]);
    scratch.run(&["rename", "new", "new"]).fails(USAGE, &["called so already"]);

    raid5(&scratch).down();
    let renamed = scratch.run(&["rename", "foo", "bar"]).ok();
    assert!(renamed.out.contains("the name in its members' superblocks"), "{renamed}");
    scratch.up("bar", &[]).down();
}

#[test]
fn a_device_has_a_name_that_stays() {
    skip_unless_root!();
    let scratch = Scratch::new();
    let link = scratch.join("dev/v");
    let up = || scratch.up("ram(4M)", &["--name", "v", "--attach", "fuse"]);
    let volume = up();
    let leads_to = || std::fs::read_link(&link).expect("a link");
    assert_eq!(leads_to(), volume.device());
    assert_eq!(volume.status()["attached"]["link"], link.to_str().expect("a plain path"));
    let text = scratch.run(&["status", "v"]).ok();
    assert!(text.out.contains(&format!("device: {}, /dev/loop", link.display())), "{text}");
    volume.kill();
    let volume = up();
    assert_eq!(leads_to(), volume.device());
    volume.kill();
    scratch.run(&["down", "v"]).ok();
    assert!(link.symlink_metadata().is_err(), "down takes what a killed process left");

    let volume = up();
    // Another folder of sockets, where the same name is free.
    let here = |what| scratch.join(what);
    let other = || {
        let tool = Tool::new(env!("CARGO_BIN_EXE_braid")).env("BRAID_DEV_DIR", here("dev"));
        let tool = tool.env("BRAID_RUN_DIR", here("run2")).env("BRAID_CONFIG_DIR", here("config2"));
        tool.env("BRAID_STATE_DIR", here("state2"))
    };
    let second = other().args(["up", "ram(4M)", "--name", "v", "--attach", "fuse"]).run().ok();
    let (device, first) = (leads_to(), volume.device().to_owned());
    other().args(["down", "v", "--force"]).run().ok();
    assert_eq!(device, first, "it is the first one's");
    assert!(second.err.contains("which is in use"), "{second}");
    assert_eq!(leads_to(), first, "the second did not take it with it");
    volume.down();
    assert!(!scratch.join("dev").exists(), "the folder goes with the last one");

    std::fs::create_dir(scratch.join("dev")).expect("a folder");
    std::fs::write(&link, "precious").expect("a file");
    let volume = up();
    let status = volume.status();
    assert!(status["attached"]["link"].is_null(), "{status:#}");
    assert!(status["warnings"].to_string().contains("which is no link"), "{status:#}");
    volume.down();
    assert_eq!(std::fs::read_to_string(&link).expect("the file"), "precious");
}

#[test]
fn a_log_that_is_full_is_put_aside() {
    let scratch = Scratch::new();
    scratch.up("ram(1M)", &["--name", "v", "--attach", "none"]).kill();
    let log = scratch.run_folder().join("v.log");
    std::fs::write(&log, vec![b'x'; 2 << 20]).expect("a long log");
    let volume = scratch.up("v", &[]);
    let size = |path: &Path| std::fs::metadata(path).map_or(0, |file| file.len());
    assert!(size(&log) < MIB);
    assert_eq!(size(&log.with_extension("log.1")), 2 * MIB);
    assert!(is_alive(volume.pid));
    volume.down();
    assert!(!log.exists() && !log.with_extension("log.1").exists());
}

#[test]
fn verbose_says_what_is_asked_and_changed() {
    let scratch = Scratch::new();
    let up = ["-v", "up", "ram(1M)", "--name", "v", "--attach", "none"];
    let text = scratch.run(&up).ok();
    let record = format!("writes {}", scratch.config_file("v").display());
    assert!(text.err.contains(&record) && text.err.contains("v.log"), "{text}");
    let text = scratch.run(&["status", "v", "--verbose", "--brief"]).ok();
    assert!(text.err.contains("asks ") && text.out.starts_with("v online "), "{text}");
    let text = scratch.run(&["lock", "v", "-v"]).ok();
    assert!(text.err.contains("the order Whole(Lock"), "{text}");
    assert_eq!(scratch.run(&["status"]).ok().err, "");
    let text = scratch.run(&["down", "v", "-v"]).ok();
    assert!(text.err.contains("to end"), "{text}");
}

/// The completions that bash offers for a command line with an unfinished last word.
fn offered(scratch: &Scratch, line: &[&str]) -> Vec<String> {
    let script = r#"
        . ./completions
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
        complete -p braid >/dev/null || exit 1
        _braid braid "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
        printf '%s\n' "${COMPREPLY[@]}"
    "#;
    let folder = Path::new(env!("CARGO_BIN_EXE_braid")).parent().expect("a folder");
    let path = format!("{}:/usr/bin:/bin", folder.display());
    let bash = Tool::new("bash").args(["-c", script, "-"]).args(line).folder(scratch.path());
    let bash = bash.env("PATH", path).env("BRAID_RUN_DIR", scratch.run_folder());
    let output = bash.env("BRAID_CONFIG_DIR", scratch.join("config")).run().ok();
    assert_eq!(output.err, "");
    output.out.split_whitespace().map(ToOwned::to_owned).collect()
}

#[test]
fn shells_complete_names_of_volumes() {
    skip_without!("bash");
    let scratch = Scratch::new();
    let volume = scratch.up("ram(1M)", &["--name", "home", "--attach", "none"]);
    scratch.up("ram(1M)", &["--name", "huge", "--attach", "none"]).down();
    for shell in ["bash", "zsh", "fish"] {
        let script = scratch.run(&["completions", shell]).ok().out;
        std::fs::write(scratch.join(&format!("completions.{shell}")), script).expect("a script");
    }
    std::fs::rename(scratch.join("completions.bash"), scratch.join("completions")).expect("a name");
    assert_eq!(offered(&scratch, &["braid", "down", "h"]), ["home", "huge"]);
    assert_eq!(offered(&scratch, &["braid", "member", "fail", "ho"]), ["home"]);
    assert_eq!(offered(&scratch, &["braid", "readonly", "hu"]), ["huge"]);
    assert_eq!(offered(&scratch, &["braid", "sta"]), ["status"]);
    assert!(offered(&scratch, &["braid", "create", "h"]).is_empty());
    assert!(offered(&scratch, &["braid", "status", ""]).contains(&"--export".to_owned()));
    std::fs::write(scratch.config_file("monitor"), "[mail]\n").expect("no volume");
    assert_eq!(scratch.run(&["completions", "--names"]).ok().out, "home\nhuge\n");
    volume.down();

    for (shell, check) in [("zsh", "-n"), ("fish", "--no-execute")] {
        match common::find_program(shell) {
            Some(_) => {
                let file = format!("completions.{shell}");
                Tool::new(shell).arg(check).arg(file).folder(scratch.path()).run().ok();
            }
            None => println!("skipped: {shell} is not installed"),
        }
    }
}
