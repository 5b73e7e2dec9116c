//! Positions of records in the ring of a log, and its free space. Pure.
//!
//! ```text
//!   position   0 ─────────────────▶ capacity ───────────────▶ 2 · capacity     never wraps
//!                   tail ▓▓▓▓▓▓▓▓▓▓▓▓▓▓|waste|▓▓▓▓▓▓▓▓ head
//!   offset     position modulo capacity
//! ```
//!
//! A record is contiguous: if it does not fit before the end of the ring, it is placed at the
//! start, and the rest is wasted. Invariant: the space between tail and head is not allocated
//! again.

use std::collections::VecDeque;

/// Positions of the valid records.
#[derive(Clone, Debug)]
pub struct Ring {
    capacity: u64,
    tail: u64,
    head: u64,
    next_sequence: u64,
    /// Position and sequence number of the records between tail and head.
    records: VecDeque<(u64, u64)>,
}

impl Ring {
    /// Creates an empty ring of `capacity` bytes.
    pub fn new(capacity: u64) -> Ring {
        Ring { capacity, tail: 0, head: 0, next_sequence: 1, records: VecDeque::new() }
    }

    /// Returns the size in bytes.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Returns the number of bytes between tail and head.
    pub fn used(&self) -> u64 {
        self.head - self.tail
    }

    /// Returns the lowest position of the next record.
    pub fn head(&self) -> u64 {
        self.head
    }

    /// Returns the position and sequence number of the first valid record.
    pub fn tail(&self) -> (u64, u64) {
        let sequence = self.records.front().map_or(self.next_sequence, |(_, sequence)| *sequence);
        (self.tail, sequence)
    }

    /// Returns the sequence number of the record at `position`, or of the next record if there is
    /// none.
    pub fn sequence_at(&self, position: u64) -> u64 {
        let found = self.records.iter().find(|(at, _)| *at >= position);
        found.map_or(self.next_sequence, |(_, sequence)| *sequence)
    }

    /// Returns the sequence number of the next record.
    pub fn next_sequence(&self) -> u64 {
        self.next_sequence
    }

    /// Returns the offset of `position` from the start of the ring, in bytes.
    pub fn offset(&self, position: u64) -> u64 {
        position % self.capacity
    }

    /// Allocates space for a record of `len` bytes. Returns its position and sequence number, or
    /// `None` if the ring is full.
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

    /// Retires the records before `tail`.
    pub fn advance(&mut self, tail: u64) {
        debug_assert!((self.tail..=self.head).contains(&tail), "{tail}: {self:?}");
        self.tail = tail;
        while self.records.front().is_some_and(|(at, _)| *at < tail) {
            self.records.pop_front();
        }
    }
}

/// Returns the position of a record of `len` bytes after `head`.
fn start_of(capacity: u64, head: u64, len: u64) -> u64 {
    let left = capacity - head % capacity;
    if left < len { head + left } else { head }
}

/// Iterates over the records of a ring in the order of writing, from the tail.
#[derive(Clone, Copy, Debug)]
pub struct Cursor {
    capacity: u64,
    tail: u64,
    position: u64,
    sequence: u64,
}

impl Cursor {
    /// Creates a cursor at the tail.
    pub fn new(capacity: u64, tail: u64, sequence: u64) -> Cursor {
        Cursor { capacity, tail, position: tail, sequence }
    }

    /// Returns the sequence number of the next record.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Returns the possible offsets of the next record in the ring: the end of the last record, or
    /// the start.
    pub fn candidates(&self) -> impl Iterator<Item = u64> + use<> {
        let offset = self.position % self.capacity;
        std::iter::once(offset).chain((offset > 0).then_some(0))
    }

    /// Advances past a record of `len` bytes at `offset`. Returns whether it can be there.
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

    /// Returns the bytes from the tail to the end of the last record.
    pub fn passed(&self) -> u64 {
        self.position - self.tail
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Records never overlap, and a reader that starts at the tail finds all of them, for any
        /// allocation and retirement.
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
