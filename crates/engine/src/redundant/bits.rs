//! The write-intent bitmap's pages, to the members.
//!
//! ```text
//!   write ──▶ bit not on the members? ──▶ its page, durable ──▶ data
//!   sweep ──▶ flush ──▶ bits of chunks that were quiet twice are cleared, lazily
//! ```
//!
//! Invariants
//! * No data is written before the bit of its chunk is on the members ([`Intent`] says which are).
//! * A bit is cleared only after a flush that began after the last write of its chunk had ended;
//!   a flush that fails there fails its member, as any other does.

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
    /// Has the bits of `span` on the members.
    pub(super) async fn store_bits(self: &Rc<Self>, span: SyncSpan) {
        while !self.lane.has_bits(span) && !self.gate.is_stopped() {
            let turn = self.publisher.turn().await;
            if !self.lane.has_bits(span) {
                self.store_changed_pages().await;
            }
            drop(turn);
        }
    }

    /// Clears the bits that nobody needs, once the data that they stood for is durable.
    ///
    /// # Errors
    /// Nothing is written any more.
    pub(super) async fn sweep_bits(self: &Rc<Self>) -> Result<(), Errno> {
        {
            let _turn = self.publisher.turn().await;
            if !Canary::BitsClearedBeforeFlush.is_planted() {
                let _flushed = self.flush().await?;
            }
            let events = self.publisher.events();
            if self.lane.sweep(events) {
                self.store_changed_pages().await;
            }
        }
        // Who failed at the flush is out by the superblocks, too.
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

    /// Writes pages of the bitmap to every member that is written; answers those that failed.
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

    /// Where the bitmap lies on `member`, in bytes: as far from its superblock as on all others.
    fn bitmap_area(&self, member: &Member) -> Option<u64> {
        let offset = self.publisher.array.borrow().as_ref()?.bitmap_offset?;
        member.superblock.borrow().as_ref()?.super_offset.checked_add_signed(offset)
    }
}
