//! Dirty sectors of the cache: which ones the log lacks, and which are being drained. Pure.
//!
//! ```text
//!              write          logged in a record      drain starts             the origin is flushed
//!   clean ───▶ dirty ───────▶ dirty ────────────────▶ dirty ─────────────────▶ clean
//!              unlogged                               draining
//!                 ▲                                      │
//!                 └────────────── another write ─────────┘
//! ```
//!
//! Invariants
//! * Unlogged and draining sectors are dirty; no sector is both.
//! * A record has all dirty sectors of a block. A replay therefore needs only the last durable
//!   record of each block, and those after it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::canary::Canary;
use crate::marks::{Marks, SECTOR, runs};
use crate::slot::{Slot, SlotMove};

/// State of the dirty sectors.
pub(crate) struct Dirty {
    dirty: Marks,
    unlogged: Marks,
    draining: Marks,
    /// Blocks with dirty sectors.
    blocks: BTreeMap<u64, BlockRecords>,
    /// Blocks with unlogged sectors.
    unlogged_blocks: BTreeSet<u64>,
    sectors: u64,
}

/// Records of a block with dirty sectors, by their position in the log.
#[derive(Clone, Copy, Default)]
struct BlockRecords {
    /// The durable record where a replay of the block has to start.
    oldest: Option<u64>,
    /// The newest record.
    newest: Option<u64>,
}

impl Dirty {
    /// Creates the state of `slots` blocks of `sectors` sectors; all are clean.
    pub(crate) fn new(slots: u32, sectors: usize) -> Dirty {
        let marks = || Marks::new(slots, sectors);
        Dirty {
            dirty: marks(),
            unlogged: marks(),
            draining: marks(),
            blocks: BTreeMap::new(),
            unlogged_blocks: BTreeSet::new(),
            sectors: 0,
        }
    }

    /// Changes the number of slots to `slots`, and moves blocks to other slots.
    pub(crate) fn rearrange<I: Iterator<Item = SlotMove>>(
        &mut self,
        slots: u32,
        places: impl Fn() -> I,
    ) {
        for marks in [&mut self.dirty, &mut self.unlogged, &mut self.draining] {
            *marks = marks.rearranged(slots, places());
        }
    }

    /// Returns the memory per slot, in bytes, times the number of slots.
    pub(crate) fn index_bytes(&self) -> usize {
        3 * self.dirty.bytes()
    }

    /// Returns the number of dirty bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.sectors * SECTOR
    }

    /// Returns the number of dirty bytes in `slot`.
    pub(crate) fn bytes_of(&self, slot: Slot) -> u64 {
        count(self.dirty.of(slot)) * SECTOR
    }

    /// Returns the number of blocks with dirty sectors.
    pub(crate) fn block_count(&self) -> u64 {
        self.blocks.len() as u64
    }

    /// Returns the number of blocks with unlogged sectors.
    pub(crate) fn unlogged_count(&self) -> u64 {
        self.unlogged_blocks.len() as u64
    }

    /// Returns whether `block` has dirty sectors.
    pub(crate) fn has(&self, block: u64) -> bool {
        self.blocks.contains_key(&block)
    }

    /// Returns whether `block` has unlogged sectors.
    pub(crate) fn is_unlogged(&self, block: u64) -> bool {
        self.unlogged_blocks.contains(&block)
    }

    /// Returns whether `slot` has dirty sectors.
    pub(crate) fn has_any(&self, slot: Slot) -> bool {
        self.dirty.has_any(slot)
    }

    /// Returns whether this sector of `slot` is dirty.
    pub(crate) fn is_dirty(&self, slot: Slot, sector: usize) -> bool {
        self.dirty.has_all(slot, sector..sector + 1)
    }

    /// Returns the first dirty block from `from` on, in order.
    pub(crate) fn next(&self, from: u64) -> Option<u64> {
        self.blocks.range(from..).next().map(|(block, _)| *block)
    }

    /// Returns whether any of `blocks` is dirty.
    pub(crate) fn touches(&self, blocks: Range<u64>) -> bool {
        self.blocks.range(blocks).next().is_some()
    }

    /// Returns the blocks with unlogged sectors, in order.
    pub(crate) fn unlogged(&self) -> Vec<u64> {
        self.unlogged_blocks.iter().copied().collect()
    }

    /// Returns the position of the oldest durable record that a replay may need.
    pub(crate) fn oldest_record(&self) -> Option<u64> {
        self.blocks.values().filter_map(|logged| logged.oldest).min()
    }

    /// Marks `sectors` of `block`, in `slot`, as dirty and unlogged.
    pub(crate) fn write(&mut self, block: u64, slot: Slot, sectors: Range<usize>) {
        self.sectors -= count(self.dirty.of(slot));
        self.dirty.set(slot, sectors.clone());
        self.sectors += count(self.dirty.of(slot));
        if !(Canary::RewriteCountsAsLogged.is_planted() && self.has(block)) {
            self.unlogged.set(slot, sectors.clone());
        }
        if !Canary::RewriteCountsAsDrained.is_planted() {
            self.draining.clear(slot, sectors);
        }
        self.blocks.entry(block).or_default();
        self.unlogged_blocks.insert(block);
    }

    /// Returns the runs of dirty sectors in `slot`; a record contains all of them.
    pub(crate) fn runs(&self, slot: Slot) -> Vec<Range<usize>> {
        runs(self.dirty.of(slot).iter().copied())
    }

    /// Marks the dirty sectors of `block` as logged: the record at `position` is being written.
    pub(crate) fn logged(&mut self, block: u64, slot: Slot, position: u64) {
        self.unlogged.clear_all(slot);
        self.unlogged_blocks.remove(&block);
        if let Some(logged) = self.blocks.get_mut(&block) {
            logged.newest = Some(position);
        }
    }

    /// Notes that the record at `position` is durable: a replay needs no older record of `block`.
    pub(crate) fn durable(&mut self, block: u64, position: u64) {
        let logged = self.blocks.get_mut(&block);
        if let Some(logged) = logged.filter(|logged| logged.newest == Some(position)) {
            logged.oldest = logged.newest;
        }
    }

    /// Marks the dirty sectors of `block` as draining, and returns them. With a log, only sectors
    /// in records before `durable` are drained.
    pub(crate) fn drain(
        &mut self,
        block: u64,
        slot: Slot,
        durable: Option<u64>,
    ) -> Vec<Range<usize>> {
        let is_durable = |at: &BlockRecords| at.newest.is_some_and(|at| Some(at) < durable);
        let is_logged = durable.is_none() || self.blocks.get(&block).is_some_and(is_durable);
        let is_strict = durable.is_some() && !Canary::DrainBeforeLog.is_planted();
        if is_strict && !is_logged {
            return Vec::new();
        }
        let draining = self.draining.of_mut(slot).iter_mut();
        for ((draining, dirty), unlogged) in
            draining.zip(self.dirty.of(slot)).zip(self.unlogged.of(slot))
        {
            *draining = if is_strict { dirty & !unlogged } else { *dirty };
        }
        if Canary::DrainBeforeLog.is_planted() {
            self.unlogged.clear_all(slot);
            self.unlogged_blocks.remove(&block);
        }
        runs(self.draining.of(slot).iter().copied())
    }

    /// Marks the draining sectors of `slot` as not drained: a write failed.
    pub(crate) fn drain_failed(&mut self, slot: Slot) {
        self.draining.clear_all(slot);
    }

    /// Marks the draining sectors of `block` as clean: the origin has made them durable. Returns
    /// their size in bytes.
    pub(crate) fn drained(&mut self, block: u64, slot: Slot) -> u64 {
        let gone = count(self.draining.of(slot));
        let draining = self.draining.of(slot);
        for (dirty, draining) in self.dirty.of_mut(slot).iter_mut().zip(draining) {
            *dirty &= !draining;
        }
        for (unlogged, draining) in self.unlogged.of_mut(slot).iter_mut().zip(draining) {
            *unlogged &= !draining;
        }
        self.draining.clear_all(slot);
        self.sectors -= gone;
        self.tidy(block, slot);
        gone * SECTOR
    }

    /// Notes that an operation on `sectors` failed, and may have been carried out in part. Dirty
    /// sectors must be logged again, and drains in progress no longer count.
    pub(crate) fn restore(&mut self, block: u64, slot: Slot, sectors: Range<usize>) {
        self.draining.clear(slot, sectors.clone());
        for sector in sectors {
            if self.dirty.has_all(slot, sector..sector + 1) {
                self.unlogged.set(slot, sector..sector + 1);
                self.unlogged_blocks.insert(block);
            }
        }
    }

    /// Marks `sectors` of `block` as clean, because they are no longer cached.
    pub(crate) fn forget(&mut self, block: u64, slot: Slot, sectors: Range<usize>) {
        self.sectors -= count(self.dirty.of(slot));
        for marks in [&mut self.dirty, &mut self.unlogged, &mut self.draining] {
            marks.clear(slot, sectors.clone());
        }
        self.sectors += count(self.dirty.of(slot));
        self.tidy(block, slot);
    }

    /// Removes `block` from the sets of blocks if it has no such sectors any more.
    fn tidy(&mut self, block: u64, slot: Slot) {
        if !self.unlogged.has_any(slot) {
            self.unlogged_blocks.remove(&block);
        }
        if !self.dirty.has_any(slot) {
            self.blocks.remove(&block);
        }
    }
}

fn count(bits: &[u8]) -> u64 {
    bits.iter().map(|byte| u64::from(byte.count_ones())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The older record is the one that a replay has, until the newer one is durable.
    #[test]
    fn an_older_record_counts_until_the_newest_one_is_durable() {
        let (mut dirty, block, slot) = (Dirty::new(1, 8), 5, Slot::new(0));
        for position in [100, 200] {
            dirty.write(block, slot, 0..8);
            assert_eq!(dirty.unlogged(), [block]);
            dirty.logged(block, slot, position);
            dirty.durable(block, 100);
            assert_eq!(dirty.oldest_record(), Some(100));
        }
        dirty.durable(block, 200);
        assert_eq!(dirty.oldest_record(), Some(200));
    }
}
