//! Arrays that kernel md broke: members dropped one after the other while data were written, and what else happens to
//! such members: images with holes, old copies, lost superblocks, partitions whose table is gone.

use crate::common::MIB;
use crate::{Case, refusal, stack};

impl Case {
    fn broken(name: &str) -> Case {
        Case::of(braid_golden::broken(name))
    }
}

#[test]
fn a_raid5_that_lost_two_members_is_read_without_the_one_that_left_first() {
    for name in ["raid5-4-two-dropped", "raid5-4-two-dropped-bitmap"] {
        let case = Case::broken(name);
        let scan = case.scan(&[]).ok();
        assert!(scan.out.contains("Partial") || scan.out.contains("roles 2 and 3"), "{scan}");
        let open = case.scratch.run(&["rescue", "open", "home"]).ok();
        assert!(
            open.out.contains("left when the array failed: nothing was written after it"),
            "{open}"
        );
        assert!(open.out.contains("In doubt: nothing."), "{open}");
        assert!(stack(&open).ends_with("missing)"), "{open}");
        // What assembles by event counts alone refuses.
        let assemble = case.scratch.run(&["assemble", "m0.img", "m1.img", "m2.img", "m3.img"]);
        assert!(!assemble.status.success(), "{assemble}");
        case.copied(0);
    }
}

#[test]
fn without_the_member_that_left_last_the_stale_one_is_in_doubt() {
    let mut case = Case::broken("raid5-4-two-dropped");
    case.names.remove(2);
    case.before.remove(2);
    case.scan(&[]).ok();
    let open = case.scratch.run(&["rescue", "open", "home"]);
    assert_eq!(open.status.code(), Some(4), "{open}");
    assert!(open.out.contains("STALE, but needed"), "{open}");
    case.names.truncate(2);
    case.untouched();
    let two = Case { names: case.names.clone(), ..Case::broken("raid5-4-two-dropped") };
    two.scan(&[]).ok();
    let refused = two.scratch.run(&["rescue", "open", "home"]);
    refusal(&refused, &["cannot be read without its roles 2, 3", "braid rescue solve home"]);
}

#[test]
fn an_old_copy_of_a_member_and_a_foreign_disk_do_no_harm() {
    let case = Case::broken("raid5-4-two-dropped");
    let scratch = &case.scratch;
    scratch.sparse("copy.img", 0);
    std::fs::copy(scratch.join("m1.img"), scratch.join("copy.img")).expect("a copy");
    scratch.file("foreign.img", 4 * MIB, 7);
    let scan = case.scan(&["copy.img", "foreign.img"]).ok();
    assert!(scan.out.contains("it is the same as copy.img"), "{scan}");
    assert!(scan.out.contains("nothing that is known"), "{scan}");
    case.copied(0);
}

#[test]
fn members_of_several_arrays_are_kept_apart() {
    let case = Case::broken("raid5-4-two-dropped");
    let other = Case::of(braid_golden::named("raid1-2"));
    let paths: Vec<String> =
        other.names.iter().map(|name| other.scratch.join(name).display().to_string()).collect();
    case.scan(&[&paths[0], &paths[1]]).ok();
    let open = case.scratch.run(&["rescue", "open", "home"]);
    refusal(&open, &["the members are of several arrays", "--array"]);
    let uuid = &case.golden.uuid;
    case.scratch.run(&["rescue", "open", "home", "--array", uuid]).ok();
    refusal(&case.scratch.run(&["rescue", "open", "home", "--array", "no"]), &["has no array no"]);
}

#[test]
fn members_in_partitions_are_found_with_their_table_and_without() {
    let case = Case::broken("raid5-4-two-dropped");
    for (index, name) in case.names.iter().enumerate() {
        let bytes = case.scratch.read(name);
        let mut disk = vec![0; usize::try_from(MIB).expect("small")];
        // An MBR with one partition of type fd, but on the second disk.
        if index != 1 {
            let sectors = u32::try_from(bytes.len() / 512).expect("small");
            disk[446 + 4] = 0xfd;
            disk[446 + 8..446 + 12].copy_from_slice(&2048_u32.to_le_bytes());
            disk[446 + 12..446 + 16].copy_from_slice(&sectors.to_le_bytes());
            disk[510..512].copy_from_slice(&[0x55, 0xaa]);
        }
        disk.extend(bytes);
        std::fs::write(case.scratch.join(name), disk).expect("a disk");
    }
    let scan = case.scan(&[]).ok();
    assert!(scan.out.contains("of partition 1"), "{scan}");
    assert!(scan.out.contains("of a member that begins at byte 1048576"), "{scan}");
    let case =
        Case { before: case.names.iter().map(|name| case.scratch.read(name)).collect(), ..case };
    case.copied(0);
}
