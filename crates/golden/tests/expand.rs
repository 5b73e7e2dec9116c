//! Every member of every golden array, and every content, is what the kernel left.

use std::fs;

use braid_golden::{Expect, Golden, Member, Role, all, named};

fn sha256(bytes: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Arrays whose name begins so; there are some.
fn of_level(prefix: &str) -> Vec<Golden> {
    let arrays: Vec<Golden> =
        all().into_iter().filter(|golden| golden.name.starts_with(prefix)).collect();
    assert!(!arrays.is_empty(), "no golden array begins with {prefix}");
    arrays
}

fn members_expand(prefix: &str) {
    for golden in of_level(prefix) {
        for member in golden.present() {
            let image = golden.expand_member(member.index);
            assert_eq!(image.len() as u64, member.bytes, "{} {}", golden.name, member.index);
            assert_eq!(
                Some(sha256(&image)),
                member.sha256,
                "{} member {}",
                golden.name,
                member.index
            );
        }
    }
}

// One test a level, so that they run side by side.

#[test]
fn members_of_linear() {
    members_expand("linear-");
}

#[test]
fn members_of_raid0() {
    members_expand("raid0-");
}

#[test]
fn members_of_raid1() {
    members_expand("raid1-");
}

#[test]
fn members_of_raid10() {
    members_expand("raid10-");
}

#[test]
fn members_of_raid4() {
    members_expand("raid4-");
}

#[test]
fn members_of_raid5() {
    members_expand("raid5-");
}

#[test]
fn members_of_raid6() {
    members_expand("raid6-");
}

#[test]
fn the_content_has_the_sha256_that_was_read_from_the_array() {
    for golden in all() {
        let content = golden.content_block(0, golden.array_bytes as usize);
        assert_eq!(sha256(&content), golden.sha256, "{}", golden.name);
    }
}

#[test]
fn a_block_of_content_is_cut_at_any_byte() {
    let golden = named("raid1-2-bitmap-stale");
    let content = golden.content_block(0, golden.array_bytes as usize);
    let end = content.len();
    for (from, to) in [(0, 0), (0, 1), (511, 513), (512, 1024), (8_392_700, 8_400_900), (end, end)]
        .into_iter()
        .chain([(end - 1, end)])
    {
        assert_eq!(golden.content_block(from as u64, to - from), content[from..to]);
    }
}

#[test]
fn expanded_files_are_the_images() {
    let golden = named("raid4-4-no-data");
    let folder = tempfile::tempdir().unwrap();
    let paths = golden.expand_into(folder.path()).unwrap();
    let names: Vec<_> = paths.iter().map(|path| path.file_name().unwrap()).collect();
    assert_eq!(names, ["m0.img", "m2.img", "m3.img"]);
    for (path, member) in paths.iter().zip(golden.present()) {
        assert!(fs::read(path).unwrap() == golden.expand_member(member.index), "{path:?}");
    }
}

#[test]
fn what_only_some_members_have_is_in_their_manifests() {
    let bad = &named("raid1-2-badblocks").members[1];
    assert_eq!(bad.bad_blocks, [(6400, 8), (7048, 100)]);
    assert!(bad.examine_badblocks.as_ref().unwrap().contains("7048 for 100 sectors"));
    let recovering = &named("raid1-2-recovering").members[1];
    assert_eq!(recovering.recovery_offset_sectors, Some(8192));
    let replacement = &named("raid10-4-n2-replacing").members[4];
    assert_eq!(
        (replacement.role, replacement.recovery_offset_sectors),
        (Role::Slot(1), Some(8192))
    );
    assert_eq!(named("raid1-3-writemostly-spare").members[3].role, Role::Spare);
    let dirty = named("raid1-2-dirty-bitmap");
    assert!(!dirty.clean_shutdown);
    assert!(dirty.present().all(|member| member.bitmap_offset_bytes == Some(8192)));
    let filled = &named("raid6-4-recovering").members[1];
    assert_eq!((filled.role, filled.recovery_offset_sectors), (Role::Slot(3), Some(8192)));
    let logged = named("raid5-3-ppl-dirty");
    assert!(!logged.clean_shutdown);
    assert!(logged.present().all(|member| member.ppl_sector == Some(16)));
}

#[test]
fn the_set_is_whole_and_says_what_a_test_needs() {
    let arrays = all();
    assert!(arrays.len() >= 67, "{} golden arrays", arrays.len());
    for golden in &arrays {
        let slots = |member: &&Member| matches!(member.role, Role::Slot(_));
        let in_slots = golden.members.iter().filter(slots).count();
        assert!(in_slots >= golden.raid_disks as usize, "{}", golden.name);
        assert_eq!(golden.expect == Expect::Read, golden.degraded == 0, "{}", golden.name);
        for (index, member) in golden.members.iter().enumerate() {
            assert_eq!(member.index, index, "{}", golden.name);
            assert_eq!(member.present(), member.state != "missing", "{} {index}", golden.name);
            assert_eq!(member.present(), member.examine.is_some(), "{} {index}", golden.name);
            assert_eq!(member.present(), member.super_offset_bytes.is_some(), "{}", golden.name);
        }
    }
}
