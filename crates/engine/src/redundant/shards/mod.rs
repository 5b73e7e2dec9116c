//! A healthy array on other shards than the one that it lives on: its home.
//!
//! ```text
//!   home shard                                       another shard
//!   Core ── a member is out ──▶ Branches ─── View ──▶ Branch ──▶ its own devices on the members
//!     │ answers wait                        (n + 1)     │ requests that need care
//!     ▼                                                 ▼
//!   fence ◀────────── seen n + 1 ◀────────────────────  Home ──▶ the array
//! ```
//!
//! A [`View`] names the members that requests may use. The home shard sends a new one after each change, and
//! `Core::fence` waits until every other shard has taken it. So no write, and no order to
//! remove a member, completes while another shard may start a read from a member that lacks the write.
//!
//! A view also says whether the shard may write; then [`Leases`] say when and where.
//!
//! | file | contents |
//! |---|---|
//! | `branch` | the array on another shard: its view, reads |
//! | `writer` | writes there |
//! | `leases` | which shard writes where |
//!
//! Invariants
//! * A view has only members that are in sync and list no bad blocks. It has none while copies may differ, and
//!   none while a pass runs, which watches how long requests take.
//! * A read that was started on a member counts only if the view at its end still has that member. Otherwise the
//!   member may hold other data by then, and the read is repeated at home.
//! * A write goes to all members of a view in which every role has one. If it fails on some, home judges it, while its
//!   stripes are still leased.
//! * Another shard never waits for the home shard before it takes a view.
//!
//! Deliberately absent: repairs and reconstruction on other shards, writes of arrays with a log, and the transport between
//! shards. The home shard's part is `shown`.

mod branch;
mod leases;
mod writer;

use std::cell::{Cell, OnceCell, RefCell};
use std::sync::Arc;

use braid_array::ByRole;
use braid_block::{Errno, Io};

use super::intent::SharedBits;
use super::layout::Layout;
use super::roster::Member;
use crate::Pending;
use crate::canary::Canary;
use crate::signal::Signal;

pub use branch::Branch;
pub(in crate::redundant) use leases::{Leases, Tenant};

/// The way to the shard that an array lives on.
pub trait Home {
    /// Starts a request there: [`Redundant::start_at_home`](crate::redundant::Redundant::start_at_home).
    fn start(&self, io: Io, cause: Cause) -> Pending;

    /// Tells that shard that a write here is over: [`Redundant::other_left`](crate::redundant::Redundant::other_left).
    fn left(&self);
}

/// The cause for which a request goes to the shard that the array lives on.
#[derive(Debug)]
pub enum Cause {
    /// It cannot be carried out elsewhere now. Nothing was written.
    NotHere,
    /// A read failed on the member with this device number.
    Unread(u32),
    /// A write failed on the members with these serial numbers, and all others have it.
    HalfWritten(Vec<(u32, Errno)>),
}

/// The members of an array that requests on other shards may use.
pub struct View {
    number: u64,
    content: Content,
}

/// The content of a view.
#[derive(Clone)]
pub(super) struct Content {
    pub(super) layout: Layout,
    /// By role; none while all reads need the home shard.
    pub(super) seats: Option<ByRole<Option<Seat>>>,
    /// None if writes go home.
    pub(super) writes: Option<Writes>,
    /// The serial numbers of the members that are there, in use or not.
    pub(super) members: Vec<u32>,
    /// The serial number that was given last.
    pub(super) newest: u32,
}

/// The memory by which shards agree on their writes.
#[derive(Clone)]
pub(super) struct Writes {
    pub(super) leases: Arc<Leases>,
    /// None without a bitmap.
    pub(super) bits: Option<Arc<SharedBits>>,
}

impl Writes {
    fn is(&self, other: &Writes) -> bool {
        let bits = |one: &Writes| one.bits.as_ref().map(Arc::as_ptr);
        Arc::ptr_eq(&self.leases, &other.leases) && bits(self) == bits(other)
    }
}

/// A member that requests may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seat {
    serial: u32,
    /// md's device number.
    number: u32,
    /// Start of the data in bytes.
    data_offset: u64,
    write_mostly: bool,
    is_slow: bool,
}

impl Seat {
    pub(super) fn of(member: &Member) -> Seat {
        Seat {
            serial: member.serial(),
            number: member.number,
            data_offset: member.data_offset,
            write_mostly: member.write_mostly,
            is_slow: member.is_slow.get(),
        }
    }
}

impl View {
    /// Returns the number of the view, by which a shard says that it has taken it.
    pub fn number(&self) -> u64 {
        self.number
    }
}

impl Content {
    fn is(&self, other: &Content) -> bool {
        let shape = |one: &Content| (one.layout.members(), one.layout.member_size(), one.newest);
        let writes = match (&self.writes, &other.writes) {
            (Some(one), Some(other)) => one.is(other),
            (one, other) => one.is_none() && other.is_none(),
        };
        let members = self.seats == other.seats && self.members == other.members;
        shape(self) == shape(other) && members && writes
    }
}

/// A shard with a branch of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BranchId(usize);

/// The shards with branches of the array, as the home shard knows them.
#[derive(Default)]
pub(super) struct Branches {
    all: RefCell<Vec<Link>>,
    leases: OnceCell<Arc<Leases>>,
    /// The latest view; views are numbered from 1 on.
    latest: RefCell<Option<Arc<View>>>,
    shown: Cell<u64>,
    changed: Signal,
}

pub(super) type Send = Box<dyn Fn(BranchId, Arc<View>)>;

struct Link {
    send: Send,
    /// The number of the latest view that the shard has taken; `u64::MAX` for a shard that has ended.
    seen: u64,
}

impl Branches {
    /// Returns the number of the latest view.
    #[inline]
    pub(super) fn shown(&self) -> u64 {
        self.shown.get()
    }

    /// Returns true if every shard has taken the latest view.
    #[inline]
    pub(super) fn have_seen(&self) -> bool {
        self.shown.get() == 0 || self.have_all_seen(self.shown.get())
    }

    fn have_all_seen(&self, number: u64) -> bool {
        Canary::ShardsNotWaitedFor.is_planted()
            || self.all.borrow().iter().all(|link| link.seen >= number)
    }

    /// Waits until every shard has taken the view `number`, or a later one.
    pub(super) async fn until_seen(&self, number: u64) {
        if !self.have_all_seen(number) {
            self.changed.until(|| self.have_all_seen(number)).await;
        }
    }

    /// Returns true if there is no branch.
    pub(super) fn is_empty(&self) -> bool {
        self.all.borrow().is_empty()
    }

    /// Returns the number of the latest view, if branches may write by it.
    pub(super) fn writing(&self) -> Option<u64> {
        let latest = self.latest.borrow();
        latest.as_ref().filter(|view| view.content.writes.is_some()).map(|view| view.number)
    }

    /// Sends `content` to all shards, unless it is the content of the latest view.
    pub(super) fn show(&self, content: Content) {
        if self.latest.borrow().as_ref().is_some_and(|latest| latest.content.is(&content)) {
            return;
        }
        self.shown.set(self.shown.get() + 1);
        let view = Arc::new(View { number: self.shown.get(), content });
        self.latest.replace(Some(Arc::clone(&view)));
        for (index, link) in self.all.borrow().iter().enumerate() {
            (link.send)(BranchId(index), Arc::clone(&view));
        }
    }

    /// Returns the leases, and makes them the first time: then with true.
    pub(super) fn leases(&self) -> (&Arc<Leases>, bool) {
        let is_new = self.leases.get().is_none();
        (self.leases.get_or_init(|| Arc::new(Leases::new())), is_new)
    }

    /// Adds a shard, to which `send` sends views.
    pub(super) fn add(&self, send: Send) {
        let mut all = self.all.borrow_mut();
        if let Some(latest) = &*self.latest.borrow() {
            send(BranchId(all.len()), Arc::clone(latest));
        }
        all.push(Link { send, seen: 0 });
    }

    /// Notes that `branch` has taken the view `number`.
    pub(super) fn has_seen(&self, branch: BranchId, number: u64) {
        let link = &mut self.all.borrow_mut()[branch.0];
        link.seen = link.seen.max(number);
        self.changed.notify();
    }
}
