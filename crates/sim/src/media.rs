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
use std::ops::Range;

use braid_block::Span;

use crate::Rng;

/// The order of events on one medium.
pub(crate) type Moment = u64;

pub(crate) struct Media {
    block: usize,
    durable: Vec<u8>,
    current: Vec<u8>,
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
    data: Box<[u8]>,
}

impl Media {
    /// A medium that holds `contents`, durably, in blocks of `block` bytes.
    pub(crate) fn new(contents: Vec<u8>, block: usize) -> Media {
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
    pub(crate) fn current(&self) -> &[u8] {
        &self.current
    }

    /// What a crash leaves that takes all that it may take.
    pub(crate) fn durable(&self) -> &[u8] {
        &self.durable
    }

    /// The next moment.
    pub(crate) fn moment(&mut self) -> Moment {
        self.now += 1;
        self.now
    }

    /// `write` (a number of the caller's) of `data` at `offset` begins.
    pub(crate) fn begin(&mut self, write: u64, offset: u64, data: &[u8]) {
        let first = offset as usize / self.block;
        for (index, data) in data.chunks_exact(self.block).enumerate() {
            let version = Version { write, effective: None, completed: None, data: data.into() };
            self.unflushed.entry(first + index).or_default().push(version);
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
        let now = self.moment();
        for block in self.blocks(span) {
            if reaches() {
                let version = self.version_mut(block, write).expect("begun and not completed");
                version.effective = Some(now);
                let data = version.data.clone();
                self.current[block * self.block..][..self.block].copy_from_slice(&data);
            } else {
                self.retain(block, |version| version.write != write);
            }
        }
    }

    /// `write` over `span` completes; with `durably` (FUA), it is durable by now.
    pub(crate) fn complete(&mut self, write: u64, span: Span, durably: bool) {
        let now = self.moment();
        for block in self.blocks(span) {
            if let Some(version) = self.version_mut(block, write) {
                version.completed = Some(now);
                if durably {
                    let own = (version.effective, version.data.clone());
                    self.harden(block, own.0, &own.1);
                }
            }
        }
    }

    /// A flush that started at `start` completes.
    pub(crate) fn flush(&mut self, start: Moment) {
        let blocks: Vec<usize> = self.unflushed.keys().copied().collect();
        for block in blocks {
            let covered = self.unflushed[&block]
                .iter()
                .filter(|version| version.completed.is_some_and(|completed| completed < start))
                .max_by_key(|version| version.effective);
            if let Some(version) = covered {
                let newest = (version.effective, version.data.clone());
                self.harden(block, newest.0, &newest.1);
            }
        }
    }

    /// A flush that started at `start` failed: what it was to make durable never will be.
    pub(crate) fn lose(&mut self, start: Moment) {
        let blocks: Vec<usize> = self.unflushed.keys().copied().collect();
        for block in blocks {
            self.retain(block, |version| version.completed.is_none_or(|done| done >= start));
        }
    }

    /// What a crash at this moment leaves, if the dice fall like this.
    pub(crate) fn crash(&self, rng: &mut Rng) -> Vec<u8> {
        self.chosen(|_, versions| rng.index(versions + 1))
    }

    /// Whoever wrote is gone, and the power is not: of each block that was under way the dice say
    /// whether it arrives. What the cache holds stays in the cache, but for what a flush that failed
    /// was to make durable: no later flush will. Answers whether there was such a block.
    pub(crate) fn settle(&mut self, rng: &mut Rng) -> bool {
        let now = self.moment();
        let was_lost = self.forget_lost();
        let blocks: Vec<usize> = self.unflushed.keys().copied().collect();
        let arrives_whole = rng.percent(50);
        for block in blocks {
            let size = self.block;
            let is_atomic = self.atomic.contains(&block);
            let current = &mut self.current[block * size..][..size];
            self.unflushed.get_mut(&block).into_iter().flatten().for_each(|version| {
                let arrives = if is_atomic { arrives_whole } else { rng.percent(50) };
                if version.effective.is_none() && arrives {
                    version.effective = Some(now);
                    current.copy_from_slice(&version.data);
                }
                version.completed = version.completed.or(Some(now));
                // Whoever writes next counts from 0 again.
                version.write = u64::MAX;
            });
            self.retain(block, |version| version.effective.is_some());
        }
        was_lost
    }

    /// What reads see, and no flush will make durable, is forgotten.
    fn forget_lost(&mut self) -> bool {
        let mut was_lost = false;
        for block in 0..self.durable.len() / self.block {
            let bytes = block * self.block..(block + 1) * self.block;
            let pending = self.unflushed.get(&block).into_iter().flatten();
            let shown = pending.filter(|one| one.effective.is_some());
            let shown = shown.max_by_key(|one| one.effective).map(|one| &one.data[..]);
            let kept = shown.unwrap_or(&self.durable[bytes.clone()]);
            if self.current[bytes.clone()] != *kept {
                self.current[bytes].copy_from_slice(kept);
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
    pub(crate) fn chosen(&self, mut pick: impl FnMut(u64, usize) -> usize) -> Vec<u8> {
        let mut image = self.durable.clone();
        let mut of_atomic = None;
        for (&block, versions) in &self.unflushed {
            let offset = (block * self.block) as u64;
            let picked = match self.atomic.contains(&block) {
                true => *of_atomic.get_or_insert_with(|| pick(offset, versions.len())),
                false => pick(offset, versions.len()),
            };
            if let Some(version) = versions.get(picked) {
                image[block * self.block..][..self.block].copy_from_slice(&version.data);
            }
        }
        image
    }

    /// `data`, which took effect at `effective`, becomes durable; it and what it replaced are
    /// no longer in the cache alone.
    fn harden(&mut self, block: usize, effective: Option<Moment>, data: &[u8]) {
        self.durable[block * self.block..][..self.block].copy_from_slice(data);
        self.retain(block, |version| version.effective.is_none() || version.effective > effective);
    }

    fn retain(&mut self, block: usize, keep: impl Fn(&Version) -> bool) {
        if let Some(versions) = self.unflushed.get_mut(&block) {
            versions.retain(keep);
            if versions.is_empty() {
                self.unflushed.remove(&block);
            }
        }
    }

    fn version_mut(&mut self, block: usize, write: u64) -> Option<&mut Version> {
        self.unflushed.get_mut(&block)?.iter_mut().find(|version| version.write == write)
    }

    fn blocks(&self, span: Span) -> std::ops::Range<usize> {
        span.offset as usize / self.block..span.end() as usize / self.block
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: Span = Span::new(0, 2);

    /// Two blocks of one byte each, and every pair of bytes that a crash leaves.
    fn crashes(media: &Media) -> Vec<Vec<u8>> {
        let mut rng = Rng::new(1);
        let mut images: Vec<Vec<u8>> = (0..200).map(|_| media.crash(&mut rng)).collect();
        images.sort();
        images.dedup();
        images
    }

    fn write(media: &mut Media, number: u64, byte: u8) {
        media.begin(number, 0, &[byte; 2]);
        media.take_effect(number, SPAN, || true);
        media.complete(number, SPAN, false);
    }

    #[test]
    fn a_crash_keeps_or_loses_each_block_and_a_flush_ends_that() {
        let mut media = Media::new(vec![0; 2], 1);
        write(&mut media, 1, 1);
        assert_eq!(crashes(&media), [[0, 0], [0, 1], [1, 0], [1, 1]]);
        let start = media.moment();
        media.begin(2, 0, &[2]);
        media.flush(start);
        assert_eq!(crashes(&media), [[1, 1], [2, 1]], "the one under way may be there");
        assert_eq!(media.current(), [1, 1]);
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
        media.begin(1, 0, &[1; 2]);
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
        media.begin(1, 0, &[1; 2]);
        let mut reached = [true, false].into_iter();
        media.take_effect(1, SPAN, || reached.next().unwrap());
        assert_eq!(media.current(), [1, 0]);
        assert_eq!(crashes(&media), [[0, 0], [1, 0]]);
    }

    #[test]
    fn what_a_killed_process_wrote_arrives_or_not_and_stays_in_the_cache() {
        let mut seen = Vec::new();
        for seed in 0..20 {
            let mut media = Media::new(vec![0; 2], 1);
            write(&mut media, 1, 1);
            media.begin(2, 0, &[2; 2]);
            media.settle(&mut Rng::new(seed));
            seen.push(media.current().to_vec());
            media.begin(1, 0, &[3]);
            media.take_effect(1, Span::new(0, 1), || true);
            assert_eq!(media.current()[0], 3, "the next process counts from 0 again");
            media.begin(2, 0, &seen[seed as usize][..1]);
            media.take_effect(2, Span::new(0, 1), || true);
            media.complete(2, Span::new(0, 1), false);
            media.complete(1, Span::new(0, 1), false);
            assert_eq!(media.durable(), [0, 0], "nothing was flushed");
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
        media.begin(2, 1, &[2]);
        media.take_effect(2, Span::new(1, 1), || true);
        media.complete(2, Span::new(1, 1), true);
        assert_eq!(crashes(&media), [[0, 2], [1, 2]]);
    }
}
