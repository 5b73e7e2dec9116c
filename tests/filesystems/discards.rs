//! Space that a file system gives back: it comes back from the files under an array, and parity fits what is left.
//!
//! ```text
//!   mkfs ─▶ some MiB   a file of 64 MiB ─▶ more   deleted, fstrim ─▶ some MiB again, scrub finds nothing
//! ```

use std::os::unix::fs::MetadataExt;

use crate::common::{KIB, MIB, Mounted, Scratch, Tool, pattern, skip_without};
use crate::{EXT4, can_attach};

const MEMBERS: [&str; 4] = ["a.img", "b.img", "c.img", "d.img"];

/// Bytes of the members that are allocated.
fn allocated(scratch: &Scratch) -> u64 {
    let of = |name| std::fs::metadata(scratch.join(name)).expect("a member").blocks() * 512;
    MEMBERS.into_iter().map(of).sum()
}

#[test]
fn space_under_an_array_is_given_back() {
    skip_without!("fstrim");
    if !can_attach() || !EXT4.is_installed() {
        return;
    }
    for (level, more) in [
        ("raid1", &[][..]),
        ("raid5", &["--consistency", "resync"][..]),
        // With the logs that arrays with parity have if nothing else is said.
        ("raid5", &[][..]),
        ("raid6", &[][..]),
    ] {
        let scratch = Scratch::new();
        MEMBERS.iter().for_each(|name| drop(scratch.sparse(name, 96 * MIB)));
        let create = ["create", "home", "--level", level, "--assume-clean"];
        scratch.run(&[&create[..], more, &MEMBERS[..]].concat()).ok();
        let volume = scratch.up("home", &["--attach", "fuse"]);
        Tool::new("mkfs.ext4").args(["-q", "-F", "-b", "4096"]).arg(volume.device()).run().ok();
        let mounted = Mounted::device(volume.device(), &scratch.join("m"));
        let kept = pattern(1, 0, 900 * KIB);
        std::fs::write(scratch.join("m/kept"), &kept).expect("a file");
        let empty = allocated(&scratch);
        std::fs::write(scratch.join("m/f"), pattern(2, 0, 64 * MIB)).expect("a file");
        Tool::new("sync").arg("-f").arg(mounted.point()).run().ok();
        let full = allocated(&scratch);
        assert!(full > empty + 64 * MIB, "{level}: {full} bytes, {empty} when it was empty");
        std::fs::remove_file(scratch.join("m/f")).expect("it is there");
        Tool::new("sync").arg("-f").arg(mounted.point()).run().ok();
        Tool::new("fstrim").arg(mounted.point()).run().ok();
        let trimmed = allocated(&scratch);
        println!("{level} {more:?}: {empty} bytes, {full} with the file, {trimmed} without");
        // Stripes that the file shares with others stay.
        assert!(trimmed < empty + 16 * MIB, "{level} {more:?}: {trimmed} bytes of {full}");
        let found = std::fs::read(scratch.join("m/kept")).expect("a file");
        assert!(found == kept, "{level}: the other file is as it was");
        mounted.unmount();
        EXT4.check(volume.device());
        scratch.run(&["scrub", "home", "--wait"]).ok();
        volume.down();
    }
}
