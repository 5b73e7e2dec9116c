//! The trait of ways to keep data redundantly: copies or parity.
//!
//! ```text
//!   Redundant ──▶ Inner { core, keeping } ──▶ Copies   raid1, raid10
//!                                         └─▶ Parity   raid4, raid5, raid6, with its log
//! ```
//!
//! The state that all ways share is in [`Core`]. This trait has the operations of requests, passes and
//! operators that depend on the place of data. Another way of keeping data is another file.

use std::rc::Rc;

use braid_array::geometry::Raid1;
use braid_array::{ArraySpan, MemberByte, MemberSpan, Role};
use braid_block::{Errno, Io, Payload, Span};

use super::core::Core;
use super::found::Found;
use super::kind::JobKind;
use super::layout::{SyncByte, SyncSpan};
use super::log::{Consistency, LogCost, RestartError};
use super::roster::Member;
use super::write::Finished;
use crate::background::Later;
use crate::{Extents, Pending};

/// An array: its core, and its way of keeping data.
pub(super) struct Inner {
    pub(super) core: Rc<Core>,
    pub(super) keeping: Box<dyn Keeping>,
}

impl Inner {
    /// Carries out a write in steps. The write completes even if its caller stops waiting.
    pub(super) fn write_in_steps(self: &Rc<Self>, io: Io) -> Pending {
        let inner = Rc::clone(self);
        self.core.write_in_steps(async move { inner.keeping.store(&inner, io).await })
    }
}

/// A place that a recovery could not fill.
pub(super) struct Lost {
    /// The place in the data of the members that are filled.
    pub(super) place: MemberSpan,
    /// The members in sync that could not be read there.
    pub(super) unreadable: Vec<Rc<Member>>,
}

/// The kind of operation that found an unreadable place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finder {
    /// A client's request, or a repair for one: the error counts against the member.
    Request,
    /// A pass that searches the whole member for such places: its finds do not tell how fast errors come.
    Pass,
}

/// The present state of a stripe cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheStatus {
    /// Its size in bytes.
    pub total: usize,
    /// Bytes in use.
    pub used: usize,
}

/// A way of keeping data. `inner` is the array that `self` is a part of.
pub(super) trait Keeping {
    /// Starts a read.
    fn read(&self, inner: &Rc<Inner>, io: Io) -> Pending;

    /// Reads piece by piece after a failed read; `failed` is the number of the member that was asked first.
    fn read_carefully<'a>(
        &'a self,
        inner: &'a Rc<Inner>,
        span: ArraySpan,
        payload: Payload,
        failed: Option<u32>,
    ) -> Later<'a, (Result<(), Errno>, Payload)>;

    /// Starts a write, a discard or zeroes.
    fn write(&self, inner: &Rc<Inner>, io: Io) -> Pending;

    /// Carries out a write, a discard or zeroes, with all steps of a write.
    fn store<'a>(&'a self, inner: &'a Rc<Inner>, io: Io) -> Later<'a, (Finished, Payload)>;

    /// Ends a write of another shard to `span`, which `failed` on these members.
    fn judge<'a>(
        &'a self,
        inner: &'a Rc<Inner>,
        span: ArraySpan,
        failed: Vec<(Rc<Member>, Errno)>,
    ) -> Later<'a, Finished>;

    /// Rewrites `place` on `member`, which could not read it.
    fn heal<'a>(
        &'a self,
        inner: &'a Rc<Inner>,
        member: Rc<Member>,
        place: SyncSpan,
        finder: Finder,
    ) -> Later<'a, ()>;

    /// Returns the data at `offset` of the data of the member with `role`, as far as it lies in one piece;
    /// `None` if there is none.
    fn piece_of_member(&self, role: Role, offset: MemberByte) -> Option<SyncSpan>;

    /// Returns true if a comparison can make members agree: false if missing members leave nothing to compare
    /// with.
    fn may_agree(&self, core: &Core) -> bool;

    /// Returns the piece that one comparison covers from `offset` on.
    fn piece_to_compare(&self, offset: SyncByte) -> SyncSpan;

    /// Returns rows that have all copies of `span`, or all of its data and parity. Other data may lie there, too.
    fn rows(&self, span: SyncSpan) -> Vec<MemberSpan>;

    /// Returns the number of buffers for each byte that is filled.
    fn read_to_fill(&self) -> usize;

    /// Returns the number of buffers for each byte that is compared.
    fn compared(&self) -> usize;

    /// Fills `place` on `members`, at `offset` of their data. Returns the parts that no member could provide.
    fn fill<'a>(
        &'a self,
        inner: &'a Rc<Inner>,
        members: Vec<Rc<Member>>,
        place: SyncSpan,
        offset: MemberByte,
    ) -> Later<'a, Vec<Lost>>;

    /// Compares `place`. All kinds but a check also make it agree.
    fn compare<'a>(
        &'a self,
        inner: &'a Rc<Inner>,
        place: SyncSpan,
        kind: JobKind,
    ) -> Later<'a, Found>;

    /// Returns the extents of `span`, from its beginning.
    fn extents(&self, inner: &Inner, span: Span) -> Extents;

    /// Repairs the effects of a crash, before the first request. Returns a line for the notes.
    fn restart<'a>(
        &'a self,
        inner: &'a Rc<Inner>,
    ) -> Later<'a, Result<Option<String>, RestartError>>;

    /// Switches to another number of members of raid1. Returns false if data is kept in another way.
    fn reshape(&self, raid1: Raid1) -> bool;

    /// Returns the data that no member has and none can reconstruct, by the bad-block logs.
    fn lost(&self, inner: &Inner) -> Vec<ArraySpan>;

    /// Returns true if `place` of the data of `role` is on no member and cannot be reconstructed, by the
    /// bad-block logs.
    fn is_lost(&self, core: &Core, role: Role, place: MemberSpan) -> bool;

    /// Returns the log that protects stripes from a crash, and its cost. `None` without a log.
    fn log(&self) -> Option<(Consistency, LogCost)>;

    /// Returns the state of the stripe cache, if there is one.
    fn cache_bytes(&self) -> Option<CacheStatus>;
}
