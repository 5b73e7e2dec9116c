//! Before transmission: greetings, options, names.

use braid_nbd::protocol::constants::*;

use crate::FLAGS;
use crate::common::{RawClient, Scratch};

#[test]
fn what_is_not_nbd_is_closed() {
    let scratch = Scratch::new();
    let mut volume = scratch.serve(crate::STACK, &[]);
    for bytes in [
        &b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"[..],
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        &[0xff; 4096],
        &[0x80, 0, 0, 0],
    ] {
        let mut raw = RawClient::connect(volume.socket()).unwrap();
        let greeting = raw.receive(18).unwrap();
        assert_eq!(&greeting[..16], b"NBDMAGICIHAVEOPT");
        raw.send(bytes).unwrap();
        raw.assert_closed();
    }
    volume.assert_serves();
}

#[test]
fn an_option_without_its_magic_is_closed() {
    let scratch = Scratch::new();
    let mut volume = scratch.serve(crate::STACK, &[]);
    let mut raw = RawClient::greeted(volume.socket(), FLAGS).unwrap();
    raw.send(&[0x42; 16]).unwrap();
    raw.assert_closed();
    volume.assert_serves();
}

#[test]
fn an_option_that_is_unknown_or_malformed_is_answered() {
    let scratch = Scratch::new();
    let mut volume = scratch.serve(crate::STACK, &["--name", "target"]);
    let mut raw = RawClient::greeted(volume.socket(), FLAGS).unwrap();
    for (option, data, answer) in [
        (0, &b""[..], NBD_REP_ERR_UNSUP),
        (4711, b"whatever this is", NBD_REP_ERR_UNSUP),
        (u32::MAX, b"", NBD_REP_ERR_UNSUP),
        (NBD_OPT_LIST, b"no data here", NBD_REP_ERR_INVALID),
        (NBD_OPT_STARTTLS, b"", NBD_REP_ERR_UNSUP),
        // A name that is longer than the option.
        (NBD_OPT_GO, &[0, 0, 1, 0, b'x', 0, 0], NBD_REP_ERR_INVALID),
        (NBD_OPT_INFO, &[0xff; 6], NBD_REP_ERR_INVALID),
        // More queries than there are bytes.
        (NBD_OPT_SET_META_CONTEXT, &[0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff], NBD_REP_ERR_INVALID),
        (NBD_OPT_GO, &[0, 0, 0, 4, b'n', b'o', b'n', b'e', 0, 0], NBD_REP_ERR_UNKNOWN),
    ] {
        let (reply, _) = raw.option(option, data).unwrap();
        assert_eq!(reply, answer, "option {option} with {data:?}");
    }
    // And the connection goes on.
    let (reply, data) = raw.option(NBD_OPT_LIST, b"").unwrap();
    assert_eq!((reply, &data[4..]), (NBD_REP_SERVER, &b"target"[..]));
    assert_eq!(raw.option_reply(NBD_OPT_LIST).unwrap().0, NBD_REP_ACK);
    assert_eq!(raw.option(NBD_OPT_ABORT, b"").unwrap().0, NBD_REP_ACK);
    raw.assert_closed();
    volume.assert_serves();
}

#[test]
fn an_option_that_is_too_long_is_skipped_until_it_is_too_much() {
    let scratch = Scratch::new();
    let mut volume = scratch.serve(crate::STACK, &[]);
    let mut raw = RawClient::greeted(volume.socket(), FLAGS).unwrap();
    let (reply, _) = raw.option(4711, &vec![7; 100 << 10]).unwrap();
    assert_eq!(reply, NBD_REP_ERR_TOO_BIG);
    assert_eq!(raw.option(NBD_OPT_STRUCTURED_REPLY, b"").unwrap().0, NBD_REP_ACK);
    // A gigabyte is not waited for.
    let mut option = NBD_OPTS_MAGIC.to_be_bytes().to_vec();
    option.extend(4711_u32.to_be_bytes());
    option.extend((1_u32 << 30).to_be_bytes());
    raw.send(&option).unwrap();
    raw.assert_closed();
    volume.assert_serves();
}

#[test]
fn a_client_that_never_comes_to_the_point_is_closed() {
    let scratch = Scratch::new();
    let mut volume = scratch.serve(crate::STACK, &[]);
    let mut raw = RawClient::greeted(volume.socket(), FLAGS).unwrap();
    let mut answered = 0;
    while raw.option(4711, b"").is_ok() {
        answered += 1;
        assert!(answered < 100_000, "it goes on for ever");
    }
    volume.assert_serves();
}

#[test]
fn a_name_that_is_not_served_is_closed_where_it_cannot_be_answered() {
    let scratch = Scratch::new();
    let mut volume = scratch.serve(crate::STACK, &[]);
    for name in [&b"none"[..], &[0xff; 64], &[b'x'; 5000]] {
        // The old way to ask has no way to say no.
        let mut raw = RawClient::greeted(volume.socket(), FLAGS).unwrap();
        let mut option = NBD_OPTS_MAGIC.to_be_bytes().to_vec();
        option.extend(NBD_OPT_EXPORT_NAME.to_be_bytes());
        option.extend((name.len() as u32).to_be_bytes());
        option.extend(name);
        raw.send(&option).unwrap();
        raw.assert_closed();
    }
    volume.assert_serves();
}
