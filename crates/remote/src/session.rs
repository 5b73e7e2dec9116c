//! The requests of a remote member, apart from the connections that carry them.
//!
//! ```text
//!              connected                     all repeated
//!   down ──────────────────▶ repeating ─────────────────────▶ up ── next() ──▶ sent ── answered()
//!    ▲ requests are held       1. changes whose outcome is      │
//!    │ until the deadline         unknown   2. the journal      │
//!    └────────────────────────────── lost ◀─────────────────────┘
//! ```
//!
//! Invariants
//! * Nothing is sent while changes are repeated. So a change whose outcome is unknown is carried out before any later
//!   request to its range.
//! * Changes in flight do not overlap. So the order in which the server carried them out is the journal's.
//! * A flush covers the changes that were acknowledged when it was sent.
//! * A request is answered once: by the server, or with `ETIMEDOUT` for it.
//! * After a flush failed, or a change could not be repeated, every flush fails: data may be lost.
//!
//! Deliberately absent: connections, bytes, clocks; `now` is an argument. A server that works on a connection which the
//! client has given up may carry out an old change late; NBD has no way to forbid that.

mod expiry;
mod slot;
pub(crate) mod status;

use std::collections::VecDeque;
use std::task::Waker;
use std::time::Duration;

use braid_block::{Completion, Errno, Flags, Io, Op, Payload, Span};
use slab::Slab;

use crate::journal::{Journal, Piece};
pub(crate) use slot::{Ask, Fault, Outgoing};
use slot::{Counted, Owner, Phase, Slot, State};

/// See the module.
pub(crate) struct Session {
    slots: Slab<Slot>,
    turn: u32,
    held: VecDeque<usize>,
    ready: VecDeque<usize>,
    /// Changes between their admission and their answer.
    changing: Vec<(usize, Span)>,
    /// `None` for a server that cannot flush: nothing could ever be forgotten.
    journal: Option<Journal>,
    makes_room: bool,
    phase: Phase,
    /// The deadline has passed without a connection: requests fail at once.
    gave_up: bool,
    lost: Option<Errno>,
    deadline: Duration,
    /// Bytes of the member's smallest request.
    block: u64,
    counted: Counted,
}

impl Session {
    /// Makes a session without a connection, for requests of whole blocks of `block` bytes, with a journal of `journal`
    /// bytes; 0 for none.
    pub(crate) fn new(now: Duration, deadline: Duration, journal: usize, block: u32) -> Session {
        Session {
            slots: Slab::with_capacity(256),
            turn: 0,
            held: VecDeque::with_capacity(256),
            ready: VecDeque::with_capacity(256),
            changing: Vec::with_capacity(256),
            journal: (journal > 0).then(|| Journal::new(journal)),
            makes_room: false,
            phase: Phase::Down(now),
            gave_up: false,
            lost: None,
            deadline,
            block: block.into(),
            counted: Counted::default(),
        }
    }

    pub(crate) fn counted(&self) -> Counted {
        self.counted
    }

    pub(crate) fn is_down(&self) -> bool {
        matches!(self.phase, Phase::Down(_))
    }

    /// Returns the time since which the oldest request waits that is not answered.
    pub(crate) fn waiting_since(&self) -> Option<Duration> {
        let waits = |slot: &&Slot| !matches!(slot.state, State::Done(_));
        self.slots.iter().map(|(_, slot)| slot).filter(waits).map(|slot| slot.started).min()
    }

    /// Takes in a request, and returns its number.
    pub(crate) fn submit(&mut self, now: Duration, io: Io) -> u32 {
        let Io { op, flags, span, payload } = io;
        let id = self.insert(now, Ask::Io(op), flags, span, payload, Owner::Caller(None));
        self.begin(id)
    }

    fn begin(&mut self, id: usize) -> u32 {
        if self.gave_up {
            self.counted.overdue += 1;
            self.slots[id].state = State::Done(Err(Errno::TIMEDOUT));
        } else if self.phase == Phase::Up && self.admit(id, self.held.len()) {
            self.ready(id);
        } else {
            self.held.push_back(id);
        }
        u32::try_from(id).expect("fewer requests than there is memory for")
    }

    fn insert(
        &mut self,
        now: Duration,
        ask: Ask,
        flags: Flags,
        span: Span,
        payload: Payload,
        owner: Owner,
    ) -> usize {
        self.turn = self.turn.wrapping_add(1);
        self.slots.insert(Slot {
            ask,
            flags,
            span,
            payload,
            owner,
            state: State::Held,
            started: now,
            turn: self.turn,
            is_repeat: false,
            received: Vec::new(),
            extents: Vec::new(),
            error: None,
        })
    }

    /// Returns true if request `id` may be sent now: it does not change a range that a change in flight, or one of the
    /// first `before` held ones, changes, and the journal has room for it.
    fn admit(&mut self, id: usize, before: usize) -> bool {
        let Slot { ask, span, ref payload, .. } = self.slots[id];
        if !ask.is_modifying() {
            return true;
        }
        let mut older = self.held.iter().take(before).map(|id| &self.slots[*id]);
        if self.changing.iter().any(|(_, other)| other.overlaps(span))
            || older.any(|other| other.ask.is_modifying() && other.span.overlaps(span))
        {
            return false;
        }
        let len = payload.len();
        if self.journal.as_mut().is_some_and(|journal| !journal.reserve(len)) {
            return false;
        }
        self.changing.push((id, span));
        true
    }

    fn ready(&mut self, id: usize) {
        self.slots[id].state = State::Ready;
        self.ready.push_back(id);
    }

    /// Makes ready what was held and may be sent now.
    fn release(&mut self, now: Duration) {
        if self.phase != Phase::Up {
            return;
        }
        let mut at = 0;
        while let Some(&id) = self.held.get(at) {
            if self.admit(id, at) {
                self.held.remove(at);
                self.ready(id);
            } else {
                at += 1;
            }
        }
        if !self.makes_room && self.journal.as_ref().is_some_and(Journal::is_filling) {
            self.makes_room = true;
            let (span, none) = (Span::default(), Payload::None);
            let flush = Ask::Io(Op::Flush);
            let id = self.insert(now, flush, Flags::NONE, span, none, Owner::Room);
            self.ready(id);
        }
    }

    /// Returns the next request that is to be sent.
    pub(crate) fn next(&mut self, now: Duration) -> Option<Outgoing> {
        let id = self.ready.pop_front()?;
        let mark = self.journal.as_ref().map_or(0, Journal::mark);
        let slot = &mut self.slots[id];
        slot.state = State::Sent { at: now, mark };
        let cookie = u64::from(slot.turn) << 32 | id as u64;
        Some(Outgoing { cookie, ask: slot.ask, flags: slot.flags, span: slot.span })
    }

    fn id_of(&self, cookie: u64) -> Result<usize, Fault> {
        let id = (cookie & 0xffff_ffff) as usize;
        let slot = self.slots.get(id).ok_or(Fault::UnknownCookie)?;
        let is_it =
            u64::from(slot.turn) == cookie >> 32 && matches!(slot.state, State::Sent { .. });
        if is_it { Ok(id) } else { Err(Fault::UnknownCookie) }
    }

    /// Calls `with` for the bytes of the write `cookie`, piece by piece.
    pub(crate) fn bytes<'a>(&'a self, cookie: u64, with: &mut dyn FnMut(&'a [u8])) {
        let Ok(id) = self.id_of(cookie) else { return };
        let slot = &self.slots[id];
        match &slot.owner {
            Owner::Journal(bytes) => with(bytes),
            _ if slot.ask == Ask::Io(Op::Write) => {
                slot.payload.bufs().iter().for_each(|buf| with(buf))
            }
            _ => {}
        }
    }

    /// Returns the range of the read `cookie`.
    pub(crate) fn span_of_read(&self, cookie: u64) -> Result<Option<Span>, Fault> {
        let slot = &self.slots[self.id_of(cookie)?];
        Ok((slot.ask == Ask::Io(Op::Read)).then_some(slot.span))
    }

    /// Announces that `span` of the read `cookie` comes next.
    pub(crate) fn expect(&mut self, cookie: u64, span: Span) -> Result<(), Fault> {
        let id = self.id_of(cookie)?;
        let slot = &mut self.slots[id];
        if slot.ask != Ask::Io(Op::Read) {
            return Err(Fault::DataWithoutRead);
        }
        let end = span.offset.checked_add(span.len).ok_or(Fault::StrayData)?;
        let is_within = span.offset >= slot.span.offset && end <= slot.span.end();
        if !is_within || slot.received.iter().any(|other| other.overlaps(span)) {
            return Err(Fault::StrayData);
        }
        match slot.received.last_mut() {
            Some(last) if last.end() == span.offset => last.len += span.len,
            _ => slot.received.push(span),
        }
        Ok(())
    }

    /// Puts `bytes`, which were announced, at `offset` of the member into the read `cookie`.
    pub(crate) fn fill(&mut self, cookie: u64, offset: u64, bytes: &[u8]) -> Result<(), Fault> {
        let id = self.id_of(cookie)?;
        let slot = &mut self.slots[id];
        let mut at = usize::try_from(offset - slot.span.offset).map_err(|_| Fault::StrayData)?;
        let mut rest = bytes;
        for buf in slot.payload.bufs_mut() {
            if at >= buf.len() {
                at -= buf.len();
                continue;
            }
            let len = rest.len().min(buf.len() - at);
            buf[at..at + len].copy_from_slice(&rest[..len]);
            (rest, at) = (&rest[len..], 0);
            if rest.is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// Notes an error of a part of the answer to `cookie`.
    pub(crate) fn note_error(&mut self, cookie: u64, errno: Errno) -> Result<(), Fault> {
        let id = self.id_of(cookie)?;
        self.slots[id].error.get_or_insert(errno);
        Ok(())
    }

    /// Takes in the end of the answer to `cookie`, and returns the time that it took.
    pub(crate) fn answered(&mut self, now: Duration, cookie: u64) -> Result<Duration, Fault> {
        let id = self.id_of(cookie)?;
        let slot = &self.slots[id];
        let result = slot.error.map_or(Ok(()), Err);
        let State::Sent { at, mark } = slot.state else { return Err(Fault::UnknownCookie) };
        let received: u64 = slot.received.iter().map(|span| span.len).sum();
        if slot.ask == Ask::Io(Op::Read) && result.is_ok() && received != slot.span.len {
            return Err(Fault::ShortRead);
        }
        if slot.ask == Ask::Status && result.is_ok() && slot.extents.is_empty() {
            return Err(Fault::StrayStatus);
        }
        self.conclude(id, result, mark);
        self.release(now);
        Ok(now.saturating_sub(at))
    }

    /// Completes `id` with the server's answer.
    fn conclude(&mut self, id: usize, result: Result<(), Errno>, mark: u64) {
        let slot = &self.slots[id];
        let (ask, flags, span, is_repeat) = (slot.ask, slot.flags, slot.span, slot.is_repeat);
        let is_of_journal = matches!(slot.owner, Owner::Journal(_));
        let mut result = result;
        if let Ask::Io(op) = ask
            && op.is_modifying()
            && !is_of_journal
        {
            self.changing.retain(|(other, _)| *other != id);
            if let Some(journal) = &mut self.journal {
                match result {
                    Ok(()) => journal.push(op, flags, span, &self.slots[id].payload),
                    Err(_) => journal.release(self.slots[id].payload.len()),
                }
            }
        }
        if ask == Ask::Io(Op::Flush) {
            if let Err(errno) = result {
                self.lose(errno);
            } else if let Some(journal) = &mut self.journal {
                journal.forget(mark);
            }
            result = self.lost.map_or(result, Err);
        }
        if let (true, Err(errno)) = (is_of_journal, result) {
            self.lose(errno);
        }
        if let (true, Phase::Repeating(count)) = (is_repeat, self.phase) {
            self.phase = if count > 1 { Phase::Repeating(count - 1) } else { Phase::Up };
        }
        self.finish(id, result);
    }

    /// Data may be lost: nothing that is kept helps any more.
    fn lose(&mut self, errno: Errno) {
        self.lost.get_or_insert(errno);
        if let Some(journal) = &mut self.journal {
            journal.forget(journal.mark());
        }
    }

    fn finish(&mut self, id: usize, result: Result<(), Errno>) {
        let slot = &mut self.slots[id];
        match &mut slot.owner {
            Owner::Caller(waker) => {
                let waker = waker.take();
                slot.state = State::Done(result);
                waker.into_iter().for_each(Waker::wake);
            }
            Owner::Room => {
                self.makes_room = false;
                self.slots.remove(id);
            }
            Owner::None | Owner::Journal(_) => drop(self.slots.remove(id)),
        }
    }

    /// Returns the completion of request `id` if it is there; otherwise keeps the waker.
    pub(crate) fn take(&mut self, id: u32, waker: &Waker) -> Option<Completion> {
        let id = id as usize;
        let slot = &mut self.slots[id];
        if let State::Done(result) = slot.state {
            let payload = self.slots.remove(id).payload;
            return Some(Completion { result, payload });
        }
        slot.owner = Owner::Caller(Some(waker.clone()));
        None
    }

    /// The caller of request `id` has gone.
    pub(crate) fn abandon(&mut self, id: u32) {
        let id = id as usize;
        match self.slots[id].state {
            State::Done(_) => drop(self.slots.remove(id)),
            _ => self.slots[id].owner = Owner::None,
        }
    }

    /// All connections are gone.
    pub(crate) fn lost(&mut self, now: Duration) {
        self.phase = Phase::Down(now);
        self.ready.clear();
        let mut again = Vec::new();
        for id in self.slots.iter().map(|(id, _)| id).collect::<Vec<_>>() {
            let slot = &mut self.slots[id];
            if !matches!(slot.state, State::Ready | State::Sent { .. }) {
                continue;
            }
            slot.received.clear();
            slot.extents.clear();
            slot.error = None;
            match slot.owner {
                Owner::Journal(_) => drop(self.slots.remove(id)),
                Owner::Room => {
                    self.makes_room = false;
                    self.slots.remove(id);
                }
                _ if slot.ask.is_modifying() => {
                    let was_sent = matches!(slot.state, State::Sent { .. });
                    self.counted.repeated += u64::from(was_sent);
                    slot.state = State::Unknown;
                }
                _ => {
                    slot.state = State::Held;
                    again.push(id);
                }
            }
        }
        again.sort_by_key(|id| self.slots[*id].started);
        again.into_iter().rev().for_each(|id| self.held.push_front(id));
    }

    /// There is a connection again.
    pub(crate) fn connected(&mut self, now: Duration) {
        self.gave_up = false;
        let unknown: Vec<usize> = self.changing.iter().map(|(id, _)| *id).collect();
        let newer = self.changing.iter().map(|(_, span)| *span);
        let pieces = self.journal.as_ref().map_or_else(Vec::new, |journal| journal.pieces(newer));
        self.phase = match unknown.len() + pieces.len() {
            0 => Phase::Up,
            count => Phase::Repeating(count),
        };
        self.counted.repeated += pieces.len() as u64;
        for Piece { op, flags, span, bytes } in pieces {
            let owner = Owner::Journal(bytes);
            let id = self.insert(now, Ask::Io(op), flags, span, Payload::None, owner);
            self.slots[id].is_repeat = true;
            self.ready(id);
        }
        for id in unknown {
            self.slots[id].is_repeat = true;
            self.ready(id);
        }
        self.release(now);
    }
}
