//! Places of units in a member's area.

use braid_level::size::round_down;

use super::{HEADER_BYTES, RING_PARITY_BYTES};

/// The place of the next unit. Units end before the area does: the kernel would look for the parity of a unit
/// that fills it behind the area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Units {
    area: u64,
    next: u64,
}

impl Units {
    /// For a fresh area of `area` bytes: the first unit lies over the empty header.
    #[must_use]
    pub fn new(area: u64) -> Units {
        Units { area, next: 0 }
    }

    /// Returns true if units follow each other, which the feature `MULTIPLE_PPLS` says.
    #[must_use]
    pub fn is_ring(&self) -> bool {
        self.area >= 2 * (RING_PARITY_BYTES + HEADER_BYTES as u64)
    }

    /// Bytes of partial parity that a unit may have.
    #[must_use]
    pub fn most_parity(&self) -> u64 {
        let room = self.area.saturating_sub(HEADER_BYTES as u64 + 1);
        if self.is_ring() { RING_PARITY_BYTES } else { round_down(room, 4096) }
    }

    /// Returns the start of a unit with this much partial parity, in bytes from the area's start.
    ///
    /// # Panics
    /// If that is more than [`Units::most_parity`].
    pub fn place(&mut self, parity_len: u64) -> u64 {
        assert!(parity_len <= self.most_parity(), "{parity_len} bytes of parity");
        if !self.is_ring() {
            return 0;
        }
        let len = HEADER_BYTES as u64 + parity_len;
        if self.area - self.next <= len {
            self.next = 0;
        }
        let start = self.next;
        self.next += len;
        start
    }
}
