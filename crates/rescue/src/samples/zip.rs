//! ZIP: members by the central directory, which is at the end.
//!
//! Source: PKWARE, APPNOTE.TXT 6.3.10, sections 4.3 and 4.4.

use super::bytes::{fault, le16, le32, part};
use super::packed::{Inflated, inflate};
use super::{Fault, Finding, MOST_UNPACKED};

/// Bytes of the end record without its comment, and the longest comment.
const END: usize = 22;
const COMMENT: usize = 65_535;
/// Bytes of an entry in the central directory, and of a local header, without what varies.
const ENTRY: usize = 46;
const LOCAL: usize = 30;
const MOST_FAULTS: usize = 64;

/// A member, as the central directory has it.
struct Member<'a> {
    name: String,
    method: u16,
    is_encrypted: bool,
    crc: u32,
    packed: usize,
    local: usize,
    data: Option<(usize, &'a [u8])>,
}

pub(super) fn zip(bytes: &[u8]) -> Finding {
    let Some(end) = end_record(bytes) else {
        return Finding::bad(0..bytes.len(), "the end of the central directory is missing");
    };
    let (count, start) = (le16(bytes, end + 10).unwrap_or(0), le32(bytes, end + 16).unwrap_or(0));
    if count == u16::MAX || start == u32::MAX {
        // ZIP64 notes both elsewhere.
        return Finding::Unknown;
    }
    let (mut at, mut left) = (start as usize, MOST_UNPACKED);
    let (mut faults, mut compared): (Vec<Fault>, u64) = (Vec::new(), 0);
    for _ in 0..count {
        let Some((member, next)) = member(bytes, at) else {
            faults.push(fault(
                bytes,
                at,
                at + ENTRY,
                "an entry of the central directory is damaged",
            ));
            break;
        };
        at = next;
        let Some((from, data)) = member.data else {
            let why = format!("the header of {} is damaged", member.name);
            faults.push(fault(bytes, member.local, member.local + LOCAL, why));
            continue;
        };
        let sum = match (member.is_encrypted, member.method) {
            (false, 0) => Some(Ok(crc32fast::hash(data))),
            (false, 8) => match inflate(data) {
                Inflated::Whole { crc, length, .. } => {
                    left = left.saturating_sub(length);
                    Some(Ok(crc))
                }
                Inflated::Damaged(packed) => Some(Err(packed)),
                Inflated::TooLong => None,
            },
            _ => None,
        };
        match sum {
            None => {}
            Some(Ok(crc)) if crc == member.crc => compared += 1,
            Some(Ok(_)) => {
                let why = format!("the CRC of {} differs", member.name);
                faults.push(fault(bytes, from, from + member.packed, why));
            }
            Some(Err(packed)) => {
                let why = format!("the compressed data of {} are damaged", member.name);
                faults.push(fault(bytes, member.local, from + packed, why));
            }
        }
        if left == 0 || faults.len() == MOST_FAULTS {
            break;
        }
    }
    if faults.is_empty() && compared == 0 { Finding::Unknown } else { Finding::of(faults) }
}

/// The place of the last end record.
fn end_record(bytes: &[u8]) -> Option<usize> {
    let padding = bytes.iter().rev().take_while(|byte| **byte == 0).count();
    // The record may end with zeros itself.
    let last = (bytes.len() - padding + END).min(bytes.len()).checked_sub(END)?;
    let first = last.saturating_sub(COMMENT + END);
    (first..=last).rev().find(|at| part(bytes, *at, 4) == Some(b"PK\x05\x06"))
}

/// The member of the entry at `at`, and the place of the next entry.
fn member(bytes: &[u8], at: usize) -> Option<(Member<'_>, usize)> {
    let entry = part(bytes, at, ENTRY).filter(|entry| entry.starts_with(b"PK\x01\x02"))?;
    let lengths = [28, 30, 32].map(|at| le16(entry, at).map(usize::from));
    let [name, extra, comment] = lengths;
    let next = at + ENTRY + name? + extra? + comment?;
    let packed = le32(entry, 20)? as usize;
    let local = le32(entry, 42)? as usize;
    let data = || {
        let header = part(bytes, local, LOCAL).filter(|one| one.starts_with(b"PK\x03\x04"))?;
        let from = local + LOCAL + usize::from(le16(header, 26)?) + usize::from(le16(header, 28)?);
        Some((from, part(bytes, from, packed)?))
    };
    let member = Member {
        name: String::from_utf8_lossy(part(bytes, at + ENTRY, name?)?).into_owned(),
        method: le16(entry, 10)?,
        is_encrypted: le16(entry, 8)? & 1 != 0,
        crc: le32(entry, 16)?,
        packed,
        local,
        data: data(),
    };
    Some((member, next))
}
