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
//! That also holds if members are missing: what they had follows from zeroes. A member on another machine is asked for its
//! block status, once a span is locked of which all others say that it is a hole.
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
use braid_block::Extent;

use super::core::Core;
use super::found::{BLOCK, Found};
use super::keeping::Inner;
use super::kind::JobKind;
use super::layout::{SyncByte, SyncSpan};
use super::roster::Member;
use super::sync::fitting;
use crate::Extents;
use crate::canary::Canary;

/// Largest hole that is skipped at once, in bytes: it is locked, and is read without pauses if it is written meanwhile.
pub(super) const MOST: u64 = 256 << 20;

/// Bytes of the smallest part that is looked at again after what seemed to be a hole was none.
const LEAST: u64 = 4 << 20;

impl Inner {
    /// Returns the length of a hole at the start of `span`; 0 if there is none, or none that is known.
    pub(super) fn hole_at(&self, span: SyncSpan) -> u64 {
        const BLOCK_BYTES: u64 = BLOCK as u64;
        let first = |len: u64| SyncSpan::new(span.offset, len);
        // Where there is data, one question is enough.
        if span.len < BLOCK_BYTES || !self.may_be_hole(first(BLOCK_BYTES)) {
            return 0;
        }
        let mut len = span.len / BLOCK_BYTES * BLOCK_BYTES;
        while len > BLOCK_BYTES && !self.may_be_hole(first(len)) {
            len = (len / 8 / BLOCK_BYTES * BLOCK_BYTES).max(BLOCK_BYTES);
        }
        len
    }

    /// Returns true if no member is known in the call to have stored anything that belongs to `span`. A member on another
    /// machine does not know, and is asked in [`Inner::is_hole`].
    fn may_be_hole(&self, span: SyncSpan) -> bool {
        let members = self.core.roster.written();
        let known = |member: &Rc<Member>, rows| {
            asked(member, rows)
                .is_some_and(|answer| answer.at_once().is_none_or(|it| is_zero(&it, rows)))
        };
        let mut rows = self.keeping.rows(span).into_iter();
        rows.all(|rows| match Canary::HoleOfOneMember.is_planted() {
            true => members.iter().any(|member| known(member, rows)),
            false => members.iter().all(|member| known(member, rows)),
        })
    }

    /// Returns true if no member has stored anything that belongs to `span`, which is locked.
    async fn is_hole(&self, span: SyncSpan) -> bool {
        let members = self.core.roster.written();
        for rows in self.keeping.rows(span) {
            let mut holes = 0;
            for member in &members {
                let Some(answer) = asked(member, rows) else { continue };
                holes += usize::from(is_zero(&answer.await, rows));
            }
            let needed = if Canary::HoleOfOneMember.is_planted() { 1 } else { members.len() };
            if holes < needed {
                return false;
            }
        }
        // Members may have come, failed or been found bad while one of them was asked.
        let now = self.core.roster.written();
        now.len() == members.len()
            && now.iter().zip(&members).all(|(now, then)| Rc::ptr_eq(now, then) && is_sound(now))
    }

    /// Makes the members agree in `span`: without reading it if it is a hole.
    pub(super) async fn resync(self: &Rc<Self>, span: SyncSpan) -> Found {
        let mut found = Found::default();
        let mut parts = vec![span];
        while let Some(part) = parts.pop() {
            if self.skip(part).await {
                continue;
            }
            // It seemed to be a hole, until it was written or a member on another machine was asked: a part may be one.
            if part.len > LEAST {
                let len = (part.len / 8).next_multiple_of(BLOCK as u64);
                let starts =
                    (0..8).rev().map(|index| index * len).filter(|start| *start < part.len);
                let cut = |start| SyncSpan::new(part.offset + start, len.min(part.len - start));
                parts.extend(starts.map(cut));
                continue;
            }
            found.add(self.read_and_compare(part).await, usize::MAX);
        }
        found
    }

    async fn read_and_compare(self: &Rc<Self>, span: SyncSpan) -> Found {
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
        if !self.may_be_hole(span) {
            return false;
        }
        let core: &Core = &self.core;
        give_way().await;
        let _locked = core.lane.ranges().lock(span).await;
        let is_hole = self.is_hole(span).await;
        if is_hole {
            core.agreement.was_compared(span);
        }
        is_hole
    }
}

/// Returns true if what `member` says of holes counts.
fn is_sound(member: &Member) -> bool {
    member.is_in_sync() && !member.has_bad_blocks.get()
}

/// Returns the extents of `member` in `rows`; `None` if they do not count.
fn asked(member: &Member, rows: MemberSpan) -> Option<Extents> {
    is_sound(member).then(|| member.dev.extents(member.span_on_device(rows)))
}

/// Returns true if `extents` say that all of `rows` reads as zeroes.
fn is_zero(extents: &[Extent], rows: MemberSpan) -> bool {
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
