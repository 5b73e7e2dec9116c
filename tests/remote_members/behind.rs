//! Write-behind: a mirror that answers before the far member has a write.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::{KIB, MIB, Scratch, UpVolume, pattern, skip_without};
use crate::far::{Far, member, socket};

/// The delay of each write at the far end: long beside all that a busy machine adds.
const DELAY: Duration = Duration::from_millis(500);
const BLOCK: u64 = 4 * KIB;

fn behind(volume: &UpVolume<'_>) -> Value {
    volume.status()["arrays"][0]["writes_behind"].clone()
}

/// Writes four blocks from `start` on. Returns the shortest time of a write.
fn write(volume: &UpVolume<'_>, start: u64, round: u64) -> Duration {
    let mut client = volume.client();
    let time = |block: u64| {
        let begun = Instant::now();
        let bytes = pattern(round, block, BLOCK);
        client.write(start + block * BLOCK, &bytes, false).expect("an answer");
        begun.elapsed()
    };
    (0..4).map(time).min().expect("there are some")
}

#[test]
fn writes_are_answered_before_the_far_member_has_them_and_flushes_wait() {
    skip_without!("nbdkit");
    let scratch = Scratch::new();
    for name in ["near.img", "far.img"] {
        scratch.sparse(name, 64 * MIB);
    }
    let (disk, delay) = (scratch.join("far.img"), format!("wdelay={}ms", DELAY.as_millis()));
    let disk = disk.to_str().expect("a plain name");
    let _far =
        Far::nbdkit(&["--filter=delay", "--threads=16", "file", disk, &delay], &socket(&scratch));
    let far = member(&socket(&scratch), "");
    let create = ["create", "home", "--level", "1", "--bitmap", "64M", "--assume-clean"];
    scratch.run(&[&create[..], &["near.img", &far, "--write-mostly", &far]].concat()).ok();
    let volume = scratch.up("home", &["--attach", "none"]);

    // Both at once; it also sets the bit of the only chunk.
    assert!(write(&volume, 0, 1) >= DELAY, "without write-behind a write takes the way");
    assert_eq!(behind(&volume), Value::Null);

    scratch.run(&["grow", "home", "--write-behind", "64"]).ok();
    // The bit is set by the first one.
    write(&volume, 0, 2);
    let shortest = write(&volume, MIB, 3);
    assert!(shortest < DELAY / 2, "{shortest:?}");
    assert!(behind(&volume).as_u64() > Some(0), "{}", volume.status());
    let text = scratch.run(&["status", "home"]).ok().out;
    assert!(text.contains("of at most 64 writes"), "{text}");
    volume.client().flush().expect("a flush");
    assert_eq!(behind(&volume), 0);
    let (near, far) = (scratch.read("near.img"), scratch.read("far.img"));
    assert!(near[MIB as usize..] == far[MIB as usize..], "what is flushed is on both");
    // Those that are behind are carried out before it is down, also.
    write(&volume, 2 * MIB, 4);
    volume.down();
    let (near, far) = (scratch.read("near.img"), scratch.read("far.img"));
    assert!(near[MIB as usize..] == far[MIB as usize..], "both are alike");
    // As mdadm shows it.
    let text = scratch.run(&["examine", "--bitmap", "near.img"]).ok().out;
    assert!(text.contains("Write Mode : Allow write behind, max 64"), "{text}");
}

#[test]
fn write_behind_is_refused_where_it_means_nothing() {
    let scratch = Scratch::new();
    for name in ["a.img", "b.img", "c.img"] {
        scratch.sparse(name, 8 * MIB);
    }
    let refused = |args: &[&str], why: &str| {
        let output = scratch.run(&[&["create", "home", "--plan"], args].concat());
        assert!(output.err.contains(why), "{output}");
    };
    refused(&["--level", "1", "--write-behind", "a.img", "b.img"], "needs a write-intent bitmap");
    let raid5 = ["--level", "5", "--bitmap", "internal", "--consistency", "bitmap"];
    let members = ["--write-behind=9", "a.img", "b.img", "c.img"];
    refused(&[&raid5[..], &members].concat(), "means something to raid1 only");
    let raid1 = ["--level", "1", "--bitmap", "internal", "--write-behind=20000", "a.img", "b.img"];
    refused(&raid1, "20000 writes: md has 16383 at most");
    let made = ["create", "home", "--level", "1", "--bitmap", "internal", "--write-behind"];
    scratch.run(&[&made[..], &["a.img", "b.img", "--write-mostly", "b.img"]].concat()).ok();
    let text = scratch.run(&["examine", "--bitmap", "a.img"]).ok().out;
    assert!(text.contains("Allow write behind, max 256"), "{text}");
}

#[test]
fn write_behind_neither_adds_a_bitmap_nor_goes_unsaid_with_its_end() {
    let scratch = Scratch::new();
    scratch.sparse("a.img", 8 * MIB);
    scratch.sparse("b.img", 8 * MIB);
    scratch.run(&["create", "home", "--level", "1", "--assume-clean", "a.img", "b.img"]).ok();
    let volume = scratch.up("home", &["--attach", "none"]);
    let bitmap = || volume.status()["arrays"][0]["bitmap_chunk_bytes"].clone();
    let grow = |args: &[&str]| scratch.run(&[&["grow", "home"], args].concat());
    for writes in ["0", "64"] {
        let output = grow(&["--write-behind", writes]);
        assert!(output.err.contains("has no write-intent bitmap"), "{output}");
        assert!(bitmap().is_null(), "{output}");
    }
    grow(&["--bitmap", "internal", "--write-behind", "64"]).ok();
    assert!(bitmap().is_u64());
    let output = grow(&["--bitmap", "none", "--write-behind", "64"]);
    assert!(output.err.contains("which is to be removed"), "{output}");
    assert!(bitmap().is_u64(), "{output}");
    grow(&["--bitmap", "none", "--write-behind", "0"]).ok();
    assert!(bitmap().is_null());
}
