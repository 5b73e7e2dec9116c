//! What a cache would hold, without its bytes and without time: for whoever predicts.
//!
//! Invariant: what hits, what is held and who leaves is as in [`crate::Cache`], for requests that are answered in
//! this order. Deliberately absent: write-back mode, and stepping aside, which goes by a clock.

use std::ops::Range;

use braid_block::Span;
use braid_level::CacheMode;

use crate::config::{Config, slots_of};
use crate::contents::Contents;
use crate::streams::Streams;

/// A cache without its bytes. Spans are not empty, and of whole sectors of 512 bytes.
pub struct Shadow {
    contents: Contents,
    streams: Streams,
    mode: CacheMode,
}

impl Shadow {
    /// Of a cache in front of an origin of `origin` bytes, which holds nothing yet; `None` for a size or a block
    /// that cannot be, or write-back mode.
    pub fn new(config: Config, origin: u64) -> Option<Shadow> {
        let Config { size, block, mode, policy, sequential_cutoff } = config;
        let slots = slots_of(size, block).filter(|_| mode != CacheMode::WriteBack)?;
        let contents = Contents::new(slots, block, policy, origin);
        Some(Shadow { contents, streams: Streams::new(sequential_cutoff), mode })
    }

    /// The blocks of `span`, of which one request at a time is under way at the origin.
    pub fn blocks(&self, span: Span) -> Range<u64> {
        self.contents.blocks(span)
    }

    /// How many blocks are held.
    pub fn used(&self) -> u32 {
        self.contents.used().0
    }

    /// Whether a read is answered from memory; its blocks are used again by that.
    pub fn hits(&mut self, span: Span) -> bool {
        let is_held = self.contents.pieces(span).all(|piece| self.contents.has(piece));
        if is_held {
            for piece in self.contents.pieces(span) {
                self.contents.hit(piece);
            }
        }
        is_held
    }

    /// Whether a read that did not hit, or a write, is of a run that goes past the cache; asked once of each.
    pub fn is_long(&mut self, span: Span) -> bool {
        self.streams.is_long(span)
    }

    /// Whether what is held of its place is dropped.
    fn drops(&self, write: bool) -> bool {
        write && self.mode == CacheMode::WriteAround
    }

    /// Whether what the origin answers is copied to memory as a whole.
    pub fn keeps(&self, write: bool, is_long: bool) -> bool {
        !is_long && !self.drops(write)
    }

    /// The origin has answered a read, or a write, of `span`.
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
                // What is held of a long run stays right; nothing else is held for it.
                true if write => drop(self.contents.renew(piece)),
                true => {}
            }
        }
    }
}
