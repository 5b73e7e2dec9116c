//! Bitmaps that braid gave arrays at work, other chunks, or none; and what the kernel makes of them.

use crate::common::Scratch;
use crate::guest::Answer;
use crate::stories::{Story, tell};
use crate::to_kernel::is_settled;
use crate::{A, B, check, engine_or_skip, scrub_and_down, write};

const DIRECTION: &str = "bitmaps of arrays at work";

#[test]
fn bitmaps_that_come_and_go() {
    let Some(engine) = engine_or_skip() else { return };
    tell(engine, DIRECTION, STORIES);
}

const STORIES: &[Story] = &[
    Story {
        id: "braid-adds-bitmap-raid1",
        images: 2,
        begin: |scratch, story| add(scratch, story, &["--level=raid1"], "64K"),
        first: KERNEL_FINDS_64K,
        crash: false,
        middle: takes_it_away,
        second: KERNEL_FINDS_NONE,
        quick: true,
        shows: "braid added a bitmap and gave it other chunks; the kernel used it and missed writes by it; braid \
                took it away: 0 mismatches",
    },
    Story {
        id: "braid-adds-bitmap-raid1-0.90",
        images: 2,
        begin: |scratch, story| add(scratch, story, &["--level=raid1", "--metadata=0.90"], "64K"),
        first: KERNEL_FINDS_64K,
        crash: false,
        middle: takes_it_away,
        second: KERNEL_FINDS_NONE,
        quick: false,
        shows: "the same, version 0.90",
    },
    Story {
        id: "braid-adds-bitmap-raid1-1.0",
        images: 2,
        begin: |scratch, story| add(scratch, story, &["--level=raid1", "--metadata=1.0"], "64K"),
        first: KERNEL_FINDS_64K,
        crash: false,
        middle: takes_it_away,
        second: KERNEL_FINDS_NONE,
        quick: false,
        shows: "the same, version 1.0",
    },
    Story {
        id: "braid-adds-bitmap-raid5-1.1",
        images: 3,
        begin: |scratch, story| {
            let policy = ["--level=raid5", "--metadata=1.1", "--consistency=resync"];
            add(scratch, story, &policy, "64K");
        },
        first: KERNEL_FINDS_64K,
        crash: false,
        middle: takes_it_away,
        second: KERNEL_FINDS_NONE,
        quick: false,
        shows: "the same, raid5, version 1.1",
    },
];

/// The kernel reads and keeps the bitmap: a member that it fails, and adds again, gets what it missed.
const KERNEL_FINDS_64K: &str = "
    assemble
    [ $(<$SYS/degraded) = 0 ]
    [ $(<$SYS/bitmap/chunksize) = 65536 ]
    [ $(action) = idle ]
    same a
    mdadm --examine-bitmap \"${MEMBERS[1]}\" | grep -q 'Chunksize : 64 KB'
    mdadm \"$MD\" --fail \"${MEMBERS[1]}\"
    fill b 0 1048576
    mdadm \"$MD\" --remove \"${MEMBERS[1]}\"
    mdadm \"$MD\" --re-add \"${MEMBERS[1]}\"
    whole
    same b 0 1048576
    check
    stop";

const KERNEL_FINDS_NONE: &str = "
    assemble
    [ $(<$SYS/degraded) = 0 ]
    [ \"$(<$SYS/bitmap/location)\" = none ]
    [ $(action) = idle ]
    same b
    check
    stop";

/// A new array, up, without a bitmap; one is added, gets other chunks, and clients write meanwhile.
fn add(scratch: &Scratch, story: &Story, create: &[&str], chunk: &str) {
    let (id, names) = (story.id, story.names());
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let arguments = [&["create", id, "--bitmap=none", "--assume-clean"], create, &names].concat();
    scratch.run(&arguments).ok();
    let volume = scratch.up(id, &["--attach", "none"]);
    let mut client = volume.client();
    let size = client.size();
    write(&mut client, A, 0, size / 2);
    scratch.run(&["grow", id, "--bitmap", "16K"]).ok();
    write(&mut client, A, size / 2, size - size / 2);
    scratch.run(&["grow", id, "--bitmap", chunk]).ok();
    write(&mut client, A, 0, size / 4);
    volume.down();
}

/// braid finds what the kernel wrote, and takes the bitmap away beside a client.
fn takes_it_away(scratch: &Scratch, story: &Story, _: &Answer) {
    let volume = scratch.up(story.id, &["--attach", "none"]);
    let mut client = volume.client();
    let size = client.size();
    check(&mut client, B, 0, 1 << 20);
    crate::common::wait_until("the end of all passes", || is_settled(&volume));
    write(&mut client, B, 0, size / 2);
    scratch.run(&["grow", story.id, "--bitmap", "none"]).ok();
    assert!(volume.status()["arrays"][0]["bitmap_chunk_bytes"].is_null(), "{}", volume.status());
    write(&mut client, B, size / 2, size - size / 2);
    drop(client);
    scrub_and_down(scratch, volume);
}
