//! One connection: its handshake, its sender, and its receiver.
//!
//! Invariants
//! * Whatever a server sends ends in an answer to a request that was made, or in the end of the connection.
//! * No more is buffered than [`BUFFER`]; the data of reads go to where they are wanted.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::time::Duration;

use braid_block::{Errno, Op, Span};
use braid_engine::{Signal, Tasks};
use braid_mem::Buf;
use braid_nbd::client::{
    Body, ClientConfig, ClientError, ClientHandshake, ClientStep, ParsedReply, Reply, ReplyError,
    encode_request, parse_reply,
};
use braid_nbd::protocol::constants::NBD_FLAG_SEND_DF;
use braid_nbd::protocol::{Command, NbdErrno, ReplyStyle};
use braid_uring::Stream;

use crate::offer::{Offer, Unfit};
use crate::session::{Ask, Fault, Outgoing, Session};

/// Bytes of the receive buffer; more than the longest message about an error.
pub(crate) const BUFFER: usize = 256 << 10;
/// Most requests in one system call.
const BATCH: usize = 64;

/// Why a connection came to nothing, or to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Ended {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("the server closed the connection")]
    Closed,
    #[error("the server does not speak NBD as it should: {0}")]
    Handshake(#[from] ClientError),
    #[error("the server does not speak NBD as it should: {0}")]
    Reply(#[from] ReplyError),
    #[error("the server does not speak NBD as it should: {0}")]
    Fault(#[from] Fault),
    #[error("the server is shutting down")]
    Shutdown,
    #[error("the server sent an answer that nothing asked for")]
    Uncalled,
    #[error("{0}")]
    Unfit(#[from] Unfit),
}

/// Sends all of `bytes`.
async fn send_all<S: Stream>(stream: &S, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match stream.try_send(&[IoSlice::new(bytes)]) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => stream.writable().await?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Bytes that came and were not used yet.
pub(crate) struct Inbox {
    buf: Option<Buf>,
    start: usize,
    end: usize,
}

impl Inbox {
    pub(crate) fn new() -> io::Result<Inbox> {
        Ok(Inbox { buf: Some(Buf::apart(BUFFER)?), start: 0, end: 0 })
    }

    fn bytes(&self) -> &[u8] {
        self.buf.as_ref().map_or(&[], |buf| &buf[self.start..self.end])
    }

    fn consume(&mut self, count: usize) {
        self.start += count;
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
    }

    /// Receives more, and returns how much; there is room, since no message is as long as the buffer.
    async fn receive<S: Stream>(&mut self, stream: &S) -> Result<usize, Ended> {
        let mut buf = self.buf.take().expect("one receive at a time");
        if self.start > 0 {
            buf.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        let (count, buf) = stream.receive(buf, self.end, false).await;
        self.buf = Some(buf);
        match count? {
            0 => Err(Ended::Closed),
            count => {
                self.end += count;
                Ok(count)
            }
        }
    }
}

/// Agrees with the server on `export`; inside TLS (`is_secured`) the greeting is over. Returns its offer, and the time of the last question.
pub(crate) async fn shake<S: Stream>(
    stream: &S,
    tasks: &dyn Tasks,
    (export, is_secured): (&str, bool),
    inbox: &mut Inbox,
) -> Result<(Offer, Duration), Ended> {
    let style = ReplyStyle::Extended;
    let config = ClientConfig { export: export.to_owned(), style, base_allocation: true };
    let mut handshake = match is_secured {
        false => ClientHandshake::new(config),
        true => ClientHandshake::secured(config),
    };
    let mut output = Vec::new();
    let mut asked = tasks.now();
    loop {
        let progress = handshake.advance(inbox.bytes(), &mut output);
        inbox.consume(progress.consumed);
        if let ClientStep::Transmission(agreed) = progress.step {
            let offer = Offer::check(&agreed)?;
            return Ok((offer, tasks.now().saturating_sub(asked)));
        }
        if !output.is_empty() {
            asked = tasks.now();
            send_all(stream, &output).await?;
            output.clear();
        }
        match progress.step {
            ClientStep::Fatal(error) => return Err(error.into()),
            _ => inbox.receive(stream).await?,
        };
    }
}

/// Returns the command of a request.
pub(crate) fn command_of(out: &Outgoing, offer: &Offer) -> Command {
    use braid_block::Flags;
    let Span { offset, len: length } = out.span;
    let fua = out.flags.contains(Flags::FUA);
    // Discards may be longer, and have no use for it.
    let short = if out.ask.has_data() { length } else { 0 };
    let short = u32::try_from(short).expect("requests with data are cut to what the server takes");
    let op = match out.ask {
        Ask::Status => return Command::BlockStatus { offset, length, one_extent: false },
        Ask::Io(op) => op,
    };
    match op {
        Op::Read => {
            Command::Read { offset, length: short, dont_fragment: offer.has(NBD_FLAG_SEND_DF) }
        }
        Op::Write => Command::Write { offset, length: short, fua },
        Op::Flush => Command::Flush,
        Op::Discard => Command::Trim { offset, length, fua },
        Op::WriteZeroes => {
            let no_hole = out.flags.contains(Flags::NO_UNMAP);
            Command::WriteZeroes { offset, length, fua, no_hole, fast_zero: false }
        }
    }
}

/// Requests on their way to a connection.
#[derive(Default)]
pub(crate) struct Outbox {
    queue: RefCell<VecDeque<Outgoing>>,
    /// Bytes of the first request that were sent.
    sent: std::cell::Cell<usize>,
    pub(crate) changed: Signal,
    is_closed: std::cell::Cell<bool>,
}

impl Outbox {
    pub(crate) fn push(&self, out: Outgoing) {
        self.queue.borrow_mut().push_back(out);
        self.changed.notify();
    }

    pub(crate) fn close(&self) {
        self.is_closed.set(true);
        self.queue.borrow_mut().clear();
        self.changed.notify();
    }

    /// Sends what is queued until the connection ends.
    pub(crate) async fn run<S: Stream>(
        &self,
        stream: &S,
        offer: &Offer,
        session: &RefCell<Session>,
        count: impl Fn(u64),
    ) -> Result<(), Ended> {
        loop {
            let is_due = || self.is_closed.get() || !self.queue.borrow().is_empty();
            self.changed.until(is_due).await;
            if self.is_closed.get() {
                return Ok(());
            }
            let sent = self.send(stream, offer, &session.borrow());
            match sent {
                Ok(sent) => count(sent as u64),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    stream.writable().await?;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Sends as much as goes now, in one call.
    fn send<S: Stream>(&self, stream: &S, offer: &Offer, session: &Session) -> io::Result<usize> {
        let mut queue = self.queue.borrow_mut();
        let mode = offer.style.header_mode();
        let headers: Vec<_> = queue
            .iter()
            .take(BATCH)
            .map(|out| {
                let header = encode_request(mode, out.cookie, &command_of(out, offer));
                header.ok_or(io::ErrorKind::InvalidInput)
            })
            .collect::<Result<_, _>>()?;
        let mut parts: Vec<&[u8]> = Vec::with_capacity(2 * headers.len());
        let mut lengths = Vec::with_capacity(headers.len());
        for (header, out) in headers.iter().zip(queue.iter()) {
            let mut length = header.as_bytes().len();
            parts.push(header.as_bytes());
            session.bytes(out.cookie, &mut |bytes| {
                length += bytes.len();
                parts.push(bytes);
            });
            lengths.push(length);
        }
        let mut skip = self.sent.get();
        let mut slices = Vec::with_capacity(parts.len());
        for part in parts {
            let skipped = skip.min(part.len());
            skip -= skipped;
            if skipped < part.len() {
                slices.push(IoSlice::new(&part[skipped..]));
            }
        }
        let count = stream.try_send(&slices)?;
        let mut done = self.sent.get() + count;
        for length in lengths {
            if done < length {
                break;
            }
            done -= length;
            queue.pop_front();
        }
        self.sent.set(done);
        Ok(count)
    }
}

/// The part of an answer that is received directly.
struct Data {
    cookie: u64,
    offset: u64,
    left: u64,
    is_last: bool,
}

/// The receiver of a connection.
pub(crate) struct Receiver {
    pub(crate) inbox: Inbox,
    style: ReplyStyle,
    data: Option<Data>,
}

impl Receiver {
    pub(crate) fn new(inbox: Inbox, style: ReplyStyle) -> Receiver {
        Receiver { inbox, style, data: None }
    }

    /// Receives once, and takes in all answers that are whole; `answered` is called for each, and `count` for bytes.
    pub(crate) async fn step<S: Stream>(
        &mut self,
        stream: &S,
        session: &RefCell<Session>,
        answered: &mut dyn FnMut(&mut Session, u64) -> Result<(), Fault>,
    ) -> Result<u64, Ended> {
        self.take_in(&mut session.borrow_mut(), answered)?;
        let count = self.inbox.receive(stream).await?;
        self.take_in(&mut session.borrow_mut(), answered)?;
        Ok(count as u64)
    }

    fn take_in(
        &mut self,
        session: &mut Session,
        answered: &mut dyn FnMut(&mut Session, u64) -> Result<(), Fault>,
    ) -> Result<(), Ended> {
        loop {
            if let Some(data) = &mut self.data {
                let bytes = self.inbox.bytes();
                let count = bytes.len().min(usize::try_from(data.left).unwrap_or(usize::MAX));
                session.fill(data.cookie, data.offset, &bytes[..count])?;
                data.offset += count as u64;
                data.left -= count as u64;
                let (cookie, left, is_last) = (data.cookie, data.left, data.is_last);
                self.inbox.consume(count);
                if left > 0 {
                    return Ok(());
                }
                self.data = None;
                if is_last {
                    answered(session, cookie)?;
                }
            }
            let (consumed, done) = match parse_reply(self.style, self.inbox.bytes()) {
                ParsedReply::NeedMore { at_least } if at_least <= BUFFER => return Ok(()),
                ParsedReply::NeedMore { .. } => return Err(Ended::Uncalled),
                ParsedReply::Fatal(error) => return Err(error.into()),
                ParsedReply::Reply { consumed, reply } => {
                    (consumed, take_reply(session, &mut self.data, self.style, &reply)?)
                }
            };
            self.inbox.consume(consumed);
            if let Some(cookie) = done {
                answered(session, cookie)?;
            }
        }
    }
}

/// Takes in a reply; returns its request if that is answered now.
fn take_reply(
    session: &mut Session,
    data: &mut Option<Data>,
    style: ReplyStyle,
    reply: &Reply<'_>,
) -> Result<Option<u64>, Ended> {
    let (cookie, done) = (reply.cookie, reply.done);
    let read = session.span_of_read(cookie)?;
    match reply.body {
        Body::SimpleOk => match read {
            // A read is answered with chunks where these were agreed on.
            Some(_) if style != ReplyStyle::Simple => return Err(Ended::Uncalled),
            Some(span) => {
                session.expect(cookie, span)?;
                *data = Some(Data { cookie, offset: span.offset, left: span.len, is_last: true });
                return Ok(None);
            }
            None => {}
        },
        Body::SimpleError(errno) | Body::Error { errno, .. } => {
            session.note_error(cookie, errno_of(errno)?)?;
        }
        Body::Data { offset, length } => {
            session.expect(cookie, Span::new(offset, length.into()))?;
            *data = Some(Data { cookie, offset, left: length.into(), is_last: done });
            return Ok(None);
        }
        Body::Hole { offset, length } => {
            const ZEROES: [u8; 4096] = [0; 4096];
            session.expect(cookie, Span::new(offset, length.into()))?;
            let end = offset + u64::from(length);
            let mut at = offset;
            while at < end {
                let count = (end - at).min(ZEROES.len() as u64);
                session.fill(cookie, at, &ZEROES[..count as usize])?;
                at += count;
            }
        }
        Body::None => {}
        // There is one context of metadata, base:allocation.
        Body::BlockStatus { ref extents, .. } => {
            session.note_status(
                cookie,
                extents.clone().map(|extent| (extent.length, extent.status)),
            )?;
        }
    }
    Ok(done.then_some(cookie))
}

/// Returns the error of a request, unless the server carried out nothing because it goes away.
fn errno_of(errno: NbdErrno) -> Result<Errno, Ended> {
    match errno {
        NbdErrno::Shutdown => Err(Ended::Shutdown),
        errno => Ok(os_error(errno)),
    }
}

/// Returns an error value as the operating system's, whose numbers are the same.
pub(crate) fn os_error(errno: NbdErrno) -> Errno {
    Errno::from_raw(i32::try_from(errno.to_wire()).expect("error values are small"))
}
