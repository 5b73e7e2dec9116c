//! The findings of a comparison.

use std::collections::BTreeMap;

use braid_array::{MemberSpan, Role};

use super::kind::JobKind;
use super::layout::{SyncByte, SyncSpan};

/// Returns where to cut a part of `len` bytes that cannot be read as a whole, on members with logical blocks of
/// `logical` bytes: between two blocks of 4096 bytes, as long as there are two.
pub(super) fn half_of(len: u64, logical: u64) -> u64 {
    let unit = if len > BLOCK as u64 { BLOCK as u64 } else { logical };
    (len / 2).next_multiple_of(unit)
}

/// Adjacent blocks in which members do not agree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// First byte in the array; with parity, in each member's data.
    pub offset: u64,
    /// Length in bytes, at each of the places below.
    pub len: u64,
    /// First bytes in the array of the parts that are wrong, or may be. Empty if parity alone is wrong.
    pub array: Vec<u64>,
    /// The members that were compared, in the order of their copies, or of their roles.
    pub members: Vec<MismatchMember>,
}

/// The bytes of one member where members do not agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MismatchMember {
    /// Its role.
    pub role: Role,
    /// First byte on the member's device, counted from the start of the device.
    pub offset: u64,
    /// Copies with the same number are equal; 0 for all with parity.
    pub group: usize,
    /// True if the member is proved to be wrong.
    pub is_wrong: bool,
}

impl Mismatch {
    /// Returns true if it is proved which members are wrong.
    #[must_use]
    pub fn is_proved(&self) -> bool {
        self.members.iter().any(|member| member.is_wrong)
    }

    /// Merges `next` if it follows at all places, and has the same verdict on the same members.
    fn merge(&mut self, next: &Mismatch) -> bool {
        let follows = |(at, next): (&u64, &u64)| at + self.len == *next;
        let is_next = self.offset + self.len == next.offset
            && (self.array.len(), self.members.len()) == (next.array.len(), next.members.len())
            && self.array.iter().zip(&next.array).all(follows)
            && self.members.iter().zip(&next.members).all(|(member, next)| {
                MismatchMember { offset: member.offset + self.len, ..*member } == *next
            });
        if is_next {
            self.len += next.len;
        }
        is_next
    }
}

/// Unit of a comparison of copies, or of data and parity, in bytes.
pub(super) const BLOCK: usize = 4096;

/// Joins adjacent places of the same member. The result is in the order of members.
pub(super) fn join_places<M: Copy + Ord>(mut places: Vec<(M, MemberSpan)>) -> Vec<(M, MemberSpan)> {
    places.sort_unstable_by_key(|(member, place)| (*member, place.offset));
    let mut joined: Vec<(M, MemberSpan)> = Vec::new();
    for (member, place) in places {
        match joined.last_mut() {
            Some((last, before)) if *last == member && before.end() == place.offset => {
                before.len += place.len;
            }
            _ => joined.push((member, place)),
        }
    }
    joined
}

/// The findings of a comparison.
#[derive(Clone, Debug, Default)]
pub(super) struct Found {
    /// Bytes, in whole blocks, that differ.
    pub(super) mismatches: u64,
    /// The first places that differ, in order.
    pub(super) places: Vec<Mismatch>,
    /// Number of unreadable places that were rewritten.
    pub(super) unreadable: u64,
    /// Bytes that are proved to be wrong, by role.
    pub(super) suspects: BTreeMap<Role, u64>,
    /// Bytes of mismatches in which no member is proved wrong.
    pub(super) unproved: u64,
    /// Bytes that were rewritten.
    pub(super) repaired: u64,
    /// Bytes that were read from several members and compared.
    pub(super) compared: u64,
    /// Bytes that some members are known not to hold, by their bad-block logs.
    pub(super) listed: u64,
    /// Bytes that could not be read, or made to agree, and the first places of these.
    pub(super) unread: u64,
    pub(super) unread_places: Vec<SyncSpan>,
    /// First place where members may still differ.
    pub(super) unsettled: Option<SyncByte>,
}

impl Found {
    pub(super) fn add(&mut self, other: Found, most_places: usize) {
        self.mismatches += other.mismatches;
        self.unreadable += other.unreadable;
        self.unproved += other.unproved;
        self.repaired += other.repaired;
        self.compared += other.compared;
        self.listed += other.listed;
        self.unread += other.unread;
        for (role, bytes) in other.suspects {
            *self.suspects.entry(role).or_default() += bytes;
        }
        for place in other.places {
            if !self.places.last_mut().is_some_and(|last| last.merge(&place)) {
                self.places.push(place);
            }
        }
        self.places.truncate(most_places);
        self.unsettled = [self.unsettled, other.unsettled].into_iter().flatten().min();
        self.unread_places.extend(other.unread_places);
        self.unread_places.sort_unstable_by_key(|place| place.offset);
        self.unread_places.dedup_by(|next, place| {
            let is_next = place.end() == next.offset;
            place.len += if is_next { next.len } else { 0 };
            is_next
        });
        self.unread_places.truncate(most_places);
    }

    /// Counts blocks that differ at `place`.
    pub(super) fn differ(&mut self, place: Mismatch) {
        self.mismatches += place.len;
        if !place.is_proved() {
            self.unproved += place.len;
        }
        for wrong in place.members.iter().filter(|member| member.is_wrong) {
            *self.suspects.entry(wrong.role).or_default() += place.len;
        }
        self.places.push(place);
    }

    /// Notes that `part` could not be compared, and members may differ there.
    pub(super) fn is_unsettled(&mut self, part: SyncSpan) {
        self.is_unread(part);
        self.unsettled = Some(self.unsettled.map_or(part.offset, |other| other.min(part.offset)));
    }

    /// Notes that `part` could not be compared.
    pub(super) fn is_unread(&mut self, part: SyncSpan) {
        self.unread += part.len;
        self.unread_places.push(part);
    }

    /// Returns offset and length of the places that could not be compared.
    pub(super) fn unread_ranges(&self) -> Vec<(u64, u64)> {
        self.unread_places.iter().map(|place| (place.offset.get(), place.len)).collect()
    }

    /// Returns the findings of a scrub as a line for the operator.
    pub(super) fn summary(&self, kind: JobKind) -> String {
        let mut text =
            format!("{kind}: {} bytes compared, {} differ", self.compared, self.mismatches);
        for (bytes, what) in [
            (self.listed, "are listed as bad"),
            (self.unproved, "differ without proof which member is wrong"),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_that_follow_each_other_are_one() {
        let mut found = Found::default();
        for window in [&[12288, 4096][..], &[8192], &[32768, 16384], &[65536]] {
            let mut part = Found::default();
            for offset in window {
                part.is_unread(SyncSpan::new(SyncByte::new(*offset), 4096));
            }
            found.add(part, 2);
        }
        assert_eq!(found.unread, 6 * 4096);
        assert_eq!(found.unread_ranges(), [(4096, 16384), (32768, 4096)]);
    }
}
