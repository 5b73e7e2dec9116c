//! Devices that become members, again or for the first time: what they carry is not believed to be
//! what it is not.

use braid_control::ErrorCode;
use braid_md::{BadBlocks, Features};

use crate::codes::failure;
use crate::common::{Scratch, UpVolume, wait_until};
use crate::{FAILED, REFUSED, SIZE, edit, list_as_bad, superblock};

fn mirror(options: &[&str]) -> Scratch {
    let scratch = Scratch::new();
    for name in ["a.img", "b.img", "c.img"] {
        scratch.sparse(name, SIZE);
    }
    let create = ["create", "home", "--level", "raid1", "--assume-clean"];
    scratch.run(&[&create[..], options, &["a.img", "b.img"]].concat()).ok();
    scratch
}

fn up<'a>(scratch: &'a Scratch, name: &str, options: &[&str]) -> UpVolume<'a> {
    scratch.up(name, &[&["--attach", "none"], options].concat())
}

fn write(volume: &UpVolume<'_>, offset: u64, byte: u8) {
    let mut client = volume.client();
    client.write(offset, &[byte; 4096], false).expect("a write");
    client.flush().expect("a flush");
}

fn take_out(scratch: &Scratch, member: &str) {
    scratch.run(&["member", "fail", "home", member]).ok();
    scratch.run(&["member", "remove", "home", member]).ok();
}

fn wait_until_idle(volume: &UpVolume<'_>, member: &str) {
    wait_until("the end of the recovery", || {
        let status = volume.status();
        let array = &status["arrays"][0];
        let is_there = array["members"].to_string().contains(member);
        is_there && array["job"].is_null() && !array["in_sync"].to_string().contains("false")
    });
}

/// ```text
///   a   ── b fails ── writes ─────────────────── add b? no: what b wrote alone would be lost
///   b                 └─ assemble --degraded ── writes
/// ```
#[test]
fn members_that_each_went_on_alone_are_not_merged() {
    for bitmap in ["64K", "none"] {
        let scratch = mirror(&["--bitmap", bitmap]);
        let volume = up(&scratch, "home", &[]);
        write(&volume, 0, 1);
        take_out(&scratch, "b.img");
        write(&volume, 8192, 2);
        volume.down();
        scratch.run(&["assemble", "b.img", "--degraded", "--as", "other"]).ok();
        let other = up(&scratch, "other", &["--degraded"]);
        for round in 0..5 {
            write(&other, 65536 * round, 3);
        }
        other.down();
        let volume = up(&scratch, "home", &[]);
        let before = scratch.read("b.img");
        let path = scratch.join("b.img");
        let wipe = format!("braid wipe {}, then braid member add", path.display());
        for how in ["re-add", "add"] {
            let parts = ["b.img is not taken: it went on without the members", &wipe];
            scratch.run(&["member", how, "home", "b.img"]).fails(REFUSED, &parts);
            let forced = ["member", how, "home", "b.img", "--force"];
            scratch.run(&forced).fails(REFUSED, &parts);
        }
        let failure = failure(&scratch, &["member", "add", "home", "b.img"]);
        assert_eq!(failure.code, ErrorCode::WentOnAlone);
        assert!(scratch.read("b.img") == before, "nothing was written to it");
        // What it has alone is given up by a word of its own.
        scratch.run(&["wipe", "b.img"]).ok();
        scratch.run(&["member", "add", "home", "b.img"]).ok();
        wait_until_idle(&volume, "b.img");
        scratch.run(&["scrub", "home", "--wait"]).ok();
    }
}

/// ```text
///   a   ── alone ── c fills the role of b ──┐
///   b   ── alone ── d fills the role of a ──┴─ all four are there: two arrays, and neither is started
/// ```
#[test]
fn halves_that_each_filled_a_blank_disk_are_not_merged() {
    let scratch = mirror(&["--bitmap", "none"]);
    for (half, record, blank, rounds) in
        [("a.img", "one", "c.img", 1), ("b.img", "other", "d.img", 9)]
    {
        scratch.sparse(blank, SIZE);
        scratch.run(&["assemble", half, "--degraded", "--as", record]).ok();
        let volume = up(&scratch, record, &["--degraded"]);
        for round in 0..rounds {
            write(&volume, 65536 * round, 3);
        }
        scratch.run(&["member", "add", record, blank]).ok();
        wait_until_idle(&volume, blank);
        volume.down();
    }
    let before = ["a.img", "b.img", "c.img", "d.img"].map(|name| scratch.read(name));
    for set in [
        &["a.img", "b.img", "c.img", "d.img"][..],
        &["a.img", "b.img", "d.img"],
        &["a.img", "c.img", "b.img"],
        &["a.img", "c.img", "d.img"],
    ] {
        let refused = scratch.run(&[&["assemble"], set].concat()).fails(REFUSED, &[]);
        assert!(refused.out.contains("it went on by itself"), "{refused}");
    }
    assert!(["a.img", "b.img", "c.img", "d.img"].map(|name| scratch.read(name)) == before);
}

#[test]
fn why_a_member_cannot_come_back_by_the_bitmap() {
    let scratch = mirror(&["--bitmap", "none"]);
    let volume = up(&scratch, "home", &[]);
    take_out(&scratch, "b.img");
    let parts = ["no write-intent bitmap", "`braid member add` takes it in anew"];
    scratch.run(&["member", "re-add", "home", "b.img"]).fails(REFUSED, &parts);
    let next = format!("`braid member add home {}` brings", scratch.join("b.img").display());
    assert!(volume.status()["next"].to_string().contains(&next), "{}", volume.status()["next"]);
    scratch.run(&["member", "add", "home", "c.img"]).ok();
    wait_until_idle(&volume, "c.img");
    let taken = scratch.join("c.img");
    let parts = [format!("its role 1 is taken by {}", taken.display())];
    scratch.run(&["member", "re-add", "home", "b.img"]).fails(REFUSED, &[&parts[0]]);
    let parts = ["it was no member of this array"];
    scratch.sparse("d.img", SIZE);
    scratch.run(&["member", "re-add", "home", "d.img"]).fails(REFUSED, &parts);
}

/// The present state of the array counts, not its state at the start.
#[test]
fn a_member_that_went_after_the_array_grew_comes_back_by_the_bitmap() {
    let scratch = mirror(&["--bitmap", "64K", "--size", "4M"]);
    let volume = up(&scratch, "home", &[]);
    scratch.run(&["grow", "home", "--size", "max"]).ok();
    wait_until_idle(&volume, "b.img");
    take_out(&scratch, "b.img");
    write(&volume, 8192, 2);
    scratch.run(&["member", "re-add", "home", "b.img"]).ok();
    wait_until_idle(&volume, "b.img");
    scratch.run(&["scrub", "home", "--wait"]).ok();
}

#[test]
fn the_next_command_names_the_member_that_is_right_there() {
    for (bitmap, how) in [("64K", "re-add"), ("none", "add")] {
        let scratch = mirror(&["--bitmap", bitmap]);
        let volume = up(&scratch, "home", &[]);
        write(&volume, 0, 1);
        scratch.run(&["member", "fail", "home", "b.img"]).ok();
        write(&volume, 8192, 2);
        volume.down();
        let volume = up(&scratch, "home", &[]);
        let path = scratch.join("b.img");
        let next = format!("`braid member {how} home {}`", path.display());
        let told = volume.status()["next"].to_string();
        assert!(told.contains(&next), "{told}");
        scratch.run(&["member", how, "home", "b.img"]).ok();
        wait_until_idle(&volume, "b.img");
        assert_eq!(volume.status()["state"], "online");
    }
}

/// The log of `name` that its superblock points to, whatever its feature bits say.
fn bad_blocks(scratch: &Scratch, name: &str) -> Vec<u8> {
    let superblock = superblock(scratch, name);
    let log = superblock.bad_block_log.expect("a place for a log");
    let start = superblock.super_offset.checked_add_signed(log.offset).expect("a place") as usize;
    scratch.read(name)[start..start + log.size as usize].to_vec()
}

#[test]
fn a_new_member_has_a_log_of_bad_blocks_of_its_own() {
    for how in ["add", "replace"] {
        let scratch = mirror(&["--bitmap", "none", "--size", "4M"]);
        // As a kernel leaves it that could not read a sector of `a`; behind what is used of it.
        list_as_bad(&scratch, "a.img", (4 << 20) + 65536, 512);
        // What a disk holds that was in use before.
        let garbage: Vec<u8> = (0..SIZE).map(|at| (at / 3) as u8).collect();
        std::fs::write(scratch.join("c.img"), garbage).expect("a member");
        let volume = up(&scratch, "home", &[]);
        match how {
            "add" => {
                take_out(&scratch, "b.img");
                scratch.run(&["member", "add", "home", "c.img"]).ok();
                wait_until("the end of the recovery", || {
                    let array = volume.status()["arrays"][0].clone();
                    array["job"].is_null() && array["members"].to_string().contains("c.img")
                });
            }
            _ => {
                scratch.run(&["member", "replace", "home", "b.img", "c.img"]).ok();
                wait_until("the end of the replacement", || {
                    let array = volume.status()["arrays"][0].clone();
                    array["job"].is_null() && array["members"].to_string().contains("c.img")
                });
            }
        }
        volume.down();
        // Either nothing is said of bad blocks, or what is said can be believed.
        let new = superblock(&scratch, "c.img");
        let log = BadBlocks::parse(&bad_blocks(&scratch, "c.img"), 0, u64::MAX).expect("a log");
        assert!(log.is_empty() || new.features.contains(Features::BAD_BLOCKS), "{how}: {log:?}");
        scratch.run(&["cat", "md(./c.img)", "--length", "0"]).ok();
        scratch.run(&["assemble", "a.img", "c.img", "--plan"]).ok();
    }
}

#[test]
fn a_bitmap_of_less_than_the_array_is_refused() {
    let scratch = mirror(&["--bitmap", "64K"]);
    for name in ["a.img", "b.img"] {
        let superblock = superblock(&scratch, name);
        let offset = superblock.bitmap_offset.expect("a bitmap");
        let start = superblock.super_offset.checked_add_signed(offset).expect("a place");
        let less = (superblock.component_size - 65536) / 512;
        scratch.patch(name, start + 40, &less.to_le_bytes());
    }
    let parts = ["cannot be kept up to date: it is about", "and the array has", "--read-only"];
    scratch.run(&["up", "home", "--attach", "none"]).fails(REFUSED, &parts);
    up(&scratch, "home", &["--read-only"]).down();
}

/// 512 bytes a bit: 4 GiB are more bits than are kept up to date. What cannot be started is not called
/// startable by programs that only look.
#[test]
fn a_bitmap_that_is_too_fine_is_refused_by_all_alike() {
    let scratch = Scratch::new();
    let names = ["a.img", "b.img"];
    names.iter().for_each(|name| drop(scratch.sparse(name, 5 << 30)));
    let create = ["create", "home", "--level", "raid1", "--assume-clean", "--bitmap", "internal"];
    scratch.run(&[&create[..], &names].concat()).ok();
    for name in names {
        let superblock = superblock(&scratch, name);
        let offset = superblock.bitmap_offset.expect("a bitmap");
        let start = superblock.super_offset.checked_add_signed(offset).expect("a place");
        scratch.patch(name, start + 52, &512_u32.to_le_bytes());
    }
    let why = "chunks, and at most 8388608 are kept up to date";
    scratch.run(&["up", "home", "--attach", "none"]).fails(REFUSED, &[why, "--read-only"]);
    let plan = scratch.run(&["assemble", "a.img", "b.img", "--plan"]).fails(REFUSED, &[]);
    assert!(plan.out.contains(why) && plan.out.contains("--read-only"), "{plan}");
    scratch.run(&["incremental", "--no-start", "a.img"]).ok();
    let incremental = scratch.run(&["incremental", "--no-start", "b.img"]);
    assert!(!incremental.out.contains("can be started"), "{incremental}");
    up(&scratch, "home", &["--read-only"]).down();
}

/// Beyond an event count that no array reaches, one more could not be counted.
#[test]
fn an_event_count_without_an_end_is_refused() {
    for events in [u64::MAX, u64::MAX - 1] {
        let scratch = mirror(&[]);
        for name in ["a.img", "b.img"] {
            edit(&scratch, name, |one| one.events = events);
        }
        let why = format!("the event count is {events}, it must be below 2^63");
        scratch.run(&["up", "home", "--attach", "none"]).fails(REFUSED, &[&why, "next:"]);
        scratch.run(&["assemble", "a.img", "b.img", "--plan"]).fails(FAILED, &[&why, "next:"]);
    }
}

/// One that is close to the end is not written: the next superblocks would be refused.
#[test]
fn an_array_that_has_counted_too_far_is_only_read() {
    let events = (1 << 63) - 1;
    let scratch = mirror(&[]);
    for name in ["a.img", "b.img"] {
        edit(&scratch, name, |one| one.events = events);
    }
    let why =
        format!("the event count is {events}, and an array is written only while it is below 2^62");
    scratch
        .run(&["up", "home", "--attach", "none"])
        .fails(REFUSED, &[&why, "next:", "--read-only"]);
    let volume = scratch.up("home", &["--attach", "none", "--read-only"]);
    assert!(volume.client().is_read_only());
    volume.down();
}
