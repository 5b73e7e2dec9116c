//! Arrays that survive the loss of members: raid1 and raid10 by copies, raid4, raid5 and raid6
//! by parity. What both have in common is here; the two ways of keeping data are
//! [`copies`] and [`parity`].
//!
//! ```text
//!   read  ──▶ where the data is ── failed? ──▶ from the others, and it is rewritten
//!   write ──▶ superblocks say "active" ──▶ bits on the members ──▶ the members ──▶ answer
//!                                                                     │ one failed
//!                         superblocks of the others say so, before ◀──┘ the answer
//! ```
//!
//! | file | what |
//! |---|---|
//! | `copies/` | every byte on several members: which to read, writing all, comparing them |
//! | `parity/` | data and parity in stripes: planning, reconstruction, the logs that close the write hole |
//! | `data` | which of the two, and what passes and the bitmap need to know of it |
//! | `read` | one member first, with care when that fails |
//! | `write` | what every change of data stands in, in the order that a crash at any moment asks for |
//! | `publish` | superblocks and the bitmap's pages to the members |
//! | `sync`, `pass` | what is to be done next, and doing it: resync, recovery, scrub |
//! | `work`, `throttle` | memory, progress and speed of passes |
//! | `keep` | after the writes: marks clean, clears bits; the array's own tasks |
//! | `control` | what an operator does: fail, remove, add, replace, scrub, grow; the status |
//! | `member`, `ranges`, `intent`, `background` | the parts these are made of |
//!
//! Places are counted in two ways: in bytes of the array, as clients do; and in *sync bytes*, in
//! which passes go over an array, its bitmap is divided and ranges are locked. For copies both
//! are the same; with parity, a sync byte is a row of the stripe: the byte at that offset of
//! every member's data ([`data`]).
//!
//! Invariants
//! * A write is answered when every member that counts as in sync has it; whatever member does
//!   not is faulty by the superblocks of the others first ([`Inner::fence`]).
//! * Data is written only while the superblocks say "active" and the bits of its chunks are set.
//! * A copy is made, or a stripe recomputed, under a lock that keeps writes out ([`ranges`]).
//! * What would make data unreadable is never given up: its errors are answered as errors.
//! * A request that nobody waits for any more is seen through ([`background`]).
//!
//! Deliberately absent: several shards. Such an array lives on one thread, which is why none
//! of this is locked.
//!
//! Source: Linux `drivers/md/{md.c,raid1.c,raid10.c,raid5.c,md-bitmap.c}` for what members expect.

mod background;
mod control;
mod copies;
mod data;
mod found;
mod grow;
mod intent;
mod keep;
mod member;
mod parity;
mod pass;
mod publish;
mod ranges;
mod read;
mod sync;
mod throttle;
mod work;
mod write;

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use braid_block::{Extent, Io, Limits, Op, Span};
use braid_md::bitmap::Bitmap;
use braid_md::{Resync, Superblock};
use braid_mem::Pool;

use crate::clock::Clock;
use crate::signal::Signal;
use crate::{Device, Pending};

use background::Background;
use data::Data;
use intent::Intent;
use member::{Member, Slot};
use publish::Publisher;
use ranges::Ranges;
use work::Work;

pub use control::{ControlError, JobKind, JobStatus, MemberStatus, Status};
pub use data::Layout;
pub use member::{MemberState, NewMember};
pub use parity::{Consistency, LogCost, LogSetup, RestartError, STRIPE_CACHE};
pub use throttle::Speed;

/// A future on the heap.
type Later<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// Memory for superblocks and the bitmap's pages, and for passes; of the array's own, so that
/// requests which wait for it cannot have taken it.
const METADATA_POOL: usize = 1 << 20;

/// What an array is made of.
pub struct Setup {
    /// Where data, and what protects it, lie.
    pub layout: Layout,
    /// The members that are there, also spares.
    pub members: Vec<NewMember>,
    /// The superblock of the freshest member, of which the array's part is used; none for an
    /// array without superblocks.
    pub array: Option<Superblock>,
    /// The write-intent bitmap: set where copies may differ.
    pub bitmap: Option<Bitmap>,
    /// Whether the copies agree.
    pub resync: Resync,
    /// What protects stripes from being half written; only with parity.
    pub log: Option<LogSetup>,
    /// Memory for stripes under way, in bytes; only with parity. At least what two of the largest
    /// need.
    pub stripe_cache: usize,
    /// Nothing is to be written, not even superblocks.
    pub read_only: bool,
    /// Time.
    pub clock: Rc<dyn Clock>,
    /// Limits of passes over the array.
    pub speed: Speed,
}

/// An array that survives the loss of members. Cheap to clone, all clones are the same array.
#[derive(Clone)]
pub struct Redundant {
    inner: Rc<Inner>,
}

struct Inner {
    data: Data,
    slots: RefCell<Vec<Slot>>,
    /// All that are there, also spares and faulty ones.
    members: RefCell<Vec<Rc<Member>>>,
    limits: Limits,
    read_only: bool,
    clock: Rc<dyn Clock>,
    metadata_pool: Pool,
    ranges: Rc<Ranges>,
    background: Rc<Background>,
    intent: RefCell<Option<Intent>>,
    publisher: Publisher,
    work: Work,

    /// Whether the copies agree, apart from writes under way.
    resync: Cell<Resync>,
    /// From where on copies came to differ since the pass that makes them equal began.
    doubt: Cell<Option<u64>>,
    /// The superblocks say that writes may be under way.
    active: Cell<bool>,
    /// They say so from now on.
    activated: Signal,
    /// Writes that were let in, or are about to be.
    writers: Cell<u32>,
    /// Something was written since this was last reset.
    touched: Cell<bool>,
    /// A role has no member that is in sync.
    degraded: Cell<bool>,
    /// Every member that is written answers in the call that asks.
    immediate: Cell<bool>,
    /// A write may go straight to the members if no lock and no bit is in its way.
    open: Cell<bool>,
    /// The state could not be recorded anywhere: nothing is written any more.
    broken: Cell<bool>,
    /// What happened, for people: oldest first.
    log: RefCell<Vec<(Duration, String)>>,
}

impl Redundant {
    /// Puts the members under the geometry.
    ///
    /// The array answers requests at once; [`Redundant::run`] must be polled beside them.
    ///
    /// # Errors
    /// No memory for metadata and passes.
    ///
    /// # Panics
    /// If the setup contradicts itself: a role out of range or taken twice, a bitmap that does
    /// not cover the array.
    pub fn new(setup: Setup) -> std::io::Result<Redundant> {
        let size = setup.layout.sync_size();
        if let Some(covered) = setup.bitmap.as_ref().map(|bitmap| bitmap.header.sync_size) {
            assert!(covered >= size, "a bitmap of {covered} bytes for an array of {size}");
        }
        let limits = limits_of(&setup);
        let count = setup.layout.members();
        let mut slots = vec![Slot::default(); count];
        let members: Vec<Rc<Member>> =
            setup.members.into_iter().map(|new| Rc::new(Member::new(new))).collect();
        for member in members.iter().filter(|member| member.is_written()) {
            let role = member.role.get().expect("a member that is written has a role");
            let slot = &mut slots[usize::from(role)];
            let place = match member.replacement.get() {
                true => &mut slot.replacement,
                false => &mut slot.primary,
            };
            assert!(place.replace(Rc::clone(member)).is_none(), "role {role} is taken twice");
        }
        let inner = Inner {
            data: Data::new(setup.layout, setup.stripe_cache, setup.log)?,
            slots: RefCell::new(slots),
            members: RefCell::new(members),
            limits,
            read_only: setup.read_only,
            clock: setup.clock,
            metadata_pool: Pool::new(METADATA_POOL)?,
            ranges: Rc::default(),
            background: Rc::default(),
            intent: RefCell::new(setup.bitmap.map(Intent::new)),
            publisher: Publisher::new(setup.array),
            work: Work::new(setup.speed)?,
            resync: Cell::new(setup.resync),
            doubt: Cell::new(None),
            active: Cell::new(false),
            activated: Signal::default(),
            writers: Cell::new(0),
            touched: Cell::new(false),
            degraded: Cell::new(false),
            immediate: Cell::new(false),
            open: Cell::new(false),
            broken: Cell::new(false),
            log: RefCell::default(),
        };
        inner.reconsider();
        if inner.degraded.get() {
            inner.publisher.be_twice();
        }
        Ok(Redundant { inner: Rc::new(inner) })
    }
}

fn limits_of(setup: &Setup) -> Limits {
    let members = setup.members.iter().map(|member| *member.dev.limits());
    let combined = Limits::combine(members);
    let stripe = u32::try_from(setup.layout.stripe()).unwrap_or(0);
    Limits {
        size: setup.layout.size(),
        optimal_io: if stripe == 0 { combined.optimal_io } else { stripe },
        read_only: setup.read_only,
        ..combined
    }
}

impl Device for Redundant {
    fn limits(&self) -> Limits {
        self.inner.limits
    }

    #[inline]
    fn start(&self, io: Io) -> Pending {
        match io.op {
            Op::Read => self.inner.start_read(io),
            Op::Flush => self.inner.start_flush(io),
            Op::Write | Op::Discard | Op::WriteZeroes => self.inner.start_write(io),
        }
    }

    fn extents(&self, span: Span) -> Vec<Extent> {
        match &self.inner.data {
            Data::Copies(_) => self.inner.extents_of_copy(span),
            Data::Parity(_) => vec![Extent::data(span.len)],
        }
    }
}

impl Inner {
    /// Takes note of a change of members: what follows from it for the paths of requests.
    fn reconsider(&self) {
        let slots = self.slots.borrow();
        self.degraded.set(slots.iter().any(|slot| slot.readable().is_none()));
        let immediate = |member: &Rc<Member>| member.dev.limits().immediate;
        self.immediate.set(slots.iter().all(|slot| slot.written().all(immediate)));
        drop(slots);
        self.reopen();
        self.work.tell();
    }

    /// What the superblocks are to say from now on; answers what they said. Whoever makes them
    /// say "clean" has them written.
    fn set_active(&self, active: bool) -> bool {
        let before = self.active.replace(active);
        self.reopen();
        before
    }

    /// Whether writes may go straight to the members.
    fn reopen(&self) {
        let open = self.active.get() && self.publisher.is_settled() && !self.broken.get();
        self.open.set(open && !self.work.is_timing());
    }

    /// Takes `member` out because of `why`. Answers false, and leaves it in, if the array could
    /// not be read without it.
    fn fail(&self, member: &Rc<Member>, why: &str) -> bool {
        if member.state.get() == MemberState::Faulty {
            return true;
        }
        if member.is_in_sync() && !self.can_do_without(&[member]) {
            return false;
        }
        self.take_out(member, why);
        true
    }

    /// Whether every byte is on a member in sync other than `members`.
    fn can_do_without(&self, members: &[&Rc<Member>]) -> bool {
        let slots = self.slots.borrow();
        let alive = |role: usize| {
            slots[role]
                .readable()
                .is_some_and(|one| !members.iter().any(|member| Rc::ptr_eq(one, member)))
        };
        self.data.layout().is_readable(&alive)
    }

    fn take_out(&self, member: &Rc<Member>, why: &str) {
        if !member.is_known() {
            return;
        }
        if member.is_in_sync()
            && let Some(intent) = &mut *self.intent.borrow_mut()
        {
            intent.need_all_set();
        }
        member.state.set(MemberState::Faulty);
        member.remark.replace(why.to_owned());
        if let Some(role) = member.role.get() {
            let slot = &mut self.slots.borrow_mut()[usize::from(role)];
            let is = |place: &Option<Rc<Member>>| {
                place.as_ref().is_some_and(|one| Rc::ptr_eq(one, member))
            };
            if is(&slot.replacement) {
                slot.replacement = None;
            } else if is(&slot.primary) {
                // What was to replace it goes on in its place.
                slot.primary = slot.replacement.take();
                if let Some(successor) = &slot.primary {
                    successor.replacement.set(false);
                }
            }
        }
        self.note(format!("{} is faulty: {why}", member.label));
        self.publisher.be_twice();
        self.publisher.require();
        self.reconsider();
    }

    /// `member` has its role now, or is to get it: writes go to it from now on, and it has to be
    /// given the bitmap before superblocks count on it.
    fn put_in(&self, member: &Rc<Member>, role: u16, replacement: bool) {
        let slot = &mut self.slots.borrow_mut()[usize::from(role)];
        let place = if replacement { &mut slot.replacement } else { &mut slot.primary };
        *place = Some(Rc::clone(member));
        if let Some(intent) = &mut *self.intent.borrow_mut() {
            intent.welcome();
        }
    }

    /// Members may not agree from sync byte `offset` on: until they are compared, the first copy
    /// is read, and parity is not believed. That is recorded: nothing the log says of what was
    /// written before is to be made good then.
    fn doubt(&self, offset: u64) {
        if self.data.has_partial() {
            self.members.borrow().iter().for_each(|member| member.has_log.set(false));
        }
        if self.data.log().is_some() {
            self.publisher.require();
        }
        self.forget_compared();
        self.doubt.set(Some(self.doubt.get().map_or(offset, |other| other.min(offset))));
        self.agree_up_to(match self.resync.get() {
            Resync::Clean => offset,
            Resync::From(from) => from,
        });
        self.work.tell();
    }

    /// Copies agree below `frontier`, but for where they came to differ meanwhile.
    fn agree_up_to(&self, frontier: u64) {
        let from = self.doubt.get().map_or(frontier, |doubt| doubt.min(frontier));
        self.resync.set(Resync::From(from));
    }

    fn note(&self, text: String) {
        const MOST: usize = 200;
        let mut log = self.log.borrow_mut();
        if log.len() == MOST {
            log.remove(0);
        }
        log.push((self.clock.unix_time(), text));
    }
}
