//! The journal: acknowledged changes that no flush has covered yet, with their data.
//!
//! ```text
//!   entries   [ write 7 | zeroes 8 | write 9 | discard 10 ]     in the order of their acknowledgement
//!   bytes     [■■■■■■■■■            ■■■■■■■■               ]     a ring: forgotten from the front
//!                ▲ a flush that began behind 8 forgets 7 and 8
//! ```
//!
//! A server that was started again may have lost what it did not flush. The journal is repeated to it then, so that an
//! acknowledged write is lost neither by the server's process nor by its machine.
//!
//! Invariants
//! * The room of a change is reserved before it is sent, so that its acknowledgement always finds room.
//! * [`Journal::pieces`] never overlap: of each byte the last change alone is repeated. An older change of bytes that
//!   are durable by now is not put on top of them, not even for a moment.
//!
//! Deliberately absent: the journal does not survive braid. A client's flush does.

use std::collections::{BTreeMap, VecDeque};

use braid_block::{Flags, Op, Payload, Span};

/// Most changes at once.
const MOST: usize = 1 << 14;

/// A change that is to be repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) op: Op,
    pub(crate) flags: Flags,
    pub(crate) span: Span,
    /// The bytes of a write.
    pub(crate) bytes: Vec<u8>,
}

struct Entry {
    op: Op,
    flags: Flags,
    span: Span,
    /// Number of bytes that were pushed before this change's.
    start: u64,
}

/// See the module.
pub(crate) struct Journal {
    ring: Vec<u8>,
    entries: VecDeque<Entry>,
    /// Number of changes that were forgotten.
    forgotten: u64,
    /// Bytes that were pushed and forgotten since the beginning.
    pushed: u64,
    dropped: u64,
    /// Room of changes that are not acknowledged yet.
    reserved_bytes: u64,
    reserved: usize,
}

impl Journal {
    /// Makes a journal for `bytes` of data.
    pub(crate) fn new(bytes: usize) -> Journal {
        Journal {
            ring: vec![0; bytes],
            entries: VecDeque::new(),
            forgotten: 0,
            pushed: 0,
            dropped: 0,
            reserved_bytes: 0,
            reserved: 0,
        }
    }

    /// Reserves room for a change with `len` bytes of data; returns false if there is none.
    pub(crate) fn reserve(&mut self, len: u64) -> bool {
        let bytes = self.pushed - self.dropped + self.reserved_bytes + len;
        if bytes > self.ring.len() as u64 || self.entries.len() + self.reserved >= MOST {
            return false;
        }
        self.reserved_bytes += len;
        self.reserved += 1;
        true
    }

    /// Gives up room that was reserved.
    pub(crate) fn release(&mut self, len: u64) {
        self.reserved_bytes -= len;
        self.reserved -= 1;
    }

    /// Adds an acknowledged change, whose room was reserved.
    pub(crate) fn push(&mut self, op: Op, flags: Flags, span: Span, payload: &Payload) {
        self.release(payload.len());
        self.entries.push_back(Entry { op, flags, span, start: self.pushed });
        for buf in payload.bufs() {
            let mut bytes = &buf[..];
            while !bytes.is_empty() {
                let at = (self.pushed % self.ring.len() as u64) as usize;
                let len = bytes.len().min(self.ring.len() - at);
                self.ring[at..at + len].copy_from_slice(&bytes[..len]);
                self.pushed += len as u64;
                bytes = &bytes[len..];
            }
        }
    }

    /// Returns the number of changes so far: all of them are covered by a flush that begins now.
    pub(crate) fn mark(&self) -> u64 {
        self.forgotten + self.entries.len() as u64
    }

    /// Forgets the changes before `mark`, which are durable.
    pub(crate) fn forget(&mut self, mark: u64) {
        while self.forgotten < mark && self.entries.pop_front().is_some() {
            self.forgotten += 1;
        }
        self.dropped = self.entries.front().map_or(self.pushed, |entry| entry.start);
    }

    /// Returns true if a flush should make room.
    pub(crate) fn is_filling(&self) -> bool {
        (self.pushed - self.dropped) * 2 >= self.ring.len() as u64 || self.entries.len() * 2 >= MOST
    }

    /// Returns the pieces to be repeated: of each byte the last change, unless it is in `newer`.
    pub(crate) fn pieces(&self, newer: impl IntoIterator<Item = Span>) -> Vec<Piece> {
        let mut covered = Covered::default();
        newer.into_iter().for_each(|span| drop(covered.add(span)));
        let mut pieces = Vec::new();
        for entry in self.entries.iter().rev() {
            for span in covered.add(entry.span) {
                let Entry { op, flags, .. } = *entry;
                let bytes = match op {
                    Op::Write => {
                        self.bytes(entry.start + (span.offset - entry.span.offset), span.len)
                    }
                    _ => Vec::new(),
                };
                pieces.push(Piece { op, flags, span, bytes });
            }
        }
        pieces
    }

    fn bytes(&self, start: u64, len: u64) -> Vec<u8> {
        let size = self.ring.len() as u64;
        (start..start + len).map(|at| self.ring[(at % size) as usize]).collect()
    }
}

/// Ranges, by their starts; they neither overlap nor touch an end that was cut.
#[derive(Default)]
struct Covered(BTreeMap<u64, u64>);

impl Covered {
    /// Adds `span`, and returns the parts of it that were not there.
    fn add(&mut self, span: Span) -> Vec<Span> {
        let mut new = Vec::new();
        let (mut at, end) = (span.offset, span.end());
        if let Some((_, before)) = self.0.range(..=at).next_back() {
            at = at.max(*before);
        }
        while at < end {
            let next = self.0.range(at..end).next().map(|(start, end)| (*start, *end));
            let (stop, behind) = next.unwrap_or((end, end));
            if stop > at {
                new.push(Span::new(at, stop - at));
            }
            at = behind;
        }
        self.0.extend(new.iter().map(|span| (span.offset, span.end())));
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use braid_mem::Buf;
    use braid_seed::Rng;

    const SIZE: usize = 64;

    /// Any changes and flushes: repeating the pieces in any order leads to what was acknowledged.
    #[test]
    fn the_pieces_are_the_last_change_of_each_byte() {
        let mut rng = Rng::new(1);
        for _ in 0..2000 {
            let mut journal = Journal::new(96);
            let (mut server, mut durable) = (vec![0_u8; SIZE], vec![0_u8; SIZE]);
            for step in 1..40_u8 {
                let offset = rng.below(SIZE as u64 - 1);
                let len = 1 + rng.below((SIZE as u64 - offset).min(20));
                let span = Span::new(offset, len);
                let range = offset as usize..(offset + len) as usize;
                if rng.below(6) == 0 {
                    journal.forget(journal.mark());
                    durable.clone_from(&server);
                } else if rng.below(4) == 0 && journal.reserve(0) {
                    journal.push(Op::WriteZeroes, Flags::NONE, span, &Payload::None);
                    server[range].fill(0);
                } else if journal.reserve(len) {
                    let mut buf = Buf::apart(len as usize).expect("memory");
                    buf.fill(step);
                    journal.push(Op::Write, Flags::NONE, span, &Payload::One(buf));
                    server[range].fill(step);
                }
            }
            let mut pieces = journal.pieces([]);
            while !pieces.is_empty() {
                let piece = pieces.swap_remove(rng.below(pieces.len() as u64) as usize);
                let range = piece.span.offset as usize..piece.span.end() as usize;
                match piece.op {
                    Op::Write => durable[range].copy_from_slice(&piece.bytes),
                    _ => durable[range].fill(0),
                }
            }
            assert_eq!(durable, server);
        }
    }

    #[test]
    fn newer_changes_are_left_out_and_room_comes_back() {
        let mut journal = Journal::new(8);
        assert!(journal.reserve(8));
        assert!(!journal.reserve(1));
        let mut buf = Buf::apart(8).expect("memory");
        buf.copy_from_slice(b"abcdefgh");
        journal.push(Op::Write, Flags::NONE, Span::new(100, 8), &Payload::One(buf));
        assert!(journal.is_filling());
        let pieces = journal.pieces([Span::new(102, 3)]);
        let found: Vec<_> = pieces.iter().map(|one| (one.span.offset, &one.bytes[..])).collect();
        assert_eq!(found, [(100, &b"ab"[..]), (105, &b"fgh"[..])]);
        journal.forget(journal.mark());
        assert!(journal.pieces([]).is_empty() && journal.reserve(8));
    }
}
