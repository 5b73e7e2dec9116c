//! tar and PDF.

use super::bytes::{fault, part};
use super::{Fault, Finding};

/// Headers with the sum of their bytes, each at the end of the content before.
///
/// Source: POSIX.1-2017, pax, ustar interchange format.
pub(super) fn tar(bytes: &[u8]) -> Finding {
    const BLOCK: usize = 512;
    let mut at = 0;
    loop {
        let Some(header) = part(bytes, at, BLOCK) else {
            let start = at.min(bytes.len());
            return Finding::bad(start..bytes.len(), "the archive does not end");
        };
        if header.iter().all(|byte| *byte == 0) {
            return Finding::Good;
        }
        let sum: u64 = header.iter().map(|byte| u64::from(*byte)).sum();
        let field: u64 = header[148..156].iter().map(|byte| u64::from(*byte)).sum();
        // The field itself counts as eight spaces.
        if octal(&header[148..156]) != Some(sum - field + 8 * 32) {
            return Finding::Bad(vec![fault(bytes, at, at + BLOCK, "the sum of a header differs")]);
        }
        let Some(size) = size(&header[124..136]) else { return Finding::Unknown };
        let blocks = usize::try_from(size.div_ceil(BLOCK as u64)).unwrap_or(usize::MAX);
        at = at.saturating_add(BLOCK).saturating_add(blocks.saturating_mul(BLOCK));
    }
}

/// Octal digits between spaces and zero bytes.
fn octal(field: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(field).ok()?.trim_matches(['\0', ' ']);
    u64::from_str_radix(text, 8).ok()
}

/// A size: octal, or a big-endian number behind a set bit.
fn size(field: &[u8]) -> Option<u64> {
    match field[0] & 0x80 {
        0 => octal(field),
        _ => Some(u64::from_be_bytes(field[4..12].try_into().ok()?)),
    }
}

/// The table of objects where the end of the file says that it is.
///
/// Source: ISO 32000-1, 7.5.
pub(super) fn pdf(bytes: &[u8]) -> Finding {
    const TAIL: usize = 8192;
    let padding = bytes.iter().rev().take_while(|byte| **byte == 0).count();
    let end = bytes.len() - padding;
    let start = end.saturating_sub(TAIL);
    let tail = &bytes[start..end];
    let last = |word: &[u8]| tail.windows(word.len()).rposition(|one| one == word);
    let (Some(_), Some(at)) = (last(b"%%EOF"), last(b"startxref")) else {
        return Finding::bad(start..end, "its end is missing");
    };
    let text: String = tail[at + 9..].iter().take(32).map(|byte| char::from(*byte)).collect();
    let place = text.split_whitespace().next().and_then(|word| word.parse::<usize>().ok());
    let mut faults: Vec<Fault> = Vec::new();
    match place.and_then(|place| Some((place, bytes.get(place..)?))) {
        // Either a table, or an object that is one: `12 0 obj`.
        Some((_, table)) if table.trim_ascii_start().starts_with(b"xref") => {}
        Some((_, table)) if table.trim_ascii_start().first().is_some_and(u8::is_ascii_digit) => {}
        Some((place, _)) => {
            faults.push(fault(
                bytes,
                place,
                place + 32,
                "no table of objects is where the end says",
            ));
        }
        None => faults.push(fault(bytes, start + at, end, "its end names a place beyond the file")),
    }
    Finding::of(faults)
}
