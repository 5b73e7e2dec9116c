//! A volume with a journal replayed into memory: blocks whose newest copy lies in the journal are read from there.

use std::collections::BTreeMap;
use std::io;

use crate::source::ReadAt;

/// A copy of a block in the journal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copy {
    /// Bytes from the beginning of the volume.
    pub(crate) at: u64,
    /// The first four bytes, if the journal has others in their place.
    pub(crate) start: Option<[u8; 4]>,
}

/// The newest copies of blocks.
pub(crate) struct Overlay<'a> {
    source: &'a dyn ReadAt,
    /// Bytes of a block.
    block: u64,
    copies: BTreeMap<u64, Copy>,
}

impl<'a> Overlay<'a> {
    /// Puts `copies` of blocks, by their numbers, in front of a volume.
    pub(crate) fn new(source: &'a dyn ReadAt, block: u64, copies: BTreeMap<u64, Copy>) -> Self {
        Overlay { source, block, copies }
    }
}

impl ReadAt for Overlay<'_> {
    fn size(&self) -> u64 {
        self.source.size()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let end = offset + buf.len() as u64;
        let mut at = offset;
        while at < end {
            let number = at / self.block;
            let copy =
                self.copies.range(number..).next().filter(|(next, _)| *next * self.block < end);
            let upto = match copy {
                Some((next, _)) if *next == number => end.min((number + 1) * self.block),
                Some((next, _)) => *next * self.block,
                None => end,
            };
            let part = &mut buf[(at - offset) as usize..(upto - offset) as usize];
            match copy.filter(|(next, _)| **next == number) {
                None => self.source.read_at(at, part)?,
                Some((_, copy)) => {
                    let skip = at - number * self.block;
                    self.source.read_at(copy.at + skip, part)?;
                    let start = copy.start.iter().flatten().skip(skip as usize);
                    part.iter_mut().zip(start).for_each(|(byte, start)| *byte = *start);
                }
            }
            at = upto;
        }
        Ok(())
    }
}
