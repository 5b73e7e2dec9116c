//! An export of the volume is no member of it, directly or through another volume.

use crate::REFUSED;
use crate::common::{MIB, Scratch};
use crate::far::member;

#[test]
fn an_export_of_the_volume_is_no_member_of_it() {
    let scratch = Scratch::new();
    for name in ["a.img", "b.img"] {
        scratch.sparse(name, 64 * MIB);
    }
    scratch.run(&["create", "s", "--level", "1", "a.img", "missing"]).ok();
    let volume = scratch.up("s", &["--attach", "none", "--degraded"]);
    let own = member(&volume.socket(), "");
    let add = |member: &str| scratch.run(&["member", "add", "s", member, "--force"]);
    let words = ["is refused: ", "is an export of volume s itself", "does not lie on s"];
    add(&own).fails(REFUSED, &words);
    // By another name of the socket.
    std::os::unix::fs::symlink(volume.socket(), scratch.join("link")).expect("a link");
    add(&member(&scratch.join("link"), "")).fails(REFUSED, &words);

    let above = scratch.up(&format!("cache(size=8M, {own})"), &["--name", "t", "--attach", "none"]);
    let through = member(&above.socket(), "");
    add(&through).fails(REFUSED, &["is an export of volume t: ", "an export of volume s itself"]);
    above.down();
    volume.down();

    // At the start, too; the socket is not there by then.
    let start = ["--name", "u", "--attach", "none"];
    let next = scratch.run_folder().join("u.nbd");
    let stack = format!("raid1(b.img, {})", member(&next, ""));
    scratch
        .run(&[&["up", &stack][..], &start].concat())
        .fails(REFUSED, &["is an export of volume u itself"]);
}
