//! What a disk holds: the durable image, what its cache shows, and all that a crash may leave.
//!
//! ```text
//! block 7   durable: A | un-flushed: B  C  D          cache shows C: D has not taken effect yet
//!                        after a crash: A, B, C or D, drawn for each block alone
//! ```
//!
//! A write goes through three moments: it begins (from now on a crash may leave it), takes
//! effect (reads see it), completes (a flush that starts later makes it durable). Blocks are
//! never torn; a request of several blocks may be, at every boundary.
//!
//! Invariant: of the versions of a block, those that took effect before the durable one did are
//! gone, so no crash can bring back what a flush has replaced.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::{Deref, Range};
use std::rc::Rc;

use braid_block::Span;

use crate::{Image, Rng};

/// The order of events on one medium.
pub(crate) type Moment = u64;

pub(crate) struct Media {
    block: usize,
    durable: Image,
    current: Image,
    /// By block number, in the order in which the writes began.
    unflushed: BTreeMap<usize, Vec<Version>>,
    now: Moment,
    /// Blocks that are only ever written together, and never torn.
    atomic: Range<usize>,
}

struct Version {
    write: u64,
    effective: Option<Moment>,
    completed: Option<Moment>,
    data: Bytes,
}

/// A block of what a write brought.
#[derive(Clone)]
struct Bytes {
    of: Rc<[u8]>,
    range: Range<usize>,
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.of[self.range.clone()]
    }
}

impl Media {
    /// A medium that holds `contents`, durably, in blocks of `block` bytes.
    pub(crate) fn new(contents: impl Into<Image>, block: usize) -> Media {
        let contents = contents.into();
        assert!(contents.len().is_multiple_of(block), "whole blocks");
        let current = contents.clone();
        Media {
            block,
            durable: contents,
            current,
            unflushed: BTreeMap::new(),
            now: 0,
            atomic: 0..0,
        }
    }

    /// Has the blocks of `span` be written all or none of them in a crash.
    pub(crate) fn set_atomic(&mut self, span: Span) {
        self.atomic = self.blocks(span);
    }

    /// What reads see.
    pub(crate) fn current(&self) -> &Image {
        &self.current
    }

    /// What a crash leaves that takes all that it may take.
    pub(crate) fn durable(&self) -> &Image {
        &self.durable
    }

    /// The next moment.
    pub(crate) fn moment(&mut self) -> Moment {
        self.now += 1;
        self.now
    }

    /// `write` (a number of the caller's) of `data` at `offset` begins.
    pub(crate) fn begin(&mut self, write: u64, offset: u64, data: impl Into<Rc<[u8]>>) {
        let (first, of) = (offset as usize / self.block, data.into());
        for (index, at) in (0..of.len()).step_by(self.block).enumerate() {
            let data = Bytes { of: Rc::clone(&of), range: at..at + self.block };
            let version = Version { write, effective: None, completed: None, data };
            match self.unflushed.entry(first + index) {
                Entry::Vacant(none) => _ = none.insert(vec![version]),
                Entry::Occupied(mut some) => some.get_mut().push(version),
            }
        }
    }

    /// `write` over `span` takes effect, on those of its blocks that `reaches` picks; the others
    /// never saw it.
    pub(crate) fn take_effect(
        &mut self,
        write: u64,
        span: Span,
        mut reaches: impl FnMut() -> bool,
    ) {
        let (now, blocks) = (self.moment(), self.blocks(span));
        for (block, versions) in self.unflushed.range_mut(blocks.clone()) {
            let own = versions.iter_mut().position(|version| version.write == write);
            let own = own.expect("begun and not completed");
            if reaches() {
                versions[own].effective = Some(now);
                self.current.write(block * self.block, &versions[own].data);
            } else {
                versions.remove(own);
            }
        }
        self.drop_empty(blocks);
    }

    /// `write` over `span` completes; with `durably` (FUA), it is durable by now.
    pub(crate) fn complete(&mut self, write: u64, span: Span, durably: bool) {
        let (now, blocks) = (self.moment(), self.blocks(span));
        for (block, versions) in self.unflushed.range_mut(blocks.clone()) {
            let own = versions.iter_mut().position(|version| version.write == write);
            let Some(own) = own else { continue };
            versions[own].completed = Some(now);
            if durably {
                harden(&mut self.durable, block * self.block, versions, own);
            }
        }
        if durably {
            self.drop_empty(blocks);
        }
    }

    /// A flush that started at `start` completes.
    pub(crate) fn flush(&mut self, start: Moment) {
        self.unflushed.retain(|block, versions| {
            let is_covered = |one: &Version| one.completed.is_some_and(|done| done < start);
            let covered = (0..versions.len()).filter(|index| is_covered(&versions[*index]));
            if let Some(newest) = covered.max_by_key(|index| versions[*index].effective) {
                harden(&mut self.durable, block * self.block, versions, newest);
            }
            !versions.is_empty()
        });
    }

    /// A flush that started at `start` failed: what it was to make durable never will be.
    pub(crate) fn lose(&mut self, start: Moment) {
        self.unflushed.retain(|_, versions| {
            versions.retain(|version| version.completed.is_none_or(|done| done >= start));
            !versions.is_empty()
        });
    }

    /// What a crash at this moment leaves, if the dice fall like this.
    pub(crate) fn crash(&self, rng: &mut Rng) -> Image {
        self.chosen(|_, versions| rng.index(versions + 1))
    }

    /// Whoever wrote is gone, and the power is not: of each block that was under way the dice say
    /// whether it arrives. What the cache holds stays in the cache, but for what a flush that failed
    /// was to make durable: no later flush will. Answers whether there was such a block.
    pub(crate) fn settle(&mut self, rng: &mut Rng) -> bool {
        let now = self.moment();
        let was_lost = self.forget_lost();
        let arrives_whole = rng.percent(50);
        self.unflushed.retain(|block, versions| {
            for version in versions.iter_mut() {
                let is_atomic = self.atomic.contains(block);
                let arrives = if is_atomic { arrives_whole } else { rng.percent(50) };
                if version.effective.is_none() && arrives {
                    version.effective = Some(now);
                    self.current.write(block * self.block, &version.data);
                }
                version.completed = version.completed.or(Some(now));
                // Whoever writes next counts from 0 again.
                version.write = u64::MAX;
            }
            versions.retain(|version| version.effective.is_some());
            !versions.is_empty()
        });
        was_lost
    }

    /// What reads see, and no flush will make durable, is forgotten.
    fn forget_lost(&mut self) -> bool {
        let mut was_lost = false;
        for block in 0..self.durable.len() / self.block {
            let at = block * self.block;
            let pending = self.unflushed.get(&block).into_iter().flatten();
            let shown = pending.filter(|one| one.effective.is_some());
            let shown = shown.max_by_key(|one| one.effective).map(|one| &*one.data);
            let kept = shown.unwrap_or(self.durable.piece(at, self.block));
            if self.current.piece(at, self.block) != kept {
                self.current.write(at, kept);
                was_lost = true;
            }
        }
        was_lost
    }

    /// Where a crash now may leave something else than is durable: offsets of blocks, in order.
    pub(crate) fn unsettled(&self) -> impl Iterator<Item = (u64, usize)> + '_ {
        self.unflushed.iter().map(|(block, all)| ((block * self.block) as u64, all.len()))
    }

    /// The durable contents, with version number `pick` (in the order of [`Media::unsettled`]) of
    /// each block that has some; as many as there are: none of them.
    pub(crate) fn chosen(&self, mut pick: impl FnMut(u64, usize) -> usize) -> Image {
        let mut image = self.durable.clone();
        let mut of_atomic = None;
        for (&block, versions) in &self.unflushed {
            let offset = (block * self.block) as u64;
            let picked = match self.atomic.contains(&block) {
                true => *of_atomic.get_or_insert_with(|| pick(offset, versions.len())),
                false => pick(offset, versions.len()),
            };
            if let Some(version) = versions.get(picked) {
                image.write(block * self.block, &version.data);
            }
        }
        image
    }

    /// Forgets those of `blocks` of which nothing is left.
    fn drop_empty(&mut self, blocks: Range<usize>) {
        let range = self.unflushed.range(blocks);
        let empty = range.filter(|(_, versions)| versions.is_empty()).map(|(block, _)| *block);
        for block in empty.collect::<Vec<_>>() {
            self.unflushed.remove(&block);
        }
    }

    fn blocks(&self, span: Span) -> std::ops::Range<usize> {
        span.offset as usize / self.block..span.end() as usize / self.block
    }
}

/// Number `newest` of `versions` becomes durable at `offset`; it and what it replaced are no longer in
/// the cache alone.
fn harden(durable: &mut Image, offset: usize, versions: &mut Vec<Version>, newest: usize) {
    durable.write(offset, &versions[newest].data);
    let effective = versions[newest].effective;
    versions.retain(|version| version.effective.is_none() || version.effective > effective);
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: Span = Span::new(0, 2);

    /// Two blocks of one byte each, and every pair of bytes that a crash leaves.
    fn crashes(media: &Media) -> Vec<Vec<u8>> {
        let mut rng = Rng::new(1);
        let crash = |_| media.crash(&mut rng).to_vec();
        let mut images: Vec<Vec<u8>> = (0..200).map(crash).collect();
        images.sort();
        images.dedup();
        images
    }

    fn write(media: &mut Media, number: u64, byte: u8) {
        media.begin(number, 0, [byte; 2]);
        media.take_effect(number, SPAN, || true);
        media.complete(number, SPAN, false);
    }

    #[test]
    fn a_crash_keeps_or_loses_each_block_and_a_flush_ends_that() {
        let mut media = Media::new(vec![0; 2], 1);
        write(&mut media, 1, 1);
        assert_eq!(crashes(&media), [[0, 0], [0, 1], [1, 0], [1, 1]]);
        let start = media.moment();
        media.begin(2, 0, [2]);
        media.flush(start);
        assert_eq!(crashes(&media), [[1, 1], [2, 1]], "the one under way may be there");
        assert_eq!(media.current().to_vec(), [1, 1]);
    }

    #[test]
    fn a_flush_covers_only_what_completed_before_it_started() {
        let mut media = Media::new(vec![0; 2], 1);
        let start = media.moment();
        write(&mut media, 1, 1);
        media.flush(start);
        assert_eq!(crashes(&media).len(), 4);
    }

    #[test]
    fn what_a_flush_replaced_does_not_come_back() {
        let mut media = Media::new(vec![0; 2], 1);
        media.begin(1, 0, [1; 2]);
        media.take_effect(1, SPAN, || true);
        // The first is still under way, but its bytes are gone already.
        write(&mut media, 2, 2);
        let start = media.moment();
        media.flush(start);
        assert_eq!(crashes(&media), [[2, 2]]);
        media.complete(1, SPAN, true);
        assert_eq!(crashes(&media), [[2, 2]]);
    }

    #[test]
    fn a_write_that_failed_may_have_reached_some_blocks() {
        let mut media = Media::new(vec![0; 2], 1);
        media.begin(1, 0, [1; 2]);
        let mut reached = [true, false].into_iter();
        media.take_effect(1, SPAN, || reached.next().unwrap());
        assert_eq!(media.current().to_vec(), [1, 0]);
        assert_eq!(crashes(&media), [[0, 0], [1, 0]]);
    }

    #[test]
    fn what_a_killed_process_wrote_arrives_or_not_and_stays_in_the_cache() {
        let mut seen = Vec::new();
        for seed in 0..20 {
            let mut media = Media::new(vec![0; 2], 1);
            write(&mut media, 1, 1);
            media.begin(2, 0, [2; 2]);
            media.settle(&mut Rng::new(seed));
            seen.push(media.current().to_vec());
            media.begin(1, 0, [3]);
            media.take_effect(1, Span::new(0, 1), || true);
            assert_eq!(media.current().piece(0, 1), [3], "the next process counts from 0 again");
            media.begin(2, 0, &seen[seed as usize][..1]);
            media.take_effect(2, Span::new(0, 1), || true);
            media.complete(2, Span::new(0, 1), false);
            media.complete(1, Span::new(0, 1), false);
            assert_eq!(media.durable().to_vec(), [0, 0], "nothing was flushed");
            assert!(crashes(&media).contains(&vec![0, 0]));
            let start = media.moment();
            media.flush(start);
            assert_eq!(crashes(&media), [media.current().to_vec()]);
        }
        seen.sort();
        seen.dedup();
        assert_eq!(seen, [[1, 1], [1, 2], [2, 1], [2, 2]]);
    }

    #[test]
    fn a_write_with_fua_is_durable_when_it_completes() {
        let mut media = Media::new(vec![0; 2], 1);
        write(&mut media, 1, 1);
        media.begin(2, 1, [2]);
        media.take_effect(2, Span::new(1, 1), || true);
        media.complete(2, Span::new(1, 1), true);
        assert_eq!(crashes(&media), [[0, 2], [1, 2]]);
    }
}
