//! Being watched: Prometheus reads what volumes say, at the control socket and on loopback; `top` shows it.

mod common;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::{MIB, Scratch, Tool, pattern, skip_unless_root, skip_without, start, wait_until};

/// Has promtool judge a page of metrics.
#[track_caller]
fn check_by_promtool(text: &str) {
    if common::first_missing(&["promtool"]).is_some() {
        println!("skipped: promtool is not installed");
        return;
    }
    let judged = Tool::new("promtool").args(["check", "metrics"]).input(text).run();
    assert_eq!(judged.code(), 0, "{}{}", judged.out, judged.err);
}

/// The value of the sample that begins with `sample`, name and labels.
#[track_caller]
fn value(text: &str, sample: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {sample} in:\n{text}")).parse().expect("a number")
}

/// One HTTP exchange: the head of the answer and its body.
fn get(mut stream: impl Read + Write, target: &str) -> (String, String) {
    let request = format!("GET {target} HTTP/1.1\r\nhost: braid\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    (head.to_owned(), body.to_owned())
}

#[test]
fn a_volume_says_at_its_control_socket_what_prometheus_reads() {
    let scratch = Scratch::new();
    let (a, b) = (scratch.sparse("a \"1\".img", 8 << 20), scratch.sparse("b.img", 8 << 20));
    let stack = format!("cache(size=1M, raid1({:?}, {:?}))", a, b);
    let volume = scratch.up(&stack, &["--name", "v", "--attach", "none"]);
    let mut client = volume.client();
    client.write(4096, &[7; 8192], false).expect("a write");
    client.read(4096, 8192).expect("a read");
    let socket = scratch.run_folder().join("v.sock");
    let (head, text) = get(UnixStream::connect(socket).expect("a socket"), "/metrics");
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    assert!(head.contains("content-type: text/plain; version=0.0.4"), "{head}");
    check_by_promtool(&text);
    assert_eq!(value(&text, "braid_volume_up{volume=\"v\"}"), 1.0);
    assert_eq!(value(&text, "node_md_disks{device=\"v\",state=\"active\"}"), 2.0);
    assert_eq!(value(&text, "braid_nbd_written_bytes_total{volume=\"v\"}"), 8192.0);
    assert_eq!(value(&text, "braid_nbd_read_bytes_total{volume=\"v\"}"), 8192.0);
    // What the volume asked of itself and of its members is no client's.
    for (op, count) in [("read", 1.0), ("write", 1.0), ("flush", 0.0)] {
        let sample = format!("braid_nbd_request_seconds_count{{volume=\"v\",op=\"{op}\"}}");
        assert_eq!(value(&text, &sample), count, "{op}");
    }
    assert!(value(&text, "braid_nbd_request_seconds_sum{volume=\"v\",op=\"write\"}") > 0.0);
    let label = a.display().to_string().replace('"', "\\\"");
    let size = format!("braid_member_size_bytes{{volume=\"v\",member=\"{label}\"}}");
    assert_eq!(value(&text, &size), (8 << 20) as f64);
    volume.down();
}

#[test]
fn all_volumes_are_printed_or_written_and_one_that_does_not_answer_is_down() {
    let scratch = Scratch::new();
    let one = scratch.up("raid1(ram(4M), ram(4M))", &["--name", "one", "--attach", "none"]);
    let two = scratch.up("ram(4M)", &["--name", "two", "--attach", "none"]);
    two.kill();
    let text = scratch.run(&["metrics"]).ok().out;
    check_by_promtool(&text);
    assert_eq!(value(&text, "braid_volume_up{volume=\"one\"}"), 1.0);
    assert_eq!(value(&text, "braid_volume_up{volume=\"two\"}"), 0.0);
    let named = scratch.run(&["metrics", "one"]).ok().out;
    assert!(!named.contains("two"), "{named}");
    // For a textfile collector: the file is there, whole, and nothing beside it.
    let folder = scratch.join("textfile");
    std::fs::create_dir(&folder).expect("a folder");
    let file = folder.join("braid.prom");
    std::fs::write(&file, "# old").expect("a file");
    let mut held = std::fs::File::open(&file).expect("a file");
    let path = file.display().to_string();
    assert_eq!(scratch.run(&["metrics", "--textfile", &path]).ok().out, "");
    check_by_promtool(&std::fs::read_to_string(&file).expect("the file"));
    let mut text = String::new();
    held.read_to_string(&mut text).expect("the file of before");
    assert_eq!(text, "# old", "a reader meanwhile reads a whole one");
    assert_eq!(std::fs::read_dir(&folder).expect("the folder").count(), 1);
    let away = folder.join("no/braid.prom").display().to_string();
    scratch.run(&["metrics", "--textfile", &away]).fails(1, &["cannot write", "no/braid.prom"]);
    // A member that is named by mistake stays.
    let member = scratch.file("a.img", 1 << 20, 1).display().to_string();
    let before = scratch.read("a.img");
    let refused = ["holds something else", "next: another FILE"];
    scratch.run(&["metrics", "--textfile", &member]).fails(3, &refused);
    assert!(scratch.read("a.img") == before);
    one.down();
}

#[test]
fn clients_latencies_are_told_by_export() {
    skip_unless_root!();
    let scratch = Scratch::new();
    let nbd = format!("unix:{}", scratch.run_folder().join("v.nbd").display());
    let options = ["--name", "v", "--attach", "fuse", "--nbd", &nbd];
    // The member takes milliseconds, and so does what clients wait for.
    let member = scratch.sparse("a.img", 8 << 20);
    let volume = scratch.up(&format!("raid1({}, ram(8M))", member.display()), &options);
    wait_until("the members to agree", || volume.status()["arrays"][0]["job"].is_null());
    assert_eq!(volume.status()["nbd"]["io"]["reads"]["count"], 0, "the resync is no client");
    let mut client = volume.client();
    for _ in 0..3 {
        client.write(0, &[7; 4096], false).expect("a write");
    }
    assert_eq!(volume.status()["nbd"]["io"]["writes"]["count"], 3);
    let device = format!("of={}", volume.device().display());
    let dd = ["if=/dev/zero", &device, "bs=64K", "count=16", "oflag=direct", "conv=fsync,notrunc"];
    Tool::new("dd").args(dd).run().ok();
    let status = volume.status();
    let attached = &status["attached"];
    let count = |kind: &str| attached["io"][kind]["count"].as_u64().expect("a number");
    let all: u64 = ["reads", "writes", "flushes"].into_iter().map(count).sum();
    assert_eq!(attached["requests"], all, "{attached}");
    assert_eq!(status["exports"], serde_json::json!([status["nbd"], attached]));
    assert!(attached["io"]["writes"]["count"].as_u64() >= Some(16), "{attached}");
    assert!(attached["io"]["flushes"]["count"].as_u64() > Some(0), "{attached}");
    assert_eq!(attached["io"]["in_flight"], 0, "{attached}");
    let nbd = &status["nbd"]["io"]["writes"];
    assert_eq!(nbd["count"], 3, "what the device was asked for is not NBD's: {nbd}");
    // A text has them together.
    let text = scratch.run(&["status", "v"]).ok().out;
    let line = text.lines().find(|line| line.trim().starts_with("latency: "));
    let line = line.unwrap_or_else(|| panic!("no latency in {text}"));
    assert!(line.contains("writes p50 <") && line.contains("flushes p50 <"), "{line}");
    volume.down();
}

/// A process that ends with the test.
struct Ending(std::process::Child);

impl Drop for Ending {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn metrics_are_served_on_loopback_only_and_slow_clients_keep_nobody_out() {
    let scratch = Scratch::new();
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:80"] {
        scratch.run(&["metrics", "--listen", address]).fails(2, &["other machines could reach it"]);
    }
    scratch.run(&["metrics", "--listen", "localhost"]).fails(2, &["not an address with a port"]);
    let volume = scratch.up("ram(4M)", &["--name", "v", "--attach", "none"]);
    let mut command = scratch.braid().args(["metrics", "--listen", "127.0.0.1:0"]).into_command();
    let mut serving = Ending(start(command.stdout(Stdio::piped())).expect("a server"));
    let mut said = std::io::BufReader::new(serving.0.stdout.take().expect("its output"));
    let mut line = String::new();
    std::io::BufRead::read_line(&mut said, &mut line).expect("a line");
    let address = line.trim().strip_prefix("http://").and_then(|url| url.strip_suffix("/metrics"));
    let address = address.unwrap_or_else(|| panic!("{line}")).to_owned();
    let connect = || {
        let stream = TcpStream::connect(&address).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket");
        stream
    };
    let (head, text) = get(connect(), "/metrics");
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    check_by_promtool(&text);
    assert_eq!(value(&text, "braid_volume_up{volume=\"v\"}"), 1.0);
    assert!(get(connect(), "/v1/status").0.starts_with("HTTP/1.1 404 "));
    // More than are let in say nothing: they are hung up on, and then it is our turn.
    let mut idle: Vec<TcpStream> = (0..40).map(|_| connect()).collect();
    let (head, _) = get(connect(), "/metrics");
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    wait_until("the first to be hung up on", || idle[0].read(&mut [0; 16]).unwrap_or(0) == 0);
    volume.down();
}

#[test]
fn the_alert_rules_are_what_prometheus_takes_and_do_what_they_say() {
    skip_without!("promtool");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/prometheus");
    for args in [["check", "rules", "braid.rules.yml"], ["test", "rules", "braid.rules.test.yml"]] {
        let judged = Tool::new("promtool").args(args).folder(&folder).run();
        assert_eq!(judged.code(), 0, "{}{}", judged.out, judged.err);
    }
}

/// A volume of two members without superblocks, which were made to agree.
fn pair(scratch: &Scratch) -> common::UpVolume<'_> {
    let (a, b) = (scratch.sparse("a.img", 64 << 20), scratch.sparse("b.img", 64 << 20));
    let stack = format!("raid1({}, {})", a.display(), b.display());
    let volume = scratch.up(&stack, &["--name", "v", "--attach", "none"]);
    wait_until("the members to agree", || volume.status()["arrays"][0]["job"].is_null());
    volume
}

#[test]
fn a_scrub_with_an_end_pauses_and_the_next_life_goes_on_there() {
    let scratch = Scratch::new();
    let volume = pair(&scratch);
    // Long after the resync of members without superblocks.
    scratch.run(&["speed", "v", "--max", "8M"]).ok();
    scratch.run(&["scrub", "v", "--for", "0s"]).fails(2, &["--for 0s"]);
    scratch.run(&["scrub", "v", "--until", "soon"]).fails(2, &["--until soon"]);
    scratch.run(&["scrub", "v", "--for", "2s", "--until", "06:00"]).fails(2, &["cannot be used"]);
    scratch.run(&["scrub", "v", "--latency", "20ms"]).fails(2, &["required"]);
    let out = scratch.run(&["scrub", "v", "--for", "2s", "--wait"]).ok().out;
    assert!(out.contains("check begins") && out.contains("the scrub paused"), "{out}");
    let place = || volume.status()["arrays"][0]["scrub_place"].clone();
    wait_until("the place to be kept", || place()["done_bytes"].as_u64() > Some(0));
    let array = volume.status()["arrays"][0].clone();
    assert!(array["last_scrub"].is_null(), "a part is no scrub: {array}");
    let text = scratch.run(&["status", "v"]).ok().out;
    assert!(text.contains("scrub: check is at ") && text.contains("it goes on"), "{text}");
    wait_until("the last look", || {
        let kept = std::fs::read_to_string(scratch.path().join("state/scrubs/v.json"));
        kept.is_ok_and(|text| text.contains(&format!("\"done_bytes\": {}", place()["done_bytes"])))
    });
    let before = place();
    volume.kill();
    let volume = scratch.up("v", &["--attach", "none"]);
    wait_until("the members to agree", || volume.status()["arrays"][0]["job"].is_null());
    assert_eq!(volume.status()["arrays"][0]["scrub_place"], before);
    let text = scratch.run(&["metrics"]).ok().out;
    let sample = "braid_scrub_part_done_bytes{volume=\"v\",array=\"raid1\",kind=\"check\"}";
    assert_eq!(Some(value(&text, sample)), before["done_bytes"].as_f64());
    // The second part goes on, and through: the sum of both parts is the scrub.
    let out = scratch.run(&["scrub", "--all", "--continue", "--for", "10m"]).ok().out;
    assert!(out.contains("check goes on at ") && out.contains("copies agree"), "{out}");
    let array = volume.status()["arrays"][0].clone();
    assert_eq!(array["last_scrub"]["compared_bytes"], array["size_bytes"], "{array}");
    wait_until("the place to be forgotten", || {
        volume.status()["arrays"][0]["scrub_place"].is_null()
            && !scratch.path().join("state/scrubs/v.json").exists()
    });
    volume.down();
}

/// The pass may still be listed when its scrub has ended: what the scrub compared is known then, too.
#[test]
fn a_scrub_that_compares_nothing_fails_each_time() {
    let scratch = Scratch::new();
    scratch.sparse("a.img", 16 * MIB);
    let create = ["create", "v", "--level", "raid1", "a.img", "missing", "--assume-clean"];
    scratch.run(&create).ok();
    let volume = scratch.up("v", &["--attach", "none"]);
    for _ in 0..20 {
        scratch.run(&["scrub", "v", "--wait"]).fails(1, &["nothing was compared"]);
    }
    volume.down();
}

#[test]
fn what_was_kept_of_another_array_counts_for_nothing() {
    let scratch = Scratch::new();
    let volume = pair(&scratch);
    scratch.run(&["speed", "v", "--max", "8M"]).ok();
    scratch.run(&["scrub", "v", "--for", "1s", "--wait"]).ok();
    let file = scratch.path().join("state/scrubs/v.json");
    wait_until("the place to be kept", || file.exists());
    volume.down();
    let text = std::fs::read_to_string(&file).expect("what is kept");
    let other = text.replace("\"what\": \"raid1 67108864", "\"what\": \"raid1 99");
    assert_ne!(text, other);
    for (kept, says) in
        [(other, "check begins"), ("{".to_owned(), "check begins"), (text, "check goes on")]
    {
        std::fs::write(&file, kept).expect("a file");
        let volume = scratch.up("v", &["--attach", "none"]);
        wait_until("the members to agree", || volume.status()["arrays"][0]["job"].is_null());
        let out = scratch.run(&["scrub", "v", "--for", "1h"]).ok().out;
        assert!(out.contains(says), "{says}: {out}");
        volume.kill();
    }
    // An order without an end is of all of the array, and what was kept is forgotten.
    let volume = scratch.up("v", &["--attach", "none"]);
    scratch.run(&["scrub", "v", "--cancel"]).ok();
    assert!(!file.exists());
    volume.down();
}

#[test]
fn top_prints_tables_where_there_is_no_terminal() {
    let scratch = Scratch::new();
    let volume = pair(&scratch);
    let out = scratch.run(&["top", "--interval", "0.2", "--count", "2"]).ok().out;
    assert_eq!(out.matches("volume, members").count(), 2, "{out}");
    assert_eq!(out.matches("a.img").count(), 2, "{out}");
    assert!(!out.contains('\x1b'), "{out}");
    scratch.run(&["top", "w", "--count", "1"]).fails(1, &["no process answers"]);
    scratch.run(&["top", "--interval", "0"]).fails(2, &["0.1 to 3600"]);
    volume.down();
}

/// Raised when it goes, also by a panic.
struct Raised<'a>(&'a AtomicBool);

impl Drop for Raised<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn top_draws_on_a_terminal_as_large_as_it_is() {
    skip_without!("python3");
    let scratch = Scratch::new();
    // More lines than a small terminal has; the last member is the one that is written.
    let rams = vec!["ram(1M)"; 25].join(", ");
    let last = scratch.sparse("last.img", 1 << 20);
    let stack = format!("linear({rams}, {})", last.display());
    let volume = scratch.up(&stack, &["--name", "v", "--attach", "none"]);
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _ends = Raised(&ended);
        scope.spawn(|| {
            let mut client = volume.client();
            while !ended.load(Ordering::Relaxed) {
                client.write(25 << 20, &[7; 4096], false).expect("a write");
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/top.py");
        let tool = Tool::new("python3").arg("-B").arg(script).arg(env!("CARGO_BIN_EXE_braid"));
        let tool = tool.env("BRAID_RUN_DIR", scratch.run_folder());
        // A terminal may be waited for three times.
        let output = tool.limit(Duration::from_secs(240)).run().ok();
        println!("{}", output.out);
        assert!(output.out.trim().ends_with("all of it"), "{output}");
    });
    volume.down();
}

#[test]
fn the_slowest_requests_say_which_member_took_the_time() {
    let scratch = Scratch::new();
    let stack = "raid1(ram(16M), model(usb-flash, size=16M, latency=40ms, write=1G/s, read=1G/s))";
    let volume = scratch.up(stack, &["--name", "w", "--attach", "none"]);
    let mut client = volume.client();
    let is_done = AtomicBool::new(false);
    let out = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                client.write(MIB, &pattern(1, 0, 4096), false).expect("a write");
            }
        });
        let out = scratch.run(&["top", "w", "--slow"]);
        is_done.store(true, Ordering::Relaxed);
        out
    });
    let out = out.ok().out;
    assert!(out.starts_with("w: ") && out.contains(" requests answered in 1 s\n"), "{out}");
    // The slowest one may be under way still.
    let slowest = out.lines().skip(1).take(2);
    let slowest: Vec<&str> = slowest.map(|line| line.trim_end_matches(", no answer yet")).collect();
    assert!(slowest[0].ends_with("write of 4 KiB at 1 MiB"), "{out}");
    assert!(
        slowest[1].contains("model(usb-flash") && slowest[1].ends_with("write of 4 KiB at 1 MiB"),
        "{out}"
    );
    assert!(out.contains("in the volume\n"), "{out}");
    let millis = |line: &str| line.trim().split_once(" ms").and_then(|(text, _)| text.parse().ok());
    let [whole, member] = [slowest[0], slowest[1]].map(|line| millis(line).unwrap_or(0.0f64));
    assert!(member >= 40.0 && member <= whole, "{out}");
    let refused = scratch.run(&["top", "w", "--slow", "--interval", "0.5"]);
    refused.fails(2, &["1 to 60 whole seconds", "next:"]);
    volume.down();
}
