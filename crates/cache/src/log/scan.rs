//! Reads a log's device: the current superblock, the records, and their damage. Does not write.
//!
//! Invariants
//! * The superblock and its copy are written one after the other before any operation relies on
//!   either, so each of them suffices. Version 1 wrote them in turn, so both must be valid.
//! * The log ends at the first invalid record. If a valid block states that this record was
//!   durable, the record is damaged.

use braid_block::{Completion, Errno, Io};
use braid_engine::Dev;
use braid_mem::{Buf, Pool};

use super::error::{LogError, Replayed, Rot};
use super::format::{BLOCK, Header, RING_START, Rejection, Superblock};
use super::ring::Cursor;
use crate::canary::Canary;

/// Bytes per read of the search.
const SEARCHED: u64 = 256 << 10;

fn errno(done: &Completion) -> Result<(), LogError> {
    done.result.map_err(LogError::Device)
}

async fn read(dev: &Dev, pool: &Pool, offset: u64, len: u64) -> Result<Buf, LogError> {
    let done = dev.start(Io::read(offset, pool.get_wait(len as usize).await)).await;
    errno(&done)?;
    done.payload.into_one().ok_or(LogError::Device(Errno::IO))
}

/// The superblocks of a device.
pub(super) struct Superblocks {
    /// The current superblock and its offset; `None` if neither is valid.
    pub(super) newest: Option<(Superblock, u64)>,
    /// Offset of an invalid superblock, and the reason.
    damaged: Option<(u64, Rejection)>,
}

impl Superblocks {
    pub(super) async fn read(dev: &Dev, pool: &Pool) -> Result<Superblocks, LogError> {
        let mut found = Superblocks { newest: None, damaged: None };
        let (room, mut is_log) = (dev.limits().size, false);
        for offset in [0, BLOCK] {
            let bytes = read(dev, pool, offset, BLOCK).await?;
            is_log |= Superblock::has_magic(&bytes);
            match Superblock::parse(&bytes, room) {
                Ok(one) => {
                    if found.newest.as_ref().is_none_or(|(other, _)| other.written < one.written) {
                        found.newest = Some((one, offset));
                    }
                }
                // A wrong magic number says less than other reasons.
                Err(why) if found.damaged.is_none() || why != Rejection::Magic => {
                    found.damaged = Some((offset, why));
                }
                Err(_) => {}
            }
        }
        found.damaged = found.damaged.filter(|_| is_log);
        Ok(found)
    }

    /// Returns why the newest valid superblock may not be the last one that was written.
    pub(super) fn doubt(&self) -> Option<&Rejection> {
        let has_copy = self.newest.as_ref().is_some_and(|(one, _)| one.durable.is_some());
        self.damaged.as_ref().filter(|_| !has_copy).map(|(_, why)| why)
    }

    /// Returns the offset of the damaged superblock.
    pub(super) fn damaged(&self) -> Option<u64> {
        self.damaged.as_ref().map(|(offset, _)| *offset)
    }
}

/// Result of a scan.
pub(super) struct ScanResult {
    /// The valid records.
    pub(super) replayed: Replayed,
    /// Damage after the valid records.
    pub(super) rot: Option<Rot>,
}

impl ScanResult {
    /// Returns the bytes of data that the origin may not have.
    pub(super) fn bytes(&self) -> u64 {
        self.rot.map_or(self.replayed.bytes, |rot| rot.bytes)
    }
}

/// Passes the valid records to `each`, in order, with their data, if there are some.
pub(super) async fn scan(
    dev: &Dev,
    pool: &Pool,
    superblock: &Superblock,
    mut each: impl AsyncFnMut(&Header, Option<Buf>) -> Result<(), LogError>,
) -> Result<ScanResult, LogError> {
    let capacity = superblock.area - RING_START;
    let mut cursor = Cursor::new(capacity, superblock.tail, superblock.tail_sequence);
    let mut replayed = Replayed::default();
    'records: loop {
        let first = cursor.candidates().next().unwrap_or_default();
        let mut end = (RING_START + first, BLOCK);
        for offset in cursor.candidates() {
            let bytes = match read(dev, pool, RING_START + offset, BLOCK).await {
                Err(_) if Canary::UnreadableIsEnd.is_planted() => continue,
                read => read?,
            };
            let Ok(header) = Header::parse(&bytes, &superblock.life, cursor.sequence()) else {
                continue;
            };
            drop(bytes);
            replayed.is_torn = true;
            let len = header.data_len().next_multiple_of(BLOCK);
            let mut next = cursor;
            if !next.take(offset, header.record_len()) {
                continue;
            }
            end = (RING_START + offset, header.record_len());
            let data = match len {
                0 => None,
                len => Some(read(dev, pool, RING_START + offset + BLOCK, len).await?),
            };
            if header.prove(data.as_deref().unwrap_or_default()).is_err() {
                continue;
            }
            each(&header, data).await?;
            replayed.is_torn = false;
            replayed.records += 1;
            replayed.bytes += header.data_len();
            cursor = next;
            continue 'records;
        }
        let (durable, bytes) = search_behind(dev, pool, superblock, cursor.sequence()).await;
        let records = durable.saturating_sub(cursor.sequence());
        let bytes = replayed.bytes + bytes;
        let rot = Rot { offset: end.0, len: end.1, records, bytes };
        return Ok(ScanResult { replayed, rot: (records > 0).then_some(rot) });
    }
}

/// Searches the whole ring for records of this log; record `sequence` is invalid. Returns the
/// sequence before which all records were durable, and the bytes of data in the records from
/// `sequence` on.
///
/// Unreadable parts are skipped.
async fn search_behind(
    dev: &Dev,
    pool: &Pool,
    superblock: &Superblock,
    sequence: u64,
) -> (u64, u64) {
    let Some(mut durable) = superblock.durable else { return (0, 0) };
    let mut bytes = 0;
    let mut offset = RING_START;
    while offset < superblock.area {
        let len = SEARCHED.min(superblock.area - offset);
        let piece = read(dev, pool, offset, len).await;
        for block in piece.iter().flat_map(|piece| piece.chunks_exact(BLOCK as usize)) {
            if let Ok(header) = Header::parse_any(block, &superblock.life) {
                durable = durable.max(header.durable.unwrap_or(0));
                bytes += if header.sequence < sequence { 0 } else { header.data_len() };
            }
        }
        offset += len;
    }
    (durable, bytes)
}
