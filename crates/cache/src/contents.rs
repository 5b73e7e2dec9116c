//! Index of the cached data: the slot of each block, and its valid sectors. Pure: the bytes are in [`crate::Memory`].
//!
//! ```text
//!   span of the origin ──▶ pieces, one per block ──▶ slot, sectors ──▶ offset in the cache's memory
//! ```
//!
//! Invariant: the memory of a valid sector holds what the origin has, or will have once the sector
//! is drained.

use std::ops::Range;

use braid_block::Span;
use braid_level::CachePolicy;

use crate::curve::Curve;
use crate::directory::Directory;
use crate::dirty::Dirty;
use crate::marks::{Marks, SECTOR};
use crate::policy::{self, Occupants, Policy};
use crate::slot::Slot;

/// Part of a span within one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Number of the block.
    pub(crate) block: u64,
    /// Offset in the block, in bytes.
    pub(crate) within: u64,
    /// Length in bytes.
    pub(crate) len: u64,
}

/// The index of the cached data.
pub(crate) struct Contents {
    block_bytes: u64,
    pub(crate) name: CachePolicy,
    /// Number of blocks of the origin.
    origin: u64,
    pub(crate) directory: Directory,
    pub(crate) policy: Box<dyn Policy>,
    pub(crate) valid: Marks,
    curve: Curve,
    /// Sectors that the origin lacks; `None` if no sector can be dirty.
    pub(crate) dirty: Option<Dirty>,
}

/// Limit of the index, in bytes per 1000 bytes of data. docs/cache.md states it.
const INDEX_PER_MILLE: usize = 15;

/// Memory of the curve in bytes per slot, or [`LEAST_CURVE`] if that is more. More memory means a
/// larger sample, which makes reads slower.
const CURVE_BYTES: usize = 4;
const LEAST_CURVE: usize = 64 << 10;

/// Occupants as the policy sees them: dirty blocks cannot be evicted.
struct Evictable<'a> {
    directory: &'a Directory,
    dirty: Option<&'a Dirty>,
}

impl Occupants for Evictable<'_> {
    fn block_of(&self, slot: Slot) -> u64 {
        self.directory.block_of(slot)
    }

    fn can_evict(&self, slot: Slot) -> bool {
        self.dirty.is_none_or(|dirty| !dirty.has_any(slot))
    }
}

impl Contents {
    /// Creates an empty index with `slots` slots for blocks of `block_bytes` (a power of two, at
    /// least 4 KiB) of an origin of `origin` bytes.
    pub(crate) fn new(slots: u32, block_bytes: u64, policy: CachePolicy, origin: u64) -> Contents {
        assert!(block_bytes.is_power_of_two() && block_bytes >= 4096, "blocks of {block_bytes}");
        let mut contents = Contents {
            block_bytes,
            name: policy,
            origin: origin.div_ceil(block_bytes),
            directory: Directory::new(slots),
            policy: policy::policy(policy, slots),
            valid: Marks::new(slots, (block_bytes / SECTOR) as usize),
            curve: Curve::new(slots, 0, 0),
            dirty: None,
        };
        contents.start_curve();
        contents
    }

    /// Restarts the curve, within the memory that the rest of the index leaves.
    pub(crate) fn start_curve(&mut self) {
        let slots = self.directory.slots();
        self.curve = Curve::new(slots, 0, 0);
        let most = slots as usize * (self.block_bytes as usize / 1000 * INDEX_PER_MILLE);
        let left = most.saturating_sub(self.index_bytes());
        let left = left.min(LEAST_CURVE.max(slots as usize * CURVE_BYTES));
        self.curve = Curve::new(slots, self.origin, left);
    }

    /// Returns the curve of other policies and sizes.
    pub(crate) fn curve(&self) -> &Curve {
        &self.curve
    }

    /// Starts to track dirty sectors.
    pub(crate) fn track_dirty(&mut self) {
        if self.dirty.is_none() {
            let sectors = (self.block_bytes / SECTOR) as usize;
            self.dirty = Some(Dirty::new(self.directory.slots(), sectors));
            self.start_curve();
        }
    }

    /// Returns the dirty sectors, if they are tracked.
    pub(crate) fn dirty(&self) -> Option<&Dirty> {
        self.dirty.as_ref()
    }

    /// Returns the dirty sectors and the slot of the cached block `block`.
    pub(crate) fn dirty_of(&mut self, block: u64) -> Option<(&mut Dirty, Slot)> {
        let slot = self.directory.find(block)?;
        Some((self.dirty.as_mut()?, slot))
    }

    /// Returns the memory of the index in bytes.
    pub(crate) fn index_bytes(&self) -> usize {
        let dirty = self.dirty.as_ref().map_or(0, Dirty::index_bytes);
        let beside = self.valid.bytes() + self.curve.bytes() + dirty;
        self.directory.bytes() + self.policy.bytes() + beside
    }

    /// Returns the number of cached blocks and of slots.
    pub(crate) fn used(&self) -> (u32, u32) {
        (self.directory.used(), self.directory.slots())
    }

    /// Returns the numbers of the blocks that `span`, which is not empty, touches.
    #[inline]
    pub(crate) fn blocks(&self, span: Span) -> Range<u64> {
        // The compiler does not know that block sizes are powers of two.
        let bits = self.block_bytes.trailing_zeros();
        span.offset >> bits..((span.end() - 1) >> bits) + 1
    }

    /// Returns the piece of `span`, which lies in one block.
    #[inline]
    pub(crate) fn piece(&self, span: Span) -> Piece {
        let block = self.blocks(span).start;
        Piece { block, within: span.offset & (self.block_bytes - 1), len: span.len }
    }

    /// Splits `span` at block boundaries.
    pub(crate) fn pieces(&self, span: Span) -> impl Iterator<Item = Piece> + use<> {
        let size = self.block_bytes;
        self.blocks(span).map(move |block| {
            let (start, end) = (block * size, (block + 1) * size);
            let (from, to) = (start.max(span.offset), end.min(span.end()));
            Piece { block, within: from - start, len: to - from }
        })
    }

    /// Returns the sectors of the block that `piece` touches.
    pub(crate) fn sectors(piece: Piece) -> Range<usize> {
        let end = (piece.within + piece.len).div_ceil(SECTOR);
        (piece.within / SECTOR) as usize..end as usize
    }

    /// Returns the offset of `piece` in the memory, in bytes.
    #[inline]
    fn place(&self, slot: Slot, piece: Piece) -> usize {
        slot.index() * self.block_bytes as usize + piece.within as usize
    }

    /// Returns the offset in memory if `piece` is cached as a whole, and counts this as a use of
    /// the block.
    #[inline]
    pub(crate) fn hit(&mut self, piece: Piece) -> Option<usize> {
        let slot = self.directory.find(piece.block)?;
        if !self.valid.has_all(slot, Self::sectors(piece)) {
            return None;
        }
        self.policy.touch(slot);
        self.curve.read(piece.block);
        Some(self.place(slot, piece))
    }

    /// Returns the offset in memory of `piece`, whose block is cached. Does not count as a use.
    pub(crate) fn cached_at(&self, piece: Piece) -> Option<usize> {
        Some(self.place(self.directory.find(piece.block)?, piece))
    }

    /// Returns whether `piece` is cached as a whole.
    #[inline]
    pub(crate) fn has(&self, piece: Piece) -> bool {
        let slot = self.directory.find(piece.block);
        slot.is_some_and(|slot| self.valid.has_all(slot, Self::sectors(piece)))
    }

    /// Marks `piece` as cached, and returns where its bytes belong. Evicts another block if
    /// necessary; returns `None` if none can be evicted. `is_written` is set for client writes, and
    /// clear for reads.
    pub(crate) fn put(&mut self, piece: Piece, is_written: bool) -> Option<Placement> {
        self.count(piece.block, is_written);
        let (slot, replaced) = match self.directory.find(piece.block) {
            Some(slot) => (slot, false),
            None => self.admit(piece.block)?,
        };
        self.valid.set(slot, Self::sectors(piece));
        Some(Placement { at: self.place(slot, piece), replaced })
    }

    /// Counts an access for the curve: a write, or a read that missed.
    fn count(&mut self, block: u64, is_written: bool) {
        match is_written {
            true => self.curve.write(block),
            false => self.curve.read(block),
        }
    }

    /// Like [`Contents::put`], but only if the block is cached already.
    pub(crate) fn pass(&mut self, piece: Piece, is_written: bool) -> Option<Placement> {
        self.count(piece.block, is_written);
        Some(Placement { at: self.renew(piece)?, replaced: false })
    }

    /// Marks `piece` as cached if its block is cached already, and returns its offset in memory.
    pub(crate) fn renew(&mut self, piece: Piece) -> Option<usize> {
        let slot = self.directory.find(piece.block)?;
        self.valid.set(slot, Self::sectors(piece));
        Some(self.place(slot, piece))
    }

    fn admit(&mut self, block: u64) -> Option<(Slot, bool)> {
        let mut replaced = false;
        if self.directory.used() == self.directory.slots() {
            let (directory, dirty) = (&self.directory, self.dirty.as_ref());
            let occupants = Evictable { directory, dirty };
            let gone = self.policy.evict(block, &occupants)?;
            self.valid.clear_all(gone);
            self.directory.remove(gone);
            replaced = true;
        }
        let slot = self.directory.insert(block)?;
        self.policy.admit(slot, block);
        Some((slot, replaced))
    }

    /// Like [`Contents::put`], and marks the sectors as dirty.
    pub(crate) fn put_dirty(&mut self, piece: Piece) -> Option<Placement> {
        let put = self.put(piece, true)?;
        if let Some((dirty, slot)) = self.dirty_of(piece.block) {
            dirty.write(piece.block, slot, Self::sectors(piece));
        }
        Some(put)
    }

    /// Blocks beside each other with something dirty, up to `most` of them: the first from `block` on.
    pub(crate) fn dirty_run(&self, block: u64, most: u64) -> Option<Range<u64>> {
        let dirty = self.dirty.as_ref()?;
        let start = dirty.next(block)?;
        let end = (start + 1..start + most).find(|block| !dirty.has(*block));
        Some(start..end.unwrap_or(start + most))
    }

    /// Begins to drain the dirty sectors of `run` ([`Dirty::drain`]). `copy` gets the place of each part in memory,
    /// and its length. Returns the spans of the origin to which the parts go, neighbours as one.
    pub(crate) fn drain(
        &mut self,
        run: Range<u64>,
        durable: Option<u64>,
        mut copy: impl FnMut(usize, u64),
    ) -> Vec<Span> {
        let mut spans: Vec<Span> = Vec::new();
        for block in run {
            let Some((dirty, slot)) = self.dirty_of(block) else { continue };
            for sectors in dirty.drain(block, slot, durable) {
                let (within, len) = (sectors.start as u64 * SECTOR, sectors.len() as u64 * SECTOR);
                let Some(at) = self.cached_at(Piece { block, within, len }) else { continue };
                copy(at, len);
                let offset = block * self.block_bytes + within;
                match spans.last_mut() {
                    Some(last) if last.end() == offset => last.len += len,
                    _ => spans.push(Span::new(offset, len)),
                }
            }
        }
        spans
    }

    /// Marks the drained sectors of `blocks` as clean: the origin has made them durable. Returns their bytes.
    pub(crate) fn drained(&mut self, blocks: impl IntoIterator<Item = u64>) -> u64 {
        let mut bytes = 0;
        for block in blocks {
            if let Some((dirty, slot)) = self.dirty_of(block) {
                bytes += dirty.drained(block, slot);
            }
        }
        bytes
    }

    /// Splits `piece` where valid sectors begin or end; each part has a flag whether it is cached.
    pub(crate) fn cut(&self, piece: Piece) -> Vec<(Piece, bool)> {
        let slot = self.directory.find(piece.block);
        let mut parts: Vec<(Piece, bool)> = Vec::new();
        for sector in Self::sectors(piece) {
            let is_cached = slot.is_some_and(|slot| self.valid.has_all(slot, sector..sector + 1));
            match parts.last_mut() {
                Some((last, was_held)) if *was_held == is_cached => last.len += SECTOR,
                _ => {
                    let within = sector as u64 * SECTOR;
                    parts.push((Piece { within, len: SECTOR, ..piece }, is_cached));
                }
            }
        }
        parts
    }

    /// Invalidates the clean sectors of `piece`.
    pub(crate) fn drop_clean(&mut self, piece: Piece) {
        let Some(slot) = self.directory.find(piece.block) else { return };
        let Some(dirty) = &self.dirty else { return };
        for sector in Self::sectors(piece) {
            if !dirty.is_dirty(slot, sector) {
                self.valid.clear(slot, sector..sector + 1);
            }
        }
        if !self.valid.has_any(slot) {
            self.policy.forget(slot);
            self.directory.remove(slot);
        }
    }

    /// Invalidates `piece`, including its dirty sectors. Returns whether its block was cached.
    pub(crate) fn forget(&mut self, piece: Piece) -> bool {
        if let Some((dirty, slot)) = self.dirty_of(piece.block) {
            dirty.forget(piece.block, slot, Self::sectors(piece));
        }
        self.drop(piece)
    }

    /// Invalidates `piece`. Returns whether its block was cached.
    pub(crate) fn drop(&mut self, piece: Piece) -> bool {
        self.curve.forget(piece.block);
        let Some(slot) = self.directory.find(piece.block) else { return false };
        self.valid.clear(slot, Self::sectors(piece));
        if !self.valid.has_any(slot) {
            self.policy.forget(slot);
            self.directory.remove(slot);
        }
        true
    }
}

/// Place of newly cached data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placement {
    /// Offset in the memory in bytes.
    pub(crate) at: usize,
    /// Another block was evicted.
    pub(crate) replaced: bool,
}
