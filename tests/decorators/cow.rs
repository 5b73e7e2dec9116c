//! `cow(…)`: changes go to a store, and the device behind it is never written.

use std::os::unix::fs::MetadataExt;

use super::common::{KIB, MIB, Scratch, Tool, assert_same_bytes, skip_without};
use super::{MEMBER, array, cat, members, write_map};

#[test]
fn changes_go_to_the_store_and_are_there_again() {
    skip_without!("nbdcopy");
    let scratch = Scratch::new();
    let content = array(&scratch, "raid5(chunk=4K, ", 3);
    let before = members(&scratch, 3);
    // A hole that parity bears, and a member that is missing where there is none.
    write_map(&scratch, "m1.map", MEMBER, &[(64 * KIB, 4096)]);
    let stack = "cow(raid5(chunk=4K, ./m0, holes(./m1, map=m1.map), ./m2), store=changes.cow)";
    let volume = scratch.serve(stack, &[]);
    let mut client = volume.client();
    assert!(!client.is_read_only() && client.size() == content.len() as u64);
    assert_eq!(client.read(0, 8192).unwrap(), content[..8192]);
    let mut changed = content.clone();
    // A part of a block, whole blocks, the end.
    let end = content.len() - 512;
    for (at, length, byte) in [(1536, 512, 1), (40 << 10, 64 << 10, 2), (end, 512, 3)] {
        changed[at..at + length].fill(byte);
        client.write(at as u64, &changed[at..at + length], byte == 2).unwrap();
    }
    client.flush().unwrap();
    drop(client);
    scratch.file("expected", 0, 0);
    std::fs::write(scratch.join("expected"), &changed).unwrap();
    Tool::new("nbdcopy").arg(volume.uri()).arg(scratch.join("read")).run().ok();
    assert_same_bytes(&scratch.join("read"), &scratch.join("expected"));
    assert!(volume.stop().success());

    assert!(cat(&scratch, stack) == changed, "by cat, which writes nothing");
    let volume = scratch.serve(stack, &["--read-only"]);
    assert!(volume.client().is_read_only());
    assert_eq!(volume.client().read(1536, 512).unwrap(), [1; 512]);
    assert!(volume.stop().success());
    let metadata = std::fs::metadata(scratch.join("changes.cow")).unwrap();
    assert!(metadata.blocks() * 512 < 128 * KIB, "only changes take room: {metadata:?}");
    assert_eq!(metadata.mode() & 0o777, 0o600, "it holds data of the device");
    assert!(members(&scratch, 3) == before, "the members are as they were");
}

#[test]
fn a_copy_of_the_whole_device_goes_to_the_store() {
    skip_without!("nbdcopy");
    let scratch = Scratch::new();
    let origin = scratch.file("a.img", MIB, 1);
    let new = scratch.file("new", MIB, 2);
    let before = scratch.read("a.img");
    let volume = scratch.serve("cow(a.img, store=a.cow)", &[]);
    Tool::new("nbdcopy").arg("--flush").arg(&new).arg(volume.uri()).run().ok();
    Tool::new("nbdcopy").arg(volume.uri()).arg(scratch.join("back")).run().ok();
    assert_same_bytes(&scratch.join("back"), &new);
    assert!(volume.stop().success());
    assert!(scratch.read("a.img") == before, "{} is as it was", origin.display());
}

#[test]
fn what_was_flushed_is_in_the_store_after_sigkill() {
    let scratch = Scratch::new();
    scratch.file("a.img", MIB, 1);
    let mut volume = scratch.serve("cow(a.img, store=a.cow)", &[]);
    let mut client = volume.client();
    client.write(100 * KIB, &[7; 4096], false).unwrap();
    client.flush().unwrap();
    client.write(200 * KIB, &[8; 512], true).unwrap();
    volume.signal(super::Signal::KILL);
    volume.wait();
    let bytes = cat(&scratch, "cow(a.img, store=a.cow)");
    assert_eq!(bytes[100 << 10..][..4096], [7; 4096]);
    assert_eq!(bytes[200 << 10..][..512], [8; 512]);
}

#[test]
fn files_that_are_no_store_of_the_device_are_refused_and_unchanged() {
    let scratch = Scratch::new();
    scratch.file("a.img", MIB, 1);
    scratch.file("other.img", 2 * MIB, 3);
    let serve = |stack: &str| scratch.braid().args(["serve", "--nbd", "unix:s", stack]).run();
    let refused = |stack: &str, parts: &[&str]| serve(stack).fails(3, parts);

    let foreign = ["other.img cannot be the store: it is something else, no store of cow(…)"];
    refused("cow(a.img, store=other.img)", &foreign);
    refused("cow(a.img, store=a.img)", &["a.img cannot be the store: it is something else"]);
    std::fs::write(scratch.join("note"), "a note").unwrap();
    refused(
        "cow(a.img, store=note)",
        &["note cannot be the store", "next: another path as store="],
    );
    assert_eq!(scratch.read("note"), b"a note");
    refused("cow(a.img, store=/dev/null)", &["/dev/null cannot be the store"]);
    // Reading makes no store.
    let none = [
        "the store ",
        "a.cow does not exist",
        "next: the path of the store; without --read-only it is made",
    ];
    scratch.run(&["cat", "cow(a.img, store=a.cow)"]).fails(1, &none);
    assert!(!scratch.join("a.cow").exists());

    let volume = scratch.serve("cow(a.img, store=a.cow)", &[]);
    let locked = ["a.cow is in use: another program has it locked"];
    serve("cow(a.img, store=a.cow)").fails(1, &locked);
    // The origin is only read, so it may have several stores.
    let beside = scratch.serve("cow(a.img, store=b.cow)", &[]);
    assert!(beside.stop().success() && volume.stop().success());

    let other = ["keeps changes of a device of 1048576 bytes, and this one has 2097152"];
    refused("cow(other.img, store=a.cow)", &other);
    scratch.patch("a.cow", 24, &[1]);
    refused("cow(a.img, store=a.cow)", &["a.cow cannot be the store: its header is damaged"]);
    scratch.resize("b.cow", 64 * KIB);
    refused("cow(a.img, store=b.cow)", &["it has 65536 bytes, and its data go beyond"]);
    assert!(scratch.read("other.img") == super::common::pattern(3, 0, 2 * MIB));

    // What is written as a member is not read as an origin.
    std::fs::hard_link(scratch.join("a.img"), scratch.join("hard.img")).unwrap();
    let same = ["hard.img is refused: it is the same as"];
    refused("linear(a.img, cow(hard.img, store=c.cow))", &same);
}

#[test]
fn an_array_with_superblocks_below_a_store_is_not_touched() {
    let scratch = Scratch::new();
    ["a.img", "b.img", "c.img"].iter().for_each(|name| drop(scratch.sparse(name, 8 * MIB)));
    scratch.run(&["create", "m", "--level", "1", "a.img", "b.img"]).ok();
    let before = [scratch.read("a.img"), scratch.read("b.img")];
    let options = ["--name", "v", "--attach", "none"];
    let volume = scratch.up("cow(md(a.img, b.img), store=m.cow)", &options);
    volume.client().write(0, &[5; 4096], true).unwrap();
    let status = volume.status();
    assert_eq!(status["arrays"][0]["state"], "readonly", "{status:#}");
    let store = scratch.join("m.cow").display().to_string();
    let members = status["members"].as_array().expect("members");
    assert!(members.iter().any(|one| one["member"] == store.as_str()), "{status:#}");
    scratch.run(&["member", "add", "v", "c.img"]).fails(3, &["is read-only"]);
    volume.down();
    let volume = scratch.up("v", &["--attach", "none"]);
    assert_eq!(volume.client().read(0, 4096).unwrap(), [5; 4096]);
    volume.down();
    assert!([scratch.read("a.img"), scratch.read("b.img")] == before, "no byte was changed");
}
