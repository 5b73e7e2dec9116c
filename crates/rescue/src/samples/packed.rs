//! gzip and xz, and the inflation that ZIP shares.

use flate2::{Decompress, FlushDecompress, Status};

use super::bytes::{fault, le16, le32, part};
use super::{Finding, MOST_UNPACKED};

/// Inflated data.
pub(super) enum Inflated {
    /// The CRC-32 and length of the content, and the number of packed bytes.
    Whole { crc: u32, length: u64, packed: usize },
    /// It is damaged, at or before this many packed bytes.
    Damaged(usize),
    /// It is longer than is unpacked.
    TooLong,
}

/// Inflates raw deflate data.
pub(super) fn inflate(bytes: &[u8]) -> Inflated {
    let mut inflater = Decompress::new(false);
    let mut crc = crc32fast::Hasher::new();
    let mut out = vec![0; 64 << 10];
    loop {
        let (before_in, before_out) = (inflater.total_in(), inflater.total_out());
        let at = usize::try_from(before_in).unwrap_or(bytes.len()).min(bytes.len());
        let status = inflater.decompress(&bytes[at..], &mut out, FlushDecompress::None);
        let read = usize::try_from(inflater.total_in()).unwrap_or(bytes.len()).min(bytes.len());
        let count = usize::try_from(inflater.total_out() - before_out).unwrap_or(0);
        crc.update(&out[..count.min(out.len())]);
        match status {
            Ok(Status::StreamEnd) => {
                let length = inflater.total_out();
                return Inflated::Whole { crc: crc.finalize(), length, packed: read };
            }
            Ok(_) if inflater.total_out() > MOST_UNPACKED => return Inflated::TooLong,
            Ok(_) if inflater.total_in() > before_in || count > 0 => {}
            _ => return Inflated::Damaged(read),
        }
    }
}

/// Members with a header, deflate data, a CRC-32 and a length.
///
/// Source: RFC 1952.
pub(super) fn gzip(bytes: &[u8]) -> Finding {
    let mut at = 0;
    while part(bytes, at, 2) == Some(&[0x1f, 0x8b]) || at == 0 {
        let Some(start) = header_end(bytes, at) else {
            return Finding::bad(at..bytes.len().min(at + 10), "the header is damaged");
        };
        match inflate(bytes.get(start..).unwrap_or_default()) {
            Inflated::TooLong => return Finding::Unknown,
            Inflated::Damaged(packed) => {
                let why = "the compressed data are damaged";
                return Finding::Bad(vec![fault(bytes, at, start + packed + 8, why)]);
            }
            Inflated::Whole { crc, length, packed } => {
                let end = start + packed;
                let (sum, size) = (le32(bytes, end), le32(bytes, end + 4));
                // The length is noted modulo 2³².
                if sum != Some(crc) || size.map(u64::from) != Some(length & u64::from(u32::MAX)) {
                    let why = "the CRC of the content differs";
                    return Finding::Bad(vec![fault(bytes, at, end + 8, why)]);
                }
                at = end + 8;
            }
        }
    }
    Finding::Good
}

/// The end of a header at `at`.
fn header_end(bytes: &[u8], at: usize) -> Option<usize> {
    let flags = *part(bytes, at, 10).filter(|header| header[2] == 8)?.get(3)?;
    let mut end = at + 10;
    if flags & 4 != 0 {
        end += 2 + usize::from(le16(bytes, end)?);
    }
    for flag in [8, 16] {
        if flags & flag != 0 {
            end += bytes.get(end..)?.iter().position(|byte| *byte == 0)? + 1;
        }
    }
    if flags & 2 != 0 {
        end += 2;
    }
    (flags & 0xe0 == 0).then_some(end)
}

/// The headers of one stream, its index and its footer; blocks are not unpacked.
///
/// Source: The .xz File Format 1.2.0.
pub(super) fn xz(bytes: &[u8]) -> Finding {
    const HEADER: usize = 12;
    let sum = |range: std::ops::Range<usize>| bytes.get(range).map(crc32fast::hash);
    if sum(6..8).is_none() || sum(6..8) != le32(bytes, 8) {
        return Finding::bad(0..bytes.len().min(HEADER), "the CRC of the header differs");
    }
    let padding = bytes.iter().rev().take_while(|byte| **byte == 0).count();
    let end = bytes.len() - padding;
    let Some(footer) = end.checked_sub(HEADER).filter(|at| *at >= HEADER) else {
        return Finding::bad(0..bytes.len(), "the footer is missing");
    };
    if part(bytes, footer + 10, 2) != Some(b"YZ")
        || sum(footer + 4..footer + 10) != le32(bytes, footer)
    {
        return Finding::bad(footer..end, "the CRC of the footer differs");
    }
    let size = le32(bytes, footer + 4).map(|size| (u64::from(size) + 1) * 4);
    let size = size.and_then(|size| usize::try_from(size).ok());
    let Some((index, size)) = size.and_then(|size| Some((footer.checked_sub(size)?, size))) else {
        return Finding::bad(footer..end, "the index begins before the file");
    };
    let last = index + size - 4;
    if sum(index..last) != le32(bytes, last) {
        return Finding::bad(index..footer, "the CRC of the index differs");
    }
    Finding::Good
}
