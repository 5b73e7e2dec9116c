//! Contents of a cache without data and without time, for predictions.
//!
//! Invariant: hits, insertions and evictions are those of [`crate::Cache`] for requests that
//! complete in the same order; dirty data, and the way in which they are drained, too. Deliberately
//! absent: stepping aside, which needs a clock, and the log of write-back mode.

use std::ops::Range;
use std::time::Duration;

use braid_block::Span;
use braid_level::CacheMode;

use crate::config::{Config, dirty_blocks, slots_of};
use crate::contents::Contents;
use crate::rounds::{DEPTH, IDLE, part_blocks, run_blocks};
use crate::streams::Streams;

/// Bounds of write-back mode without a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Behind {
    /// Dirty bytes beyond which writers wait.
    pub dirty: u64,
    /// Time for which something may be dirty before it is drained.
    pub age: Duration,
}

/// A cache without data. Spans are not empty, and consist of whole sectors of 512 bytes.
pub struct Shadow {
    contents: Contents,
    streams: Streams,
    mode: CacheMode,
    block: u64,
    /// Bytes from which on a write goes past a cache in write-back mode.
    cutoff: Option<u64>,
    /// Blocks that may be dirty.
    dirty_blocks: u64,
}

impl Shadow {
    /// Creates an empty cache in front of an origin of `origin` bytes; `None` for an invalid size
    /// or block size. `behind` belongs to write-back mode, and to no other.
    pub fn new(config: Config, behind: Option<Behind>, origin: u64) -> Option<Shadow> {
        let Config { size, block, mode, policy, sequential_cutoff: cutoff } = config;
        let is_behind = mode == CacheMode::WriteBack;
        let slots = slots_of(size, block).filter(|_| is_behind == behind.is_some())?;
        let mut contents = Contents::new(slots, block, policy, origin);
        if is_behind {
            contents.track_dirty();
        }
        let dirty_blocks = behind.map_or(0, |behind| dirty_blocks(behind.dirty, block, slots));
        let streams = Streams::new(cutoff);
        Some(Shadow { contents, streams, mode, block, cutoff, dirty_blocks })
    }

    /// Returns the blocks of `span`, which a request locks while it accesses the origin.
    pub fn blocks(&self, span: Span) -> Range<u64> {
        self.contents.blocks(span)
    }

    /// Returns the number of cached blocks.
    pub fn used(&self) -> u32 {
        self.contents.used().0
    }

    /// Returns whether a read hits. A hit counts as a use of its blocks.
    pub fn hits(&mut self, span: Span) -> bool {
        let is_cached = self.contents.pieces(span).all(|piece| self.contents.has(piece));
        if is_cached {
            for piece in self.contents.pieces(span) {
                self.contents.hit(piece);
            }
        }
        is_cached
    }

    /// Returns whether a missed read, or a write, belongs to a run that bypasses the cache. Call it
    /// once per request.
    pub fn is_long(&mut self, span: Span) -> bool {
        self.streams.is_long(span)
    }

    /// Returns whether a request invalidates its blocks: a write that goes to the origin, and is not
    /// cached.
    fn drops(&self, write: bool) -> bool {
        write && self.mode != CacheMode::WriteThrough
    }

    /// Returns whether a write is held, and goes to the origin later.
    pub fn is_behind(&self, span: Span) -> bool {
        let is_large = || self.cutoff.is_some_and(|cutoff| span.len >= cutoff);
        let is_dirty = || {
            let dirty = self.contents.dirty();
            dirty.is_some_and(|dirty| dirty.touches(self.contents.blocks(span)))
        };
        self.mode == CacheMode::WriteBack && (!is_large() || is_dirty())
    }

    /// Holds as much of a write as may be dirty, from its beginning on. Returns the rest; `None` if all of it is held.
    pub fn hold(&mut self, span: Span) -> Option<Span> {
        for piece in self.contents.pieces(span) {
            let dirty = self.contents.dirty()?;
            let count = dirty.block_count() + u64::from(!dirty.has(piece.block));
            if count > self.dirty_blocks || self.contents.put_dirty(piece).is_none() {
                let offset = piece.block * self.block + piece.within;
                return Some(Span::new(offset, span.end() - offset));
            }
        }
        None
    }

    /// Returns whether so much is dirty that a round begins.
    pub fn is_pressed(&self) -> bool {
        let dirty = self.contents.dirty().map_or(0, |dirty| dirty.block_count());
        dirty * 2 > self.dirty_blocks
    }

    /// Runs that a round has on their way at once.
    pub const AT_ONCE: usize = DEPTH;

    /// After so long without a write a round begins.
    pub const IDLE: Duration = IDLE;

    /// Blocks that a round drains before it flushes the origin.
    pub fn part_blocks(&self) -> u64 {
        part_blocks(self.dirty_blocks)
    }

    /// The next run of dirty blocks that a round drains, from `block` on.
    pub fn dirty_run(&self, block: u64) -> Option<Range<u64>> {
        self.contents.dirty_run(block, run_blocks(self.block))
    }

    /// Begins to drain a run. Returns what the origin is written.
    pub fn drain(&mut self, run: Range<u64>) -> Vec<Span> {
        self.contents.drain(run, None, |_, _| {})
    }

    /// Marks a run as clean that was drained, and not written since: the origin has made it durable.
    pub fn drained(&mut self, run: Range<u64>) {
        self.contents.drained(run);
    }

    /// Returns whether the data of a completed request are copied to memory as a whole.
    pub fn keeps(&self, write: bool, is_long: bool) -> bool {
        !is_long && !self.drops(write)
    }

    /// Updates the contents after the origin completed a read or write of `span`.
    pub fn answered(&mut self, span: Span, write: bool, is_long: bool) {
        if self.drops(write) {
            for piece in self.contents.pieces(span) {
                self.contents.drop(piece);
            }
            return;
        }
        for piece in self.contents.pieces(span) {
            match is_long {
                false => drop(self.contents.put(piece, write)),
                // A long run updates cached blocks and inserts no others.
                true if write => drop(self.contents.renew(piece)),
                true => {}
            }
        }
    }
}
