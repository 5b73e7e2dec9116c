//! A program that changes its data while they are written: the members of an array never differ, because all of them are
//! made from one copy. The kernel's md promises that only where the page cache holds the data still.
//!
//! Over a socket the kernel makes that copy. A virtual machine shares its memory with the server: `braid vhost` has that
//! case, and `braid ublk` that of the driver.

use std::path::Path;

use crate::can_attach;
use crate::common::{MIB, Scratch, Tool, skip_without};

#[test]
fn data_that_change_during_a_write_never_make_members_differ() {
    skip_without!("python3");
    if !can_attach() {
        return;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/changing.py");
    for level in ["raid1", "raid10", "raid5", "raid6"] {
        let scratch = Scratch::new();
        let members = ["a.img", "b.img", "c.img", "d.img"];
        members.iter().for_each(|name| drop(scratch.sparse(name, 16 * MIB)));
        let create = ["create", "home", "--level", level, "--assume-clean"];
        scratch.run(&[&create[..], &members[..]].concat()).ok();
        let volume = scratch.up("home", &["--attach", "fuse"]);
        let changing = Tool::new("python3").arg(&script).arg(volume.device());
        let torn = changing.arg((8 * MIB).to_string()).run().ok().out;
        assert_ne!(torn.trim(), "0", "{level}: nothing changed during a write");
        scratch.run(&["scrub", "home", "--wait"]).ok();
        volume.down();
    }
}
