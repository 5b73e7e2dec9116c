//! The client's codec: its handshake to the byte and against our server, its
//! reading of replies, and what it refuses to believe.

use braid_nbd::client::{
    Body, ClientConfig, ClientError, ClientHandshake, ClientNegotiated, ClientStep, ParsedReply,
    ReplyError, encode_request, parse_reply,
};
use braid_nbd::fuzz::sample_exports;
use braid_nbd::handshake::{Handshake, Policy, StartTls, Step};
use braid_nbd::protocol::{
    BlockSize, Command, Extent, HeaderMode, NbdErrno, Negotiated, ReplyStyle,
};

use crate::{bytes, option, option_reply};

const GREETING: &[u8] = b"NBDMAGICIHAVEOPT\x00\x03";
const ACK: [u8; 4] = [0, 0, 0, 1];

fn config(export: &str, style: ReplyStyle) -> ClientConfig {
    ClientConfig { export: export.to_owned(), style, base_allocation: true }
}

/// Both ends talk until one stops; each side's last word.
fn converse(client: ClientConfig, policy: Policy) -> (ClientStep, Step) {
    let mut server = Handshake::new(sample_exports(), policy);
    let mut client = ClientHandshake::new(client);
    let (mut to_client, mut to_server) = (server.greeting().to_vec(), Vec::new());
    loop {
        let mut out = Vec::new();
        let heard = client.advance(&to_client, &mut out);
        to_client.drain(..heard.consumed);
        to_server.append(&mut out);
        let answered = server.advance(&to_server, &mut out);
        to_server.drain(..answered.consumed);
        to_client.append(&mut out);
        let server_ended = !matches!(answered.step, Step::NeedMore { .. });
        if server_ended && (to_client.is_empty() || matches!(heard.step, ClientStep::Fatal(_))) {
            return (heard.step, answered.step);
        }
    }
}

fn agree(client: ClientConfig, policy: Policy) -> (ClientNegotiated, Negotiated) {
    match converse(client, policy) {
        (ClientStep::Transmission(client), Step::Transmission(server)) => (client, server),
        other => panic!("no transmission: {other:?}"),
    }
}

#[test]
fn handshake_to_the_byte() {
    let mut client = ClientHandshake::new(config("v0", ReplyStyle::Extended));
    let mut say = |input: &[u8]| {
        let mut out = Vec::new();
        let progress = client.advance(input, &mut out);
        assert_eq!(progress.consumed, input.len());
        (out, progress.step)
    };
    let (out, _) = say(GREETING);
    assert_eq!(out, bytes(&[&[0, 0, 0, 3], &option(11, &[])]));
    let (out, _) = say(&option_reply(11, [0x80, 0, 0, 1], b"what?"));
    assert_eq!(out, option(8, &[]));
    let (out, _) = say(&option_reply(8, ACK, &[]));
    let data = b"\x00\x00\x00\x02v0\x00\x00\x00\x01\x00\x00\x00\x0fbase:allocation";
    assert_eq!(out, option(10, data));
    let context = option_reply(10, [0, 0, 0, 4], b"\x00\x00\x00\x2abase:allocation");
    let (out, _) = say(&[context, option_reply(10, ACK, &[])].concat());
    assert_eq!(out, option(7, b"\x00\x00\x00\x02v0\x00\x01\x00\x03"));
    let export = [0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0x85];
    let sizes = [0, 3, 0, 0, 0, 1, 0, 0, 0x10, 0, 0xff, 0xff, 0xff, 0xff];
    let infos = [export.as_slice(), &sizes, b"\x00\x01name", b"\x12\x34?"];
    let mut input: Vec<u8> =
        infos.iter().flat_map(|info| option_reply(7, [0, 0, 0, 3], info)).collect();
    input.extend(option_reply(7, ACK, &[]));
    let (out, step) = say(&input);
    assert!(out.is_empty());
    let expected = ClientNegotiated {
        size_bytes: 512,
        transmission_flags: 0x85,
        style: ReplyStyle::Structured,
        base_allocation: Some(42),
        block_size: Some(BlockSize { minimum: 1, preferred: 4096, maximum_payload: u32::MAX }),
    };
    assert_eq!(step, ClientStep::Transmission(expected));
}

#[test]
fn both_ends_agree_in_every_style() {
    for wanted in [ReplyStyle::Simple, ReplyStyle::Structured, ReplyStyle::Extended] {
        for (structured, extended) in [(true, true), (true, false), (false, true), (false, false)] {
            let policy = Policy { structured, extended, ..Policy::default() };
            let (client, server) = agree(config("v0", wanted), policy);
            let got = match wanted {
                ReplyStyle::Extended if extended => ReplyStyle::Extended,
                ReplyStyle::Extended | ReplyStyle::Structured if structured => {
                    ReplyStyle::Structured
                }
                _ => ReplyStyle::Simple,
            };
            assert_eq!((client.style, server.style), (got, got));
            assert_eq!(client.transmission_flags, server.transmission_flags);
            assert_eq!(client.base_allocation, server.base_allocation);
            assert_eq!(client.base_allocation.is_some(), got.is_chunked());
            assert_eq!(client.size_bytes, 1 << 30);
            assert_eq!(client.block_size, Some(BlockSize::default()));
            assert!(server.block_size_promised);
        }
    }
}

#[test]
fn tls_comes_before_every_option_and_not_without_the_server() {
    let said = |greeting: &[u8], answer: &[u8]| {
        let (mut client, mut out) = (ClientHandshake::starting_tls(), Vec::new());
        let progress = client.advance(&[greeting, answer].concat(), &mut out);
        (out, progress.step)
    };
    let asked = bytes(&[&[0, 0, 0, 1], &option(5, &[])]);
    let acknowledged = option_reply(5, ACK, &[]);
    assert_eq!(said(GREETING, &acknowledged), (asked.clone(), ClientStep::StartTls));
    // Options of the server's before TLS are not looked at: they may come of an attacker on the way.
    let more = [&acknowledged[..], &option_reply(7, ACK, &[])].concat();
    assert_eq!(said(GREETING, &more), (asked.clone(), ClientStep::StartTls));
    let ended = [&asked[..], &option(2, &[])].concat();
    for refusal in [[0x80, 0, 0, 1], [0x80, 0, 0, 2]] {
        let step = ClientStep::Fatal(ClientError::NoTls);
        assert_eq!(said(GREETING, &option_reply(5, refusal, b"no")), (ended.clone(), step));
    }
    let (out, step) = said(b"NBDMAGICIHAVEOPT\x00\x02", &[]);
    assert_eq!(step, ClientStep::Fatal(ClientError::NoTls));
    assert_eq!(out[..4], [0; 4], "no flag that was not offered");
}

#[test]
fn inside_tls_the_client_speaks_first() {
    let policy = Policy { starttls: StartTls::Required, ..Policy::default() };
    let (mut client, mut server) =
        (ClientHandshake::starting_tls(), Handshake::new(sample_exports(), policy));
    let (mut to_client, mut to_server) = (server.greeting().to_vec(), Vec::new());
    while client.advance(&to_client, &mut to_server).step != ClientStep::StartTls {
        to_client.clear();
        server.advance(&to_server, &mut to_client);
        to_server.clear();
    }
    let mut server = server.secured(sample_exports(), policy);
    let mut client = ClientHandshake::secured(config("v0", ReplyStyle::Extended));
    let (mut to_client, mut to_server) = (Vec::new(), Vec::new());
    loop {
        let heard = client.advance(&to_client, &mut to_server);
        to_client.drain(..heard.consumed);
        if let ClientStep::Transmission(agreed) = heard.step {
            assert_eq!((agreed.style, agreed.size_bytes), (ReplyStyle::Extended, 1 << 30));
            return;
        }
        assert!(!to_server.is_empty(), "{:?}", heard.step);
        let answered = server.advance(&to_server, &mut to_client);
        to_server.drain(..answered.consumed);
    }
}

#[test]
fn refused_export_ends_softly_on_both_sides() {
    let (client, server) = converse(config("nope", ReplyStyle::Simple), Policy::default());
    let refused = ClientError::Refused {
        option: 7,
        reply_type: 0x8000_0006,
        message: "no such export".to_owned(),
    };
    assert_eq!((client, server), (ClientStep::Fatal(refused), Step::Aborted));
}

#[test]
fn a_server_without_go_gets_export_name() {
    for (zeroes, greeting) in
        [(124, *b"NBDMAGICIHAVEOPT\x00\x01"), (0, *b"NBDMAGICIHAVEOPT\x00\x03")]
    {
        let mut client = ClientHandshake::new(config("v", ReplyStyle::Simple));
        let mut out = Vec::new();
        client.advance(&greeting, &mut out);
        out.clear();
        client.advance(&option_reply(7, [0x80, 0, 0, 1], &[]), &mut out);
        assert_eq!(out, option(1, b"v"));
        let reply = bytes(&[&[0, 0, 0, 0, 0, 0, 2, 0, 0, 1], &[0; 124][..zeroes]]);
        let progress = client.advance(&reply, &mut out);
        assert_eq!(progress.consumed, reply.len());
        assert!(matches!(progress.step, ClientStep::Transmission(n) if n.size_bytes == 512));
    }
    // Not even fixed newstyle: nothing else may be asked.
    let mut client = ClientHandshake::new(config("v", ReplyStyle::Extended));
    let mut out = Vec::new();
    client.advance(b"NBDMAGICIHAVEOPT\x00\x00", &mut out);
    assert_eq!(out, bytes(&[&[0; 4], &option(1, b"v")]));
}

#[test]
fn a_server_that_breaks_the_protocol_is_left() {
    let breach = |input: &[u8]| {
        let mut client = ClientHandshake::new(config("v", ReplyStyle::Simple));
        let input = bytes(&[GREETING, input]);
        match client.advance(&input, &mut Vec::new()).step {
            ClientStep::Fatal(error) => error,
            other => panic!("{other:?}"),
        }
    };
    let info = |data: &[u8]| option_reply(7, [0, 0, 0, 3], data);
    assert_eq!(breach(&[0; 20]), ClientError::BadReplyMagic { magic: 0 });
    let (option, expected) = (3, 7);
    assert_eq!(breach(&option_reply(3, ACK, &[])), ClientError::WrongOption { option, expected });
    assert_eq!(breach(&option_reply(7, ACK, &[])), ClientError::NoExportInfo);
    let (option, reply_type) = (7, 2);
    let error = ClientError::UnexpectedReply { option, reply_type };
    assert_eq!(breach(&option_reply(7, [0, 0, 0, 2], &[])), error);
    assert_eq!(breach(&info(&[0])), ClientError::BadReplyLength { length: 1 });
    assert_eq!(breach(&info(&[0; 11])), ClientError::BadReplyLength { length: 11 });
    let error = breach(&info(&[0, 3, 0, 0, 0, 3, 0, 0, 16, 0, 0, 0, 16, 0]));
    assert!(matches!(error, ClientError::BadBlockSize(sizes) if sizes.minimum == 3));
    let error = breach(&bytes(&[crate::REP, &[0, 0, 0, 7], &ACK, &[1, 0, 0, 0]]));
    assert_eq!(error, ClientError::ReplyTooLong { length: 1 << 24 });
    assert_eq!(breach(&info(&[9, 9]).repeat(1025)), ClientError::TooManyReplies);

    let mut client = ClientHandshake::new(config("v", ReplyStyle::Simple));
    let step =
        client.advance(b"NBDMAGIC\x00\x00\x42\x02\x81\x86\x12\x53\0\0", &mut Vec::new()).step;
    assert!(matches!(step, ClientStep::Fatal(ClientError::BadGreeting { .. })));
}

#[test]
fn a_compact_header_has_no_room_for_long_lengths() {
    let trim = Command::Trim { offset: 0, length: 1 << 32, fua: false };
    assert_eq!(encode_request(HeaderMode::Simple, 1, &trim), None);
    assert!(encode_request(HeaderMode::Extended, 1, &trim).is_some());
}

fn chunk(done: u8, kind: [u8; 2], payload: &[u8]) -> Vec<u8> {
    let head = [0x66, 0x8e, 0x33, 0xef, 0, done];
    let length = (payload.len() as u32).to_be_bytes();
    bytes(&[&head, &kind, &[0; 8], &length, payload])
}

#[test]
fn broken_replies_are_fatal() {
    let (kind, length) = (0, 1);
    for (message, error) in [
        (vec![1, 2, 3, 4], ReplyError::BadMagic { magic: 0x0102_0304 }),
        (chunk(1, [0, 3], &[]), ReplyError::UnknownType { kind: 3 }),
        (chunk(1, [0, 0], &[0]), ReplyError::BadLength { kind, length }),
        (chunk(0, [0, 0], &[]), ReplyError::NoneNotDone),
        (chunk(1, [0, 1], &[0; 8]), ReplyError::BadLength { kind: 1, length: 8 }),
        (chunk(1, [0, 2], &[0; 12]), ReplyError::EmptyExtent),
        (chunk(1, [0, 5], &[0; 12]), ReplyError::EmptyExtent),
        (chunk(1, [0, 5], &[0; 16]), ReplyError::BadLength { kind: 5, length: 16 }),
        (chunk(1, [0x80, 1], &[0; 6]), ReplyError::ErrorWithoutErrno),
        (
            chunk(1, [0x80, 1], &[0, 0, 0, 5, 0, 1]),
            ReplyError::BadLength { kind: 0x8001, length: 6 },
        ),
        (
            chunk(1, [0x80, 2], &[0, 0, 0, 5, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]),
            ReplyError::BadLength { kind: 0x8002, length: 14 },
        ),
    ] {
        assert_eq!(parse_reply(ReplyStyle::Structured, &message), ParsedReply::Fatal(error));
    }
    // A simple reply where everything is extended; a chunk where nothing is.
    let simple = [0x67, 0x44, 0x66, 0x98];
    let error = ReplyError::BadMagic { magic: 0x6744_6698 };
    assert_eq!(parse_reply(ReplyStyle::Extended, &simple), ParsedReply::Fatal(error));
    let error = ReplyError::BadMagic { magic: 0x668e_33ef };
    let message = chunk(1, [0, 0], &[]);
    assert_eq!(parse_reply(ReplyStyle::Simple, &message), ParsedReply::Fatal(error));
}

#[test]
fn broken_extended_replies_are_fatal() {
    let chunk = |kind: [u8; 2], payload: &[u8]| {
        let length = (payload.len() as u64).to_be_bytes();
        bytes(&[&[0x6e, 0x8a, 0x27, 0x8c, 0, 1], &kind, &[0; 16], &length, payload])
    };
    let extent = [0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 3];
    let status = |count: u8, extra: &[u8]| {
        chunk([0, 6], &bytes(&[&[0, 0, 0, 1, 0, 0, 0, count], &extent, extra]))
    };
    for (message, error) in [
        (status(2, &[]), ReplyError::BadExtentCount { count: 2, actual: 1 }),
        (status(1, &[0; 8]), ReplyError::BadLength { kind: 6, length: 32 }),
        (chunk([0, 6], &[0; 8]), ReplyError::BadLength { kind: 6, length: 8 }),
        (chunk([0, 6], &[0; 24]), ReplyError::EmptyExtent),
    ] {
        assert_eq!(parse_reply(ReplyStyle::Extended, &message), ParsedReply::Fatal(error));
    }
    // A count of zero says nothing, and the compact form is allowed, too.
    let compact = chunk([0, 5], &[0, 0, 0, 1, 0, 0, 2, 0, 0, 0, 0, 3]);
    for message in [status(0, &[]), status(1, &[]), compact] {
        let ParsedReply::Reply { reply, .. } = parse_reply(ReplyStyle::Extended, &message) else {
            panic!("{message:x?}");
        };
        let Body::BlockStatus { context_id: 1, extents } = reply.body else {
            panic!("{message:x?}");
        };
        let extent = Extent { length: 512, status: 3 };
        assert_eq!(extents.collect::<Vec<_>>(), [extent]);
    }
    // More data than 32 bits count, in one chunk.
    let mut message = chunk([0, 1], &[]);
    message[24..].copy_from_slice(&(1_u64 << 40).to_be_bytes());
    let (kind, length) = (1, 1 << 40);
    let error = ReplyError::BadLength { kind, length };
    assert_eq!(parse_reply(ReplyStyle::Extended, &message), ParsedReply::Fatal(error));
}

#[test]
fn contexts_before_an_error_do_not_count() {
    let mut client = ClientHandshake::new(config("v", ReplyStyle::Structured));
    let input = [
        GREETING.to_vec(),
        option_reply(8, ACK, &[]),
        option_reply(10, [0, 0, 0, 4], b"\x00\x00\x00\x01base:allocation"),
        option_reply(10, [0x80, 0, 0, 9], &[]),
        option_reply(7, [0, 0, 0, 3], &[0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 1]),
        option_reply(7, ACK, &[]),
    ];
    let step = client.advance(&input.concat(), &mut Vec::new()).step;
    let ClientStep::Transmission(negotiated) = step else {
        panic!("{step:?}");
    };
    assert_eq!((negotiated.base_allocation, negotiated.block_size), (None, None));
}

#[test]
fn an_absurd_length_is_refused_before_it_is_waited_for() {
    let mut message = chunk(1, [0, 5], &[]);
    message[16..20].copy_from_slice(&0xffff_fff4_u32.to_be_bytes());
    let (kind, length) = (5, 0xffff_fff4);
    let error = ReplyError::BadLength { kind, length };
    assert_eq!(parse_reply(ReplyStyle::Structured, &message), ParsedReply::Fatal(error));
}

#[test]
fn an_unknown_error_chunk_is_an_error() {
    let message = chunk(1, [0x80, 99], b"\x00\x00\x00\x02\x00\x02no and more");
    let ParsedReply::Reply { consumed, reply } = parse_reply(ReplyStyle::Structured, &message)
    else {
        panic!("a reply");
    };
    assert_eq!(consumed, message.len());
    let body = Body::Error { errno: NbdErrno::Inval, message: b"no", offset: None };
    assert_eq!((reply.body, reply.done), (body, true));
}
