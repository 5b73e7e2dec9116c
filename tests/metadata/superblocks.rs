//! Copies of superblocks: kept at each change of membership, and written back to members that lost theirs.

use std::path::PathBuf;

use braid_md::Role;
use braid_md::superblock::SUPERBLOCK_BYTES;

use crate::common::{
    MIB, Mounted, Scratch, UpVolume, pattern, skip_unless_root, skip_without, wait_until,
};
use crate::{FAILED, REFUSED, SIZE, Unchanged, edit, refuses, superblock};

const NAMES: [&str; 3] = ["a.img", "b.img", "c.img"];

/// The copies, the latest first.
fn copies(scratch: &Scratch) -> Vec<serde_json::Value> {
    let json = scratch.run(&["superblocks", "list", "--json"]).ok().json();
    json["copies"].as_array().expect("copies").clone()
}

fn latest(scratch: &Scratch) -> String {
    copies(scratch)[0]["number"].to_string()
}

/// The role of each member in the latest copy.
fn roles(scratch: &Scratch) -> Vec<String> {
    let copies = copies(scratch);
    let members = copies[0]["members"].as_array().expect("members");
    members.iter().map(|one| one["role"].as_str().expect("a role").to_owned()).collect()
}

fn files(scratch: &Scratch) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(scratch.join("state/superblocks")).expect("a folder");
    entries.map(|entry| entry.expect("an entry").path()).collect()
}

/// An array of [`NAMES`], with content, that is down.
fn array(level: &str, options: &[&str]) -> (Scratch, Vec<u8>) {
    let scratch = Scratch::new();
    NAMES.iter().for_each(|name| drop(scratch.sparse(name, SIZE)));
    let create = ["create", "home", "--level", level];
    scratch.run(&[&create[..], options, &NAMES].concat()).ok();
    let content = pattern(7, 0, MIB);
    let volume = up(&scratch);
    let mut client = volume.client();
    client.write(0, &content, false).expect("a write");
    client.flush().expect("a flush");
    drop(client);
    volume.down();
    (scratch, content)
}

fn up(scratch: &Scratch) -> UpVolume<'_> {
    scratch.up("home", &["--attach", "none"])
}

/// Writes the same tables as firmware and installers: both tables, and nothing else.
fn write_gpt(scratch: &Scratch, name: &str) {
    let size = scratch.read(name).len() as u64;
    let mut table = vec![0; 34 * 512];
    table[510..512].copy_from_slice(&[0x55, 0xaa]);
    table[450] = 0xee;
    table[454..458].copy_from_slice(&1u32.to_le_bytes());
    table[458..462].copy_from_slice(&u32::MAX.to_le_bytes());
    table[512..520].copy_from_slice(b"EFI PART");
    scratch.patch(name, 0, &table);
    scratch.patch(name, size - 512, b"EFI PART");
}

fn zero(scratch: &Scratch, name: &str) {
    let at = superblock(scratch, name).super_offset;
    scratch.patch(name, at, &[0; SUPERBLOCK_BYTES]);
}

#[track_caller]
fn has_content(scratch: &Scratch, content: &[u8]) {
    let volume = up(scratch);
    assert!(volume.client().read(0, content.len() as u32).expect("a read") == content);
    volume.down();
}

#[test]
fn superblocks_that_were_zeroed_come_back_and_can_be_undone() {
    for (level, options) in [
        ("raid5", &[][..]),
        ("raid1", &["--bitmap", "64K"]),
        ("raid1", &["--metadata", "1.0", "--bitmap", "64K"]),
        ("raid5", &["--metadata", "0.90"]),
        ("raid0", &[]),
    ] {
        let (scratch, content) = array(level, options);
        let before: Vec<_> = NAMES.iter().map(|name| superblock(&scratch, name)).collect();
        NAMES.iter().for_each(|name| zero(&scratch, name));
        let zeroed: Vec<_> = NAMES.iter().map(|name| scratch.read(name)).collect();
        let number = latest(&scratch);
        let unchanged = Unchanged::since_now(&scratch);
        let plan = scratch.run(&["superblocks", "restore", &number, "--plan"]).ok();
        assert!(
            plan.out.contains("would be written") && plan.out.contains("nothing was"),
            "{plan}"
        );
        let show = scratch.run(&["superblocks", "show", &number]).ok();
        let uuid = before[1].device_uuid.to_string();
        assert!(show.out.contains(&uuid) && show.out.contains("role 1"), "{show}");
        unchanged.holds("show and --plan");
        scratch.run(&["superblocks", "restore", &number]).ok();
        let after: Vec<_> = NAMES.iter().map(|name| superblock(&scratch, name)).collect();
        assert!(after == before, "{level} {options:?}: as they were when it was down");
        scratch.run(&["undo"]).ok();
        for (name, zeroed) in NAMES.iter().zip(&zeroed) {
            assert!(scratch.read(name) == *zeroed, "{name} is as it was before");
        }
        scratch.run(&["superblocks", "restore", &number]).ok();
        has_content(&scratch, &content);
    }
}

/// The undo of a creation finds what was there before it, and must not take that for its own work.
#[test]
fn an_array_that_lost_its_superblocks_is_not_forgotten_by_an_undo() {
    let (scratch, content) = array("raid5", &[]);
    NAMES.iter().for_each(|name| scratch.patch(name, 4096, &[0; 3 * 4096]));
    let copy = latest(&scratch);
    let restore = format!("braid superblocks restore {copy}");
    let record = std::fs::read(scratch.config_file("home")).expect("a record");
    scratch.run(&["up", "home"]).fails(REFUSED, &["carries no md superblock", &restore]);
    refuses(&scratch, &["examine", "a.img"], FAILED, &["no md superblock", &restore]);
    let parts = ["lost its superblock after the array was used", &restore, "braid undo 1 --force"];
    refuses(&scratch, &["undo", "home"], REFUSED, &parts);
    assert_eq!(std::fs::read(scratch.config_file("home")).expect("a record"), record);
    scratch.run(&["superblocks", "restore", &copy]).ok();
    has_content(&scratch, &content);
}

/// The command ends before the Nth call of a kind, by a kill or by an error, for each N that there is: all that
/// writes is among these calls.
#[test]
fn a_restore_that_ends_at_any_step_leaves_what_was_or_can_be_repeated() {
    skip_without!("strace");
    let (scratch, content) = array("raid5", &["--consistency", "bitmap"]);
    let before: Vec<_> = NAMES.iter().map(|name| superblock(&scratch, name)).collect();
    let bitmap =
        before[0].bitmap_offset.and_then(|one| before[0].super_offset.checked_add_signed(one));
    let bitmap = bitmap.expect("a bitmap");
    let number = latest(&scratch);
    let lose = || {
        NAMES.map(|name| {
            zero(&scratch, name);
            scratch.patch(name, bitmap, &[0; 4096]);
            scratch.read(name)
        })
    };
    let mut steps = 0;
    for (call, how) in ["pwrite64", "fsync", "rename", "renameat2"]
        .iter()
        .flat_map(|call| [(call, "signal=KILL"), (call, "error=EIO")])
    {
        for step in 1.. {
            let lost = lose();
            let ended = crate::common::Tool::new("strace")
                .args(["-f", "-qq", "-o", "/dev/null", "-e"])
                .args([format!("trace={call}"), "-e".to_owned()])
                .args([format!("inject={call}:{how}:when={step}")])
                .args([env!("CARGO_BIN_EXE_braid"), "superblocks", "restore", &number])
                .env("BRAID_STATE_DIR", scratch.join("state"))
                .env("BRAID_RUN_DIR", scratch.run_folder())
                .env("BRAID_CONFIG_DIR", scratch.join("config"))
                .folder(scratch.path())
                .run();
            if ended.code() == 0 {
                break;
            }
            steps += 1;
            let is_before = || NAMES.map(|name| scratch.read(name)) == lost;
            assert!(how == "signal=KILL" || is_before(), "{call} {step}: put back: {ended}");
            // A member that has its superblock has all that it points to.
            scratch.run(&["superblocks", "restore", &number]).ok();
            let after: Vec<_> = NAMES.iter().map(|name| superblock(&scratch, name)).collect();
            assert!(after == before, "{call} {how} {step}");
        }
    }
    assert!(steps > 20, "{steps} steps");
    has_content(&scratch, &content);
}

/// The room between superblock and data, with bitmap and the head of any log: a log begins anew on members that are
/// in order.
#[test]
fn heads_of_logs_need_no_copy() {
    for level in ["raid4", "raid5", "raid6"] {
        let scratch = Scratch::new();
        let names = ["a.img", "b.img", "c.img", "d.img"];
        names.iter().for_each(|name| drop(scratch.sparse(name, 8 * SIZE)));
        scratch.run(&[&["create", "home", "--level", level][..], &names].concat()).ok();
        let content = pattern(7, 0, MIB);
        let volume = up(&scratch);
        wait_until("the resync", || volume.status()["arrays"][0]["job"].is_null());
        let mut client = volume.client();
        client.write(0, &content, false).expect("a write");
        client.flush().expect("a flush");
        drop(client);
        volume.down();
        let number = latest(&scratch);
        for name in names {
            let data = superblock(&scratch, name).data_offset as usize;
            scratch.patch(name, 4096, &vec![0; data - 4096]);
        }
        scratch.run(&["superblocks", "restore", &number]).ok();
        has_content(&scratch, &content);
        let volume = up(&scratch);
        scratch.run(&["scrub", "home", "--wait"]).ok();
        volume.down();
    }
}

/// One disk of three has a partition table from a firmware; a foreign disk stands in another's place.
#[test]
fn a_partition_table_is_overwritten_by_name_alone() {
    for options in [&[][..], &["--consistency", "bitmap"]] {
        let (scratch, content) = array("raid5", options);
        let before = superblock(&scratch, "b.img");
        write_gpt(&scratch, "b.img");
        let number = latest(&scratch);
        let restore = ["superblocks", "restore", &number];
        refuses(&scratch, &restore, REFUSED, &["b.img is refused: it contains GPT", "--force"]);
        // Intact superblocks stay, and the restored ones agree with them.
        for name in ["a.img", "c.img"] {
            edit(&scratch, name, |one| one.events += 10);
        }
        let done = scratch.run(&[&restore[..], &["--force", "b.img"]].concat()).ok();
        assert!(done.out.contains("a.img: its superblock is in order and stays"), "{done}");
        let after = superblock(&scratch, "b.img");
        assert_eq!((after.device_uuid, after.events), (before.device_uuid, before.events + 10));
        let volume = up(&scratch);
        assert_eq!(volume.status()["state"], "online", "{}", volume.status());
        volume.down();
        has_content(&scratch, &content);
    }
}

#[test]
fn another_device_and_another_size_are_refused() {
    let (scratch, content) = array("raid1", &[]);
    let number = latest(&scratch);
    let restore = ["superblocks", "restore", &number];
    zero(&scratch, "b.img");
    std::fs::copy(scratch.join("b.img"), scratch.join("copy.img")).expect("a copy");
    scratch.sparse("foreign.img", SIZE);
    let foreign = [&restore[..], &["foreign.img"]].concat();
    refuses(&scratch, &foreign, REFUSED, &["foreign.img is none of the members", "ID=", "--force"]);
    let copy = [&restore[..], &["1=copy.img"]].concat();
    refuses(&scratch, &copy, REFUSED, &["copy.img is another device than it was", "--force"]);
    refuses(&scratch, &[&restore[..], &["9=copy.img"]].concat(), 2, &["no member with ID 9"]);
    scratch.resize("b.img", SIZE + 4096);
    refuses(&scratch, &restore, REFUSED, &["b.img has 6295552 bytes, and had 6291456"]);
    // The copy of a disk that failed is the member from now on.
    std::fs::remove_file(scratch.join("b.img")).expect("a member");
    let output = scratch.run(&[&copy[..], &["--force", "copy.img"]].concat()).ok();
    assert!(!output.out.contains("a.img"), "only the named one: {output}");
    std::fs::rename(scratch.join("copy.img"), scratch.join("b.img")).expect("renamed");
    has_content(&scratch, &content);
    // A member of another array stands where one of this was.
    scratch.run(&["wipe", "c.img"]).ok();
    scratch.run(&["create", "other", "--level", "raid0", "c.img", "--force", "c.img"]).ok();
    refuses(&scratch, &[&restore[..], &["--older"]].concat(), REFUSED, &["c.img", "it contains"]);
}

#[test]
fn an_array_that_is_up_is_refused_and_so_is_a_member_in_use() {
    let (scratch, _) = array("raid1", &[]);
    let number = latest(&scratch);
    let volume = up(&scratch);
    scratch
        .run(&["superblocks", "restore", &number, "--older"])
        .fails(REFUSED, &["the array is up as home", "braid down home"]);
    volume.down();
    zero(&scratch, "a.img");
    let _volume = scratch.serve("file(a.img)", &["--force", "a.img"]);
    scratch
        .run(&["superblocks", "restore", &latest(&scratch), "--older"])
        .fails(REFUSED, &["a.img is refused: it is in use"]);
}

/// ```text
///   copy 1   a b c ── b fails ── copy 2   a c ── writes          all superblocks are lost
///                                                                copy 1 would call b fresh
/// ```
#[test]
fn a_member_that_left_is_not_made_fresh() {
    let (scratch, _) = array("raid1", &[]);
    let old = latest(&scratch);
    let before = copies(&scratch).len();
    let volume = up(&scratch);
    scratch.run(&["member", "fail", "home", "b.img"]).ok();
    wait_until("a copy without it", || {
        copies(&scratch).len() > before && roles(&scratch) == ["role 0", "role 2"]
    });
    volume.down();
    zero(&scratch, "b.img");
    let restore = ["superblocks", "restore"];
    let with_old = [&restore[..], &[&old, "--older"]].concat();
    let parts = ["b.img was role 1 in the copy", "that it is faulty", "braid member add"];
    refuses(&scratch, &with_old, REFUSED, &parts);
    zero(&scratch, "a.img");
    zero(&scratch, "c.img");
    let with_old = [&restore[..], &[&old[..]]].concat();
    refuses(&scratch, &with_old, REFUSED, &["of this array is later", "--older"]);
    scratch.run(&[&restore[..], &[&latest(&scratch)[..]]].concat()).ok();
    let roles = superblock(&scratch, "a.img").roles.clone();
    assert_eq!(roles[..3], [Role::Active(0), Role::Faulty, Role::Active(2)]);
}

#[test]
fn each_change_is_kept_and_the_volume_goes_on_after_a_kill() {
    let scratch = Scratch::new();
    NAMES.iter().for_each(|name| drop(scratch.sparse(name, SIZE)));
    scratch.run(&["create", "home", "--level", "raid1", "a.img", "b.img"]).ok();
    assert_eq!(roles(&scratch), ["role 0", "role 1"]);
    let volume = up(&scratch);
    scratch.run(&["member", "add", "home", "c.img"]).ok();
    wait_until("a copy with the spare", || roles(&scratch) == ["role 0", "role 1", "spare"]);
    scratch.run(&["member", "fail", "home", "a.img"]).ok();
    wait_until("a copy in which the spare has the role", || {
        let mut roles = roles(&scratch);
        roles.sort();
        roles == ["role 0", "role 1"]
    });
    // The next start removes the file that a kill in the middle of a copy left, and makes up for missing copies.
    volume.kill();
    let hidden = scratch.join("state/superblocks/.9-x.json.new-0123");
    std::fs::write(&hidden, "{").expect("a file");
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(7200);
    let file = std::fs::File::options().write(true).open(&hidden).expect("a file");
    file.set_modified(long_ago).expect("a time");
    for path in files(&scratch).into_iter().filter(|path| *path != hidden) {
        std::fs::remove_file(path).expect("a copy");
    }
    let volume = up(&scratch);
    wait_until("a copy of the start", || !copies(&scratch).is_empty());
    assert!(!hidden.exists());
    assert_eq!(copies(&scratch)[0]["why"], "up");
    volume.down();
    assert_eq!(copies(&scratch)[0]["why"], "down", "in place of that of the start");
    assert_eq!(copies(&scratch).len(), 1, "as nothing changed between them");
}

#[test]
fn a_hundred_changes_keep_sixteen() {
    let scratch = Scratch::new();
    NAMES.iter().for_each(|name| drop(scratch.sparse(name, SIZE)));
    scratch.run(&["create", "home", "--level", "raid1", "a.img", "b.img"]).ok();
    scratch.run(&["create", "other", "--level", "raid0", "c.img"]).ok();
    for change in 0..100u32 {
        edit(&scratch, "a.img", |one| one.write_mostly = change % 2 == 0);
        scratch.run(&["superblocks", "save", "home"]).ok();
    }
    let copies = copies(&scratch);
    let uuid = superblock(&scratch, "a.img").array_uuid.to_string();
    let of_home = copies.iter().filter(|one| one["uuid"] == uuid.as_str()).count();
    assert_eq!((of_home, copies.len()), (16, 17), "and one of the other array");
    assert_eq!(files(&scratch).len(), 17);
    use std::os::unix::fs::PermissionsExt;
    for file in files(&scratch) {
        let mode = std::fs::metadata(&file).expect("a copy").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", file.display());
    }
    // The same once more is no more.
    let number = latest(&scratch);
    scratch.run(&["superblocks", "save", "home"]).ok();
    assert_eq!((latest(&scratch), files(&scratch).len()), (number, 17));
}

#[test]
fn a_change_goes_on_without_a_copy() {
    let scratch = Scratch::new();
    NAMES.iter().for_each(|name| drop(scratch.sparse(name, SIZE)));
    std::fs::create_dir(scratch.join("state")).expect("a folder");
    std::fs::write(scratch.join("state/superblocks"), "in the way").expect("a file");
    let created = scratch.run(&["create", "home", "--level", "raid1", "a.img", "b.img"]).ok();
    assert!(created.err.contains("no copy of the superblocks is kept in"), "{created}");
    scratch
        .run(&["superblocks", "save", "home"])
        .fails(FAILED, &["no copy of the superblocks is kept in"]);
    let volume = up(&scratch);
    let says = || volume.status()["warnings"].to_string().contains("no copy of the superblocks");
    wait_until("a warning", says);
    std::fs::remove_file(scratch.join("state/superblocks")).expect("a file");
    scratch.run(&["member", "add", "home", "c.img"]).ok();
    wait_until("a copy", || !copies(&scratch).is_empty() && !says());
    volume.down();
}

#[test]
fn a_full_disk_stops_no_change() {
    skip_unless_root!();
    let scratch = Scratch::new();
    NAMES.iter().for_each(|name| drop(scratch.sparse(name, SIZE)));
    let Some(full) = Mounted::tmpfs(&scratch.join("state/superblocks"), 4096) else { return };
    let ballast = full.point().join("ballast");
    std::fs::write(&ballast, [1; 4096]).expect("room for one page");
    let created = scratch.run(&["create", "home", "--level", "raid1", "a.img", "b.img"]).ok();
    assert!(created.err.contains("No space left on device"), "{created}");
    let volume = up(&scratch);
    scratch.run(&["member", "add", "home", "c.img"]).ok();
    wait_until("a warning", || volume.status()["warnings"].to_string().contains("No space left"));
    assert_eq!(files(&scratch), [ballast], "nothing half done is left");
    volume.down();
}

#[test]
fn a_file_takes_them_to_another_machine_and_damaged_ones_are_refused() {
    let (scratch, content) = array("raid5", &[]);
    let save = ["superblocks", "save", "home", "--to", "safe.json"];
    scratch.run(&save).ok();
    scratch.run(&save).fails(FAILED, &["cannot write safe.json", "File exists"]);
    std::fs::remove_dir_all(scratch.join("state")).expect("a folder");
    NAMES.iter().for_each(|name| zero(&scratch, name));
    let text = std::fs::read_to_string(scratch.join("safe.json")).expect("a copy");
    let superblock = text.find("fc4e2ba9").expect("md's magic number");
    for (at, part) in
        [(text.len() / 2, "holds no superblocks"), (superblock + 40, "cannot be used")]
    {
        let mut damaged = text.clone().into_bytes();
        damaged[at] = if damaged[at] == b'0' { b'1' } else { b'0' };
        let damaged = if part.contains("holds") { &damaged[..at] } else { &damaged[..] };
        std::fs::write(scratch.join("damaged.json"), damaged).expect("a copy");
        refuses(&scratch, &["superblocks", "restore", "damaged.json"], FAILED, &[part]);
    }
    std::fs::remove_file(scratch.join("damaged.json")).expect("a copy");
    let no_copy = ["neither a copy's number nor a file", "braid superblocks list"];
    refuses(&scratch, &["superblocks", "restore", "home"], FAILED, &no_copy);
    scratch.run(&["superblocks", "restore", "safe.json"]).ok();
    has_content(&scratch, &content);
}

#[test]
fn a_damaged_copy_is_not_left_out_in_silence() {
    let (scratch, _) = array("raid1", &[]);
    let copy = files(&scratch).pop().expect("a copy");
    std::fs::write(&copy, "{").expect("a copy");
    let list = scratch.run(&["superblocks", "list"]).ok();
    assert!(list.err.contains("holds no superblocks"), "{list}");
}

/// A creation over an array whose superblocks are lost, or over another array, reports that array.
#[test]
fn a_creation_over_an_array_names_it_and_where_data_started() {
    let (scratch, content) = array("raid5", &["--consistency", "resync", "--data-offset", "1M"]);
    let uuid = superblock(&scratch, "a.img").array_uuid.to_string();
    let create = |options: &[&str]| {
        let create = ["create", "again", "--level", "raid5", "--assume-clean"];
        scratch.run(&[&create[..], options, &["a.img", "b.img", "c.img"]].concat())
    };
    let refused = create(&[]).fails(REFUSED, &["a.img is refused: it contains", "--force"]);
    let what = "a.img (role 0), ";
    let parts = ["there is an array on ", what, "raid5 of 3 members, left-symmetric", &uuid];
    for part in [&parts[..], &["chunk 512 KiB, metadata 1.2, data from 1 MiB on"]].concat() {
        assert!(refused.err.contains(part), "{part}: {refused}");
    }
    let offsets = "start at 12 KiB (3.0 to 3.1.1), ";
    assert!(refused.err.contains(offsets) && refused.err.contains("(4.1 and later)"), "{refused}");
    // Superblocks that are lost are known by the copy of them.
    NAMES.iter().for_each(|name| zero(&scratch, name));
    let number = latest(&scratch);
    let plan = create(&["--plan"]).ok();
    let restore = format!("to have it: `braid superblocks restore {number}`");
    assert!(plan.err.contains("there was an array on a.img") || plan.err.contains(what), "{plan}");
    assert!(plan.err.contains(&uuid) && plan.err.contains(&restore), "{plan}");
    let same = create(&["--consistency", "resync", "--data-offset", "1M", "--plan", "--json"]).ok();
    assert_eq!(same.json()["notes"][0].as_str().map(|one| one.contains(&uuid)), Some(true));
    scratch.run(&["superblocks", "restore", &number]).ok();
    // The user forces it by mistake: the copy from before helps.
    let force =
        ["--force", "a.img", "--force", "b.img", "--force", "c.img", "--consistency", "resync"];
    create(&force).ok();
    let kept = copies(&scratch);
    let before = kept.iter().find(|one| one["uuid"] == uuid.as_str()).expect("a copy of before");
    assert_eq!(before["why"], "create over it");
    let number = before["number"].to_string();
    scratch.run(&[&["superblocks", "restore", &number][..], &force[..6]].concat()).ok();
    has_content(&scratch, &content);
}

/// Also without a copy, if there are contents where data may have started; new files are no array.
#[test]
fn contents_without_superblocks_are_seen_where_data_may_have_started() {
    let scratch = Scratch::new();
    ["a.img", "b.img"].iter().for_each(|name| drop(scratch.sparse(name, SIZE)));
    let create =
        ["create", "new", "--level", "raid1", "--assume-clean", "--plan", "a.img", "b.img"];
    assert_eq!(scratch.run(&create).ok().err, "");
    scratch.patch("b.img", MIB, &[1]);
    let plan = scratch.run(&create).ok();
    assert!(plan.err.contains("start at ") && plan.err.contains("1 MiB (4.1 and later)"), "{plan}");
}
