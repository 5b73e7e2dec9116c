//! A way of keeping data so that it survives losses: copies or parity, siblings under one trait.
//!
//! ```text
//!   Redundant ──▶ Inner { core, keeping } ──▶ Copies   raid1, raid10
//!                                         └─▶ Parity   raid4, raid5, raid6, with its log
//! ```
//!
//! What is common to all is in [`Core`]; what is here is all that requests, passes and operators
//! need to know of where data lies. Another way of keeping data is another file.

use std::rc::Rc;

use braid_array::geometry::Raid1;
use braid_array::{ArraySpan, MemberByte, MemberSpan, Role};
use braid_block::{Errno, Extent, Io, Payload, Span};

use super::background::Later;
use super::core::Core;
use super::found::Found;
use super::kind::JobKind;
use super::layout::{SyncByte, SyncSpan};
use super::log::{Consistency, LogCost, RestartError};
use super::roster::Member;
use super::write::Finished;
use crate::Pending;

/// An array: its core, and how it keeps data.
pub(super) struct Inner {
    pub(super) core: Rc<Core>,
    pub(super) keeping: Box<dyn Keeping>,
}

impl Inner {
    /// Carries out a write in steps, which is seen through whoever waits for it.
    pub(super) fn write_in_steps(self: &Rc<Self>, io: Io) -> Pending {
        let inner = Rc::clone(self);
        self.core.write_in_steps(async move { inner.keeping.store(&inner, io).await })
    }
}

/// What a recovery could not give to the members that are filled.
pub(super) struct Lost {
    /// Where.
    pub(super) place: MemberSpan,
    /// The members in sync that could not be read there.
    pub(super) unreadable: Vec<Rc<Member>>,
}

/// Who came upon something that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finder {
    /// A client's request, or what makes one good: it counts against the member.
    Request,
    /// A pass that goes over all of the member to find such places: it says nothing of how fast
    /// they come.
    Pass,
}

/// A stripe cache, as it is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheStatus {
    /// Its size in bytes.
    pub total: usize,
    /// How many bytes of it are in use.
    pub used: usize,
}

/// How data is kept. `inner` is the array that `self` is a part of.
pub(super) trait Keeping {
    /// Starts a read.
    fn read(&self, inner: &Rc<Inner>, io: Io) -> Pending;

    /// Reads what could not be read in one go, piece by piece; `failed` is the number of the
    /// member that was asked first.
    fn read_carefully<'a>(
        &'a self,
        inner: &'a Rc<Inner>,
        span: ArraySpan,
        payload: Payload,
        failed: Option<u32>,
    ) -> Later<'a, (Result<(), Errno>, Payload)>;

    /// Starts a write, a discard or zeroes.
    fn write(&self, inner: &Rc<Inner>, io: Io) -> Pending;

    /// Carries out a write, a discard or zeroes, with all that belongs to it.
    fn store<'a>(&'a self, inner: &'a Rc<Inner>, io: Io) -> Later<'a, (Finished, Payload)>;

    /// Has `place` written again on `member`, which could not read it.
    fn heal<'a>(
        &'a self,
        inner: &'a Rc<Inner>,
        member: Rc<Member>,
        place: SyncSpan,
        finder: Finder,
    ) -> Later<'a, ()>;

    /// What lies at `offset` of the data of the member with `role`, as far as it lies in one piece;
    /// `None` if it holds nothing.
    fn piece_of_member(&self, role: Role, offset: MemberByte) -> Option<SyncSpan>;

    /// Whether comparing can tell that members agree: not where those that are missing leave
    /// nothing to compare with.
    fn may_agree(&self, core: &Core) -> bool;

    /// What a comparison takes in one piece from `offset` on.
    fn piece_to_compare(&self, offset: SyncByte) -> SyncSpan;

    /// How many buffers filling a member needs for each byte.
    fn read_to_fill(&self) -> usize;

    /// How many buffers a comparison needs for each byte that it goes over.
    fn compared(&self) -> usize;

    /// Gives `members`, which are being filled, `place`, which lies at `offset` of their data.
    /// Answers what nobody could give.
    fn fill<'a>(
        &'a self,
        inner: &'a Rc<Inner>,
        members: Vec<Rc<Member>>,
        place: SyncSpan,
        offset: MemberByte,
    ) -> Later<'a, Vec<Lost>>;

    /// Compares `place`; all but a check make it agree.
    fn compare<'a>(
        &'a self,
        inner: &'a Rc<Inner>,
        place: SyncSpan,
        kind: JobKind,
    ) -> Later<'a, Found>;

    /// What lies behind `span`, from its beginning.
    fn extents(&self, inner: &Inner, span: Span) -> Vec<Extent>;

    /// Makes good what a crash left, before the first request; answers what is to be noted.
    fn restart<'a>(
        &'a self,
        inner: &'a Rc<Inner>,
    ) -> Later<'a, Result<Option<String>, RestartError>>;

    /// Another shape of raid1. Answers false where data is kept in another way.
    fn reshape(&self, raid1: Raid1) -> bool;

    /// What no member has, and no other can make up for, by the members' bad-block logs.
    fn lost(&self, inner: &Inner) -> Vec<ArraySpan>;

    /// Whether no member has `place` of the data of `role`, and no other can make up for it, by the members' bad-block logs.
    fn is_lost(&self, core: &Core, role: Role, place: MemberSpan) -> bool;

    /// What protects stripes from a crash, where that is not the superblocks or the bitmap.
    fn log(&self) -> Option<(Consistency, LogCost)>;

    /// The stripe cache, if there is one.
    fn cache_bytes(&self) -> Option<CacheStatus>;
}
