//! Memory of the cached blocks, in parts of equal size: it grows and shrinks without copying.
//!
//! ```text
//!   | part 0, 64 MiB | part 1, 64 MiB | … | the last part, shorter |
//! ```
//!
//! Invariant: no block crosses parts, because the part size is a multiple of every block size.

use std::io;
use std::ops::Range;

use braid_mem::{Advice, Region};

/// Bytes per part, a power of two.
const PART: usize = 64 << 20;

/// Populated memory.
///
/// It is allocated and dropped separately from its cache, because both take time.
#[derive(Debug, Default)]
pub struct Memory {
    parts: Vec<Region>,
    len: usize,
}

impl Memory {
    /// Allocates `len` bytes.
    ///
    /// # Errors
    /// Out of memory.
    pub fn new(len: usize) -> io::Result<Memory> {
        Memory::to_grow(0, len, &|| true)
    }

    /// Allocates the memory that grows a memory of `len` bytes to `to` bytes; this may replace the
    /// last part. Allocating gigabytes takes time: `is_wanted` is checked before each part of 64
    /// MiB.
    ///
    /// # Errors
    /// Out of memory; `Interrupted` if it is not wanted any more. The memory is freed in both
    /// cases.
    pub fn to_grow(len: usize, to: usize, is_wanted: &dyn Fn() -> bool) -> io::Result<Memory> {
        let start = len / PART * PART;
        let lens = (start..to).step_by(PART).map(|at| PART.min(to - at));
        let part = |len| {
            if !is_wanted() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let region = Region::new(len, Advice::SparseHuge)?;
            // Populated now: a page fault while the cache serves requests could wait for memory,
            // and so for this device.
            region.populate();
            Ok(region)
        };
        let parts = lens.map(part).collect::<io::Result<Vec<_>>>()?;
        Ok(Memory { len: parts.iter().map(Region::len).sum(), parts })
    }

    /// Returns its length in bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Adds the memory from [`Memory::to_grow`]. Returns the replaced part, for the caller to drop.
    pub(crate) fn grow(&mut self, more: Memory) -> Memory {
        let whole = self.len / PART;
        let replaced = self.parts.split_off(whole);
        if let (Some(from), Some(to)) = (replaced.first(), more.parts.first()) {
            copy(from, 0..from.len().min(to.len()), to, 0);
        }
        self.len = whole * PART + more.len;
        self.parts.extend(more.parts);
        Memory { len: replaced.iter().map(Region::len).sum(), parts: replaced }
    }

    /// Cuts the memory to `len` bytes. Returns whole parts beyond that, for the caller to drop; the
    /// end of the last part is freed.
    pub(crate) fn shrink(&mut self, len: usize) -> Memory {
        let parts = self.parts.split_off(len.div_ceil(PART).min(self.parts.len()));
        if let Some(last) = self.parts.last() {
            let cut = len - (self.parts.len() - 1) * PART;
            if cut < last.len() {
                last.zero(cut, last.len() - cut, false);
            }
        }
        self.len = len;
        Memory { len: parts.iter().map(Region::len).sum(), parts }
    }

    /// Copies from `offset` to `into`; the range lies in one block.
    #[inline]
    pub(crate) fn read(&self, offset: usize, into: &mut [u8]) {
        self.parts[offset / PART].read(offset % PART, into);
    }

    /// Copies `from` to `offset`; the range lies in one block.
    #[inline]
    pub(crate) fn write(&self, offset: usize, from: &[u8]) {
        self.parts[offset / PART].write(offset % PART, from);
    }

    /// Copies a block to another place.
    pub(crate) fn copy(&self, from: Range<usize>, to: usize) {
        let (source, target) = (&self.parts[from.start / PART], &self.parts[to / PART]);
        let start = from.start % PART;
        copy(source, start..start + from.len(), target, to % PART);
    }
}

/// Copies through a buffer, because there are no references into regions.
fn copy(source: &Region, from: Range<usize>, target: &Region, to: usize) {
    let mut buf = [0; 4096];
    for at in from.clone().step_by(buf.len()) {
        let buf_len = buf.len().min(from.end - at);
        let buf = &mut buf[..buf_len];
        source.read(at, buf);
        target.write(to + (at - from.start), buf);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(memory: &Memory, range: Range<usize>) {
        range.step_by(4096).for_each(|at| memory.write(at, &(at as u64 + 1).to_le_bytes()));
    }

    fn check(memory: &Memory, range: Range<usize>) {
        for at in range.step_by(4096) {
            let mut bytes = [0; 8];
            memory.read(at, &mut bytes);
            assert_eq!(u64::from_le_bytes(bytes), at as u64 + 1);
        }
    }

    #[test]
    fn what_was_there_stays_there_when_it_grows_and_shrinks() {
        const SOME: usize = 256 << 10;
        let sizes = [PART + SOME, PART + 2 * SOME, PART, SOME, 2 * SOME, PART, PART + SOME];
        let mut memory = Memory::new(2 * PART + SOME).expect("memory");
        let mut len = 2 * PART + SOME;
        fill(&memory, 0..len);
        for to in sizes {
            if to > len {
                drop(memory.grow(Memory::to_grow(len, to, &|| true).expect("memory")));
                check(&memory, 0..len);
                fill(&memory, len..to);
            } else {
                drop(memory.shrink(to));
            }
            len = to;
            assert_eq!(memory.len(), len);
            check(&memory, 0..len);
        }
    }

    #[test]
    fn memory_that_is_not_wanted_any_more_is_given_up_between_two_parts() {
        let asked = std::cell::Cell::new(0);
        let is_wanted = || {
            asked.set(asked.get() + 1);
            asked.get() < 2
        };
        let error = Memory::to_grow(0, 64 * PART, &is_wanted).expect_err("it is given up");
        assert_eq!((error.kind(), asked.get()), (io::ErrorKind::Interrupted, 2), "after one part");
    }
}
