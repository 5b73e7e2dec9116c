//! A cache that ends tells what it held, and one that begins is told.
//!
//! ```text
//!   ends     ──▶ Left: head and data            ──▶ a file
//!   begins   ◀── data, if nobody wrote the origin since: `take`
//!            ◀── else only which blocks there were, which are read anew: `refill`
//! ```

use std::ops::Range;
use std::rc::Rc;

use braid_block::Io;
use braid_mem::Pool;

use crate::cache::Cache;
use crate::contents::Piece;
use crate::held::Held;
use crate::marks::{SECTOR, runs};
use crate::slot::Slot;
use crate::warm::{Head, Kept};

/// Bytes that are read in one request to fill a cache again.
const REFILL: u64 = 256 << 10;

/// What a cache held when it ended.
pub struct Left {
    held: Rc<Held>,
    slots: Vec<Slot>,
    head: Head,
}

impl Cache {
    /// What is held, for a cache that is asked nothing any more. `origin` is said to whoever reads it.
    pub fn leave(&self, origin: String, has_data: bool) -> Left {
        let held = Rc::clone(&self.held);
        let slots = held.contents.borrow_mut().all_leave();
        let block = u32::try_from(held.config.get().block).expect("64 KiB at most");
        let mut left = Left { held, slots, head: Head { origin, block, has_data, kept: vec![] } };
        let mut data = vec![0; block as usize];
        for index in 0..left.slots.len() {
            let contents = left.held.contents.borrow();
            let slot = left.slots[index];
            let (block, marks) =
                (contents.directory.block_of(slot), contents.valid.of(slot).to_vec());
            drop(contents);
            let checksum = if has_data { left.sum(index, &marks, &mut data) } else { 0 };
            left.head.kept.push(Kept { block, checksum, marks });
        }
        left
    }

    /// Holds the sectors of a block that was kept, if `data` is what was; answers whether it is. For a
    /// cache that was not asked anything yet, whose origin was not written since.
    pub fn take(&self, kept: &Kept, data: &[u8]) -> bool {
        let block = self.config().block;
        let end = kept.block.checked_add(1).and_then(|next| next.checked_mul(block));
        let is_on_origin = end.is_some_and(|end| end - block < self.held.origin.limits().size);
        if !is_on_origin || data.len() as u64 != block || crc32c::crc32c(data) != kept.checksum {
            return false;
        }
        let mut contents = self.held.contents.borrow_mut();
        for sectors in runs(kept.marks.iter().copied()) {
            let bytes = bytes_of(&sectors);
            let (within, len) = (bytes.start as u64, bytes.len() as u64);
            let piece = Piece { block: kept.block, within, len };
            let Some(put) = contents.put(piece, false) else { return false };
            self.held.memory.borrow().write(put.at, &data[bytes]);
        }
        true
    }

    /// Reads what was held from the origin, beside whatever is asked, one request at a time: neighbours
    /// in one. What fails, or has no memory to be read to, is left out. Answers how many bytes were read.
    pub async fn refill(&self, blocks: Vec<u64>, pool: &Pool) -> u64 {
        let block = self.config().block;
        let size = self.held.origin.limits().size;
        let mut done = 0;
        for run in neighbours(blocks, REFILL / block) {
            let end = run.end.saturating_mul(block).min(size);
            let Some(len) = end.checked_sub(run.start.saturating_mul(block)) else { continue };
            // Clients come first, when memory for requests is short.
            let Some(buf) = pool.get(len as usize) else { continue };
            done += Rc::clone(&self.held).fill(Io::read(run.start * block, buf)).await;
        }
        done
    }
}

impl Left {
    /// What comes before the data.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// The data of the block that is `index` in the head, into a buffer of a block.
    pub fn read(&self, index: usize, into: &mut [u8]) {
        self.read_marked(index, &self.head.kept[index].marks, into);
    }

    fn read_marked(&self, index: usize, marks: &[u8], into: &mut [u8]) {
        let at = self.slots[index].index() * into.len();
        into.fill(0);
        for sectors in runs(marks.iter().copied()) {
            let bytes = bytes_of(&sectors);
            self.held.memory.borrow().read(at + bytes.start, &mut into[bytes]);
        }
    }

    fn sum(&self, index: usize, marks: &[u8], buf: &mut [u8]) -> u32 {
        self.read_marked(index, marks, buf);
        crc32c::crc32c(buf)
    }
}

fn bytes_of(sectors: &Range<usize>) -> Range<usize> {
    let size = SECTOR as usize;
    sectors.start * size..sectors.end * size
}

/// Runs of `blocks` that lie beside each other, of up to `most` each, in order.
fn neighbours(mut blocks: Vec<u64>, most: u64) -> Vec<Range<u64>> {
    blocks.sort_unstable();
    blocks.dedup();
    let mut runs: Vec<Range<u64>> = Vec::new();
    for block in blocks.into_iter().filter(|block| *block < u64::MAX) {
        match runs.last_mut() {
            Some(last) if last.end == block && block - last.start < most => last.end += 1,
            _ => runs.push(block..block + 1),
        }
    }
    runs
}
