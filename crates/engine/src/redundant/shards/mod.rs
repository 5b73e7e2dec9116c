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
//! [`Core::fence`](super::core::Core::fence) waits until every other shard has taken it. So no write, and no order to
//! remove a member, completes while another shard may start a read from a member that lacks the write.
//!
//! Invariants
//! * A view has only members that are in sync and list no bad blocks. It has none while copies may differ, and
//!   none while a pass runs, which watches how long requests take.
//! * A read that was started on a member counts only if the view at its end still has that member. Otherwise the
//!   member may hold other data by then, and the read is repeated at home.
//! * Another shard never waits for the home shard before it takes a view.
//!
//! Deliberately absent: writes, repairs and reconstruction on other shards, and the transport between shards.

mod reader;

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use braid_array::ByRole;

use super::core::Core;
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
struct Content {
    layout: Layout,
    /// By role; none while all reads need the home shard.
    seats: Option<ByRole<Option<Seat>>>,
    /// The serial numbers of the members that are there, in use or not.
    members: Vec<u32>,
    /// The serial number that was given last.
    newest: u32,
}

/// A member that reads may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seat {
    serial: u32,
    /// md's device number.
    number: u32,
    /// Start of the data in bytes.
    data_offset: u64,
    write_mostly: bool,
    is_slow: bool,
}

impl Seat {
    fn of(member: &Member) -> Seat {
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

type Send = Box<dyn Fn(ReaderId, Arc<View>)>;

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

    /// Sends `content` to all shards, unless it is the content of the latest view.
    fn show(&self, content: Content) {
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

    fn add(&self, send: Send) {
        let mut all = self.all.borrow_mut();
        if let Some(latest) = &*self.latest.borrow() {
            send(ReaderId(all.len()), Arc::clone(latest));
        }
        all.push(Link { send, seen: 0 });
    }

    fn has_seen(&self, reader: ReaderId, number: u64) {
        let link = &mut self.all.borrow_mut()[reader.0];
        link.seen = link.seen.max(number);
        self.changed.notify();
    }
}

impl super::Redundant {
    /// Adds a shard that reads from the members. `send` takes each view, the present one first, and sends it to the
    /// shard without waiting. The shard gives the view to [`Reader::take`], and then [`Redundant::has_seen`] is
    /// called here.
    ///
    /// [`Redundant::has_seen`]: super::Redundant::has_seen
    pub fn add_reader(&self, send: impl Fn(ReaderId, Arc<View>) + 'static) {
        let core = &self.inner.core;
        core.readers.add(Box::new(send));
        core.reopen();
    }

    /// Returns true if both are the same array.
    pub fn is_same(&self, other: &super::Redundant) -> bool {
        std::rc::Rc::ptr_eq(&self.inner, &other.inner)
    }

    /// Notes that the shard `reader` has taken the view `number`, or with `None` that it has ended.
    pub fn has_seen(&self, reader: ReaderId, number: Option<u64>) {
        let core = &self.inner.core;
        core.readers.has_seen(reader, number.unwrap_or(u64::MAX));
        core.reopen();
    }

    /// Returns the serial number of the member `label`, which no other member of the array ever has.
    pub fn serial(&self, label: &str) -> Option<u32> {
        let members = self.inner.core.roster.members();
        members.iter().find(|member| member.label == label).map(|member| member.serial())
    }

    /// Starts a request that another shard sent. `failed` is the device number of the member on which that shard
    /// failed to read it.
    pub fn start_at_home(&self, io: braid_block::Io, failed: Option<u32>) -> crate::Pending {
        use crate::Device;
        match failed {
            Some(_) if io.op == braid_block::Op::Read => {
                self.inner.retry(crate::device::addressed(io.span), io.payload, failed)
            }
            _ => self.start(io),
        }
    }
}

impl Core {
    /// Shows other shards which members reads may use, if that changed.
    pub(super) fn show(&self) {
        if !self.readers.all.borrow().is_empty() {
            self.readers.show(self.content());
        }
    }

    fn content(&self) -> Content {
        let layout = self.layout.borrow().clone();
        let may_differ = matches!(layout, Layout::Copies(_)) && !self.agreement.is_clean();
        let seat = |member: &Member| (!member.has_bad_blocks.get()).then(|| Seat::of(member));
        let seats = (!may_differ && !self.work.is_timing()).then(|| {
            let slots = self.roster.slots();
            slots.values().map(|slot| slot.readable().and_then(|member| seat(member))).collect()
        });
        let members = self.roster.members().iter().map(|member| member.serial()).collect();
        Content { layout, seats, members, newest: self.roster.newest() }
    }
}
