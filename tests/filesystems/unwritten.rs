//! A file system that was not unmounted, on an array without one of its members, in front of which is a store: the
//! mount replays the journal into the store, and the members keep every byte.

use common::{Mounted, Stopped};

use super::*;
use crate::tree::Tree;

const ARRAY: &str = "raid5(chunk=64K, ./m0, ./m1, ./m2)";

#[test]
fn a_journal_is_replayed_into_a_store() {
    if !can_attach() || !EXT4.is_installed() {
        return;
    }
    let scratch = Scratch::new();
    ["m0", "m1", "m2"].iter().for_each(|name| drop(scratch.sparse(name, EXT4.size / 2)));
    let (first, second) = (Tree::new(1, 40), Tree::new(2, 40));
    let point = scratch.join("point");

    let volume = scratch.up(ARRAY, &["--name", "v", "--attach", "fuse"]);
    EXT4.make(volume.device());
    let mounted = Mounted::device(volume.device(), &point);
    first.write(&point, true);
    // What the members hold at this moment is what a crash leaves.
    let pid = u32::try_from(volume.status()["pid"].as_u64().expect("a process")).expect("a pid");
    let stopped = Stopped::stop(pid);
    let before = ["m1", "m2"].map(|name| {
        let crashed = scratch.read(name);
        std::fs::write(scratch.join(&format!("crashed-{name}")), &crashed).expect("a copy");
        crashed
    });
    drop(stopped);
    mounted.unmount();
    volume.down();

    let crashed = "raid5(chunk=64K, missing, ./crashed-m1, ./crashed-m2)";
    scratch.run(&["cat", crashed, "--offset", "1024", "--length", "512"]).ok();
    let stack = format!("cow({crashed}, store=changes.cow)");
    let volume = scratch.up(&stack, &["--name", "w", "--attach", "fuse"]);
    let features = Tool::new("dumpe2fs").arg("-h").arg(volume.device()).run().ok().out;
    assert!(features.contains("needs_recovery"), "the journal has something to replay: {features}");
    let mounted = Mounted::device(volume.device(), &point);
    first.check(&point);
    second.write(&point, true);
    mounted.unmount();
    EXT4.check(volume.device());
    volume.down();

    // What was written is there at the next start, and by `cat`; the members are as they were.
    let volume = scratch.up("w", &[]);
    let mounted = Mounted::device(volume.device(), &point);
    second.check(&point);
    mounted.unmount();
    let device = std::fs::read(volume.device()).expect("a device can be read");
    volume.down();
    let braid = env!("CARGO_BIN_EXE_braid");
    let cat = Tool::new("sh").args(["-c", "\"$0\" cat \"$1\" >copied", braid, &stack]);
    cat.folder(scratch.path()).run().ok();
    assert!(scratch.read("copied") == device, "the same content by cat");
    let after = ["crashed-m1", "crashed-m2"].map(|name| scratch.read(name));
    assert!(after == before, "no byte of a member was changed");
}
