//! Contents of a cache without data and without time, for predictions.
//!
//! Invariant: hits, insertions and evictions are those of [`crate::Cache`] for requests that
//! complete in the same order. Deliberately absent: write-back mode, and stepping aside, which
//! needs a clock.

use std::ops::Range;

use braid_block::Span;
use braid_level::CacheMode;

use crate::config::{Config, slots_of};
use crate::contents::Contents;
use crate::streams::Streams;

/// A cache without data. Spans are not empty, and consist of whole sectors of 512 bytes.
pub struct Shadow {
    contents: Contents,
    streams: Streams,
    mode: CacheMode,
}

impl Shadow {
    /// Creates an empty cache in front of an origin of `origin` bytes; `None` for an invalid size
    /// or block size, or write-back mode.
    pub fn new(config: Config, origin: u64) -> Option<Shadow> {
        let Config { size, block, mode, policy, sequential_cutoff } = config;
        let slots = slots_of(size, block).filter(|_| mode != CacheMode::WriteBack)?;
        let contents = Contents::new(slots, block, policy, origin);
        Some(Shadow { contents, streams: Streams::new(sequential_cutoff), mode })
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

    /// Returns whether a request invalidates its blocks.
    fn drops(&self, write: bool) -> bool {
        write && self.mode == CacheMode::WriteAround
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
