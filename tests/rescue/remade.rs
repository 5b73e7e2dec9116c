//! Arrays that were created anew over others: superblocks that look sound are in doubt, and `solve` finds the data.

use crate::common::{Output, Scratch, UpVolume, skip_without, wait_until};
use crate::solved::{filled, filled_with, striped, striped_as};

const CREATE: [&str; 7] = ["create", "home", "--chunk", "64K", "--data-offset", "1M", "--level"];

/// Writes superblocks over the members, in this order.
fn create_anew(scratch: &Scratch, level: &str, more: &[&str], order: &[&str]) {
    let force: Vec<&str> = order.iter().flat_map(|name| ["--force", name]).collect();
    scratch.run(&[&CREATE[..], &[level], more, &force, &["--"], order].concat()).ok();
}

/// Runs a command on the case; it must be in doubt.
#[track_caller]
fn in_doubt(scratch: &Scratch, words: &[&str]) -> Output {
    let output = scratch.run(&[&["rescue"], words].concat());
    assert_eq!(output.status.code(), Some(4), "{output}");
    assert!(output.out.contains("`braid rescue solve` finds the geometry"), "{output}");
    output
}

#[test]
fn superblocks_in_another_order_are_in_doubt_where_few_blocks_say_where_they_belong() {
    skip_without!("mkfs.ext4", "nbdcopy");
    let scratch = Scratch::new();
    filled_with(&scratch, 60 << 20, "^has_journal,^metadata_csum");
    striped(&scratch, &["c.img", "a.img", "d.img", "b.img"]);
    create_anew(&scratch, "raid5", &["--assume-clean"], &["a.img", "b.img", "c.img", "d.img"]);
    scratch.run(&["rescue", "scan", "lost", "a.img", "b.img", "c.img", "d.img"]).ok();
    let open = in_doubt(&scratch, &["open", "lost"]);
    assert!(open.out.contains("Next: braid rescue solve lost"), "{open}");
    in_doubt(&scratch, &["copy", "lost", "--to", "out.img"]);
    let verify = scratch.run(&["rescue", "verify", "lost"]);
    assert_eq!(verify.status.code(), Some(4), "{verify}");
    assert!(verify.out.contains("Verdict: wrong."), "{verify}");
}

#[test]
fn what_a_resync_overwrote_is_computed_from_the_rest() {
    skip_without!("mkfs.ext4", "nbdcopy");
    let scratch = Scratch::new();
    let names = ["a.img", "b.img", "c.img", "d.img", "e.img"];
    filled(&scratch, 60 << 20);
    // The start of the file system, without which no block says where it belongs, is not among what is overwritten.
    striped_as(&scratch, "raid6", &["c.img", "b.img", "e.img", "a.img", "d.img"]);
    create_anew(&scratch, "raid6", &[], &names);
    let volume = UpVolume::start(&scratch, "home", &["--attach", "none"])
        .unwrap_or_else(|output| panic!("{output}"));
    wait_until("the end of the resync", || {
        let array = &volume.status()["arrays"][0];
        array["job"].is_null() && array["resync_from_bytes"].is_null()
    });
    volume.down();
    let before: Vec<Vec<u8>> = names.iter().map(|name| scratch.read(name)).collect();
    scratch.run(&[&["rescue", "scan", "lost"], &names[..]].concat()).ok();
    in_doubt(&scratch, &["open", "lost"]);
    let solved = scratch.run(&["rescue", "solve", "lost"]).ok();
    assert!(
        solved.out.contains("Decided: raid6 left-symmetric, 5 members, chunk 64 KiB"),
        "{solved}"
    );
    scratch.run(&["rescue", "copy", "lost", "--hypothesis", "1", "--to", "out.img"]).ok();
    let (data, mut out) = (scratch.read("data.img"), scratch.read("out.img"));
    out.truncate(data.len());
    assert!(out == data, "another content");
    for (name, before) in names.iter().zip(&before) {
        assert!(scratch.read(name) == *before, "{name} was written");
    }
}
