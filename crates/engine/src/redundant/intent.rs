//! The write-intent bitmap in memory: which chunks are being written, and what the members' copy
//! of the bitmap says of them.
//!
//! ```text
//!            begin                written            end                 swept twice, quiet
//!   clean ──────────▶ wanted ──────────────▶ set ──────────▶ set, quiet ──────────▶ clean
//!                     (bit in memory)  (bit on the members)                (bit cleared, lazily)
//!                                             end, with a copy missing: stays set: `needed`
//! ```
//!
//! Invariant: no write is under way in a chunk whose bit is not on the members. Pure: pages are
//! handed out to be stored, and [`Intent::stored`] is told when they are.
//!
//! Source: Linux `drivers/md/md-bitmap.c` (`md_bitmap_startwrite`, `md_bitmap_daemon_work`).

use braid_md::bitmap::Bitmap;

use super::layout::{SyncByte, SyncSpan};

/// A chunk of the array, as the bitmap divides it.
#[derive(Clone, Copy, Default)]
struct Chunk {
    /// Writes under way.
    writes: u32,
    /// The bit is set on the members.
    on_members: bool,
    /// Copies may differ here until a resync or recovery went over it.
    needed: bool,
    /// Nothing was written since the last sweep.
    quiet: bool,
}

/// A bitmap and what is going on in its chunks.
pub(crate) struct Intent {
    bitmap: Bitmap,
    chunks: Vec<Chunk>,
    /// Pages that differ from the members'.
    changed: Vec<bool>,
    /// A member has none of the pages yet.
    newcomer: bool,
}

impl Intent {
    /// The bitmap as it was found: what is set in it must be synchronised.
    pub(crate) fn new(bitmap: Bitmap) -> Intent {
        let chunk = |index: u64| {
            let set = bitmap.is_set(index);
            Chunk { on_members: set, needed: set, ..Chunk::default() }
        };
        let chunks = (0..bitmap.chunk_count()).map(chunk).collect();
        let changed = vec![false; bitmap.page_count() as usize];
        Intent { bitmap, chunks, changed, newcomer: false }
    }

    pub(crate) fn bitmap(&self) -> &Bitmap {
        &self.bitmap
    }

    pub(crate) fn bitmap_mut(&mut self) -> &mut Bitmap {
        &mut self.bitmap
    }

    fn range(&self, span: SyncSpan) -> std::ops::Range<usize> {
        let chunk = self.bitmap.header.chunk_size;
        let first = (span.offset / chunk) as usize;
        let end = span.end().get().div_ceil(chunk) as usize;
        first..end.min(self.chunks.len())
    }

    /// Whether the bits of `span` are on the members, so that it may be written.
    #[inline]
    pub(crate) fn is_on_members(&self, span: SyncSpan) -> bool {
        self.chunks[self.range(span)].iter().all(|chunk| chunk.on_members)
    }

    /// Notes a write that is over before anything else happens; `everywhere` if every copy has
    /// it.
    #[inline]
    pub(crate) fn touch(&mut self, span: SyncSpan, everywhere: bool) {
        let range = self.range(span);
        for chunk in &mut self.chunks[range] {
            chunk.quiet = false;
            chunk.needed |= !everywhere;
        }
    }

    /// Takes a write in; answers whether it may start at once. If not, the changed pages must be
    /// stored first.
    pub(crate) fn begin(&mut self, span: SyncSpan) -> bool {
        let mut ready = true;
        for index in self.range(span) {
            let chunk = &mut self.chunks[index];
            chunk.writes += 1;
            chunk.quiet = false;
            ready &= chunk.on_members;
            if !self.bitmap.is_set(index as u64) {
                self.bitmap.set(index as u64);
                self.changed[self.bitmap.page_of(index as u64) as usize] = true;
            }
        }
        ready
    }

    /// A write that was taken in is over; `everywhere` if every copy has it.
    pub(crate) fn end(&mut self, span: SyncSpan, everywhere: bool) {
        let range = self.range(span);
        for chunk in &mut self.chunks[range] {
            chunk.writes -= 1;
            chunk.needed |= !everywhere;
        }
    }

    /// The pages to be stored now, with their numbers. The caller stores all of them before it
    /// asks again, and then calls [`Intent::stored`].
    pub(crate) fn take_changed(&mut self) -> Vec<usize> {
        let changed = (0..self.changed.len()).filter(|page| self.changed[*page]).collect();
        self.changed.fill(false);
        changed
    }

    /// A member that has none of the bitmap is among those that are written from now on.
    pub(crate) fn welcome(&mut self) {
        self.newcomer = true;
    }

    /// The pages to be stored before superblocks are: the first, which counts events, and all if
    /// there is a newcomer.
    pub(crate) fn pages_to_publish(&mut self) -> Vec<usize> {
        let pages = if std::mem::take(&mut self.newcomer) { self.changed.len() } else { 1 };
        (0..pages).collect()
    }

    /// `page` was stored as it was when `set` was its list of set chunks.
    pub(crate) fn stored(&mut self, chunks: impl IntoIterator<Item = usize>) {
        chunks.into_iter().for_each(|index| self.chunks[index].on_members = true);
    }

    /// The first chunk whose bit is on `page`.
    fn first_of(&self, page: usize) -> usize {
        let (mut low, mut high) = (0, self.chunks.len());
        while low < high {
            let middle = low.midpoint(high);
            match self.bitmap.page_of(middle as u64) as usize >= page {
                true => high = middle,
                false => low = middle + 1,
            }
        }
        low
    }

    /// The set chunks of `page`.
    pub(crate) fn set_in(&self, page: usize) -> Vec<usize> {
        let on_page = |chunk: &usize| self.bitmap.page_of(*chunk as u64) as usize == page;
        // Chunks are in order, so those of a page are neighbours.
        let first = self.first_of(page);
        let chunks = (first..self.chunks.len()).take_while(on_page);
        chunks.filter(|index| self.bitmap.is_set(*index as u64)).collect()
    }

    /// Clears what was quiet since the last sweep and is not needed. Only for an array that has
    /// all its copies.
    pub(crate) fn sweep(&mut self) -> bool {
        let mut any = false;
        for index in 0..self.chunks.len() {
            let chunk = &mut self.chunks[index];
            if chunk.writes > 0 || chunk.needed || !self.bitmap.is_set(index as u64) {
                continue;
            }
            if chunk.quiet {
                chunk.on_members = false;
                self.bitmap.clear(index as u64);
                self.changed[self.bitmap.page_of(index as u64) as usize] = true;
                any = true;
            }
            chunk.quiet = true;
        }
        any
    }

    /// Whether a sweep may find something.
    pub(crate) fn has_set(&self) -> bool {
        self.chunks.iter().any(|chunk| chunk.on_members && !chunk.needed)
    }

    /// A member is gone, and with it perhaps what it had in its cache: whatever is still set is
    /// what it may lack when it comes back.
    pub(crate) fn need_all_set(&mut self) {
        for (index, chunk) in self.chunks.iter_mut().enumerate() {
            chunk.needed |= self.bitmap.is_set(index as u64);
        }
    }

    /// Copies agree everywhere again.
    pub(crate) fn need_nothing(&mut self) {
        self.chunks.iter_mut().for_each(|chunk| chunk.needed = false);
    }

    /// Whether copies may differ somewhere in `span`, apart from writes under way.
    pub(crate) fn is_needed(&self, span: SyncSpan) -> bool {
        self.chunks[self.range(span)].iter().any(|chunk| chunk.needed)
    }

    /// How many bytes from the start of `span` on must all be synchronised (at most `most` of
    /// them), or need not be; and which.
    ///
    /// A chunk that is being written counts: the write may not know of a member that came in
    /// meanwhile.
    pub(crate) fn stretch(&self, span: SyncSpan, most: u64) -> (u64, bool) {
        let size = self.bitmap.header.chunk_size;
        let is_needed = |index: usize| self.chunks[index].needed || self.chunks[index].writes > 0;
        let range = self.range(span);
        let needed = is_needed(range.start);
        let span = if needed { SyncSpan::new(span.offset, span.len.min(most)) } else { span };
        let end = self.range(span).find(|index| is_needed(*index) != needed);
        let end = end.map_or(span.end(), |index| SyncByte::new(index as u64 * size));
        (end - span.offset, needed)
    }

    /// How many chunks must be synchronised.
    pub(crate) fn needed(&self) -> usize {
        self.chunks.iter().filter(|chunk| chunk.needed).count()
    }
}
