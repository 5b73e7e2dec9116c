//! What a cache holds: which sectors of which blocks lie in which slot. Pure: the bytes are elsewhere.
//!
//! ```text
//!   span of the origin ──▶ pieces, one a block ──▶ slot, sectors ──▶ offset in the cache's memory
//! ```
//!
//! Invariant: a sector that is marked has in memory what the origin has, or is to have.

use std::ops::Range;

use braid_block::Span;
use braid_level::CachePolicy;

use crate::curve::Curve;
use crate::directory::Directory;
use crate::dirty::Dirty;
use crate::marks::{Marks, SECTOR};
use crate::policy::{self, Occupants, Policy};
use crate::slot::Slot;

/// A part of a span that lies in one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// The block's number.
    pub(crate) block: u64,
    /// Where it starts in the block, in bytes.
    pub(crate) within: u64,
    /// In bytes.
    pub(crate) len: u64,
}

/// What is where.
pub(crate) struct Contents {
    block_bytes: u64,
    pub(crate) name: CachePolicy,
    /// Blocks of the origin.
    origin: u64,
    pub(crate) directory: Directory,
    pub(crate) policy: Box<dyn Policy>,
    pub(crate) valid: Marks,
    curve: Curve,
    /// What the origin does not have; none where it has everything.
    pub(crate) dirty: Option<Dirty>,
}

/// Of the data, what may be kept beside it at most: 15 of 1000 bytes, as the manual says.
const INDEX_PER_MILLE: usize = 15;

/// Of that a curve has so many bytes a block, or this many if that is more: with its memory its sample
/// grows, and with that what a read costs.
const CURVE_BYTES: usize = 4;
const LEAST_CURVE: usize = 64 << 10;

/// What a policy is told of slots: what the origin does not have must not leave.
struct Evictable<'a> {
    directory: &'a Directory,
    dirty: Option<&'a Dirty>,
}

impl Occupants for Evictable<'_> {
    fn block_of(&self, slot: Slot) -> u64 {
        self.directory.block_of(slot)
    }

    fn may_leave(&self, slot: Slot) -> bool {
        self.dirty.is_none_or(|dirty| !dirty.has_any(slot))
    }
}

impl Contents {
    /// Nothing is held; there is room for `slots` blocks of `block_bytes`, a power of two from 4 KiB on,
    /// of an origin of `origin` bytes.
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

    /// Has the curve begin anew: it has what memory the rest of the index leaves.
    pub(crate) fn start_curve(&mut self) {
        let slots = self.directory.slots();
        self.curve = Curve::new(slots, 0, 0);
        let most = slots as usize * (self.block_bytes as usize / 1000 * INDEX_PER_MILLE);
        let left = most.saturating_sub(self.index_bytes());
        let left = left.min(LEAST_CURVE.max(slots as usize * CURVE_BYTES));
        self.curve = Curve::new(slots, self.origin, left);
    }

    /// What it would hit if it were another.
    pub(crate) fn curve(&self) -> &Curve {
        &self.curve
    }

    /// Some of what is held may be dirty from now on.
    pub(crate) fn track_dirty(&mut self) {
        if self.dirty.is_none() {
            let sectors = (self.block_bytes / SECTOR) as usize;
            self.dirty = Some(Dirty::new(self.directory.slots(), sectors));
            self.start_curve();
        }
    }

    /// What is dirty, of a cache where something may be.
    pub(crate) fn dirty(&self) -> Option<&Dirty> {
        self.dirty.as_ref()
    }

    /// What is dirty, and the slot of `block`, which is held.
    pub(crate) fn dirty_of(&mut self, block: u64) -> Option<(&mut Dirty, Slot)> {
        let slot = self.directory.find(block)?;
        Some((self.dirty.as_mut()?, slot))
    }

    /// Bytes of all that is kept of blocks beside their data.
    pub(crate) fn index_bytes(&self) -> usize {
        let dirty = self.dirty.as_ref().map_or(0, Dirty::index_bytes);
        let beside = self.valid.bytes() + self.curve.bytes() + dirty;
        self.directory.bytes() + self.policy.bytes() + beside
    }

    /// How many blocks are held, and how many there is room for.
    pub(crate) fn used(&self) -> (u32, u32) {
        (self.directory.used(), self.directory.slots())
    }

    /// The numbers of the blocks that `span`, which is not empty, lies in.
    #[inline]
    pub(crate) fn blocks(&self, span: Span) -> Range<u64> {
        // The compiler does not know that blocks are powers of two.
        let bits = self.block_bytes.trailing_zeros();
        span.offset >> bits..((span.end() - 1) >> bits) + 1
    }

    /// `span`, which lies in one block.
    #[inline]
    pub(crate) fn piece(&self, span: Span) -> Piece {
        let block = self.blocks(span).start;
        Piece { block, within: span.offset & (self.block_bytes - 1), len: span.len }
    }

    /// `span` cut where blocks end.
    pub(crate) fn pieces(&self, span: Span) -> impl Iterator<Item = Piece> + use<> {
        let size = self.block_bytes;
        self.blocks(span).map(move |block| {
            let (start, end) = (block * size, (block + 1) * size);
            let (from, to) = (start.max(span.offset), end.min(span.end()));
            Piece { block, within: from - start, len: to - from }
        })
    }

    /// The sectors of its block that `piece` has something of.
    pub(crate) fn sectors(piece: Piece) -> Range<usize> {
        let end = (piece.within + piece.len).div_ceil(SECTOR);
        (piece.within / SECTOR) as usize..end as usize
    }

    /// Where `piece` lies in memory, in bytes.
    #[inline]
    fn place(&self, slot: Slot, piece: Piece) -> usize {
        slot.index() * self.block_bytes as usize + piece.within as usize
    }

    /// Where all of `piece` is held, in bytes of the memory; its block is used again by that.
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

    /// Where `piece`, all of which is held, lies; nobody uses it by that.
    pub(crate) fn held_at(&self, piece: Piece) -> Option<usize> {
        Some(self.place(self.directory.find(piece.block)?, piece))
    }

    /// Whether all of `piece` is held.
    #[inline]
    pub(crate) fn has(&self, piece: Piece) -> bool {
        let slot = self.directory.find(piece.block);
        slot.is_some_and(|slot| self.valid.has_all(slot, Self::sectors(piece)))
    }

    /// Where the bytes of `piece` are to be put, in bytes of the memory: it is held from now on. Answers
    /// whether another block left for it, too; none if nobody may leave. `is_written`: by a client, else
    /// it was read.
    pub(crate) fn put(&mut self, piece: Piece, is_written: bool) -> Option<Put> {
        self.count(piece.block, is_written);
        let (slot, replaced) = match self.directory.find(piece.block) {
            Some(slot) => (slot, false),
            None => self.admit(piece.block)?,
        };
        self.valid.set(slot, Self::sectors(piece));
        Some(Put { at: self.place(slot, piece), replaced })
    }

    /// For the curve: `block` was written, or read and was not held.
    fn count(&mut self, block: u64, is_written: bool) {
        match is_written {
            true => self.curve.write(block),
            false => self.curve.read(block),
        }
    }

    /// As [`Contents::put`], if something of its block is held already; else it is not held.
    pub(crate) fn pass(&mut self, piece: Piece, is_written: bool) -> Option<Put> {
        self.count(piece.block, is_written);
        Some(Put { at: self.renew(piece)?, replaced: false })
    }

    /// As [`Contents::put`], if something of its block is held already.
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

    /// As [`Contents::put`], of what the origin does not have: it is dirty.
    pub(crate) fn put_dirty(&mut self, piece: Piece) -> Option<Put> {
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
                let Some(at) = self.held_at(Piece { block, within, len }) else { continue };
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

    /// `piece`, cut where what is held of its block begins or ends; with each part, whether it is held.
    pub(crate) fn cut(&self, piece: Piece) -> Vec<(Piece, bool)> {
        let slot = self.directory.find(piece.block);
        let mut parts: Vec<(Piece, bool)> = Vec::new();
        for sector in Self::sectors(piece) {
            let is_held = slot.is_some_and(|slot| self.valid.has_all(slot, sector..sector + 1));
            match parts.last_mut() {
                Some((last, was_held)) if *was_held == is_held => last.len += SECTOR,
                _ => {
                    let within = sector as u64 * SECTOR;
                    parts.push((Piece { within, len: SECTOR, ..piece }, is_held));
                }
            }
        }
        parts
    }

    /// What is clean of `piece` is not held any more.
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

    /// `piece` is neither dirty nor held any more.
    pub(crate) fn forget(&mut self, piece: Piece) -> bool {
        if let Some((dirty, slot)) = self.dirty_of(piece.block) {
            dirty.forget(piece.block, slot, Self::sectors(piece));
        }
        self.drop(piece)
    }

    /// `piece` is not held any more; answers whether some of its block was.
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

/// Where something is put.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Put {
    /// In bytes of the memory.
    pub(crate) at: usize,
    /// Another block left for it.
    pub(crate) replaced: bool,
}
