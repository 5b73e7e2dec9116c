//! Members without any superblock: `solve` finds how they belong together, and the file system is copied out.

use std::path::Path;

use braid_files::ReadAt;
use braid_files::sparse::Sparse;
use serde_json::Value;

use crate::common::{MIB, Output, Scratch, Tool, skip_without};

/// Bytes of a member, whose data begin at 1 MiB.
const MEMBER: u64 = 24 * MIB;
pub(crate) const NAMES: [&str; 4] = ["a.img", "b.img", "c.img", "d.img"];

/// An ext4 with 3,000 small files, whose inodes say where they belong.
pub(crate) fn filled(scratch: &Scratch, size: u64) {
    filled_with(scratch, size, "^has_journal");
}

/// The same with other features.
pub(crate) fn filled_with(scratch: &Scratch, size: u64, features: &str) {
    let root = scratch.join("root");
    for folder in 0..30 {
        let folder = root.join(format!("folder {folder}"));
        std::fs::create_dir_all(&folder).expect("a folder");
        for file in 0..100 {
            let text = format!("{} {file}\n", folder.display()).repeat(1 + file % 7 * 20);
            std::fs::write(folder.join(format!("file {file}")), text).expect("a file");
        }
    }
    scratch.sparse("data.img", size);
    let image = scratch.join("data.img");
    let words = ["-q", "-F", "-b", "4096", "-O", features, "-d"];
    Tool::new("mkfs.ext4").args(words).arg(&root).arg(&image).run().ok();
}

/// Writes the file system into a raid5 of members in this order, which get no superblocks.
pub(crate) fn striped(scratch: &Scratch, order: &[&str]) {
    striped_as(scratch, "raid5", order);
}

/// The same for another level.
pub(crate) fn striped_as(scratch: &Scratch, level: &str, order: &[&str]) {
    let members = order.iter().map(|name| format!("file({name}, offset=1M)"));
    let stack = format!("{level}(chunk=64K, {})", members.collect::<Vec<_>>().join(", "));
    order.iter().for_each(|name| drop(scratch.sparse(name, MEMBER)));
    let volume = scratch.serve(&stack, &[]);
    let data = scratch.join("data.img");
    Tool::new("nbdcopy").arg("--flush").arg(&data).arg(volume.uri()).run().ok();
}

#[track_caller]
pub(crate) fn solve(scratch: &Scratch, members: &[&str], more: &[&str]) -> Output {
    scratch.run(&[&["rescue", "scan", "lost"], members].concat()).ok();
    scratch.run(&[&["rescue", "solve", "lost"], more].concat())
}

#[track_caller]
fn copied(scratch: &Scratch) {
    // The decided hypothesis is the answer of the case.
    let words = ["rescue", "copy", "lost", "--to", "out.img"];
    let copied = scratch.run(&words);
    assert!(copied.status.code().is_some_and(|status| [0, 4].contains(&status)), "{copied}");
    let (data, mut out) = (scratch.read("data.img"), scratch.read("out.img"));
    out.truncate(data.len());
    assert!(out == data, "another content");
}

#[test]
fn members_in_any_order_are_solved_and_copied() {
    skip_without!("mkfs.ext4", "nbdcopy");
    let scratch = Scratch::new();
    filled(&scratch, 60 * MIB);
    striped(&scratch, &["c.img", "a.img", "d.img", "b.img"]);
    let before: Vec<Vec<u8>> = NAMES.iter().map(|name| scratch.read(name)).collect();
    let solved = solve(&scratch, &NAMES, &[]).ok();
    assert!(
        solved.out.contains("Decided: raid5 left-symmetric, 4 members, chunk 64 KiB"),
        "{solved}"
    );
    let order: Vec<usize> = ["c.img", "a.img", "d.img", "b.img"]
        .iter()
        .filter_map(|name| solved.out.find(name))
        .collect();
    assert!(order.len() == 4 && order.is_sorted(), "{solved}");
    copied(&scratch);

    // One is missing, and its role is found by the others.
    std::fs::remove_file(scratch.join("d.img")).expect("a member");
    std::fs::remove_dir_all(scratch.join("lost.rescue")).expect("a case");
    std::fs::remove_file(scratch.join("out.img")).expect("a copy");
    solve(&scratch, &["b.img", "c.img", "a.img"], &[]).ok();
    copied(&scratch);
    for (name, before) in NAMES.iter().zip(&before).filter(|(name, _)| **name != "d.img") {
        assert!(scratch.read(name) == *before, "{name} was written");
    }
}

#[test]
fn a_hypothesis_names_members_of_its_case_only() {
    skip_without!("mkfs.ext4", "nbdcopy");
    let scratch = Scratch::new();
    filled(&scratch, 60 * MIB);
    striped(&scratch, &NAMES);
    solve(&scratch, &NAMES, &["--level", "raid5"]).ok();
    let text = "a hypothesis names";
    let path = scratch.join("lost.rescue").join("hypotheses.json");
    let hypotheses = std::fs::read_to_string(&path).expect("the hypotheses");
    let other = scratch.file("other.img", MEMBER, 9);
    let forged =
        hypotheses.replace(&*scratch.join("a.img").to_string_lossy(), &other.to_string_lossy());
    std::fs::write(&path, forged).expect("written");
    scratch.run(&["rescue", "open", "lost", "--hypothesis", "1"]).fails(3, &[text, "other.img"]);
    std::fs::write(&path, "[{").expect("written");
    scratch
        .run(&["rescue", "open", "lost", "--hypothesis", "1"])
        .fails(1, &["damaged", "rescue solve"]);
    std::fs::write(&path, hypotheses).expect("written");
    scratch.run(&["rescue", "open", "lost", "--hypothesis", "99"]).fails(1, &["no hypothesis 99"]);
}

#[test]
fn zeros_are_not_decided() {
    let scratch = Scratch::new();
    NAMES.iter().for_each(|name| drop(scratch.sparse(name, MEMBER)));
    let solved = solve(&scratch, &NAMES, &[]);
    assert_eq!(solved.status.code(), Some(4), "{solved}");
    assert!(solved.out.contains("Not decided"), "{solved}");
    let open = scratch.run(&["rescue", "open", "lost", "--hypothesis", "1"]);
    open.fails(1, &["no hypothesis 1: the case has 0"]);
}

/// Writes the members of an array with these names, and returns its manifest: the kernel made it, a file system on it, and
/// then the array anew with its members in another order (`scripts/lost-golden.py`).
pub(crate) fn recreated(scratch: &Scratch, names: [&str; 4]) -> Value {
    let lost =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/md/lost/raid5-4-recreated");
    for (index, name) in names.into_iter().enumerate() {
        let packed = std::fs::read(lost.join(format!("m{index}.packed"))).expect("a member");
        let member = Sparse::unpack(&packed);
        let mut bytes = vec![0; usize::try_from(member.size()).expect("small")];
        member.read_at(0, &mut bytes).expect("an image has all its bytes");
        std::fs::write(scratch.join(name), bytes).expect("a member");
    }
    let manifest = std::fs::read(lost.join("manifest.json")).expect("the manifest");
    serde_json::from_slice(&manifest).expect("JSON")
}

#[test]
fn an_array_that_the_kernel_made_anew_in_another_order_is_solved() {
    let scratch = Scratch::new();
    let names = ["m0.img", "m1.img", "m2.img", "m3.img"];
    let manifest = recreated(&scratch, names);
    let before: Vec<Vec<u8>> = names.iter().map(|name| scratch.read(name)).collect();
    let solved = solve(&scratch, &names, &["--json"]).ok().json();
    assert_eq!(solved["answer"], "decided", "{solved}");
    let order: Vec<Option<usize>> = list(&manifest["members_by_role"])
        .into_iter()
        .map(|member| solved["hypotheses"][0]["stack"].as_str()?.find(&format!("/m{member}.img")))
        .collect();
    assert!(order.iter().all(Option::is_some) && order.is_sorted(), "{solved}");
    let copy = ["rescue", "copy", "lost", "--hypothesis", "1", "--to", "out.img"];
    scratch.run(&copy).ok();
    // All of the members was copied, which is more than the array had.
    let length = manifest["content_bytes"].as_u64().expect("a length");
    let out = std::fs::File::options().write(true).open(scratch.join("out.img")).expect("a copy");
    out.set_len(length).expect("it can be cut");
    let sum = Tool::new("sha256sum").arg(scratch.join("out.img")).run().ok().out;
    let expected = manifest["content_sha256"].as_str().expect("a sum");
    assert!(sum.starts_with(expected), "{sum}");
    // Its superblocks look sound, and `open` doubts them.
    let open = scratch.run(&["rescue", "open", "lost"]);
    assert_eq!(open.status.code(), Some(4), "{open}");
    assert!(open.out.contains("these superblocks are not those of the data"), "{open}");
    for (name, before) in names.iter().zip(&before) {
        assert!(scratch.read(name) == *before, "{name} was written");
    }
}

fn list(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}
