//! `verify`: a real ext4 on a small array, as it is, with a stale member, and with members in a wrong order.

use serde_json::Value;

use crate::common::{MIB, Output, Scratch, Tool, skip_without};

const MEMBER: u64 = 24 * MIB;
const NAMES: [&str; 4] = ["a.img", "b.img", "c.img", "d.img"];

/// A raid5 of md with an ext4 of the folder `root` in it, which is younger than the array.
fn array(scratch: &Scratch) {
    NAMES.iter().for_each(|name| drop(scratch.sparse(name, MEMBER)));
    let words = ["create", "home", "--level", "raid5", "--chunk", "64K"];
    scratch.run(&[&words[..], &NAMES[..]].concat()).ok();
    fill_array(scratch);
}

/// Writes an ext4 of the folder `root` to the array.
fn fill_array(scratch: &Scratch) {
    scratch.sparse("data.img", 48 * MIB);
    let (root, image) = (scratch.join("root"), scratch.join("data.img"));
    let words = ["-q", "-F", "-b", "4096", "-O", "^has_journal", "-d"];
    Tool::new("mkfs.ext4").args(words).arg(&root).arg(&image).run().ok();
    let volume = scratch.serve(&format!("md({})", NAMES.join(", ")), &[]);
    Tool::new("nbdcopy").arg("--flush").arg(&image).arg(volume.uri()).run().ok();
}

/// Files with checksums of their own, and others.
fn fill(scratch: &Scratch, seed: u64) {
    let root = scratch.join("root");
    std::fs::create_dir_all(&root).expect("a folder");
    for number in 0..60 {
        let name = format!("root/{number}.bin");
        scratch.file(&name, 300_000, seed + number);
        if number % 2 == 0 {
            Tool::new("gzip").arg(scratch.join(&name)).run().ok();
        }
    }
}

/// Scans the members, and returns the start of the data on each.
fn scanned(scratch: &Scratch) -> u64 {
    scratch.run(&[&["rescue", "scan", "home"][..], &NAMES[..]].concat()).ok();
    let examined = scratch.run(&["examine", "a.img", "--json"]).ok().json();
    let text = examined.to_string();
    let (_, rest) = text.split_once("\"data_offset_bytes\":").expect("an offset");
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().expect("a number")
}

#[track_caller]
fn verify(scratch: &Scratch, status: i32) -> (Output, Value) {
    let verify = scratch.run(&["rescue", "verify", "home", "--json"]);
    assert_eq!(verify.code(), status, "{verify}");
    let json = verify.json();
    (verify, json)
}

#[test]
fn a_sound_array_is_right_and_that_is_noted() {
    skip_without!("mkfs.ext4", "e2fsck", "nbdcopy", "unshare");
    let scratch = Scratch::new();
    fill(&scratch, 1);
    array(&scratch);
    let before: Vec<Vec<u8>> = NAMES.iter().map(|name| scratch.read(name)).collect();
    scanned(&scratch);
    let (output, json) = verify(&scratch, 0);
    assert_eq!(json["verdict"], "right", "{output}");
    assert_eq!(
        (&json["samples"]["good"], &json["samples"]["bad"]),
        (&30.into(), &0.into()),
        "{output}"
    );
    assert_eq!(json["compared"]["differing"], 0, "{output}");
    assert_eq!(json["checker"]["outcome"], "clean", "{output}");
    let screen = scratch.run(&["rescue", "verify", "home"]).ok();
    for part in ["Parity:  0% |====", "Checker: e2fsck finds no errors.", "Verdict: right."] {
        assert!(screen.out.contains(part), "{part}: {screen}");
    }
    let noted = std::fs::read(scratch.join("home.rescue").join("verified.json")).expect("noted");
    let noted: Value = serde_json::from_slice(&noted).expect("JSON");
    assert_eq!(noted[0]["stack"], json["stack"]);
    assert_eq!(noted.as_array().map(Vec::len), Some(1), "one result of a stack");
    let left = std::fs::read_dir(scratch.join("home.rescue")).expect("a case");
    let left: Vec<_> = left.map(|entry| entry.expect("an entry").file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().contains("check-")), "{left:?}");
    for (name, before) in NAMES.iter().zip(&before) {
        assert!(scratch.read(name) == *before, "{name} was written");
    }
}

#[test]
fn damage_of_one_member_is_named_with_its_files() {
    skip_without!("mkfs.ext4", "e2fsck", "nbdcopy", "unshare");
    let scratch = Scratch::new();
    fill(&scratch, 1);
    array(&scratch);
    let start = scanned(&scratch);
    // The contents of files lie behind the tables of inodes.
    for at in (start + 2 * MIB..start + 6 * MIB).step_by(64 << 10) {
        scratch.patch("c.img", at + 4096, &[0xa5; 512]);
    }
    let (output, json) = verify(&scratch, 4);
    assert_eq!(json["samples"]["suspect"], "c.img", "{output}");
    assert_eq!(json["checker"]["outcome"], "clean", "{output}");
    assert!(json["compared"]["differing"].as_u64().is_some_and(|count| count > 0), "{output}");
    let first = &json["samples"]["files"][0];
    assert!(first["name"].as_str().is_some_and(|name| name.ends_with(".bin.gz")), "{output}");
    assert!(first["ranges"].as_array().is_some_and(|ranges| !ranges.is_empty()), "{output}");
}

#[test]
fn a_stale_member_whose_superblock_was_made_current_is_not_right() {
    skip_without!("mkfs.ext4", "e2fsck", "nbdcopy", "unshare");
    let scratch = Scratch::new();
    fill(&scratch, 1);
    array(&scratch);
    let start = usize::try_from(scanned(&scratch)).expect("small");
    let old = scratch.read("c.img");
    std::fs::remove_dir_all(scratch.join("root")).expect("a folder");
    fill(&scratch, 1000);
    fill_array(&scratch);
    scratch.patch("c.img", start as u64, &old[start..]);
    std::fs::remove_dir_all(scratch.join("home.rescue")).expect("a case");
    scanned(&scratch);
    let (output, json) = verify(&scratch, 4);
    assert!(json["verdict"] == "doubtful" || json["verdict"] == "wrong", "{output}");
    let differing = json["compared"]["differing"].as_u64().expect("a count");
    assert!(differing > json["compared"]["agreeing"].as_u64().expect("a count") / 4, "{output}");
}

#[test]
fn a_wrong_order_leads_to_solve_and_what_is_solved_is_right() {
    skip_without!("mkfs.ext4", "e2fsck", "nbdcopy", "unshare");
    let scratch = Scratch::new();
    fill(&scratch, 1);
    // Many inodes, which say where they belong.
    for number in 0..3000 {
        let path = scratch.join(&format!("root/{number}.txt"));
        std::fs::write(path, format!("{number}\n")).expect("a file");
    }
    array(&scratch);
    let mut words = vec!["create", "again", "--level", "raid5", "--chunk", "64K"];
    NAMES.iter().for_each(|name| words.extend(["--force", name]));
    words.extend(["d.img", "a.img", "b.img", "c.img"]);
    scratch.run(&words).ok();
    scanned(&scratch);
    let screen = scratch.run(&["rescue", "verify", "home"]);
    assert_eq!(screen.code(), 4, "{screen}");
    assert!(screen.out.contains("Next: braid rescue solve home"), "{screen}");
    assert!(screen.out.contains("Verdict: wrong."), "{screen}");
    let solved = scratch.run(&["rescue", "solve", "home"]);
    let verified = scratch.run(&["rescue", "verify", "home", "--hypothesis", "1", "--json"]);
    assert_eq!(verified.json()["verdict"], "right", "{verified}\n{solved}");
    assert!(verified.json()["compared"]["agreeing"].as_u64() > Some(0), "{verified}");
}
