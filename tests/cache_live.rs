//! Caches that come, change and go while their volume is up; and what they hold from one life to the next.

mod common;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use common::{Client, KIB, MIB, Random, Scratch, Tool, pattern, skip_without, wait_until};
use serde_json::Value;

fn count(status: &Value, name: &str) -> u64 {
    let cache = &status["caches"][0];
    cache[name].as_u64().unwrap_or_else(|| panic!("{name} in {status:#}"))
}

/// Under fio's verification, over one connection and the other.
#[test]
fn a_cache_comes_changes_and_goes_under_load() {
    skip_without!("fio");
    let scratch = Scratch::new();
    scratch.sparse("a.img", 64 * MIB);
    scratch.sparse("b.img", 64 * MIB);
    scratch.sparse("log.img", 4 * MIB);
    let volume = scratch.up("raid1(a.img, b.img)", &["--name", "v", "--attach", "none"]);
    let fio = || {
        Tool::new("fio")
            .args(["--name=v", "--ioengine=nbd", "--rw=randrw", "--bsrange=4k-16k", "--size=32M"])
            .args(["--time_based", "--runtime=2", "--iodepth=16", "--numjobs=2", "--thread"])
            .args(["--offset_increment=32M", "--verify=crc32c", "--verify_backlog=64"])
            .args(["--verify_state_save=0", "--random_distribution=zipf:1.1"])
            .arg(format!("--uri={}", volume.uris[0]))
            .folder(scratch.path())
            .run()
            .ok();
    };
    let requests = || volume.status()["nbd"]["requests"].as_u64().expect("a number");
    let order = |arguments: &[&str]| {
        let before = requests();
        wait_until("the load to go on", || requests() >= before + 100);
        scratch.run(&[&["cache"], arguments].concat()).ok()
    };
    // How long an order takes is the machine's affair: the load lasts as long as the orders do.
    std::thread::scope(|scope| {
        let orders = scope.spawn(|| {
            for parameter in ["policy=lru", "block=16K"] {
                order(&["attach", "v", "size=8M", parameter]);
                order(&["resize", "v", "24M"]);
                order(&["mode", "v", "write-around"]);
                order(&["resize", "v", "1M"]);
                order(&["mode", "v", "write-through"]);
                order(&["mode", "v", "write-back", "log=log.img"]);
                order(&["mode", "v", "write-through"]);
                order(&["mode", "v", "write-back", "volatile=yes", "drain=8M/s"]);
                order(&["detach", "v"]);
                order(&["attach", "v", "size=4M", "mode=write-back", "log=log.img", "cutoff=12K"]);
                order(&["detach", "v"]);
            }
        });
        while !orders.is_finished() {
            fio();
        }
    });
    volume.down();
    assert!(scratch.read("a.img") == scratch.read("b.img"), "the copies under the cache");
}

/// Clients of every shard go on, and each reads what was written over another shard; also those that come meanwhile.
#[test]
fn a_cache_comes_and_goes_where_several_shards_serve() {
    let scratch = Scratch::new();
    for name in ["a.img", "b.img"] {
        scratch.sparse(name, 8 * MIB);
    }
    scratch.sparse("log.img", 4 * MIB);
    let stack = "raid0(a.img, b.img)";
    let volume = scratch.up(stack, &["--name", "v", "--attach", "none", "--shards", "3"]);
    let mut clients: Vec<_> = (0..6).map(|_| volume.client()).collect();
    let is_over = AtomicBool::new(false);
    let turns = [const { AtomicU64::new(0) }; 3];
    let order = |arguments: &[&str]| {
        let counts = || turns.each_ref().map(|turns| turns.load(Ordering::Relaxed));
        let goals = counts().map(|count| count + 10);
        wait_until("the load of every pair to go on", || {
            counts().iter().zip(&goals).all(|(count, goal)| count >= goal)
        });
        scratch.run(&[&["cache"], arguments].concat()).ok()
    };
    std::thread::scope(|scope| {
        // Connections are dealt out in turn: the two of each are of different shards.
        let working: Vec<_> = (0..)
            .zip(clients.chunks_mut(2))
            .map(|(number, pair)| {
                let (turns, is_over) = (&turns[number as usize], &is_over);
                scope.spawn(move || write_and_read_back(number, pair, turns, is_over))
            })
            .collect();
        for _ in 0..3 {
            order(&["attach", "v", "size=4M"]);
            order(&["mode", "v", "write-back", "log=log.img"]);
            order(&["mode", "v", "write-around"]);
            order(&["detach", "v"]);
            order(&["attach", "v", "size=1M", "mode=write-back", "volatile=yes"]);
            order(&["detach", "v"]);
        }
        is_over.store(true, Ordering::Relaxed);
        working.into_iter().for_each(|one| one.join().expect("what was written"));
    });
    // Each sees what another shard's wrote, and hits what another's read.
    let attach = ["attach", "v", "size=4M", "mode=write-back", "log=log.img"];
    scratch.run(&[&["cache"], &attach[..], &["drain=4K/s", "age=60s"]].concat()).ok();
    clients.push(volume.client());
    for (seed, writer) in (1..).zip(0..clients.len()) {
        let written = pattern(seed, 0, 64 * KIB);
        clients[writer].write(13 * MIB, &written, false).expect("a write");
        for reader in &mut clients {
            assert!(reader.read(13 * MIB, 64 << 10).expect("a read") == written, "{writer}");
        }
    }
    let status = volume.status();
    assert_eq!(count(&status, "cache_hits"), count(&status, "reads"), "{status:#}");
    // What is dirty is drained, though its client is there still.
    volume.down();
    drop(clients);
    let volume = scratch.up(stack, &["--name", "w", "--attach", "none"]);
    let read = volume.client().read(13 * MIB, 64 << 10).expect("a read");
    assert!(read == pattern(7, 0, 64 * KIB), "what was drained at the end");
    volume.down();
}

/// Writes to its part of the volume over one of the connections or another, and reads it over any.
fn write_and_read_back(
    number: u64,
    connections: &mut [Client],
    turns: &AtomicU64,
    is_over: &AtomicBool,
) {
    const PIECE: u64 = 16 * KIB;
    const PIECES: u64 = 16;
    let (mut dice, mut at) = (Random::new(number), 0);
    // What was written last, by place; 0 is nothing.
    let mut seeds = [0; PIECES as usize];
    while at < 200 || !is_over.load(Ordering::Relaxed) {
        at += 1;
        let place = dice.below(PIECES) as usize;
        let offset = (number * PIECES + place as u64) * PIECE;
        let count = connections.len() as u64;
        let mut any = || dice.below(count) as usize;
        let read = connections[any()].read(offset, PIECE as u32).expect("a read");
        let expected = match seeds[place] {
            0 => vec![0; PIECE as usize],
            seed => pattern(seed, 0, PIECE),
        };
        assert!(read == expected, "{number}: {offset} after {at}");
        seeds[place] = number * 1_000_000 + at;
        connections[any()].write(offset, &pattern(seeds[place], 0, PIECE), false).expect("a write");
        if at % 16 == 0 {
            connections[any()].flush().expect("a flush");
        }
        turns.store(at, Ordering::Relaxed);
    }
}

/// Orders are remembered, and shown by `status`.
#[test]
fn a_volume_comes_up_as_it_went_down() {
    let scratch = Scratch::new();
    scratch.file("a.img", 8 * MIB, 1);
    let before = scratch.read("a.img");
    let volume = scratch.up("./a.img", &["--name", "v", "--attach", "none"]);
    let mut client = volume.client();
    scratch.run(&["cache", "attach", "v", "size=2M", "policy=lru"]).ok();
    let mut hits = |status: Value| {
        let was = count(&status, "cache_hits");
        for _ in 0..2 {
            assert!(
                client.read(MIB, (64 * KIB) as u32).expect("a read")
                    == before[1 << 20..][..64 << 10]
            );
        }
        count(&volume.status(), "cache_hits") - was
    };
    assert_eq!(hits(volume.status()), 1, "the connection that was there is cached");
    scratch.run(&["cache", "resize", "v", "4M"]).ok();
    assert_eq!(hits(volume.status()), 2, "it holds what it held");
    assert_eq!(count(&volume.status(), "size_bytes"), 4 * MIB);
    scratch.run(&["cache", "mode", "v", "write-around"]).ok();
    volume.down();
    let volume = scratch.up("v", &["--attach", "none"]);
    let stack = volume.status()["stack"].to_string();
    assert!(stack.contains("cache(size=4M, mode=write-around, policy=lru, "), "{stack}");
    scratch.run(&["cache", "detach", "v"]).ok();
    volume.down();
    let volume = scratch.up("v", &["--attach", "none"]);
    assert!(!volume.status()["stack"].to_string().contains("cache"));
    volume.down();
}

#[test]
fn what_cannot_be_is_refused_and_nothing_changes() {
    let scratch = Scratch::new();
    scratch.sparse("a.img", 8 * MIB);
    scratch.file("else.txt", 10, 1);
    let volume = scratch.up("./a.img", &["--name", "v", "--attach", "none"]);
    let refused = |arguments: &[&str], words: &[&str]| {
        let output = scratch.run(&[&["cache"], arguments].concat());
        output.fails(3, &[words, &["next:"]].concat());
    };
    // What makes no sense, whatever the volume is.
    let wrong = |arguments: &[&str], words: &[&str]| {
        scratch.run(&[&["cache"], arguments].concat()).fails(2, words);
    };
    refused(&["detach", "v"], &["v has no cache"]);
    refused(&["resize", "v", "1M"], &["v has no cache"]);
    refused(&["attach", "v", "size=7T"], &["is more than the", "of memory"]);
    let log = ["attach", "v", "size=1M", "mode=write-back", "log=else.txt"];
    let record = std::fs::read(scratch.config_file("v")).expect("a record");
    refused(&log, &["else.txt"]);
    refused(&["attach", "v", "size=1M", "warm=else.txt"], &["else.txt is something else"]);
    let after = std::fs::read(scratch.config_file("v")).expect("a record");
    assert!(record == after, "{}", String::from_utf8_lossy(&after));
    wrong(&["attach", "v", "sise=1M"], &["no parameter `sise`"]);
    wrong(&["attach", "v", "size=1M", "policy=mru"], &["`mru` is not a policy", "^^^"]);
    wrong(&["attach", "v", "size=1M", "block=3K"], &["block", "^^"]);
    wrong(&["attach", "v", "size=1M", "block=128K"], &["block", "64K"]);
    wrong(&["attach", "v", "size=1M", "mode=write-back"], &["log"]);
    wrong(&["attach", "v", "size=1"], &["size"]);
    assert!(volume.status()["caches"].as_array().expect("caches").is_empty());
    scratch.run(&["cache", "attach", "v", "size=1M"]).ok();
    refused(&["attach", "v", "size=1M"], &["has a cache in front of it already"]);
    wrong(&["attach", "v", "size=1M", "policy=mru"], &["mru"]);
    wrong(&["resize", "v", "3584"], &["at least a block", "next:"]);
    refused(&["resize", "v", "7T"], &["is more than the", "of memory"]);
    wrong(&["mode", "v", "write-back"], &["log"]);
    wrong(&["mode", "v", "write-around", "volatile=yes"], &["volatile=yes", "no parameters"]);
    refused(&["mode", "v", "write-back", "log=else.txt"], &["else.txt"]);
    wrong(&["mode", "v", "write-back", "log=a.img"], &["a.img", "twice"]);
    wrong(&["mode", "v", "fast"], &["\"fast\" is no mode", "next:"]);
    assert_eq!(count(&volume.status(), "size_bytes"), MIB);
    volume.down();
    let volume = scratch.up("ram(8M)", &["--name", "r", "--attach", "none"]);
    refused(&["attach", "r", "size=1M"], &["r is memory itself"]);
    volume.down();
}

/// Data that is flushed from then on is in the log, also over a kill; the content of another log is not written
/// to an origin that is in use.
#[test]
fn write_back_mode_begins_while_it_is_up() {
    let scratch = Scratch::new();
    scratch.sparse("a.img", 8 * MIB);
    let written = |seed| pattern(seed, 0, 64 * KIB);
    for (name, is_attached) in [("m", false), ("t", true)] {
        scratch.sparse("log.img", 4 * MIB);
        let volume = scratch.up("./a.img", &["--name", name, "--attach", "none"]);
        let mut client = volume.client();
        client.write(2 * MIB, &written(1), false).expect("a write");
        let back = ["mode=write-back", "log=log.img", "age=60s", "drain=4K/s"];
        if is_attached {
            scratch.run(&[&["cache", "attach", name, "size=2M"][..], &back].concat()).ok();
        } else {
            scratch.run(&["cache", "attach", name, "size=2M", "mode=write-around"]).ok();
            let mode = ["cache", "mode", name, "write-back"];
            scratch.run(&[&mode[..], &back[1..]].concat()).ok();
            scratch.run(&[&mode[..], &back[1..]].concat()).fails(3, &["already", "next:"]);
        }
        let status = volume.status();
        assert_eq!(status["caches"][0]["write_back"]["flushed_to"], "log", "{status:#}");
        assert!(status["stack"].to_string().contains("mode=write-back, log="), "{status:#}");
        client.write(MIB, &written(2), false).expect("a write");
        client.flush().expect("a flush");
        assert!(scratch.read("a.img")[MIB as usize..][..64 << 10] != written(2)[..], "in the log");
        assert!(client.read(2 * MIB, (64 * KIB) as u32).expect("a read") == written(1));
        volume.kill();
        let volume = scratch.up(name, &["--attach", "none"]);
        assert_eq!(volume.status()["caches"][0]["write_back"]["replayed_bytes"], 64 * KIB);
        assert!(volume.client().read(MIB, (64 * KIB) as u32).expect("a read") == written(2));
        volume.client().write(MIB, &written(3), true).expect("a write");
        volume.kill();
        // The same cache again, by hand and in front of what is used already.
        let volume = scratch.up("./a.img", &["--name", "by-hand", "--attach", "none"]);
        let attach = ["cache", "attach", "by-hand", "size=2M", "mode=write-back", "log=log.img"];
        scratch
            .run(&attach)
            .fails(3, &["65536 bytes that the origin does not have", "in use", "next:"]);
        assert!(volume.client().read(MIB, (64 * KIB) as u32).expect("a read") == written(2));
        volume.down();
        let volume = scratch.up(name, &["--attach", "none"]);
        assert!(volume.client().read(MIB, (64 * KIB) as u32).expect("a read") == written(3));
        scratch.run(&["cache", "mode", name, "write-through"]).ok();
        volume.down();
        std::fs::remove_file(scratch.join("log.img")).expect("nobody has it any more");
        let volume = scratch.up(name, &["--attach", "none"]);
        volume.down();
    }
}

/// True if a request of an NBD client is in flight.
fn is_writing(volume: &common::UpVolume) -> bool {
    volume.status()["nbd"]["io"]["in_flight"].as_u64() > Some(0)
}

/// The command that gave the order may be gone: the stack shows the result.
#[test]
fn an_order_that_takes_long_is_seen_and_has_no_other_begun() {
    let scratch = Scratch::new();
    // Longer than four starts of `braid` take on a machine that has other things to do.
    let stack = "model(usb-flash, size=16M, latency=8s, write=1G/s, read=1G/s)";
    let volume = scratch.up(stack, &["--name", "v", "--attach", "none"]);
    let mut slow = volume.client();
    std::thread::scope(|scope| {
        let writing = scope.spawn(move || slow.write(0, &pattern(1, 0, 4 * KIB), false));
        wait_until("the write to be in flight", || is_writing(&volume));
        // It begins to hold when that write is answered.
        let attaching = scope.spawn(|| scratch.run(&["cache", "attach", "v", "size=1M"]));
        wait_until("the cache is in the stack", || {
            volume.status()["stack"].to_string().contains("cache(size=1M")
        });
        assert!(!attaching.is_finished(), "the write takes longer");
        scratch.run(&["cache", "resize", "v", "2M"]).fails(3, &["another order", "next:"]);
        writing.join().expect("a thread").expect("a write");
        attaching.join().expect("a thread").ok();
    });
    scratch.run(&["cache", "resize", "v", "2M"]).ok();
    volume.down();
}

/// Data that was flushed into a log is found again, although the command that ordered the log was killed before
/// the answer.
#[test]
fn a_log_is_remembered_before_it_is_relied_on() {
    let scratch = Scratch::new();
    scratch.sparse("log.img", 4 * MIB);
    scratch.sparse("a.img", 16 * MIB);
    let stack = "linear(a.img, model(usb-flash, size=16M, latency=4s, write=1G/s, read=1G/s))";
    let volume = scratch.up(stack, &["--name", "v", "--attach", "none"]);
    let mut slow = volume.client();
    let attach =
        ["cache", "attach", "v", "size=2M", "mode=write-back", "log=log.img", "drain=4K/s"];
    std::thread::scope(|scope| {
        scope.spawn(move || slow.write(20 * MIB, &pattern(1, 0, 4 * KIB), false).expect("a write"));
        wait_until("the write to be in flight", || is_writing(&volume));
        // It begins when that write is answered.
        let mut command = scratch.braid().args(attach).into_command();
        let mut attaching = common::start(&mut command).expect("braid starts");
        wait_until("the cache is in the stack", || {
            volume.status()["stack"].to_string().contains("log.img")
        });
        attaching.kill().expect("whoever asked for it is there");
        attaching.wait().expect("its end");
    });
    let written = pattern(2, 0, 64 * KIB);
    let mut client = volume.client();
    wait_until("it is written back", || {
        client.write(MIB, &pattern(3, 0, 64 * KIB), true).expect("a write");
        volume.status()["caches"][0]["write_back"]["dirty_bytes"].as_u64() > Some(0)
    });
    client.write(MIB, &written, true).expect("a write");
    volume.kill();
    assert!(scratch.read("a.img")[MIB as usize..][..64 << 10] != written[..], "it is in the log");
    let volume = scratch.up("v", &["--attach", "none"]);
    assert!(volume.client().read(MIB, 64 << 10).expect("a read") == written);
    volume.down();
}

#[test]
fn draining_is_held_to_another_rate_while_it_is_up() {
    let scratch = Scratch::new();
    scratch.sparse("a.img", 32 * MIB);
    let stack = "cache(size=16M, mode=write-back, volatile=yes, age=3600s, drain=4K/s, a.img)";
    let volume = scratch.up(stack, &["--name", "v", "--attach", "none"]);
    let dirty = || volume.status()["caches"][0]["write_back"]["dirty_bytes"].as_u64();
    let rate = || volume.status()["caches"][0]["write_back"]["drain_bytes_per_second"].as_u64();
    let mut client = volume.client();
    for place in 0..64 {
        client.write(place * 128 * KIB, &pattern(1, 0, 64 * KIB), false).expect("a write");
    }
    // Time is tested here: without the rate, draining would have ended by then.
    std::thread::sleep(Duration::from_millis(1500));
    assert!(dirty() >= Some(3 * MIB), "{:#}", volume.status());
    assert_eq!(rate(), Some(4 * KIB));
    let text = scratch.run(&["status", "v"]).ok();
    assert!(text.out.contains("drained at up to 4 KiB/s"), "{text}");
    scratch.run(&["cache", "drain", "v", "0/s"]).fails(2, &["no rate", "next:"]);
    scratch.run(&["cache", "drain", "v", "4K"]).fails(2, &["/s"]);
    scratch.run(&["cache", "drain", "v", "unlimited"]).ok();
    assert_eq!(rate(), None);
    wait_until("nothing is dirty", || dirty() == Some(0));
    scratch.run(&["cache", "drain", "v", "1M/s"]).ok();
    volume.down();
    let volume = scratch.up("v", &["--attach", "none"]);
    assert!(volume.status()["stack"].to_string().contains("drain=1M/s"), "{:#}", volume.status());
    scratch.run(&["cache", "mode", "v", "write-around"]).ok();
    scratch.run(&["cache", "drain", "v", "1M/s"]).fails(3, &["not in write-back mode", "next:"]);
    volume.down();
}

/// From write-back mode: what is dirty is on the origin before.
#[test]
fn write_back_mode_ends_while_it_is_written() {
    let scratch = Scratch::new();
    scratch.sparse("a.img", 8 * MIB);
    scratch.sparse("log.img", 4 * MIB);
    let stack = "cache(size=4M, mode=write-back, log=log.img, a.img)";
    for (name, order) in [("m", &["mode", "m", "write-through"][..]), ("d", &["detach", "d"])] {
        let volume = scratch.up(stack, &["--name", name, "--attach", "none"]);
        let mut client = volume.client();
        let written = pattern(7, 0, 64 * KIB);
        client.write(MIB, &written, false).expect("a write");
        scratch.run(&[&["cache"], order].concat()).ok();
        assert!(scratch.read("a.img")[MIB as usize..][..64 << 10] == written[..], "{name}");
        let again = pattern(8, 0, 64 * KIB);
        client.write(MIB, &again, false).expect("a write");
        assert!(client.read(MIB, (64 * KIB) as u32).expect("a read") == again);
        assert!(scratch.read("a.img")[MIB as usize..][..64 << 10] == again[..], "written through");
        volume.kill();
        // The log is closed: nothing of it is written over that, with it or without.
        let volume = scratch.up(name, &["--attach", "none"]);
        assert!(volume.client().read(MIB, (64 * KIB) as u32).expect("a read") == again);
        volume.down();
    }
}

/// Reads at random from `span` bytes until `is_over` holds for the cache's `aside`. Returns `aside`.
fn read_at_random(volume: &common::UpVolume, span: u64, is_over: impl Fn(&Value) -> bool) -> Value {
    let (mut client, mut dice) = (volume.client(), Random::new(7));
    let mut aside = Value::Null;
    wait_until("the cache to be judged", || {
        for _ in 0..4096 {
            client.read(dice.below(span / (4 * KIB)) * 4 * KIB, 4 << 10).expect("a read");
        }
        aside = volume.status()["caches"][0]["aside"].take();
        is_over(&aside)
    });
    aside
}

/// In front of memory there is nothing to gain, and copies to lose by; in front of a disk there is.
#[test]
fn a_cache_steps_aside_where_it_loses_and_only_there() {
    let scratch = Scratch::new();
    let ram = scratch.up("cache(size=1M, ram(64M))", &["--name", "ram", "--attach", "none"]);
    let disk = "cache(size=4M, model(usb-flash, size=64M, latency=0.2ms, read=1G/s))";
    let disk = scratch.up(disk, &["--name", "disk", "--attach", "none"]);
    // A cache serves for 5 s at least. One that is judged after them could have stepped aside.
    let (lost, won) = std::thread::scope(|scope| {
        let lost = scope.spawn(|| read_at_random(&ram, 64 * MIB, |at| at["standing"] == "aside"));
        let won =
            scope.spawn(|| read_at_random(&disk, 6 * MIB, |at| at["for_ms"].as_u64() > Some(7000)));
        (lost.join().expect("a thread"), won.join().expect("a thread"))
    });
    assert!(lost["judged_by"]["gain_ns"].as_i64() < Some(0), "{lost:#}");
    assert_eq!(won["standing"], "serving", "{won:#}");
    assert!(won["judged_by"]["gain_ns"].as_i64() > Some(0), "{won:#}");
    // What is read is the same, and what is written.
    let mut client = ram.client();
    client.write(MIB, &pattern(1, 0, 64 * KIB), false).expect("a write");
    assert!(client.read(MIB, (64 * KIB) as u32).expect("a read") == pattern(1, 0, 64 * KIB));
    let before = count(&ram.status(), "uncached_reads");
    for place in 0..64 {
        client.read(2 * MIB + place * 4 * KIB, 4 << 10).expect("a read");
    }
    assert!(count(&ram.status(), "uncached_reads") > before + 32, "they go past");
    let text = scratch.run(&["status", "ram"]).ok();
    assert!(text.out.contains("reads go past the cache: "), "{text}");
    let text = scratch.run(&["cache", "advise", "ram"]).ok();
    assert!(text.out.contains("It steps aside: "), "{text}");
    assert!(!scratch.run(&["status", "disk"]).ok().out.contains("past the cache"));
    ram.down();
    disk.down();
}

/// The held blocks are there again; after a write to the origin they are read again.
#[test]
fn a_cache_is_warm_when_it_comes_up_again() {
    let scratch = Scratch::new();
    scratch.file("a.img", 8 * MIB, 1);
    let before = scratch.read("a.img");
    let all = (2 * MIB) as u32;
    for saved in ["data", "index"] {
        let stack = format!("cache(size=4M, warm=kept-{saved}, saved={saved}, a.img)");
        let options = ["--name", saved, "--attach", "none"];
        let volume = scratch.up(&stack, &options);
        assert!(volume.client().read(MIB, all).expect("a read") == before[1 << 20..][..2 << 20]);
        volume.down();

        let volume = scratch.up(saved, &["--attach", "none"]);
        wait_until("it is warm", || count(&volume.status(), "used_bytes") == 2 * MIB);
        let mut client = volume.client();
        assert!(client.read(MIB, all).expect("a read") == before[1 << 20..][..2 << 20]);
        assert_eq!(count(&volume.status(), "cache_hits"), 1);
        let is_proved = saved == "data" && count(&volume.status(), "disk_reads") == 0;
        assert!(saved == "index" || is_proved, "{:#}", volume.status());
        volume.down();

        // Past the cache, while it is away.
        let other = pattern(9, 0, 4 * KIB);
        scratch.patch("a.img", MIB + 8 * KIB, &other);
        let volume = scratch.up(saved, &["--attach", "none"]);
        wait_until("it is warm", || count(&volume.status(), "used_bytes") == 2 * MIB);
        let read = volume.client().read(MIB, all).expect("a read");
        assert!(read == scratch.read("a.img")[1 << 20..][..2 << 20], "{saved}: what was written");
        volume.kill();

        // A file that is damaged leaves an empty cache, and nothing else.
        let kept = format!("kept-{saved}");
        scratch.patch(&kept, 20, &[0xff]);
        let volume = scratch.up(saved, &["--attach", "none"]);
        let status = volume.status();
        assert_eq!(count(&status, "used_bytes"), 0, "{status:#}");
        let read = volume.client().read(MIB, all).expect("a read");
        assert!(read == scratch.read("a.img")[1 << 20..][..2 << 20]);
        volume.down();
        scratch.patch("a.img", 0, &before);
    }
    scratch.file("else.txt", 100, 1);
    let stack = "cache(size=1M, warm=else.txt, a.img)";
    let output = scratch.run(&["up", stack, "--name", "v", "--attach", "none"]);
    output.fails(3, &["else.txt is something else", "next:"]);
}

/// Two caches: one is too small for its loop, and the other larger than all the data that is read.
#[test]
fn a_budget_goes_where_it_saves_most() {
    let scratch = Scratch::new();
    let stack = "cache(size=8M, policy=lru, model(usb-flash, size=64M, latency=0.1ms, read=1G/s))";
    let hungry = scratch.up(stack, &["--name", "hungry", "--attach", "none"]);
    let sated = scratch.up(stack, &["--name", "sated", "--attach", "none"]);
    let share = |arguments: &[&str]| {
        let all = [&["cache", "share", "20M", "hungry", "sated", "--json"], arguments].concat();
        scratch.run(&all).ok().json()
    };
    let early = share(&[]);
    assert_eq!(early["caches"][0]["kept_because"], "too few reads to judge by", "{early:#}");
    for (volume, span, rounds) in [(&hungry, 12 * MIB, 5), (&sated, MIB, 40)] {
        let mut client = volume.client();
        for _ in 0..rounds {
            for offset in (0..span).step_by(64 << 10) {
                client.read(offset, 64 << 10).expect("a read");
            }
        }
    }
    let sizes = || [&hungry, &sated].map(|volume| count(&volume.status(), "size_bytes"));
    let planned = share(&["--plan"]);
    assert_eq!(sizes(), [8 * MIB, 8 * MIB], "a plan changes nothing");
    let done = share(&[]);
    assert_eq!(done["caches"], planned["caches"]);
    let [more, less] = sizes();
    assert!(more >= 12 * MIB && less <= 4 * MIB && more + less <= 20 * MIB, "{done:#}");
    assert_eq!(done["taken_bytes"], more + less);
    let text = scratch.run(&["cache", "share", "20M", "hungry", "sated", "--plan"]).ok();
    assert!(text.out.contains("all would take "), "{text}");
    let small = scratch.run(&["cache", "share", "1M", "hungry", "sated"]);
    small.fails(3, &["1 MiB is less than what these caches have at least", "next:"]);
    assert_eq!(sizes(), [more, less]);
    hungry.down();
    sated.down();
}
