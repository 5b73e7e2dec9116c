//! PNG and JPEG.

use super::bytes::{be16, be32, fault, part};
use super::{Fault, Finding};

/// Chunks with a length, a name, data, and a CRC-32 of name and data.
///
/// Source: W3C, Portable Network Graphics, section 5.3.
pub(super) fn png(bytes: &[u8]) -> Finding {
    const MOST_FAULTS: usize = 64;
    let mut faults: Vec<Fault> = Vec::new();
    let mut at = 8;
    while faults.len() < MOST_FAULTS {
        let header = be32(bytes, at).zip(part(bytes, at + 4, 4));
        let Some((length, name)) =
            header.filter(|(_, name)| name.iter().all(u8::is_ascii_alphabetic))
        else {
            faults.push(fault(bytes, at, at + 8, "no chunk is where the one before ends"));
            break;
        };
        let length = length as usize;
        let end = at.saturating_add(12).saturating_add(length);
        let covered = part(bytes, at + 4, length.saturating_add(4));
        let Some((covered, crc)) = covered.zip(be32(bytes, end - 4)) else {
            faults.push(fault(bytes, at, bytes.len(), "a chunk ends beyond the file"));
            break;
        };
        let name = String::from_utf8_lossy(name);
        if crc32fast::hash(covered) != crc {
            faults.push(fault(bytes, at, end, format!("the CRC of chunk {name} differs")));
        }
        if name == "IEND" {
            break;
        }
        at = end;
    }
    Finding::of(faults)
}

/// Markers and segments up to the end of the image. Entropy-coded data have no checksum, but no markers either.
///
/// Source: ITU-T T.81, annex B.
pub(super) fn jpeg(bytes: &[u8]) -> Finding {
    end_of_jpeg(bytes).err().unwrap_or(Finding::Good)
}

/// The number of bytes of a JPEG, or what is wrong with it.
pub(super) fn end_of_jpeg(bytes: &[u8]) -> Result<usize, Finding> {
    let mut at = 2;
    let mut scans = 0;
    loop {
        let Some(marker) =
            part(bytes, at, 2).filter(|marker| marker[0] == 0xff).map(|marker| marker[1])
        else {
            return Err(Finding::bad(
                at.min(bytes.len())..bytes.len().min(at + 2),
                "no marker is where one must be",
            ));
        };
        match marker {
            0xff => at += 1,
            0xd9 if scans > 0 => return Ok(at + 2),
            0xc0..=0xcf | 0xda..=0xdf | 0xe0..=0xef | 0xfe => {
                let Some(length) = be16(bytes, at + 2).filter(|length| *length >= 2) else {
                    let end = bytes.len().min(at + 4);
                    return Err(Finding::bad(at..end, "a segment has no length"));
                };
                at += 2 + usize::from(length);
                if marker == 0xda {
                    scans += 1;
                    match end_of_scan(bytes, at) {
                        Some(end) => at = end,
                        None => {
                            let start = at.min(bytes.len());
                            let range = start..bytes.len();
                            return Err(Finding::bad(range, "the picture does not end"));
                        }
                    }
                }
            }
            _ => {
                let end = bytes.len().min(at + 2);
                return Err(Finding::bad(at..end, "a marker that no picture has"));
            }
        }
    }
}

/// The place of the first marker behind entropy-coded data.
fn end_of_scan(bytes: &[u8], from: usize) -> Option<usize> {
    let rest = bytes.get(from..)?;
    let is_marker = |pair: &[u8]| pair[0] == 0xff && !matches!(pair[1], 0 | 0xd0..=0xd7 | 0xff);
    rest.windows(2).position(is_marker).map(|at| from + at)
}
