//! Finds the records in a member's log.

use std::ops::Range;

use super::{BLOCK, Head, Record, padded};
use crate::rejection::LogRejection;

/// A record with a sound payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its header.
    pub record: Record,
    /// Start of the record, in bytes from the area's start.
    pub position: usize,
    /// Range of its payload, without padding.
    pub payload: Range<usize>,
}

/// All records in `area`, a log's [`Head::area`] bytes from the start of its ring, in the order of
/// their places. Whatever is no sound record is passed over: records that a crash tore, older ones
/// under newer ones, records of earlier runs.
#[must_use]
pub fn scan(area: &[u8], head: &Head) -> Vec<Found> {
    let ring = &area[..area.len().min(head.ring() as usize)];
    let mut found = Vec::new();
    let mut position = 0;
    while position + BLOCK <= ring.len() {
        match record_at(ring, position, head) {
            Ok(record) => {
                let next = record.payload.start + padded(record.payload.len() as u64) as usize;
                found.push(record);
                position = next;
            }
            Err(_) => position += BLOCK,
        }
    }
    found
}

/// The record at this place of the ring, with a sound payload.
fn record_at(ring: &[u8], position: usize, head: &Head) -> Result<Found, LogRejection> {
    let record = Record::parse(&ring[position..], head)?;
    let (start, len) = (position + BLOCK, record.payload_len as usize);
    let outside =
        LogRejection::OutsideRing { start: position, len: record.ring_len(), ring: ring.len() };
    if padded(len as u64) > (ring.len() - start) as u64 {
        return Err(outside);
    }
    let payload = start..start + len;
    let (stored, computed) =
        (record.payload_checksum, Record::checksum_of([&ring[payload.clone()]]));
    if stored != computed {
        return Err(LogRejection::PayloadChecksum { stored, computed });
    }
    Ok(Found { record, position, payload })
}
