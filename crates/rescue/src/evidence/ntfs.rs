//! NTFS.
//!
//! Records of the master file table (MFT) have their numbers, and in each sector two bytes that show that it was written
//! whole. The first record lists the extents of the table itself. Records have no UUID, so they are clues only if one
//! NTFS was found. The first four have copies in the mirror, and the boot sector has one at the end: these are none.

use super::bytes::{array, le16, le32, le64};
use super::sectors;
use crate::clue::{Anchor, Structure};

const SECTOR: usize = 512;
/// Records that lie together at the start of the table in any case.
const FIRST: u64 = 16;
const DATA: u32 = 0x80;
const END: u32 = u32::MAX;

/// A file system of NTFS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ntfs {
    serial: u64,
    size: u64,
    cluster: u64,
    record: u64,
    table: u64,
    /// The extents of the table: first byte in it, place, length; in order.
    extents: Vec<(u64, u64, u64)>,
}

/// Reads a boot sector.
pub(super) fn recognise(bytes: &[u8]) -> Option<Ntfs> {
    if bytes.get(3..11)? != b"NTFS    " || bytes.get(510..512)? != [0x55, 0xaa] {
        return None;
    }
    let sector = u64::from(le16(bytes, 11)?);
    let power = |byte: u8, unit: u64| match byte {
        0x80.. => 1_u64.checked_shl(u32::from(byte.wrapping_neg())),
        _ => Some(unit * u64::from(byte)),
    };
    let is_sector = sector.is_power_of_two() && (512..=4096).contains(&sector);
    let cluster = match bytes[13] {
        many @ 0xf0.. => sector << (256 - u32::from(many)),
        few => sector * u64::from(few),
    };
    let record = power(bytes[0x40], cluster)?;
    let sectors = le64(bytes, 0x28)?;
    let size = sectors.checked_add(1)?.checked_mul(sector)?;
    let table = le64(bytes, 0x30)?.checked_mul(cluster)?;
    let is_right = is_sector
        && cluster.is_power_of_two()
        && cluster <= 2 << 20
        && record.is_power_of_two()
        && (512..=65_536).contains(&record)
        && table < size
        && size < 1 << 60;
    let serial = le64(bytes, 0x48)?;
    is_right.then_some(Ntfs { serial, size, cluster, record, table, extents: Vec::new() })
}

impl Ntfs {
    pub(super) fn anchor(&self) -> Anchor {
        let mut uuid = [0; 16];
        uuid[..8].copy_from_slice(&self.serial.to_le_bytes());
        Anchor { structure: Structure::Ntfs, uuid, size: Some(self.size) }
    }

    pub(super) fn absorb(&mut self, other: &Ntfs) -> bool {
        let shape = |of: &Ntfs| Ntfs { extents: Vec::new(), ..of.clone() };
        let is_same = shape(self) == shape(other);
        if is_same && self.extents.is_empty() {
            self.extents.clone_from(&other.extents);
        }
        is_same
    }

    /// A record of the table: its number, and its bytes as they were before they were protected.
    fn record(&self, bytes: &[u8]) -> Option<(u64, Vec<u8>)> {
        if !bytes.starts_with(b"FILE") {
            return None;
        }
        let mut record = bytes.get(..self.record as usize)?.to_vec();
        let (at, count) = (usize::from(le16(&record, 4)?), usize::from(le16(&record, 6)?));
        if at < 0x30 || count != record.len() / SECTOR + 1 {
            return None;
        }
        let list = record.get(at..at + 2 * count)?.to_vec();
        for (sector, own) in record.chunks_exact_mut(SECTOR).zip(list[2..].chunks_exact(2)) {
            let end = &mut sector[SECTOR - 2..];
            if *end != list[..2] {
                return None;
            }
            end.copy_from_slice(own);
        }
        Some((u64::from(le32(&record, 0x2c)?), record))
    }

    /// Learns from the first record where the table lies.
    pub(super) fn learn(&mut self, window: &[u8]) {
        for (_, bytes) in sectors(window) {
            let Some((0, record)) = self.record(bytes) else { continue };
            let extents = self
                .extents(&record)
                .filter(|found| found.first().is_some_and(|(_, place, _)| *place == self.table));
            if let Some(extents) = extents.filter(|found| found.len() > self.extents.len()) {
                self.extents = extents;
            }
        }
    }

    /// The extents of a record's contents.
    fn extents(&self, record: &[u8]) -> Option<Vec<(u64, u64, u64)>> {
        let mut at = usize::from(le16(record, 20)?);
        loop {
            let (kind, length) = (le32(record, at)?, le32(record, at + 4)? as usize);
            let is_contents =
                kind == DATA && record.get(at + 8) == Some(&1) && record.get(at + 9) == Some(&0);
            if is_contents && le64(record, at + 16)? == 0 {
                let attribute = record.get(at..)?.get(..length)?;
                return self.runs(attribute.get(usize::from(le16(attribute, 32)?)..)?);
            }
            if kind == END || length < 8 {
                return None;
            }
            at += length;
        }
    }

    /// Reads runs: bytes of a length and of a distance in clusters, the distance with its sign.
    fn runs(&self, mut list: &[u8]) -> Option<Vec<(u64, u64, u64)>> {
        let (mut extents, mut first, mut cluster) = (Vec::new(), 0_u64, 0_i64);
        while let Some((&head, rest)) = list.split_first().filter(|(head, _)| **head != 0) {
            let (lengths, distances) = (usize::from(head & 15), usize::from(head >> 4));
            if !(1..=8).contains(&lengths) || !(1..=8).contains(&distances) {
                return None;
            }
            let (length, rest) = rest.split_at_checked(lengths)?;
            let (distance, rest) = rest.split_at_checked(distances)?;
            cluster = cluster.checked_add(signed(distance))?;
            let place = u64::try_from(cluster).ok()?.checked_mul(self.cluster)?;
            let length = u64::try_from(signed(length)).ok()?.checked_mul(self.cluster)?;
            if place.checked_add(length)? > self.size {
                return None;
            }
            extents.push((first, place, length));
            first = first.checked_add(length)?;
            list = rest;
        }
        Some(extents)
    }

    pub(super) fn clues(&self, window: &[u8], mut give: impl FnMut(usize, u64, usize)) {
        for (from, bytes) in sectors(window) {
            let Some((number, record)) = self.record(bytes) else { continue };
            if let Some(place) = self.place(number) {
                give(from, place, record.len());
            }
        }
    }

    fn place(&self, number: u64) -> Option<u64> {
        // The mirror has as many records as a cluster, four at least.
        if number < 4.max(self.cluster / self.record) {
            return None;
        }
        let at = number * self.record;
        let covers = |(first, _, length): &&(u64, u64, u64)| {
            (*first..first + length).contains(&at) && at + self.record <= first + length
        };
        match self.extents.iter().find(covers) {
            Some((first, place, _)) => Some(place + at - first),
            None => (self.extents.is_empty() && number < FIRST).then_some(self.table + at),
        }
    }
}

/// A number of up to eight bytes, little-endian, with its sign.
fn signed(bytes: &[u8]) -> i64 {
    let is_negative = bytes.last().is_some_and(|last| last & 0x80 != 0);
    let mut whole = if is_negative { [0xff; 8] } else { [0; 8] };
    whole[..bytes.len()].copy_from_slice(bytes);
    array(&whole, 0).map_or(0, i64::from_le_bytes)
}
