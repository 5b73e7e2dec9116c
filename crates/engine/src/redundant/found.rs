//! What a comparison found.

use std::collections::BTreeMap;

use braid_array::{MemberSpan, Role};

use super::kind::JobKind;
use super::layout::{SyncByte, SyncSpan};

/// Where a part of `len` bytes is cut that cannot be read as a whole, by members of logical blocks of
/// `logical` bytes: between two blocks, as long as there are two.
pub(super) fn half_of(len: u64, logical: u64) -> u64 {
    let unit = if len > BLOCK as u64 { BLOCK as u64 } else { logical };
    (len / 2).next_multiple_of(unit)
}

/// Neighbouring blocks of members that do not agree with each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The first byte of the array; with parity, of each member's data.
    pub offset: u64,
    /// Bytes, at each of the places below.
    pub len: u64,
    /// Where the bytes of the array begin that are wrong, or may be: none if parity alone is wrong.
    pub array: Vec<u64>,
    /// The members that were compared, in the order of their copies, or of their roles.
    pub members: Vec<MismatchMember>,
}

/// One member's bytes where members do not agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MismatchMember {
    /// Its role.
    pub role: Role,
    /// Where its bytes begin, on the member: in front of its data lie md's.
    pub offset: u64,
    /// Copies with the same number are equal; 0 for all with parity.
    pub group: usize,
    /// It is proved to be wrong.
    pub is_wrong: bool,
}

impl Mismatch {
    /// Whether it is proved which members are wrong.
    #[must_use]
    pub fn is_proved(&self) -> bool {
        self.members.iter().any(|member| member.is_wrong)
    }

    /// Takes in `next` if it follows at all places, and says the same of the same members.
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

/// What copies, or data and parity, are compared in, in bytes.
pub(super) const BLOCK: usize = 4096;

/// Makes one of the places that follow each other on the same of several members, in their order.
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

/// What a comparison found.
#[derive(Clone, Debug, Default)]
pub(super) struct Found {
    /// Bytes, in whole blocks, that do not agree with each other.
    pub(super) mismatches: u64,
    /// Where, from the first on, in order.
    pub(super) places: Vec<Mismatch>,
    /// What could not be read and was written again.
    pub(super) unreadable: u64,
    /// For each role, the bytes in which it is proved to be wrong.
    pub(super) suspects: BTreeMap<Role, u64>,
    /// Bytes of mismatches of which it is not proved which member is wrong.
    pub(super) unproved: u64,
    /// Bytes that were written again.
    pub(super) repaired: u64,
    /// Bytes of which several members were read and compared.
    pub(super) compared: u64,
    /// Bytes that some members are known not to hold, by their bad-block logs.
    pub(super) listed: u64,
    /// Bytes of which members could not be read, or made to agree, and where, from the first on.
    pub(super) unread: u64,
    pub(super) unread_places: Vec<SyncSpan>,
    /// The first place where members may still not agree.
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

    /// Counts blocks that differ, of which `place` says what is known.
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

    /// `part` could not be compared, and members may not agree there.
    pub(super) fn is_unsettled(&mut self, part: SyncSpan) {
        self.is_unread(part);
        self.unsettled = Some(self.unsettled.map_or(part.offset, |other| other.min(part.offset)));
    }

    /// `part` could not be compared.
    pub(super) fn is_unread(&mut self, part: SyncSpan) {
        self.unread += part.len;
        self.unread_places.push(part);
    }

    /// Offset and length of the places that could not be compared.
    pub(super) fn unread_ranges(&self) -> Vec<(u64, u64)> {
        self.unread_places.iter().map(|place| (place.offset.get(), place.len)).collect()
    }

    /// What a scrub found, for people.
    pub(super) fn summary(&self, kind: JobKind) -> String {
        let mut text =
            format!("{kind}: {} bytes compared, {} differ", self.compared, self.mismatches);
        for (bytes, what) in [
            (self.listed, "are listed as bad"),
            (self.unproved, "of which it is not proved who is wrong"),
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
