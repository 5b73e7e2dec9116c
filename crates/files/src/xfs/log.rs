//! The log of xfs: whether something in it has not been written in place, and of which inodes and blocks. It is not
//! replayed.
//!
//! ```text
//!   record: header(512, magic, cycle, its own place, place of the oldest change) │ operations..     it is a ring
//!                     │ first words of the sectors behind it     operation: length, flags │ "inode 4711", "block 8" or bytes
//! ```
//!
//! The newest record of a file system that was unmounted says so, in its only operation.
//!
//! Invariant: bytes in a log are untrusted. One that looks like a change of an inode puts this inode in doubt, and no more.
//!
//! Deliberately absent: replay. It needs the order of transactions over records, cancelled blocks, intents of extents and
//! of reference counts, and the numbers of inodes that are written in the order of the machine.
//!
//! Source: Linux 6.12, `fs/xfs/libxfs/xfs_log_format.h` and `fs/xfs/xfs_log_recover.c`.

use std::ops::Range;

use super::Xfs;
use crate::Replayed;
use crate::bytes::{be32, be64, byte, le16, le64, slice};
use crate::error::{Tried, check};

const MAGIC: u32 = 0xfeed_babe;
const SECTOR: u64 = 512;
/// The flag of an operation that says that the file system was unmounted.
const UNMOUNTED: u8 = 0x20;
/// Bytes of a read.
const STEP: u64 = 64 << 10;
/// Sectors whose first words a header has.
const WORDS: u64 = 64;
/// The most bytes of a record.
const LONGEST: u64 = 1 << 20;
/// Kinds of changes, and the mark of operations of transactions.
const INODE: u16 = 0x123b;
const BUFFER: u16 = 0x123c;
const TRANSACTION: u8 = 0x69;
/// The mark of logs of machines that write the lowest byte of a number first.
const LITTLE_ENDIAN: u32 = 1;
/// The most places that are kept.
const MOST: usize = 1 << 20;

impl Xfs<'_> {
    /// Says if the log has changes that are not in place.
    pub(super) fn read_journal(&mut self) -> Replayed {
        const OLDER: &str = "files and names are those of the last checkpoint";
        let mut in_flight = Vec::new();
        let unreplayed = match self.dirty_log() {
            Ok(None) => None,
            Ok(Some(dirty)) => {
                let bytes = dirty.sectors * SECTOR;
                let read = self.read_changes(&dirty, &mut in_flight);
                in_flight.sort_by_key(|range| (range.start, range.end));
                in_flight.dedup();
                let unread = match read {
                    Ok(()) => "",
                    Err(_) => "; not all of them could be told",
                };
                Some(format!(
                    "{bytes} bytes of the log of xfs were not replayed: {OLDER}. It has changes of {} inodes and blocks, \
                     which are in doubt{unread}",
                    in_flight.len()
                ))
            }
            Err(why) => Some(format!("the log of xfs was not read, nor replayed: {OLDER}: {why}")),
        };
        Replayed { unreplayed, in_flight, ..Replayed::default() }
    }

    /// The part of the log that was not written in place; none if there is none, or no log on this volume.
    fn dirty_log(&mut self) -> Tried<Option<Dirty>> {
        let Some((first, count)) = self.superblock.log else { return Ok(None) };
        let log = self.superblock.bytes(first, count)?;
        let mut newest: Option<(u64, Vec<u8>)> = None;
        let mut at = log.start;
        while at < log.end {
            let len = STEP.min(log.end - at);
            let bytes = self.reader.read(at, len as usize)?;
            for (index, sector) in bytes.chunks_exact(SECTOR as usize).enumerate() {
                let number = (at - log.start) / SECTOR + index as u64;
                let lsn = be64(sector, 16)?;
                // Contents of a record may look like one: a record knows its place.
                let is_record = be32(sector, 0)? == MAGIC && lsn & 0xffff_ffff == number;
                if is_record && newest.as_ref().is_none_or(|(last, _)| *last < lsn) {
                    newest = Some((lsn, sector.to_vec()));
                }
            }
            at += len;
        }
        let Some((lsn, header)) = newest else { return Ok(None) };
        let sectors = (log.end - log.start) / SECTOR;
        let number = lsn & 0xffff_ffff;
        let headers = headers(&header)?;
        let operation = (number + headers) % sectors;
        let operation = self.reader.read(log.start + operation * SECTOR, SECTOR as usize)?;
        if be32(&header, 40)? == 1 && byte(&operation, 9)? & UNMOUNTED != 0 {
            return Ok(None);
        }
        let oldest = (be64(&header, 24)? & 0xffff_ffff) % sectors;
        let records = u64::from(be32(&header, 12)?).div_ceil(SECTOR) + headers;
        let dirty = (number + records + sectors - oldest) % sectors;
        Ok((dirty > 0).then_some(Dirty { log, oldest, sectors: dirty }))
    }

    /// Reads the records of the dirty part of the log, and adds the bytes of the volume that they change.
    fn read_changes(&mut self, dirty: &Dirty, changed: &mut Vec<Range<u64>>) -> Tried<()> {
        let mut at = 0;
        while at < dirty.sectors {
            let header = self.log_sectors(dirty, at, 1)?;
            check(be32(&header, 0)? == MAGIC, "a record of the log is none")?;
            let (headers, length) = (headers(&header)?, u64::from(be32(&header, 12)?));
            check(length <= LONGEST, "a record of the log is too long")?;
            let sectors = length.div_ceil(SECTOR);
            let words = self.log_sectors(dirty, at, headers)?;
            let mut record = self.log_sectors(dirty, at + headers, sectors)?;
            for (index, sector) in record.chunks_exact_mut(SECTOR as usize).enumerate() {
                // The cycle stands in their place, so that a torn record is noticed.
                let (of, word) = (index / WORDS as usize, index % WORDS as usize);
                let first = if of == 0 { 44 } else { of * SECTOR as usize + 4 };
                sector[..4].copy_from_slice(slice(&words, first + 4 * word, 4)?);
            }
            check(be32(&header, 300)? == LITTLE_ENDIAN, "the log is of another kind of machine")?;
            self.changes_of(&record[..length as usize], changed);
            at += headers + sectors;
        }
        Ok(())
    }

    /// Sectors of the log, `at` sectors behind its oldest change. The log is a ring.
    fn log_sectors(&mut self, dirty: &Dirty, at: u64, count: u64) -> Tried<Vec<u8>> {
        let all = (dirty.log.end - dirty.log.start) / SECTOR;
        let mut bytes = Vec::new();
        for sector in at..at + count {
            let place = dirty.log.start + (dirty.oldest + sector) % all * SECTOR;
            bytes.extend(self.reader.read(place, SECTOR as usize)?);
        }
        Ok(bytes)
    }

    /// Adds the bytes that the operations of a record change: inodes, and blocks of metadata.
    fn changes_of(&self, mut record: &[u8], changed: &mut Vec<Range<u64>>) {
        while let Some((operation, rest)) = record.split_at_checked(12) {
            let length = be32(operation, 4).map_or(usize::MAX, |length| length as usize);
            let Some((change, rest)) = rest.split_at_checked(length) else { return };
            record = rest;
            let place = match operation[8] {
                TRANSACTION => self.place_of(change),
                _ => None,
            };
            changed.extend(place.filter(|_| changed.len() < MOST));
        }
    }

    /// The bytes of the volume that a change is of; none if it is none.
    fn place_of(&self, change: &[u8]) -> Option<Range<u64>> {
        let kind = le16(change, 0).ok()?;
        match (kind, change.len()) {
            // Machines of 32 bits have no gap before the number.
            (INODE, 52 | 56) => {
                let number = le64(change, change.len() - 40).ok()?;
                let start = self.superblock.inode_offset(number).ok()?;
                Some(start..start + self.superblock.inode_size)
            }
            (BUFFER, 24..) => {
                let sectors = u64::from(le16(change, 6).ok()?);
                let start = le64(change, 8).ok()?.checked_mul(SECTOR)?;
                let size = self.superblock.blocks * self.superblock.block;
                Some(start..start.checked_add(sectors * SECTOR).filter(|end| *end <= size)?)
            }
            _ => None,
        }
    }
}

/// The part of a log that has changes that are not in place.
struct Dirty {
    /// Bytes of the volume that the log has.
    log: Range<u64>,
    /// The first sector of the part, from the start of the log.
    oldest: u64,
    /// Sectors of the part.
    sectors: u64,
}

/// Sectors of a record's headers: records of version 2 that are longer than 32 KiB have more than one.
fn headers(header: &[u8]) -> Tried<u64> {
    let size = if be32(header, 8)? & 2 != 0 { u64::from(be32(header, 320)?) } else { 0 };
    let headers = size.div_ceil(32 << 10).max(1);
    check(headers <= 8, "a record of the log is too long")?;
    Ok(headers)
}
