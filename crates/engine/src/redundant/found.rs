//! What a comparison found.

use std::collections::BTreeMap;

/// What copies, or data and parity, are compared in, in bytes.
pub(super) const BLOCK: usize = 4096;

/// What a comparison found.
#[derive(Clone, Debug, Default)]
pub(super) struct Found {
    /// Bytes, in whole blocks, that do not agree with each other.
    pub(super) mismatches: u64,
    /// Where, in sync bytes, from the first on.
    pub(super) places: Vec<u64>,
    /// What could not be read and was written again.
    pub(super) unreadable: u64,
    /// For each role, the bytes of mismatches that it alone explains.
    pub(super) suspects: BTreeMap<u16, u64>,
    /// Bytes of mismatches that nobody alone explains, where that could be told.
    pub(super) unexplained: u64,
    /// Bytes that were written again.
    pub(super) repaired: u64,
}

impl Found {
    pub(super) fn add(&mut self, other: Found, most_places: usize) {
        self.mismatches += other.mismatches;
        self.unreadable += other.unreadable;
        self.unexplained += other.unexplained;
        self.repaired += other.repaired;
        for (role, bytes) in other.suspects {
            *self.suspects.entry(role).or_default() += bytes;
        }
        self.places.extend(other.places);
        self.places.sort_unstable();
        self.places.truncate(most_places);
    }
}
