//! In transmission: requests that are wrong, half there, or never ended.

use std::io::Read;

use braid_nbd::protocol::constants::*;
use braid_nbd::protocol::{Command, NbdErrno, ReplyStyle};

use crate::common::{Client, Random, Scratch, pattern};
use crate::{SIZE, STACK, header};

/// Sends raw bytes and reads the simple reply: its error and cookie.
fn simple_reply(client: &mut Client, bytes: &[u8]) -> (u32, u64) {
    client.raw.send(bytes).unwrap();
    let reply = client.raw.receive(16).unwrap();
    assert_eq!(reply[..4], NBD_SIMPLE_REPLY_MAGIC.to_be_bytes());
    let errno = u32::from_be_bytes(reply[4..8].try_into().unwrap());
    (errno, u64::from_be_bytes(reply[8..].try_into().unwrap()))
}

#[test]
fn a_wrong_request_is_answered_and_the_connection_goes_on() {
    let scratch = Scratch::new();
    let mut volume = scratch.serve(STACK, &[]);
    let mut client = Client::connect_as(volume.socket(), ReplyStyle::Simple).unwrap();
    let (inval, no_space) = (NbdErrno::Inval.to_wire(), NbdErrno::NoSpc.to_wire());
    let cases = [
        ("unknown command", header(0, 77, 1, 0, 512), 0, inval),
        ("unknown flag", header(1 << 15, NBD_CMD_READ, 2, 0, 512), 0, inval),
        (
            "a flag of another command",
            header(NBD_CMD_FLAG_NO_HOLE, NBD_CMD_READ, 3, 0, 512),
            0,
            inval,
        ),
        ("no length", header(0, NBD_CMD_READ, 4, 0, 0), 0, inval),
        ("a byte over the end", header(0, NBD_CMD_READ, 5, SIZE - 511, 512), 0, inval),
        ("the byte behind the end", header(0, NBD_CMD_READ, 6, SIZE, 1), 0, inval),
        ("read at the end", header(0, NBD_CMD_READ, 7, SIZE, 512), 0, inval),
        ("read over the end", header(0, NBD_CMD_READ, 8, SIZE - 512, 1024), 0, inval),
        ("an end beyond 2^64", header(0, NBD_CMD_READ, 9, u64::MAX - 511, 512), 0, inval),
        ("too long a read", header(0, NBD_CMD_READ, 10, 0, (48 << 20) + 512), 0, inval),
        ("write over the end", header(0, NBD_CMD_WRITE, 11, SIZE - 512, 1024), 1024, no_space),
        ("write far beyond", header(0, NBD_CMD_WRITE, 12, 1 << 60, 512), 512, no_space),
        ("a byte beyond", header(0, NBD_CMD_WRITE, 13, SIZE - 511, 512), 512, no_space),
        ("odd write at the end", header(0, NBD_CMD_WRITE, 14, SIZE, 3), 3, no_space),
        ("trim over the end", header(0, NBD_CMD_TRIM, 15, SIZE - 512, 1024), 0, inval),
        ("zeroes over the end", header(0, NBD_CMD_WRITE_ZEROES, 16, SIZE, 512), 0, no_space),
        ("flush of a range", header(0, NBD_CMD_FLUSH, 17, 512, 512), 0, inval),
        ("status without context", header(0, NBD_CMD_BLOCK_STATUS, 18, 0, 512), 0, inval),
        ("cache over the end", header(0, NBD_CMD_CACHE, 19, SIZE, 512), 0, inval),
    ];
    for (index, (what, mut bytes, payload, errno)) in cases.into_iter().enumerate() {
        // A payload must be read over: these bytes would be no request.
        bytes.extend(vec![0xee; payload]);
        assert_eq!(simple_reply(&mut client, &bytes), (errno, index as u64 + 1), "{what}");
    }
    assert_eq!(client.read(0, 4096).unwrap(), [0; 4096], "nothing was written");
    volume.assert_serves();
}

#[test]
fn a_wrong_request_among_right_ones_harms_no_other() {
    let scratch = Scratch::new();
    let volume = scratch.serve(STACK, &[]);
    let mut client = volume.client();
    let bytes = pattern(1, 0, 64 << 10);
    let mut expected = Vec::new();
    for index in 0..60 {
        let offset = index * (64 << 10);
        let command = Command::Write { offset, length: 64 << 10, fua: false };
        expected.push((client.send(command, &bytes).unwrap(), true));
        let wrong = Command::Write { offset: SIZE, length: 512, fua: false };
        expected.push((client.send(wrong, &[0xee; 512]).unwrap(), false));
    }
    let mut answers: Vec<(u64, bool)> = Vec::new();
    while client.unanswered() > 0 {
        let (cookie, answer) = client.receive().unwrap();
        answers.push((cookie, answer.is_ok()));
    }
    answers.sort_unstable();
    assert_eq!(answers, expected);
    assert!(client.read(59 * (64 << 10), 64 << 10).unwrap() == bytes);
}

#[test]
fn no_magic_where_a_request_should_be_is_closed() {
    let scratch = Scratch::new();
    let mut volume = scratch.serve(STACK, &[]);
    let extended = NBD_EXTENDED_REQUEST_MAGIC.to_be_bytes();
    for magic in [[0; 4], [0xff; 4], extended, NBD_SIMPLE_REPLY_MAGIC.to_be_bytes()] {
        let mut client = volume.client();
        // What came before is answered.
        let read = Command::Read { offset: 0, length: 512, dont_fragment: false };
        client.send(read, &[]).unwrap();
        let mut bytes = header(0, NBD_CMD_READ, 2, 0, 512);
        bytes[..4].copy_from_slice(&magic);
        client.raw.send(&bytes).unwrap();
        assert!(client.receive().unwrap().1.is_ok());
        client.raw.assert_closed();
    }
    assert!(volume.errors().contains("where a request should start"), "{}", volume.errors());
    volume.assert_serves();
}

#[test]
fn a_payload_beyond_all_bounds_is_closed() {
    let scratch = Scratch::new();
    let mut volume = scratch.serve(STACK, &[]);
    for length in [(64 << 20) + 512, u32::MAX - 511, u32::MAX] {
        let mut client = Client::connect_as(volume.socket(), ReplyStyle::Simple).unwrap();
        let bytes = header(0, NBD_CMD_WRITE, 9, 0, length);
        assert_eq!(simple_reply(&mut client, &bytes), (NbdErrno::NoSpc.to_wire(), 9));
        client.raw.assert_closed();
    }
    // The longest that is allowed, is allowed. A longer one of a client that heeds no maximum is refused, and harms
    // nothing else.
    let mut client = volume.client();
    let longest = vec![0xee; 64 << 20];
    let command = Command::Write { offset: 0, length: 64 << 20, fua: false };
    assert_eq!(client.refusal(command, &longest), NbdErrno::Inval);
    let bytes = pattern(2, 0, 48 << 20);
    client.write(0, &bytes, false).unwrap();
    assert!(client.read(0, 48 << 20).unwrap() == bytes);
    volume.assert_serves();
}

#[test]
fn a_refused_payload_is_answered_when_it_has_come() {
    let scratch = Scratch::new();
    let mut volume = scratch.serve(STACK, &[]);
    let mut client = Client::connect_as(volume.socket(), ReplyStyle::Simple).unwrap();
    let no_space = NbdErrno::NoSpc.to_wire();
    let mut bytes = header(0, NBD_CMD_WRITE, 1, SIZE, 1 << 20);
    bytes.extend(vec![0xee; (1 << 20) - 1]);
    client.raw.send(&bytes).unwrap();
    // libnbd ends the connection if it is answered before it has sent all: a request behind this one is not read yet.
    client.raw.stream.set_nonblocking(true).unwrap();
    let mut other = Client::connect_patiently(volume.socket());
    other.flush().expect("another client is served");
    assert!(client.raw.receive(1).is_err(), "nothing is answered yet");
    client.raw.stream.set_nonblocking(false).unwrap();
    assert_eq!(simple_reply(&mut client, &[0xee]), (no_space, 1));
    assert_eq!(client.read(0, 512).unwrap(), [0; 512]);
    volume.assert_serves();
}

#[test]
fn requests_without_payload_may_be_as_long_as_their_field() {
    let scratch = Scratch::new();
    let large = 6 << 30;
    scratch.sparse("a.img", large);
    let volume = scratch.serve("./a.img", &["--shards", "1"]);
    for style in [ReplyStyle::Structured, ReplyStyle::Extended] {
        let mut client = Client::connect_as(volume.socket(), style).unwrap();
        client.write(4096, &[0x5a; 4096], false).unwrap();
        let lengths = [u64::from(u32::MAX), u64::from(u32::MAX) - 511, large];
        let is_long = style == ReplyStyle::Extended;
        for length in lengths.into_iter().filter(|length| is_long || *length <= u32::MAX.into()) {
            let (offset, fua, no_hole, fast_zero) = (0, true, false, false);
            let commands = [
                Command::Cache { offset, length },
                Command::BlockStatus { offset, length, one_extent: false },
                Command::Trim { offset, length, fua },
                Command::WriteZeroes { offset, length, fua, no_hole, fast_zero },
            ];
            for command in commands {
                client.send(command, &[]).unwrap();
                let (_, answer) = client.receive().unwrap();
                assert!(answer.is_ok(), "{command:?}: {answer:?}");
            }
        }
        assert_eq!(client.read(4096, 4096).unwrap(), [0; 4096]);
    }
}

#[test]
fn what_is_read_only_stays_as_it_is() {
    let scratch = Scratch::new();
    scratch.file("a.img", 1 << 20, 3);
    let before = scratch.read("a.img");
    let mut volume = scratch.serve("./a.img", &["--read-only"]);
    let mut client = volume.client();
    assert!(client.is_read_only());
    let (offset, length) = (0, 4096);
    for (command, payload) in [
        (Command::Write { offset, length: 4096, fua: true }, &[0xee; 4096][..]),
        (
            Command::WriteZeroes { offset, length, fua: false, no_hole: false, fast_zero: false },
            &[],
        ),
        (Command::Trim { offset, length, fua: false }, &[]),
    ] {
        assert_eq!(client.refusal(command, payload), NbdErrno::Perm, "{command:?}");
    }
    assert!(client.read(0, 1 << 20).unwrap() == before);
    volume.assert_serves();
    drop(volume);
    assert!(scratch.read("a.img") == before, "no byte was changed");
}

/// Sessions that are right, to be cut short: the bytes of a client, from its first to its last.
fn whole_session() -> Vec<u8> {
    let mut bytes = crate::FLAGS.to_be_bytes().to_vec();
    for (option, data) in [(NBD_OPT_STRUCTURED_REPLY, &[][..]), (NBD_OPT_GO, &[0; 6])] {
        bytes.extend(NBD_OPTS_MAGIC.to_be_bytes());
        bytes.extend(option.to_be_bytes());
        bytes.extend((data.len() as u32).to_be_bytes());
        bytes.extend(data);
    }
    for index in 0..8 {
        bytes.extend(header(0, NBD_CMD_WRITE, index, index * 8192, 8192));
        bytes.extend(pattern(4, 0, 8192));
        bytes.extend(header(0, NBD_CMD_READ, 100 + index, index * 8192, 65536));
        bytes.extend(header(0, NBD_CMD_FLUSH, 200 + index, 0, 0));
    }
    bytes.extend(header(0, NBD_CMD_DISC, 300, 0, 0));
    bytes
}

#[test]
fn a_client_may_leave_at_any_byte() {
    for driver in crate::common::drivers() {
        let scratch = Scratch::new();
        scratch.sparse("a.img", 8 << 20);
        let mut volume = scratch.serve("raid0(./a.img)", &["--io", driver]);
        let session = whole_session();
        let mut random = Random::new(1);
        // Every byte of the handshake, then here and there.
        for round in 0..280 {
            let anywhere = random.below(session.len() as u64) as usize;
            let cut = if round < 80 { round } else { anywhere };
            let mut raw = crate::common::RawClient::connect(volume.socket()).unwrap();
            raw.send(&session[..cut]).unwrap();
            match random.below(3) {
                // Gone, with answers under way.
                0 => {}
                // It reads a little first.
                1 => drop(raw.receive(18)),
                // It says that it sends no more, and reads to the end.
                _ => {
                    raw.stream.shutdown(std::net::Shutdown::Write).unwrap();
                    raw.assert_closed();
                }
            }
        }
        volume.assert_serves();
    }
}

#[test]
fn random_bytes_do_no_harm() {
    for driver in crate::common::drivers() {
        let scratch = Scratch::new();
        let mut volume = scratch.serve(STACK, &["--io", driver]);
        let session = whole_session();
        for seed in 0..150 {
            let mut random = Random::new(seed);
            let mut bytes = session.clone();
            match random.below(3) {
                // Noise from the start, or from some point on.
                0 => bytes = pattern(seed, 0, 1 + random.below(70_000)),
                1 => {
                    let start = random.below(bytes.len() as u64) as usize;
                    let noise = pattern(seed, 0, bytes.len() as u64);
                    bytes[start..].copy_from_slice(&noise[start..]);
                }
                // Some bits of a session that is right; most often in its first 200 bytes.
                _ => {
                    for _ in 0..1 + random.below(8) {
                        let limit = if random.below(4) == 0 { bytes.len() } else { 200 };
                        bytes[random.below(limit as u64) as usize] ^= 1 << random.below(8);
                    }
                }
            }
            let mut raw = crate::common::RawClient::connect(volume.socket()).unwrap();
            // The server may close before it has read all.
            let _ = raw.send(&bytes);
            let _ = raw.stream.shutdown(std::net::Shutdown::Write);
            let mut rest = Vec::new();
            let _ = raw.stream.read_to_end(&mut rest);
        }
        volume.assert_serves();
    }
}
