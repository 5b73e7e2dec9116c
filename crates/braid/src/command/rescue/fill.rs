//! The content of one extent, into a file that has zeros there.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use braid_files::{Extent, ReadAt};

use crate::command::listing::State;

/// Bytes of a read after one that failed: those of a sector of today's disks.
const SECTOR: usize = 4096;
/// Bytes that are left a hole if they are zero.
const HOLE: usize = 64 << 10;

/// Writes what of an extent can be read; the rest is lost, and stays a hole.
pub(super) fn fill(
    volume: &dyn ReadAt,
    file: &File,
    extent: &Extent,
    buffer: &mut [u8],
    state: &mut State,
) -> io::Result<()> {
    let mut at = extent.range.start;
    while at < extent.range.end {
        let len = (extent.range.end - at).min(buffer.len() as u64) as usize;
        let bytes = &mut buffer[..len];
        let offset = extent.offset + (at - extent.range.start);
        match volume.read_at(at, bytes) {
            Ok(()) => write_sparse(file, bytes, offset)?,
            Err(_) => {
                for (index, piece) in bytes.chunks_mut(SECTOR).enumerate() {
                    let step = (index * SECTOR) as u64;
                    let offset = offset + step;
                    match volume.read_at(at + step, piece) {
                        Ok(()) => write_sparse(file, piece, offset)?,
                        Err(_) => state.lost.add(offset..offset + piece.len() as u64),
                    }
                }
            }
        }
        at += len as u64;
    }
    Ok(())
}

/// Writes bytes into a new file, in which zeros stay a hole.
fn write_sparse(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    for (index, piece) in bytes.chunks(HOLE).enumerate() {
        if piece.iter().any(|byte| *byte != 0) {
            file.write_all_at(piece, offset + (index * HOLE) as u64)?;
        }
    }
    Ok(())
}
