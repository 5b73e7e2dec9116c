//! Many clients at once: those that say half of something and fall silent, those that never read
//! what they asked for, and more than there is room for.

use std::os::unix::net::UnixStream;
use std::time::Duration;

use braid_nbd::protocol::constants::*;

use crate::common::{Client, KIB, MIB, RawClient, Scratch, Volume, drivers};
use crate::{STACK, header};

/// Memory with which one shard has places for 256 connections: 44 MiB for requests, a quarter of the rest for connections
/// of 48 KiB beyond the first 16.
const FOR_256: &str = "91904K";

/// Memory of the volume's process, in bytes.
fn resident_bytes(volume: &Volume) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", volume.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("a process has it");
    let kib = line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok());
    kib.expect("a number of KiB") * KIB
}

/// A client that has sent `bytes` and does nothing more while it lives.
fn silent(volume: &Volume, bytes: &[u8]) -> Client {
    let mut client = Client::connect_patiently(volume.socket());
    client.raw.send(bytes).expect("a few bytes find room");
    client
}

#[test]
fn half_a_handshake_holds_nobody_up() {
    for driver in drivers() {
        let scratch = Scratch::new();
        let mut volume = scratch.serve(STACK, &["--io", driver]);
        let mut silent = Vec::new();
        for bytes in [&[][..], &[0], &[0, 0, 0, 3], &[0, 0, 0, 3, b'I', b'H', b'A']] {
            for _ in 0..20 {
                let mut raw = RawClient::connect(volume.socket()).unwrap();
                raw.send(bytes).unwrap();
                silent.push(raw);
            }
        }
        volume.assert_serves();
    }
}

#[test]
fn half_a_request_holds_nobody_up() {
    for driver in drivers() {
        let scratch = Scratch::new();
        let mut volume = scratch.serve(STACK, &["--io", driver]);
        let whole = header(0, NBD_CMD_WRITE, 1, 0, 64 << 10);
        let mut half_payload = whole.clone();
        half_payload.extend([0xee; 5000]);
        let mut crowd = Vec::new();
        for bytes in [&whole[..1], &whole[..27], &whole, &half_payload] {
            for _ in 0..50 {
                crowd.push(silent(&volume, bytes));
            }
            volume.assert_serves();
        }
        // What was not whole was not written.
        drop(crowd);
        assert_eq!(Client::connect_patiently(volume.socket()).read(0, 4096).unwrap(), [0; 4096]);
    }
}

/// Checks that another client is served before the server gives the stalled ones up.
fn assert_serves_soon(volume: &Volume) {
    let mut client = Client::connect_patiently(volume.socket());
    client.raw.stream.set_read_timeout(Some(Duration::from_secs(15))).unwrap();
    client.read(0, 64 << 10).expect("a read is answered, though others stall");
}

#[test]
fn payloads_that_never_come_do_not_take_all_memory() {
    let scratch = Scratch::new();
    let volume = scratch.serve(STACK, &["--shards", "1"]);
    // Each may be promised; all together they are far more than the server has.
    let longest = header(0, NBD_CMD_WRITE, 1, 0, 48 << 20);
    let _crowd: Vec<Client> = (0..16).map(|_| silent(&volume, &longest)).collect();
    assert_serves_soon(&volume);
}

#[test]
fn small_replies_that_are_never_read_hold_nobody_up() {
    for driver in drivers() {
        let scratch = Scratch::new();
        let mut volume = scratch.serve(STACK, &["--io", driver, "--shards", "1"]);
        let reads: Vec<u8> =
            (0..200).flat_map(|index| header(0, NBD_CMD_READ, index, 0, 64 << 10)).collect();
        let crowd: Vec<Client> = (0..10).map(|_| silent(&volume, &reads)).collect();
        assert_serves_soon(&volume);
        drop(crowd);
        volume.assert_serves();
    }
}

#[test]
fn replies_that_are_never_read_do_not_take_all_memory() {
    // Memory answers at once, a file later: by then all its requests have their memory.
    for (driver, stack) in
        drivers().into_iter().flat_map(|driver| [(driver, STACK), (driver, "./a.img")])
    {
        println!("{driver}, {stack}");
        let scratch = Scratch::new();
        scratch.sparse("a.img", 64 * MIB);
        let mut volume = scratch.serve(stack, &["--io", driver, "--shards", "1"]);
        volume.assert_serves();
        let before = resident_bytes(&volume);
        let reads = |length: u32| -> Vec<u8> {
            (0..100).flat_map(|index| header(0, NBD_CMD_READ, index, 0, length)).collect()
        };
        let mut crowd: Vec<Client> = (0..20).map(|_| silent(&volume, &reads(1 << 20))).collect();
        crowd.extend((0..4).map(|_| silent(&volume, &reads(32 << 20))));
        assert_serves_soon(&volume);
        let grown = resident_bytes(&volume).saturating_sub(before);
        assert!(grown < 400 * MIB, "{} MiB more for clients that do not read", grown / MIB);
        drop(crowd);
        volume.assert_serves();
    }
}

#[test]
fn a_client_that_neither_reads_nor_ends_is_stopped_reading() {
    let scratch = Scratch::new();
    let mut volume = scratch.serve(STACK, &[]);
    let mut client = volume.client();
    client.raw.stream.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
    // Replies are longer than requests: at last neither fits in any buffer.
    let reads: Vec<u8> =
        (0..1000).flat_map(|index| header(0, NBD_CMD_READ, index, 0, 4096)).collect();
    let rounds = (0..1000).take_while(|_| client.raw.send(&reads).is_ok()).count();
    assert!(rounds < 1000, "28 MB of requests were taken, and none of 4 GB of replies was read");
    volume.assert_serves();
}

#[test]
fn ten_thousand_connections() {
    for driver in drivers() {
        let scratch = Scratch::new();
        let mut volume = scratch.serve(STACK, &["--io", driver]);
        let mut working = Client::connect_patiently(volume.socket());
        for batch in 0..25 {
            // As many as fit below the usual limit of 1024 descriptors.
            let crowd: Vec<UnixStream> = (0..400)
                .map(|_| UnixStream::connect(volume.socket()).expect("the server accepts"))
                .collect();
            // The first client is still served.
            working.read(0, 4096).expect("a read is answered");
            if batch % 5 == 0 {
                drop(crowd);
                volume.assert_serves();
            }
        }
        volume.assert_serves();
        working.flush().expect("a flush is answered");
    }
}

#[test]
fn connections_that_say_nothing_make_room() {
    for driver in drivers() {
        let scratch = Scratch::new();
        let mut volume = scratch.serve(STACK, &["--io", driver, "--shards", "1"]);
        let mut working = volume.client();
        // Far more than there is room for, some with half a handshake; none ever goes on.
        let silent: Vec<RawClient> = (0..600)
            .map(|index| {
                let mut raw = RawClient::connect(volume.socket()).unwrap();
                if index % 3 == 0 {
                    // The oldest are closed by now.
                    let _ = raw.send(&[0, 0, 0, 3, b'I']);
                }
                raw
            })
            .collect();
        for _ in 0..20 {
            let mut client = Client::connect(volume.socket()).expect("there is room");
            client.read(0, 512).expect("a read is answered");
        }
        working.read(0, 512).expect("a client behind its handshake stays");
        drop(silent);
        volume.assert_serves();
    }
}

#[test]
fn idle_clients_make_room_and_the_log_says_so() {
    for driver in drivers() {
        let scratch = Scratch::new();
        let volume = scratch.serve(STACK, &["--io", driver, "--shards", "1", "--memory", FOR_256]);
        let mut working = volume.client();
        let idle: Vec<Client> = (0..255).map(|_| volume.client()).collect();
        working.read(0, 512).expect("a read is answered");
        // Each takes the place of one that has been idle for longer.
        for _ in 0..100 {
            volume.client().read(0, 512).expect("a read is answered");
            working.read(0, 512).expect("a client that works keeps its place");
        }
        let mut newcomers: Vec<Client> = (0..100).map(|_| volume.client()).collect();
        newcomers.iter_mut().for_each(|client| drop(client.read(0, 512).unwrap()));
        working.read(0, 512).expect("a client that works keeps its place");
        drop(idle);
        let errors = volume.errors();
        assert!(errors.contains("another one needed its place"), "{errors}");
        assert!(errors.lines().count() < 10, "{errors}");
    }
}

#[test]
fn a_client_is_told_that_there_is_no_room_where_all_work() {
    let scratch = Scratch::new();
    let volume = scratch.serve(STACK, &["--shards", "1", "--memory", FOR_256]);
    let mut admitted: Vec<Client> = (0..256).map(|_| volume.client()).collect();
    let socket = volume.socket().to_owned();
    let told = std::thread::spawn(move || {
        let mut raw = RawClient::greeted(&socket, 3).unwrap();
        raw.option(NBD_OPT_GO, &[0, 0, 0, 0, 0, 0]).unwrap()
    });
    while !told.is_finished() {
        for client in &mut admitted {
            client.read(0, 512).expect("a client that works keeps its place");
        }
    }
    let (reply, text) = told.join().unwrap();
    assert_eq!(reply, NBD_REP_ERR_POLICY);
    assert!(String::from_utf8_lossy(&text).contains("as many clients as there may be"));
}

/// An idle one takes less than the 48 KiB by which they are counted, and none is turned away while there is memory.
#[test]
fn connections_are_limited_by_memory_not_by_number() {
    let scratch = Scratch::new();
    let volume = scratch.serve(STACK, &["--shards", "1"]);
    let before = resident_bytes(&volume);
    let mut clients: Vec<Client> = (0..300).map(|_| volume.client()).collect();
    let idle = resident_bytes(&volume) - before;
    assert!(idle < 300 * 48 * KIB, "{} KiB for a connection", idle / KIB / 300);
    for client in &mut clients {
        client.read(0, 512).expect("each has its place");
    }
}

#[test]
fn bad_connections_do_not_fill_the_log() {
    let scratch = Scratch::new();
    let volume = scratch.serve(STACK, &["--shards", "1"]);
    for _ in 0..2000 {
        let mut raw = RawClient::greeted(volume.socket(), 3).unwrap();
        raw.send(&[0xff; 16]).unwrap();
        raw.assert_closed();
    }
    let lines = volume.errors().lines().count();
    assert!((1..=16).contains(&lines), "{lines} lines: {}", volume.errors());
}

#[test]
fn more_clients_than_there_is_room_for_are_counted() {
    let scratch = Scratch::new();
    let options = ["--name", "v", "--attach", "none", "--shards", "1", "--memory", FOR_256];
    let volume = scratch.up(STACK, &options);
    let mut admitted: Vec<Client> = (0..300).map(|_| volume.client()).collect();
    for client in &mut admitted[300 - 256..] {
        client.read(0, 512).expect("a client that came later has the place of an idle one");
    }
    let nbd = volume.status()["nbd"].clone();
    assert_eq!(nbd["connections"], 256);
    assert_eq!(nbd["connections_refused"], 0);
    assert_eq!(nbd["connections_accepted"], 300);
    drop(admitted);
    Client::connect_patiently(&volume.socket()).flush().unwrap();
    volume.down();
}
