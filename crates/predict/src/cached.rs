//! A cache in front of something: what is asked of the memory, and what of the origin.
//!
//! Invariant: one request at a time is at the origin for a block, and the second finds what the first brought, as in
//! `braid_cache`, whose contents, policies and runs these are. Deliberately absent: stepping aside.

use std::ops::Range;

use braid_block::Span;
use braid_cache::Shadow;

use crate::layout::{Op, Unit};
use crate::rounds::{Owner, Rounds, Step};

/// The origin, and the memory, as members.
pub(crate) const ORIGIN: usize = 0;
pub(crate) const MEMORY: usize = 1;

pub(crate) struct Cached {
    shadow: Shadow,
    /// Blocks for which something is under way at the origin.
    taken: Vec<Range<u64>>,
    waiting: Vec<Asked>,
    /// In write-back mode.
    rounds: Option<Rounds>,
}

/// A request to a cache that did not hit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) owner: Owner,
    pub(crate) write: bool,
    pub(crate) span: Span,
    /// It is of a run that goes past the cache.
    is_long: bool,
}

/// The next step of a cache.
pub(crate) enum Begun {
    /// A unit; with what is asked of the origin by it.
    Unit(Owner, bool, Unit, Option<Asked>),
    /// Blocks that are drained.
    Run(Range<u64>, Unit),
    /// A flush of the origin.
    Flush,
    /// A look at a time, in nanoseconds.
    LookAt(u64),
}

impl Cached {
    /// `age_ns`: how long something may be dirty, in write-back mode.
    pub(crate) fn new(shadow: Shadow, age_ns: Option<u64>) -> Cached {
        Cached { shadow, taken: Vec::new(), waiting: Vec::new(), rounds: age_ns.map(Rounds::new) }
    }

    /// Rounds of draining, with the contents, in write-back mode.
    pub(crate) fn rounds(&mut self) -> Option<(&mut Rounds, &mut Shadow)> {
        Some((self.rounds.as_mut()?, &mut self.shadow))
    }

    /// Has it hold what `before` holds, all of it clean.
    pub(crate) fn hold_as(&mut self, before: Cached) {
        self.shadow = before.shadow;
        while let Some(run) = self.shadow.dirty_run(0) {
            self.shadow.drain(run.clone());
            self.shadow.drained(run);
        }
    }

    /// A request: what is done for it if it hits. Else it waits for [`Cached::next`].
    pub(crate) fn ask(&mut self, owner: Owner, write: bool, span: Span) -> Option<Unit> {
        if !write && self.shadow.hits(span) {
            return Some(hit(span));
        }
        if write
            && self.shadow.is_behind(span)
            && let Some(rounds) = &mut self.rounds
        {
            rounds.write(owner, span);
            return None;
        }
        let is_long = self.shadow.is_long(span);
        self.waiting.push(Asked { owner, write, span, is_long });
        None
    }

    /// Returns the next step, if there is one.
    pub(crate) fn next(&mut self, now_ns: u64) -> Option<Begun> {
        if let Some((asked, unit, is_at_origin)) = self.next_asked() {
            return Some(Begun::Unit(
                asked.owner,
                asked.write,
                unit,
                is_at_origin.then_some(asked),
            ));
        }
        let step = self.rounds.as_mut()?.step(&mut self.shadow, now_ns)?;
        Some(match step {
            Step::Hold(owner, span) => Begun::Unit(owner, true, Unit::of(copied(span, true)), None),
            Step::Drain(run, spans) => {
                self.taken.push(run.clone());
                let op = |span: &Span| Op {
                    member: ORIGIN,
                    write: true,
                    offset: span.offset,
                    bytes: span.len,
                };
                let first: Vec<Op> = spans.iter().map(op).collect();
                let bytes = first.iter().map(|op| op.bytes).sum();
                Begun::Run(run, Unit { bytes, first, then: Vec::new() })
            }
            Step::Flush => Begun::Flush,
            Step::LookAt(at_ns) => Begun::LookAt(at_ns),
        })
    }

    /// A request that waits no longer, and what is done for it; with [`Cached::answered`] behind it, if it goes
    /// to the origin.
    fn next_asked(&mut self) -> Option<(Asked, Unit, bool)> {
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
        let is_kept = self.shadow.keeps(write, is_long);
        let then = is_kept.then(|| copied(span, true)).into_iter().collect();
        let first = vec![Op { member: ORIGIN, write, offset, bytes }];
        Some((asked, Unit { bytes, first, then }, true))
    }

    /// The origin has answered, and it is held, or dropped.
    pub(crate) fn answered(&mut self, asked: &Asked) {
        let Asked { write, span, is_long, .. } = *asked;
        self.shadow.answered(span, write, is_long);
        let blocks = self.shadow.blocks(span);
        self.give_back(&blocks);
    }

    /// The origin has taken a run that was drained.
    pub(crate) fn drained(&mut self, run: Range<u64>) {
        self.give_back(&run);
        if let Some(rounds) = &mut self.rounds {
            rounds.drained(run);
        }
    }

    fn give_back(&mut self, blocks: &Range<u64>) {
        let index = self.taken.iter().position(|one| one == blocks);
        self.taken.swap_remove(index.expect("its blocks were taken"));
    }
}

fn copied(span: Span, write: bool) -> Op {
    Op { member: MEMORY, write, offset: span.offset, bytes: span.len }
}

fn hit(span: Span) -> Unit {
    Unit::of(copied(span, false))
}
