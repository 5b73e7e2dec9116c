//! Arrays that lack a member, or have one that is half filled, from one to the other.

use crate::common::{MIB, Scratch, UpVolume, wait_until};
use crate::guest::Answer;
use crate::stories::{Story, nothing, tell};
use crate::to_kernel::is_settled;
use crate::{A, B, check, engine_or_skip, scrub_and_down, write};

const DIRECTION: &str = "degraded, half rebuilt";

#[test]
fn degraded_and_half_rebuilt() {
    let Some(engine) = engine_or_skip() else { return };
    tell(engine, DIRECTION, STORIES);
}

const STORIES: &[Story] = &[
    Story {
        id: "kernel-fails-one",
        images: 2,
        begin: nothing,
        first: KERNEL_FAILS_ONE_OF_RAID1,
        crash: false,
        middle: stale_is_left_out_and_added,
        second: WHOLE,
        quick: false,
        shows: "the kernel failed a member and wrote; braid left the stale one out, added it: 0 mismatches",
    },
    Story {
        id: "kernel-fails-one-bitmap",
        images: 4,
        begin: nothing,
        first: KERNEL_FAILS_ONE_OF_RAID10,
        crash: false,
        middle: stale_is_left_out_and_re_added,
        second: WHOLE,
        quick: true,
        shows: "raid10, bitmap: the same, re-added by the bitmap: 0 mismatches",
    },
    Story {
        id: "braid-fails-one",
        images: 2,
        begin: |scratch, story| fail(scratch, story, &["--level=raid1", "--bitmap=none"], &[1]),
        first: KERNEL_ADDS,
        crash: false,
        middle: is_whole,
        second: "",
        quick: false,
        shows: "braid failed a member and wrote; the kernel left it out, added it: 0 mismatches",
    },
    Story {
        id: "braid-fails-one-bitmap",
        images: 2,
        begin: |scratch, story| fail(scratch, story, &["--level=raid1", "--bitmap=64K"], &[1]),
        first: KERNEL_RE_ADDS,
        crash: false,
        middle: is_whole,
        second: "",
        quick: false,
        shows: "the same with a bitmap: the kernel re-added it by braid's bits: 0 mismatches",
    },
    Story {
        id: "braid-stops-recovery",
        images: 2,
        begin: |scratch, story| {
            stop_a_recovery(scratch, story, &["--level=raid1", "--bitmap=none"]);
        },
        first: KERNEL_GOES_ON_WITH_RECOVERY,
        crash: false,
        middle: is_recovered,
        second: "",
        quick: true,
        shows: "braid stopped in a recovery; the kernel went on from there: 0 mismatches",
    },
    Story {
        id: "kernel-stops-recovery",
        images: 2,
        begin: nothing,
        first: KERNEL_STOPS_A_RECOVERY,
        crash: false,
        middle: goes_on_with_recovery,
        second: RECOVERED,
        quick: true,
        shows: "the kernel stopped in a recovery; braid went on from there: 0 mismatches",
    },
    Story {
        id: "kernel-stops-resync",
        images: 2,
        begin: nothing,
        first: KERNEL_STOPS_A_RESYNC,
        crash: false,
        middle: goes_on_with_resync,
        second: RECOVERED,
        quick: false,
        shows: "the kernel stopped in a resync; braid went on from there: 0 mismatches",
    },
];

const KERNEL_FAILS_ONE_OF_RAID1: &str = "
    create --level=1 --raid-devices=2 --bitmap=none ${MEMBERS[*]}
    fill a
    settle
    mdadm \"$MD\" --fail \"${MEMBERS[1]}\"
    fill b 0 1048576
    stop";

const KERNEL_FAILS_ONE_OF_RAID10: &str = "
    create --level=10 --raid-devices=4 --chunk=64 --bitmap=internal --bitmap-chunk=64K ${MEMBERS[*]}
    fill a
    settle
    mdadm \"$MD\" --fail \"${MEMBERS[1]}\"
    fill b 0 1048576
    stop";

/// All members, the first MiB of `b`, the rest of `a`.
pub(crate) const WHOLE: &str = "
    assemble
    [ $(<$SYS/degraded) = 0 ]
    [ $(action) = idle ]
    same b 0 1048576
    same a 1048576 $(($(size) - 1048576))
    check
    stop";

pub(crate) const RECOVERED: &str = "
    assemble
    [ $(<$SYS/degraded) = 0 ]
    [ $(action) = idle ]
    same a
    check
    stop";

/// A member that failed under braid is stale: mdadm starts the array without it.
pub(crate) const KERNEL_ADDS: &str = "
    assemble --run
    [ $(<$SYS/degraded) = 1 ]
    same b 0 1048576
    mdadm --zero-superblock \"${MEMBERS[1]}\"
    mdadm \"$MD\" --add \"${MEMBERS[1]}\"
    whole
    same b 0 1048576
    same a 1048576 $(($(size) - 1048576))
    check
    stop";

const KERNEL_RE_ADDS: &str = "
    assemble --run
    [ $(<$SYS/degraded) = 1 ]
    same b 0 1048576
    mdadm \"$MD\" --re-add \"${MEMBERS[1]}\"
    whole
    same b 0 1048576
    same a 1048576 $(($(size) - 1048576))
    check
    stop";

pub(crate) const KERNEL_GOES_ON_WITH_RECOVERY: &str = "
    say offset $(mdadm --examine \"${MEMBERS[1]}\" | sed -n 's/.*Recovery Offset : \\([0-9]*\\) .*/\\1/p')
    speed 100
    assemble
    say start $(<$SYS/dev-${MEMBERS[1]##*/}/recovery_start)
    speed 200000
    whole
    say action $(action)
    same a
    check
    stop";

const KERNEL_STOPS_A_RECOVERY: &str = "
    create --level=1 --raid-devices=2 --bitmap=none \"${MEMBERS[0]}\" missing
    fill a
    speed 1000
    mdadm \"$MD\" --add \"${MEMBERS[1]}\"
    reach 4096
    speed 10
    mdadm --stop \"$MD\"
    speed 200000
    mdadm --examine \"${MEMBERS[1]}\"
    detach";

const KERNEL_STOPS_A_RESYNC: &str = "
    speed 10
    create --level=1 --raid-devices=2 --bitmap=none ${MEMBERS[*]}
    fill a
    speed 1000
    reach 4096
    speed 10
    mdadm --stop \"$MD\"
    speed 200000
    mdadm --examine \"${MEMBERS[0]}\"
    detach";

/// The array of a volume that has one.
pub(crate) fn array(volume: &UpVolume<'_>) -> serde_json::Value {
    volume.status()["arrays"][0].clone()
}

#[track_caller]
fn assert_all_in_sync(volume: &UpVolume<'_>, story: &Story) {
    assert_eq!(array(volume)["in_sync"], serde_json::json!(vec![true; story.images]));
}

/// The content of a superblock, as in `braid examine --json`.
pub(crate) fn examine(scratch: &Scratch, image: &str) -> serde_json::Value {
    let output = scratch.run(&["examine", "--json", image]).ok();
    output.json()["members"][0]["superblocks"][0].clone()
}

pub(crate) fn up<'a>(scratch: &'a Scratch, story: &Story) -> UpVolume<'a> {
    // One that braid made is known already.
    match scratch.config_file(story.id).exists() {
        true => scratch.up(story.id, &["--attach", "none"]),
        false => scratch.up(&story.stack(), &["--name", story.id, "--attach", "none"]),
    }
}

pub(crate) fn wait_until_in_sync(volume: &UpVolume<'_>) {
    wait_until("all members to be in sync", || {
        let array = array(volume);
        let in_sync =
            array["in_sync"].as_array().is_some_and(|all| all.iter().all(|one| one == true));
        in_sync && is_settled(volume)
    });
}

pub(crate) fn check_first_mib_of_b(volume: &UpVolume<'_>) {
    let mut client = volume.client();
    let size = client.size();
    check(&mut client, B, 0, MIB);
    check(&mut client, A, MIB, size - MIB);
}

/// Starts with the stale member given, and answers with the volume that has left it out.
fn without_the_stale<'a>(scratch: &'a Scratch, story: &Story) -> UpVolume<'a> {
    let volume = up(scratch, story);
    let in_sync = array(&volume)["in_sync"].clone();
    assert_eq!(in_sync[1], false, "the stale member takes no part: {}", array(&volume));
    check_first_mib_of_b(&volume);
    volume
}

fn stale_is_left_out_and_added(scratch: &Scratch, story: &Story, _: &Answer) {
    let volume = without_the_stale(scratch, story);
    scratch.run(&["member", "add", story.id, &story.image(1)]).ok();
    wait_until_in_sync(&volume);
    check_first_mib_of_b(&volume);
    volume.down();
}

fn stale_is_left_out_and_re_added(scratch: &Scratch, story: &Story, _: &Answer) {
    let volume = up(scratch, story);
    // By the bitmap it comes back without being told to, if it is among the members.
    if array(&volume)["in_sync"][1] == false && array(&volume)["job"].is_null() {
        scratch.run(&["member", "re-add", story.id, &story.image(1)]).ok();
    }
    wait_until_in_sync(&volume);
    check_first_mib_of_b(&volume);
    volume.down();
}

fn create(scratch: &Scratch, story: &Story, options: &[&str], members: &[String]) {
    scratch.braid().args(["create", story.id]).args(options).args(members).run().ok();
}

/// Fails these images of an array that holds A, and writes a MiB of B.
pub(crate) fn fail(scratch: &Scratch, story: &Story, options: &[&str], images: &[usize]) {
    create(scratch, story, options, &story.names());
    let volume = scratch.up(story.id, &["--attach", "none"]);
    let mut client = volume.client();
    let size = client.size();
    write(&mut client, A, 0, size);
    wait_until_in_sync(&volume);
    for &image in images {
        scratch.run(&["member", "fail", story.id, &story.image(image)]).ok();
    }
    write(&mut client, B, 0, MIB);
    drop(client);
    volume.down();
}

pub(crate) fn is_whole(scratch: &Scratch, story: &Story, _: &Answer) {
    let volume = up(scratch, story);
    assert_all_in_sync(&volume, story);
    check_first_mib_of_b(&volume);
    scrub_and_down(scratch, volume);
}

/// Stops a recovery of the second image midway.
pub(crate) fn stop_a_recovery(scratch: &Scratch, story: &Story, options: &[&str]) {
    let mut members = story.names();
    members[1] = "missing".into();
    create(scratch, story, options, &members);
    let volume = scratch.up(story.id, &["--attach", "none"]);
    let mut client = volume.client();
    let size = client.size();
    write(&mut client, A, 0, size);
    drop(client);
    // raid6 that lacks a member has a parity to make first.
    wait_until("the end of the resync", || is_settled(&volume));
    scratch.run(&["speed", story.id, "--min", "1M", "--max", "1M"]).ok();
    scratch.run(&["member", "add", story.id, &story.image(1)]).ok();
    wait_until("a part of the recovery", || {
        array(&volume)["job"]["done_bytes"].as_u64().is_some_and(|done| done > MIB)
    });
    volume.down();
    let superblock = examine(scratch, &story.image(1));
    let offset = superblock["recovery_offset_bytes"].as_u64();
    assert!(offset.is_some_and(|offset| 0 < offset && offset < size), "{superblock}");
}

pub(crate) fn is_recovered(scratch: &Scratch, story: &Story, answer: &Answer) {
    let (offset, start) = (answer.number("offset"), answer.number("start"));
    assert_eq!(answer.get("action"), "recover", "what the kernel did of itself");
    assert!(0 < offset && offset <= start, "recovery from {start}, not from {offset} sectors on");
    let volume = up(scratch, story);
    assert_all_in_sync(&volume, story);
    scrub_and_down(scratch, volume);
}

pub(crate) fn goes_on_with_recovery(scratch: &Scratch, story: &Story, _: &Answer) {
    let superblock = examine(scratch, &story.image(1));
    let offset = superblock["recovery_offset_bytes"].as_u64();
    assert!(offset.is_some_and(|offset| offset > 0), "the kernel stopped it midway: {superblock}");
    goes_on(scratch, story);
}

pub(crate) fn goes_on_with_resync(scratch: &Scratch, story: &Story, _: &Answer) {
    let superblock = examine(scratch, &story.image(0));
    let offset = superblock["resync_offset_bytes"].as_u64();
    assert!(offset.is_some_and(|offset| offset > 0), "the kernel stopped it midway: {superblock}");
    goes_on(scratch, story);
}

fn goes_on(scratch: &Scratch, story: &Story) {
    assert_begins_late(scratch, story);
    let volume = up(scratch, story);
    wait_until_in_sync(&volume);
    let mut client = volume.client();
    let size = client.size();
    check(&mut client, A, 0, size);
    drop(client);
    scrub_and_down(scratch, volume);
}

/// Shows, on copies of the members, that what the kernel had done is not done again: what is
/// wrong there stays wrong.
fn assert_begins_late(scratch: &Scratch, story: &Story) {
    let copies: Vec<String> = story.names().iter().map(|name| format!("copy-of-{name}")).collect();
    for (name, copy) in story.names().iter().zip(&copies) {
        std::fs::copy(scratch.join(name), scratch.join(copy)).expect("room for it");
    }
    let data_offset =
        examine(scratch, &copies[1])["data_offset_bytes"].as_u64().expect("it has one");
    let place = data_offset as usize + 64 * 1024;
    scratch.patch(&copies[1], place as u64, &[0xee; 512]);
    let stack = format!("md({})", copies.join(", "));
    let volume = scratch.up(&stack, &["--name", "copies", "--attach", "none"]);
    wait_until_in_sync(&volume);
    volume.down();
    std::fs::remove_file(scratch.config_file("copies")).expect("it was remembered");
    let after = scratch.read(&copies[1]);
    assert_eq!(after[place..][..512], [0xee; 512], "it was copied again");
}
