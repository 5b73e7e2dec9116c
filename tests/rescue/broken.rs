//! Arrays that kernel md broke: members dropped one after the other while data were written, and what else happens to
//! such members: images with holes, old copies, lost superblocks, partitions whose table is gone.

use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};

use crate::common::{MIB, Tool, skip_without, start, wait_until};
use crate::{Case, refusal, stack};

pub(crate) const CHUNK: u64 = 64 << 10;

/// A map in which these ranges of a member are bad.
pub(crate) fn map(size: u64, holes: &[(u64, u64)]) -> String {
    let (mut text, mut at) = ("0 + 1\n".to_owned(), 0);
    for (start, length) in holes {
        if *start > at {
            text += &format!("{at} {} +\n", start - at);
        }
        text += &format!("{start} {length} -\n");
        at = start + length;
    }
    text + &format!("{at} {} +\n", size - at)
}

impl Case {
    fn broken(name: &str) -> Case {
        Case::of(braid_golden::broken(name))
    }

    /// Overwrites ranges of a member's data, as an image of a disk with bad sectors has them, and writes their map.
    fn make_holes(&mut self, member: usize, holes: &[(u64, u64)]) -> String {
        let name = self.names[member].clone();
        let data = self.golden.members[member].data_offset_bytes.expect("it has data");
        let holes: Vec<(u64, u64)> =
            holes.iter().map(|(at, length)| (at + data, *length)).collect();
        for (at, length) in &holes {
            self.scratch.patch(&name, *at, &vec![0; usize::try_from(*length).expect("small")]);
        }
        self.before[member] = self.scratch.read(&name);
        let text = map(self.golden.members[member].bytes, &holes);
        std::fs::write(self.scratch.join(&format!("{name}.map")), text).expect("a map");
        format!("{name}={name}.map")
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
        assert!(assemble.out.contains("next: braid rescue scan CASE "), "{assemble}");
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
    let open = case.scratch.run(&["rescue", "open", "home"]).ok();
    assert!(open.out.contains("Volumes") && open.out.contains("--volume NAME"), "{open}");
    let volumes = case.scratch.run(&["rescue", "open", "home", "--json"]).ok().json();
    assert_eq!(volumes["volumes"].as_array().map(Vec::len), Some(2), "{volumes}");
    let copy = case.scratch.run(&["rescue", "copy", "home", "--to", "out.img"]);
    refusal(&copy, &["the case has several volumes: ", "--volume NAME"]);
    let name = volumes["volumes"][0]["name"].as_str().expect("a name");
    let one = case.scratch.run(&["rescue", "open", "home", "--volume", name]).ok();
    assert!(!stack(&one).is_empty(), "{one}");
    refusal(&case.scratch.run(&["rescue", "open", "home", "--volume", "no"]), &["no volume no"]);
    let uuid = &case.golden.uuid;
    case.scratch.run(&["rescue", "open", "home", "--array", uuid]).ok();
    refusal(&case.scratch.run(&["rescue", "open", "home", "--array", "no"]), &["has no array no"]);
}

#[test]
fn partitions_in_an_array_are_volumes() {
    let mut case = Case::of(braid_golden::named("raid1-2"));
    let mut table = [0_u8; 512];
    for (entry, first, count) in [(446, 64_u32, 128_u32), (462, 256, 64)] {
        table[entry + 4] = 0x83;
        table[entry + 8..entry + 12].copy_from_slice(&first.to_le_bytes());
        table[entry + 12..entry + 16].copy_from_slice(&count.to_le_bytes());
    }
    table[510..].copy_from_slice(&[0x55, 0xaa]);
    for (member, name) in case.names.iter().enumerate() {
        let data = case.golden.members[member].data_offset_bytes.expect("it has data");
        case.scratch.patch(name, data, &table);
        case.before[member] = case.scratch.read(name);
    }
    case.scan(&[]).ok();
    let open = case.scratch.run(&["rescue", "open", "home"]).ok();
    assert!(open.out.contains("Volumes") && open.out.contains("--volume NAME"), "{open}");
    let volumes = case.scratch.run(&["rescue", "open", "home", "--json"]).ok().json();
    let name =
        |index: usize| volumes["volumes"][index]["name"].as_str().expect("a name").to_owned();
    assert!(name(1).ends_with("/p1") && name(2).ends_with("/p2"), "{volumes}");
    let copy = ["rescue", "copy", "home", "--volume", &name(2), "--to", "out.img"];
    case.scratch.run(&copy).ok();
    let out = case.scratch.read("out.img");
    assert!(out == case.golden.content_block(256 * 512, 64 * 512), "another content");
    // The array itself can be named, too.
    let whole = case.scratch.run(&["rescue", "open", "home", "--volume", &name(0)]).ok();
    assert!(stack(&whole).starts_with("raid1("), "{whole}");
    case.untouched();
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

#[test]
fn holes_are_filled_from_the_stale_member_where_the_bitmap_says_that_it_is_good() {
    // Piece 1 was written to stripes 5 to 7 after member 3 had left. A hole before, and one in it.
    let mut case = Case::broken("raid5-4-two-dropped-bitmap");
    let map = case.make_holes(0, &[(CHUNK, 8192), (20 * CHUNK + 4096, 512)]);
    case.scan(&["--map", &map]).ok();
    let open = case.scratch.run(&["rescue", "open", "home"]).ok();
    assert!(open.out.contains("known by the bitmap"), "{open}");
    case.copied(0);
}

#[test]
fn what_no_member_has_is_named_and_nothing_else_is_lost() {
    let mut case = Case::broken("raid5-4-two-dropped-bitmap");
    let map = case.make_holes(0, &[(6 * CHUNK, 4096), (CHUNK, 4096)]);
    refusal(&case.scan(&["--map", &map]), &["m0.img.map"]);
    let map = case.make_holes(0, &[(CHUNK, 4096), (6 * CHUNK, 4096)]);
    case.scan(&["--map", &map]).ok();
    let open = case.scratch.run(&["rescue", "open", "home", "--json"]);
    assert_eq!(open.status.code(), Some(4), "{open}");
    // Left-symmetric, stripe 6 of 4 members: parity on member 1, and data on members 2, 3 and 0.
    let lost = [(6 * 3 + 1) * CHUNK, (6 * 3 + 2) * CHUNK];
    assert_eq!(
        open.json()["doubts"][0]["ranges"],
        serde_json::json!([[lost[0], 4096], [lost[1], 4096]])
    );
    let copied = case.scratch.run(&["rescue", "copy", "home", "--to", "out.img"]);
    assert_eq!(copied.status.code(), Some(4), "{copied}");
    let mut expected = case.golden.content_block(0, 6 << 20);
    let text = std::fs::read_to_string(case.scratch.join("out.img.map")).expect("the map");
    for lost in lost {
        let at = usize::try_from(lost).expect("small");
        expected[at..at + 4096].fill(0);
        assert!(text.contains(&format!("0x{lost:08X}  0x00001000  -")), "{text}");
    }
    assert!(case.scratch.read("out.img") == expected);
    case.untouched();
}

#[test]
fn a_copy_that_ended_too_early_lacks_its_end_and_no_more() {
    for (name, has_superblock) in [("raid0-3-uneq-alt", true), ("raid0-4-64k", false)] {
        let mut case = Case::of(braid_golden::named(name));
        let data = case.golden.members[1].data_offset_bytes.expect("it has data");
        let (whole, cut) = (case.golden.members[1].bytes, 100 << 10);
        case.before[1].truncate(usize::try_from(whole - cut).expect("small"));
        if !has_superblock {
            case.before[1][4096..8192].fill(0);
        }
        std::fs::write(case.scratch.join(&case.names[1]), &case.before[1]).expect("a shorter copy");
        let scan = case.scan(&[]).ok();
        if has_superblock {
            let end = "before the member does: not all of it was copied";
            assert!(scan.out.contains(end), "{scan}");
        }
        assert!(scan.out.contains("cannot be started"), "the kernel refuses it: {scan}");
        let open = case.scratch.run(&["rescue", "open", "home"]);
        assert_eq!(open.code(), 4, "{open}");
        let copied = case.scratch.run(&["rescue", "copy", "home", "--to", "out.img"]);
        assert_eq!(copied.code(), 4, "{copied}");
        let text = std::fs::read_to_string(case.scratch.join("out.img.map")).expect("the map");
        let map = braid_holes::Map::parse(text.as_bytes()).expect("a map");
        let size = usize::try_from(case.golden.array_bytes).expect("small");
        let mut expected = case.golden.content_block(0, size);
        let lost: u64 = map.holes().iter().map(|hole| hole.end - hole.start).sum();
        assert!(lost > cut / 2 && lost <= cut.min(whole - data), "{lost} of {cut}");
        for hole in map.holes() {
            expected[hole.start as usize..hole.end as usize].fill(0);
        }
        assert!(case.scratch.read("out.img") == expected, "{name}");
        case.untouched();
        // What `open` prints is what `cat` takes, up to the first byte that is not there.
        let cat = case.scratch.run(&["cat", &stack(&open)]);
        assert!(!cat.status.success() && cat.err.contains("Input/output error"), "{}", cat.err);
    }
}

#[test]
fn verify_draws_where_data_and_parity_agree() {
    let case = Case::of(braid_golden::named("raid5-3"));
    case.scan(&[]).ok();
    let verify = |case: &Case, status: i32| {
        let verify = case.scratch.run(&["rescue", "verify", "home", "--all"]);
        assert_eq!(verify.status.code(), Some(status), "{verify}");
        verify.out
    };
    // The content is no file system, and parity agrees in any order of the members.
    let out = verify(&case, 4);
    assert!(out.contains("|==") && out.contains(" 0 differ, 0 cannot be compared"), "{out}");
    assert!(out.contains("Verdict: unknown."), "{out}");
    // A silent error in the middle, which leaves the ends as they were.
    case.scratch.patch("m1.img", 8 * MIB, b"changed");
    let out = verify(&case, 4);
    assert!(out.contains(" 1 differ, 0 cannot be compared"), "{out}");
    let degraded = Case::broken("raid5-4-two-dropped");
    degraded.scan(&[]).ok();
    let out = verify(&degraded, 4);
    assert!(out.contains("|....") && out.contains("0 samples agree, 0 differ"), "{out}");
}

#[test]
fn files_takes_ranges_or_those_that_are_lost() {
    let case = Case::broken("raid5-4-two-dropped");
    case.scan(&[]).ok();
    let lost = case.scratch.run(&["rescue", "files", "home", "--lost"]).ok();
    assert_eq!(lost.out.trim(), "In doubt: nothing.");
    // The content is no file system.
    let none = case.scratch.run(&["rescue", "files", "home"]);
    refusal(&none, &["no file system whose files can be told"]);
    let none = case.scratch.run(&["rescue", "files", "home", "4096"]);
    refusal(&none, &["no file system whose files can be told"]);
}

#[test]
fn the_last_member_without_a_superblock_takes_the_last_role() {
    for name in ["raid0-4-64k", "raid5-3-degraded"] {
        let case = Case::of(braid_golden::named(name));
        case.scratch.patch("m2.img", 4096, &[0; 4096]);
        let before = case.names.iter().map(|name| case.scratch.read(name)).collect();
        let case = Case { before, ..case };
        case.scan(&[]).ok();
        let open = case.scratch.run(&["rescue", "open", "home"]);
        assert_eq!(open.status.code(), Some(4), "{open}");
        assert!(open.out.contains("NO SUPERBLOCK: its role is the only one"), "{open}");
        case.copied(4);
    }
    // A member is not guessed where the array can be read without it.
    let case = Case::of(braid_golden::named("raid5-3"));
    case.scratch.patch("m2.img", 4096, &[0; 4096]);
    case.scan(&[]).ok();
    let open = case.scratch.run(&["rescue", "open", "home"]).ok();
    assert!(open.out.contains("it has no superblock, and is not needed"), "{open}");
}

/// A process that ends with this value.
struct Serving(Child);

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn open_serves_the_array_read_only() {
    skip_without!("nbdinfo");
    let case = Case::broken("raid5-4-two-dropped");
    case.scan(&[]).ok();
    let socket = case.scratch.join("home.sock");
    let address = format!("unix:{}", socket.display());
    let words = ["rescue", "open", "home", "--nbd", &address];
    let mut command = case.scratch.braid().args(words).into_command();
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let serving = Serving(start(&mut command).expect("it starts"));
    wait_until("the array is served", || UnixStream::connect(&socket).is_ok());
    let uri = format!("nbd+unix:///?socket={}", socket.display());
    let info = Tool::new("nbdinfo").arg(uri).run().ok();
    assert!(info.out.contains("is_read_only: true"), "{info}");
    assert!(info.out.contains(&case.golden.array_bytes.to_string()), "{info}");
    drop(serving);
    case.untouched();
}

#[test]
fn commands_that_find_an_array_that_does_not_start_name_the_rescue() {
    let case = Case::broken("raid5-4-two-dropped");
    let scratch = &case.scratch;
    let path = |name: &str| scratch.join(name).display().to_string();
    let paths: Vec<String> = case.names.iter().map(|name| path(name)).collect();
    let scan = format!("next: braid rescue scan CASE {}", paths.join(" "));
    let words: Vec<&str> = paths.iter().map(String::as_str).collect();
    let examined = scratch.run(&[&["examine"], &words[..]].concat()).ok();
    assert!(examined.err.contains("does not start") && examined.err.contains(&scan), "{examined}");
    // Of one member nothing is concluded.
    let one = scratch.run(&["examine", words[0]]).ok();
    assert!(!one.err.contains("rescue"), "{one}");
    let stack = format!("md({})", paths.join(", "));
    refusal(
        &scratch.run(&["up", &stack, "--attach", "none"]),
        &["too few members", "braid rescue scan CASE"],
    );
    refusal(&scratch.run(&["assemble", words[0], words[1]]), &["braid rescue scan CASE"]);
    std::fs::create_dir_all(scratch.join("config")).expect("a folder");
    std::fs::write(scratch.config_file("home"), format!("stack = '{stack}'\n")).expect("a record");
    refusal(
        &scratch.run(&["status", "home"]),
        &["but one is known", "`braid up home`", "braid rescue"],
    );
    case.untouched();
}
