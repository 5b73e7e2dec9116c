//! Expected replies to a client's bytes, computed in one piece and without a session: the answers of the
//! handshake, a reply for each request, the end.
//!
//! The rules of single messages (the handshake, [`parse`], [`check()`]) are the server's own, which other entry
//! points check; replies are read by the client's half.

use std::sync::Arc;

use braid_block::Span;
use braid_nbd::client::{Body, ParsedReply, Reply, parse_reply};
use braid_nbd::fuzz::drive_handshake;
use braid_nbd::handshake::{Handshake, HandshakeError, Policy, Step};
use braid_nbd::protocol::{
    CheckedRequest, Command, NbdErrno, Negotiated, ParsedHeader, Payload, ReplyStyle, ReplyTo,
    check, parse,
};

use super::disk::{Disk, Settings, range};
use crate::connection::Export;
use crate::end::End;

/// All that a connection comes to.
pub(super) struct Expected {
    greeting: Vec<u8>,
    /// True if answers of the handshake may be missing: the client broke the protocol behind them.
    cut: bool,
    negotiated: Option<Negotiated>,
    replies: Vec<Want>,
    end: Ends,
    pub(super) contents: Vec<u8>,
}

/// A reply that must come.
struct Want {
    to: ReplyTo,
    what: What,
}

#[derive(Debug)]
enum What {
    Done,
    Data(Vec<u8>),
    Status { len: u64, one: bool },
    Error(NbdErrno),
}

/// Why the connection ends.
#[derive(Debug)]
enum Ends {
    Handshake(HandshakeError),
    Disconnected,
    Truncated,
    BadMagic(u32),
    Refused,
}

/// Reads all of `input`; `disk` is as the server's was at the start.
pub(super) fn expect(export: &Export, disk: &Disk, input: &[u8]) -> Expected {
    let mut handshake = Handshake::new(Arc::new(exports_of(export)), Policy::default());
    let mut greeting = handshake.greeting().to_vec();
    let (answers, consumed, step) = drive_handshake(&mut handshake, input, input.len());
    greeting.extend(answers);
    let mut expected = Expected {
        greeting,
        cut: false,
        negotiated: None,
        replies: Vec::new(),
        end: Ends::Disconnected,
        contents: Vec::new(),
    };
    match step {
        Step::NeedMore { .. } if consumed < input.len() => expected.end = Ends::Truncated,
        // Without certificates TLS is never started.
        Step::NeedMore { .. } | Step::Aborted | Step::StartTls => {}
        Step::Fatal(error) => {
            expected.cut = true;
            expected.end = Ends::Handshake(error);
        }
        Step::Transmission(negotiated) => {
            expected.negotiated = Some(negotiated);
            expected.end = expected.read_requests(export, &negotiated, disk, &input[consumed..]);
        }
    }
    expected.contents = disk.bytes.borrow().clone();
    expected
}

impl Expected {
    fn read_requests(
        &mut self,
        export: &Export,
        negotiated: &Negotiated,
        disk: &Disk,
        mut rest: &[u8],
    ) -> Ends {
        let exports = exports_of(export);
        let info = exports.get(negotiated.export_index).expect("one that there is");
        loop {
            let raw = match parse(negotiated.header_mode(), rest) {
                ParsedHeader::NeedMore if rest.is_empty() => return Ends::Disconnected,
                ParsedHeader::NeedMore => return Ends::Truncated,
                ParsedHeader::BadMagic(magic) => return Ends::BadMagic(magic),
                ParsedHeader::Request(raw) => raw,
            };
            rest = &rest[negotiated.header_mode().request_bytes()..];
            let (payload, closes) = match check(&raw, info, negotiated) {
                Ok(request) if request.command == Command::Disconnect => return Ends::Disconnected,
                Ok(request) => {
                    let bytes = request.command.payload_bytes() as usize;
                    if let Some(payload) = rest.get(..bytes) {
                        let what = carry_out(disk, &request, payload);
                        self.replies.push(Want { to: request.to, what });
                    }
                    (bytes, false)
                }
                Err(refusal) => {
                    let (bytes, closes) = match refusal.payload {
                        Payload::Drain(bytes) => (bytes as usize, false),
                        Payload::Close => (0, true),
                    };
                    // The answer comes behind the payload.
                    if rest.len() >= bytes {
                        let what = What::Error(refusal.errno);
                        self.replies.push(Want { to: refusal.to, what });
                    }
                    (bytes, closes)
                }
            };
            match rest.get(payload..) {
                _ if closes => return Ends::Refused,
                Some(behind) => rest = behind,
                None => return Ends::Truncated,
            }
        }
    }

    /// Compares with what happened.
    pub(super) fn assert_met(&self, end: &End, output: &[u8], settings: Settings) {
        let ends = match (&self.end, end) {
            (Ends::Handshake(expected), End::Handshake(error)) => expected == error,
            (Ends::BadMagic(expected), End::BadMagic(magic)) => expected == magic,
            (Ends::Disconnected, End::Disconnected)
            | (Ends::Truncated, End::Truncated)
            | (Ends::Refused, End::Refused(_)) => true,
            _ => false,
        };
        assert!(ends, "ended with {end:?}, expected {:?}", self.end);
        let Some(negotiated) = &self.negotiated else {
            let is_whole = output == self.greeting;
            assert!(is_whole || self.cut && self.greeting.starts_with(output), "the handshake");
            return;
        };
        let replies = output.strip_prefix(&self.greeting[..]).expect("the handshake's answers");
        self.assert_replies(negotiated, replies, settings.late);
    }

    fn assert_replies(&self, negotiated: &Negotiated, mut output: &[u8], late: bool) {
        let mut wanted: Vec<&Want> = self.replies.iter().collect();
        while !output.is_empty() {
            let (consumed, reply) = match parse_reply(negotiated.style, output) {
                ParsedReply::Reply { consumed, reply } => (consumed, reply),
                other => panic!("{other:?} where a reply should be"),
            };
            let behind = &output[consumed..];
            let of_request = |want: &&Want| want.to.cookie == reply.cookie;
            // A client that gives several requests one name cannot tell which one is answered first,
            // nor a write from a read but by the data.
            let data_of = |want: &Want| want.data_bytes(negotiated, &reply, behind);
            let of_name = (0..wanted.len()).filter(|index| of_request(&wanted[*index]));
            let index = match late {
                false => Some(0),
                true => of_name.max_by_key(|index| data_of(wanted[*index])),
            };
            assert!(index.is_some() && !wanted.is_empty(), "a reply to nothing: {reply:?}");
            let want = wanted.remove(index.unwrap_or_default());
            assert!(of_request(&want), "{reply:?} where {:?} is next", want.to);
            let data = want.data_bytes(negotiated, &reply, behind);
            let data = data.unwrap_or_else(|| panic!("{reply:?} for {:?}", want.what));
            output = &behind[data..];
        }
        assert!(wanted.is_empty(), "{} requests without a reply", wanted.len());
    }
}

impl Want {
    /// Returns the number of data bytes of `reply`, with `behind` behind it, if that is the reply.
    fn data_bytes(
        &self,
        negotiated: &Negotiated,
        reply: &Reply<'_>,
        behind: &[u8],
    ) -> Option<usize> {
        let extended = negotiated.style == ReplyStyle::Extended;
        if !reply.done || reply.request_offset != extended.then_some(self.to.offset) {
            return None;
        }
        match (&self.what, &reply.body) {
            (What::Done, Body::SimpleOk) if !extended => Some(0),
            (What::Done, Body::None) if extended => Some(0),
            (What::Data(data), Body::SimpleOk) if negotiated.style == ReplyStyle::Simple => {
                behind.starts_with(data).then_some(data.len())
            }
            (What::Data(data), Body::Data { offset, length }) => {
                let fits = *offset == self.to.offset && *length as usize == data.len();
                (fits && behind.starts_with(data)).then_some(data.len())
            }
            (What::Status { len, one }, Body::BlockStatus { context_id, extents }) => {
                let (count, sum) = extents
                    .clone()
                    .fold((0, 0), |(count, sum), next| (count + 1, sum + next.length));
                let fits = Some(*context_id) == negotiated.base_allocation
                    && (1..=*len).contains(&sum)
                    && (count == 1 || !one);
                fits.then_some(0)
            }
            (What::Error(errno), Body::SimpleError(got)) => (errno == got).then_some(0),
            (What::Error(errno), Body::Error { errno: got, .. }) => (errno == got).then_some(0),
            _ => None,
        }
    }
}

/// Does it, and says what the reply is.
fn carry_out(disk: &Disk, request: &CheckedRequest, payload: &[u8]) -> What {
    let failed = match request.command {
        Command::Cache { .. } | Command::BlockStatus { .. } => false,
        _ => disk.next_fails(),
    };
    if failed {
        return What::Error(NbdErrno::Io);
    }
    match request.command {
        Command::Read { offset, length, .. } => {
            let span = Span::new(offset, length.into());
            return What::Data(disk.bytes.borrow()[range(span)].to_vec());
        }
        Command::Write { offset, length, .. } => {
            let span = Span::new(offset, length.into());
            disk.bytes.borrow_mut()[range(span)].copy_from_slice(payload);
        }
        Command::Trim { offset, length, .. } => disk.trim(Span::new(offset, length)),
        Command::WriteZeroes { offset, length, .. } => disk.clear(Span::new(offset, length)),
        Command::BlockStatus { length, one_extent, .. } => {
            return What::Status { len: length, one: one_extent };
        }
        Command::Flush | Command::Cache { .. } | Command::Disconnect => {}
    }
    What::Done
}

fn exports_of(export: &Export) -> braid_nbd::protocol::Exports {
    export.exports().expect("it was one when it was made")
}
