//! The memory that blocks lie in: parts of the same size, so that it grows and shrinks without a copy.
//!
//! ```text
//!   | part 0, 64 MiB | part 1, 64 MiB | … | the last, what is left |
//! ```
//!
//! Invariant: no block lies in two parts: a part's size is a multiple of every block's.

use std::io;
use std::ops::Range;

use braid_mem::{Advice, Region};

/// Bytes of a part, a power of two.
const PART: usize = 64 << 20;

/// Memory for so many bytes, populated.
///
/// It is made apart from the cache that it is for, and dropped apart from it, because both take a while.
#[derive(Debug, Default)]
pub struct Memory {
    parts: Vec<Region>,
    len: usize,
}

impl Memory {
    /// `len` bytes.
    ///
    /// # Errors
    /// No memory.
    pub fn new(len: usize) -> io::Result<Memory> {
        Memory::to_grow(0, len, &|| true)
    }

    /// What has to be added to one of `len` bytes, whose last part may be replaced, to make it one of
    /// `to` bytes. Gigabytes take a while: `is_wanted` is asked before each part of 64 MiB.
    ///
    /// # Errors
    /// No memory; `Interrupted` when it is not wanted any more: what was had by then is given back.
    pub fn to_grow(len: usize, to: usize, is_wanted: &dyn Fn() -> bool) -> io::Result<Memory> {
        let start = len / PART * PART;
        let lens = (start..to).step_by(PART).map(|at| PART.min(to - at));
        let part = |len| {
            if !is_wanted() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let region = Region::new(len, Advice::SparseHuge)?;
            // All of it now: a page that is first touched while requests are served may have to wait
            // for memory, and so for this very device.
            region.populate();
            Ok(region)
        };
        let parts = lens.map(part).collect::<io::Result<Vec<_>>>()?;
        Ok(Memory { len: parts.iter().map(Region::len).sum(), parts })
    }

    /// In bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Adds what [`Memory::to_grow`] made; what it replaces is answered, to be dropped elsewhere.
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

    /// Takes off what lies beyond `len` bytes, as far as it is whole parts; it is answered, to be dropped
    /// elsewhere. What is cut off a part that stays is given back, and not used.
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

    /// Copies from `offset` on, as far as `into` goes, which lies in one block.
    #[inline]
    pub(crate) fn read(&self, offset: usize, into: &mut [u8]) {
        self.parts[offset / PART].read(offset % PART, into);
    }

    /// Copies `from` to `offset`: both lie in one block.
    #[inline]
    pub(crate) fn write(&self, offset: usize, from: &[u8]) {
        self.parts[offset / PART].write(offset % PART, from);
    }

    /// Copies a block from one place to another.
    pub(crate) fn copy(&self, from: Range<usize>, to: usize) {
        let (source, target) = (&self.parts[from.start / PART], &self.parts[to / PART]);
        let start = from.start % PART;
        copy(source, start..start + from.len(), target, to % PART);
    }
}

/// By way of a buffer: nobody has a reference into a region.
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
