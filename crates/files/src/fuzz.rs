//! Entry points for fuzzers: bytes in, panic on a broken invariant, nothing out.

use std::ops::Range;

use crate::sparse::Sparse;
use crate::{Limits, ReadAt, owners};

/// Any bytes as a packed image of a file system, all of which is wanted: every wanted byte has an owner, and
/// none that is not wanted has.
pub fn fuzz_files(data: &[u8]) {
    let image = Sparse::unpack(data);
    let limits = Limits { pieces: 2000, name_bytes: 64 << 10 };
    let wanted: Range<u64> = 0..image.size().saturating_add(512);
    let Ok(report) = owners(&image, std::slice::from_ref(&wanted), &limits) else { return };
    let is_cut = report.pieces.len() >= limits.pieces;
    let mut at = wanted.start;
    for piece in &report.pieces {
        assert!(piece.range.start < piece.range.end && piece.range.end <= wanted.end, "a range");
        assert!(is_cut || piece.range.start <= at, "a gap at {at}");
        assert!(
            piece.owner.inode().is_none_or(|inode| report.files.contains_key(&inode)),
            "a file"
        );
        at = at.max(piece.range.end);
    }
    assert!(is_cut || at == wanted.end, "a gap at the end");
}
