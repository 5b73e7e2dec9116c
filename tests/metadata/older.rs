//! Superblocks of several versions on one member: an array that is made over another one leaves
//! nothing of it, and where two are found none is chosen.

use braid_md::detect;

use crate::common::{Scratch, wait_until};
use crate::{FAILED, REFUSED, SIZE, members, refuses};

const VERSIONS: [&str; 4] = ["0.90", "1.0", "1.1", "1.2"];
const BOTH: [&str; 2] = ["a.img", "b.img"];

fn create(scratch: &Scratch, name: &str, version: &str, options: &[&str]) {
    let create = ["create", name, "--level", "raid1", "--assume-clean", "-e", version];
    scratch.run(&[&create[..], options, &["--"], &BOTH].concat()).ok();
}

/// The versions of the superblocks on a member.
fn versions(scratch: &Scratch, name: &str) -> Vec<String> {
    let bytes = scratch.read(name);
    let found = detect::find(bytes.len() as u64, &mut |offset, buf| {
        buf.copy_from_slice(&bytes[offset as usize..offset as usize + buf.len()]);
        Ok(())
    });
    found.expect("memory can be read").iter().map(|found| found.version.to_string()).collect()
}

/// Copies the superblock of `version` at `offset` of the file `from` into a member.
fn put_superblock(scratch: &Scratch, from: &[u8], name: &str, version: &str) {
    let version: braid_md::Version = version.parse().expect("a version");
    let offset = version.superblock_offset(SIZE).expect("room for it");
    scratch.patch(name, offset, &from[offset as usize..offset as usize + 4096]);
}

#[test]
fn an_array_over_another_one_leaves_one_superblock_and_undo_puts_back_the_other() {
    for older in VERSIONS {
        for newer in VERSIONS {
            let scratch = Scratch::new();
            members(&scratch, &BOTH);
            create(&scratch, "old", older, &[]);
            let before = BOTH.map(|name| scratch.read(name));
            let forced = ["--force", "a.img", "--force", "b.img"];
            create(&scratch, "new", newer, &forced);
            for name in BOTH {
                assert_eq!(versions(&scratch, name), [newer], "{newer} over {older}");
            }
            let volume = scratch.up("new", &["--attach", "none"]);
            assert_eq!(volume.status()["arrays"][0]["metadata"], newer);
            volume.down();
            scratch.run(&["undo", "new", "--force"]).ok();
            assert!(BOTH.map(|name| scratch.read(name)) == before, "{newer} over {older}");
            scratch.up("old", &["--attach", "none", "--read-only"]).down();
        }
    }
}

#[test]
fn two_superblocks_on_a_member_are_refused() {
    for (older, newer) in [("0.90", "1.2"), ("1.0", "1.2"), ("1.1", "1.2"), ("0.90", "1.0")] {
        let scratch = Scratch::new();
        members(&scratch, &BOTH);
        create(&scratch, "old", older, &[]);
        let old = BOTH.map(|name| scratch.read(name));
        scratch.run(&["undo"]).ok();
        create(&scratch, "new", newer, &[]);
        for (name, old) in BOTH.iter().zip(&old) {
            put_superblock(&scratch, old, name, older);
        }
        let path = scratch.join("a.img");
        let wipe = format!("braid wipe --metadata VERSION {}", path.display());
        let versions = [older, newer].map(|version| format!("version {version} at byte"));
        let parts = ["carries 2 valid superblocks", &versions[0], &versions[1], &wipe];
        scratch.run(&["up", "new", "--attach", "none"]).fails(REFUSED, &parts);
        refuses(&scratch, &["assemble", "a.img", "b.img"], FAILED, &parts);
        refuses(&scratch, &["cat", "md(a.img, b.img)"], FAILED, &parts);
        // Whichever is taken away, the other one is what the member is of.
        scratch.run(&["wipe", "-e", older, "a.img", "b.img"]).ok();
        let volume = scratch.up("new", &["--attach", "none", "--read-only"]);
        assert_eq!(volume.status()["arrays"][0]["metadata"], newer);
        volume.down();
        scratch.run(&["undo"]).ok();
        scratch.run(&["wipe", "-e", newer, "a.img", "b.img"]).ok();
        scratch.run(&["assemble", "a.img", "b.img", "--as", "again"]).ok();
        let volume = scratch.up("again", &["--attach", "none", "--read-only"]);
        assert_eq!(volume.status()["arrays"][0]["metadata"], older);
        volume.down();
    }
}

#[test]
fn wiping_one_version_of_several_members() {
    let scratch = Scratch::new();
    members(&scratch, &["a.img", "b.img", "c.img"]);
    create(&scratch, "one", "1.1", &[]);
    let parts = ["a.img has no md superblock of version 1.2"];
    refuses(&scratch, &["wipe", "-e", "1.2", "a.img", "b.img"], FAILED, &parts);
    // One without any is passed over where others have theirs.
    let wiped = scratch.run(&["wipe", "c.img", "a.img"]).ok();
    assert!(wiped.err.contains("passed over: ") && wiped.err.contains("c.img has no"), "{wiped}");
    assert_eq!(versions(&scratch, "a.img"), [""; 0]);
}

#[test]
fn a_device_that_becomes_a_member_keeps_no_older_superblock() {
    for how in ["add", "replace"] {
        let scratch = Scratch::new();
        members(&scratch, &BOTH);
        create(&scratch, "old", "0.90", &[]);
        let used = scratch.read("a.img");
        scratch.run(&["undo"]).ok();
        create(&scratch, "new", "1.2", &[]);
        std::fs::write(scratch.join("c.img"), &used).expect("a member");
        let volume = scratch.up("new", &["--attach", "none"]);
        let args = match how {
            "add" => vec!["member", "add", "new", "c.img", "--force"],
            _ => vec!["member", "replace", "new", "b.img", "c.img", "--force"],
        };
        scratch.run(&args).ok();
        let is_known = || {
            let status = volume.status();
            let members = status["arrays"][0]["members"].to_string();
            status["arrays"][0]["job"].is_null() && members.contains("c.img")
        };
        wait_until("the new member", is_known);
        volume.down();
        assert_eq!(versions(&scratch, "c.img"), ["1.2"], "{how}");
    }
}
