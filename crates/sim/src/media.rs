//! The content of a disk: the durable image, the content that its cache shows, and all possible results of a
//! crash.
//!
//! ```text
//! block 7   durable: A | un-flushed: B  C  D          cache shows C: D has not taken effect yet
//!                        after a crash: A, B, C or D, drawn for each block alone
//! ```
//!
//! A write goes through three moments: it begins (from now on a crash may leave it), takes effect (reads see
//! it), completes (a flush that starts later makes it durable). Blocks are never torn; a request of several
//! blocks may be torn at every boundary.
//!
//! Invariant: of the versions of a block, those that took effect before the durable one did are gone, so no
//! crash can bring back content that a flush has replaced.

use std::ops::Range;

use braid_block::Span;

use crate::{Image, Rng};

/// The order of events on one medium.
pub(crate) type Moment = u64;

pub(crate) struct Media {
    block: usize,
    durable: Image,
    current: Image,
    /// In the order in which they began.
    unflushed: Vec<Write>,
    now: Moment,
    /// Blocks that are only ever written together, and never torn.
    atomic: Range<usize>,
}

/// A write, with a version of each of its blocks.
struct Write {
    /// The caller's number.
    number: u64,
    first: usize,
    data: Vec<u8>,
    /// True for each block of which a crash may leave its version.
    left: Vec<bool>,
    effective: Option<Moment>,
    completed: Option<Moment>,
}

impl Write {
    /// The blocks of which it has a version that is left.
    fn blocks(&self) -> impl Iterator<Item = usize> + '_ {
        (self.first..).zip(&self.left).filter(|(_, left)| **left).map(|(block, _)| block)
    }

    /// Its remaining blocks, in runs: the first block, and the bytes.
    fn runs(&self) -> impl Iterator<Item = (usize, &[u8])> {
        let size = self.data.len() / self.left.len();
        let mut at = 0;
        self.left.chunk_by(|a, b| a == b).filter_map(move |run| {
            let start = at;
            at += run.len();
            run[0].then(|| (self.first + start, &self.data[start * size..at * size]))
        })
    }

    fn block(&self, block: usize, size: usize) -> &[u8] {
        &self.data[(block - self.first) * size..][..size]
    }

    fn is_over(&self) -> bool {
        !self.left.contains(&true)
    }

    /// Removes its blocks if it took effect no later than `newer`.
    fn give_way_to(&mut self, newer: &Write) {
        if self.effective.is_none() || self.effective > newer.effective {
            return;
        }
        let first = self.first.max(newer.first);
        let end = (self.first + self.left.len()).min(newer.first + newer.left.len());
        for block in first..end {
            self.left[block - self.first] &= !newer.left[block - newer.first];
        }
    }
}

impl Media {
    /// A medium that holds `contents`, durably, in blocks of `block` bytes.
    pub(crate) fn new(contents: impl Into<Image>, block: usize) -> Media {
        let durable = contents.into();
        assert!(durable.len().is_multiple_of(block), "whole blocks");
        let current = durable.clone();
        Media { block, durable, current, unflushed: Vec::new(), now: 0, atomic: 0..0 }
    }

    /// Has the blocks of `span` be written all or none of them in a crash.
    pub(crate) fn set_atomic(&mut self, span: Span) {
        self.atomic = self.blocks(span);
    }

    /// The content that reads see.
    pub(crate) fn current(&self) -> &Image {
        &self.current
    }

    /// The content after a crash that loses all it may lose.
    pub(crate) fn durable(&self) -> &Image {
        &self.durable
    }

    /// The next moment.
    pub(crate) fn moment(&mut self) -> Moment {
        self.now += 1;
        self.now
    }

    /// The blocks from `offset` on hold `bytes`, durably, whatever was written there. Other blocks may be under way.
    pub(crate) fn rot(&mut self, offset: u64, bytes: &[u8]) {
        let blocks = self.blocks(Span::new(offset, bytes.len() as u64));
        for write in &mut self.unflushed {
            let end = write.first + write.left.len();
            for block in blocks.start.max(write.first)..blocks.end.min(end) {
                assert!(write.completed.is_some(), "a block rots that is being written");
                write.left[block - write.first] = false;
            }
        }
        self.unflushed.retain(|write| !write.is_over());
        self.durable.write(offset as usize, bytes);
        self.current.write(offset as usize, bytes);
    }

    /// `write` (a number of the caller's) of `data`, whole blocks, at `offset` begins.
    pub(crate) fn begin(&mut self, write: u64, offset: u64, data: Vec<u8>) {
        let left = vec![true; data.len() / self.block];
        let (number, first) = (write, offset as usize / self.block);
        let (effective, completed) = (None, None);
        self.unflushed.push(Write { number, first, data, left, effective, completed });
    }

    /// `write` takes effect, on those of its blocks that `reaches` picks; the others never saw it.
    pub(crate) fn take_effect(&mut self, write: u64, mut reaches: impl FnMut() -> bool) {
        let now = self.moment();
        let index = self.find(write).expect("begun and not completed");
        let write = &mut self.unflushed[index];
        write.effective = Some(now);
        write.left.iter_mut().for_each(|left| *left &= reaches());
        for (block, bytes) in write.runs() {
            self.current.write(block * self.block, bytes);
        }
        if write.is_over() {
            self.unflushed.remove(index);
        }
    }

    /// `write` completes; with `durably` (FUA), it is durable by now.
    pub(crate) fn complete(&mut self, write: u64, durably: bool) {
        let now = self.moment();
        let Some(index) = self.find(write) else { return };
        self.unflushed[index].completed = Some(now);
        if durably {
            let write = self.unflushed.remove(index);
            self.harden(&[write]);
        }
    }

    /// A flush that started at `start` completes.
    pub(crate) fn flush(&mut self, start: Moment) {
        let is_covered = |one: &mut Write| one.completed.is_some_and(|done| done < start);
        let mut covered: Vec<Write> = self.unflushed.extract_if(.., is_covered).collect();
        covered.sort_by_key(|write| write.effective);
        self.harden(&covered);
    }

    /// A flush that started at `start` failed: what it was to make durable never will be.
    pub(crate) fn lose(&mut self, start: Moment) {
        self.unflushed.retain(|write| write.completed.is_none_or(|done| done >= start));
    }

    /// A random possible content after a crash at this moment.
    pub(crate) fn crash(&self, rng: &mut Rng) -> Image {
        self.chosen(|_, versions| rng.index(versions + 1))
    }

    /// The writer is gone, but the power is not: for each block in flight, chance decides whether it arrives.
    /// The content of the cache stays there, except blocks that a failed flush was to make durable: no later
    /// flush will. Returns true if there was such a block.
    pub(crate) fn settle(&mut self, rng: &mut Rng) -> bool {
        let now = self.moment();
        let was_lost = self.forget_lost();
        let arrives_whole = rng.percent(50);
        for (block, index) in self.versions() {
            let is_atomic = self.atomic.contains(&block);
            let arrives = if is_atomic { arrives_whole } else { rng.percent(50) };
            let write = &mut self.unflushed[index];
            if write.effective.is_none() && arrives {
                self.current.write(block * self.block, write.block(block, self.block));
            } else if write.effective.is_none() {
                write.left[block - write.first] = false;
            }
        }
        for write in &mut self.unflushed {
            write.effective = write.effective.or(Some(now));
            write.completed = write.completed.or(Some(now));
            // The next writer counts from 0 again.
            write.number = u64::MAX;
        }
        self.unflushed.retain(|write| !write.is_over());
        was_lost
    }

    /// Forgets the blocks that reads see, and that no flush will make durable.
    fn forget_lost(&mut self) -> bool {
        let effective = self.unflushed.iter().filter(|write| write.effective.is_some());
        let mut effective: Vec<&Write> = effective.collect();
        effective.sort_by_key(|write| write.effective);
        let mut kept = self.durable.clone();
        for (block, bytes) in effective.into_iter().flat_map(Write::runs) {
            kept.write(block * self.block, bytes);
        }
        let was_lost = self.current != kept;
        self.current = kept;
        was_lost
    }

    /// The blocks whose content after a crash now is not certain: offsets in order, and the number of versions.
    pub(crate) fn unsettled(&self) -> Vec<(u64, usize)> {
        let versions = self.versions();
        let blocks = versions.chunk_by(|a, b| a.0 == b.0);
        blocks.map(|all| ((all[0].0 * self.block) as u64, all.len())).collect()
    }

    /// The durable contents, with version number `pick` (in the order of [`Media::unsettled`]) of
    /// each block that has some; as many as there are: none of them.
    pub(crate) fn chosen(&self, mut pick: impl FnMut(u64, usize) -> usize) -> Image {
        let mut image = self.durable.clone();
        let mut of_atomic = None;
        for versions in self.versions().chunk_by(|a, b| a.0 == b.0) {
            let block = versions[0].0;
            let offset = block * self.block;
            let picked = match self.atomic.contains(&block) {
                true => *of_atomic.get_or_insert_with(|| pick(offset as u64, versions.len())),
                false => pick(offset as u64, versions.len()),
            };
            if let Some((_, index)) = versions.get(picked) {
                image.write(offset, self.unflushed[*index].block(block, self.block));
            }
        }
        image
    }

    /// Every version that a crash may leave: its block, and the index of its write; in this order.
    fn versions(&self) -> Vec<(usize, usize)> {
        let of_write = |(index, write): (usize, &Write)| {
            write.blocks().map(|block| (block, index)).collect::<Vec<_>>()
        };
        let mut versions: Vec<_> = self.unflushed.iter().enumerate().flat_map(of_write).collect();
        versions.sort_unstable();
        versions
    }

    /// `writes`, in the order in which they took effect, become durable; they and what they replaced
    /// are no longer in the cache alone.
    fn harden(&mut self, writes: &[Write]) {
        for write in writes {
            for (block, bytes) in write.runs() {
                self.durable.write(block * self.block, bytes);
            }
            self.unflushed.iter_mut().for_each(|older| older.give_way_to(write));
        }
        self.unflushed.retain(|write| !write.is_over());
    }

    fn find(&self, write: u64) -> Option<usize> {
        self.unflushed.iter().rposition(|one| one.number == write)
    }

    fn blocks(&self, span: Span) -> Range<usize> {
        span.offset as usize / self.block..span.end() as usize / self.block
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        media.begin(number, 0, vec![byte; 2]);
        media.take_effect(number, || true);
        media.complete(number, false);
    }

    #[test]
    fn a_crash_keeps_or_loses_each_block_and_a_flush_ends_that() {
        let mut media = Media::new(vec![0; 2], 1);
        write(&mut media, 1, 1);
        assert_eq!(crashes(&media), [[0, 0], [0, 1], [1, 0], [1, 1]]);
        let start = media.moment();
        media.begin(2, 0, vec![2]);
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
        media.begin(1, 0, vec![1; 2]);
        media.take_effect(1, || true);
        // The first is still under way, but its bytes are gone already.
        write(&mut media, 2, 2);
        let start = media.moment();
        media.flush(start);
        assert_eq!(crashes(&media), [[2, 2]]);
        media.complete(1, true);
        assert_eq!(crashes(&media), [[2, 2]]);
    }

    #[test]
    fn a_write_that_failed_may_have_reached_some_blocks() {
        let mut media = Media::new(vec![0; 2], 1);
        media.begin(1, 0, vec![1; 2]);
        let mut reached = [true, false].into_iter();
        media.take_effect(1, || reached.next().unwrap());
        assert_eq!(media.current().to_vec(), [1, 0]);
        assert_eq!(crashes(&media), [[0, 0], [1, 0]]);
    }

    #[test]
    fn what_a_killed_process_wrote_arrives_or_not_and_stays_in_the_cache() {
        let mut seen = Vec::new();
        for seed in 0..20 {
            let mut media = Media::new(vec![0; 2], 1);
            write(&mut media, 1, 1);
            media.begin(2, 0, vec![2; 2]);
            media.settle(&mut Rng::new(seed));
            seen.push(media.current().to_vec());
            media.begin(1, 0, vec![3]);
            media.take_effect(1, || true);
            assert_eq!(media.current().piece(0, 1), [3], "the next process counts from 0 again");
            media.begin(2, 0, seen[seed as usize][..1].to_vec());
            media.take_effect(2, || true);
            media.complete(2, false);
            media.complete(1, false);
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
        media.begin(2, 1, vec![2]);
        media.take_effect(2, || true);
        media.complete(2, true);
        assert_eq!(crashes(&media), [[0, 2], [1, 2]]);
    }
}
