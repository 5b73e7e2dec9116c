//! The source of bytes: reads within the volume, through a small cache.

use std::io;
use std::ops::Range;

use crate::claims::{merged, parts_in};
use crate::error::{Tried, Trouble};

/// A volume that can be read.
pub trait ReadAt {
    /// Bytes of the volume.
    fn size(&self) -> u64;

    /// Fills `buf` with the bytes from `offset` on, all of which the volume has.
    ///
    /// # Errors
    /// The device's.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()>;
}

impl ReadAt for Vec<u8> {
    fn size(&self) -> u64 {
        self.len() as u64
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let from = self.get(offset as usize..).and_then(|rest| rest.get(..buf.len()));
        buf.copy_from_slice(from.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

/// Bytes that are read at once: metadata lie together.
const LINE: u64 = 64 << 10;
/// Lines that are held: 4 MiB.
const LINES: usize = 64;

/// Reads with a direct-mapped cache.
pub(crate) struct Reader<'a> {
    source: &'a dyn ReadAt,
    size: u64,
    lines: Vec<(u64, Vec<u8>)>,
    pub(crate) doubts: Doubts,
}

/// Bytes of the volume that may be wrong.
#[derive(Default)]
pub(crate) struct Doubts {
    ranges: Vec<Range<u64>>,
    were_read: bool,
}

impl Doubts {
    pub(crate) fn set(&mut self, ranges: Vec<Range<u64>>) {
        self.ranges = merged(&ranges);
    }

    /// Returns whether some of them were read since the last call.
    pub(crate) fn took(&mut self) -> bool {
        std::mem::take(&mut self.were_read)
    }
}

impl<'a> Reader<'a> {
    pub(crate) fn new(source: &'a dyn ReadAt) -> Reader<'a> {
        Reader {
            source,
            size: source.size(),
            lines: vec![(u64::MAX, Vec::new()); LINES],
            doubts: Doubts::default(),
        }
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// The `len` bytes from `offset` on; `len` is that of a block.
    pub(crate) fn read(&mut self, offset: u64, len: usize) -> Tried<Vec<u8>> {
        let end = offset.checked_add(len as u64).filter(|end| *end <= self.size);
        let end = end.ok_or(Trouble::Beyond { offset, len })?;
        self.doubts.were_read |= parts_in(offset..end, &self.doubts.ranges).next().is_some();
        let line = offset / LINE;
        if line != (end - 1) / LINE || !self.load(line) {
            return self.read_plainly(offset, len);
        }
        let from = (offset - line * LINE) as usize;
        Ok(self.lines[line as usize % LINES].1[from..from + len].to_vec())
    }

    /// Sees to it that a line is there; false if it cannot be read as a whole.
    fn load(&mut self, line: u64) -> bool {
        let offset = line * LINE;
        let len = LINE.min(self.size - offset) as usize;
        let (held, bytes) = &mut self.lines[line as usize % LINES];
        if *held == line {
            return true;
        }
        bytes.resize(len, 0);
        let read = self.source.read_at(offset, bytes).is_ok();
        *held = if read { line } else { u64::MAX };
        read
    }

    fn read_plainly(&self, offset: u64, len: usize) -> Tried<Vec<u8>> {
        let mut bytes = vec![0; len];
        let read = self.source.read_at(offset, &mut bytes);
        read.map_err(|error| Trouble::Read { offset, len, error })?;
        Ok(bytes)
    }
}
