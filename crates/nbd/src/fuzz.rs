//! Entry points for fuzzers and property tests: bytes in, panic on a broken
//! invariant, nothing out.
//!
//! Each takes any `&[u8]`. Beyond "does not panic" they assert what the
//! modules promise: nothing is consumed that was not there, the split of the
//! input makes no difference, and what passed the check keeps its bounds.
//!
//! Absent on purpose: a fuzzer. `crates/mutate` changes a committed corpus, `fuzz/`
//! has a target for libFuzzer. Whole connections have their entry point where
//! the session is, in `braid-export-nbd`.

use std::sync::Arc;

use crate::client::{
    ClientConfig, ClientHandshake, ClientProgress, ClientStep, ParsedReply, parse_reply,
};
use crate::handshake::{Handshake, MAX_INPUT_BYTES, Policy, Progress, Step};
use crate::protocol::constants::MAX_REFUSED_BYTES;
use crate::protocol::{
    Command, ExportInfo, Exports, Negotiated, ParsedHeader, Payload, ReplyStyle, check, parse,
};

/// Feeds `input` in pieces of `piece_bytes` and returns the output, the bytes
/// consumed in all, and the last step. The reference for "any split".
#[must_use]
pub fn drive_handshake(
    handshake: &mut Handshake,
    input: &[u8],
    piece_bytes: usize,
) -> (Vec<u8>, usize, Step) {
    let mut out = Vec::new();
    let (mut buffer, mut consumed) = (Vec::new(), 0);
    let mut step = Step::NeedMore { at_least: 4 };
    for piece in input.chunks(piece_bytes.max(1)) {
        buffer.extend_from_slice(piece);
        let progress: Progress = handshake.advance(&buffer, &mut out);
        assert!(progress.consumed <= buffer.len(), "consumed what is not there");
        buffer.drain(..progress.consumed);
        consumed += progress.consumed;
        step = progress.step;
        match step {
            Step::NeedMore { at_least } => {
                assert!(at_least > buffer.len(), "asks for what it has");
                assert!(at_least <= MAX_INPUT_BYTES, "asks for too much");
            }
            _ => break,
        }
    }
    (out, consumed, step)
}

/// The same for a client's handshake.
#[must_use]
pub fn drive_client(
    handshake: &mut ClientHandshake,
    input: &[u8],
    piece_bytes: usize,
) -> (Vec<u8>, usize, ClientStep) {
    let mut out = Vec::new();
    let (mut buffer, mut consumed) = (Vec::new(), 0);
    let mut step = ClientStep::NeedMore { at_least: 1 };
    for piece in input.chunks(piece_bytes.max(1)) {
        buffer.extend_from_slice(piece);
        let progress: ClientProgress = handshake.advance(&buffer, &mut out);
        assert!(progress.consumed <= buffer.len(), "consumed what is not there");
        buffer.drain(..progress.consumed);
        consumed += progress.consumed;
        step = progress.step;
        match step {
            ClientStep::NeedMore { at_least } => assert!(at_least > buffer.len()),
            _ => break,
        }
    }
    (out, consumed, step)
}

/// Two exports that differ in everything that a client can notice.
#[must_use]
pub fn sample_exports() -> Arc<Exports> {
    let mut plain = ExportInfo::new("v0", 1 << 30);
    plain.description = "the first".to_owned();
    plain.can_cache = true;
    plain.can_fast_zero = true;
    let mut read_only = ExportInfo::new("archive", 40_960);
    read_only.read_only = true;
    read_only.rotational = true;
    read_only.block_size.minimum = 4096;
    match Exports::new(vec![plain, read_only]) {
        Ok(exports) => Arc::new(exports),
        Err(error) => unreachable!("the samples are sound: {error}"),
    }
}

/// Any bytes as a client's side of the handshake, whole and byte by byte.
pub fn fuzz_handshake(data: &[u8]) {
    let exports = sample_exports();
    let run = |piece_bytes| {
        let mut handshake = Handshake::new(Arc::clone(&exports), Policy::default());
        drive_handshake(&mut handshake, data, piece_bytes)
    };
    let whole = run(data.len());
    for piece_bytes in [1, 7, 64] {
        assert_eq!(run(piece_bytes), whole, "pieces of {piece_bytes}");
    }
}

/// Any bytes as a stream of requests; the first byte chooses style and export.
pub fn fuzz_requests(data: &[u8]) {
    let Some((&choice, mut rest)) = data.split_first() else {
        return;
    };
    let exports = sample_exports();
    let index = usize::from(choice & 1);
    let style = match (choice >> 1) % 3 {
        0 => ReplyStyle::Simple,
        1 => ReplyStyle::Structured,
        _ => ReplyStyle::Extended,
    };
    let Some(export) = exports.get(index) else {
        return;
    };
    let mut negotiated = Negotiated::new(index, export, style);
    negotiated.base_allocation = (style.is_chunked() && choice & 8 != 0).then_some(1);
    while let ParsedHeader::Request(raw) = parse(negotiated.header_mode(), rest) {
        rest = &rest[negotiated.header_mode().request_bytes()..];
        match check(&raw, export, &negotiated) {
            Ok(request) => {
                assert_eq!(request.to.cookie, raw.cookie);
                assert_in_bounds(&request.command, export);
                let payload = u64::from(request.command.payload_bytes());
                if request.command != Command::Disconnect {
                    assert_eq!(payload, raw.payload_bytes());
                }
            }
            Err(refusal) => {
                assert_eq!(refusal.to.cookie, raw.cookie);
                match refusal.payload {
                    Payload::Drain(bytes) => {
                        assert_eq!(u64::from(bytes), raw.payload_bytes());
                        assert!(bytes <= MAX_REFUSED_BYTES);
                    }
                    Payload::Close => return,
                }
            }
        }
    }
}

/// Checks the promises of `check` about a command.
///
/// # Panics
/// If the promise is broken.
pub fn assert_in_bounds(command: &Command, export: &ExportInfo) {
    let (offset, length, writes) = match *command {
        Command::Read { offset, length, .. } => (offset, u64::from(length), false),
        Command::Write { offset, length, .. } => (offset, u64::from(length), true),
        Command::Trim { offset, length, .. } => (offset, length, true),
        Command::WriteZeroes { offset, length, .. } => (offset, length, true),
        Command::Cache { offset, length } => (offset, length, false),
        Command::BlockStatus { offset, length, .. } => (offset, length, false),
        Command::Flush | Command::Disconnect => return,
    };
    assert!(length > 0, "empty");
    assert!(offset <= export.size_bytes && length <= export.size_bytes - offset, "outside");
    let minimum = u64::from(export.block_size.minimum);
    assert!(offset % minimum == 0 && length % minimum == 0, "unaligned");
    assert!(!(writes && export.read_only), "a write to a read-only export");
    if matches!(command, Command::Read { .. } | Command::Write { .. }) {
        assert!(length <= u64::from(export.block_size.maximum_payload), "too long");
    }
}

/// Any bytes as what a server sends: a handshake, replies, and replies behind it.
pub fn fuzz_client(data: &[u8]) {
    fuzz_client_handshake(data);
    fuzz_replies(data);
    for style in [ReplyStyle::Simple, ReplyStyle::Structured, ReplyStyle::Extended] {
        let config = ClientConfig { export: "v0".to_owned(), style, base_allocation: true };
        let driven = drive_client(&mut ClientHandshake::new(config), data, data.len());
        if let (_, consumed, ClientStep::Transmission(_)) = driven {
            fuzz_replies(&data[consumed..]);
        }
    }
}

/// Any bytes as a server's side of the handshake, whole and byte by byte.
pub fn fuzz_client_handshake(data: &[u8]) {
    for style in [ReplyStyle::Simple, ReplyStyle::Structured, ReplyStyle::Extended] {
        let run = |piece_bytes| {
            let config = ClientConfig { export: "v0".to_owned(), style, base_allocation: true };
            drive_client(&mut ClientHandshake::new(config), data, piece_bytes)
        };
        assert_eq!(run(1), run(data.len()));
    }
}

/// Any bytes as a stream of replies, in each style.
pub fn fuzz_replies(data: &[u8]) {
    for style in [ReplyStyle::Simple, ReplyStyle::Structured, ReplyStyle::Extended] {
        let mut rest = data;
        loop {
            match parse_reply(style, rest) {
                ParsedReply::NeedMore { at_least } => {
                    assert!(at_least > rest.len());
                    break;
                }
                ParsedReply::Reply { consumed, .. } => {
                    assert!(consumed <= rest.len() && consumed > 0);
                    rest = &rest[consumed..];
                }
                ParsedReply::Fatal(_) => break,
            }
        }
    }
}
