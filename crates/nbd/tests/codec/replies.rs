//! Replies, to the byte, in each style.

use braid_nbd::protocol::{Extent, NbdErrno, ReplyStyle, ReplyTo};

use crate::bytes;
use ReplyStyle::{Extended, Simple, Structured};

const TO: ReplyTo = ReplyTo { cookie: u64::from_be_bytes(COOKIE), offset: 0x1000 };
const COOKIE: [u8; 8] = *b"\x01COOKIE\x02";
const AT_REQUEST: [u8; 8] = [0, 0, 0, 0, 0, 0, 0x10, 0];
const AT: [u8; 8] = [0, 0, 0, 0, 0, 0, 0x12, 0];

fn simple(error: u8) -> Vec<u8> {
    bytes(&[&[0x67, 0x44, 0x66, 0x98, 0, 0, 0, error], &COOKIE])
}

fn structured(done: u8, kind: [u8; 2], length: u8, payload: &[u8]) -> Vec<u8> {
    let head = [0x66, 0x8e, 0x33, 0xef, 0, done];
    bytes(&[&head, &kind, &COOKIE, &[0, 0, 0, length], payload])
}

fn extended(done: u8, kind: [u8; 2], length: u8, payload: &[u8]) -> Vec<u8> {
    let head = [0x6e, 0x8a, 0x27, 0x8c, 0, done];
    let length = [0, 0, 0, 0, 0, 0, 0, length];
    bytes(&[&head, &kind, &COOKIE, &AT_REQUEST, &length, payload])
}

#[test]
fn ok() {
    assert_eq!(Simple.ok(TO).as_bytes(), simple(0));
    assert_eq!(Structured.ok(TO).as_bytes(), simple(0));
    assert_eq!(Extended.ok(TO).as_bytes(), extended(1, [0, 0], 0, &[]));
}

#[test]
fn error() {
    let payload = [0, 0, 0, 28, 0, 0];
    assert_eq!(Simple.error(TO, NbdErrno::NoSpc).as_bytes(), simple(28));
    let expected = structured(1, [0x80, 1], 6, &payload);
    assert_eq!(Structured.error(TO, NbdErrno::NoSpc).as_bytes(), expected);
    let expected = extended(1, [0x80, 1], 6, &payload);
    assert_eq!(Extended.error(TO, NbdErrno::NoSpc).as_bytes(), expected);
}

#[test]
fn error_with_message() {
    let say = |style: ReplyStyle, message: &str| {
        let mut out = Vec::new();
        style.error_message(TO, NbdErrno::Io, message, &mut out);
        out
    };
    let payload = b"\x00\x00\x00\x05\x00\x03b d";
    assert_eq!(say(Simple, "b\0d"), simple(5));
    assert_eq!(say(Structured, "b\0d"), structured(1, [0x80, 1], 9, payload));
    assert_eq!(say(Extended, "b\0d"), extended(1, [0x80, 1], 9, payload));
    // 4096 bytes at most, and no half character: 4095 + 2 bytes are cut to 4095.
    let long = "x".repeat(4095) + "é";
    assert_eq!(say(Structured, &long).len(), 20 + 6 + 4095);
}

#[test]
fn error_at_an_offset() {
    let payload = bytes(&[&[0, 0, 0, 5, 0, 0], &AT]);
    let say = |style: ReplyStyle| style.error_offset(TO, NbdErrno::Io, 0x1200, false);
    assert_eq!(say(Simple).as_bytes(), simple(5));
    assert_eq!(say(Structured).as_bytes(), structured(0, [0x80, 2], 14, &payload));
    assert_eq!(say(Extended).as_bytes(), extended(0, [0x80, 2], 14, &payload));
}

#[test]
fn read_data() {
    // 128 bytes of data behind 8 of offset.
    let say = |style: ReplyStyle| style.read_data(TO, 0x1200, 128, true);
    assert_eq!(say(Simple).as_bytes(), simple(0));
    assert_eq!(say(Structured).as_bytes(), structured(1, [0, 1], 136, &AT));
    assert_eq!(say(Extended).as_bytes(), extended(1, [0, 1], 136, &AT));
}

#[test]
fn read_hole_and_done() {
    let payload = bytes(&[&AT, &[0, 1, 0, 0]]);
    let say = |style: ReplyStyle| style.read_hole(TO, 0x1200, 0x1_0000, false);
    assert_eq!(say(Simple), None);
    let header = say(Structured).unwrap();
    assert_eq!(header.as_bytes(), structured(0, [0, 2], 12, &payload));
    let header = say(Extended).unwrap();
    assert_eq!(header.as_bytes(), extended(0, [0, 2], 12, &payload));

    assert_eq!(Simple.read_done(TO).as_bytes(), simple(0));
    assert_eq!(Structured.read_done(TO).as_bytes(), structured(1, [0, 0], 0, &[]));
    assert_eq!(Extended.read_done(TO).as_bytes(), extended(1, [0, 0], 0, &[]));
}

fn status(style: ReplyStyle, length: u64, one: bool, extents: &[(u64, u32)]) -> Vec<u8> {
    let extents: Vec<Extent> =
        extents.iter().map(|&(length, status)| Extent { length, status }).collect();
    let mut out = Vec::new();
    style.block_status(TO, 1, length, one, &extents, &mut out);
    out
}

#[test]
fn block_status_compact_and_extended() {
    // Joined (the first two), skipped (the empty one), cut at 3072.
    let extents = [(512, 0), (512, 0), (0, 7), (1024, 3), (4096, 0)];
    let payload = [
        0, 0, 0, 1, //
        0, 0, 4, 0, 0, 0, 0, 0, //
        0, 0, 4, 0, 0, 0, 0, 3, //
        0, 0, 4, 0, 0, 0, 0, 0,
    ];
    let expected = structured(1, [0, 5], 28, &payload);
    assert_eq!(status(Structured, 3072, false, &extents), expected);
    let payload = [
        0, 0, 0, 1, 0, 0, 0, 3, //
        0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, //
        0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 3, //
        0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ];
    let expected = extended(1, [0, 6], 56, &payload);
    assert_eq!(status(Extended, 3072, false, &extents), expected);
}

#[test]
fn block_status_one_extent_never_exceeds_the_request() {
    let extents = [(512, 3), (512, 3), (4096, 0)];
    let expected = structured(1, [0, 5], 12, &[0, 0, 0, 1, 0, 0, 4, 0, 0, 0, 0, 3]);
    assert_eq!(status(Structured, 2048, true, &extents), expected);
    let expected = structured(1, [0, 5], 12, &[0, 0, 0, 1, 0, 0, 3, 0, 0, 0, 0, 3]);
    assert_eq!(status(Structured, 768, true, &extents), expected);
}

#[test]
fn block_status_of_the_unknown_is_one_extent_of_nothing_special() {
    let expected = structured(1, [0, 5], 12, &[0, 0, 0, 1, 0, 0, 2, 0, 0, 0, 0, 0]);
    assert_eq!(status(Structured, 512, false, &[]), expected);
    assert_eq!(status(Structured, 512, false, &[(0, 3)]), expected);
    // A style that cannot carry it says so, and nothing else.
    assert_eq!(status(Simple, 512, false, &[]), simple(22));
}
