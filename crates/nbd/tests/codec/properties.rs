//! Properties: client and server understand each other, and no bytes cause a panic.

use braid_nbd::client::{Body, ParsedReply, Reply, encode_request, parse_reply};
use braid_nbd::fuzz;
use braid_nbd::protocol::{
    Command, Extent, HeaderMode, NbdErrno, Negotiated, ParsedHeader, ReplyStyle, ReplyTo, check,
    parse,
};
use proptest::prelude::*;

use crate::{bytes, option};

fn any_style() -> impl Strategy<Value = ReplyStyle> {
    prop_oneof![Just(ReplyStyle::Simple), Just(ReplyStyle::Structured), Just(ReplyStyle::Extended)]
}

/// Commands that the sample export accepts: 1 GiB in blocks of 512.
fn any_command(style: ReplyStyle) -> impl Strategy<Value = Command> {
    let blocks = 1_u64 << 21;
    let long = (0..blocks).prop_flat_map(move |first| {
        (1..=blocks - first).prop_map(move |count| (first * 512, count * 512))
    });
    let short = (0..blocks).prop_flat_map(move |first| {
        (1..=(blocks - first).min(65_536)).prop_map(move |n| (first * 512, (n * 512) as u32))
    });
    let chunked = style.is_chunked();
    prop_oneof![
        (short.clone(), any::<bool>()).prop_map(move |((offset, length), df)| Command::Read {
            offset,
            length,
            dont_fragment: df && chunked
        }),
        (short, any::<bool>()).prop_map(|((offset, length), fua)| Command::Write {
            offset,
            length,
            fua
        }),
        Just(Command::Flush),
        Just(Command::Disconnect),
        (long.clone(), any::<bool>()).prop_map(|((offset, length), fua)| Command::Trim {
            offset,
            length,
            fua
        }),
        (long.clone(), any::<[bool; 3]>()).prop_map(|((offset, length), [fua, no_hole, fast])| {
            Command::WriteZeroes { offset, length, fua, no_hole, fast_zero: fast }
        }),
        long.clone().prop_map(|(offset, length)| Command::Cache { offset, length }),
        (long, any::<bool>()).prop_map(move |((offset, length), one_extent)| {
            if chunked {
                Command::BlockStatus { offset, length, one_extent }
            } else {
                Command::Cache { offset, length }
            }
        }),
    ]
}

fn any_errno() -> impl Strategy<Value = NbdErrno> {
    proptest::sample::select(NbdErrno::ALL.to_vec())
}

/// Option numbers and short data, shaped like a handshake so that bytes get
/// beyond the first magic.
fn any_options() -> impl Strategy<Value = Vec<u8>> {
    let strange = proptest::collection::vec(any::<u8>(), 0..40);
    let name = proptest::sample::select(vec!["", "v0", "archive", "nope"]);
    let go = (6..=7_u8, name.clone()).prop_map(|(number, name)| {
        let length = (name.len() as u32).to_be_bytes();
        option(number, &bytes(&[&length, name.as_bytes(), &[0, 1, 0, 3]]))
    });
    let meta = (9..=10_u8, name).prop_map(|(number, name)| {
        let length = (name.len() as u32).to_be_bytes();
        let query = b"\x00\x00\x00\x01\x00\x00\x00\x0fbase:allocation";
        option(number, &bytes(&[&length, name.as_bytes(), query]))
    });
    let one = prop_oneof![
        2 => (0..13_u8, strange.clone()).prop_map(|(number, data)| option(number, &data)),
        2 => (0..13_u8).prop_map(|number| option(number, &[])),
        3 => go,
        3 => meta,
        1 => (65_537..70_000_usize).prop_map(|length| option(99, &vec![0; length])),
        1 => strange,
    ];
    (0..4_u8, proptest::collection::vec(one, 0..8))
        .prop_map(|(flags, options)| bytes(&[&[0, 0, 0, flags], &options.concat()]))
}

fn one_reply(style: ReplyStyle, message: &[u8]) -> Reply<'_> {
    for cut in 0..message.len() {
        let parsed = parse_reply(style, &message[..cut]);
        let waits = matches!(parsed, ParsedReply::NeedMore { at_least } if at_least > cut && at_least <= message.len());
        assert!(waits, "cut at {cut}: {parsed:?}");
    }
    match parse_reply(style, message) {
        ParsedReply::Reply { consumed, reply } => {
            assert_eq!(consumed, message.len());
            reply
        }
        other => panic!("{style:?}: {other:?}"),
    }
}

proptest! {
    #[test]
    fn commands_round_trip((style, command) in any_style().prop_flat_map(|s| (Just(s), any_command(s))), cookie: u64) {
        let exports = fuzz::sample_exports();
        let export = exports.get(0).unwrap();
        let mut negotiated = Negotiated::new(0, export, style);
        negotiated.base_allocation = style.is_chunked().then_some(1);
        let header = encode_request(style.header_mode(), cookie, &command).unwrap();
        let ParsedHeader::Request(raw) = parse(negotiated.header_mode(), header.as_bytes()) else {
            panic!("a header");
        };
        prop_assert_eq!(raw.payload_bytes(), u64::from(command.payload_bytes()));
        let request = check(&raw, export, &negotiated).unwrap();
        prop_assert_eq!(request.command, command);
        prop_assert_eq!(request.to.cookie, cookie);
    }

    #[test]
    fn requests_of_any_values_keep_the_bounds(
        choice: u8, flags in prop_oneof![Just(0_u16), 0..64_u16, any::<u16>()], kind in prop_oneof![9 => 0..9_u16, 1 => any::<u16>()],
        offset in prop_oneof![(0..100_u64).prop_map(|n| n * 512), any::<u64>()],
        length in prop_oneof![(0..100_u64).prop_map(|n| n * 512), any::<u64>()],
    ) {
        let extended = (choice >> 1) % 3 == 2;
        let mut data = vec![choice];
        data.extend(if extended { 0x21e4_1c71_u32 } else { 0x2560_9513 }.to_be_bytes());
        data.extend(flags.to_be_bytes());
        data.extend(kind.to_be_bytes());
        data.extend([7; 8]);
        data.extend(offset.to_be_bytes());
        if extended {
            data.extend(length.to_be_bytes());
        } else {
            data.extend((length as u32).to_be_bytes());
        }
        fuzz::fuzz_requests(&data);
    }

    #[test]
    fn replies_without_payload_round_trip(style in any_style(), cookie: u64, offset: u64, errno in any_errno(), at: u64) {
        let to = ReplyTo { cookie, offset };
        let chunked = style.is_chunked();
        let request_offset = (style == ReplyStyle::Extended).then_some(offset);
        let mut message = Vec::new();
        style.error_message(to, errno, "the disk is gone", &mut message);
        for (bytes, text) in [(style.error(to, errno).as_bytes(), &b""[..]), (&message, b"the disk is gone")] {
            let reply = one_reply(style, bytes);
            let body = if chunked {
                Body::Error { errno, message: text, offset: None }
            } else {
                Body::SimpleError(errno)
            };
            prop_assert_eq!(&reply.body, &body);
            prop_assert_eq!((reply.cookie, reply.request_offset, reply.done), (cookie, request_offset, true));
        }
        if chunked {
            let header = style.error_offset(to, errno, at, false);
            let reply = one_reply(style, header.as_bytes());
            prop_assert_eq!(reply.body, Body::Error { errno, message: b"", offset: Some(at) });
            prop_assert!(!reply.done);
        }
        let header = style.ok(to);
        let body = if style == ReplyStyle::Extended { Body::None } else { Body::SimpleOk };
        prop_assert_eq!(one_reply(style, header.as_bytes()).body, body);
        let header = style.read_done(to);
        let body = if chunked { Body::None } else { Body::SimpleOk };
        prop_assert_eq!(one_reply(style, header.as_bytes()).body, body);
    }

    #[test]
    fn reads_round_trip(style in any_style(), cookie: u64, offset: u64, length in 1..=u32::MAX, done: bool) {
        let to = ReplyTo { cookie, offset };
        // A structured payload, offset and data, has to fit in 32 bits.
        let length = length.min(u32::MAX - 8);
        let header = style.read_data(to, offset, length, done);
        let reply = one_reply(style, header.as_bytes());
        prop_assert_eq!(reply.cookie, cookie);
        if style == ReplyStyle::Simple {
            prop_assert_eq!(reply.body, Body::SimpleOk);
            prop_assert_eq!(style.read_hole(to, offset, length, done), None);
        } else {
            prop_assert_eq!(reply.body, Body::Data { offset, length });
            prop_assert_eq!(reply.done, done);
            let hole = style.read_hole(to, offset, length, done).unwrap();
            let reply = one_reply(style, hole.as_bytes());
            prop_assert_eq!(reply.body, Body::Hole { offset, length });
            prop_assert_eq!(reply.done, done);
        }
    }

    #[test]
    fn block_status_obeys_the_specification(
        extended: bool, one: bool, blocks in 1..5000_u64,
        extents in proptest::collection::vec((0..64_u64, 0..4_u32), 0..50),
    ) {
        let style = if extended { ReplyStyle::Extended } else { ReplyStyle::Structured };
        let length = blocks * 512;
        let extents: Vec<Extent> = extents
            .into_iter()
            .map(|(blocks, status)| Extent { length: blocks * 512, status })
            .collect();
        let mut message = Vec::new();
        let to = ReplyTo { cookie: 1, offset: 0 };
        style.block_status(to, 1, length, one, &extents, &mut message);
        let Body::BlockStatus { context_id: 1, extents: sent } = one_reply(style, &message).body else {
            panic!("block status");
        };
        let sent: Vec<Extent> = sent.collect();
        prop_assert!(!sent.is_empty());
        prop_assert!(!one || sent.len() == 1);
        let total: u64 = sent.iter().map(|e| e.length).sum();
        prop_assert!(total <= length);
        prop_assert!(sent.iter().all(|e| e.length > 0 && e.length.is_multiple_of(512)));
        prop_assert!(sent.windows(2).all(|pair| pair[0].status != pair[1].status));
        // Block by block it says what was given.
        let flat = |list: &[Extent]| -> Vec<u32> {
            list.iter().flat_map(|e| std::iter::repeat_n(e.status, (e.length / 512) as usize)).collect()
        };
        let (given, sent) = (flat(&extents), flat(&sent));
        if given.is_empty() {
            prop_assert_eq!(sent, vec![0; blocks as usize]);
        } else {
            prop_assert!(given.starts_with(&sent));
            prop_assert!(one || sent.len() == given.len().min(blocks as usize));
        }
    }

    #[test]
    fn any_options_in_any_split(data in any_options()) {
        fuzz::fuzz_handshake(&data);
    }

    #[test]
    fn any_bytes_never_hurt(data in proptest::collection::vec(any::<u8>(), 0..400)) {
        fuzz::fuzz_handshake(&data);
        fuzz::fuzz_client_handshake(&data);
        fuzz::fuzz_requests(&data);
        fuzz::fuzz_replies(&data);
        let _ = parse(HeaderMode::Simple, &data);
        let _ = parse(HeaderMode::Extended, &data);
    }

    #[test]
    fn any_bytes_behind_the_right_magic_never_hurt(tail in proptest::collection::vec(any::<u8>(), 0..100), kind in 0..8_u8, length in 0..80_u8) {
        for magic in [0x6744_6698_u32, 0x668e_33ef, 0x6e8a_278c] {
            fuzz::fuzz_replies(&bytes(&[&magic.to_be_bytes(), &tail]));
        }
        // A plausible chunk of each type with a plausible length.
        for head in [0, 0x80] {
            let chunk = bytes(&[&0x668e_33ef_u32.to_be_bytes(), &[0, 1, head, kind], &[9; 8], &[0, 0, 0, length], &tail]);
            fuzz::fuzz_replies(&chunk);
            let chunk = bytes(&[&0x6e8a_278c_u32.to_be_bytes(), &[0, 1, head, kind], &[9; 16], &[0, 0, 0, 0, 0, 0, 0, length], &tail]);
            fuzz::fuzz_replies(&chunk);
        }
        let greeted = bytes(&[b"NBDMAGICIHAVEOPT\x00\x03", crate::REP, &tail]);
        fuzz::fuzz_client_handshake(&greeted);
    }
}
