//! Reads of a healthy array on other shards than the one that the array lives on.
//!
//! ```text
//!   home shard                                       another shard
//!   Core ── a member is out ──▶ Readers ──── View ──▶ Reader ──▶ its own devices on the members
//!     │ answers wait                        (n + 1)     │ writes, and reads that need care
//!     ▼                                                 ▼
//!   fence ◀────────── seen n + 1 ◀────────────────────  Home ──▶ the array
//! ```
//!
//! A [`View`] names the members that reads may use. The home shard sends a new one after each change, and
//! `Core::fence` waits until every other shard has taken it. So no write, and no order to
//! remove a member, completes while another shard may start a read from a member that lacks the write.
//!
//! Invariants
//! * A view has only members that are in sync and list no bad blocks. It has none while copies may differ, and
//!   none while a pass runs, which watches how long requests take.
//! * A read that was started on a member counts only if the view at its end still has that member. Otherwise the
//!   member may hold other data by then, and the read is repeated at home.
//! * Another shard never waits for the home shard before it takes a view.
//!
//! Deliberately absent: writes, repairs and reconstruction on other shards, and the transport between shards. The home
//! shard's part is `shown`.

mod reader;

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use braid_array::ByRole;

use super::layout::Layout;
use super::roster::Member;
use crate::canary::Canary;
use crate::signal::Signal;

pub use reader::{Home, Reader};

/// The members of an array that reads on other shards may use.
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
    /// The serial numbers of the members that are there, in use or not.
    pub(super) members: Vec<u32>,
    /// The serial number that was given last.
    pub(super) newest: u32,
}

/// A member that reads may use.
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
        shape(self) == shape(other) && self.seats == other.seats && self.members == other.members
    }
}

/// A shard that reads from the members of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReaderId(usize);

/// The shards that read from the members, as the home shard knows them.
#[derive(Default)]
pub(super) struct Readers {
    all: RefCell<Vec<Link>>,
    /// The latest view; views are numbered from 1 on.
    latest: RefCell<Option<Arc<View>>>,
    shown: Cell<u64>,
    changed: Signal,
}

pub(super) type Send = Box<dyn Fn(ReaderId, Arc<View>)>;

struct Link {
    send: Send,
    /// The number of the latest view that the shard has taken; `u64::MAX` for a shard that has ended.
    seen: u64,
}

impl Readers {
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

    /// Returns true if no shard reads from the members.
    pub(super) fn is_empty(&self) -> bool {
        self.all.borrow().is_empty()
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
            (link.send)(ReaderId(index), Arc::clone(&view));
        }
    }

    /// Adds a shard, to which `send` sends views.
    pub(super) fn add(&self, send: Send) {
        let mut all = self.all.borrow_mut();
        if let Some(latest) = &*self.latest.borrow() {
            send(ReaderId(all.len()), Arc::clone(latest));
        }
        all.push(Link { send, seen: 0 });
    }

    /// Notes that `reader` has taken the view `number`.
    pub(super) fn has_seen(&self, reader: ReaderId, number: u64) {
        let link = &mut self.all.borrow_mut()[reader.0];
        link.seen = link.seen.max(number);
        self.changed.notify();
    }
}
