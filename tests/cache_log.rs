//! A write-back cache as its user meets it: what a log keeps, what is refused, what a kill leaves.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use common::{
    KIB, MIB, Mounted, Output, Random, Scratch, Tool, pattern, skip_unless_root, skip_without,
    wait_until,
};
use serde_json::Value;

const LOGGED: &str = "cache(size=8M, mode=write-back, log=log.img, a.img)";

fn write_back(status: &Value) -> &Value {
    &status["caches"][0]["write_back"]
}

fn refused(output: &Output, words: &[&str]) {
    assert_eq!(output.status.code(), Some(3), "{output}");
    for word in words.iter().chain(&["next:"]) {
        assert!(output.err.contains(word), "{word:?} in {output}");
    }
}

fn scratch() -> Scratch {
    let scratch = Scratch::new();
    scratch.sparse("a.img", 32 * MIB);
    scratch.sparse("log.img", 4 * MIB);
    scratch
}

/// Leaves something in the log that the origin does not have; answers what.
fn leave_something(scratch: &Scratch) -> Vec<u8> {
    let written = pattern(3, 0, 64 * KIB);
    let volume = scratch.up(LOGGED, &["--name", "v", "--attach", "none"]);
    let mut client = volume.client();
    client.write(MIB, &written, true).expect("a write");
    volume.kill();
    let origin = scratch.read("a.img");
    assert!(origin[MIB as usize..][..64 << 10] != written[..], "killed before it was drained");
    written
}

#[test]
fn what_was_flushed_is_replayed_and_going_down_drains() {
    let scratch = scratch();
    let written = leave_something(&scratch);
    let volume = scratch.up("v", &["--attach", "none"]);
    let status = volume.status();
    assert_eq!(write_back(&status)["replayed_bytes"], 64 * KIB, "{status:#}");
    assert_eq!(write_back(&status)["flushed_to"], "log", "{status:#}");
    let mut client = volume.client();
    assert!(client.read(MIB, (64 * KIB) as u32).expect("a read") == written);
    assert!(scratch.read("a.img")[MIB as usize..][..64 << 10] == written[..], "replayed");
    let again = pattern(4, 0, 64 * KIB);
    client.write(2 * MIB, &again, false).expect("a write");
    let status = volume.status();
    assert_eq!(write_back(&status)["dirty_bytes"], 64 * KIB, "{status:#}");
    let text = scratch.run(&["status", "v"]).ok();
    assert!(text.out.contains("cache: write-back, s3-fifo, "), "{text}");
    assert!(text.out.contains("a power cut loses what was not flushed"), "{text}");
    volume.down();
    assert!(scratch.read("a.img")[2 * MIB as usize..][..64 << 10] == again[..], "drained");
    // What is closed has nothing to replay, so the origin may be used by itself, and changed.
    let volume = scratch.up("v", &["--attach", "none"]);
    assert_eq!(write_back(&volume.status())["replayed_bytes"], 0);
    volume.down();
}

#[test]
fn idleness_drains() {
    let scratch = scratch();
    for (name, stack) in
        [("logged", LOGGED), ("volatile", "cache(size=8M, mode=write-back, volatile=yes, a.img)")]
    {
        let options = ["--name", name, "--attach", "none"];
        let volume = scratch.up(stack, &options);
        let mut client = volume.client();
        client.write(MIB, &pattern(5, 0, 64 * KIB), false).expect("a write");
        wait_until("nothing is dirty", || write_back(&volume.status())["dirty_bytes"] == 0);
        client.write(MIB, &pattern(6, 0, 64 * KIB), false).expect("a write");
        client.flush().expect("a flush");
        let is_there = scratch.read("a.img")[MIB as usize..][..64 << 10] == pattern(6, 0, 64 * KIB);
        assert!(is_there || name == "logged", "without a log FLUSH is the origin's");
        volume.down();
    }
}

#[test]
fn a_log_that_cannot_be_used_is_refused_and_stays() {
    let scratch = scratch();
    let up = |stack: &str, more: &[&str]| {
        let name = ["up", stack, "--name", "w", "--attach", "none"];
        scratch.run(&[&name[..], more].concat())
    };
    scratch.sparse("small.img", 64 * KIB);
    let small = up("cache(size=8M, mode=write-back, log=small.img, a.img)", &[]);
    refused(&small, &["small.img", "bytes, and needs"]);

    scratch.sparse("vdo.img", 8 * MIB);
    scratch.patch("vdo.img", 0, b"dmvdo001");
    let foreign = up("cache(size=8M, mode=write-back, log=vdo.img, a.img)", &[]);
    refused(&foreign, &["vdo.img"]);
    assert!(scratch.read("vdo.img")[..4096].iter().filter(|byte| **byte != 0).count() == 8);

    leave_something(&scratch);
    let log = scratch.read("log.img");
    let origin = scratch.read("a.img");
    scratch.sparse("b.img", 32 * MIB);
    let other = up("cache(size=8M, mode=write-back, log=log.img, b.img)", &[]);
    refused(
        &other,
        &["it is the log of a cache in front of", "65536 bytes that the origin does not have"],
    );
    let as_member = up("raid0(log.img, b.img)", &[]);
    refused(&as_member, &["braid cache log"]);
    let looked_at = scratch.run(&["up", "v", "--attach", "none", "--read-only"]);
    refused(&looked_at, &["65536 bytes that the origin does not have"]);
    scratch.resize("a.img", 31 * MIB);
    let shrunk = scratch.run(&["up", "v", "--attach", "none"]);
    refused(&shrunk, &["a.img has"]);
    let shrunk = up(LOGGED, &[]);
    refused(&shrunk, &["it is the log of a cache in front of"]);
    scratch.resize("a.img", 32 * MIB);
    assert!(
        scratch.read("log.img") == log && scratch.read("a.img") == origin,
        "nothing was written"
    );

    // Another file at the log's path is not the log.
    std::fs::rename(scratch.join("log.img"), scratch.join("kept.img")).expect("a file");
    scratch.sparse("log.img", 4 * MIB);
    let replaced = scratch.run(&["up", "v", "--attach", "none"]);
    refused(&replaced, &["its members are not what it was last up with", "log.img"]);
    std::fs::remove_file(scratch.join("log.img")).expect("a file");
    let missing = scratch.run(&["up", "v", "--attach", "none"]);
    assert!(!missing.status.success() && missing.err.contains("log.img"), "{missing}");
    std::fs::rename(scratch.join("kept.img"), scratch.join("log.img")).expect("a file");
    let volume = scratch.up("v", &["--attach", "none"]);
    assert_eq!(write_back(&volume.status())["replayed_bytes"], 64 * KIB);
    let locked = up("cache(size=8M, mode=write-back, log=log.img, b.img)", &[]);
    refused(&locked, &["log.img"]);
    volume.down();
    // A second order with its name gives up its content.
    let forced = up("cache(size=8M, mode=write-back, log=log.img, b.img)", &["--force", "log.img"]);
    forced.ok();
    scratch.run(&["down", "w"]).ok();
}

#[test]
fn a_damaged_log_is_refused_or_replayed_from_its_copy() {
    const RING: u64 = 8 * KIB;
    let scratch = scratch();
    let volume = scratch.up(LOGGED, &["--name", "v", "--attach", "none"]);
    let mut client = volume.client();
    let written = |block: u64| pattern(block, 0, 4 * KIB);
    for block in 0..4 {
        client.write(block * MIB, &written(block), true).expect("a write");
    }
    volume.kill();
    let (log, origin) = (scratch.read("log.img"), scratch.read("a.img"));
    let damage = |offset: u64| scratch.patch("log.img", offset, &[!log[offset as usize]]);

    // The data of the second record: each has a header and one block.
    damage(RING + 12 * KIB);
    let rotten = scratch.run(&["up", "v", "--attach", "none"]);
    let at = format!("the flushed record at byte {} is damaged: its 8192 bytes", RING + 8 * KIB);
    let stake = "2 flushed records, this one and those after it, are at stake";
    refused(&rotten, &[&at, stake, "16384 bytes that the origin", "--force"]);
    assert!(scratch.read("a.img") == origin, "nothing was written");
    damage(80);
    damage(4 * KIB + 80);
    let both = scratch.run(&["up", "v", "--attach", "none"]);
    refused(&both, &["its superblocks are damaged", "--force"]);

    scratch.patch("log.img", 0, &log);
    damage(80);
    let volume = scratch.up("v", &["--attach", "none"]);
    let mut client = volume.client();
    for block in 0..4 {
        assert!(client.read(block * MIB, (4 * KIB) as u32).expect("a read") == written(block));
    }
    let said =
        std::fs::read_to_string(scratch.run_folder().join("v.log")).expect("the volume's log");
    assert!(said.contains("its superblock at byte 0 was damaged; its copy counted"), "{said}");
    volume.down();

    // A second order with its name gives up its content.
    scratch.patch("log.img", 0, &log);
    scratch.patch("a.img", 0, &origin);
    damage(RING + 12 * KIB);
    scratch.run(&["up", "v", "--attach", "none", "--force", "log.img"]).ok();
    scratch.run(&["down", "v"]).ok();
    assert!(scratch.read("a.img") == origin, "nothing was written");
}

/// A log that does not take even what closes it. When its device is well again it shows what it was, and
/// that must not come over what was written since.
#[test]
fn a_log_that_cannot_be_closed_is_given_up() {
    skip_unless_root!();
    let scratch = scratch();
    let Some(_disk) = Mounted::tmpfs(&scratch.join("disk"), 6 * MIB) else { return };
    for (name, is_written) in [("written", true), ("idle", false)] {
        scratch.sparse("disk/log.img", 4 * MIB);
        let stack = "cache(size=8M, mode=write-back, log=disk/log.img, a.img)";
        let volume = scratch.up(stack, &["--name", name, "--attach", "none"]);
        let mut client = volume.client();
        let (old, new) = (pattern(3, 0, 64 * KIB), pattern(4, 0, 64 * KIB));
        client.write(MIB, &old, true).expect("a write");
        let log = scratch.read("disk/log.img");
        let is_there = |bytes: &[u8]| scratch.read("a.img")[MIB as usize..][..64 << 10] == *bytes;
        assert!(!is_there(&old), "it is in the log alone");
        // No room is left for anything: not for what is there already either.
        scratch.resize("disk/log.img", 0);
        let filled = std::fs::write(scratch.join("disk/full"), vec![1; 8 << 20]);
        assert!(filled.is_err(), "the disk should be full");
        scratch.resize("disk/log.img", 4 * MIB);
        if is_written {
            client.write(MIB, &new, false).expect("a write");
        }
        volume.down();
        assert!(is_there(if is_written { &new } else { &old }), "{name}: it is drained");
        std::fs::remove_file(scratch.join("disk/full")).expect("a file");
        scratch.patch("disk/log.img", 0, &log);
        // The origin may be used by itself.
        let own = pattern(5, 0, 64 * KIB);
        scratch.patch("a.img", MIB, &own);
        let volume = scratch.up(name, &["--attach", "none"]);
        let status = volume.status();
        assert_eq!(write_back(&status)["replayed_bytes"], 0, "{status:#}");
        assert_eq!(write_back(&status)["flushed_to"], "log", "{status:#}");
        assert!(is_there(&own), "{name}: nothing is written over it");
        let said = scratch.run_folder().join(format!("{name}.log"));
        let said = std::fs::read_to_string(&said).expect("the volume's log");
        assert!(said.contains("log.img: it was given up"), "{said}");
        // The log counts again from then on.
        volume.client().write(MIB, &new, true).expect("a write");
        volume.kill();
        let volume = scratch.up(name, &["--attach", "none"]);
        assert_eq!(write_back(&volume.status())["replayed_bytes"], 64 * KIB);
        volume.down();
        std::fs::remove_file(scratch.join("disk/log.img")).expect("a file");
    }
}

/// Data that was acknowledged as durable is there after each of several kills in the middle of writes.
#[test]
fn a_kill_loses_nothing_that_was_forced() {
    const BLOCK: u64 = 4096;
    let scratch = scratch();
    let mut random = Random::new(std::process::id().into());
    let mut known = vec![0_u64; 1024];
    for round in 0..6 {
        let target = if round == 0 { LOGGED } else { "v" };
        let name: &[&str] = if round == 0 { &["--name", "v"] } else { &[] };
        let volume = scratch.up(target, &[name, &["--attach", "none"]].concat());
        let mut client = volume.client();
        for (block, version) in known.iter().enumerate() {
            let offset = block as u64 * BLOCK;
            let expected =
                if *version == 0 { vec![0; 4096] } else { pattern(*version, offset, BLOCK) };
            let shown = client.read(offset, 4096).expect("a read");
            assert!(shown == expected, "round {round}: block {block}, version {version}");
        }
        let (pid, count) = (volume.pid, 20 + random.below(500));
        let written = Arc::new(AtomicU64::new(0));
        let progress = Arc::clone(&written);
        let killer = std::thread::spawn(move || {
            wait_until("some writes", || progress.load(Ordering::Relaxed) >= count);
            common::send_signal(pid, rustix::process::Signal::KILL);
        });
        let start = Instant::now();
        let mut version = (round + 1) << 32;
        while start.elapsed() < Duration::from_secs(20) {
            version += 1;
            let block = random.below(known.len() as u64);
            let bytes = pattern(version, block * BLOCK, BLOCK);
            if client.write(block * BLOCK, &bytes, true).is_ok() {
                known[block as usize] = version;
                written.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            break;
        }
        killer.join().expect("a kill");
        wait_until("the end of the process", || !common::is_alive(pid));
        // The write that was not answered may be there: its block is not read any more.
        let again = scratch.up("v", &["--attach", "none"]);
        let mut client = again.client();
        for (block, version) in known.iter_mut().enumerate() {
            let offset = block as u64 * BLOCK;
            let shown = client.read(offset, 4096).expect("a read");
            let is_it = |version: u64| shown == pattern(version, offset, BLOCK);
            let is_known =
                if *version == 0 { shown.iter().all(|byte| *byte == 0) } else { is_it(*version) };
            if !is_known {
                let last =
                    (1..=3000).map(|index| ((round + 1) << 32) + index).find(|one| is_it(*one));
                assert!(last > Some(*version), "round {round}: block {block}, {version}, {last:?}");
                *version = last.unwrap_or(0);
            }
        }
        again.kill();
        drop(volume);
    }
}

#[test]
fn fio_finds_what_it_wrote_also_after_a_kill() {
    skip_without!("fio");
    let scratch = scratch();
    let fio = |uri: &str, more: &[&str]| {
        let job =
            ["--name=v", "--ioengine=nbd", "--rw=randwrite", "--bsrange=512-16k", "--size=32M"];
        Tool::new("fio")
            .args(job)
            .args(["--io_size=24M", "--iodepth=16", "--verify=crc32c", "--randseed=7"])
            .args(more)
            .arg(format!("--uri={uri}"))
            .folder(scratch.path())
            .run()
    };
    let stack =
        "cache(size=4M, mode=write-back, log=log.img, dirty=2M, block=16K, cutoff=12K, a.img)";
    let volume = scratch.up(stack, &["--name", "v", "--attach", "none"]);
    fio(&volume.uris[0], &["--do_verify=0", "--fsync=50"]).ok();
    let past = volume.status()["caches"][0]["uncached_writes"].as_u64();
    assert!(past > Some(0), "{past:?} writes went past");
    // fio sends its last write behind its last flush.
    volume.client().flush().expect("a flush");
    volume.kill();
    let again = scratch.up("v", &["--attach", "none"]);
    fio(&again.uris[0], &["--verify_only"]).ok();
    fio(&again.uris[0], &["--verify_backlog=64"]).ok();
    let status = again.status();
    assert!(write_back(&status)["drained_bytes"].as_u64() > Some(MIB), "{status:#}");
    again.down();
}
