//! Being watched: Prometheus reads what volumes say, at the control socket and on loopback; `top` shows it.

mod common;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use common::{Scratch, Tool, skip_without, start, wait_until};

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
    std::fs::write(&file, "old").expect("a file");
    let path = file.display().to_string();
    assert_eq!(scratch.run(&["metrics", "--textfile", &path]).ok().out, "");
    check_by_promtool(&std::fs::read_to_string(&file).expect("the file"));
    assert_eq!(std::fs::read_dir(&folder).expect("the folder").count(), 1);
    let away = folder.join("no/braid.prom").display().to_string();
    scratch.run(&["metrics", "--textfile", &away]).fails(1, &["cannot write", "no/braid.prom"]);
    one.down();
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
        scratch.run(&["metrics", "--listen", address]).fails(2, &["other machines would reach it"]);
    }
    scratch.run(&["metrics", "--listen", "localhost"]).fails(2, &["no address with a port"]);
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
