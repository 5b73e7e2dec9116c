//! `create`, `examine`, `wipe`, `undo` and `superblocks` with remote members: as for files, and refused as for files.

use crate::REFUSED;
use crate::common::{MIB, Scratch, skip_without};
use crate::far::{Far, member, socket};

#[test]
fn a_remote_member_is_created_examined_wiped_and_put_back() {
    skip_without!("nbdkit", "mkfs.ext4");
    let scratch = Scratch::new();
    let socket = socket(&scratch);
    scratch.sparse("a.img", 64 * MIB);
    let disk = scratch.sparse("far.img", 64 * MIB);
    let disk = disk.to_str().expect("a plain name");
    let far = member(&socket, "");
    // Larger blocks than a superblock: the rest of a block is kept.
    let policy = ["--filter=blocksize-policy", "file", disk, "blocksize-minimum=4096"];
    let policy = [&policy[..], &["blocksize-error-policy=error"]].concat();
    let create = ["create", "home", "--level", "1", "--bitmap", "internal", "a.img", &far];

    crate::common::Tool::new("mkfs.ext4").args(["-q", "-F", disk]).run().ok();
    let before = scratch.read("far.img");
    let server = Far::nbdkit(&policy, &socket);
    scratch.run(&create).fails(REFUSED, &["is refused: it contains", "ext4", "--force"]);
    assert!(scratch.read("far.img") == before, "a refusal changes nothing");
    let twice = ["create", "home", "--level", "1", &far, &far, "--force", &far, "--plan"];
    scratch.run(&twice).fails(2, &["twice"]);
    scratch.run(&[&create[..], &["--force", &far, "--plan"]].concat()).ok();
    assert!(scratch.read("far.img") == before, "a plan changes nothing");

    scratch.run(&[&create[..], &["--force", &far]].concat()).ok();
    let examined = scratch.run(&["examine", &far]).ok().out;
    assert!(examined.contains("Raid Level : raid1"), "{examined}");
    let saved = scratch.run(&["superblocks", "save", "home"]).ok().out;
    assert!(saved.contains("2 here"), "{saved}");

    let wiped = scratch.run(&["wipe", &far]).ok().out;
    assert!(wiped.contains("was removed"), "{wiped}");
    scratch.run(&["examine", &far]).fails(1, &["has no md superblock"]);
    scratch.run(&["undo", "2"]).ok();
    scratch.run(&["examine", &far]).ok();
    scratch.run(&["undo", "home"]).ok();
    drop(server);
    assert!(scratch.read("far.img") == before, "everything is as it was");
}

#[test]
fn two_names_of_one_export_are_not_two_members() {
    skip_without!("nbdkit");
    let scratch = Scratch::new();
    let socket = socket(&scratch);
    let disk = scratch.sparse("far.img", 64 * MIB);
    let _server = Far::nbdkit(&["file", disk.to_str().expect("a plain name")], &socket);
    let (one, other) =
        (member(&socket, ""), format!("nbd(nbd+unix:///x?socket={})", socket.display()));
    let create = ["create", "home", "--level", "1", &one, &other];
    scratch.run(&create).fails(REFUSED, &["another member is the same export", "was put back"]);
    assert!(scratch.read("far.img").iter().all(|byte| *byte == 0), "nothing is left");
    assert!(!scratch.config_file("home").exists(), "no volume is known");
}

#[test]
fn a_server_that_cannot_be_written_is_no_member() {
    skip_without!("nbdkit");
    let scratch = Scratch::new();
    let socket = socket(&scratch);
    scratch.sparse("a.img", 64 * MIB);
    let far = member(&socket, "");
    let create = ["create", "home", "--level", "1", "a.img", &far];
    scratch.run(&create).fails(1, &["cannot be used", "cannot connect"]);
    let _server = Far::nbdkit(&["--readonly", "memory", "64M"], &socket);
    let output = scratch.run(&create);
    assert!(!output.status.success() && output.err.contains("is read-only"), "{output}");
    assert!(scratch.read("a.img").iter().all(|byte| *byte == 0), "nothing was written");
}
