//! The table of the blocks that a store has: its pages in memory, as far as they were needed.

use std::collections::BTreeMap;

use braid_block::Span;

use super::store::{BLOCK, BLOCKS_OF_PAGE, PAGE};

/// A bit for each block of a page.
type Bits = Box<[u64; PAGE as usize / 8]>;

struct Page {
    bits: Bits,
    /// Bits were set since the page was taken to be written.
    is_dirty: bool,
}

/// The pages that were read.
#[derive(Default)]
pub(super) struct Table {
    pages: BTreeMap<u64, Page>,
}

/// Returns the blocks that `span` touches, as the first and the one behind the last.
pub(super) fn blocks_of(span: Span) -> (u64, u64) {
    (span.offset / BLOCK, span.end().div_ceil(BLOCK))
}

impl Table {
    /// Returns the first page that `span` needs and that was not read; `None` if all were.
    pub(super) fn first_unread(&self, span: Span) -> Option<u64> {
        let (first, end) = blocks_of(span);
        let mut pages = first / BLOCKS_OF_PAGE..end.div_ceil(BLOCKS_OF_PAGE);
        pages.find(|page| !self.pages.contains_key(page))
    }

    /// Keeps a page as the store has it, unless it was read meanwhile.
    pub(super) fn read(&mut self, page: u64, bytes: &[u8]) {
        self.pages.entry(page).or_insert_with(|| {
            let mut bits: Bits = Box::new([0; PAGE as usize / 8]);
            for (word, bytes) in bits.iter_mut().zip(bytes.chunks_exact(8)) {
                *word = bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
            }
            Page { bits, is_dirty: false }
        });
    }

    /// Returns true if the store has `block`, whose page was read.
    pub(super) fn has(&self, block: u64) -> bool {
        let at = block % BLOCKS_OF_PAGE;
        let page = self.pages.get(&(block / BLOCKS_OF_PAGE));
        page.is_some_and(|page| page.bits[at as usize / 64] & 1 << (at % 64) != 0)
    }

    /// Returns true if the store has all blocks of `span`.
    pub(super) fn has_all(&self, span: Span) -> bool {
        let (first, end) = blocks_of(span);
        (first..end).all(|block| self.has(block))
    }

    /// Returns whether the store has the block at the start of `span`, and the longest front of `span` of which that
    /// holds.
    pub(super) fn run(&self, span: Span) -> (bool, Span) {
        let (first, end) = blocks_of(span);
        let has = self.has(first);
        let other = (first..end).find(|block| self.has(*block) != has).unwrap_or(end);
        (has, Span::new(span.offset, (other * BLOCK).min(span.end()) - span.offset))
    }

    /// Notes that the store has the blocks of `span`, whose pages were read.
    pub(super) fn insert(&mut self, span: Span) {
        let (first, end) = blocks_of(span);
        for block in first..end {
            let at = block % BLOCKS_OF_PAGE;
            let page = self.pages.get_mut(&(block / BLOCKS_OF_PAGE)).expect("its page was read");
            let (word, bit) = (&mut page.bits[at as usize / 64], 1 << (at % 64));
            page.is_dirty |= *word & bit == 0;
            *word |= bit;
        }
    }

    /// Takes the pages with bits that the store's table does not have, as they are now.
    pub(super) fn take_dirty(&mut self) -> Vec<(u64, Vec<u8>)> {
        let dirty = self.pages.iter_mut().filter(|(_, page)| page.is_dirty);
        let bytes = |(number, page): (&u64, &mut Page)| {
            page.is_dirty = false;
            (*number, page.bits.iter().flat_map(|word| word.to_le_bytes()).collect())
        };
        dirty.map(bytes).collect()
    }

    /// Gives pages back that could not be written.
    pub(super) fn give_back(&mut self, pages: &[(u64, Vec<u8>)]) {
        for (number, _) in pages {
            if let Some(page) = self.pages.get_mut(number) {
                page.is_dirty = true;
            }
        }
    }
}
