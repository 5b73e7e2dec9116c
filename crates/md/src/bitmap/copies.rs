//! A bitmap beside the copies of it that other members have.

use super::{Bitmap, HEADER_BYTES, words};
use crate::canary::Canary;

impl Bitmap {
    /// Returns true if the same chunks are set as in `other`.
    pub fn has_bits_of(&self, other: &Bitmap) -> bool {
        self.bits == other.bits
    }

    /// The same about its first `sync_size` bytes only.
    ///
    /// # Panics
    /// If it is about fewer.
    #[must_use]
    pub fn covering(mut self, sync_size: u64) -> Bitmap {
        assert!(sync_size <= self.header.sync_size, "a bitmap does not grow");
        let area = (HEADER_BYTES + 8 * self.bits.len()) as u64;
        self.header.sync_size = sync_size;
        let words = words(&self.header, area).expect("fewer chunks than it has");
        self.bits.truncate(words);
        self
    }

    /// Marks what is marked in another copy of the same bitmap as well, and takes the later of both
    /// `events_cleared`. Returns false, and changes nothing, if their chunks are not the same.
    pub fn join(&mut self, copy: &Bitmap) -> bool {
        let shape = |bitmap: &Bitmap| (bitmap.header.chunk_size, bitmap.header.sync_size);
        if shape(self) != shape(copy) {
            return false;
        }
        if !Canary::CopyOfBitmapIgnored.is_planted() {
            self.bits.iter_mut().zip(&copy.bits).for_each(|(own, other)| *own |= other);
        }
        let (own, other) = (self.header.events_cleared, copy.header.events_cleared);
        self.header.events_cleared =
            if Canary::EarlierClearedCounts.is_planted() { own.min(other) } else { own.max(other) };
        true
    }
}
