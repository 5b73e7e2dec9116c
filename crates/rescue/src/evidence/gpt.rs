//! GUID partition tables: both headers have the number of their own sector, and a CRC-32.
//!
//! The size of a sector is the one that leads from the header to entries with the right CRC-32, or to the protective
//! table before the first header.

use super::bytes::{array, le32, le64};
use super::crc::ieee;
use super::sectors;
use crate::clue::{Anchor, Structure};

/// The most bytes of entries that are read, twice those of 128 entries.
const MOST_ENTRIES: usize = 32 << 10;

/// A GUID partition table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gpt {
    uuid: [u8; 16],
    sector: u64,
    size: u64,
    partitions: Vec<Partition>,
}

/// A partition of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Its number, from 1.
    pub number: usize,
    /// Bytes from the start of the table's device.
    pub start: u64,
    /// Number of bytes.
    pub length: u64,
    /// GUID of its type, as it is stored.
    pub kind: [u8; 16],
}

/// Reads the header at `from`, and its place.
pub(super) fn recognise(window: &[u8], from: usize) -> Option<(Gpt, u64)> {
    let bytes = &window[from..];
    if !bytes.starts_with(b"EFI PART\0\0\x01\0") {
        return None;
    }
    let header = bytes.get(..512)?.get(..le32(bytes, 12)? as usize)?;
    let mut summed = header.to_vec();
    summed.get_mut(16..20)?.fill(0);
    let (own, other, first) = (le64(header, 24)?, le64(header, 32)?, le64(header, 72)?);
    if ieee(&summed) != le32(header, 16)? || own == 0 || own == other {
        return None;
    }
    let (count, each) = (le32(header, 80)? as usize, le32(header, 84)? as usize);
    let length = count.checked_mul(each).filter(|length| *length <= MOST_ENTRIES)?;
    let at_distance = |sectors: i128, sector: u64| {
        let at = from as i128 + sectors * i128::from(sector);
        window.get(usize::try_from(at).ok()?..)
    };
    for sector in [512, 4096] {
        let entries = at_distance(i128::from(first) - i128::from(own), sector);
        let entries = entries.and_then(|entries| entries.get(..length));
        let entries = entries.filter(|entries| Some(ieee(entries)) == le32(header, 88));
        let protects =
            |bytes: &[u8]| bytes.get(510..512) == Some(&[0x55, 0xaa]) && bytes[450] == 0xee;
        let is_first = own == 1 && at_distance(-1, sector).is_some_and(protects);
        if entries.is_none() && !is_first {
            continue;
        }
        let size = own.max(other).checked_add(1)?.checked_mul(sector)?;
        let partitions = partitions(entries.unwrap_or_default(), each, sector, size);
        return Some((Gpt { uuid: array(header, 56)?, sector, size, partitions }, own * sector));
    }
    None
}

fn partitions(entries: &[u8], each: usize, sector: u64, size: u64) -> Vec<Partition> {
    let used = |(number, entry): (usize, &[u8])| {
        let kind = array(entry, 0).filter(|kind| *kind != [0; 16])?;
        let start = le64(entry, 32)?.checked_mul(sector)?;
        let end = le64(entry, 40)?.checked_add(1)?.checked_mul(sector)?;
        let length = end.checked_sub(start)?;
        (end <= size).then_some(Partition { number, start, length, kind })
    };
    (1..).zip(entries.chunks_exact(each.max(128))).filter_map(used).collect()
}

impl Gpt {
    /// The partitions, if entries lay beside a header.
    pub fn partitions(&self) -> &[Partition] {
        &self.partitions
    }

    pub(super) fn anchor(&self) -> Anchor {
        Anchor { structure: Structure::Gpt, uuid: self.uuid, size: Some(self.size) }
    }

    pub(super) fn absorb(&mut self, other: &Gpt) -> bool {
        let of = |one: &Gpt| (one.uuid, one.sector, one.size);
        let is_same = of(self) == of(other);
        if is_same && self.partitions.is_empty() {
            self.partitions.clone_from(&other.partitions);
        }
        is_same
    }

    pub(super) fn clues(&self, window: &[u8], mut give: impl FnMut(usize, u64, usize)) {
        for (from, _) in sectors(window) {
            if let Some((copy, place)) = recognise(window, from)
                && self.clone().absorb(&copy)
            {
                give(from, place, 512);
            }
        }
    }
}
