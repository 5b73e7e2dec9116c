//! `holes(…)`: an array above reads a hole from the other members, sector by sector.

use super::common::{MIB, Scratch, Tool, skip_without};
use super::{CHUNK, MEMBER, array, cat, members, write_map};

/// The levels with the number of their members and of the members that they can do without.
const LEVELS: [(&str, usize, usize); 5] = [
    ("raid1(", 2, 1),
    ("raid5(chunk=4K, ", 3, 1),
    ("raid6(chunk=4K, ", 4, 2),
    ("raid10(chunk=4K, ", 4, 1),
    ("raid4(chunk=4K, ", 3, 1),
];

/// The stack in which each member has the map of its number, but for those that are missing.
fn holed(level: &str, count: usize, missing: &[usize]) -> String {
    let member = |one: usize| match missing.contains(&one) {
        true => "missing".to_owned(),
        false => format!("holes(./m{one}, map=./m{one}.map)"),
    };
    format!("{level}{})", (0..count).map(member).collect::<Vec<_>>().join(", "))
}

/// The sectors of a read-only volume that cannot be read.
fn lost_sectors(scratch: &Scratch, stack: &str, content: &[u8]) -> Vec<usize> {
    let volume = scratch.serve(stack, &["--read-only"]);
    let mut client = volume.client();
    assert!(client.is_read_only());
    let mut lost = Vec::new();
    for (index, expected) in content.chunks(512).enumerate() {
        match client.read(index as u64 * 512, 512) {
            Ok(bytes) => assert!(bytes == expected, "{stack}: sector {index}"),
            Err(_) => lost.push(index),
        }
    }
    drop(client);
    assert!(volume.stop().success());
    lost
}

#[test]
fn holes_that_do_not_coincide_are_read_from_the_others() {
    skip_without!("nbdcopy");
    for (level, count, redundancy) in LEVELS {
        let scratch = Scratch::new();
        let content = array(&scratch, level, count);
        let before = members(&scratch, count);
        // In every chunk each member has holes of one sector at its own places, and as many at each as can be borne.
        for one in 0..count {
            let of_chunk = |chunk: u64| {
                let places = (0..8u64).filter(move |place| {
                    (0..redundancy as u64).any(|more| (*place + more) % count as u64 == one as u64)
                });
                places.map(move |place| (chunk * CHUNK + place * 512, 512))
            };
            let holes: Vec<(u64, u64)> = (0..MEMBER / CHUNK).flat_map(of_chunk).collect();
            write_map(&scratch, &format!("m{one}.map"), MEMBER, &joined(&holes));
        }
        let stack = holed(level, count, &[]);
        assert!(cat(&scratch, &stack) == content, "{stack}");
        assert_eq!(lost_sectors(&scratch, &stack, &content), [0; 0], "{stack}");
        assert!(members(&scratch, count) == before, "{stack}: nothing is written");
    }
}

/// Neighbours are one hole.
fn joined(holes: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let mut joined: Vec<(u64, u64)> = Vec::new();
    for (start, length) in holes {
        match joined.last_mut() {
            Some((before, sum)) if *before + *sum == *start => *sum += length,
            _ => joined.push((*start, *length)),
        }
    }
    joined
}

#[test]
fn only_sectors_in_which_too_many_members_have_holes_are_lost() {
    skip_without!("nbdcopy");
    // The third sector of the sixth chunk is a hole of the first members, one more than can be borne; beside it
    // each of them has one of its own.
    let at = 5 * CHUNK + 2 * 512;
    for (level, count, redundancy) in LEVELS {
        for missing in [0, redundancy] {
            let scratch = Scratch::new();
            let content = array(&scratch, level, count);
            let before = members(&scratch, count);
            for one in 0..count as u64 {
                let own = (at + 512 + one * 512, 512);
                let holes = match one as usize <= redundancy {
                    true if missing == 0 => vec![(at, 512), own],
                    // The one member in place of those that are missing.
                    true => vec![(at, 512)],
                    false => vec![],
                };
                write_map(&scratch, &format!("m{one}.map"), MEMBER, &joined(&holes));
            }
            let stack = holed(level, count, &(0..missing).collect::<Vec<_>>());
            let lost = lost_sectors(&scratch, &stack, &content);
            // At most that sector of each member, in one row; a row has a parity or more, so not always all.
            assert!((1..=redundancy + 1).contains(&lost.len()), "{stack}: {lost:?}");
            assert!(lost.iter().all(|sector| sector % 8 == 2), "{stack}: {lost:?}");
            let data_of_row = content.len() as u64 / MEMBER;
            let is_there = |sector: &usize| {
                let chunk = *sector as u64 * 512 / CHUNK;
                (5 * data_of_row..6 * data_of_row).contains(&chunk)
            };
            assert!(lost.iter().all(is_there), "{stack}: {lost:?}");
            let failed = scratch.run(&["cat", &stack]);
            failed.fails(1, &["cannot read the volume at 0: Input/output error"]);
            assert!(members(&scratch, count) == before, "{stack}: nothing is written");
        }
    }
}

#[test]
fn a_hole_is_data_that_fails_though_the_image_has_none_there() {
    skip_without!("nbdinfo", "nbdcopy");
    let scratch = Scratch::new();
    scratch.sparse("a.img", MIB);
    write_map(&scratch, "a.map", MIB, &[(64 << 10, 4096)]);
    let volume = scratch.serve("holes(a.img, map=a.map)", &["--read-only"]);
    let extents = Tool::new("nbdinfo").args(["--map", "--json", volume.uri()]).run().ok().json();
    let is_data = |one: &&serde_json::Value| one["type"] == 0;
    let data: Vec<_> = extents.as_array().unwrap().iter().filter(is_data).collect();
    let [hole] = &data[..] else { panic!("{extents}") };
    assert_eq!((hole["offset"].as_u64(), hole["length"].as_u64()), (Some(64 << 10), Some(4096)));
    // A copy that skips what is not allocated would have zeroes there, and succeed.
    let copied = Tool::new("nbdcopy").arg(volume.uri()).arg(scratch.join("copy")).run();
    assert_ne!(copied.code(), 0, "{copied}");
    assert!(volume.stop().success());
}

/// A copy that ddrescue has not finished is shorter than its map, which has the size of the disk.
#[test]
fn a_copy_that_ended_too_early_has_a_hole_up_to_the_end_of_its_map() {
    let scratch = Scratch::new();
    scratch.file("whole.img", MIB, 1);
    let content = scratch.read("whole.img");
    let there = 600 << 10;
    std::fs::write(scratch.join("a.img"), &content[..there]).expect("a copy");
    write_map(&scratch, "a.map", MIB, &[(4096, 512), (there as u64, MIB - there as u64)]);
    let lost = lost_sectors(&scratch, "holes(./a.img, map=./a.map)", &content);
    let expected: Vec<usize> = [8].into_iter().chain(there / 512..content.len() / 512).collect();
    assert_eq!(lost, expected);
    let mirror = "raid1(holes(./a.img, map=./a.map), ./whole.img)";
    assert!(cat(&scratch, mirror) == content);
}

/// The place of a member that is lost: the others are read, and an array above that can do without it has all.
#[test]
fn the_place_of_a_lost_member_cannot_be_read() {
    let scratch = Scratch::new();
    for (name, seed) in [("a.img", 1), ("b.img", 2)] {
        scratch.file(name, MIB, seed);
    }
    let gap = vec![0; 64 << 10];
    let content = [scratch.read("a.img"), gap, scratch.read("b.img")].concat();
    let linear = "linear(./a.img, error(64K), ./b.img)";
    let expected: Vec<usize> = (2048..2048 + 128).collect();
    assert_eq!(lost_sectors(&scratch, linear, &content), expected);
    assert!(cat(&scratch, "raid1(error(1M), ./b.img)") == scratch.read("b.img"));
    let serve = scratch.braid().args(["serve", "--nbd", "unix:s"]).arg(linear).run();
    serve.fails(
        3,
        &["error(64K) cannot be written", "next: --read-only; or cow(error(64K), store="],
    );
    let odd = scratch.run(&["cat", "linear(./a.img, error(1000))"]);
    odd.fails(2, &["512"]);
}

#[test]
fn maps_that_do_not_fit_are_refused() {
    let scratch = Scratch::new();
    scratch.file("a.img", MIB, 1);
    write_map(&scratch, "large.map", 2 * MIB, &[]); // It calls bytes read that are not there.
    write_map(&scratch, "small.map", MIB / 2, &[]);
    std::fs::write(scratch.join("gap.map"), "0 + 1\n0 512 +\n1024 512 -\n").unwrap();
    let refuse = |map: &str, parts: &[&str]| {
        scratch.run(&["cat", &format!("holes(a.img, map={map})")]).fails(1, parts);
        let serve = scratch.braid().args(["serve", "--nbd", "unix:s", "--read-only"]);
        serve.arg(format!("holes(a.img, map={map})")).run().fails(3, parts);
    };
    refuse(
        "./large.map",
        &[
            "large.map is not the map of ",
            "a.img: the map describes 2097152 bytes, and the device has 1048576",
            "next: the map of this device: by this one, bytes behind its end were read",
        ],
    );
    refuse("./small.map", &["describes 524288 bytes", "next: the map of this device\n"]);
    refuse(
        "./gap.map",
        &[
            "gap.map is no map of GNU ddrescue: line 3: its block starts at 0x400, and the one before ends at \
             0x200: a gap",
            "next: `ddrescuelog --show-status ",
        ],
    );
    refuse("./none.map", &["none.map cannot be read: No such file", "next: "]);
    refuse("/dev/zero", &["/dev/zero cannot be read: it is no file"]);
}

#[test]
fn holes_are_not_written() {
    let scratch = Scratch::new();
    scratch.file("a.img", MIB, 1);
    scratch.file("b.img", MIB, 1);
    write_map(&scratch, "a.map", MIB, &[(0, 512)]);
    let serve = scratch.braid().args(["serve", "--nbd", "unix:s"]);
    serve.arg("raid1(holes(a.img, map=a.map), b.img)").run().fails(
        3,
        &[
            "a.map) cannot be written: its holes would be written over",
            "next: --read-only; or cow(holes(",
        ],
    );
}
