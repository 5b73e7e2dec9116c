//! The transmission phase of one connection, as a state machine.
//!
//! ```text
//!             ┌────────── socket ──────────┐
//!          receive                       send
//!             ▼                            ▲
//!          inbox ──parse──▶ Dev ──done──▶ outbox
//!             │               │            ▲
//!             └─payload─▶ InFlight ──done──┘
//! ```
//!
//! One turn: parse all received bytes, starting each request as it is parsed (a request that completes at once
//! gets its reply at once); take completions; send all replies with one call; then receive more. So requests
//! that arrive together are received, and answered, together.
//!
//! Invariants
//! * Parsing stops while [`MOST_IN_FLIGHT`] requests are in flight, while more than [`MOST_UNSENT`] bytes wait
//!   to be sent, or while the pool is empty: a client that does not read its replies is no longer read.
//! * A request gets all its memory at once or none, so that clients that each hold a part cannot block each
//!   other for ever; a stalled client is disconnected ([`crate::watch`]).
//! * A query of block status is answered in a turn of the executor of its own, for every client.
//! * A write that was let in is not refused later: it holds a permit until it completes.
//! * After the end was decided no more bytes are parsed; requests in flight are finished and their replies
//!   sent.

mod blocks;
mod device;
mod reply;
mod write;

use std::cell::Cell;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use braid_block::{Extent, Flags, Io, Span};
use braid_engine::{Dev, InFlight, Offered};
use braid_mem::Pool;
use braid_nbd::protocol::{self, CheckedRequest, Command, ExportInfo, Negotiated, ParsedHeader};

use self::blocks::Blocks;
use self::write::{Admitted, Write};
use crate::canary::Canary;
use crate::counters::{Counters, Counts};
use crate::end::End;
use crate::outbox::Outbox;
use crate::overlaps::Lane;
use crate::payload::{PIECE, get_payload};
use crate::stop::{Stop, end_of};
use crate::watch::{Owes, Watch};
use braid_tls::Inbox;
use braid_uring::Stream;

/// Requests of one connection under way at once.
const MOST_IN_FLIGHT: usize = 128;
/// Bytes of replies that may wait to be sent: beyond, they are sent before more are made, while
/// they are still in the processor's cache, and while the client has something to do.
const MOST_UNSENT: usize = 512 << 10;
/// Bytes of memory that one connection's requests and replies may hold when another request is
/// taken.
const MOST_HELD: u64 = 8 << 20;

/// The parts of a session.
pub(crate) struct Parts<S> {
    pub(crate) stream: S,
    pub(crate) dev: Dev,
    /// The number of changes of the offered device that `dev` reflects.
    pub(crate) changes: u64,
    pub(crate) offered: Offered,
    /// Keeps its writes apart from those of parts of blocks.
    pub(crate) lane: Lane,
    pub(crate) pool: Pool,
    pub(crate) export: Arc<ExportInfo>,
    /// The client is told when the export changes.
    pub(crate) is_told: bool,
    pub(crate) negotiated: Negotiated,
    pub(crate) stall_limit: Duration,
    pub(crate) stop: Stop,
    /// Raised when its place is needed.
    pub(crate) closed: Stop,
    /// Since when nothing of it is under way.
    pub(crate) idle: Rc<Cell<Option<Instant>>>,
    pub(crate) counters: Arc<Counters>,
}

pub(crate) struct Session<S: Stream> {
    parts: Parts<S>,
    inbox: Inbox,
    receiving: Option<S::Receive>,
    /// The write whose payload has not all come.
    incoming: Option<Write>,
    /// Bytes of a refused payload to throw away, and what is answered then.
    drain: usize,
    refused: Vec<u8>,
    in_flight: InFlight<(CheckedRequest, Option<Admitted>)>,
    outbox: Outbox,
    writable: Option<Wait<io::Result<()>>>,
    /// The answer to a question for block status; requests behind it wait.
    status: Option<Wait<Vec<Extent>>>,
    watch: Watch<S>,
    stopped: Wait<End>,
    end: Option<End>,
    counts: Counts,
    received_bytes: u64,
    sent_bytes: u64,
    /// Bytes of requests in flight.
    in_flight_bytes: u64,
}

pub(crate) type Wait<T> = Pin<Box<dyn Future<Output = T>>>;

/// Why parsing stopped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Held {
    /// More bytes are needed.
    Starved,
    /// [`MOST_IN_FLIGHT`].
    InFlight,
    /// [`MOST_UNSENT`] or [`MOST_HELD`].
    Unsent,
    /// The pool is spent, or others have their turn; either wakes this task.
    Others,
    /// The end was decided.
    Ending,
}

impl<S: Stream> Future for Session<S> {
    type Output = End;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<End> {
        let poll = self.turn(cx);
        let session = &mut *self;
        let worked = session.counts != Counts::default();
        session.parts.counters.add(&mut session.counts);
        let is_idle = session.owes(Held::Starved) == Owes::Nothing && session.in_flight.is_empty();
        let since = session.parts.idle.get().filter(|_| !worked);
        session.parts.idle.set(is_idle.then(|| since.unwrap_or_else(Instant::now)));
        poll
    }
}

impl<S: Stream> Session<S> {
    /// A session whose first bytes are `inbox`'s.
    pub(crate) fn new(parts: Parts<S>, inbox: Inbox) -> Session<S> {
        let (stop, closed) = (parts.stop.clone(), parts.closed.clone());
        let watch = Watch::new(parts.stream.clone(), parts.pool.clone(), parts.stall_limit);
        Session {
            parts,
            inbox,
            receiving: None,
            incoming: None,
            drain: 0,
            refused: Vec::new(),
            in_flight: InFlight::new(MOST_IN_FLIGHT),
            outbox: Outbox::default(),
            writable: None,
            status: None,
            watch,
            stopped: Box::pin(end_of(stop, closed)),
            end: None,
            counts: Counts::default(),
            received_bytes: 0,
            sent_bytes: 0,
            in_flight_bytes: 0,
        }
    }

    /// Turns until nothing can move.
    fn turn(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        if self.end.is_none()
            && let Poll::Ready(end) = self.stopped.as_mut().poll(cx)
        {
            self.end = Some(end);
        }
        let requests = self.counts.requests;
        loop {
            let held = self.parse(cx);
            let completed = self.take_completions(cx);
            if let Err(error) = self.send(cx) {
                return Poll::Ready(End::Failed(error));
            }
            let moved = match held {
                Held::Starved => match self.poll_receive(cx) {
                    Poll::Ready(Ok(())) => true,
                    Poll::Ready(Err(end)) => {
                        self.end = Some(end);
                        true
                    }
                    Poll::Pending => false,
                },
                Held::InFlight => completed,
                Held::Unsent => !self.holds_much(),
                Held::Others => false,
                Held::Ending if self.in_flight.is_empty() && self.outbox.is_empty() => {
                    return Poll::Ready(self.end.take().unwrap_or(End::Disconnected));
                }
                Held::Ending => false,
            };
            if !moved {
                if self.counts.requests > requests + 1 || self.writable.is_some() {
                    self.parts.stream.prefer_sleep();
                }
                let moved_bytes = self.received_bytes + self.sent_bytes;
                return self.watch.poll(self.owes(held), moved_bytes, cx).map(End::Stalled);
            }
        }
    }

    /// Starts every request that has come whole.
    fn parse(&mut self, cx: &mut Context<'_>) -> Held {
        loop {
            if self.end.is_some() {
                return Held::Ending;
            }
            if self.receiving.is_some() || !self.take_payload() {
                return Held::Starved;
            }
            if self.in_flight.is_full() {
                return Held::InFlight;
            }
            if self.holds_much() {
                return Held::Unsent;
            }
            let mode = self.parts.negotiated.header_mode();
            let raw = match protocol::parse(mode, self.inbox.bytes()) {
                ParsedHeader::NeedMore => return Held::Starved,
                ParsedHeader::BadMagic(magic) => {
                    self.end = Some(End::BadMagic(magic));
                    return Held::Ending;
                }
                ParsedHeader::Request(raw) => raw,
            };
            if self.parts.changes != self.parts.offered.changes() {
                self.follow();
            }
            match protocol::check(&raw, &self.parts.export, &self.parts.negotiated) {
                Ok(request) => {
                    if self.begin(request, cx).is_pending() {
                        return Held::Others;
                    }
                }
                Err(refusal) => self.refuse(refusal),
            }
            self.counts.requests += 1;
            self.inbox.consume(mode.request_bytes());
        }
    }

    /// Returns true if replies must be sent, or requests complete, before more are taken.
    fn holds_much(&self) -> bool {
        self.outbox.len() > MOST_UNSENT
            || self.outbox.len() as u64 + self.in_flight_bytes > MOST_HELD
    }

    /// Acts on a request; pending if there is no memory for it now, or it is not its turn.
    fn begin(&mut self, request: CheckedRequest, cx: &mut Context<'_>) -> Poll<()> {
        match request.command {
            Command::Read { offset, length, .. } => {
                let blocks =
                    Blocks::of(offset, length.into(), self.parts.dev.limits().logical_block);
                let pool = &self.parts.pool;
                let Poll::Ready(payload) = get_payload(pool, blocks.span.len, PIECE, cx) else {
                    return Poll::Pending;
                };
                self.counts.read_bytes += u64::from(length);
                self.start(request, None, Io::read(blocks.span.offset, payload));
            }
            Command::Write { length, .. }
                if self.parts.offered.is_locked() && !Canary::LockedIsWritten.is_planted() =>
            {
                self.refuse_locked(request, length);
            }
            Command::Write { offset, length, fua } => {
                return self.begin_write(request, (offset, length), fua, cx);
            }
            Command::Flush => self.start(request, None, Io::flush()),
            Command::Trim { offset, length, fua } => {
                let block = self.parts.dev.limits().logical_block;
                // A hint, for the blocks that are all of it.
                let inside = Blocks::of(offset, length, block).inside();
                self.start_modifying(request, Io::discard(inside, fua_flag(fua)));
            }
            Command::WriteZeroes { offset, length, fua, no_hole, .. } => {
                let keep = if no_hole { Flags::NO_UNMAP } else { Flags::NONE };
                let flags = fua_flag(fua).union(keep);
                return self.start_zeroes(request, (offset, length), flags, cx);
            }
            // A hint, for which nothing in the stack has a use.
            Command::Cache { .. } => self.reply_ok(request),
            Command::BlockStatus { offset, length, one_extent } => {
                let span = Span::new(offset, length);
                let mut status = self.status.take().unwrap_or_else(|| self.ask_status(span));
                let Poll::Ready(extents) = status.as_mut().poll(cx) else {
                    self.status = Some(status);
                    return Poll::Pending;
                };
                self.reply_status(request, span, one_extent, &extents);
            }
            Command::Disconnect => self.end = Some(End::Disconnected),
        }
        Poll::Ready(())
    }

    fn take_completions(&mut self, cx: &mut Context<'_>) -> bool {
        let mut any = false;
        while let Poll::Ready(((request, _), completion)) = self.in_flight.poll_next(cx) {
            self.in_flight_bytes -= data_bytes(&request.command);
            self.reply(request, completion);
            any = true;
        }
        any
    }

    /// Sends what the socket takes; waits for room if that is not all.
    fn send(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        loop {
            if let Some(writable) = &mut self.writable {
                match writable.as_mut().poll(cx) {
                    Poll::Ready(result) => result?,
                    Poll::Pending => return Ok(()),
                }
                self.writable = None;
            }
            let before = self.outbox.len();
            let (sends, sent) = self.outbox.send(&self.parts.stream);
            self.counts.sends += sends;
            self.sent_bytes += (before - self.outbox.len()) as u64;
            if sent? {
                return Ok(());
            }
            self.writable = Some(Box::pin(self.parts.stream.writable()));
        }
    }

    /// Receives more: into the payload that is incomplete, or into the inbox.
    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), End>> {
        let stream = &self.parts.stream;
        let receiving = match (&mut self.receiving, &mut self.incoming) {
            (Some(receiving), _) => receiving,
            (none, Some(write)) => none.insert(write.incoming.receive(stream)),
            (none, None) => none.insert(self.inbox.receive(stream)),
        };
        let Poll::Ready((result, buf)) = Pin::new(receiving).poll(cx) else {
            return Poll::Pending;
        };
        self.receiving = None;
        let count = match &result {
            Ok(count) => *count,
            Err(_) => 0,
        };
        match &mut self.incoming {
            Some(write) => write.incoming.received(buf, count),
            None => self.inbox.received(buf, count),
        }
        match result {
            Ok(0) if self.is_inside_request() => return Poll::Ready(Err(End::Truncated)),
            Ok(0) => return Poll::Ready(Err(End::Disconnected)),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Poll::Ready(Err(End::Failed(error))),
        }
        self.counts.receives += 1;
        self.received_bytes += count as u64;
        Poll::Ready(Ok(()))
    }

    fn is_inside_request(&self) -> bool {
        self.incoming.is_some() || self.drain > 0 || self.inbox.has_unparsed()
    }

    /// Returns the client's next duty, before this session can continue or free memory. A complete request that
    /// waits here, for memory or for others, is not the client's debt.
    fn owes(&self, held: Held) -> Owes {
        match held {
            Held::Starved if self.is_inside_request() => Owes::Message,
            // The end of the session waits for it, so the client must hurry.
            Held::Ending if !self.outbox.is_empty() => Owes::Message,
            _ if !self.outbox.is_empty() => Owes::Reading,
            _ => Owes::Nothing,
        }
    }
}

/// Bytes of memory that a request holds while it is in flight.
fn data_bytes(command: &Command) -> u64 {
    match command {
        Command::Read { length, .. } | Command::Write { length, .. } => u64::from(*length),
        _ => 0,
    }
}

fn fua_flag(fua: bool) -> Flags {
    if fua && !Canary::FuaLost.is_planted() { Flags::FUA } else { Flags::NONE }
}
