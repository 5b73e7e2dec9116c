//! Crashes of arrays with parity, with and without members lost in them; and logs that are damaged, or another
//! array's.

use std::sync::atomic::{AtomicU64, Ordering};

use braid_md::stripe_log::{self, BLOCK, Head, Part, Record};
use braid_md::{Resync, ppl};

use crate::common::{Ledger, MIB, Random, Scratch, UpVolume, drivers, wait_until};
use crate::parity::{
    LARGE, MEMBERS, SMALL, array, array_of, refuses_up, size_of, up, wait_until_whole,
};
use crate::{FAILED, REFUSED, SIZE, edit, refuses, superblock};

/// Writes until the volume's process is killed, after a seeded count of acknowledged writes.
fn kill_under_load(volume: UpVolume<'_>, ledger: &mut Ledger, random: &mut Random) {
    let mut client = volume.client();
    let done = AtomicU64::new(0);
    let moment = 20 + random.below(200);
    std::thread::scope(|scope| {
        scope.spawn(|| ledger.write_to_the_end(&mut client, &done));
        wait_until("the moment", || done.load(Ordering::Relaxed) >= moment);
        volume.kill();
    });
}

/// The output of the volume's processes.
fn log_of(scratch: &Scratch, name: &str) -> String {
    let path = scratch.run_folder().join(format!("{name}.log"));
    std::fs::read_to_string(path).unwrap_or_default()
}

/// Crashes repeatedly with all members present: acknowledged data are there, data and parity agree at once, and no
/// resync is needed.
fn is_whole_after_crashes(options: &str, members: usize, consistency: &str) {
    let scratch = array(options, members);
    let mut random = Random::new(members as u64);
    let mut ledger: Option<Ledger> = None;
    let drivers = drivers();
    for round in 0..4 {
        let driver = drivers[round % drivers.len()];
        let volume = up(&scratch, "home", &["--io", driver]);
        let array = &volume.status()["arrays"][0];
        assert_eq!(array["consistency"], consistency, "{array}");
        assert!(array["resync_from_bytes"].is_null(), "{array}");
        let ledger = ledger.get_or_insert_with(|| Ledger::new(size_of(&volume), 7));
        ledger.check(&mut volume.client());
        let scrubbed = scratch.run(&["scrub", "home", "--wait"]).ok();
        assert!(scrubbed.out.contains("data and parity agree"), "{scrubbed}");
        kill_under_load(volume, ledger, &mut random);
    }
    let volume = up(&scratch, "home", &[]);
    assert!(log_of(&scratch, "home").contains("writes were made good by the log"));
    ledger.expect("books").check(&mut volume.client());
    let scrubbed = scratch.run(&["scrub", "home", "--wait"]).ok();
    assert!(scrubbed.out.contains("data and parity agree"), "{scrubbed}");
    volume.down();
}

#[test]
fn partial_parity_keeps_raid5_whole() {
    is_whole_after_crashes("raid5", 3, "ppl");
}

#[test]
fn the_stripe_log_keeps_raid4_whole() {
    is_whole_after_crashes("raid4", 3, "log");
}

#[test]
fn the_stripe_log_keeps_raid5_whole() {
    is_whole_after_crashes("raid5 --consistency log", 4, "log");
}

#[test]
fn the_stripe_log_keeps_raid6_whole() {
    is_whole_after_crashes("raid6", 4, "log");
}

/// Members are lost in a crash: the others have all acknowledged data, and with `is_atomic` each other write is there
/// whole or not at all.
fn survives_a_crash_without(
    options: &str,
    chunk: &str,
    members: usize,
    lost: &[usize],
    is_atomic: bool,
) {
    for seed in 0..4 {
        let scratch = array_of(options, chunk, members);
        let mut random = Random::new(seed);
        let volume = up(&scratch, "home", &[]);
        let mut ledger = Ledger::new(size_of(&volume), seed);
        kill_under_load(volume, &mut ledger, &mut random);
        let left: Vec<String> = (0..members)
            .filter(|index| !lost.contains(index))
            .map(|index| format!("./{}", MEMBERS[index]))
            .collect();
        let stack = format!("md({})", left.join(", "));
        let volume = up(&scratch, &stack, &["--name", "rest", "--degraded"]);
        let log = log_of(&scratch, "rest");
        assert!(log.contains("writes were made good by the log"), "{log}");
        match is_atomic {
            true => ledger.check(&mut volume.client()),
            false => ledger.check_acknowledged(&mut volume.client()),
        }
        // The member that replaces it gets the same contents.
        for index in lost {
            let path = format!("{}.new", MEMBERS[*index]);
            scratch.sparse(&path, SIZE);
            scratch.run(&["member", "add", "rest", &path]).ok();
        }
        wait_until_whole(&volume);
        let scrubbed = scratch.run(&["scrub", "rest", "--wait"]).ok();
        assert!(scrubbed.out.contains("data and parity agree"), "{scrubbed}");
        ledger.check(&mut volume.client());
        volume.down();
    }
}

#[test]
fn raid5_with_partial_parity_loses_a_member_in_a_crash() {
    // What was being written to the lost member may be torn; see docs/write-hole.md.
    survives_a_crash_without("raid5", SMALL, 3, &[1], false);
    survives_a_crash_without("raid5", LARGE, 4, &[3], false);
}

#[test]
fn raid5_with_the_stripe_log_loses_a_member_in_a_crash() {
    survives_a_crash_without("raid5 --consistency log", LARGE, 3, &[2], true);
    // For whole stripes, the log has only their place.
    survives_a_crash_without("raid5 --consistency log", SMALL, 3, &[0], false);
}

#[test]
fn raid4_loses_its_parity_or_data_in_a_crash() {
    survives_a_crash_without("raid4", SMALL, 4, &[3], true);
    survives_a_crash_without("raid4", LARGE, 4, &[0], true);
}

#[test]
fn raid6_loses_two_members_in_a_crash() {
    survives_a_crash_without("raid6", LARGE, 5, &[0, 3], true);
    survives_a_crash_without("raid6", SMALL, 5, &[1, 2], false);
}

#[test]
fn without_a_log_nobody_vouches_for_what_is_missing() {
    for options in ["raid5 --consistency resync", "raid6 --bitmap 64K"] {
        let members = if options.starts_with("raid5") { 3 } else { 4 };
        let scratch = array(options, members);
        let volume = up(&scratch, "home", &[]);
        let mut ledger = Ledger::new(size_of(&volume), 5);
        let status = scratch.run(&["status", "home"]).ok();
        assert!(status.out.contains("crash: write hole open: after a crash"), "{status}");
        kill_under_load(volume, &mut ledger, &mut Random::new(5));
        let names: Vec<String> =
            MEMBERS[1..members].iter().map(|name| format!("./{name}")).collect();
        let stack = format!("md({})", names.join(", "));
        let parts = ["parity may not match the data (write hole)", "--force", "--read-only"];
        let options = ["--name", "rest", "--degraded", "--attach", "none"];
        // It may still hold its members for a moment.
        wait_until("the members to be free", || {
            let output = scratch.run(&[&["up", stack.as_str()], &options[..]].concat());
            let is_free = !output.err.contains("in use");
            if is_free {
                output.fails(REFUSED, &parts);
            }
            is_free
        });
        let mut assemble = vec!["assemble", "--as", "rest"];
        assemble.extend(names.iter().map(String::as_str));
        refuses(&scratch, &assemble, REFUSED, &["(write hole)", "next:"]);
        assemble.push("--force");
        let forced = scratch.run(&assemble).ok();
        assert!(forced.out.contains("risk: what is computed in place"), "{forced}");
        let volume = up(&scratch, "rest", &[]);
        volume.client().read(0, 4096).expect("a read");
        volume.down();
    }
}

#[test]
fn newcomers_have_the_log_of_the_others() {
    for options in ["raid6", "raid5", "raid5 --metadata 1.0"] {
        let scratch = array(options, 4);
        let volume = up(&scratch, "home", &[]);
        let mut ledger = Ledger::new(size_of(&volume), 3);
        scratch.sparse("small.img", MIB + MIB / 2);
        // The offset and size of its data depend on the log.
        let output = scratch.run(&["member", "add", "home", "small.img"]);
        output.fails(REFUSED, &["small.img", " bytes"]);
        scratch.run(&["member", "fail", "home", "b.img"]).ok();
        scratch.run(&["member", "add", "home", "e.img"]).ok();
        wait_until_whole(&volume);
        let examined = scratch.run(&["examine", "--json", "e.img"]).ok().json();
        let log = &examined["members"][0]["stripe_log"];
        let ours = superblock(&scratch, "e.img");
        assert_eq!(ours.ppl, superblock(&scratch, "a.img").ppl, "{options}");
        assert_eq!(log["area_bytes"].is_u64(), ours.ppl.is_none(), "{options}: {examined}");
        // The log of e.img is needed to reconstruct the lost members.
        kill_under_load(volume, &mut ledger, &mut Random::new(3));
        let rest = "md(./c.img, ./d.img, ./e.img)";
        let volume = up(&scratch, rest, &["--name", "rest", "--degraded"]);
        ledger.check_acknowledged(&mut volume.client());
        volume.down();
    }
}

/// Makes the array look as if a write was in flight when its process ended.
fn make_dirty(scratch: &Scratch, names: &[&str]) {
    for name in names {
        edit(scratch, name, |superblock| superblock.resync = Resync::From(0));
    }
}

#[test]
fn a_partial_parity_log_that_is_damaged() {
    let names = &MEMBERS[..3];
    let damaged = |offset, bytes: &[u8]| {
        let scratch = array("raid5", 3);
        make_dirty(&scratch, names);
        let before = superblock(&scratch, "a.img");
        let (log, _) = before.ppl.expect("a log");
        scratch.patch("a.img", before.super_offset + log.unsigned_abs() + offset, bytes);
        scratch
    };
    let up_rest = ["up", "md(./a.img, ./b.img)", "--name", "rest", "--degraded"];
    let scratch = damaged(0, &ppl::Header::empty(0x1234_5678).encode());
    let parts = ["(write hole)", "a.img: ", "signed 12345678", "--force"];
    refuses_up(&scratch, &up_rest, &parts);
    // The log of the missing member is not needed.
    let volume = up(&scratch, "md(./b.img, ./c.img)", &["--name", "others", "--degraded"]);
    volume.down();
    // A checksum is wrong if a crash came while the log was written: the logged write never began.
    let scratch = damaged(532, &[1, 2, 3, 4]);
    let volume = up(&scratch, up_rest[1], &up_rest[2..]);
    let text = log_of(&scratch, "rest");
    assert!(text.contains("passed over in the log: ") && text.contains("checksum"), "{text}");
    volume.down();
    // With all members there, all is resynchronised instead.
    let scratch = array("raid5", 3);
    make_dirty(&scratch, names);
    let before = superblock(&scratch, "a.img");
    let (log, _) = before.ppl.expect("a log");
    scratch.patch("a.img", before.super_offset + log.unsigned_abs() + 532, &[1, 2, 3, 4]);
    let volume = up(&scratch, "home", &[]);
    let text = log_of(&scratch, "home");
    assert!(text.contains("the log cannot be used, all is resynchronised"), "{text}");
    assert!(text.contains("checksum"), "{text}");
    volume.down();
    // Members that are used as they are need no log.
    let scratch = array("raid5", 3);
    make_dirty(&scratch, names);
    scratch.patch("a.img", before.super_offset + log.unsigned_abs() + 532, &[1, 2, 3, 4]);
    scratch.run(&["assemble", "./a.img", "./b.img", "--force", "--as", "rest"]).ok();
    up(&scratch, "rest", &[]).down();
}

#[test]
fn a_stripe_log_of_another_array() {
    let scratch = array("raid6", 4);
    let ours = superblock(&scratch, "b.img");
    let place = stripe_log::place(&ours).expect("room for a log");
    let bytes = scratch.read("b.img");
    let block = &bytes[place.head as usize..][..BLOCK];
    let head = Head::parse(block, &ours.array_uuid, 1, place.room).expect("a head");
    let mut uuid = ours.array_uuid;
    uuid.0[0] ^= 1;
    for (other, why) in [
        (Head { array_uuid: uuid, ..head.clone() }, format!("the stripe log is of array {uuid}")),
        (Head { device_number: 3, ..head }, "the stripe log is of device number 3".to_owned()),
    ] {
        scratch.patch("b.img", place.head, &other.encode());
        let explained = scratch.run(&["examine", "--explain", "b.img"]).ok();
        assert!(explained.out.contains(&format!("not used: {why}")), "{explained}");
        let json = scratch.run(&["examine", "--json", "b.img"]).ok().json();
        let error = json["members"][0]["stripe_log"]["error"].to_string();
        assert!(error.contains(&why), "{json}");
        let volume = up(&scratch, "home", &[]);
        let status = volume.status();
        assert_eq!(status["arrays"][0]["consistency"], "resync", "{status}");
        let warning = status["warnings"].to_string();
        assert!(warning.contains("b.img has a log that is not used") && warning.contains(&why));
        volume.down();
        // The log of another array was not overwritten.
        assert!(scratch.read("b.img")[place.head as usize..][..BLOCK] == other.encode());
    }
    make_dirty(&scratch, &MEMBERS[..4]);
    let assemble = ["assemble", "a.img", "b.img", "c.img", "--plan"];
    let assembled = refuses(&scratch, &assemble, REFUSED, &["(write hole)"]);
    assert!(assembled.out.contains("log not used: ") && assembled.out.contains("device number 3"));
    let parts = ["(write hole)", "the stripe log is of device number 3, this is 1"];
    let up_rest = ["up", "md(./a.img, ./b.img, ./c.img)", "--name", "rest", "--degraded"];
    refuses_up(&scratch, &up_rest, &parts);
}

#[test]
fn a_record_that_makes_no_sense() {
    let scratch = array("raid6", 4);
    let ours = superblock(&scratch, "a.img");
    let place = stripe_log::place(&ours).expect("room for a log");
    let mut heads = Vec::new();
    for (number, name) in (0..).zip(&MEMBERS[..4]) {
        let block = scratch.read(name)[place.head as usize..][..BLOCK].to_vec();
        let head = Head::parse(&block, &ours.array_uuid, number, place.room).expect("a head");
        heads.push(Head { nonce: 7, tail: 1, ..head });
        scratch.patch(name, place.head, &heads[number as usize].encode());
    }
    // Sound, complete, and far behind the members' ends.
    let (payload, mut block) = ([5; 4096], [0; BLOCK]);
    Record {
        array_uuid: ours.array_uuid,
        device_number: 0,
        role: 0,
        nonce: 7,
        sequence: 1,
        tail: 1,
        participants: [0].into_iter().collect(),
        parts: vec![Part { offset: 1 << 40, len: 4096 }],
        payload_len: 4096,
        payload_checksum: Record::checksum_of([&payload[..]]),
    }
    .encode_into(&mut block);
    let ring = ours.data_offset - heads[0].area;
    scratch.patch("a.img", ring, &[block, payload].concat());
    make_dirty(&scratch, &MEMBERS[..4]);
    let before: Vec<_> = MEMBERS.iter().map(|name| scratch.read(name)).collect();
    let stack = "md(./a.img, ./b.img, ./c.img)";
    let up_rest = ["up", stack, "--name", "rest", "--degraded", "--attach", "none"];
    let parts = [
        "members are missing, and the log that would make it good cannot be used",
        "outside members of 1048576 bytes",
        "next: with the member that is missing; or, to copy what can be read, `braid assemble ",
    ];
    scratch.run(&up_rest).fails(FAILED, &parts);
    let after: Vec<_> = MEMBERS.iter().map(|name| scratch.read(name)).collect();
    assert!(before == after, "a member was changed");
    // It is not up, and leaves nothing behind.
    scratch.run(&["status", "rest"]).fails(FAILED, &["no volume called rest is up"]);
    let volume = up(&scratch, stack, &["--name", "look", "--read-only", "--degraded"]);
    let warnings = volume.status()["warnings"].to_string();
    assert!(warnings.contains("makes that good only when"), "{warnings}");
    volume.down();
}

#[test]
fn a_stripe_log_goes_with_its_superblock() {
    let scratch = array("raid6", 4);
    let ours = superblock(&scratch, "b.img");
    let head = stripe_log::place(&ours).expect("room for a log").head as usize;
    let before = scratch.read("b.img");
    let wiped = scratch.run(&["wipe", "b.img"]).ok();
    assert!(wiped.out.contains("the head of its stripe log at byte"), "{wiped}");
    assert!(scratch.read("b.img")[head..head + BLOCK] == [0; BLOCK]);
    scratch.run(&["undo"]).ok();
    assert!(scratch.read("b.img") == before);
}
