//! Holes of a file, as its file system knows them.

use std::fs::File as StdFile;

use braid_block::{Extent, Span};
use rustix::fs::SeekFrom;

/// Returns the holes and data of `span`, as far as some hundred system calls find them.
pub(super) fn of(file: &StdFile, span: Span) -> Vec<Extent> {
    const MOST: usize = 128;
    let mut extents = Vec::new();
    let mut offset = span.offset;
    for _ in 0..MOST {
        let (allocated, next) = next_change(file, offset);
        // Where the file system does not say, the rest is data, which is always true.
        let end = next.unwrap_or(span.end()).min(span.end());
        let len = end - offset;
        // It may change between two questions, and then a stretch of data ends where it starts.
        if len > 0 {
            extents.push(if allocated { Extent::data(len) } else { Extent::hole(len) });
        }
        offset = end;
        if offset == span.end() {
            break;
        }
    }
    if extents.is_empty() {
        extents.push(Extent::data(span.len));
    }
    extents
}

/// Returns whether `offset` is allocated, and the offset where that changes, if it is known.
fn next_change(file: &StdFile, offset: u64) -> (bool, Option<u64>) {
    match rustix::fs::seek(file, SeekFrom::Data(offset)) {
        Ok(data) if data > offset => (false, Some(data)),
        Ok(_) => (true, rustix::fs::seek(file, SeekFrom::Hole(offset)).ok()),
        // No data up to the end of the file.
        Err(rustix::io::Errno::NXIO) => (false, None),
        Err(_) => (true, None),
    }
}
