//! Machines that die in the middle of writes to arrays with parity.
//!
//! A block that was being written and was not answered may be old or new; all other blocks must be unchanged,
//! also on a missing member, whose content is computed from parity.
//!
//! ```text
//!   stripe:   D0: A, answered long ago     D1: B, being written     P: fits neither
//!                 ▲ left out: D0 = P ⊕ D1, and right only if a log has repaired P
//! ```
//!
//! After a crash, parity fits or not, by chance. So that there always is something to repair, parity that a
//! crash may have spoilt is changed afterwards: that of rows that were being written, and with a partial parity
//! log that of the rows in its newest unit. The program that assembles the array must find them by that log.

use braid_md::Uuid;
use braid_md::ppl::{self, Newest};
use braid_nbd::protocol::Command;

use crate::common::{Client, MIB, Scratch, pattern, wait_until};
use crate::crashes::{
    KERNEL_RESYNCS, WHOLE, assert_dirty, braid_dies, data_offset, is_forgotten,
    kernel_resynced_all, kernel_resynced_what_the_bitmap_says, resyncs_all,
    resyncs_what_the_bitmap_says,
};
use crate::guest::Answer;
use crate::handed_over::{examine, up, wait_until_in_sync};
use crate::stories::{Story, nothing, tell};
use crate::to_kernel::is_settled;
use crate::{A, B, check, engine_or_skip, scrub_and_down, write};

const DIRECTION: &str = "parity: crash";

#[test]
fn crashes_in_the_middle_of_writes_with_parity() {
    let Some(engine) = engine_or_skip() else { return };
    tell(engine, DIRECTION, STORIES);
}

const CHUNK: u64 = 64 * 1024;
/// The places of P on the second member: in row 1 and every third row of three members, left-symmetric, and in
/// row 3 and every fifth row of five.
const P_OF_3: [u64; 2] = [CHUNK + 8 * 1024, 49 * CHUNK + 8 * 1024];
const P_OF_5: [u64; 2] = [3 * CHUNK + 8 * 1024, 48 * CHUNK + 8 * 1024];
/// raid4's parity is its last member: the second member's data must not be touched, except where it was being
/// written.
const DATA_OF_RAID4: u64 = 8 * 1024;

const RAID5_PPL: &[&str] = &["--level=raid5", "--chunk=64K", "--consistency=ppl"];
const RAID6_LOG: &[&str] = &["--level=raid6", "--chunk=64K", "--consistency=log"];

const STORIES: &[Story] = &[
    // First: the writes of those that follow go on meanwhile, and slow it down.
    Story {
        id: "kernel-dies-raid5-bitmap",
        images: 3,
        begin: nothing,
        first: "
            create --level=5 --raid-devices=3 --chunk=64 --bitmap=internal --bitmap-chunk=64K ${MEMBERS[*]}
            # What is written while it lacks the member that it begins by filling keeps its bits.
            settle
            fill a
            fill b 4194304 1048576
            # The bitmap's bits go some seconds after the last write.
            for tries in {1..300}; do
                [ \"$(mdadm --examine-bitmap \"${MEMBERS[0]}\" | sed -n 's/.*, \\([0-9]*\\) dirty.*/\\1/p')\" = 0 ] && break
                pause 0.3
            done
            scribble b",
        crash: true,
        middle: |scratch, story, _| {
            resyncs_what_the_bitmap_says(scratch, story, P_OF_3[0], P_OF_3[1]);
        },
        second: WHOLE,
        quick: false,
        shows: "the kernel was killed; braid resynced the bitmap's chunks only: 0 mismatches",
    },
    Story {
        id: "kernel-dies-raid5",
        images: 3,
        begin: nothing,
        first: "
            create --level=5 --raid-devices=3 --chunk=64 --bitmap=none ${MEMBERS[*]}
            fill a
            settle
            fill b 4194304 1048576
            scribble b",
        crash: true,
        middle: |scratch, story, _| resyncs_all(scratch, story, P_OF_3),
        second: WHOLE,
        quick: false,
        shows: "the kernel was killed; braid found it dirty and resynced all: 0 mismatches",
    },
    Story {
        id: "kernel-dies-raid6",
        images: 5,
        begin: nothing,
        first: "
            create --level=6 --raid-devices=5 --chunk=64 --bitmap=none ${MEMBERS[*]}
            fill a
            settle
            fill b 4194304 1048576
            scribble b",
        crash: true,
        middle: |scratch, story, _| resyncs_all(scratch, story, P_OF_5),
        second: WHOLE,
        quick: false,
        shows: "raid6, the kernel was killed; braid resynced all: 0 mismatches",
    },
    Story {
        id: "kernel-dies-ppl",
        images: 3,
        begin: nothing,
        first: KERNEL_WRITES_PPL,
        crash: true,
        middle: is_made_good_by_ppl,
        second: WHOLE,
        quick: true,
        shows: "the kernel was killed; braid made the kernel's partial parity log good, and resynced only if it was torn: 0 mismatches",
    },
    Story {
        id: "kernel-dies-ppl-degraded",
        images: 3,
        begin: nothing,
        first: KERNEL_WRITES_PPL,
        crash: true,
        middle: is_made_good_by_ppl_without_one,
        second: WHOLE,
        quick: false,
        shows: "the same without one member; a new one filled: answered data intact, 0 mismatches",
    },
    Story {
        id: "braid-dies-raid5",
        images: 3,
        begin: |scratch, story| {
            let options = ["--level=raid5", "--chunk=64K", "--consistency=resync"];
            braid_dies(scratch, story, &options, P_OF_3[0]);
        },
        first: KERNEL_RESYNCS,
        crash: false,
        middle: kernel_resynced_all,
        second: "",
        quick: false,
        shows: "braid was killed; the kernel resynced all: 0 mismatches, flushed data intact",
    },
    Story {
        id: "braid-dies-raid5-bitmap",
        images: 3,
        begin: |scratch, story| {
            let options = ["--level=raid5", "--chunk=64K", "--bitmap=64K"];
            braid_dies(scratch, story, &options, P_OF_3[0]);
        },
        first: KERNEL_RESYNCS,
        crash: false,
        middle: kernel_resynced_what_the_bitmap_says,
        second: "",
        quick: false,
        shows: "braid was killed; the kernel resynced by braid's bitmap: 0 mismatches, flushed data intact",
    },
    Story {
        id: "braid-dies-ppl",
        images: 3,
        begin: |scratch, story| dies_beside_what_was_answered(scratch, story, None),
        first: "
            assemble
            whole
            say action $(action)
            head -c 6M \"$MD\" >/share/$ID.read
            check
            stop",
        crash: false,
        middle: kernel_made_it_good_by_ppl,
        second: "",
        quick: true,
        shows: "braid was killed; the kernel made braid's partial parity log good, no resync: 0 mismatches, answered data intact",
    },
    Story {
        id: "braid-dies-ppl-degraded",
        images: 3,
        begin: |scratch, story| dies_beside_what_was_answered(scratch, story, Some(0)),
        first: "
            # Two of three members, and dirty: only the log makes that safe.
            mdadm --assemble \"$MD\" --run \"${MEMBERS[1]}\" \"${MEMBERS[2]}\"
            say action $(action)
            [ $(<$SYS/degraded) = 1 ]
            head -c 6M \"$MD\" >/share/$ID.read
            mdadm --zero-superblock \"${MEMBERS[0]}\"
            mdadm \"$MD\" --add \"${MEMBERS[0]}\"
            whole
            check
            stop",
        crash: false,
        middle: kernel_made_it_good_by_ppl,
        second: "",
        quick: false,
        shows: "the same without one member: the kernel made parity good by braid's log, answered data intact",
    },
    Story {
        id: "braid-dies-raid4-log",
        images: 3,
        begin: |scratch, story| {
            let options = ["--level=raid4", "--chunk=64K", "--consistency=log"];
            braid_dies(scratch, story, &options, DATA_OF_RAID4);
        },
        first: KERNEL_RESYNCS_AND_WRITES,
        crash: false,
        middle: log_is_not_used,
        second: WRITTEN_TWICE,
        quick: false,
        shows: "braid was killed with records in its stripe log; the kernel resynced and wrote; braid did not use the old log: 0 mismatches",
    },
    Story {
        id: "braid-dies-raid6-log",
        images: 5,
        begin: |scratch, story| braid_dies(scratch, story, RAID6_LOG, P_OF_5[0]),
        first: KERNEL_RESYNCS_AND_WRITES,
        crash: false,
        middle: log_is_not_used,
        second: WRITTEN_TWICE,
        quick: true,
        shows: "raid6, the same: 0 mismatches",
    },
    Story {
        id: "both-die-raid6-log",
        images: 5,
        begin: |scratch, story| braid_dies(scratch, story, RAID6_LOG, P_OF_5[0]),
        first: "
            assemble
            settle
            fill b 5242880 1048576
            scribble b",
        crash: true,
        middle: old_log_is_no_excuse,
        second: WRITTEN_TWICE,
        quick: false,
        shows: "braid was killed, then the kernel: braid took the old stripe log for nothing, refused too few members, resynced all: 0 mismatches",
    },
];

/// Writes that come round and change what they write, so that a stripe is torn whenever it ends.
const KERNEL_WRITES_PPL: &str = "
    create --level=5 --raid-devices=3 --chunk=64 --consistency-policy=ppl ${MEMBERS[*]}
    fill a
    settle
    fill b 4194304 1048576
    scribble b a";

/// The state that braid has left, and a write that braid does not know.
const KERNEL_RESYNCS_AND_WRITES: &str = "
    assemble
    say action $(action)
    same a 1048576 3145728
    same b 4194304 1048576
    same a 5242880 $(($(size) - 5242880))
    fill b 5242880 1048576
    check
    stop";

const WRITTEN_TWICE: &str = "
    assemble
    [ $(action) = idle ]
    same a 1048576 3145728
    same b 4194304 2097152
    same a 6291456 $(($(size) - 6291456))
    check
    stop";

/// The length and the number of requests.
const REQUEST: u64 = 16 * 1024;
const REQUESTS: u64 = 64;

/// The place of a request: in every second chunk, so that each stripe of three members has one chunk that is
/// written, and one that was answered long ago.
fn place_of(request: u64) -> u64 {
    let in_chunk = CHUNK / REQUEST;
    (2 * (request / in_chunk) + 1) * CHUNK + request % in_chunk * REQUEST
}

/// Kills braid in the middle of writes with a partial parity log, and spoils what that makes good
/// without the `missing` member.
fn dies_beside_what_was_answered(scratch: &Scratch, story: &Story, missing: Option<u64>) {
    scratch.braid().args(["create", story.id]).args(RAID5_PPL).args(story.names()).run().ok();
    let volume = scratch.up(story.id, &["--attach", "none"]);
    let mut client = volume.client();
    let size = client.size();
    write(&mut client, A, 0, size);
    wait_until("the end of the resync", || is_settled(&volume) && is_forgotten(&volume));
    write(&mut client, B, 4 * MIB, MIB);
    let send = |request: u64| {
        let (offset, length) = (place_of(request), REQUEST as u32);
        let bytes = pattern(B, offset, REQUEST);
        client.send(Command::Write { offset, length, fua: false }, &bytes).expect("it takes them")
    };
    let handles: Vec<u64> = (0..REQUESTS).map(send).collect();
    let mut answered = Vec::new();
    for _ in 0..8 {
        let (handle, answer) = client.receive().expect("it answers");
        answer.expect("a write works");
        let request = handles.iter().position(|&sent| sent == handle);
        answered.push(request.expect("an answer to a request") as u8);
    }
    volume.kill();
    drop(client);
    scratch.run(&["down", story.id, "--force"]).ok();
    assert_dirty(scratch, story);
    std::fs::write(scratch.join(&format!("{}.answered", story.id)), answered).expect("room");
    spoil_what_the_log_names(scratch, story, missing);
}

/// Rows that a member's partial parity log names.
struct Named {
    /// True if the checksum is not that of the partial parity: the kernel was killed while it wrote the log,
    /// and the logged write had not begun.
    is_torn: bool,
    /// The member with the log, which is the one with the parity of these rows.
    role: u64,
    /// The start of the parity in its image, in bytes.
    place: u64,
    /// The members with the data that was being written.
    written: Vec<u64>,
}

impl Named {
    /// True if the log repairs the parity when `missing` is absent.
    fn is_made_good_without(&self, missing: Option<u64>) -> bool {
        // Without a member a torn log is ignored; with all members everything is then resynced.
        missing.is_none_or(|missing| {
            !self.is_torn && missing != self.role && !self.written.contains(&missing)
        })
    }
}

/// The rows in the newest units of the members' partial parity logs.
fn named_by_the_logs(scratch: &Scratch, story: &Story) -> Vec<Named> {
    let members = story.images as u64;
    let mut named = Vec::new();
    for role in 0..members {
        let image = story.image(role as usize);
        let superblock = examine(scratch, &image);
        let number = |value: &serde_json::Value| value.as_u64().expect("it has one") as usize;
        let uuid: Uuid =
            superblock["array_uuid"].as_str().expect("it has one").parse().expect("one");
        let start =
            number(&superblock["super_offset_bytes"]) + number(&superblock["ppl"]["offset_bytes"]);
        let bytes = scratch.read(&image);
        let area = &bytes[start..][..number(&superblock["ppl"]["size_bytes"])];
        let newest = ppl::newest(area, ppl::signature(&uuid)).expect("a log of this array");
        let size = number(&superblock["array_bytes"]) as u64;
        for (entry, range) in newest.parity_ranges() {
            let covered = ppl::covered(entry, CHUNK, story.images - 1, size).expect("in the array");
            assert_eq!(u64::from(entry.parity_role), role, "a member logs for its own parity");
            // Left-symmetric: the first column is on the member behind parity's.
            let columns = covered.first..covered.first + covered.count;
            named.push(Named {
                is_torn: Newest::parity(area, entry, range).is_err(),
                role,
                place: data_offset(scratch, story) + covered.rows.0,
                written: columns.map(|column| (role + 1 + column as u64) % members).collect(),
            });
        }
    }
    named
}

/// Spoils the parity that the members' partial parity logs make good, of which there must be
/// some: without a member nothing that was written there.
fn spoil_what_the_log_names(scratch: &Scratch, story: &Story, missing: Option<u64>) {
    let mut named = named_by_the_logs(scratch, story);
    named.retain(|rows| rows.is_made_good_without(missing));
    assert!(!named.is_empty(), "no log names a row: nothing would be shown");
    for rows in named {
        scratch.patch(&story.image(rows.role as usize), rows.place, &[0xee; 512]);
    }
}

/// Asserts that answered writes are there, and that unwritten parts are unchanged.
fn assert_answered_is_there(story: &Story, bytes: &[u8], answered: &[u8], missing: bool) {
    let at = |place: u64, len: u64| &bytes[place as usize..][..len as usize];
    let end = place_of(REQUESTS - 1) + REQUEST;
    for chunk in (0..end / CHUNK).step_by(2) {
        let place = chunk * CHUNK;
        assert!(at(place, CHUNK) == pattern(A, place, CHUNK), "{}: {place}", story.id);
    }
    for request in 0..REQUESTS {
        let place = place_of(request);
        if answered.contains(&(request as u8)) {
            let new = pattern(B, place, REQUEST);
            assert!(at(place, REQUEST) == new, "{}: answered, and not there: {place}", story.id);
        } else if !missing {
            assert!(is_old_or_new(at(place, REQUEST), place), "{}: {place}", story.id);
        }
    }
    assert!(at(end, 4 * MIB - end) == pattern(A, end, 4 * MIB - end), "{}", story.id);
    assert!(at(4 * MIB, MIB) == pattern(B, 4 * MIB, MIB), "{}", story.id);
}

/// True if each sector is that of one content or the other.
fn is_old_or_new(bytes: &[u8], place: u64) -> bool {
    (place..)
        .step_by(512)
        .zip(bytes.chunks(512))
        .all(|(place, sector)| [A, B].into_iter().any(|seed| sector == pattern(seed, place, 512)))
}

/// After the kernel has started what braid had left: with and without a member.
fn kernel_made_it_good_by_ppl(scratch: &Scratch, story: &Story, answer: &Answer) {
    assert_eq!(answer.get("action"), "idle", "the log makes a resync needless");
    let answered = scratch.read(&format!("{}.answered", story.id));
    let missing = story.id.ends_with("-degraded");
    let read = scratch.read(&format!("{}.read", story.id));
    assert_answered_is_there(story, &read, &answered, missing);
    let volume = up(scratch, story);
    let mut client = volume.client();
    let size = client.size();
    assert!(client.read(0, MIB as u32).expect("a read is answered") == read[..MIB as usize]);
    check(&mut client, A, 5 * MIB, size - 5 * MIB);
    drop(client);
    scrub_and_down(scratch, volume);
}

/// Checks that at most the range of one request differs from both contents, and that the rest is unchanged.
fn check_what_the_kernel_wrote(client: &mut Client) {
    let torn = (0..MIB).step_by(REQUEST as usize).filter(|&place| {
        let bytes = client.read(place, REQUEST as u32).expect("a read is answered");
        [A, B].into_iter().all(|seed| bytes != pattern(seed, place, REQUEST))
    });
    let torn: Vec<u64> = torn.collect();
    assert!(torn.len() <= 1, "at {torn:?} there is neither what was written nor what was before");
    let size = client.size();
    check(client, A, MIB, 3 * MIB);
    check(client, B, 4 * MIB, MIB);
    check(client, A, 5 * MIB, size - 5 * MIB);
}

fn is_made_good_by_ppl(scratch: &Scratch, story: &Story, _: &Answer) {
    assert_dirty(scratch, story);
    spoil_what_the_log_names(scratch, story, None);
    // What no log names stays as it is: nothing is resynced, unless a log is torn. A guest that was killed
    // early may have left a log of what was written first, anywhere.
    let named = named_by_the_logs(scratch, story);
    let resyncs = named.iter().any(|rows| rows.is_torn);
    let is_named = |place: u64| {
        let chunk = place - 8 * 1024..place - 8 * 1024 + CHUNK;
        named.iter().any(|rows| rows.role == 1 && chunk.contains(&rows.place))
    };
    let places = (0..16).map(|back| data_offset(scratch, story) + P_OF_3[1] - back * 3 * CHUNK);
    let elsewhere = places.into_iter().find(|place| !is_named(*place)).expect("a row of no log");
    let good = scratch.read(&story.image(1))[elsewhere as usize..][..512].to_vec();
    scratch.patch(&story.image(1), elsewhere, &[0xee; 512]);
    let volume = up(scratch, story);
    wait_until("the end of all passes", || is_settled(&volume));
    check_what_the_kernel_wrote(&mut volume.client());
    volume.down();
    let after = scratch.read(&story.image(1));
    let expected = if resyncs { &good } else { &vec![0xee; 512] };
    println!("{}: a log is torn: {resyncs}", story.id);
    assert!(
        after[elsewhere as usize..][..512] == *expected,
        "made good at {elsewhere}, which no log names: {}; a log is torn: {resyncs}",
        !resyncs
    );
    scratch.patch(&story.image(1), elsewhere, &good);
    scrub_and_down(scratch, up(scratch, story));
}

/// Without a member whose absence leaves a row to be made good: which one that is depends on what
/// was being written when the machine died.
fn is_made_good_by_ppl_without_one(scratch: &Scratch, story: &Story, _: &Answer) {
    assert_dirty(scratch, story);
    let named = named_by_the_logs(scratch, story);
    let shows = |member: &u64| named.iter().any(|rows| rows.is_made_good_without(Some(*member)));
    let missing = (0..story.images as u64).find(shows).expect("no log names a row");
    spoil_what_the_log_names(scratch, story, Some(missing));
    let mut there = story.names();
    let gone = there.remove(missing as usize);
    let options = ["--name", story.id, "--attach", "none", "--degraded"];
    let volume = scratch.up(&format!("md({})", there.join(", ")), &options);
    check_what_the_kernel_wrote(&mut volume.client());
    scratch.run(&["member", "add", story.id, &gone]).ok();
    wait_until_in_sync(&volume);
    check_what_the_kernel_wrote(&mut volume.client());
    scrub_and_down(scratch, volume);
}

/// Asserts that no member's stripe log would be used.
fn assert_log_is_old(scratch: &Scratch, story: &Story) {
    for image in story.names() {
        let output = scratch.run(&["examine", "--explain", &image]).ok();
        let log = output.out.split_once("stripe log").map(|(_, log)| log);
        assert!(log.is_some_and(|log| log.contains("not used")), "{image}: {output}");
    }
}

/// Checks what the kernel wrote after braid's end.
fn check_written_twice(scratch: &Scratch, story: &Story) {
    let volume = up(scratch, story);
    wait_until("the end of the resync", || is_settled(&volume));
    let mut client = volume.client();
    let size = client.size();
    check(&mut client, A, MIB, 3 * MIB);
    check(&mut client, B, 4 * MIB, 2 * MIB);
    check(&mut client, A, 6 * MIB, size - 6 * MIB);
    drop(client);
    scrub_and_down(scratch, volume);
}

fn log_is_not_used(scratch: &Scratch, story: &Story, answer: &Answer) {
    assert_eq!(answer.get("action"), "resync", "what the kernel did of itself");
    assert_log_is_old(scratch, story);
    check_written_twice(scratch, story);
}

/// The kernel has written, and died. A log from before it says nothing of that.
fn old_log_is_no_excuse(scratch: &Scratch, story: &Story, _: &Answer) {
    assert_dirty(scratch, story);
    assert_log_is_old(scratch, story);
    let there = story.names().split_off(1).join(", ");
    let options = ["--name", "too-few", "--attach", "none", "--degraded"];
    let tried = crate::common::UpVolume::start(scratch, &format!("md({there})"), &options);
    let refused = tried.err().expect("it is dirty, lacks a member, and has no log");
    assert!(refused.err.contains("write hole"), "{refused}");
    for at in P_OF_5 {
        let place = data_offset(scratch, story) + at;
        scratch.patch(&story.image(1), place, &[0xee; 512]);
    }
    check_written_twice(scratch, story);
}
