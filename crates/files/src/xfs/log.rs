//! The log of xfs: whether something in it has not been written in place. It is not replayed.
//!
//! ```text
//!   record: header(512, magic, cycle, its own place, place of the oldest change) │ operations..     it is a ring
//! ```
//!
//! The newest record of a file system that was unmounted says so, in its only operation.
//!
//! Source: Linux 6.12, `fs/xfs/libxfs/xfs_log_format.h` and `fs/xfs/xfs_log_recover.c`.

use super::Xfs;
use crate::Replayed;
use crate::bytes::{be32, be64, byte};
use crate::error::{Tried, check};

const MAGIC: u32 = 0xfeed_babe;
const SECTOR: u64 = 512;
/// The flag of an operation that says that the file system was unmounted.
const UNMOUNTED: u8 = 0x20;
/// Bytes of a read.
const STEP: u64 = 64 << 10;

impl Xfs<'_> {
    /// Says if the log has changes that are not in place.
    pub(super) fn read_journal(&mut self) -> Replayed {
        const OLDER: &str = "files and names are those of the last checkpoint";
        let unreplayed = match self.dirty_log_bytes() {
            Ok(0) => None,
            Ok(bytes) => {
                Some(format!("{bytes} bytes of the log of xfs were not replayed: {OLDER}"))
            }
            Err(why) => Some(format!("the log of xfs was not read, nor replayed: {OLDER}: {why}")),
        };
        Replayed { unreplayed, ..Replayed::default() }
    }

    /// Bytes of the log that were not written in place; 0 if there are none, or no log on this volume.
    fn dirty_log_bytes(&mut self) -> Tried<u64> {
        let Some((first, count)) = self.superblock.log else { return Ok(0) };
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
        let Some((lsn, header)) = newest else { return Ok(0) };
        let sectors = (log.end - log.start) / SECTOR;
        let number = lsn & 0xffff_ffff;
        // Records of version 2 that are longer than 32 KiB have more headers.
        let size = if be32(&header, 8)? & 2 != 0 { u64::from(be32(&header, 320)?) } else { 0 };
        let headers = size.div_ceil(32 << 10).max(1);
        check(headers <= 8, "a record of the log is too long")?;
        let operation = (number + headers) % sectors;
        let operation = self.reader.read(log.start + operation * SECTOR, SECTOR as usize)?;
        if be32(&header, 40)? == 1 && byte(&operation, 9)? & UNMOUNTED != 0 {
            return Ok(0);
        }
        let oldest = (be64(&header, 24)? & 0xffff_ffff) % sectors;
        let records = u64::from(be32(&header, 12)?).div_ceil(SECTOR) + headers;
        Ok((number + records + sectors - oldest) % sectors * SECTOR)
    }
}
