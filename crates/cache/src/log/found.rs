//! What a log's device holds: the superblock that counts, its records, and what of both is damaged. Reads only.
//!
//! Invariants
//! * The superblock and its copy are written one after the other before anything relies on either, so each of
//!   them suffices. Version 1 wrote them in turn: there each has to be sound.
//! * The log ends with the first record that is not sound, unless a block that is sound says that the record
//!   was durable: then it is damaged.

use braid_block::{Completion, Errno, Io};
use braid_engine::Dev;
use braid_mem::{Buf, Pool};

use super::error::{LogError, Replayed, Rot};
use super::format::{BLOCK, Header, RING_START, Rejection, Superblock};
use super::ring::Cursor;

/// Bytes that are searched in one piece.
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
    /// The one that counts, and where it lies; none if nothing there is sound.
    pub(super) newest: Option<(Superblock, u64)>,
    /// Where one lies that is not sound, and why.
    damaged: Option<(u64, Rejection)>,
}

impl Superblocks {
    pub(super) async fn read(dev: &Dev, pool: &Pool) -> Result<Superblocks, LogError> {
        let mut found = Superblocks { newest: None, damaged: None };
        let (room, mut is_log) = (dev.limits().size, false);
        for offset in [0, BLOCK] {
            let bytes = read(dev, pool, offset, BLOCK).await?;
            is_log |= Superblock::is_one(&bytes);
            match Superblock::parse(&bytes, room) {
                Ok(one) => {
                    if found.newest.as_ref().is_none_or(|(other, _)| other.written < one.written) {
                        found.newest = Some((one, offset));
                    }
                }
                // What is no superblock at all says less than what is one.
                Err(why) if found.damaged.is_none() || why != Rejection::Magic => {
                    found.damaged = Some((offset, why));
                }
                Err(_) => {}
            }
        }
        found.damaged = found.damaged.filter(|_| is_log);
        Ok(found)
    }

    /// Returns why the newest sound superblock may not be the last one that was written.
    pub(super) fn doubt(&self) -> Option<&Rejection> {
        let has_copy = self.newest.as_ref().is_some_and(|(one, _)| one.durable.is_some());
        self.damaged.as_ref().filter(|_| !has_copy).map(|(_, why)| why)
    }

    /// Returns where the damaged one lies.
    pub(super) fn damaged(&self) -> Option<u64> {
        self.damaged.as_ref().map(|(offset, _)| *offset)
    }
}

/// The records of a log.
pub(super) struct Scanned {
    /// Those that count.
    pub(super) replayed: Replayed,
    /// What is damaged behind them.
    pub(super) rot: Option<Rot>,
}

impl Scanned {
    /// Returns the bytes of data that the origin may not have.
    pub(super) fn bytes(&self) -> u64 {
        self.rot.map_or(self.replayed.bytes, |rot| rot.bytes)
    }
}

/// Has `each` see the records that count, in order, with the bytes of their data.
pub(super) async fn scan(
    dev: &Dev,
    pool: &Pool,
    superblock: &Superblock,
    mut each: impl AsyncFnMut(&Header, &[u8]) -> Result<(), LogError>,
) -> Result<Scanned, LogError> {
    let capacity = superblock.area - RING_START;
    let mut cursor = Cursor::new(capacity, superblock.tail, superblock.tail_sequence);
    let mut replayed = Replayed::default();
    'records: loop {
        let first = cursor.candidates().next().unwrap_or_default();
        let mut end = (RING_START + first, BLOCK);
        for offset in cursor.candidates() {
            let bytes = read(dev, pool, RING_START + offset, BLOCK).await?;
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
            let data = data.as_deref().unwrap_or_default();
            if header.prove(data).is_err() {
                continue;
            }
            each(&header, data).await?;
            replayed.is_torn = false;
            replayed.records += 1;
            replayed.bytes += header.data_len();
            cursor = next;
            continue 'records;
        }
        let (durable, bytes) = behind(dev, pool, superblock, cursor.sequence()).await;
        let records = durable.saturating_sub(cursor.sequence());
        let bytes = replayed.bytes + bytes;
        let rot = Rot { offset: end.0, len: end.1, records, bytes };
        return Ok(Scanned { replayed, rot: (records > 0).then_some(rot) });
    }
}

/// Looks through the whole ring for records of this log: record number `sequence` is not sound. Returns the
/// sequence before which all records were durable, and the bytes of data in those from `sequence` on.
///
/// What cannot be read says nothing.
async fn behind(dev: &Dev, pool: &Pool, superblock: &Superblock, sequence: u64) -> (u64, u64) {
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
