//! The write-intent bitmap in memory: the chunks that are being written, and the state of their bits on the
//! members.
//!
//! ```text
//!            begin                written            end                 swept twice, quiet
//!   clean ──────────▶ wanted ──────────────▶ set ──────────▶ set, quiet ──────────▶ clean
//!                     (bit in memory)  (bit on the members)                (bit cleared, lazily)
//!                                             end, with a copy missing: stays set: `needed`
//! ```
//!
//! Invariants
//! * No write is under way in a chunk whose bit is not on the members.
//! * The first page holds the header. `events_cleared` is durable before a bit of another page is cleared:
//!   pages are stored in ascending order. A bitmap that the members do not have yet becomes believable only with
//!   its header, so its first page is stored last.
//!
//! Pure: the caller stores pages and reports them to [`Intent::stored`].
//!
//! Source: Linux `drivers/md/md-bitmap.c` (`md_bitmap_startwrite`, `md_bitmap_daemon_work`).

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering::SeqCst;

use braid_md::bitmap::Bitmap;

use super::layout::{SyncByte, SyncSpan};
use crate::canary::Canary;

/// The write-intent bitmap with which an array starts.
#[derive(Clone, Debug)]
pub struct StartingBitmap {
    /// Set where copies may differ.
    pub bitmap: Bitmap,
    /// True if the members hold these pages. Otherwise all pages are stored before superblocks and before data.
    pub is_on_members: bool,
}

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

/// Pages on their way to the members.
pub(crate) struct Pages {
    /// Page numbers, in the order in which the pages are stored.
    pub(crate) pages: Vec<usize>,
    /// The chunks whose bits they set.
    set: Vec<usize>,
}

/// A bitmap and the writes in its chunks.
pub(crate) struct Intent {
    bitmap: Bitmap,
    chunks: Vec<Chunk>,
    /// Pages that differ from the members'.
    changed: Vec<bool>,
    /// A member has none of the pages yet.
    newcomer: bool,
    /// No member has these pages: they are stored whole before anything relies on the bitmap.
    is_new: bool,
    /// The part that other shards see, if they write.
    shared: Option<Arc<SharedBits>>,
}

/// The state of bits for shards that write by themselves: a bit is cleared only while none of them writes.
pub(crate) struct SharedBits {
    chunk_size: u64,
    chunks: Box<[AtomicU8]>,
}

/// A chunk's bit is on the members; another shard wrote there since the last sweep.
const ON_MEMBERS: u8 = 1;
const TOUCHED: u8 = 2;

impl SharedBits {
    fn set_on_members(&self, index: usize, is_on: bool) {
        match is_on {
            true => self.chunks[index].fetch_or(ON_MEMBERS, SeqCst),
            false => self.chunks[index].fetch_and(!ON_MEMBERS, SeqCst),
        };
    }

    /// Returns true if another shard wrote to the chunk since the last call.
    fn was_touched(&self, index: usize) -> bool {
        let chunk = &self.chunks[index];
        chunk.load(SeqCst) & TOUCHED != 0 && chunk.fetch_and(!TOUCHED, SeqCst) & TOUCHED != 0
    }

    /// Notes a write of `span`, and returns true, if its bits are on the members.
    #[inline]
    pub(crate) fn touch(&self, span: SyncSpan) -> bool {
        let chunks = &self.chunks[chunks_of(span, self.chunk_size, self.chunks.len())];
        if !chunks.iter().all(|chunk| chunk.load(SeqCst) & ON_MEMBERS != 0) {
            return false;
        }
        for chunk in chunks.iter().filter(|chunk| chunk.load(SeqCst) & TOUCHED == 0) {
            chunk.fetch_or(TOUCHED, SeqCst);
        }
        true
    }
}

/// Returns the numbers of the chunks of `span`, of `count` that there are.
#[inline]
fn chunks_of(span: SyncSpan, chunk_size: u64, count: usize) -> Range<usize> {
    let first = (span.offset / chunk_size) as usize;
    let end = span.end().get().div_ceil(chunk_size) as usize;
    first..end.min(count)
}

impl Intent {
    /// Takes a bitmap up. Chunks whose bits are set must be synchronised.
    pub(crate) fn new(start: StartingBitmap) -> Intent {
        let StartingBitmap { bitmap, is_on_members } = start;
        let chunk = |index: u64| {
            let set = bitmap.is_set(index);
            Chunk { on_members: set && is_on_members, needed: set, ..Chunk::default() }
        };
        let chunks = (0..bitmap.chunk_count()).map(chunk).collect();
        let changed = vec![!is_on_members; bitmap.page_count() as usize];
        Intent { bitmap, chunks, changed, newcomer: false, is_new: !is_on_members, shared: None }
    }

    /// Shows the state of bits to other shards from now on.
    pub(crate) fn share(&mut self) {
        let chunk_size = self.bitmap.header.chunk_size;
        let state = |chunk: &Chunk| AtomicU8::new(if chunk.on_members { ON_MEMBERS } else { 0 });
        let chunks = self.chunks.iter().map(state).collect();
        self.shared = Some(Arc::new(SharedBits { chunk_size, chunks }));
    }

    /// Returns the part that other shards see.
    pub(crate) fn shared(&self) -> Option<&Arc<SharedBits>> {
        self.shared.as_ref()
    }

    fn set_on_members(&mut self, index: usize, is_on: bool) {
        self.chunks[index].on_members = is_on;
        self.shared.iter().for_each(|shared| shared.set_on_members(index, is_on));
    }

    pub(crate) fn bitmap(&self) -> &Bitmap {
        &self.bitmap
    }

    pub(crate) fn bitmap_mut(&mut self) -> &mut Bitmap {
        &mut self.bitmap
    }

    #[inline]
    fn range(&self, span: SyncSpan) -> Range<usize> {
        chunks_of(span, self.bitmap.header.chunk_size, self.chunks.len())
    }

    /// Returns true if the bits of `span` are on the members, so that it may be written.
    #[inline]
    pub(crate) fn is_on_members(&self, span: SyncSpan) -> bool {
        self.chunks[self.range(span)].iter().all(|chunk| chunk.on_members)
    }

    /// Notes a write that completed within the call. `everywhere` if every copy has it.
    #[inline]
    pub(crate) fn touch(&mut self, span: SyncSpan, everywhere: bool) {
        let range = self.range(span);
        for chunk in &mut self.chunks[range] {
            chunk.quiet = false;
            chunk.needed |= !everywhere;
        }
    }

    /// Adds a write. Returns true if it may start at once. If not, the changed pages must be stored first.
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

    /// Notes that an added write completed. `everywhere` if every copy has it.
    pub(crate) fn end(&mut self, span: SyncSpan, everywhere: bool) {
        let range = self.range(span);
        for chunk in &mut self.chunks[range] {
            chunk.writes -= 1;
            chunk.needed |= !everywhere;
        }
    }

    /// Takes the pages that differ from the members', in the order in which they are stored. The caller stores
    /// all of them before the next call, and then calls [`Intent::stored`] or [`Intent::not_stored`].
    pub(crate) fn take_changed(&mut self) -> Pages {
        if self.is_new {
            return self.take_all();
        }
        let changed = (0..self.changed.len()).filter(|page| self.changed[*page]).collect();
        self.changed.fill(false);
        self.pages(changed)
    }

    /// Notes that a member without any page is written from now on.
    pub(crate) fn welcome(&mut self) {
        self.newcomer = true;
    }

    /// Takes the pages to be stored before superblocks are: the first, which counts events; all of them if a member
    /// or the bitmap is new.
    pub(crate) fn take_publication(&mut self) -> Pages {
        if std::mem::take(&mut self.newcomer) || self.is_new {
            return self.take_all();
        }
        self.pages(vec![0])
    }

    /// Takes all pages, the first one last: a bitmap counts only with its header.
    fn take_all(&mut self) -> Pages {
        self.changed.fill(false);
        let pages = (1..self.changed.len()).chain([0]).collect();
        self.pages(pages)
    }

    fn pages(&self, pages: Vec<usize>) -> Pages {
        let set = pages.iter().flat_map(|page| self.set_in(*page)).collect();
        Pages { pages, set }
    }

    /// Notes that these pages are on all members that are written.
    pub(crate) fn stored(&mut self, pages: &Pages) {
        pages.set.iter().for_each(|index| self.set_on_members(*index, true));
        self.is_new &= pages.pages.len() < self.changed.len();
    }

    /// Notes that some of these pages are not on a member. The member may be written again later.
    pub(crate) fn not_stored(&mut self, pages: &Pages) {
        pages.pages.iter().for_each(|page| self.changed[*page] = true);
        self.newcomer = true;
    }

    /// Returns the first chunk whose bit is on `page`.
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

    /// Returns the set chunks of `page`.
    pub(crate) fn set_in(&self, page: usize) -> Vec<usize> {
        let on_page = |chunk: &usize| self.bitmap.page_of(*chunk as u64) as usize == page;
        // Chunks are in order, so those of a page are neighbours.
        let first = self.first_of(page);
        let chunks = (first..self.chunks.len()).take_while(on_page);
        chunks.filter(|index| self.bitmap.is_set(*index as u64)).collect()
    }

    /// Clears the bits of chunks that were quiet since the last sweep and are not needed. Returns true if any
    /// was cleared. Only for an array that has all its copies, while no other shard writes.
    pub(crate) fn sweep(&mut self) -> bool {
        let mut any = false;
        if self.is_new {
            return any;
        }
        for index in 0..self.chunks.len() {
            let was_touched = self.shared.as_ref().is_some_and(|shared| shared.was_touched(index));
            let chunk = &mut self.chunks[index];
            chunk.quiet &= !was_touched;
            if chunk.writes > 0 || chunk.needed || !self.bitmap.is_set(index as u64) {
                continue;
            }
            if chunk.quiet {
                self.set_on_members(index, false);
                self.bitmap.clear(index as u64);
                self.changed[self.bitmap.page_of(index as u64) as usize] = true;
                any = true;
            }
            self.chunks[index].quiet = true;
        }
        // With the header: a returning member is compared with its `events_cleared`.
        self.changed[0] |= any && !Canary::EventsClearedAfterBits.is_planted();
        any
    }

    /// Returns true if a sweep may clear a bit.
    pub(crate) fn has_set(&self) -> bool {
        self.chunks.iter().any(|chunk| chunk.on_members && !chunk.needed)
    }

    /// Marks every set chunk as needed: a member was lost, perhaps with writes in its cache, and may lack these
    /// chunks when it comes back.
    pub(crate) fn need_all_set(&mut self) {
        for (index, chunk) in self.chunks.iter_mut().enumerate() {
            chunk.needed |= self.bitmap.is_set(index as u64);
        }
    }

    /// Notes that copies agree everywhere again.
    pub(crate) fn need_nothing(&mut self) {
        self.chunks.iter_mut().for_each(|chunk| chunk.needed = false);
    }

    /// Returns true if copies may differ somewhere in `span`, apart from writes in flight.
    pub(crate) fn is_needed(&self, span: SyncSpan) -> bool {
        self.chunks[self.range(span)].iter().any(|chunk| chunk.needed)
    }

    /// Returns the number of bytes from the start of `span` on that must all be synchronised (at most `most`),
    /// or that need not be; and true in the first case.
    ///
    /// A chunk that is being written counts as needed: the write may miss a member that was added meanwhile.
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

    /// Returns the number of chunks that must be synchronised.
    pub(crate) fn needed(&self) -> usize {
        self.chunks.iter().filter(|chunk| chunk.needed).count()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use braid_md::bitmap::BitmapHeader;

    use super::*;

    /// Returns a bitmap of two pages: the first has the bits of 30,720 chunks.
    pub(in crate::redundant) fn two_pages() -> Bitmap {
        let header = BitmapHeader {
            version: 4,
            uuid: braid_md::Uuid::default(),
            events: 1,
            events_cleared: 1,
            sync_size: 40_000 * 4096,
            stale: false,
            write_error: false,
            host_endian: false,
            chunk_size: 4096,
            daemon_sleep: 5,
            write_behind: 0,
            reserved: 0,
            nodes: 0,
            cluster_name: [0; 64],
            unknown: Default::default(),
        };
        Bitmap::new(header, 16 << 10).expect("40,000 bits have room in 16 KiB")
    }

    fn on_second_page() -> SyncSpan {
        SyncSpan::new(SyncByte::new(35_000 * 4096), 4096)
    }

    /// `events_cleared` is in the first page. If a bit of another page were cleared before, a member that left
    /// earlier would be taken back by a bitmap that lacks the member's missing writes.
    #[test]
    fn a_sweep_stores_the_header_before_it_clears_bits_of_other_pages() {
        let start = StartingBitmap { bitmap: two_pages(), is_on_members: true };
        let mut intent = Intent::new(start);
        assert!(!intent.begin(on_second_page()));
        let pages = intent.take_changed();
        assert_eq!(pages.pages, [1]);
        intent.stored(&pages);
        intent.end(on_second_page(), true);
        assert!(!intent.sweep() && intent.sweep(), "quiet twice");
        assert_eq!(intent.take_changed().pages, [0, 1]);
    }

    /// A sweep flushes first. Data written during its flush may still be in a cache when it clears bits.
    #[test]
    fn what_is_written_between_two_sweeps_wakes_its_chunk() {
        let span = SyncSpan::new(SyncByte::START, 4096);
        let one_write: fn(&mut Intent, SyncSpan) = |intent, span| {
            assert!(intent.begin(span));
            intent.end(span, true);
        };
        let at_once: fn(&mut Intent, SyncSpan) = |intent, span| intent.touch(span, true);
        for write in [one_write, at_once] {
            let start = StartingBitmap { bitmap: two_pages(), is_on_members: true };
            let mut intent = Intent::new(start);
            assert!(!intent.begin(span));
            let pages = intent.take_changed();
            intent.stored(&pages);
            intent.end(span, true);
            assert!(!intent.sweep(), "it was written since the last one");
            write(&mut intent, span);
            assert!(!intent.sweep() && intent.is_on_members(span), "it was written again");
            assert!(intent.sweep() && !intent.is_on_members(span), "quiet twice");
        }
    }

    /// If the members' bitmap is not valid, the bits are set in memory only.
    #[test]
    fn a_bitmap_that_the_members_lack_is_stored_whole_and_its_header_last() {
        let mut bitmap = two_pages();
        bitmap.set_all();
        let start = StartingBitmap { bitmap, is_on_members: false };
        let mut intent = Intent::new(start.clone());
        assert!(!intent.begin(on_second_page()), "the bit is on no member");
        assert_eq!(intent.take_changed().pages, [1, 0], "before data");

        let mut intent = Intent::new(start);
        let pages = intent.take_publication();
        assert_eq!(pages.pages, [1, 0], "before superblocks");
        intent.not_stored(&pages);
        assert!(!intent.is_on_members(on_second_page()));
        let pages = intent.take_publication();
        assert_eq!(pages.pages, [1, 0], "again");
        intent.stored(&pages);
        assert!(intent.is_on_members(on_second_page()));
        assert_eq!(intent.take_publication().pages, [0]);
        assert!(intent.take_changed().pages.is_empty());
    }
}
