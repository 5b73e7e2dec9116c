//! Where records lie in a log's ring, and how much room is left. Pure.
//!
//! ```text
//!   position   0 ─────────────────▶ capacity ───────────────▶ 2 · capacity     counts on, round after round
//!                   tail ▓▓▓▓▓▓▓▓▓▓▓▓▓▓|waste|▓▓▓▓▓▓▓▓ head
//!   offset     position modulo capacity
//! ```
//!
//! A record lies in one piece: one that would reach beyond the ring's end lies at its start, and what is
//! left at the end is wasted. Invariant: no place between tail and head is given out again.

use std::collections::VecDeque;

/// The places of records that count.
#[derive(Clone, Debug)]
pub struct Ring {
    capacity: u64,
    tail: u64,
    head: u64,
    next_sequence: u64,
    /// Position and sequence of those between tail and head.
    records: VecDeque<(u64, u64)>,
}

impl Ring {
    /// An empty one of `capacity` bytes, before its first record.
    pub fn new(capacity: u64) -> Ring {
        Ring { capacity, tail: 0, head: 0, next_sequence: 1, records: VecDeque::new() }
    }

    /// Its size in bytes.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Bytes between tail and head.
    pub fn used(&self) -> u64 {
        self.head - self.tail
    }

    /// Where the next record lies at the earliest.
    pub fn head(&self) -> u64 {
        self.head
    }

    /// Where the first record that counts lies, and its sequence.
    pub fn tail(&self) -> (u64, u64) {
        let sequence = self.records.front().map_or(self.next_sequence, |(_, sequence)| *sequence);
        (self.tail, sequence)
    }

    /// The sequence of the record at `position`, or of the next one where there is none.
    pub fn sequence_at(&self, position: u64) -> u64 {
        let found = self.records.iter().find(|(at, _)| *at >= position);
        found.map_or(self.next_sequence, |(_, sequence)| *sequence)
    }

    /// The sequence of the record that is placed next.
    pub fn next_sequence(&self) -> u64 {
        self.next_sequence
    }

    /// In bytes from the ring's start.
    pub fn offset(&self, position: u64) -> u64 {
        position % self.capacity
    }

    /// A place for a record of `len` bytes, and its sequence; none if there is no room.
    pub fn place(&mut self, len: u64) -> Option<(u64, u64)> {
        let position = start_of(self.capacity, self.head, len);
        let head = position + len;
        if len > self.capacity || head - self.tail > self.capacity {
            return None;
        }
        let sequence = self.next_sequence;
        self.records.push_back((position, sequence));
        (self.head, self.next_sequence) = (head, sequence + 1);
        Some((position, sequence))
    }

    /// Records before `tail` do not count any more.
    pub fn advance(&mut self, tail: u64) {
        debug_assert!((self.tail..=self.head).contains(&tail), "{tail}: {self:?}");
        self.tail = tail;
        while self.records.front().is_some_and(|(at, _)| *at < tail) {
            self.records.pop_front();
        }
    }
}

/// Where a record of `len` bytes lies that comes after `head`.
fn start_of(capacity: u64, head: u64, len: u64) -> u64 {
    let left = capacity - head % capacity;
    if left < len { head + left } else { head }
}

/// Goes through a ring's records from its tail, as they were written.
#[derive(Clone, Copy, Debug)]
pub struct Cursor {
    capacity: u64,
    tail: u64,
    position: u64,
    sequence: u64,
}

impl Cursor {
    /// At the tail.
    pub fn new(capacity: u64, tail: u64, sequence: u64) -> Cursor {
        Cursor { capacity, tail, position: tail, sequence }
    }

    /// The sequence of the record that is looked for.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Where it can lie, in bytes from the ring's start: where the last one ended, or at the start.
    pub fn candidates(&self) -> impl Iterator<Item = u64> + use<> {
        let offset = self.position % self.capacity;
        std::iter::once(offset).chain((offset > 0).then_some(0))
    }

    /// It was found, `len` bytes long, at `offset`: whether it can lie there.
    pub fn take(&mut self, offset: u64, len: u64) -> bool {
        let position = start_of(self.capacity, self.position, len);
        let end = position + len;
        let fits = len <= self.capacity
            && position % self.capacity == offset
            && end - self.tail <= self.capacity;
        if fits {
            (self.position, self.sequence) = (end, self.sequence + 1);
        }
        fits
    }

    /// Bytes from the tail to the end of the last record that was found.
    pub fn passed(&self) -> u64 {
        self.position - self.tail
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever is placed and given up: records that count do not overlap, and a reader who starts
        /// at the tail comes by each of them.
        #[test]
        fn records_lie_apart_and_are_found_again(steps in prop::collection::vec((1..9_u64, 0..4_usize), 1..200)) {
            let mut ring = Ring::new(16);
            let mut live: Vec<(u64, u64, u64)> = Vec::new();
            for (len, gone) in steps {
                if let Some((position, sequence)) = ring.place(len) {
                    live.push((position, len, sequence));
                } else {
                    prop_assert!(ring.used() > 0, "an empty ring has room");
                }
                let mut bytes = [0; 16];
                for (position, len, sequence) in &live {
                    let offset = ring.offset(*position) as usize;
                    for byte in &mut bytes[offset..offset + *len as usize] {
                        prop_assert_eq!(*byte, 0);
                        *byte = *sequence;
                    }
                }
                let (tail, sequence) = ring.tail();
                let mut cursor = Cursor::new(16, tail, sequence);
                for (position, len, sequence) in &live {
                    prop_assert_eq!(cursor.sequence(), *sequence);
                    let offset = ring.offset(*position);
                    prop_assert!(cursor.candidates().any(|one| one == offset));
                    prop_assert!(cursor.take(offset, *len));
                }
                prop_assert!(cursor.passed() == ring.used());
                live.drain(..gone.min(live.len()));
                let tail = live.first().map_or(ring.head(), |(position, ..)| *position);
                ring.advance(tail);
            }
        }
    }
}
