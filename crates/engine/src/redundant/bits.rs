//! Storing the pages of the write-intent bitmap on the members.
//!
//! ```text
//!   write ──▶ bit not on the members? ──▶ its page, durable ──▶ data
//!   sweep ──▶ flush ──▶ bits of chunks that were quiet twice are cleared, lazily
//! ```
//!
//! Invariants
//! * Data is written only after the bit of its chunk is on the members ([`Intent`] says which are).
//! * A bit is cleared only after a flush that began after the last write of its chunk completed. A flush that
//!   fails here takes its member out, as any other does.

use std::rc::Rc;

use braid_block::Errno;

use super::core::{Core, Failures};
#[cfg(doc)]
use super::intent::Intent;
use super::layout::SyncSpan;
use super::metadata::PAGE;
use super::roster::Member;
use crate::canary::Canary;

impl Core {
    /// Stores the bits of `span` on the members.
    pub(super) async fn store_bits(self: &Rc<Self>, span: SyncSpan) {
        while !self.lane.has_bits(span) && !self.gate.is_stopped() {
            let turn = self.publisher.turn().await;
            if !self.lane.has_bits(span) {
                self.store_changed_pages().await;
            }
            drop(turn);
        }
    }

    /// Clears the bits that are not needed, after a flush of the data that they stood for.
    ///
    /// # Errors
    /// The array is stopped.
    pub(super) async fn sweep_bits(self: &Rc<Self>) -> Result<(), Errno> {
        {
            // A shard that finds a bit on the members writes there.
            let _others = self.lane.ranges().keep_others_out().await;
            let _turn = self.publisher.turn().await;
            if !Canary::BitsClearedBeforeFlush.is_planted() {
                let _flushed = self.flush().await?;
            }
            let events = self.publisher.events();
            if self.lane.sweep(events) {
                self.store_changed_pages().await;
            }
        }
        // The superblocks also say that a member which failed the flush is out.
        let _published = self.fence().await?;
        Ok(())
    }

    async fn store_changed_pages(self: &Rc<Self>) {
        let Some(pages) = self.lane.take_changed() else { return };
        let failed = self.store_pages(&pages.pages).await;
        self.fail_or_stop(failed);
        if self.gate.is_stopped() {
            return;
        }
        self.lane.stored(&pages, true);
    }

    /// Writes pages of the bitmap to every written member. Returns the members that failed.
    pub(super) async fn store_pages(self: &Rc<Self>, pages: &[usize]) -> Failures {
        let mut failed = Failures::new();
        for page in pages {
            let Some(bytes) = self.lane.page(*page) else { return failed };
            let area = |member: Rc<Member>| {
                let area = self.bitmap_area(&member)?;
                Some((member, area + (*page * PAGE) as u64, bytes.clone()))
            };
            let areas = self.roster.written().into_iter().filter_map(area).collect();
            failed.extend(self.store_metadata("bitmap", areas).await);
        }
        failed
    }

    /// Returns the offset of the bitmap on `member` in bytes: the distance from the superblock is the same on
    /// all.
    fn bitmap_area(&self, member: &Member) -> Option<u64> {
        let offset = self.publisher.array.borrow().as_ref()?.bitmap_offset?;
        member.superblock.borrow().as_ref()?.super_offset.checked_add_signed(offset)
    }
}
