//! Bad input for all of `braid rescue`: one clear sentence and the next command, nothing written to a member.

use std::os::unix::fs::symlink;
use std::path::Path;

use braid_md::Version;
use braid_md::fuzz::seal;
use braid_mutate::change_superblock;
use braid_seed::{Rng, commit, first_of_commit};

use crate::Case;
use crate::common::{MIB, Mounted, Output, Scratch, Tool, skip_unless_root};

/// The commands that work on a case, without what they write.
const COMMANDS: [&[&str]; 7] = [
    &["scan", "home"],
    &["open", "home"],
    &["solve", "home"],
    &["verify", "home"],
    &["files", "home", "--lost"],
    &["copy", "home", "--to", "out.img"],
    &["commit", "home"],
];

fn rescue(scratch: &Scratch, words: &[&str]) -> Output {
    scratch.run(&[&["rescue"], words].concat())
}

/// Checks that a command fails with these parts of one sentence and a next command, and no more.
#[track_caller]
fn refused(output: &Output, parts: &[&str]) {
    assert!(!output.status.success(), "{output}");
    assert!(output.err.starts_with("braid: ") && output.err.contains("\n  next: "), "{output}");
    assert!(output.err.lines().count() <= 3, "{output}");
    assert!(!output.err.contains("panicked"), "{output}");
    for part in parts {
        assert!(output.err.contains(part), "{part}: {output}");
    }
}

/// Checks that all commands fail so.
#[track_caller]
fn all_refused(scratch: &Scratch, parts: &[&str]) {
    COMMANDS.iter().for_each(|words| refused(&rescue(scratch, words), parts));
}

fn case() -> Case {
    Case::of(braid_golden::named("raid5-3"))
}

#[test]
fn what_is_no_member_is_named() {
    let case = case();
    let scratch = &case.scratch;
    std::fs::create_dir(scratch.join("folder")).expect("a folder");
    scratch.sparse("empty", 0);
    symlink("nowhere", scratch.join("dangling")).expect("a link");
    for (path, why) in [
        ("folder", "is a directory: a member is a regular file or a block device"),
        ("empty", "is empty: it has 0 bytes"),
        ("dangling", "No such file"),
        ("none", "No such file"),
        ("/dev/null", "is a character device"),
    ] {
        let output = rescue(scratch, &["scan", "home", path]);
        refused(&output, &["none of the paths can be examined", why]);
        assert!(!scratch.join("home.rescue").exists(), "{path}: no case is made");
    }
    // The same member under four names is one member.
    std::fs::hard_link(scratch.join("m0.img"), scratch.join("hard.img")).expect("a link");
    symlink("m0.img", scratch.join("soft.img")).expect("a link");
    let output = case.scan(&["hard.img", "soft.img", "./m0.img"]);
    refused(&output, &["hard.img is the same file or device as", "soft.img is the same"]);
    let json = rescue(scratch, &["scan", "home", "--json"]).ok().json();
    assert_eq!(json["members"].as_array().map(Vec::len), Some(3), "{json}");
    case.untouched();
}

#[test]
fn a_map_of_another_disk_is_refused() {
    let case = case();
    let scratch = &case.scratch;
    let size = case.golden.members[0].bytes;
    for (map, parts) in [
        (format!("0 + 1\n0 {} +\n", size + 512), &["is the map of another disk than"][..]),
        (format!("0 + 1\n0 {} +\n", u64::MAX), &["m.map"]),
        ("0 + 1\n0 4096 +\n".to_owned(), &["is the map of another disk than"]),
        ("0 + 1\n4096 512 -\n0 512 +\n".to_owned(), &["is no map of ddrescue"]),
        (String::new(), &["m.map"]),
    ] {
        std::fs::write(scratch.join("m.map"), map).expect("a map");
        refused(&case.scan(&["--map", "m0.img=m.map"]), parts);
        assert!(!scratch.join("home.rescue").exists(), "no case is made");
    }
    refused(&case.scan(&["--map", "m0.img"]), &["--map m0.img: it is PATH=FILE"]);
    refused(&case.scan(&["--map", "m9.img=m.map"]), &["the case has no such member"]);
    refused(&case.scan(&["--map", "m0.img=none"]), &["cannot read the map", "none"]);
    std::fs::create_dir(scratch.join("d.map")).expect("a folder");
    refused(&case.scan(&["--map", "m0.img=d.map"]), &["cannot read the map", "d.map"]);
    case.untouched();
}

#[test]
fn members_of_several_arrays_and_a_foreign_disk_are_told_apart() {
    let case = case();
    let other = Case::of(braid_golden::named("raid1-2"));
    let path = other.scratch.join("m0.img").display().to_string();
    case.scratch.file("foreign.img", 2 * MIB, 7);
    case.scan(&[&path, "foreign.img"]).ok();
    for words in [&["commit", "home"][..], &["copy", "home", "--to", "out.img"]] {
        refused(&rescue(&case.scratch, words), &["the case has several"]);
    }
    let wrong = rescue(&case.scratch, &["commit", "home", "--array", "none"]);
    refused(&wrong, &["the case has no array none", "braid rescue scan home"]);
    let right = ["commit", "home", "--array", &case.golden.uuid, "--verified"];
    let right = rescue(&case.scratch, &right).ok();
    assert!(right.out.contains("Nothing is written yet: 3 places"), "{right}");
    case.untouched();
    other.untouched();
}

#[test]
fn members_that_vanished_shrank_or_were_exchanged_are_named() {
    let case = case();
    let (scratch, size) = (&case.scratch, case.golden.members[1].bytes);
    case.scan(&[]).ok();
    let (member, away) = (scratch.join("m1.img"), scratch.join("away"));
    std::fs::rename(&member, &away).expect("a member");
    all_refused(scratch, &["m1.img: No such file", "put the image back"]);
    std::fs::create_dir(&member).expect("a folder");
    all_refused(scratch, &["m1.img is a directory"]);
    std::fs::remove_dir(&member).expect("a folder");
    std::fs::copy(scratch.join("m2.img"), &member).expect("a copy");
    all_refused(scratch, &["m1.img is not what was scanned", "has changed", "home-new"]);
    std::fs::rename(&away, &member).expect("a member");
    scratch.resize("m1.img", size - 512);
    all_refused(scratch, &["it had", &format!("bytes and has {}", size - 512)]);
    scratch.resize("m1.img", 0);
    all_refused(scratch, &["m1.img is empty: it has 0 bytes"]);
}

#[test]
fn a_damaged_case_is_named_and_left() {
    let case = case();
    let scratch = &case.scratch;
    case.scan(&[]).ok();
    let path = scratch.join("home.rescue/case.json");
    let text = std::fs::read_to_string(&path).expect("a case");
    let newer = text.replacen("\"version\": 1", "\"version\": 2", 1);
    for (broken, why) in [
        (&text[..text.len() / 2], "EOF"),
        ("", "EOF"),
        (&newer, "its version is 2, and this braid reads 1"),
        (r#"{"version": 1, "members": []}"#, "it has no members"),
    ] {
        std::fs::write(&path, broken).expect("it is written");
        all_refused(scratch, &["case.json", why, "braid rescue scan home-new PATH.."]);
        assert_eq!(std::fs::read_to_string(&path).expect("a case"), broken, "it is left");
    }
    std::fs::remove_file(&path).expect("a case");
    std::fs::create_dir(&path).expect("a folder");
    all_refused(scratch, &["case.json: it is no file"]);
    std::fs::remove_dir(&path).expect("a folder");
    COMMANDS[1..]
        .iter()
        .for_each(|words| refused(&rescue(scratch, words), &["there is no case in home.rescue"]));
    std::fs::remove_dir_all(scratch.join("home.rescue")).expect("a case");
    std::fs::write(scratch.join("home.rescue"), "a file").expect("it is written");
    all_refused(scratch, &["Not a directory"]);
    case.untouched();
}

#[test]
fn a_case_that_cannot_be_written_leaves_the_members_alone() {
    skip_unless_root!();
    let case = case();
    let scratch = &case.scratch;
    let point = scratch.join("small");
    std::fs::create_dir(&point).expect("a folder");
    let Some(small) = Mounted::tmpfs(&point, 64 << 10) else {
        return println!("skipped: no file system can be mounted");
    };
    let names: Vec<&str> = case.names.iter().map(String::as_str).collect();
    let scan = [&["scan", "small/home"], &names[..]].concat();
    rescue(scratch, &scan).ok();
    let fill = |bytes: usize| std::fs::write(small.point().join("fill"), vec![1; bytes]);
    // Until it is full.
    let most = (0..16).rev().map(|pages| pages * 4096).find(|bytes| fill(*bytes).is_ok());
    assert!(most.is_some_and(|bytes| bytes > 0), "{most:?}");
    let other = [&["scan", "small/other"], &names[..]].concat();
    refused(
        &rescue(scratch, &other),
        &["cannot write small/other.rescue", "No space", "make room"],
    );
    let write = ["commit", "small/home", "--verified", "--write"];
    refused(&rescue(scratch, &write), &["small/home.rescue", "No space", "make room"]);
    case.untouched();
    // Room for what is written before the superblocks are saved, and for no more.
    for pages in 1..4 {
        std::fs::remove_file(small.point().join("fill")).expect("it was filled");
        fill(most.expect("it was filled") - pages * 4096).expect("room");
        let output = rescue(scratch, &write);
        if output.status.success() {
            rescue(scratch, &["commit", "small/home", "--undo"]).ok();
        } else {
            refused(&output, &["No space", "make room"]);
        }
        case.untouched();
    }
    std::fs::remove_file(small.point().join("fill")).expect("it was filled");
    Tool::new("mount").args(["-o", "remount,ro"]).arg(small.point()).run().ok();
    refused(&rescue(scratch, &["scan", "small/home"]), &["cannot write", "Read-only file system"]);
    rescue(scratch, &["open", "small/home"]).ok();
    refused(&rescue(scratch, &write), &["small/home.rescue", "Read-only file system"]);
    case.untouched();
}

/// Superblocks of the kernel with fields changed to extremes, under a right checksum.
#[test]
fn hostile_superblocks_are_judged_without_a_panic() {
    let first = first_of_commit(&commit());
    for seed in first..first + 12 {
        let case = case();
        let mut rng = Rng::new(seed);
        for name in &case.names {
            let mut bytes = case.scratch.read(name)[4096..8192].to_vec();
            change_superblock(false, &mut bytes, &mut rng);
            seal(Version::V1_2, &mut bytes);
            case.scratch.patch(name, 4096, &bytes);
        }
        let before: Vec<_> = case.names.iter().map(|name| case.scratch.read(name)).collect();
        case.scan(&[]).ok();
        for words in COMMANDS {
            let output = rescue(&case.scratch, words);
            let code = output.status.code();
            assert!(code.is_some_and(|code| code <= 4), "seed {seed}: {words:?}: {output}");
            assert!(!output.err.contains("panicked"), "seed {seed}: {words:?}: {output}");
        }
        let after: Vec<_> = case.names.iter().map(|name| case.scratch.read(name)).collect();
        assert!(before == after, "seed {seed}: a member was written");
    }
}

/// A member that fails while it is read is scanned around, and what it could not give is in doubt.
#[test]
fn a_member_that_fails_is_read_around() {
    skip_unless_root!();
    let case = case();
    let scratch = &case.scratch;
    let size = case.golden.members[0].bytes;
    let data = case.golden.members[0].data_offset_bytes.expect("it has data");
    let map =
        format!("0 + 1\n0 {data} +\n{data} 4096 -\n{} {} +\n", data + 4096, size - data - 4096);
    std::fs::write(scratch.join("m0.map"), map).expect("a map");
    let stack = format!(
        "holes({}, map={})",
        scratch.join("m0.img").display(),
        scratch.join("m0.map").display()
    );
    let volume = scratch.up(&stack, &["--attach", "fuse", "--read-only", "--name", "failing"]);
    let device = volume.device().display().to_string();
    assert!(Path::new(&device).exists(), "{device}");
    let scan = rescue(scratch, &["scan", "home", &device, "m1.img", "m2.img"]).ok();
    assert!(scan.out.contains("could not be read"), "{scan}");
    volume.down();
    case.untouched();
}
