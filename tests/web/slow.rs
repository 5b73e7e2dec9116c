//! Slow peers: a volume that does not answer, senders that never complete a request, readers that read nothing. The server
//! keeps serving all others.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::{LIMIT, Scratch, Stopped, wait_until};
use crate::server::{Web, with_home};

/// The data of the next event.
fn next(events: &mut BufReader<TcpStream>) -> Value {
    loop {
        let mut line = String::new();
        assert!(events.read_line(&mut line).expect("events go on") > 0, "the stream ended");
        if let Some(data) = line.strip_prefix("data: ") {
            return serde_json::from_str(data).expect("JSON");
        }
    }
}

#[test]
fn a_volume_that_does_not_answer_keeps_no_other_waiting() {
    let scratch = Scratch::new();
    with_home(&scratch);
    let still = scratch.up("ram(4M)", &["--name", "still", "--attach", "none"]);
    let pid = u32::try_from(still.status()["pid"].as_u64().expect("a number")).expect("a process");
    let web = Web::start(&scratch, &[]);
    let (mut events, _) = web.follow();
    let first = next(&mut events);
    for name in ["home", "still"] {
        assert_eq!(first["volumes"][name]["state"], "online", "{first}");
    }
    let stopped = Stopped::stop(pid);
    loop {
        let of = &next(&mut events)["volumes"]["still"];
        if of["state"] == "stalled" {
            assert!(of["silent_since_ms"].as_u64() > Some(1_600_000_000_000), "{of}");
            assert!(of["why"].as_str().expect("why").contains("did not answer"), "{of}");
            break;
        }
    }
    // A request that asked the volume would take 5 s each time.
    let start = Instant::now();
    for turn in 0..10 {
        scratch.run(&[if turn % 2 == 0 { "lock" } else { "unlock" }, "home"]).ok();
        while next(&mut events)["volumes"]["home"]["device"]["locked"] != (turn % 2 == 0) {}
    }
    assert!(start.elapsed() < Duration::from_secs(40), "{:?}", start.elapsed());
    // A new client sees both volumes and which of them is silent, and sees it return when it answers.
    let (mut late, _) = web.follow();
    let first = next(&mut late);
    assert_eq!(first["volumes"]["home"]["state"], "online", "{first}");
    assert_eq!(first["volumes"]["still"]["state"], "stalled", "{first}");
    drop(stopped);
    while next(&mut events)["volumes"]["still"]["state"] != "online" {}
    still.down();
}

#[test]
fn senders_that_are_slow_keep_nobody_out() {
    let scratch = Scratch::new();
    let web = Web::start(&scratch, &[]);
    let begun = |text: &str| {
        let mut stream = web.connect();
        stream.write_all(text.as_bytes()).unwrap();
        stream
    };
    // A sender of single bytes gets no more time than one that sends nothing.
    let mut dripping = begun("GET / HTTP/1.1\r\nx: ");
    dripping.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let ends = Instant::now() + LIMIT;
    let mut answer = Vec::new();
    let ended = std::iter::repeat_with(|| {
        let is_taken = dripping.write_all(b"y").is_ok();
        !is_taken || dripping.read_to_end(&mut answer).is_ok()
    });
    let mut tries = ended.take_while(|ended| !ended && Instant::now() < ends);
    assert!(tries.by_ref().count() > 2);
    assert!(Instant::now() < ends, "it is heard for ever");
    // Hundreds of incomplete requests: to wait for each of them would take a minute.
    let start = Instant::now();
    let slow: Vec<TcpStream> = (0..400).map(|_| begun("GET / HT")).collect();
    for _ in 0..3 {
        assert_eq!(web.get("/api/v1").status, 200);
    }
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
    // A client that was accepted keeps its place among any number of new ones.
    let (mut events, status) = web.follow();
    assert!(status.contains(" 200 "), "{status}");
    let more: Vec<TcpStream> = (0..100).map(|_| begun("GET / HT")).collect();
    assert_eq!(web.get("/api/v1").status, 200);
    next(&mut events);
    scratch.run(&["up", "ram(1M)", "--name", "new", "--attach", "none"]).ok();
    while next(&mut events)["volumes"]["new"]["state"] != "online" {}
    scratch.run(&["down", "new"]).ok();
    drop((slow, more));
}

#[test]
fn readers_that_take_nothing_are_hung_up_on() {
    let scratch = Scratch::new();
    let web = Web::start(&scratch, &[]);
    let folder = scratch.config_file("x");
    let folder = folder.parent().expect("a folder");
    std::fs::create_dir_all(folder).unwrap();
    let last = format!("{:0>40}", 999);
    let records: Vec<_> = (0..1000).map(|n| folder.join(format!("{n:0>40}.toml"))).collect();
    // Known volumes come and go, so that there is much to be sent.
    let mut is_there = false;
    let mut change = || {
        for path in &records {
            match is_there {
                true => std::fs::remove_file(path).unwrap(),
                false => std::fs::write(path, "").unwrap(),
            }
        }
        is_there = !is_there;
        is_there
    };
    let followers: Vec<_> = (0..15).map(|_| web.follow().0).collect();
    // One reads, which tells when a change was sent to all.
    let (mut reading, _) = web.follow();
    next(&mut reading);
    let (mut refused, status) = web.follow();
    assert!(status.contains(" 503 "), "{status}");
    let mut rest = String::new();
    // The request is refused, and the connection may be used again.
    while !rest.contains("follow already") {
        let part = refused.fill_buf().unwrap();
        assert!(!part.is_empty(), "{rest}");
        rest.push_str(&String::from_utf8_lossy(part));
        let taken = part.len();
        refused.consume(taken);
    }
    wait_until("one of them to make room", || {
        let is_there = change();
        assert_eq!(web.get("/api/v1").status, 200, "others are served");
        // A volume that is gone is sent as null.
        let is_sent = |event: Value| event["volumes"].get(&last).map(Value::is_object);
        while is_sent(next(&mut reading)) != Some(is_there) {}
        web.follow().1.contains(" 200 ")
    });
    let memory = web.memory();
    println!("the server has {memory} bytes in memory");
    assert!(memory < 150 << 20, "{memory}");
    drop(followers);
}

#[test]
fn clients_that_keep_connections_leave_room_for_others() {
    let scratch = Scratch::new();
    let web = Web::start(&scratch, &[]);
    let (mut events, status) = web.follow();
    assert!(status.contains(" 200 "), "{status}");
    let ask = |stream: &mut TcpStream| {
        let request = format!(
            "GET /api/v1 HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\r\n",
            web.host(),
            web.token()
        );
        stream.write_all(request.as_bytes()).unwrap();
        let (mut answer, mut part) = (Vec::new(), [0; 4096]);
        while !answer.ends_with(b"}") {
            let count = stream.read(&mut part).unwrap();
            assert!(count > 0, "it is answered, and kept");
            answer.extend_from_slice(&part[..count]);
        }
    };
    // Twice as many clients as there is room for; each sends the token and nothing else.
    let mut kept: Vec<TcpStream> = Vec::new();
    for _ in 0..2 * 64 {
        let mut stream = web.connect();
        ask(&mut stream);
        kept.push(stream);
    }
    assert_eq!(web.get("/api/v1").status, 200);
    assert_eq!(kept[0].read(&mut [0]).unwrap(), 0, "the one that was idle longest made room");
    ask(kept.last_mut().expect("there are some"));
    // A stream of events is not idle, however old it is.
    next(&mut events);
    scratch.run(&["up", "ram(1M)", "--name", "new", "--attach", "none"]).ok();
    while next(&mut events)["volumes"]["new"]["state"] != "online" {}
    scratch.run(&["down", "new"]).ok();
}

/// Begins as many POSTs as there is room for, and asks for something else. Until that is answered, each body gets a
/// byte ten times a second if `drips`, and none otherwise.
fn bodies_leave_room(drips: bool) {
    let scratch = Scratch::new();
    let web = Web::start(&scratch, &[]);
    let head = format!(
        "POST /api/v1/volumes HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\nexpect: 100-continue\r\ncontent-length: 60000\r\n\r\n",
        web.host(),
        web.token()
    );
    let begin = |_| {
        let (mut post, mut answer) = (web.connect(), [0; 25]);
        post.write_all(head.as_bytes()).unwrap();
        post.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"HTTP/1.1 100 Continue\r\n\r\n", "the server waits for the body");
        post
    };
    let mut posts: Vec<TcpStream> = (0..64).map(begin).collect();
    let (send, answered) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| send.send(web.get("/api/v1").status));
        let every = if drips { Duration::from_millis(100) } else { LIMIT };
        let status = loop {
            match answered.recv_timeout(every) {
                Err(mpsc::RecvTimeoutError::Timeout) if drips => {
                    posts.iter_mut().for_each(|post| drop(post.write_all(b" ")));
                }
                status => break status,
            }
        };
        assert_eq!(status, Ok(200));
    });
    // A client that keeps its place is told after 10 s that its body is missing.
    let is_hung_up_on = posts.iter_mut().any(|post| {
        let mut answer = Vec::new();
        let _ = post.read_to_end(&mut answer);
        answer.is_empty()
    });
    assert!(is_hung_up_on, "all kept their places");
}

#[test]
fn bodies_that_never_come_leave_room_for_others() {
    bodies_leave_room(false);
}

#[test]
fn bodies_that_drip_in_leave_room_for_others() {
    bodies_leave_room(true);
}
