//! Real deliveries to a web server of a few lines, which may be slow to believe.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver as Channel, channel};

use serde_json::Value;

use super::*;

/// A server that answers each request with the next of `answers`, and hands on what it got.
fn server(answers: Vec<&'static str>) -> (u16, Channel<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let (sender, bodies) = channel();
    std::thread::spawn(move || {
        for answer in answers.into_iter().chain(std::iter::repeat("204 No Content")) {
            let Ok((stream, _)) = listener.accept() else { return };
            let mut reader = BufReader::new(stream);
            let mut length = 0;
            let mut line = String::new();
            while reader.read_line(&mut line).is_ok_and(|count| count > 2) {
                let lower = line.to_lowercase();
                if let Some(text) = lower.strip_prefix("content-length:") {
                    length = text.trim().parse().expect("a length");
                }
                line.clear();
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).expect("a body");
            // Handed on first: once it has its answer, the other side may look for the body at once.
            if sender.send(serde_json::from_slice(&body).expect("JSON")).is_err() {
                return;
            }
            let mut stream = reader.into_inner();
            let head =
                format!("HTTP/1.1 {answer}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            stream.write_all(head.as_bytes()).expect("an answer");
        }
    });
    (port, bodies)
}

fn config(text: &str) -> Config {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("monitor.toml");
    std::fs::write(&path, text).expect("written");
    Config::read(&path, true).expect("a configuration")
}

fn event(volume: &str) -> Event {
    let json = serde_json::json!({
        "event": "Fail", "severity": "critical", "volume": volume, "device": null, "array": null,
        "member": null, "since": 1, "at": 1, "what": "it failed", "meaning": "", "next": null,
        "cause": "", "ended": null, "reminder": false,
    });
    serde_json::from_value(json).expect("an event")
}

const SOON: Duration = Duration::from_secs(60);

#[test]
fn a_storm_makes_a_bounded_number_of_messages_and_counts_everything() {
    let (port, bodies) = server(Vec::new());
    let text = format!(
        "[limit]\nburst = 3\nevery = \"1d\"\n[[webhook]]\nurl = \"http://127.0.0.1:{port}\""
    );
    let config = config(&text);
    let (wake, woken) = channel();
    let receivers = Receivers::start(&config, "host", BTreeMap::new(), &wake).expect("receivers");
    for index in 0..10_000 {
        receivers.tell(&[event(&format!("v{}", index % 7))]);
    }
    let mut told = 0;
    // Three at most may go today; whichever of them there is room for, the rest is still counted.
    while !receivers.is_quiet(config.limit()) {
        let _ = woken.recv_timeout(Duration::from_millis(50));
    }
    let mut messages = 0;
    while let Ok(body) = bodies.try_recv() {
        messages += 1;
        told += body["count"].as_u64().expect("a count");
    }
    assert!((1..=3).contains(&messages), "{messages}");
    let mut waiting = receivers.end(Duration::ZERO);
    let outbox = waiting.values_mut().next().expect("there is one receiver");
    let later = now() + 2 * 86_400;
    let held = outbox.take(config.limit(), later).map_or(0, |message| message.count());
    assert_eq!(told + held, 10_000);
}

#[test]
fn what_fails_for_now_is_tried_again_and_what_fails_for_good_is_not() {
    let (port, bodies) = server(vec!["503 Not Now", "404 Not Here"]);
    let text = format!("[retry]\nfirst = \"1s\"\n[[webhook]]\nurl = \"http://127.0.0.1:{port}\"");
    let (wake, woken) = channel();
    let receivers =
        Receivers::start(&config(&text), "host", BTreeMap::new(), &wake).expect("receivers");
    receivers.tell(&[event("first")]);
    assert_eq!(woken.recv_timeout(SOON), Ok(Wake::Changed));
    receivers.tell(&[event("second")]);
    assert_eq!(woken.recv_timeout(SOON), Ok(Wake::Changed));
    let got: Vec<(Value, Value)> = bodies
        .try_iter()
        .map(|body| (body["events"][0]["volume"].clone(), body["undelivered_before"].clone()))
        .collect();
    // Turned away for now, turned away for good; the next one says that one is missing.
    assert_eq!(
        got,
        [("first".into(), 0.into()), ("first".into(), 0.into()), ("second".into(), 1.into())]
    );
}

#[test]
fn what_was_under_way_goes_out_after_a_restart() {
    let (port, bodies) = server(Vec::new());
    let text = format!("[[webhook]]\nurl = \"http://127.0.0.1:{port}\"");
    let config = config(&text);
    let mut outbox = Outbox::default();
    outbox.offer(event("first"));
    outbox.offer(event("second"));
    outbox.take(config.limit(), now()).expect("the first");
    let name = config.targets()[0].0.clone();
    let (wake, _woken) = channel();
    let _receivers =
        Receivers::start(&config, "host", [(name, outbox)].into(), &wake).expect("receivers");
    for volume in ["first", "second"] {
        let body = bodies.recv_timeout(SOON).expect("a message");
        assert_eq!(body["events"][0]["volume"], volume);
    }
}
