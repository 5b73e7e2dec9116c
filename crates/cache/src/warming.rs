//! Saves the contents of a cache when it ends, and restores them when it starts.
//!
//! ```text
//!   end      ──▶ Snapshot: head and data         ──▶ a file
//!   start    ◀── data, if the origin was not written since: `take`
//!            ◀── otherwise block numbers, to read them again: `refill`
//! ```

use std::ops::Range;
use std::rc::Rc;

use braid_block::Io;
use braid_mem::Pool;

use crate::cache::Cache;
use crate::contents::Piece;
use crate::marks::{SECTOR, runs};
use crate::slot::Slot;
use crate::state::CacheState;
use crate::warm::{Head, SavedBlock};

/// Maximum bytes per request of a refill.
const REFILL: u64 = 256 << 10;

/// Contents of a cache at its end.
pub struct Snapshot {
    state: Rc<CacheState>,
    slots: Vec<Slot>,
    head: Head,
}

impl Cache {
    /// Returns the contents of a cache that gets no more requests. `origin` is stored for the
    /// reader.
    pub fn leave(&self, origin: String, has_data: bool) -> Snapshot {
        let state = Rc::clone(&self.state);
        let slots = state.contents.borrow_mut().evict_all();
        let block = u32::try_from(state.config.get().block).expect("64 KiB at most");
        let mut snapshot =
            Snapshot { state, slots, head: Head { origin, block, has_data, kept: vec![] } };
        let mut data = vec![0; block as usize];
        for index in 0..snapshot.slots.len() {
            let contents = snapshot.state.contents.borrow();
            let slot = snapshot.slots[index];
            let (block, marks) =
                (contents.directory.block_of(slot), contents.valid.of(slot).to_vec());
            drop(contents);
            let checksum = if has_data { snapshot.sum(index, &marks, &mut data) } else { 0 };
            snapshot.head.kept.push(SavedBlock { block, checksum, marks });
        }
        snapshot
    }

    /// Restores the sectors of a saved block, if the checksum of `data` matches. Returns whether it
    /// did. Call it before the first request, and only if the origin was not written since.
    pub fn take(&self, kept: &SavedBlock, data: &[u8]) -> bool {
        let block = self.config().block;
        let end = kept.block.checked_add(1).and_then(|next| next.checked_mul(block));
        let is_on_origin = end.is_some_and(|end| end - block < self.state.origin.limits().size);
        if !is_on_origin || data.len() as u64 != block || crc32c::crc32c(data) != kept.checksum {
            return false;
        }
        let mut contents = self.state.contents.borrow_mut();
        for sectors in runs(kept.marks.iter().copied()) {
            let bytes = bytes_of(&sectors);
            let (within, len) = (bytes.start as u64, bytes.len() as u64);
            let piece = Piece { block: kept.block, within, len };
            let Some(put) = contents.put(piece, false) else { return false };
            self.state.memory.borrow().write(put.at, &data[bytes]);
        }
        true
    }

    /// Reads `blocks` from the origin while clients are served, one request at a time; adjacent
    /// blocks are one request. Skips blocks that fail or lack memory. Returns the number of bytes
    /// read.
    pub async fn refill(&self, blocks: Vec<u64>, pool: &Pool) -> u64 {
        let block = self.config().block;
        let size = self.state.origin.limits().size;
        let mut done = 0;
        for run in neighbours(blocks, REFILL / block) {
            let end = run.end.saturating_mul(block).min(size);
            let Some(len) = end.checked_sub(run.start.saturating_mul(block)) else { continue };
            // Clients have priority if request memory is short.
            let Some(buf) = pool.get(len as usize) else { continue };
            done += Rc::clone(&self.state).fill(Io::read(run.start * block, buf)).await;
        }
        done
    }
}

impl Snapshot {
    /// Returns everything before the data.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// Reads the data of the block at `index` of the head into a buffer of one block.
    pub fn read(&self, index: usize, into: &mut [u8]) {
        self.read_marked(index, &self.head.kept[index].marks, into);
    }

    fn read_marked(&self, index: usize, marks: &[u8], into: &mut [u8]) {
        let at = self.slots[index].index() * into.len();
        into.fill(0);
        for sectors in runs(marks.iter().copied()) {
            let bytes = bytes_of(&sectors);
            self.state.memory.borrow().read(at + bytes.start, &mut into[bytes]);
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

/// Returns runs of adjacent blocks, of up to `most` blocks each, in order.
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

#[cfg(test)]
mod tests {
    use super::neighbours;

    /// Blocks come in the order in which a cache would evict them, from a file that may name a block twice: adjacent
    /// ones are read by one request, and none is read twice.
    #[test]
    fn blocks_in_any_order_are_read_once_and_adjacent_ones_together() {
        assert_eq!(neighbours(vec![7, 3, 5, 4, 3, 9, 6], 8), [3..8, 9..10]);
        assert_eq!(neighbours(vec![2, 0, 1, 3, 4], 2), [0..2, 2..4, 4..5]);
        assert_eq!(neighbours(vec![u64::MAX, 4, 1], 8), [1..2, 4..5]);
    }
}
