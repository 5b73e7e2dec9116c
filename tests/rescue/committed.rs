//! Superblocks are written for an array as it is read; braid assembles it, and the undo gives back every byte.

use std::path::PathBuf;

use crate::Case;
use crate::common::{MIB, Output, Scratch, Tool, skip_without};
use crate::solved::{NAMES, filled, solve, striped};

const REFUSED: i32 = 3;

fn commit(scratch: &Scratch, name: &str, more: &[&str]) -> Output {
    scratch.run(&[&["rescue", "commit", name], more].concat())
}

/// The members' bytes.
fn bytes(scratch: &Scratch, names: &[&str]) -> Vec<Vec<u8>> {
    names.iter().map(|name| scratch.read(name)).collect()
}

/// Compares the first bytes of an array that describes itself.
#[track_caller]
fn reads(scratch: &Scratch, names: &[&str], expected: &[u8]) {
    let volume = scratch.serve(&format!("md({})", names.join(", ")), &["--read-only"]);
    let mut client = volume.client();
    for (index, expected) in expected.chunks(MIB as usize).enumerate() {
        let length = u32::try_from(expected.len()).expect("a MiB");
        let read = client.read(index as u64 * MIB, length).expect("the array is read");
        assert!(read == expected, "another content in MiB {index}");
    }
}

/// Members without superblocks, in another order than that of their names; `open` reads them by evidence.
fn lost(scratch: &Scratch) -> Vec<u8> {
    filled(scratch, 60 * MIB);
    striped(scratch, &["c.img", "a.img", "d.img", "b.img"]);
    solve(scratch, &NAMES, &[]).ok();
    scratch.read("data.img")
}

#[test]
fn members_without_superblocks_are_an_array_again_and_the_undo_gives_back_every_byte() {
    skip_without!("mkfs.ext4", "nbdcopy");
    let scratch = Scratch::new();
    let data = lost(&scratch);
    let before = bytes(&scratch, &NAMES);
    let refused = commit(&scratch, "lost", &[]);
    refused.fails(REFUSED, &["the content was not verified", "braid rescue verify lost"]);
    let plan = commit(&scratch, "lost", &["--verified"]).ok();
    assert!(plan.out.contains("new: no superblock is left"), "{plan}");
    assert!(plan.out.contains("Next: braid rescue commit lost --verified --write"), "{plan}");
    let mdadm = commit(&scratch, "lost", &["--mdadm"]).ok();
    assert!(mdadm.out.contains("--data-offset=1024K"), "{mdadm}");
    assert_eq!(bytes(&scratch, &NAMES), before, "a plan writes nothing");

    let planned = commit(&scratch, "lost", &["--verified", "--json"]).ok().json();
    let written = commit(&scratch, "lost", &["--verified", "--write", "--json"]).ok().json();
    assert_eq!([&planned["written"], &written["written"]], [false, true]);
    assert_eq!([&planned["uuid"], &planned["writes"]], [&written["uuid"], &written["writes"]]);
    reads(&scratch, &NAMES, &data);
    let open = scratch.run(&["rescue", "open", "lost"]).ok();
    assert!(open.out.contains("In doubt: nothing."), "{open}");
    let again = commit(&scratch, "lost", &["--write"]).ok();
    assert!(again.out.contains("Committed"), "{again}");
    scratch.run(&["assemble", "a.img", "b.img", "c.img", "d.img"]).ok();

    commit(&scratch, "lost", &["--undo"]).ok();
    assert_eq!(bytes(&scratch, &NAMES), before, "the undo");
    scratch.run(&["rescue", "open", "lost"]).ok();
    commit(&scratch, "lost", &["--undo"]).fails(1, &["nothing of this case was committed"]);
}

/// The verdict that `verify` notes in the case counts for exactly the stack that is committed.
#[test]
fn the_verdict_of_verify_decides() {
    let case = Case::of(braid_golden::broken("raid5-4-two-dropped"));
    case.scan(&[]).ok();
    let open = case.scratch.run(&["rescue", "open", "home"]);
    let stack = crate::stack(&open);
    let note = |stack: &str, verdict: &str| {
        let text = serde_json::json!([{
            "volume": "home", "stack": stack, "size_bytes": 0, "at_s": 0, "verdict": verdict, "doubts": [],
            "members": [], "compared": null, "checker": null, "samples": null,
        }]);
        let text = text.to_string();
        std::fs::write(case.scratch.join("home.rescue/verified.json"), text).expect("written");
    };
    note(&stack, "right");
    commit(&case.scratch, "home", &[]).ok();
    note("raid1(a.img, b.img)", "right");
    commit(&case.scratch, "home", &[]).fails(REFUSED, &["the content was not verified"]);
    note(&stack, "doubtful");
    commit(&case.scratch, "home", &[]).fails(REFUSED, &["could not say that the content is right"]);
    commit(&case.scratch, "home", &["--verified"]).ok();
    note(&stack, "wrong");
    let wrong = commit(&case.scratch, "home", &["--verified", "--write"]);
    wrong.fails(REFUSED, &["found the content wrong", "braid rescue solve home"]);
    case.untouched();
}

/// The command ends before the Nth call of a kind, by a kill or by an error, for each N that there is.
#[test]
fn a_commit_that_ends_at_any_step_is_finished_or_undone() {
    skip_without!("strace", "mkfs.ext4", "nbdcopy");
    let scratch = Scratch::new();
    lost(&scratch);
    let before = bytes(&scratch, &NAMES);
    let words = ["rescue", "commit", "lost", "--verified", "--write"];
    scratch.run(&words).ok();
    let after = |scratch: &Scratch| {
        let all = bytes(scratch, &NAMES);
        all.into_iter().map(|member| member[..4096 + 64].to_vec()).collect::<Vec<_>>()
    };
    let committed = after(&scratch);
    commit(&scratch, "lost", &["--undo"]).ok();
    let mut steps = 0;
    for (call, how) in ["pwrite64", "fsync", "rename"]
        .iter()
        .flat_map(|call| [(call, "signal=KILL"), (call, "error=EIO")])
    {
        for step in 1.. {
            let ended = Tool::new("strace")
                .args(["-f", "-qq", "-o", "/dev/null", "-e"])
                .args([format!("trace={call}"), "-e".to_owned()])
                .args([format!("inject={call}:{how}:when={step}")])
                .arg(env!("CARGO_BIN_EXE_braid"))
                .args(words)
                .env("BRAID_STATE_DIR", scratch.join("state"))
                .env("BRAID_RUN_DIR", scratch.run_folder())
                .env("BRAID_CONFIG_DIR", scratch.join("config"))
                .folder(scratch.path())
                .run();
            if ended.code() == 0 {
                commit(&scratch, "lost", &["--undo"]).ok();
                break;
            }
            steps += 1;
            let is_before = || bytes(&scratch, &NAMES) == before;
            assert!(how == "signal=KILL" || is_before(), "{call} {step}: put back: {ended}");
            // One is finished, the next is undone.
            if step % 2 == 0 {
                scratch.run(&words).ok();
                assert!(after(&scratch) == committed, "{call} {how} {step}");
            }
            let undone = commit(&scratch, "lost", &["--undo"]);
            let is_nothing = undone.err.contains("nothing of this case was committed");
            assert!(undone.status.success() || is_nothing, "{call} {how} {step}: {undone}");
            assert!(is_before(), "{call} {how} {step}");
            scratch.run(&["rescue", "open", "lost"]).ok();
        }
    }
    assert!(steps > 12, "{steps} steps");
}

#[test]
fn a_stale_member_becomes_a_missing_one_and_holes_are_refused() {
    let case = Case::of(braid_golden::broken("raid5-4-two-dropped-bitmap"));
    case.scan(&[]).ok();
    let names: Vec<&str> = case.names.iter().map(String::as_str).collect();
    let before = bytes(&case.scratch, &names);
    let written = commit(&case.scratch, "home", &["--verified", "--write"]).ok();
    assert!(written.out.contains("kept from"), "{written}");
    assert!(written.out.contains("3  -       missing"), "{written}");
    let expected = case.golden.content_block(0, case.golden.array_bytes as usize);
    reads(&case.scratch, &names, &expected);
    // The one that is not of the array any more is stale by its events.
    let assemble = case.scratch.run(&["assemble", "m0.img", "m1.img", "m2.img", "m3.img"]);
    assert!(assemble.out.contains("left out"), "{assemble}");
    commit(&case.scratch, "home", &["--undo"]).ok();
    assert_eq!(bytes(&case.scratch, &names), before);

    let size = case.golden.members[0].bytes;
    let map = format!("0 + 1\n0 1048576 +\n1048576 512 -\n1049088 {} +\n", size - 1_049_088);
    std::fs::write(case.scratch.join("m0.map"), map).expect("a map");
    case.scratch.run(&["rescue", "scan", "home", "--map", "m0.img=m0.map"]).ok();
    let refused = commit(&case.scratch, "home", &["--verified"]);
    refused.fails(REFUSED, &["has bytes that are not read", "braid rescue copy home"]);
}

#[test]
fn what_was_written_since_is_not_undone_without_being_named() {
    let case = Case::of(braid_golden::broken("raid5-4-two-dropped"));
    case.scan(&[]).ok();
    commit(&case.scratch, "home", &["--verified", "--write"]).ok();
    // As an array that was started writes it.
    let bytes = case.scratch.read("m1.img");
    let number = bytes[4096 + 200].wrapping_add(2);
    case.scratch.patch("m1.img", 4096 + 200, &[number]);
    let refused = commit(&case.scratch, "home", &["--undo"]);
    refused.fails(REFUSED, &["m1.img was written since the commit", "--undo --force"]);
    commit(&case.scratch, "home", &["--write"]).fails(REFUSED, &["was written since"]);
    commit(&case.scratch, "home", &["--undo", "--force", "m1.img"]).ok();
    case.untouched();
}

#[test]
fn a_partition_table_over_members_is_named_before_it_is_overwritten() {
    skip_without!("mkfs.ext4", "nbdcopy", "sfdisk");
    let scratch = Scratch::new();
    let data = lost(&scratch);
    for name in NAMES {
        let sfdisk = Tool::new("sfdisk").args(["-q", "--no-reread"]).arg(scratch.join(name));
        sfdisk.input("label: gpt\nstart=2048, size=40960\n").run().ok();
    }
    std::fs::remove_dir_all(scratch.join("lost.rescue")).expect("a case");
    let solved = solve(&scratch, &NAMES, &[]);
    assert!(solved.out.contains("Decided"), "{solved}");
    let before = bytes(&scratch, &NAMES);
    let refused = commit(&scratch, "lost", &["--verified"]);
    let path = scratch.join("c.img").display().to_string();
    refused.fails(REFUSED, &["c.img has a sound partition table", "--force", &path]);
    let force: Vec<&str> = NAMES.iter().flat_map(|name| ["--force", *name]).collect();
    commit(&scratch, "lost", &[&["--verified", "--write"], &force[..]].concat()).ok();
    reads(&scratch, &NAMES, &data);
    commit(&scratch, "lost", &["--undo"]).ok();
    assert_eq!(bytes(&scratch, &NAMES), before);
}

#[test]
fn an_original_disk_stays_as_it_is_while_an_image_of_it_is_there() {
    crate::common::skip_unless_root!();
    let case = Case::of(braid_golden::broken("raid5-4-two-dropped"));
    let (scratch, elsewhere) = (&case.scratch, Scratch::new());
    let copies: Vec<PathBuf> = case.names.iter().map(|name| elsewhere.join(name)).collect();
    let mut disks = Vec::new();
    for (name, copy) in case.names.iter().zip(&copies) {
        std::fs::copy(scratch.join(name), copy).expect("a copy");
        let Some(disk) = crate::common::LoopDevice::attach(copy) else {
            return println!("skipped: no loop device can be attached");
        };
        disks.push(disk);
    }
    let paths: Vec<&str> = disks.iter().map(|disk| disk.text()).collect();
    scratch.run(&[&["rescue", "scan", "disks"], &paths[..]].concat()).ok();
    let refused = commit(scratch, "disks", &["--verified"]);
    refused.fails(REFUSED, &["is an original disk, and an image of it is there", "m0.img"]);
    // The file behind a loop device is no image of it.
    case.names.iter().for_each(|name| std::fs::remove_file(scratch.join(name)).expect("an image"));
    commit(scratch, "disks", &["--verified"]).ok();
}
