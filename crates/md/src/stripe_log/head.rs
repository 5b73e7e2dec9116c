//! The log's head, and what heads and records have in common.

use super::{BLOCK, LEAST_AREA, VERSION, at};
use crate::rejection::LogRejection;
use crate::superblock::fields::{ByteOrder, Fields, FieldsMut};
use crate::{Timestamp, Uuid};

const MAGIC: &[u8; 8] = b"braidlog";
const WHAT: &str = "head";

const AREA: usize = 40;
const EVENTS: usize = 48;
const TAIL: usize = 56;
const NONCE: usize = 64;
const SYNCED: usize = 72;
const UPDATED: usize = 80;
const BEFORE: usize = 92;

/// The head of a member's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// UUID of the array.
    pub array_uuid: Uuid,
    /// On which device: its superblock's number.
    pub device_number: u32,
    /// Bytes of the log in front of the data, the head included.
    pub area: u64,
    /// The array's events, or one ahead of them while superblocks are being written.
    pub events: u64,
    /// Records of a lower sequence are retired.
    pub tail: u64,
    /// The nonce of this run's records.
    pub nonce: u64,
    /// Number of bytes of each member's data below which parity agreed with its data, apart from rows in the
    /// log; `u64::MAX` if it did everywhere. Superblocks of an active array only say that it may not.
    pub synced: u64,
    /// When the superblocks with these events were written, and those before them: kernels count
    /// events down again, so that a number alone may be anybody's.
    pub updated: Timestamp,
    /// See `updated`.
    pub before: Timestamp,
}

impl Head {
    /// The [`BLOCK`] bytes that lie just in front of the data.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut block = vec![0; BLOCK];
        self.encode_into(&mut block);
        block
    }

    /// Writes the head over all of `block`, without allocating.
    ///
    /// # Panics
    /// If `block` has not [`BLOCK`] bytes.
    pub fn encode_into(&self, block: &mut [u8]) {
        let mut field = start(block, MAGIC, &self.array_uuid, self.device_number);
        field.put_u64(AREA, self.area);
        field.put_u64(EVENTS, self.events);
        field.put_u64(TAIL, self.tail);
        field.put_u64(NONCE, self.nonce);
        field.put_u64(SYNCED, self.synced);
        for (place, time) in [(UPDATED, self.updated), (BEFORE, self.before)] {
            field.put_u64(place, time.seconds);
            field.put_u32(place + 8, time.micros);
        }
        seal(block);
    }

    /// Reads the first [`BLOCK`] bytes as the head of a log of this array on the device of this
    /// number, where there are `room` bytes in front of the data for all of the log.
    ///
    /// # Errors
    /// [`LogRejection`]: no head, a damaged one, one of another array or device, or of an area
    /// that does not fit.
    pub fn parse(
        block: &[u8],
        array_uuid: &Uuid,
        device_number: u32,
        room: u64,
    ) -> Result<Head, LogRejection> {
        let field = check(WHAT, block, MAGIC, array_uuid, device_number)?;
        let area = field.u64(AREA);
        if !area.is_multiple_of(BLOCK as u64) || area < LEAST_AREA || area > room {
            return Err(LogRejection::Area { area, least: LEAST_AREA, most: room });
        }
        let time =
            |place: usize| Timestamp { seconds: field.u64(place), micros: field.u32(place + 8) };
        let tail = below_limit("tail", field.u64(TAIL))?;
        Ok(Head {
            array_uuid: *array_uuid,
            device_number,
            area,
            events: field.u64(EVENTS),
            tail,
            nonce: field.u64(NONCE),
            synced: field.u64(SYNCED),
            updated: time(UPDATED),
            before: time(BEFORE),
        })
    }

    /// Checks that no program without knowledge of the log wrote the array since. Its freshest superblock has
    /// `events` and `updated`: the head has both, or is the next one's.
    ///
    /// # Errors
    /// [`LogRejection::NotCurrent`].
    pub fn check_current(&self, events: u64, updated: Timestamp) -> Result<(), LogRejection> {
        let is_known = [self.updated, self.before].contains(&updated);
        let is_next = self.events == events || Some(self.events) == events.checked_add(1);
        if is_known && is_next {
            Ok(())
        } else {
            Err(LogRejection::NotCurrent { log: self.events, array: events })
        }
    }

    /// Bytes of the ring of records, which starts with the area.
    #[must_use]
    pub fn ring(&self) -> u64 {
        self.area - BLOCK as u64
    }
}

/// Starts a block with what all blocks have, over zeroes.
pub(super) fn start<'a>(
    block: &'a mut [u8],
    magic: &[u8; 8],
    array_uuid: &Uuid,
    device_number: u32,
) -> FieldsMut<'a> {
    assert_eq!(block.len(), BLOCK, "a block's bytes");
    block.fill(0);
    let mut field = FieldsMut::new(block, ByteOrder::Little);
    field.put(0, magic);
    field.put_u32(at::VERSION, VERSION);
    field.put(at::ARRAY, &array_uuid.0);
    field.put_u32(at::DEVICE, device_number);
    field
}

/// Puts the checksum over a block.
pub(super) fn seal(block: &mut [u8]) {
    let sum = checksum(block);
    FieldsMut::new(block, ByteOrder::Little).put_u32(at::CHECKSUM, sum);
}

/// Checks what all blocks have.
pub(super) fn check<'a>(
    what: &'static str,
    block: &'a [u8],
    magic: &[u8; 8],
    array_uuid: &Uuid,
    device_number: u32,
) -> Result<Fields<'a>, LogRejection> {
    let block = block.get(..BLOCK).ok_or(LogRejection::Truncated { what, got: block.len() })?;
    let field = Fields::new(block, ByteOrder::Little);
    let found: [u8; 8] = field.array(0);
    if found != *magic {
        return Err(LogRejection::Magic { what, found });
    }
    let version = field.u32(at::VERSION);
    if version != VERSION {
        return Err(LogRejection::Version { what, found: version });
    }
    let (stored, computed) = (field.u32(at::CHECKSUM), checksum(block));
    if stored != computed {
        return Err(LogRejection::Checksum { what, stored, computed });
    }
    let found = Uuid(field.array(at::ARRAY));
    if found != *array_uuid {
        return Err(LogRejection::OtherArray { found, expected: *array_uuid });
    }
    let found = field.u32(at::DEVICE);
    if found != device_number {
        return Err(LogRejection::OtherDevice { found, expected: device_number });
    }
    Ok(field)
}

/// A sequence that leaves room for all that may follow.
pub(super) fn below_limit(what: &'static str, value: u64) -> Result<u64, LogRejection> {
    if value < 1 << 63 { Ok(value) } else { Err(LogRejection::Count { what, value }) }
}

/// Returns the checksum of a block's bytes, with its own field taken as zero.
fn checksum(block: &[u8]) -> u32 {
    let (before, behind) = block.split_at(at::CHECKSUM);
    let sum = crc32c::crc32c_append(crc32c::crc32c(before), &[0; 4]);
    crc32c::crc32c_append(sum, &behind[4..])
}
