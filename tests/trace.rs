//! Traces: what is recorded is what clients did, it never gets in their way, fio replays it, and what is shown
//! of one.

mod common;

use std::path::Path;
use std::time::{Duration, Instant};

use braid_nbd::protocol::Command;
use braid_trace::{Kind, Request, Trace, parse};
use common::{
    Client, DRIVERS, KIB, MIB, Mounted, Scratch, Tool, UpVolume, skip_unless_root, skip_without,
    wait_until,
};

const USAGE: i32 = 2;
const REFUSED: i32 = 3;

/// The trace in a file.
#[track_caller]
fn read(path: &Path) -> Trace {
    let text = std::fs::read(path).expect("a trace");
    parse(&text, None).unwrap_or_else(|error| panic!("{error}: {}", path.display()))
}

/// Its requests but for their times, which are in order.
#[track_caller]
fn requests(path: &Path) -> Vec<(Kind, u64, u64, bool)> {
    let trace = read(path);
    assert_eq!(trace.torn_line, None);
    let text = std::fs::read_to_string(path).expect("a trace");
    let times: Vec<u64> = text.lines().skip(1).map(time_of).collect();
    assert!(times.is_sorted(), "{text}");
    let what = |one: &Request| (one.kind, one.offset, one.length, one.fua);
    trace.requests.iter().map(what).collect()
}

fn time_of(line: &str) -> u64 {
    line.split(' ').next().and_then(|time| time.parse().ok()).expect("a time")
}

/// Waits until every request is recorded or counted; answers both numbers, and why it stopped.
#[track_caller]
fn counted(volume: &UpVolume<'_>, all: u64) -> (u64, u64, Option<String>) {
    let counts = || {
        let status = volume.status()["trace"].clone();
        let number = |name: &str| status[name].as_u64().expect("a number");
        let stopped = status["stopped"].as_str().map(ToOwned::to_owned);
        (number("requests"), number("dropped"), stopped)
    };
    wait_until("the count of all requests", || {
        let (recorded, dropped, _) = counts();
        assert!(recorded + dropped <= all, "{recorded} and {dropped}, of {all}");
        recorded + dropped == all
    });
    counts()
}

/// Everything that a client can ask for, and what is recorded of it.
fn do_everything(client: &mut Client) -> Vec<(Kind, u64, u64, bool)> {
    client.write(4 * KIB, &[1; 8192], false).expect("a write");
    client.write(64 * KIB, &[2; 512], true).expect("a write");
    client.read(4 * KIB, 4096).expect("a read");
    client.flush().expect("a flush");
    let (offset, length, fua) = (MIB, 64 * KIB, false);
    client.request(Command::Trim { offset, length, fua }, &[]).expect("a trim");
    let zeroes = |offset, fua, no_hole| Command::WriteZeroes {
        offset,
        length,
        fua,
        no_hole,
        fast_zero: false,
    };
    client.request(zeroes(2 * MIB, false, false), &[]).expect("zeroes");
    client.request(zeroes(3 * MIB, true, true), &[]).expect("zeroes");
    // What is refused never gets as far.
    client.refusal(Command::Trim { offset: 1 << 40, length, fua }, &[]);
    vec![
        (Kind::Write, 4 * KIB, 8 * KIB, false),
        (Kind::Write, 64 * KIB, 512, true),
        (Kind::Read, 4 * KIB, 4 * KIB, false),
        (Kind::Flush, 0, 0, false),
        (Kind::Discard, MIB, 64 * KIB, false),
        (Kind::Discard, 2 * MIB, 64 * KIB, false),
        (Kind::Write, 3 * MIB, 64 * KIB, true),
    ]
}

#[test]
fn what_is_served_in_the_foreground_is_recorded_alike() {
    let scratch = Scratch::new();
    let volume = scratch.serve("ram(8M)", &["--name", "v", "--trace", "t.log,size=1M"]);
    let expected = do_everything(&mut volume.client());
    volume.stop();
    let path = scratch.join("t.log");
    assert_eq!(requests(&path), expected);
    assert_eq!(read(&path).name, "v");
    // What is there is left alone.
    let before = scratch.read("t.log");
    let again = scratch.try_serve("ram(8M)", &["--trace", "t.log"]);
    again.err().expect("it is refused").fails(3, &["t.log", "is there already"]);
    assert!(scratch.read("t.log") == before);
}

#[test]
fn what_is_recorded_is_what_a_client_did() {
    for driver in DRIVERS {
        let scratch = Scratch::new();
        scratch.sparse("a.img", 8 * MIB);
        let options = ["--name", "v", "--attach", "none", "--io", driver, "--trace", "t.log"];
        let began = Instant::now();
        let Ok(volume) = UpVolume::start(&scratch, "./a.img", &options) else {
            println!("skipped: --io {driver} is not to be had here");
            continue;
        };
        let expected = do_everything(&mut volume.client());
        assert_eq!(counted(&volume, 7), (7, 0, None));
        let path = scratch.join("t.log");
        // It says so, too.
        let text = scratch.run(&["status", "v"]).ok().out;
        let line = text.lines().find(|line| line.trim_start().starts_with("trace:"));
        let line = line.unwrap_or_else(|| panic!("{text}"));
        let told = format!("trace: {}: 7 requests, ", path.display());
        assert!(line.contains(&told), "{line}");
        assert!(line.ends_with("of at most 64 MiB, 0 not recorded"), "{line}");
        // A volume's own reads and writes belong to no workload.
        scratch.run(&["save", "v", "image.braid"]).ok();
        volume.client().flush().expect("the last request");
        volume.down();
        let most = began.elapsed();
        let flush = (Kind::Flush, 0, 0, false);
        assert_eq!(requests(&path), [&expected[..], &[flush]].concat());
        let trace = read(&path);
        assert_eq!((trace.name.as_str(), trace.has_times), ("v", true));
        let last = trace.requests.last().expect("requests").at_ns;
        assert!(last > 0 && Duration::from_nanos(last) < most, "{last} of {most:?}");
        let text = std::fs::read_to_string(&path).expect("a trace");
        assert!(text.ends_with(" v close\n"), "{text}");
    }
}

#[test]
fn no_trace_is_recorded_unless_it_is_asked_for() {
    let scratch = Scratch::new();
    let volume = scratch.up("ram(8M)", &["--name", "v", "--attach", "none", "--trace", "t.log"]);
    volume.down();
    // It is for this time, and an option for later times has nothing of it.
    let volume = scratch.up("v", &["--attach", "none", "--remember"]);
    do_everything(&mut volume.client());
    assert!(volume.status()["trace"].is_null());
    assert!(!scratch.run(&["status", "v"]).ok().out.contains("trace"));
    volume.down();
    assert!(requests(&scratch.join("t.log")).is_empty());
}

/// Connections go to shards in turn.
#[test]
fn several_shards_record_one_trace() {
    let scratch = Scratch::new();
    let options = ["--name", "v", "--attach", "none", "--shards", "3", "--trace", "t.log"];
    let volume = scratch.up("ram(64M)", &options);
    let mut expected = Vec::new();
    std::thread::scope(|scope| {
        for part in 0..3 {
            let mut client = volume.client();
            let own = move |number: u64| part * 16 * MIB + number * 4 * KIB;
            expected.extend((0..500).map(|number| (Kind::Write, own(number), 4 * KIB, false)));
            scope.spawn(move || {
                for number in 0..500 {
                    client.write(own(number), &[3; 4096], false).expect("a write");
                }
            });
        }
    });
    assert_eq!(counted(&volume, 1500), (1500, 0, None));
    volume.down();
    let mut recorded: Vec<_> = read(&scratch.join("t.log"))
        .requests
        .iter()
        .map(|one| (one.kind, one.offset, one.length, one.fua))
        .collect();
    // Of each client in the order in which it asked.
    for part in 0..3 {
        let own = recorded.iter().filter(|one| one.1 / (16 * MIB) == part);
        assert!(own.map(|one| one.1).is_sorted());
    }
    recorded.sort_by_key(|one| one.1);
    assert_eq!(recorded, expected);
}

/// Caches that come and go do so behind the trace: it has what clients asked for, and no more.
#[test]
fn a_cache_that_comes_or_goes_is_behind_the_trace() {
    let scratch = Scratch::new();
    scratch.sparse("a.img", 8 * MIB);
    let options = ["--name", "v", "--attach", "none", "--shards", "1", "--trace", "t.log"];
    let volume = scratch.up("./a.img", &options);
    let mut expected = do_everything(&mut volume.client());
    scratch.run(&["cache", "attach", "v", "size=2M", "block=64K"]).ok();
    expected.extend(do_everything(&mut volume.client()));
    assert!(volume.status()["caches"][0]["reads"].as_u64() > Some(0), "it is asked");
    scratch.run(&["cache", "detach", "v"]).ok();
    expected.extend(do_everything(&mut volume.client()));
    volume.down();
    assert_eq!(requests(&scratch.join("t.log")), expected);
}

#[test]
fn a_ram_disk_of_another_size_is_behind_the_trace() {
    let scratch = Scratch::new();
    let options = ["--name", "v", "--attach", "none", "--trace", "t.log"];
    let volume = scratch.up("ram(8M)", &options);
    let mut expected = do_everything(&mut volume.client());
    scratch.run(&["resize", "v", "16M"]).ok();
    expected.extend(do_everything(&mut volume.client()));
    volume.client().write(12 * MIB, &[7; 4096], false).expect("there is more of it");
    expected.push((Kind::Write, 12 * MIB, 4 * KIB, false));
    volume.down();
    assert_eq!(requests(&scratch.join("t.log")), expected);
}

#[test]
fn a_trace_gets_no_larger_than_it_may() {
    let scratch = Scratch::new();
    let options = ["--name", "v", "--attach", "none", "--trace", "t.log,size=4K"];
    let volume = scratch.up("ram(8M)", &options);
    let mut client = volume.client();
    for number in 0..1000 {
        client.write(number * 512, &[3; 512], false).expect("a write");
    }
    let (recorded, dropped, stopped) = counted(&volume, 1000);
    assert!((50..200).contains(&recorded) && dropped == 1000 - recorded, "{recorded}");
    assert_eq!(stopped.as_deref(), Some("the file has the 4 KiB that it may have"));
    let text = scratch.run(&["status", "v"]).ok().out;
    assert!(text.contains(&format!("{dropped} not recorded; stopped: the file has")), "{text}");
    let path = scratch.join("t.log");
    let size = std::fs::metadata(&path).expect("a trace").len();
    assert!((4096 - 80..=4096).contains(&size), "{size}");
    let first: Vec<_> =
        (0..recorded).map(|number| (Kind::Write, number * 512, 512, false)).collect();
    assert_eq!(requests(&path), first, "the first ones, all of them");
    assert!(client.read(0, 512).expect("it serves") == [3; 512]);
    volume.down();
    assert_eq!(
        std::fs::metadata(&path).expect("a trace").len(),
        size,
        "nothing is added at the end"
    );
}

#[test]
fn a_full_disk_ends_a_trace_and_nothing_else() {
    skip_unless_root!();
    let scratch = Scratch::new();
    let Some(disk) = Mounted::tmpfs(&scratch.join("small"), 64 * KIB) else { return };
    let options = ["--name", "v", "--attach", "none", "--trace", "small/t.log"];
    let volume = scratch.up("ram(8M)", &options);
    let mut client = volume.client();
    let mut sent = 0;
    wait_until("a full disk", || {
        for _ in 0..100 {
            client.write((sent % 2000) * 4096, &[3; 4096], false).expect("a write");
            sent += 1;
        }
        !volume.status()["trace"]["stopped"].is_null()
    });
    let (recorded, dropped, stopped) = counted(&volume, sent);
    assert!(recorded > 0 && dropped > 0, "{recorded}, {dropped}");
    let stopped = stopped.expect("it has stopped");
    assert!(stopped.contains("cannot be written: No space left"), "{stopped}");
    assert!(client.read(0, 512).expect("it serves") == [3; 512]);
    volume.down();
    let path = scratch.join("small/t.log");
    assert_eq!(requests(&path).len() as u64, recorded, "whole lines");
    drop(disk);
}

#[test]
fn nothing_is_overwritten_and_what_does_not_come_up_leaves_no_trace() {
    let scratch = Scratch::new();
    let up = |stack: &str, trace: &str| {
        let options = ["--name", "v", "--attach", "none", "--trace", trace];
        UpVolume::start(&scratch, stack, &options).err().expect("it does not come up")
    };
    scratch.file("t.log", 100, 1);
    let before = scratch.read("t.log");
    std::os::unix::fs::symlink("elsewhere", scratch.join("link")).expect("a link");
    let words = ["t.log is there already", "next: another file for --trace"];
    up("ram(8M)", "t.log").fails(3, &words);
    up("ram(8M)", "t.log,size=1M").fails(3, &words);
    up("ram(8M)", "link").fails(3, &["link is there already"]);
    up("ram(8M)", ".").fails(3, &["is there already"]);
    assert!(scratch.read("t.log") == before && !scratch.join("elsewhere").exists());
    up("ram(8M)", "none/t.log").fails(1, &["none/t.log cannot be made", "next:"]);
    up("ram(8M)", "new.log,size=1").fails(2, &["size: at least 4K"]);
    up("ram(8M)", "new.log,sise=1M").fails(2, &["no parameter \"sise=1M\", only size"]);
    up("ram(8M, image=new.log)", "t.log").fails(3, &["is there already"]);
    scratch.file("bad.img", 4096, 1);
    up("ram(8M, image=bad.img)", "new.log").fails(3, &["the RAM disk is not restored"]);
    assert!(!scratch.join("new.log").exists(), "it was made, and is taken away");
    scratch.run(&["status", "v"]).fails(1, &["no volume called v is up"]);
}

#[test]
fn after_a_kill_what_was_recorded_can_be_read() {
    skip_without!("fio");
    let scratch = Scratch::new();
    let options = ["--name", "v", "--attach", "none", "--trace", "t.log"];
    let volume = scratch.up("ram(64M)", &options);
    let fio = Tool::new("fio")
        .args([
            "--name=v",
            "--ioengine=nbd",
            "--rw=randrw",
            "--bs=4k",
            "--size=64M",
            "--iodepth=16",
        ])
        .args(["--time_based", "--runtime=60"])
        .arg(format!("--uri={}", volume.uris[0]))
        .folder(scratch.path());
    let running = std::thread::spawn(move || fio.run());
    wait_until("a long trace", || volume.status()["trace"]["requests"].as_u64() > Some(20_000));
    volume.kill();
    // Its server is gone.
    running.join().expect("fio ends");
    let path = scratch.join("t.log");
    let trace = read(&path);
    assert!(trace.requests.len() > 20_000);
    // And it can be looked at.
    let shown = scratch.run(&["trace", "show", "t.log", "--json"]).ok().json();
    let count = |name: &str| shown[name].as_u64().expect("a number");
    assert_eq!(count("reads") + count("writes"), trace.requests.len() as u64);
}

/// On a file, and on a volume, whose trace is then the same but for FUA, which fio has no word for.
#[test]
fn fio_replays_what_was_recorded() {
    skip_without!("fio");
    let scratch = Scratch::new();
    let volume = scratch.up("ram(8M)", &["--name", "v", "--attach", "none", "--trace", "t.log"]);
    let mut client = volume.client();
    for number in 0..40u64 {
        client.write(number * 3 * 4096, &[3; 4096], number % 2 == 0).expect("a write");
        client.read(number * 4096, 8192).expect("a read");
        if number % 8 == 7 {
            client.flush().expect("a flush");
        }
    }
    volume.down();
    let replay = |arguments: &[String]| {
        // Its nbd engine prints to standard output on its own.
        let fio = Tool::new("fio").args(["--output=r.json", "--output-format=json"]);
        let fio = fio.args(["--name=r", "--read_iolog=t.log"]).args(arguments);
        fio.folder(scratch.path()).run().ok();
        let report: serde_json::Value =
            serde_json::from_slice(&scratch.read("r.json")).expect("a report");
        let job = &report["jobs"][0];
        let of = |side: &str, name: &str| job[side][name].as_u64().expect("a number");
        assert_eq!(job["error"].as_u64(), Some(0));
        assert_eq!((of("read", "total_ios"), of("write", "total_ios")), (40, 40));
        assert_eq!((of("read", "io_bytes"), of("write", "io_bytes")), (40 * 8192, 40 * 4096));
    };
    let file = scratch.sparse("b.img", 8 * MIB);
    let redirect = format!("--replay_redirect={}", file.display());
    replay(&["--ioengine=psync".to_owned(), redirect]);
    let volume = scratch.up("ram(8M)", &["--name", "w", "--attach", "none", "--trace", "w.log"]);
    replay(&["--ioengine=nbd".to_owned(), format!("--uri={}", volume.uris[0])]);
    volume.down();
    let mut expected = requests(&scratch.join("t.log"));
    assert_eq!(expected.len(), 85);
    expected.iter_mut().for_each(|one| one.3 = false);
    assert_eq!(requests(&scratch.join("w.log")), expected);
}

/// A trace whose requests are 20 ms apart.
const PLAYED: &str = "fio version 3 iolog\n0 x add\n0 x open\n0 x read 4096 8192\n20000 x write 65536 4096\n\
                      40000 x write 131072 4096 fua\n60000 x trim 0 4096\n80000 x sync 0 0\n\
                      100000 x read 17825792 4096\n120000 x read 0 67108864\n140000 x close\n";

/// Each at its time, on a volume, whose own trace says what it was asked.
#[test]
fn a_trace_is_replayed() {
    skip_unless_root!();
    let scratch = Scratch::new();
    std::fs::write(scratch.join("t.log"), PLAYED).expect("a file");
    let options = ["--name", "v", "--attach", "fuse", "--trace", "seen.log"];
    let volume = match UpVolume::start(&scratch, "ram(16M)", &options) {
        Ok(volume) => volume,
        Err(output) => return println!("skipped: it is not attached here: {}", output.err.trim()),
    };
    let device = volume.device().display().to_string();
    let words = ["trace", "replay", "t.log", "--on", &device, "--destroy", &device, "--json"];
    let told = scratch.run(&words).ok().json();
    volume.down();
    let count = |name: &str| told[name].as_u64().unwrap_or_else(|| panic!("{name}: {told}"));
    assert_eq!((count("requests"), count("flushes"), count("given_up")), (4, 1, 0), "{told}");
    assert_eq!((count("read_bytes"), count("written_bytes")), (12_288, 8192));
    assert_eq!((count("discards_left_out"), count("too_long_left_out")), (1, 1), "{told}");
    // None is early, and the last is due then.
    assert!(told["seconds"].as_f64().expect("seconds") >= 0.1, "{told}");
    assert!(told["latency_ns"]["max"].as_u64() > Some(0) && told["latency_ns"]["p50"].is_null());
    let seen = read(&scratch.join("seen.log")).requests;
    // Behind the end is counted from the beginning again.
    let behind = 17_825_792 % (16 * MIB - 4096 + 1) / 512 * 512;
    for asked in [
        (Kind::Read, 4096, 8192),
        (Kind::Write, 65_536, 4096),
        (Kind::Write, 131_072, 4096),
        (Kind::Read, behind, 4096),
    ] {
        let is_asked = seen.iter().any(|one| (one.kind, one.offset, one.length) == asked);
        assert!(is_asked, "{asked:?} in {seen:?}");
    }
    assert!(seen.iter().filter(|one| one.kind == Kind::Flush).count() >= 2, "{seen:?}");
    assert!(!seen.iter().any(|one| one.kind == Kind::Discard), "{seen:?}");
}

#[test]
fn a_replay_writes_to_nothing_that_is_not_named() {
    let scratch = Scratch::new();
    std::fs::write(scratch.join("t.log"), PLAYED).expect("a file");
    scratch.file("a.img", MIB, 1);
    scratch.file("b.img", MIB, 2);
    let before = [scratch.read("a.img"), scratch.read("b.img")];
    let replay = |words: &[&str]| {
        scratch.run(&[&["trace", "replay", "t.log", "--on", "a.img"], words].concat())
    };
    replay(&[]).fails(REFUSED, &["2 writes", "--reads-only", "--destroy a.img"]);
    replay(&["--destroy", "b.img"]).fails(USAGE, &["none of the members"]);
    replay(&["--destroy", "a.img", "--reads-only"]).fails(USAGE, &["cannot be used with"]);
    replay(&["--part", "0s"]).fails(USAGE, &["above 0"]);
    let said = replay(&["--reads-only"]).ok().out;
    assert!(said.contains("2 reads and writes and 0 flushes"), "{said}");
    let said = replay(&["--reads-only", "--part", "0.05s", "--json"]).ok().json();
    assert_eq!(said["requests"], 1, "{said}");
    assert!(before == [scratch.read("a.img"), scratch.read("b.img")], "something was written");
    // What is due behind the limit is not waited for.
    let late =
        "fio version 3 iolog\n0 x add\n0 x open\n0 x read 0 4096\n3600000000 x read 0 4096\n";
    std::fs::write(scratch.join("late.log"), late).expect("a file");
    let words = ["trace", "replay", "late.log", "--on", "a.img", "--limit", "0.2s", "--json"];
    let said = scratch.run(&words).ok().json();
    assert_eq!((&said["requests"], &said["given_up"]), (&1.into(), &1.into()), "{said}");
    replay(&["--reads-only", "--region", "2K"]).fails(REFUSED, &["no room for any request"]);
    let volume = scratch.up("./a.img", &["--name", "v", "--attach", "none"]);
    replay(&["--destroy", "a.img"]).fails(REFUSED, &["a member of v", "braid down v"]);
    volume.down();
    std::fs::write(scratch.join("t.log"), "fio version 3 iolog\n0 x add\n").expect("a file");
    replay(&["--reads-only"]).fails(USAGE, &["asks for no data"]);
    let said = scratch.run(&["trace", "replay", "none.log", "--on", "a.img"]);
    said.fails(1, &["none.log"]);
}

#[test]
fn what_goes_through_a_block_device_is_recorded() {
    skip_unless_root!();
    let scratch = Scratch::new();
    let options = ["--name", "v", "--attach", "fuse", "--trace", "t.log"];
    let volume = match UpVolume::start(&scratch, "ram(16M)", &options) {
        Ok(volume) => volume,
        Err(output) => return println!("skipped: it is not attached here: {}", output.err.trim()),
    };
    let dd = Tool::new("dd").args(["if=/dev/zero", "bs=64k", "count=4", "seek=8", "oflag=direct"]);
    dd.args(["conv=fsync,notrunc"]).arg(format!("of={}", volume.device().display())).run().ok();
    volume.down();
    let all = requests(&scratch.join("t.log"));
    for part in 8..12 {
        let one = (Kind::Write, part * 64 * KIB, 64 * KIB, false);
        assert!(all.contains(&one), "{one:?} in {all:?}");
    }
    assert!(all.iter().any(|one| one.0 == Kind::Flush), "{all:?}");
}

const SHOWN: &str = "   trace: t.log (fio iolog, version 3)
      of: /srv/a.img
 warning: line 10, the last, has no end and does not count
duration: 2.000000 s
requests: 6: 2 reads, 2 writes (1 with forced unit access), 1 discards, 1 flushes
   bytes: 12 KiB read, 1 MiB written, 64 KiB discarded
   where: 1.06 MiB at least once, below 1.06 MiB
sequence: 25.0 % begin where one of the 16 before ended
   depth: 2 at once or fewer, for half of the requests; 2 at most (those within 100 µs)
 busiest: second 0: 3 requests, 516 KiB
   sizes: 259 KiB in the mean
               4 KiB          1 reads         0 writes  ####################
               8 KiB          1 reads         0 writes  ####################
             512 KiB          0 reads         2 writes  ########################################
";

#[test]
fn a_trace_is_shown_on_one_screen() {
    let scratch = Scratch::new();
    let text = "fio version 3 iolog\n0 /srv/a.img add\n0 /srv/a.img open\n\
                10 /srv/a.img read 0 4096\n60 /srv/a.img write 4096 524288\n\
                70 /srv/a.img datasync 0 0\n1500000 /srv/a.img trim 1048576 65536\n\
                2000000 /srv/a.img write 524288 524288 fua\n2000010 /srv/a.img read 65536 8192\n\
                2000020 /srv/a.img wri";
    std::fs::write(scratch.join("t.log"), text).expect("a file");
    let shown = scratch.run(&["trace", "show", "t.log"]).ok().out;
    assert_eq!(shown, SHOWN);
    let json = scratch.run(&["trace", "show", "t.log", "--json"]).ok().json();
    let expected = serde_json::json!({
        "output_version": 2, "format": "fio iolog, version 3", "of": "/srv/a.img", "has_times": true,
        "torn_line": 10, "duration_ns": 2_000_000_000u64, "reads": 2, "writes": 2, "fua_writes": 1,
        "discards": 1, "flushes": 1, "read_bytes": 12_288, "written_bytes": 1_048_576,
        "discarded_bytes": 65_536, "read_share": 0.5, "mean_bytes": 265_216.0, "sequential_share": 0.25,
        "largest_end_bytes": 1_114_112, "working_set_bytes": 1_114_112,
        "sizes": [
            { "from_bytes": 4096, "reads": 1, "writes": 0 },
            { "from_bytes": 8192, "reads": 1, "writes": 0 },
            { "from_bytes": 524_288, "reads": 0, "writes": 2 },
        ],
        "burst": { "median": 2, "largest": 2 },
        "busiest": { "second": 0, "requests": 3, "bytes": 528_384 },
    });
    assert_eq!(json, expected);
}

#[test]
fn what_is_no_trace_is_refused_with_its_place() {
    let scratch = Scratch::new();
    let show = |text: &str, options: &[&str]| {
        std::fs::write(scratch.join("t.log"), text).expect("a file");
        scratch.run(&[&["trace", "show", "t.log"], options].concat())
    };
    let wrong = "fio version 3 iolog\n0 a add\n5 a read 0 4k\n";
    show(wrong, &[]).fails(2, &["t.log: line 3, column 12: found \"4k\", but expected a length"]);
    show("", &[]).fails(2, &["t.log: line 1, column 1", "expected a line of blkparse's text"]);
    let two = "fio version 3 iolog\n0 a read 0 1\n0 b read 0 2\n";
    let words = ["t.log: the trace is of several files: a, b", "braid trace show t.log --of a"];
    show(two, &[]).fails(2, &words);
    let one = show(two, &["--of", "b", "--json"]).ok().json();
    assert_eq!(one["read_bytes"].as_u64(), Some(2));
    show(two, &["--of", "c"]).fails(2, &["no requests to c, only to: a, b", "--of a"]);
    scratch.run(&["trace", "show", "none.log"]).fails(1, &["none.log: No such file"]);
}
