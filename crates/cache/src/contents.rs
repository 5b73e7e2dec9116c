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
    directory: Directory,
    policy: Box<dyn Policy>,
    valid: Marks,
    curve: Curve,
}

/// Of the data, what may be kept beside it at most: 15 of 1000 bytes, as the manual says.
const INDEX_PER_MILLE: usize = 15;

/// Of that a curve has so many bytes a block, or this many if that is more: with its memory its sample
/// grows, and with that what a read costs.
const CURVE_BYTES: usize = 4;
const LEAST_CURVE: usize = 64 << 10;

/// What a policy is told of slots: what is held here is held by the origin too.
struct Evictable<'a>(&'a Directory);

impl Occupants for Evictable<'_> {
    fn block_of(&self, slot: Slot) -> u64 {
        self.0.block_of(slot)
    }

    fn may_leave(&self, _slot: Slot) -> bool {
        true
    }
}

impl Contents {
    /// Nothing is held; there is room for `slots` blocks of `block_bytes`, a power of two from 4 KiB on,
    /// of an origin of `origin` bytes.
    pub(crate) fn new(slots: u32, block_bytes: u64, policy: CachePolicy, origin: u64) -> Contents {
        assert!(block_bytes.is_power_of_two() && block_bytes >= 4096, "blocks of {block_bytes}");
        let mut contents = Contents {
            block_bytes,
            directory: Directory::new(slots),
            policy: policy::policy(policy, slots),
            valid: Marks::new(slots, (block_bytes / SECTOR) as usize),
            curve: Curve::new(slots, 0, 0),
        };
        // The curve has what is left.
        let most = slots as usize * (block_bytes as usize / 1000 * INDEX_PER_MILLE);
        let left = most.saturating_sub(contents.index_bytes());
        let left = left.min(LEAST_CURVE.max(slots as usize * CURVE_BYTES));
        contents.curve = Curve::new(slots, origin.div_ceil(block_bytes), left);
        contents
    }

    /// What it would hit if it were another.
    pub(crate) fn curve(&self) -> &Curve {
        &self.curve
    }

    /// Bytes of all that is kept of blocks beside their data.
    pub(crate) fn index_bytes(&self) -> usize {
        self.directory.bytes() + self.policy.bytes() + self.valid.bytes() + self.curve.bytes()
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

    fn sectors(piece: Piece) -> Range<usize> {
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
        match is_written {
            true => self.curve.write(piece.block),
            false => self.curve.read(piece.block),
        }
        let (slot, replaced) = match self.directory.find(piece.block) {
            Some(slot) => (slot, false),
            None => self.admit(piece.block)?,
        };
        self.valid.set(slot, Self::sectors(piece));
        Some(Put { at: self.place(slot, piece), replaced })
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
            let gone = self.policy.evict(block, &Evictable(&self.directory))?;
            self.valid.clear_all(gone);
            self.directory.remove(gone);
            replaced = true;
        }
        let slot = self.directory.insert(block)?;
        self.policy.admit(slot, block);
        Some((slot, replaced))
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
