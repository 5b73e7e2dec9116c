//! What a comparison found.

use std::collections::BTreeMap;

use braid_array::Role;

use super::job::JobKind;
use super::layout::{SyncByte, SyncSpan};

/// What copies, or data and parity, are compared in, in bytes.
pub(super) const BLOCK: usize = 4096;

/// What a comparison found.
#[derive(Clone, Debug, Default)]
pub(super) struct Found {
    /// Bytes, in whole blocks, that do not agree with each other.
    pub(super) mismatches: u64,
    /// Where, from the first on.
    pub(super) places: Vec<SyncByte>,
    /// What could not be read and was written again.
    pub(super) unreadable: u64,
    /// For each role, the bytes of mismatches that it alone explains.
    pub(super) suspects: BTreeMap<Role, u64>,
    /// Bytes of mismatches that nobody alone explains, where that could be told.
    pub(super) unexplained: u64,
    /// Bytes that were written again.
    pub(super) repaired: u64,
    /// Bytes of which several members were read and compared.
    pub(super) compared: u64,
    /// Bytes that some members are known not to hold, by their bad-block logs.
    pub(super) listed: u64,
    /// Bytes of which members could not be read, or made to agree, and where, from the first on.
    pub(super) unread: u64,
    pub(super) unread_places: Vec<SyncByte>,
    /// The first place where members may still not agree.
    pub(super) unsettled: Option<SyncByte>,
}

impl Found {
    pub(super) fn add(&mut self, other: Found, most_places: usize) {
        self.mismatches += other.mismatches;
        self.unreadable += other.unreadable;
        self.unexplained += other.unexplained;
        self.repaired += other.repaired;
        self.compared += other.compared;
        self.listed += other.listed;
        self.unread += other.unread;
        for (role, bytes) in other.suspects {
            *self.suspects.entry(role).or_default() += bytes;
        }
        self.places.extend(other.places);
        self.places.sort_unstable();
        self.places.truncate(most_places);
        self.unsettled = [self.unsettled, other.unsettled].into_iter().flatten().min();
        self.unread_places.extend(other.unread_places);
        self.unread_places.sort_unstable();
        self.unread_places.truncate(most_places);
    }

    /// `part` could not be compared, and members may not agree there.
    pub(super) fn is_unsettled(&mut self, part: SyncSpan) {
        self.is_unread(part);
        self.unsettled = Some(self.unsettled.map_or(part.offset, |other| other.min(part.offset)));
    }

    /// `part` could not be compared.
    pub(super) fn is_unread(&mut self, part: SyncSpan) {
        self.unread += part.len;
        self.unread_places.push(part.offset);
    }

    /// What a scrub found, for people.
    pub(super) fn summary(&self, kind: JobKind) -> String {
        let mut text =
            format!("{kind}: {} bytes compared, {} differ", self.compared, self.mismatches);
        for (bytes, what) in [
            (self.listed, "are listed as bad"),
            (self.unread, "could not be compared"),
            (self.repaired, "written again"),
        ] {
            if bytes > 0 {
                text = format!("{text}, {bytes} {what}");
            }
        }
        text
    }
}
