//! A member's bad-block log: what of it cannot be read, and is not to be trusted.
//!
//! ```text
//!   8 bytes an entry, little-endian:   63 … 10 sector | 9 … 0 sectors
//!   all ones: no more.   Both numbers count in units of 512 << shift bytes.
//! ```
//!
//! Positions are on the member, not in its data. The log is read only if the superblock has
//! [`BAD_BLOCKS`](crate::Features::BAD_BLOCKS): before the first entry the area holds whatever
//! was there, mostly zeroes. Linux and mdadm write shift 0 and ranges of at most 512 units, all of
//! them in the member's data: a full log lists at most 128 MiB. Entries rise and do not overlap. Refused is what
//! no md wrote: it would cost time at each start, or is damaged.
//! Invariants: ranges are sorted, do not touch, lie on the member (but for the rest of its last
//! unit), and need no more entries than the log has room for. Deliberately absent: where the log lies
//! ([`BadBlockLog`](crate::superblock::BadBlockLog)), and acknowledging, which is the superblock's
//! being written afterwards.
//!
//! Source: Linux `drivers/md/md.c` (`super_1_load`, `super_1_sync`, `rdev_set_badblocks`),
//! `block/badblocks.c`.

use crate::SECTOR;
use crate::canary::Canary;

/// Entries of the longest log, a page.
pub const MOST_ENTRIES: usize = 512;
/// The largest shift that is accepted: a unit of 256 KiB.
pub const MOST_SHIFT: u8 = 9;
/// The longest range that md puts into an entry, in units.
const MOST_UNITS: u64 = 512;
const END: u64 = u64::MAX;
/// Members are smaller than this, in bytes.
const SIZE_LIMIT: u64 = 1 << 62;

/// Why a bad-block log cannot be read or extended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadBlocksError {
    /// A range that does not lie on the member.
    #[error(
        "entry {index} of the bad-block log is {units} units from unit {first} << {shift} on, \
         beyond the member's {size} bytes"
    )]
    Outside {
        /// The entry.
        index: usize,
        /// As read.
        first: u64,
        /// As read.
        units: u64,
        /// The log's.
        shift: u8,
        /// The member's, in bytes.
        size: u64,
    },
    /// An entry that is empty or too long, or does not lie behind the one before it: md writes none like that, and
    /// the log has no checksum.
    #[error(
        "entry {index} of the bad-block log is {units} units from unit {first} on, the one before ends \
         at {end}: md writes 1 to 512 units, in order, so the log is damaged"
    )]
    Damaged {
        /// The entry.
        index: usize,
        /// As read.
        first: u64,
        /// As read.
        units: u64,
        /// End of the previous entry, in units.
        end: u64,
    },
    /// Units that md does not use.
    #[error("the bad-block log's shift is {0}: md writes 0, and at most {MOST_SHIFT} is accepted")]
    Shift(u8),
    /// No room: md then fails the member.
    #[error("the bad-block log needs {needed} entries, it has room for {room}")]
    Full {
        /// Entries needed.
        needed: usize,
        /// Entries that there are.
        room: usize,
    },
}

/// A range of bad bytes, on the member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadRange {
    /// In bytes from the member's start.
    pub offset: u64,
    /// In bytes, more than 0.
    pub len: u64,
}

impl BadRange {
    fn end(self) -> u64 {
        self.offset + self.len
    }
}

/// The bad blocks of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadBlocks {
    ranges: Vec<BadRange>,
    unit: u64,
    room: usize,
}

impl BadBlocks {
    /// None yet, in a log of `size` bytes whose unit is `512 << shift` bytes.
    ///
    /// # Errors
    /// [`BadBlocksError::Shift`].
    pub fn new(size: u64, shift: u8) -> Result<BadBlocks, BadBlocksError> {
        if shift > MOST_SHIFT {
            return Err(BadBlocksError::Shift(shift));
        }
        let room = usize::try_from(size / 8).unwrap_or(MOST_ENTRIES).min(MOST_ENTRIES);
        Ok(BadBlocks { ranges: Vec::new(), unit: SECTOR << shift, room })
    }

    /// None, and no log to note any in.
    #[must_use]
    pub fn none() -> BadBlocks {
        BadBlocks { ranges: Vec::new(), unit: SECTOR, room: 0 }
    }

    /// Reads a log, up to its end mark. `bytes` is the whole of it, `size` the member's in bytes.
    ///
    /// # Errors
    /// [`BadBlocksError`] if no md would have written it.
    pub fn parse(bytes: &[u8], shift: u8, size: u64) -> Result<BadBlocks, BadBlocksError> {
        let mut log = BadBlocks::new(bytes.len() as u64, shift)?;
        // The last unit may be cut by the member's end.
        let most = size.min(SIZE_LIMIT).div_ceil(log.unit);
        let mut end = 0;
        for (index, entry) in bytes.chunks_exact(8).take(MOST_ENTRIES).enumerate() {
            let entry = u64::from_le_bytes(std::array::from_fn(|index| entry[index]));
            if entry == END {
                break;
            }
            let (first, units) = (entry >> 10, entry & 1023);
            if first + units > most {
                return Err(BadBlocksError::Outside { index, first, units, shift, size });
            }
            if units == 0 || units > MOST_UNITS || first < end {
                return Err(BadBlocksError::Damaged { index, first, units, end });
            }
            end = first + units;
            log.join(BadRange { offset: first * log.unit, len: units * log.unit });
        }
        Ok(log)
    }

    /// The whole log: entries, then all ones.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(8 * self.room);
        for range in &self.ranges {
            let (mut at, end) = (range.offset / self.unit, range.end() / self.unit);
            while at < end {
                let units = (end - at).min(MOST_UNITS);
                bytes.extend_from_slice(&(at << 10 | units).to_le_bytes());
                at += units;
            }
        }
        bytes.resize(8 * self.room, 0xff);
        bytes
    }

    /// The ranges, lowest first.
    pub fn iter(&self) -> impl Iterator<Item = BadRange> + '_ {
        self.ranges.iter().copied()
    }

    /// Returns true if nothing is bad.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Entries in use.
    #[must_use]
    pub fn entries(&self) -> usize {
        let units = |range: &BadRange| (range.len / self.unit).div_ceil(MOST_UNITS) as usize;
        self.ranges.iter().map(units).sum()
    }

    /// The bad ranges of which something lies in `len` bytes from `offset` of the member, lowest
    /// first, as they are in the log.
    pub fn within(&self, offset: u64, len: u64) -> impl Iterator<Item = BadRange> + '_ {
        let first = self.ranges.partition_point(|range| range.end() <= offset);
        let end = if len > 0 { offset.saturating_add(len) } else { 0 };
        self.ranges[first..].iter().copied().take_while(move |range| range.offset < end)
    }

    /// The first of [`BadBlocks::within`].
    #[must_use]
    pub fn overlaps(&self, offset: u64, len: u64) -> Option<BadRange> {
        self.within(offset, len).next()
    }

    /// Adds `len` bytes from `offset`, and what else is in the units that they touch.
    ///
    /// # Errors
    /// [`BadBlocksError::Full`], and nothing was added.
    ///
    /// # Panics
    /// If the range ends at 2^62 bytes or beyond: members are smaller.
    pub fn insert(&mut self, offset: u64, len: u64) -> Result<(), BadBlocksError> {
        let end = offset.saturating_add(len);
        assert!(end < SIZE_LIMIT, "a bad range at {offset} of {len} bytes");
        let start = offset / self.unit * self.unit;
        let before = self.ranges.clone();
        self.join(BadRange { offset: start, len: end.next_multiple_of(self.unit) - start });
        self.check_room().inspect_err(|_| self.ranges = before)
    }

    /// Takes the units out that lie wholly in `len` bytes from `offset`: they were written.
    ///
    /// # Errors
    /// [`BadBlocksError::Full`] if a range would be cut in two and there is no room; nothing was
    /// taken out then.
    pub fn remove(&mut self, offset: u64, len: u64) -> Result<(), BadBlocksError> {
        let end = offset.saturating_add(len) / self.unit * self.unit;
        let Some(start) = offset.checked_next_multiple_of(self.unit).filter(|at| *at < end) else {
            return Ok(());
        };
        let pieces = |range: &BadRange| {
            let left = (range.offset, range.end().min(start));
            let right = (range.offset.max(end), range.end());
            [left, right]
        };
        let kept = self
            .ranges
            .iter()
            .flat_map(pieces)
            .filter(|(from, to)| from < to)
            .map(|(from, to)| BadRange { offset: from, len: to - from })
            .collect();
        let before = std::mem::replace(&mut self.ranges, kept);
        self.check_room().inspect_err(|_| self.ranges = before)
    }

    fn check_room(&self) -> Result<(), BadBlocksError> {
        let (needed, room) = (self.entries(), self.room);
        if needed > room { Err(BadBlocksError::Full { needed, room }) } else { Ok(()) }
    }

    /// Adds a range in whole units, joined with those that it touches.
    fn join(&mut self, range: BadRange) {
        if range.len == 0 {
            return;
        }
        let apart = u64::from(Canary::BadRangesStayApart.is_planted());
        let first = self.ranges.partition_point(|other| other.end() < range.offset + apart);
        let after = self.ranges.partition_point(|other| other.offset + apart <= range.end());
        let touched = &self.ranges[first..after];
        let start = touched.first().map_or(range.offset, |other| other.offset.min(range.offset));
        let end = touched.last().map_or(range.end(), |other| other.end().max(range.end()));
        self.ranges.splice(first..after, [BadRange { offset: start, len: end - start }]);
    }
}
