//! A record: what one write is about to put onto one member.

use super::head::{below_limit, check, seal, start};
use super::{BLOCK, Head, MOST_PARTS, MOST_ROLES, padded};
use crate::rejection::LogRejection;
use crate::{SECTOR, Uuid};

const MAGIC: &[u8; 8] = b"braidrec";
const WHAT: &str = "record";

const ROLE: usize = 36;
const COUNT: usize = 38;
const SEQUENCE: usize = 40;
const TAIL: usize = 48;
const NONCE: usize = 56;
const PAYLOAD_LEN: usize = 64;
const PAYLOAD_CHECKSUM: usize = 68;
const PARTICIPANTS: usize = 72;
const PARTS: usize = 120;
const PART_BYTES: usize = 12;

/// A set of roles below [`MOST_ROLES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Roles([u64; MOST_ROLES / 64]);

/// Bytes of the member's data that a record has the new content of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Part {
    /// In bytes of the member's data; whole sectors.
    pub offset: u64,
    /// In bytes, more than 0; whole sectors.
    pub len: u32,
}

/// A record's header. The payload has the content of the parts, one behind the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Whose record it is.
    pub array_uuid: Uuid,
    /// On which device.
    pub device_number: u32,
    /// The device's role, one of the participants.
    pub role: u16,
    /// The log's nonce.
    pub nonce: u64,
    /// Which write it belongs to; later ones have more.
    pub sequence: u64,
    /// Records of a lower sequence are retired.
    pub tail: u64,
    /// The roles that have a record of this sequence.
    pub participants: Roles,
    /// 1 to [`MOST_PARTS`].
    pub parts: Vec<Part>,
    /// Bytes of all parts.
    pub payload_len: u32,
    /// CRC-32C of the payload without its padding ([`payload_checksum`](Record::checksum_of)).
    pub payload_checksum: u32,
}

impl Roles {
    /// Adds a role.
    ///
    /// # Panics
    /// If it is not below [`MOST_ROLES`].
    pub fn insert(&mut self, role: u16) {
        self.0[usize::from(role) / 64] |= 1 << (role % 64);
    }

    /// Returns true if a role is in the set.
    #[must_use]
    pub fn contains(&self, role: u16) -> bool {
        self.0.get(usize::from(role) / 64).is_some_and(|word| word >> (role % 64) & 1 == 1)
    }

    /// The roles, lowest first.
    pub fn iter(&self) -> impl Iterator<Item = u16> + '_ {
        (0..MOST_ROLES as u16).filter(|role| self.contains(*role))
    }

    /// The roles of both.
    #[must_use]
    pub fn union(&self, other: &Roles) -> Roles {
        Roles(std::array::from_fn(|index| self.0[index] | other.0[index]))
    }
}

impl FromIterator<u16> for Roles {
    fn from_iter<I: IntoIterator<Item = u16>>(roles: I) -> Roles {
        let mut set = Roles::default();
        roles.into_iter().for_each(|role| set.insert(role));
        set
    }
}

impl Record {
    /// The payload's checksum, of a payload that lies in pieces.
    pub fn checksum_of<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> u32 {
        pieces.into_iter().fold(0, crc32c::crc32c_append)
    }

    /// Bytes in the ring, payload and padding included.
    #[must_use]
    pub fn ring_len(&self) -> u64 {
        BLOCK as u64 + padded(u64::from(self.payload_len))
    }

    /// Writes the header over all of `block`, without allocating.
    ///
    /// # Panics
    /// If `block` has not [`BLOCK`] bytes, there are no parts or more than [`MOST_PARTS`].
    pub fn encode_into(&self, block: &mut [u8]) {
        assert!((1..=MOST_PARTS).contains(&self.parts.len()), "{} parts", self.parts.len());
        let mut field = start(block, MAGIC, &self.array_uuid, self.device_number);
        field.put_u16(ROLE, self.role);
        field.put_u16(COUNT, self.parts.len() as u16);
        field.put_u64(SEQUENCE, self.sequence);
        field.put_u64(TAIL, self.tail);
        field.put_u64(NONCE, self.nonce);
        field.put_u32(PAYLOAD_LEN, self.payload_len);
        field.put_u32(PAYLOAD_CHECKSUM, self.payload_checksum);
        for (index, word) in self.participants.0.iter().enumerate() {
            field.put_u64(PARTICIPANTS + 8 * index, *word);
        }
        for (index, part) in self.parts.iter().enumerate() {
            field.put_u64(PARTS + PART_BYTES * index, part.offset);
            field.put_u32(PARTS + PART_BYTES * index + 8, part.len);
        }
        seal(block);
    }

    /// Reads the first [`BLOCK`] bytes as the header of a record of the log with this head. The
    /// payload's checksum is not compared: it lies behind.
    ///
    /// # Errors
    /// [`LogRejection`]: no record, a damaged one, of another array, device or run, or one that
    /// contradicts itself.
    pub fn parse(block: &[u8], head: &Head) -> Result<Record, LogRejection> {
        let field = check(WHAT, block, MAGIC, &head.array_uuid, head.device_number)?;
        let nonce = field.u64(NONCE);
        if nonce != head.nonce {
            return Err(LogRejection::OtherNonce { found: nonce, expected: head.nonce });
        }
        let count = field.u16(COUNT);
        if !(1..=MOST_PARTS).contains(&usize::from(count)) {
            return Err(LogRejection::Parts { found: count });
        }
        let part = |index: usize| Part {
            offset: field.u64(PARTS + PART_BYTES * index),
            len: field.u32(PARTS + PART_BYTES * index + 8),
        };
        let record = Record {
            array_uuid: head.array_uuid,
            device_number: head.device_number,
            role: field.u16(ROLE),
            nonce,
            sequence: below_limit("sequence", field.u64(SEQUENCE))?,
            tail: field.u64(TAIL),
            participants: Roles(std::array::from_fn(|index| field.u64(PARTICIPANTS + 8 * index))),
            parts: (0..usize::from(count)).map(part).collect(),
            payload_len: field.u32(PAYLOAD_LEN),
            payload_checksum: field.u32(PAYLOAD_CHECKSUM),
        };
        record.check()?;
        Ok(record)
    }

    /// Checks that the record does not contradict itself.
    fn check(&self) -> Result<(), LogRejection> {
        let is_sound = |part: &&Part| {
            let (offset, len) = (part.offset, u64::from(part.len));
            let in_sectors = offset.is_multiple_of(SECTOR) && len.is_multiple_of(SECTOR);
            len > 0 && in_sectors && offset < (1 << 63) - len
        };
        if let Some(&Part { offset, len }) = self.parts.iter().find(|part| !is_sound(part)) {
            return Err(LogRejection::Part { offset, len });
        }
        let parts = self.parts.iter().map(|part| u64::from(part.len)).sum();
        if self.payload_len != 0 && parts != u64::from(self.payload_len) {
            return Err(LogRejection::PayloadLen { parts, payload: self.payload_len });
        }
        if !self.participants.contains(self.role) {
            return Err(LogRejection::Role { role: self.role });
        }
        if self.sequence < self.tail {
            return Err(LogRejection::Sequence { sequence: self.sequence, tail: self.tail });
        }
        Ok(())
    }
}
