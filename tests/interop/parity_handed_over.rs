//! Arrays with parity that lack members, or have one that is half filled, passed from the kernel to braid and
//! back.
//!
//! The same as with copies (`handed_over`), but a missing member costs more: its content is in the others'
//! parity, and a program that writes meanwhile writes only that.

use crate::common::Scratch;
use crate::engine_or_skip;
use crate::guest::Answer;
use crate::handed_over::{
    KERNEL_ADDS, KERNEL_GOES_ON_WITH_RECOVERY, RECOVERED, WHOLE, array, check_first_mib_of_b, fail,
    goes_on_with_recovery, goes_on_with_resync, is_recovered, is_whole, stop_a_recovery, up,
    wait_until_in_sync,
};
use crate::scrub_and_down;
use crate::stories::{Story, nothing, tell};

const DIRECTION: &str = "parity: degraded, half rebuilt";

#[test]
fn parity_degraded_and_half_rebuilt() {
    if crate::is_too_slow() {
        return;
    }
    let Some(engine) = engine_or_skip() else { return };
    tell(engine, DIRECTION, STORIES);
}

const STORIES: &[Story] = &[
    Story {
        id: "kernel-fails-one-raid5",
        images: 3,
        begin: nothing,
        first: "
            create --level=5 --raid-devices=3 --chunk=64 --bitmap=none ${MEMBERS[*]}
            fill a
            settle
            mdadm \"$MD\" --fail \"${MEMBERS[1]}\"
            fill b 0 1048576
            stop",
        crash: false,
        middle: stale_are_left_out_and_added,
        second: WHOLE,
        quick: true,
        shows: "the kernel failed a member and wrote; braid left the stale one out, added it: 0 mismatches",
    },
    Story {
        id: "kernel-fails-two-raid6",
        images: 5,
        begin: nothing,
        first: "
            create --level=6 --raid-devices=5 --chunk=64 --bitmap=none ${MEMBERS[*]}
            fill a
            settle
            mdadm \"$MD\" --fail \"${MEMBERS[1]}\" --fail \"${MEMBERS[3]}\"
            fill b 0 1048576
            stop",
        crash: false,
        middle: stale_are_left_out_and_added,
        second: WHOLE,
        quick: false,
        shows: "the kernel failed two members and wrote; braid left both out, added them: 0 mismatches",
    },
    Story {
        id: "braid-fails-one-raid4",
        images: 3,
        begin: |scratch, story| fail(scratch, story, &["--level=raid4", "--chunk=64K"], &[1]),
        first: KERNEL_ADDS,
        crash: false,
        middle: is_whole,
        second: "",
        quick: false,
        shows: "braid failed a member and wrote; the kernel left it out, added it: 0 mismatches",
    },
    Story {
        id: "braid-fails-one-raid5-ppl",
        images: 3,
        begin: |scratch, story| {
            fail(scratch, story, &["--level=raid5", "--chunk=64K", "--consistency=ppl"], &[1]);
        },
        first: KERNEL_ADDS,
        crash: false,
        middle: is_whole,
        second: "",
        quick: true,
        shows: "the same with a partial parity log: 0 mismatches",
    },
    Story {
        id: "braid-fails-two-raid6",
        images: 5,
        begin: |scratch, story| fail(scratch, story, &["--level=raid6", "--chunk=64K"], &[1, 3]),
        first: "
            assemble --run
            [ $(<$SYS/degraded) = 2 ]
            same b 0 1048576
            mdadm --zero-superblock \"${MEMBERS[1]}\" \"${MEMBERS[3]}\"
            mdadm \"$MD\" --add \"${MEMBERS[1]}\" \"${MEMBERS[3]}\"
            settle
            # One after the other, if the first was begun with before the second came.
            pause 1
            whole
            same b 0 1048576
            same a 1048576 $(($(size) - 1048576))
            check
            stop",
        crash: false,
        middle: is_whole,
        second: "",
        quick: false,
        shows: "braid failed two members and wrote; the kernel left them out, added them: 0 mismatches",
    },
    Story {
        id: "braid-stops-recovery-raid5",
        images: 3,
        begin: |scratch, story| {
            stop_a_recovery(
                scratch,
                story,
                &["--level=raid5", "--chunk=64K", "--consistency=resync"],
            );
        },
        first: KERNEL_GOES_ON_WITH_RECOVERY,
        crash: false,
        middle: is_recovered,
        second: "",
        quick: true,
        shows: "braid stopped in a recovery; the kernel went on from there: 0 mismatches",
    },
    Story {
        id: "braid-stops-recovery-raid6",
        images: 4,
        begin: |scratch, story| {
            stop_a_recovery(scratch, story, &["--level=raid6", "--chunk=64K", "--layout=ra"]);
        },
        first: KERNEL_GOES_ON_WITH_RECOVERY,
        crash: false,
        middle: is_recovered,
        second: "",
        quick: false,
        shows: "right-asymmetric, the same: 0 mismatches",
    },
    Story {
        id: "kernel-stops-recovery-raid6",
        images: 4,
        begin: nothing,
        first: "
            create --level=6 --raid-devices=4 --chunk=64 --bitmap=none \\
                \"${MEMBERS[0]}\" missing \"${MEMBERS[2]}\" \"${MEMBERS[3]}\"
            fill a
            settle
            speed 1000
            mdadm \"$MD\" --add \"${MEMBERS[1]}\"
            reach 4096
            speed 10
            mdadm --stop \"$MD\"
            speed 200000
            mdadm --examine \"${MEMBERS[1]}\"
            detach",
        crash: false,
        middle: goes_on_with_recovery,
        second: RECOVERED,
        quick: true,
        shows: "the kernel stopped in a recovery; braid went on from there: 0 mismatches",
    },
    Story {
        id: "kernel-stops-resync-raid6",
        images: 4,
        begin: nothing,
        first: "
            speed 10
            create --level=6 --raid-devices=4 --chunk=64 --bitmap=none ${MEMBERS[*]}
            fill a
            speed 1000
            reach 4096
            speed 10
            mdadm --stop \"$MD\"
            speed 200000
            mdadm --examine \"${MEMBERS[0]}\"
            detach",
        crash: false,
        middle: goes_on_with_resync,
        second: RECOVERED,
        quick: false,
        shows: "the kernel stopped in a resync; braid went on from there: 0 mismatches",
    },
];

/// The members that the kernel failed take no part, and come back as if they were new.
fn stale_are_left_out_and_added(scratch: &Scratch, story: &Story, _: &Answer) {
    let volume = up(scratch, story);
    let in_sync = array(&volume)["in_sync"].clone();
    let is_stale = |image: &usize| in_sync[*image] == false;
    let stale: Vec<usize> = (0..story.images).filter(is_stale).collect();
    let failed: &[usize] = if story.images == 3 { &[1] } else { &[1, 3] };
    assert_eq!(stale, failed, "members that take no part: {}", array(&volume));
    check_first_mib_of_b(&volume);
    for image in stale {
        scratch.run(&["member", "add", story.id, &story.image(image)]).ok();
    }
    wait_until_in_sync(&volume);
    check_first_mib_of_b(&volume);
    scrub_and_down(scratch, volume);
}
