//! Which bytes of a member's ring hold records that may still be needed.
//!
//! ```text
//!   0                                       size
//!   | free | live 7 | live 8 | live 9 | free |      the next goes behind 9, or to 0 where it does
//!          ^ oldest                   ^ next        not fit before the end; never over a live one
//! ```
//!
//! Absent on purpose: knowledge of which sequences are done, which is that of the whole array.

use std::collections::VecDeque;

use super::{BLOCK, padded};

/// A member's ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ring {
    size: u64,
    next: u64,
    /// In the order of their places, the oldest first.
    live: VecDeque<Live>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Live {
    sequence: u64,
    start: u64,
}

impl Ring {
    /// An empty ring of `size` bytes ([`Head::ring`](super::Head::ring)).
    ///
    /// # Panics
    /// If that is not a multiple of [`BLOCK`].
    #[must_use]
    pub fn new(size: u64) -> Ring {
        assert!(size.is_multiple_of(BLOCK as u64), "a ring of {size} bytes");
        Ring { size, next: 0, live: VecDeque::new() }
    }

    /// The longest payload that fits an empty ring.
    #[must_use]
    pub fn most_payload(&self) -> u64 {
        self.size.saturating_sub(BLOCK as u64)
    }

    /// Returns the place of the record of this sequence, with a payload of `payload_len` bytes, in bytes from
    /// the ring's start; the record is live then. `None` if there is no room until records are retired, or, in
    /// an empty ring, at all.
    pub fn place(&mut self, sequence: u64, payload_len: u64) -> Option<u64> {
        let len = padded(payload_len) + BLOCK as u64;
        let start = self.room_for(len)?;
        self.live.push_back(Live { sequence, start });
        self.next = start + len;
        Some(start)
    }

    /// Returns true if a record with such a payload has room now.
    #[must_use]
    pub fn has_room(&self, payload_len: u64) -> bool {
        self.room_for(padded(payload_len) + BLOCK as u64).is_some()
    }

    fn room_for(&self, len: u64) -> Option<u64> {
        let next = self.next;
        let (to_end, from_start) = match self.live.front() {
            None => (self.size - next, self.size),
            // The live ones lie in one piece, which may begin at 0.
            Some(oldest) if oldest.start < next => (self.size - next, oldest.start),
            // They go over the end.
            Some(oldest) => (oldest.start - next, 0),
        };
        if len <= to_end { Some(next) } else { (len <= from_start).then_some(0) }
    }

    /// Frees the records of sequences below `tail`. Only once heads with this tail are durable on
    /// every member that is in sync: what is freed is written over. A record whose place is
    /// behind a live one of another sequence stays until that one is freed.
    pub fn retire_below(&mut self, tail: u64) {
        while self.live.front().is_some_and(|oldest| oldest.sequence < tail) {
            self.live.pop_front();
        }
    }

    /// The sequences of live records, in the order of their places.
    pub fn live(&self) -> impl Iterator<Item = u64> + '_ {
        self.live.iter().map(|live| live.sequence)
    }

    /// Bytes from the oldest live record to where the next would go.
    #[must_use]
    pub fn used(&self) -> u64 {
        match self.live.front() {
            None => 0,
            Some(oldest) if oldest.start < self.next => self.next - oldest.start,
            Some(oldest) => self.size - oldest.start + self.next,
        }
    }
}
