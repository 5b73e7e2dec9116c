//! What the origin does not have yet: of the sectors that are held, which are dirty, which of these the log
//! has, which are on their way to the origin. Pure.
//!
//! ```text
//!              write          a record has it         it is being drained      the origin is flushed
//!   clean ───▶ dirty ───────▶ dirty ────────────────▶ dirty ─────────────────▶ clean
//!              unlogged                               draining
//!                 ▲                                      │
//!                 └────────────── another write ─────────┘
//! ```
//!
//! Invariants
//! * What is unlogged or draining is dirty; what is unlogged is not draining.
//! * A record has all that is dirty of a block, so that of its records only the last durable one, and
//!   what comes behind it, has to be replayed.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::canary::Canary;
use crate::marks::{Marks, SECTOR, runs};
use crate::slot::{Move, Slot};

/// The dirty part of what a cache holds.
pub(crate) struct Dirty {
    dirty: Marks,
    unlogged: Marks,
    draining: Marks,
    /// Those with something dirty.
    blocks: BTreeMap<u64, Logged>,
    /// Those with something unlogged.
    unlogged_blocks: BTreeSet<u64>,
    sectors: u64,
}

/// Where records of a block lie that has something dirty.
#[derive(Clone, Copy, Default)]
struct Logged {
    /// The first that may have to be replayed: it is durable.
    oldest: Option<u64>,
    /// The last.
    newest: Option<u64>,
}

impl Dirty {
    /// Nothing is dirty of `slots` blocks of `sectors` sectors.
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

    /// There are `slots` slots from now on, and blocks are in other ones.
    pub(crate) fn rearrange<I: Iterator<Item = Move>>(
        &mut self,
        slots: u32,
        places: impl Fn() -> I,
    ) {
        for marks in [&mut self.dirty, &mut self.unlogged, &mut self.draining] {
            *marks = marks.rearranged(slots, places());
        }
    }

    /// Bytes of what is kept for every slot.
    pub(crate) fn index_bytes(&self) -> usize {
        3 * self.dirty.bytes()
    }

    /// Dirty bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.sectors * SECTOR
    }

    /// Dirty bytes of `slot`.
    pub(crate) fn bytes_of(&self, slot: Slot) -> u64 {
        count(self.dirty.of(slot)) * SECTOR
    }

    /// Blocks with something dirty.
    pub(crate) fn block_count(&self) -> u64 {
        self.blocks.len() as u64
    }

    /// Blocks with something unlogged.
    pub(crate) fn unlogged_count(&self) -> u64 {
        self.unlogged_blocks.len() as u64
    }

    /// Whether something of `block` is dirty.
    pub(crate) fn has(&self, block: u64) -> bool {
        self.blocks.contains_key(&block)
    }

    /// Whether something of `block` is unlogged.
    pub(crate) fn is_unlogged(&self, block: u64) -> bool {
        self.unlogged_blocks.contains(&block)
    }

    /// Whether something of `slot` is dirty.
    pub(crate) fn has_any(&self, slot: Slot) -> bool {
        self.dirty.has_any(slot)
    }

    /// Whether this sector of `slot` is dirty.
    pub(crate) fn is_dirty(&self, slot: Slot, sector: usize) -> bool {
        self.dirty.has_all(slot, sector..sector + 1)
    }

    /// The first block with something dirty, of those from `from` on, in order.
    pub(crate) fn next(&self, from: u64) -> Option<u64> {
        self.blocks.range(from..).next().map(|(block, _)| *block)
    }

    /// Whether something of `blocks` is dirty.
    pub(crate) fn touches(&self, blocks: Range<u64>) -> bool {
        self.blocks.range(blocks).next().is_some()
    }

    /// Blocks with something unlogged, in order.
    pub(crate) fn unlogged(&self) -> Vec<u64> {
        self.unlogged_blocks.iter().copied().collect()
    }

    /// Where the oldest durable record lies that may have to be replayed; none if none has to.
    pub(crate) fn oldest_record(&self) -> Option<u64> {
        self.blocks.values().filter_map(|logged| logged.oldest).min()
    }

    /// `sectors` of `block`, in `slot`, were written.
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

    /// What of `slot` is dirty: all of that goes into a record.
    pub(crate) fn runs(&self, slot: Slot) -> Vec<Range<usize>> {
        runs(self.dirty.of(slot).iter().copied())
    }

    /// What of `block` is dirty is in the record at `position`, which is being written.
    pub(crate) fn logged(&mut self, block: u64, slot: Slot, position: u64) {
        self.unlogged.clear_all(slot);
        self.unlogged_blocks.remove(&block);
        if let Some(logged) = self.blocks.get_mut(&block) {
            logged.newest = Some(position);
        }
    }

    /// The record at `position` is durable: older ones need not be replayed for `block`.
    pub(crate) fn durable(&mut self, block: u64, position: u64) {
        let logged = self.blocks.get_mut(&block);
        if let Some(logged) = logged.filter(|logged| logged.newest == Some(position)) {
            logged.oldest = logged.newest;
        }
    }

    /// Has what is dirty of `block` drained, which is what is answered. Where there is a log only what it
    /// has, in records before `durable`.
    pub(crate) fn drain(
        &mut self,
        block: u64,
        slot: Slot,
        durable: Option<u64>,
    ) -> Vec<Range<usize>> {
        let is_durable = |at: &Logged| at.newest.is_some_and(|at| Some(at) < durable);
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

    /// What of `slot` was on its way to the origin has not arrived.
    pub(crate) fn drain_failed(&mut self, slot: Slot) {
        self.draining.clear_all(slot);
    }

    /// What of `block` is still draining the origin has, durably; answers how many bytes.
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

    /// That has failed, and may have done a part: what of `sectors` is dirty counts, a record has to have
    /// it, and what was drained of it before is not there for sure.
    pub(crate) fn restore(&mut self, block: u64, slot: Slot, sectors: Range<usize>) {
        self.draining.clear(slot, sectors.clone());
        for sector in sectors {
            if self.dirty.has_all(slot, sector..sector + 1) {
                self.unlogged.set(slot, sector..sector + 1);
                self.unlogged_blocks.insert(block);
            }
        }
    }

    /// `sectors` of `block` are not dirty: what was held of them is gone.
    pub(crate) fn forget(&mut self, block: u64, slot: Slot, sectors: Range<usize>) {
        self.sectors -= count(self.dirty.of(slot));
        for marks in [&mut self.dirty, &mut self.unlogged, &mut self.draining] {
            marks.clear(slot, sectors.clone());
        }
        self.sectors += count(self.dirty.of(slot));
        self.tidy(block, slot);
    }

    /// Keeps the sets of blocks true.
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
