//! Members with bad-block logs: as long as md makes them, and as none makes them.

use braid_md::Features;

use crate::common::{MIB, Scratch};
use crate::{FAILED, REFUSED, edit, list_all_as_bad, list_as_bad, refuses, superblock};

/// An array of sparse members.
fn array(level: &str, names: &[&str], size: u64) -> Scratch {
    let scratch = Scratch::new();
    names.iter().for_each(|name| drop(scratch.sparse(name, size)));
    let create = ["create", "home", "--level", level, "--assume-clean", "--consistency"];
    let consistency = if level == "raid1" { "bitmap" } else { "resync" };
    scratch.run(&[&create[..], &[consistency], names].concat()).ok();
    scratch
}

/// Full logs, each entry as long as md makes them, on every copy: a start, and each status, goes over
/// 512 places. It went over a quarter of a million sectors, each with all those that were found before.
#[test]
fn full_logs_on_all_members_do_not_keep_an_array_from_starting() {
    for (level, names) in
        [("raid1", &["a.img", "b.img"][..]), ("raid5", &["a.img", "b.img", "c.img"])]
    {
        let scratch = array(level, names, 600 * MIB);
        for name in names {
            list_all_as_bad(&scratch, name, (0..512).map(|place| (place * MIB, MIB / 4)));
        }
        let volume = scratch.up("home", &["--attach", "none"]);
        let array = volume.status()["arrays"][0].clone();
        let lost = array["lost"].as_array().expect("places");
        let bytes: u64 = lost.iter().filter_map(|place| place[1].as_u64()).sum();
        let data = names.len() as u64 - u64::from(level == "raid5");
        let data = if level == "raid1" { 1 } else { data };
        assert_eq!(bytes, data * 512 * (MIB / 4), "{level}");
        volume.down();
    }
}

/// One entry of 2^32 times 512 bytes, or a place behind the member's end: the member is refused with
/// what is wrong, by all commands alike.
#[test]
fn a_log_that_no_md_writes_is_refused() {
    for (shift, entry, parts) in [
        (32, 1023, "the bad-block log's shift is 32: md writes 0, and at most 9 is accepted"),
        (9, 1 << 20 | 1, "beyond the member's 6291456 bytes"),
    ] {
        let scratch = array("raid1", &["a.img", "b.img"], 6 * MIB);
        for name in ["a.img", "b.img"] {
            let place = superblock(&scratch, name);
            let log = place.bad_block_log.expect("a place for a log");
            let start = place.super_offset.checked_add_signed(log.offset).expect("a place");
            let mut bytes = vec![0xff; 4096];
            bytes[..8].copy_from_slice(&u64::to_le_bytes(entry));
            scratch.patch(name, start, &bytes);
            edit(&scratch, name, |one| {
                one.features = one.features.union(Features::BAD_BLOCKS);
                one.bad_block_log = Some(braid_md::superblock::BadBlockLog { shift, ..log });
            });
        }
        let refused = [parts];
        scratch.run(&["up", "home", "--attach", "none"]).fails(REFUSED, &refused);
        refuses(&scratch, &["assemble", "a.img", "b.img", "--plan"], FAILED, &[parts, "next:"]);
        refuses(&scratch, &["examine", "a.img", "--badblocks"], FAILED, &refused);
    }
}

/// A place that no member can read is readable again as soon as it can be read from the disk; a place
/// that others have is rewritten from them.
#[test]
fn lists_are_emptied_by_writing_again_and_by_reading() {
    const AT: u64 = MIB;
    for (level, names, lost) in [
        ("raid1", &["a.img", "b.img"][..], 2),
        ("raid5", &["a.img", "b.img", "c.img"], 2),
        ("raid6", &["a.img", "b.img", "c.img", "d.img"], 3),
        ("raid10", &["a.img", "b.img", "c.img", "d.img"], 2),
    ] {
        let scratch = array(level, names, 8 * MIB);
        let volume = scratch.up("home", &["--attach", "none"]);
        let size = volume.status()["device"]["size_bytes"].as_u64().expect("a size");
        let written: Vec<u8> = (0..size).map(|at| (at / 512 * 7 + at) as u8).collect();
        let mut client = volume.client();
        for at in (0..size).step_by(MIB as usize) {
            let end = (at + MIB).min(size);
            client.write(at, &written[at as usize..end as usize], false).expect("a write");
        }
        client.flush().expect("a flush");
        drop(client);
        volume.down();
        // More than is redundant list the same rows, and one lists others beside.
        for name in &names[..lost] {
            list_as_bad(&scratch, name, AT, 64 << 10);
        }
        list_all_as_bad(&scratch, names[0], [(AT - (32 << 10), 16 << 10), (AT, 64 << 10)]);
        let volume = scratch.up("home", &["--attach", "none"]);
        let state = |volume: &crate::common::UpVolume<'_>| volume.status()["state"].clone();
        assert_eq!(state(&volume), "failing", "{level}");
        // Of members that differ there, each keeps what it has.
        let retested = scratch.run(&["member", "retest", "home"]).ok();
        let parts = [
            "16384 bytes were written again".to_owned(),
            format!("{} bytes, which no member could give", lost * (64 << 10)),
        ];
        parts.iter().for_each(|part| assert!(retested.out.contains(part), "{level}: {retested}"));
        assert_eq!(state(&volume), "online", "{level}");
        let again = scratch.run(&["member", "retest", "home"]).ok();
        assert!(again.out.contains("no bad-block log lists anything"), "{level}: {again}");
        let mut client = volume.client();
        for at in (0..size).step_by(MIB as usize) {
            let len = MIB.min(size - at);
            let read = client.read(at, len as u32).expect("a read");
            assert!(read == written[at as usize..][..len as usize], "{level}: {at}");
        }
        drop(client);
        scratch.run(&["scrub", "home", "--wait"]).ok();
        volume.down();
        // The lists on the members are empty, too.
        scratch.up("home", &["--attach", "none"]).down();
        for name in names {
            let listed = scratch.run(&["examine", "--badblocks", name]).ok();
            assert!(!listed.out.contains(" for "), "{level}: {listed}");
        }
    }
}
