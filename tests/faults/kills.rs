//! SIGKILL in the middle of fio with verification, over each export and level, healthy, degraded and
//! recovering.
//!
//! ```text
//!   fio      writes, each with its checksum ──── kill              verifies
//!   volume   up ── (a member fails ── a spare is filled) ──┘   up again ──┘   scrub
//! ```
//!
//! fio notes where each write lay that was answered. What was under way at the kill may be there or
//! not (fio takes some of that for written); what was answered must be. The kill comes when members
//! hold so much of what fio writes, with its queue full: fio is not paced, because before each pause
//! it waits for its queue, without end if the server of its `nbd` engine dies meanwhile.
//!
//! One kill of each level over each export; `BRAID_KILLS=50` (`make soak-kills`) for as many as one
//! wants, through all conditions in turn.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use crate::common::{MIB, Output, Scratch, Tool, UpVolume, skip_unless_root, skip_without};
use crate::is_redundant;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Export {
    Nbd,
    Attached,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Condition {
    Healthy,
    Degraded,
    Recovering,
}

const CONDITIONS: [Condition; 3] = [Condition::Healthy, Condition::Degraded, Condition::Recovering];

/// fio over `volume`, from a seed; the same words write and verify.
fn fio(scratch: &Scratch, volume: &UpVolume, export: Export, seed: u64, more: &[&str]) -> Output {
    let target = match export {
        Export::Nbd => vec!["--ioengine=nbd".to_owned(), format!("--uri={}", volume.uris[0])],
        Export::Attached => vec![
            "--ioengine=libaio".to_owned(),
            "--direct=1".to_owned(),
            format!("--filename={}", volume.device().display()),
        ],
    };
    let job = ["--name=v", "--rw=randwrite", "--bs=4k", "--size=32M", "--iodepth=16"];
    Tool::new("fio")
        .args(job)
        .arg("--verify=crc32c")
        .arg(format!("--randseed={seed}"))
        .args(target)
        .args(more)
        .folder(scratch.path())
        .run()
}

/// The places of the answered writes: the fifth column of fio's log of latencies, which is missing if the
/// volume was gone before fio reached it.
fn answered(scratch: &Scratch) -> BTreeSet<u64> {
    let log = match std::fs::read_to_string(scratch.join("v_lat.1.log")) {
        Err(error) if error.kind() == ErrorKind::NotFound => return BTreeSet::new(),
        log => log.expect("fio's log"),
    };
    let offset = |line: &str| line.split(", ").nth(4)?.trim().parse().ok();
    log.lines().filter_map(offset).collect()
}

/// The places where fio found other data than it expects.
fn differing(verified: &Output) -> BTreeSet<u64> {
    let texts = verified.out.lines().chain(verified.err.lines());
    let bad = texts.filter(|line| line.starts_with("verify: bad") || line.starts_with("crc32c:"));
    let offset = |line: &str| {
        let rest = line.split_once(" offset ")?.1;
        rest.split(',').next()?.trim().parse().ok()
    };
    bad.map(|line| offset(line).unwrap_or_else(|| panic!("no offset in {line:?}"))).collect()
}

/// The allocated bytes of the files `names`.
fn allocated(scratch: &Scratch, names: &[String]) -> u64 {
    let blocks = |name| std::fs::metadata(scratch.join(name)).expect("a member is there").blocks();
    names.iter().map(|name| 512 * blocks(name)).sum()
}

fn up<'a>(scratch: &'a Scratch, export: Export) -> UpVolume<'a> {
    let attach = if export == Export::Nbd { "none" } else { "fuse" };
    scratch.up("v", &["--attach", attach])
}

/// One round: made, brought into its condition, killed in the middle of writes, verified. False if
/// fio was not in the middle, which shows nothing: on a busy machine it may be done before one looks.
fn kill_once(level: &str, members: usize, export: Export, condition: Condition, seed: u64) -> bool {
    println!("{level}, {export:?}, {condition:?}, seed {seed}");
    let scratch = Scratch::new();
    let names: Vec<String> = (0..members).map(|index| format!("m{index}.img")).collect();
    names.iter().for_each(|name| drop(scratch.sparse(name, 64 * MIB)));
    scratch.sparse("spare.img", 64 * MIB);
    let create = scratch.braid().args(["create", "v", "--level", level]).args(&names);
    let create = if is_redundant(level) { create.arg("--assume-clean") } else { create };
    create.run().ok();
    let volume = up(&scratch, export);
    if condition != Condition::Healthy {
        scratch.run(&["member", "fail", "v", "m1.img"]).ok();
        scratch.run(&["member", "remove", "v", "m1.img"]).ok();
    }
    if condition == Condition::Recovering {
        // Slow enough to be under way when the process is killed.
        scratch.run(&["speed", "v", "--min", "1M", "--max", "4M"]).ok();
        scratch.run(&["member", "add", "v", "spare.img"]).ok();
    }
    let enough = allocated(&scratch, &names) + (2 + seed % 8) * MIB;
    let write = ["--do_verify=0", "--verify_state_save=1", "--write_lat_log=v", "--log_offset=1"];
    let written = std::thread::scope(|threads| {
        let fio = threads.spawn(|| fio(&scratch, &volume, export, seed, &write));
        while !fio.is_finished() && allocated(&scratch, &names) < enough {
            std::thread::sleep(Duration::from_millis(1));
        }
        volume.kill();
        fio.join().expect("fio ends")
    });
    let answered = answered(&scratch);
    let again = up(&scratch, export);
    if answered.len() <= 50 || written.status.success() {
        println!("  {} answered before the kill: once more", answered.len());
        again.down();
        drop(volume);
        return false;
    }
    let verify = ["--verify_only", "--verify_state_load=1", "--continue_on_error=verify"];
    let verified = fio(&scratch, &again, export, seed, &verify);
    let differ = differing(&verified);
    let lost: Vec<&u64> = differ.intersection(&answered).collect();
    println!("  {} answered, {} not, which differ", answered.len(), differ.len());
    assert!(lost.is_empty(), "lost at {lost:?}: {verified}\n--- written by\n{written}");
    assert!(verified.out.contains("verify") || verified.status.success(), "{verified}");
    if is_redundant(level) {
        let scrub = scratch.run(&["scrub", "v", "--wait"]);
        // A check compares what there is to compare; what it finds is a difference, and rc 1.
        assert!(!scrub.err.contains("differ"), "{scrub}");
    }
    again.down();
    drop(volume);
    true
}

fn killed(level: &str, members: usize) {
    skip_without!("fio");
    let kills: u64 = std::env::var("BRAID_KILLS").map_or(1, |text| text.parse().unwrap());
    let conditions = if is_redundant(level) { &CONDITIONS[..] } else { &CONDITIONS[..1] };
    for export in [Export::Nbd, Export::Attached] {
        if export == Export::Attached {
            skip_unless_root!();
        }
        for kill in 0..kills {
            // Each level begins with another condition, so that one of each has them all.
            let turn = kill as usize + members + usize::from(export == Export::Attached);
            let condition = conditions[turn % conditions.len()];
            let mut tries = 0..5;
            let is_in_the_middle =
                tries.any(|_| kill_once(level, members, export, condition, kill + 1));
            assert!(is_in_the_middle, "fio was not in the middle of its writes, five times");
        }
    }
}

#[test]
fn linear_killed_in_the_middle_of_fio() {
    killed("linear", 3);
}

#[test]
fn raid0_killed_in_the_middle_of_fio() {
    killed("raid0", 3);
}

#[test]
fn raid1_killed_in_the_middle_of_fio() {
    killed("raid1", 2);
}

#[test]
fn raid10_killed_in_the_middle_of_fio() {
    killed("raid10", 4);
}

#[test]
fn raid4_killed_in_the_middle_of_fio() {
    killed("raid4", 3);
}

#[test]
fn raid5_killed_in_the_middle_of_fio() {
    killed("raid5", 4);
}

#[test]
fn raid6_killed_in_the_middle_of_fio() {
    killed("raid6", 5);
}
