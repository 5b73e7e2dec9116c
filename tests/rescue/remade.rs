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

/// The ranges that a map calls unreadable.
fn holes(map: &str) -> Vec<(u64, u64)> {
    let line = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [start, length, "-"] = words[..] else { return None };
        let number = |text: &str| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok();
        Some((number(start)?, number(length)?))
    };
    map.lines().filter_map(line).collect()
}

#[test]
fn what_the_resync_of_a_raid6_overwrote_is_not_read() {
    skip_without!("mkfs.ext4", "nbdcopy");
    let scratch = Scratch::new();
    let names = ["a.img", "b.img", "c.img", "d.img", "e.img"];
    let read = || names.map(|name| scratch.read(name));
    filled(&scratch, 60 << 20);
    // The start of the file system, without which no block says where it belongs, is not among what is overwritten.
    striped_as(&scratch, "raid6", &["c.img", "b.img", "e.img", "a.img", "d.img"]);
    let whole = read();
    create_anew(&scratch, "raid6", &[], &names);
    let volume = UpVolume::start(&scratch, "home", &["--attach", "none"])
        .unwrap_or_else(|output| panic!("{output}"));
    wait_until("the end of the resync", || {
        let array = &volume.status()["arrays"][0];
        array["job"].is_null() && array["resync_from_bytes"].is_null()
    });
    volume.down();
    let before = read();
    scratch.run(&[&["rescue", "scan", "lost"], &names[..]].concat()).ok();
    in_doubt(&scratch, &["open", "lost"]);
    // Two fifths of the blocks are gone: whether the rest decides is not the question here.
    scratch.run(&["rescue", "solve", "lost"]);
    let mut overwritten = 0;
    for (index, (whole, before)) in whole.iter().zip(&before).enumerate() {
        let map = scratch.join("lost.rescue").join(format!("maps/member-{index}.map"));
        let holes = holes(&std::fs::read_to_string(map).expect("a map"));
        for at in (1 << 20..whole.len())
            .step_by(4096)
            .filter(|at| whole[*at..at + 4096] != before[*at..at + 4096])
        {
            let is_in = |(start, length): &(u64, u64)| {
                (*start..start + length).contains(&u64::try_from(at).expect("small"))
            };
            assert!(holes.iter().any(is_in), "{}: {at}", names[index]);
            overwritten += 1;
        }
    }
    assert!(overwritten > 100, "{overwritten}");
    assert!(read() == before, "a member was written");
}
