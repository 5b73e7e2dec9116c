//! Levels that keep every byte on several members: raid1 and raid10.
//!
//! | file | contents |
//! |---|---|
//! | `read` | reads of the copy that `balance` chooses; retries after a failure |
//! | `store` | writes to every copy |
//! | `late` | writes that some copies get after the answer |
//! | `window` | one window of a pass: filling a member, comparing copies |
//! | `ballot` | the valid one of several copies |

mod ballot;
mod late;
mod read;
mod store;
mod window;

pub(in crate::redundant) use read::join_neighbours;
pub(in crate::redundant) use store::each_place;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use braid_array::geometry::Raid1;
use braid_array::{ArrayByte, ArraySpan, MemberByte, MemberSpan, Mirrored, Role};
use braid_block::{Errno, Io, Payload, Span};

use super::core::Core;
use super::found::Found;
use super::keeping::{CacheStatus, Finder, Inner, Keeping, Lost};
use super::kind::JobKind;
use super::layout::{SyncByte, SyncSpan};
use super::log::{Consistency, LogCost, RestartError};
use super::roster::Member;
use super::write::Finished;
use crate::background::Later;
use crate::device::addressed;
use crate::{Extents, Pending};

/// Converts `span` of the array to sync bytes: for copies they are the same.
#[inline]
pub(super) fn in_sync_bytes(span: ArraySpan) -> SyncSpan {
    SyncSpan::new(SyncByte::new(span.offset.get()), span.len)
}

/// Converts sync bytes to bytes of the array.
fn of_array(span: SyncSpan) -> ArraySpan {
    ArraySpan::new(ArrayByte::new(span.offset.get()), span.len)
}

/// Copies, placed by the array's geometry.
pub(super) struct Copies {
    geometry: RefCell<Arc<dyn Mirrored>>,
}

impl Copies {
    pub(super) fn new(geometry: Arc<dyn Mirrored>) -> Copies {
        Copies { geometry: RefCell::new(geometry) }
    }

    fn mirrored(&self) -> Arc<dyn Mirrored> {
        Arc::clone(&self.geometry.borrow())
    }
}

impl Keeping for Rc<Copies> {
    #[inline]
    fn read(&self, inner: &Rc<Inner>, io: Io) -> Pending {
        self.read_copy(inner, io)
    }

    fn read_carefully<'a>(
        &'a self,
        inner: &'a Rc<Inner>,
        span: ArraySpan,
        payload: Payload,
        failed: Option<u32>,
    ) -> Later<'a, (Result<(), Errno>, Payload)> {
        Box::pin(self.read_piece_by_piece(inner, span, payload, failed))
    }

    #[inline]
    fn write(&self, inner: &Rc<Inner>, io: Io) -> Pending {
        let core = &inner.core;
        if core.lane.is_open_and_immediate()
            && let Some(_brief) = core.lane.begin_briefly(in_sync_bytes(addressed(io.span)))
        {
            return self.store_now(inner, io);
        }
        inner.write_in_steps(io)
    }

    fn store<'a>(&'a self, inner: &'a Rc<Inner>, io: Io) -> Later<'a, (Finished, Payload)> {
        Box::pin(self.store_copies(inner, io))
    }

    fn judge<'a>(
        &'a self,
        inner: &'a Rc<Inner>,
        span: ArraySpan,
        failed: Vec<(Rc<Member>, Errno)>,
    ) -> Later<'a, Finished> {
        Box::pin(self.judge_copies(&inner.core, in_sync_bytes(span), failed))
    }

    fn heal<'a>(
        &'a self,
        inner: &'a Rc<Inner>,
        member: Rc<Member>,
        place: SyncSpan,
        finder: Finder,
    ) -> Later<'a, ()> {
        Box::pin(self.rewrite(inner, member, of_array(place), finder))
    }

    fn piece_of_member(&self, role: Role, offset: MemberByte) -> Option<SyncSpan> {
        let owner = self.geometry.borrow().owner(role, offset)?;
        Some(in_sync_bytes(ArraySpan::new(owner.offset, owner.len)))
    }

    fn may_agree(&self, _: &Core) -> bool {
        true // A single copy agrees with itself.
    }

    fn piece_to_compare(&self, offset: SyncByte) -> SyncSpan {
        let geometry = self.geometry.borrow();
        let left = SyncByte::new(geometry.size()) - offset;
        let run = geometry.locate(ArrayByte::new(offset.get()), 0);
        SyncSpan::new(offset, run.len.min(left))
    }

    /// From the first row of each copy to its last: what lies between belongs to the span, or is near it.
    fn rows(&self, span: SyncSpan) -> Vec<MemberSpan> {
        let geometry = self.geometry.borrow();
        let of_copy = |copy: usize| {
            let (mut first, mut end) = (MemberByte::new(u64::MAX), MemberByte::START);
            let mut rest = of_array(span);
            while rest.len > 0 {
                let run = geometry.locate(rest.offset, copy);
                let len = run.len.min(rest.len);
                first = first.min(run.offset);
                end = end.max(run.offset + len);
                rest = rest.split_at(len).1;
            }
            MemberSpan::new(first, end - first)
        };
        (0..geometry.copies()).map(of_copy).collect()
    }

    fn read_to_fill(&self) -> usize {
        1
    }

    fn compared(&self) -> usize {
        self.geometry.borrow().copies()
    }

    fn fill<'a>(
        &'a self,
        inner: &'a Rc<Inner>,
        members: Vec<Rc<Member>>,
        place: SyncSpan,
        offset: MemberByte,
    ) -> Later<'a, Vec<Lost>> {
        Box::pin(self.fill_copies(inner, members, of_array(place), offset))
    }

    fn compare<'a>(
        &'a self,
        inner: &'a Rc<Inner>,
        place: SyncSpan,
        kind: JobKind,
    ) -> Later<'a, Found> {
        Box::pin(self.compare_copies(inner, of_array(place), kind))
    }

    fn extents(&self, inner: &Inner, span: Span) -> Extents {
        self.extents_of_copy(&inner.core, addressed(span))
    }

    fn restart<'a>(&'a self, _: &'a Rc<Inner>) -> Later<'a, Result<Option<String>, RestartError>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    fn reshape(&self, raid1: Raid1) -> bool {
        self.geometry.replace(Arc::new(raid1));
        true
    }

    fn lost(&self, inner: &Inner) -> Vec<ArraySpan> {
        self.lost_of_copies(&inner.core)
    }

    fn is_lost(&self, core: &Core, role: Role, place: MemberSpan) -> bool {
        let Some(piece) = self.piece_of_member(role, place.offset) else { return false };
        let array = ArraySpan::new(of_array(piece).offset, place.len);
        let is_bad = |(member, offset): &(Rc<Member>, MemberByte)| {
            member.is_bad(MemberSpan::new(*offset, place.len))
        };
        self.holders(core, array).iter().all(is_bad)
    }

    fn log(&self) -> Option<(Consistency, LogCost)> {
        None
    }

    fn cache_bytes(&self) -> Option<CacheStatus> {
        None
    }
}
