//! A cache in front of something: what is asked of the memory, and what of the origin.
//!
//! Invariant: one request at a time is at the origin for a block, and whoever comes second finds what the first
//! brought, as in `braid_cache`, whose contents, policies and runs these are. Deliberately absent: stepping aside.

use std::ops::Range;

use braid_block::Span;
use braid_cache::Shadow;

use crate::layout::{Op, Unit};

/// The origin, and the memory, as members.
pub(crate) const ORIGIN: usize = 0;
pub(crate) const MEMORY: usize = 1;

pub(crate) struct Cached {
    shadow: Shadow,
    /// Blocks for which something is under way at the origin.
    taken: Vec<Range<u64>>,
    waiting: Vec<Asked>,
}

/// What is asked of a cache, and did not hit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) owner: Owner,
    pub(crate) write: bool,
    pub(crate) span: Span,
    /// It is of a run that goes past the cache.
    is_long: bool,
}

/// Who waits for bytes: a request of the load, or a unit above.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Owner {
    Request(u64),
    Unit(u64),
}

impl Cached {
    pub(crate) fn new(shadow: Shadow) -> Cached {
        Cached { shadow, taken: Vec::new(), waiting: Vec::new() }
    }

    /// A request: what is done for it if it hits. Else it waits for [`Cached::next`].
    pub(crate) fn ask(&mut self, owner: Owner, write: bool, span: Span) -> Option<Unit> {
        if !write && self.shadow.hits(span) {
            return Some(hit(span));
        }
        let is_long = self.shadow.is_long(span);
        self.waiting.push(Asked { owner, write, span, is_long });
        None
    }

    /// A request that waits no longer, and what is done for it; with [`Cached::answered`] behind it, if it goes
    /// to the origin.
    pub(crate) fn next(&mut self) -> Option<(Asked, Unit, bool)> {
        let is_free = |blocks: &Range<u64>| {
            !self.taken.iter().any(|one| one.start < blocks.end && blocks.start < one.end)
        };
        let free = |asked: &Asked| is_free(&self.shadow.blocks(asked.span));
        let index = self.waiting.iter().position(free)?;
        let asked = self.waiting.remove(index);
        let Asked { write, span, is_long, .. } = asked;
        if !write && self.shadow.hits(span) {
            return Some((asked, hit(span), false));
        }
        self.taken.push(self.shadow.blocks(span));
        let (offset, bytes) = (span.offset, span.len);
        let copied = Op { member: MEMORY, write: true, offset, bytes };
        let then = self.shadow.keeps(write, is_long).then_some(copied).into_iter().collect();
        let first = vec![Op { member: ORIGIN, write, offset, bytes }];
        Some((asked, Unit { bytes, first, then }, true))
    }

    /// The origin has answered, and it is held, or dropped.
    pub(crate) fn answered(&mut self, asked: &Asked) {
        let Asked { write, span, is_long, .. } = *asked;
        self.shadow.answered(span, write, is_long);
        let blocks = self.shadow.blocks(span);
        let index = self.taken.iter().position(|one| *one == blocks);
        self.taken.swap_remove(index.expect("its blocks were taken"));
    }
}

fn hit(span: Span) -> Unit {
    let (offset, bytes) = (span.offset, span.len);
    let first = vec![Op { member: MEMORY, write: false, offset, bytes }];
    Unit { bytes, first, then: Vec::new() }
}
