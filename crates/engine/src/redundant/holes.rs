//! Holes: parts that no member has ever stored, and that a resync need not read.
//!
//! ```text
//!            D0     D1     P             D0     D1     P
//!          |      |      |      |      | data |      |      |
//!            skipped: 0 = 0 + 0          read and compared: P may lack D0
//! ```
//!
//! A member that has a hole reads as zeroes there. If all members do, they agree, at every level:
//!
//! | level | the members agree because |
//! |---|---|
//! | raid1, raid10 | each copy is zeroes |
//! | raid4, raid5 | the XOR of zeroes is zero |
//! | raid6 | so is Q: any factor times zero is zero |
//!
//! That also holds if members are missing: what they had follows from zeroes.
//!
//! Invariants
//! * Holes are asked for under the lock of their rows, so that no write is under way that they do not show yet. An
//!   answer without the lock only says that it is worth asking.
//! * A hole counts if every written member has it, is in sync, and lists no bad blocks.
//!
//! Deliberately absent: scrubs, which read everything to find what is unreadable, and filling members, whose rows
//! may hold anything.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use braid_array::MemberSpan;

use super::core::Core;
use super::found::{BLOCK, Found};
use super::keeping::Inner;
use super::kind::JobKind;
use super::layout::{SyncByte, SyncSpan};
use super::roster::Member;
use super::sync::fitting;
use crate::canary::Canary;

/// Largest hole that is skipped at once, in bytes: it is locked, and is read without pauses if it is written meanwhile.
pub(super) const MOST: u64 = 256 << 20;

impl Inner {
    /// Returns the length of a hole at the start of `span`; 0 if there is none, or none that is known.
    pub(super) fn hole_at(&self, span: SyncSpan) -> u64 {
        const BLOCK_BYTES: u64 = BLOCK as u64;
        let first = |len: u64| SyncSpan::new(span.offset, len);
        // Where there is data, one question is enough.
        if span.len < BLOCK_BYTES || !self.is_hole(first(BLOCK_BYTES)) {
            return 0;
        }
        let mut len = span.len / BLOCK_BYTES * BLOCK_BYTES;
        while len > BLOCK_BYTES && !self.is_hole(first(len)) {
            len = (len / 8 / BLOCK_BYTES * BLOCK_BYTES).max(BLOCK_BYTES);
        }
        len
    }

    /// Returns true if no member has stored anything that belongs to `span`.
    fn is_hole(&self, span: SyncSpan) -> bool {
        let members = self.core.roster.written();
        let mut rows = self.keeping.rows(span).into_iter();
        rows.all(|rows| match Canary::HoleOfOneMember.is_planted() {
            true => members.iter().any(|member| has_hole(member, rows)),
            false => members.iter().all(|member| has_hole(member, rows)),
        })
    }

    /// Makes the members agree in `span`: without reading it if it is a hole.
    pub(super) async fn resync(self: &Rc<Self>, span: SyncSpan) -> Found {
        if self.skip(span).await {
            return Found::default();
        }
        // More than one piece only if the hole was written since it was found.
        let most = fitting(self.keeping.compared());
        let mut found = Found::default();
        let mut offset: SyncByte = span.offset;
        while offset < span.end() {
            let len = self.keeping.piece_to_compare(offset).len.min(span.end() - offset).min(most);
            let part = SyncSpan::new(offset, len);
            found.add(self.keeping.compare(self, part, JobKind::Resync).await, usize::MAX);
            offset += len;
        }
        found
    }

    /// Returns true if `span` is a hole, of which the pass is done.
    async fn skip(&self, span: SyncSpan) -> bool {
        if !self.is_hole(span) {
            return false;
        }
        let core: &Core = &self.core;
        give_way().await;
        let _locked = core.lane.ranges().lock(span).await;
        let is_hole = self.is_hole(span);
        if is_hole {
            core.agreement.was_compared(span);
        }
        is_hole
    }
}

/// Returns true if `member` reads as zeroes in `rows` by what it knows.
fn has_hole(member: &Member, rows: MemberSpan) -> bool {
    if !member.is_in_sync() || member.has_bad_blocks.get() {
        return false;
    }
    let extents = member.dev.extents(member.span_on_device(rows));
    let known: u64 = extents.iter().map(|extent| extent.len).sum();
    known == rows.len && extents.iter().all(|extent| extent.zero)
}

/// Lets other tasks run once: a pass over holes waits for nothing.
async fn give_way() {
    let mut has_given_way = false;
    poll_fn(|cx| {
        if has_given_way {
            return Poll::Ready(());
        }
        has_given_way = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
