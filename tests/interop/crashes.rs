//! Machines that die in the middle of writes: what one leaves, the other makes whole.
//!
//! A crash leaves copies that differ, or not, as it happens. So that there always is something to
//! find, a sector that was being written is made different on one member afterwards, which is
//! what a crash may leave; and with a bitmap another one where nothing was being written, which
//! no crash leaves, and which shows that only what the bitmap names is looked at.
//!
//! ```text
//!   0           1 MiB        4 MiB      5 MiB            end
//!   ├─ written ──┼──── A ─────┼─ B, safe ─┼────── A ──────┤      what the array holds
//!      ▲ differs                               ▲ differs (bitmap only)
//! ```

use braid_nbd::protocol::Command;

use crate::common::{Client, MIB, Scratch, UpVolume, pattern, wait_until};
use crate::guest::Answer;
use crate::handed_over::{examine, up};
use crate::stories::{Story, nothing, tell};
use crate::to_kernel::is_settled;
use crate::{A, B, check, engine_or_skip, is_too_slow, scrub_and_down, write};

const DIRECTION: &str = "crash";

#[test]
fn crashes_in_the_middle_of_writes() {
    if is_too_slow() {
        return;
    }
    let Some(engine) = engine_or_skip() else { return };
    tell(engine, DIRECTION, STORIES);
}

const STORIES: &[Story] = &[
    Story {
        id: "spoilt",
        images: 2,
        begin: makes_a_difference,
        first: KERNEL_FINDS_IT,
        crash: false,
        middle: |_, _, _| (),
        second: "",
        quick: false,
        shows: "no crash, but one sector of one member spoilt: `check` counts it",
    },
    Story {
        id: "kernel-dies-raid1",
        images: 2,
        begin: nothing,
        first: KERNEL_WRITES_RAID1,
        crash: true,
        middle: |scratch, story, _| resyncs_all(scratch, story, [WRITTEN_AT, 3 * MIB]),
        second: WHOLE,
        quick: false,
        shows: "the kernel was killed; braid found it dirty and resynced all: 0 mismatches",
    },
    Story {
        id: "kernel-dies-raid1-bitmap",
        images: 2,
        begin: nothing,
        first: KERNEL_WRITES_RAID1_BITMAP,
        crash: true,
        middle: |scratch, story, _| {
            resyncs_what_the_bitmap_says(scratch, story, WRITTEN_AT, ELSEWHERE_AT);
        },
        second: WHOLE,
        quick: true,
        shows: "the kernel was killed; braid resynced the bitmap's chunks only: 0 mismatches",
    },
    Story {
        id: "kernel-dies-raid10",
        images: 4,
        begin: nothing,
        first: KERNEL_WRITES_RAID10,
        crash: true,
        middle: |scratch, story, _| resyncs_all(scratch, story, [WRITTEN_AT, 3 * MIB]),
        second: WHOLE,
        quick: false,
        shows: "raid10 near=2, the kernel was killed; braid resynced all: 0 mismatches",
    },
    Story {
        id: "braid-dies-raid1",
        images: 2,
        begin: |scratch, story| {
            braid_dies(scratch, story, &["--level=raid1", "--bitmap=none"], WRITTEN_AT);
        },
        first: KERNEL_RESYNCS,
        crash: false,
        middle: kernel_resynced_all,
        second: "",
        quick: false,
        shows: "braid was killed; the kernel resynced all: 0 mismatches, flushed data intact",
    },
    Story {
        id: "braid-dies-raid1-bitmap",
        images: 2,
        begin: |scratch, story| {
            braid_dies(scratch, story, &["--level=raid1", "--bitmap=64K"], WRITTEN_AT);
        },
        first: KERNEL_RESYNCS,
        crash: false,
        middle: kernel_resynced_what_the_bitmap_says,
        second: "",
        quick: true,
        shows: "braid was killed; the kernel resynced by braid's bitmap: 0 mismatches, flushed data intact",
    },
    Story {
        id: "braid-dies-raid10-bitmap",
        images: 4,
        begin: |scratch, story| {
            braid_dies(
                scratch,
                story,
                &["--level=raid10", "--layout=f2", "--chunk=64K", "--bitmap=64K"],
                WRITTEN_AT,
            );
        },
        first: KERNEL_RESYNCS,
        crash: false,
        middle: kernel_resynced_what_the_bitmap_says,
        second: "",
        quick: false,
        shows: "raid10 far=2, the same: 0 mismatches, flushed data intact",
    },
    Story {
        id: "braid-dies-raid10-filled",
        images: 4,
        begin: braid_dies_while_it_fills,
        first: KERNEL_RESYNCS,
        crash: false,
        middle: |scratch, story, answer| {
            assert_eq!(answer.get("action"), "recover", "what the kernel did last of itself");
            make_whole(scratch, story);
        },
        second: "",
        quick: true,
        shows: "braid was killed while it filled the first copy of a raid10: nothing is lost",
    },
];

/// A script that succeeds only if the kernel's check finds mismatches.
const KERNEL_FINDS_IT: &str = "
    assemble
    echo check >\"$SYS/sync_action\"
    settle
    [ $(<$SYS/mismatch_cnt) -gt 0 ]
    stop";

const KERNEL_WRITES_RAID1: &str = "
    create --level=1 --raid-devices=2 --bitmap=none ${MEMBERS[*]}
    fill a
    settle
    fill b 4194304 1048576
    scribble b";

const KERNEL_WRITES_RAID1_BITMAP: &str = "
    create --level=1 --raid-devices=2 --bitmap=internal --bitmap-chunk=64K ${MEMBERS[*]}
    fill a
    settle
    fill b 4194304 1048576
    # The bitmap's bits go some seconds after the last write.
    for tries in {1..300}; do
        [ \"$(mdadm --examine-bitmap \"${MEMBERS[0]}\" | sed -n 's/.*, \\([0-9]*\\) dirty.*/\\1/p')\" = 0 ] && break
        pause 0.3
    done
    scribble b";

const KERNEL_WRITES_RAID10: &str = "
    create --level=10 --raid-devices=4 --chunk=64 --bitmap=none ${MEMBERS[*]}
    fill a
    settle
    fill b 4194304 1048576
    scribble b";

/// After braid has made it whole.
pub(crate) const WHOLE: &str = "
    assemble
    [ $(action) = idle ]
    same a 1048576 3145728
    same b 4194304 1048576
    same a 5242880 $(($(size) - 5242880))
    check
    stop";

/// The state that braid has left, and the kernel's reaction.
pub(crate) const KERNEL_RESYNCS: &str = "
    say dirty $(mdadm --examine-bitmap \"${MEMBERS[0]}\" 2>/dev/null | sed -n 's/.*, \\([0-9]*\\) dirty.*/\\1/p')0
    assemble
    whole
    say action $(action)
    same a 1048576 3145728
    same b 4194304 1048576
    same a 5242880 $(($(size) - 5242880))
    check
    stop";

/// The places where a sector is made different: bytes of the first member's data.
const WRITTEN_AT: u64 = 8 * 1024;
const ELSEWHERE_AT: u64 = 6 * MIB;

pub(crate) fn data_offset(scratch: &Scratch, story: &Story) -> u64 {
    examine(scratch, &story.image(1))["data_offset_bytes"].as_u64().expect("it has one")
}

/// Makes a sector of the second member different.
fn spoil(scratch: &Scratch, story: &Story, at: u64) -> u64 {
    let place = data_offset(scratch, story) + at;
    scratch.patch(&story.image(1), place, &[0xee; 512]);
    place
}

fn sector(scratch: &Scratch, story: &Story, place: u64) -> Vec<u8> {
    scratch.read(&story.image(1))[place as usize..][..512].to_vec()
}

/// Lets braid make it whole, and checks what was not being written.
fn make_whole(scratch: &Scratch, story: &Story) {
    let volume = up(scratch, story);
    wait_until("the end of the resync", || is_settled(&volume));
    let mut client = volume.client();
    let size = client.size();
    check(&mut client, A, MIB, 3 * MIB);
    check(&mut client, B, 4 * MIB, MIB);
    check(&mut client, A, 5 * MIB, size - 5 * MIB);
    drop(client);
    scrub_and_down(scratch, volume);
}

pub(crate) fn assert_dirty(scratch: &Scratch, story: &Story) {
    let superblock = examine(scratch, &story.image(0));
    assert_eq!(superblock["clean"], false, "the machine died while it was written: {superblock}");
}

/// Spoils what a resync makes again, and sees that it does.
pub(crate) fn resyncs_all(scratch: &Scratch, story: &Story, spoilt: [u64; 2]) {
    assert_dirty(scratch, story);
    let places = spoilt.map(|at| spoil(scratch, story, at));
    make_whole(scratch, story);
    for place in places {
        assert_ne!(sector(scratch, story, place), [0xee; 512], "byte {place} was not resynced");
    }
}

/// The same, and that what lies outside of the bitmap's chunks stays as it is.
pub(crate) fn resyncs_what_the_bitmap_says(
    scratch: &Scratch,
    story: &Story,
    written_at: u64,
    elsewhere_at: u64,
) {
    let before = examine(scratch, &story.image(0));
    let dirty = before["bitmap"]["dirty_bits"].as_u64().unwrap_or_default();
    assert!((1..=16).contains(&dirty), "the chunks of the first MiB were being written: {before}");
    let written = spoil(scratch, story, written_at);
    let elsewhere = data_offset(scratch, story) + elsewhere_at;
    let good = sector(scratch, story, elsewhere);
    spoil(scratch, story, elsewhere_at);
    // Reads could be answered from the spoilt sector: it is put right before any is checked.
    let volume = up(scratch, story);
    wait_until("the end of the resync", || is_settled(&volume));
    volume.down();
    assert_ne!(sector(scratch, story, written), [0xee; 512], "it was not resynced");
    assert_eq!(sector(scratch, story, elsewhere), [0xee; 512], "more was resynced than was due");
    scratch.patch(&story.image(1), elsewhere, &good);
    make_whole(scratch, story);
}

fn makes_a_difference(scratch: &Scratch, story: &Story) {
    let create = scratch.braid().args(["create", story.id, "--level=raid1", "--bitmap=none"]);
    create.args(story.names()).run().ok();
    let volume = scratch.up(story.id, &["--attach", "none"]);
    let mut client = volume.client();
    let size = client.size();
    write(&mut client, A, 0, size);
    drop(client);
    wait_until("the end of the resync", || is_settled(&volume));
    volume.down();
    spoil(scratch, story, WRITTEN_AT);
}

/// Writes, and kills braid in the middle of it.
pub(crate) fn braid_dies(scratch: &Scratch, story: &Story, options: &[&str], spoilt: u64) {
    scratch.braid().args(["create", story.id]).args(options).args(story.names()).run().ok();
    let volume = scratch.up(story.id, &["--attach", "none"]);
    let mut client = volume.client();
    let size = client.size();
    write(&mut client, A, 0, size);
    wait_until("the end of the resync", || is_settled(&volume) && is_forgotten(&volume));
    die_while_writing(scratch, story, volume, client);
    spoil(scratch, story, spoilt);
}

/// The first copies of half of the array are what braid does not have yet when it is killed: a resync that took them
/// for copies would write them over the others.
fn braid_dies_while_it_fills(scratch: &Scratch, story: &Story) {
    let mut members = story.names();
    members[0] = "missing".into();
    let options = ["--level=raid10", "--chunk=64K", "--bitmap=64K"];
    scratch.braid().args(["create", story.id]).args(options).args(members).run().ok();
    let volume = scratch.up(story.id, &["--attach", "none"]);
    let mut client = volume.client();
    let size = client.size();
    write(&mut client, A, 0, size);
    wait_until("the end of the resync", || is_settled(&volume));
    scratch.run(&["speed", story.id, "--min", "1M", "--max", "1M"]).ok();
    scratch.run(&["member", "add", story.id, &story.image(0)]).ok();
    wait_until("a part of the recovery", || {
        let done = &volume.status()["arrays"][0]["job"]["done_bytes"];
        done.as_u64().is_some_and(|done| done > MIB)
    });
    die_while_writing(scratch, story, volume, client);
    let superblock = examine(scratch, &story.image(1));
    assert_eq!(superblock["clean"], false, "the machine died while it was written: {superblock}");
}

fn die_while_writing(scratch: &Scratch, story: &Story, volume: UpVolume<'_>, mut client: Client) {
    // What is flushed must be there whatever comes.
    write(&mut client, B, 4 * MIB, MIB);
    for index in 0..64 {
        let offset = index * 16 * 1024;
        let bytes = pattern(B, offset, 16 * 1024);
        let command = Command::Write { offset, length: bytes.len() as u32, fua: false };
        client.send(command, &bytes).expect("it takes requests");
    }
    // Some were done, others are under way.
    for _ in 0..8 {
        client.receive().expect("it answers").1.expect("a write works");
    }
    volume.kill();
    drop(client);
    scratch.run(&["down", story.id, "--force"]).ok();
}

/// True if no bit of a bitmap remains set after the writes.
pub(crate) fn is_forgotten(volume: &UpVolume<'_>) -> bool {
    volume.status()["arrays"][0]["bitmap_chunks_set"].as_u64().is_none_or(|set| set == 0)
}

pub(crate) fn kernel_resynced_all(scratch: &Scratch, story: &Story, answer: &Answer) {
    assert_eq!(answer.get("action"), "resync", "what the kernel did of itself");
    make_whole(scratch, story);
}

pub(crate) fn kernel_resynced_what_the_bitmap_says(
    scratch: &Scratch,
    story: &Story,
    answer: &Answer,
) {
    // A zero was put behind the number, for a bitmap that is not there.
    let dirty = answer.number("dirty") / 10;
    // The chunks of two MiB, and for the far copies no others: bits count the array's chunks.
    assert!((1..=32).contains(&dirty), "{dirty} chunks are dirty");
    assert_eq!(answer.get("action"), "resync", "what the kernel did of itself");
    make_whole(scratch, story);
}
