//! An array on a shard that it does not live on: requests of a healthy array go to the shard's own devices on the
//! members, all others to the home shard.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;

use braid_array::plan::{plan_span, plan_span_with};
use braid_array::{ArraySpan, ByRole, Fan, MemberByte, MemberSpan, Plan, Role};
use braid_block::{Completion, Flags, Io, Limits, Op, Payload, Span};
use braid_mem::Pool;

use super::leases::Tenant;
use super::{BranchId, Cause, Content, Home, Seat, View};
use crate::background::Background;
use crate::device::addressed;
use crate::pending::{Token, Watch, Watched};
use crate::redundant::balance::{Standing, choose};
use crate::redundant::fan::{gather, scatter};
use crate::redundant::layout::Layout;
use crate::redundant::ranges::Ranges;
use crate::{Dev, Device, Extents, Pending, join_all};

/// Memory for old data and parity of writes within the call, in bytes: that of the largest with two parities.
const PARITY_MEMORY: usize = 256 << 10;

/// An array on a shard that it does not live on. Cheap to clone; all clones are the same.
#[derive(Clone)]
pub struct Branch {
    inner: Rc<Inner>,
}

pub(super) struct Inner {
    pub(super) home: Box<dyn Home>,
    limits: Limits,
    /// The shard's devices on members, by serial number.
    devs: RefCell<BTreeMap<u32, Dev>>,
    pub(super) present: RefCell<Present>,
    /// The writes of this shard.
    pub(super) ranges: Rc<Ranges>,
    pub(super) background: Rc<Background>,
    /// Memory for old data and parity; none for copies.
    pub(super) pool: Option<Pool>,
}

/// The state of the latest view.
#[derive(Default)]
pub(super) struct Present {
    pub(super) content: Option<Content>,
    /// The number of the view.
    pub(super) number: u64,
    /// This shard, if it may write.
    pub(super) tenant: Option<Tenant>,
    /// By role; none while all reads go home.
    pub(super) sources: Option<Rc<Sources>>,
    /// True if every role has a source; and if each of them answers within the call.
    pub(super) is_whole: bool,
    pub(super) is_immediate: bool,
}

/// Members that the shard may use, by role.
pub(super) type Sources = ByRole<Option<Rc<Source>>>;

/// A member that the shard may use.
pub(super) struct Source {
    pub(super) dev: Dev,
    pub(super) seat: Cell<Seat>,
    reads: Cell<u32>,
    head: Cell<MemberByte>,
}

impl Source {
    fn standing(&self) -> Standing {
        let Seat { write_mostly, is_slow, .. } = self.seat.get();
        Standing { write_mostly, is_slow, reads: self.reads.get(), head: self.head.get() }
    }

    pub(super) fn on_device(&self, at: MemberByte) -> u64 {
        self.seat.get().data_offset + at.get()
    }

    pub(super) fn serial(&self) -> u32 {
        self.seat.get().serial
    }
}

impl Branch {
    /// Uses these devices, by serial number; until the first view everything goes to `home`.
    pub(in crate::redundant) fn of(
        limits: Limits,
        devs: BTreeMap<u32, Dev>,
        home: Box<dyn Home>,
        has_parity: bool,
    ) -> io::Result<Branch> {
        let inner = Inner {
            home,
            limits,
            devs: RefCell::new(devs),
            present: RefCell::default(),
            ranges: Rc::default(),
            background: Rc::default(),
            pool: if has_parity { Some(Pool::new(PARITY_MEMORY)?) } else { None },
        };
        Ok(Branch { inner: Rc::new(inner) })
    }

    /// Completes writes whose callers are gone, without end: to be polled as long as the shard serves.
    pub fn run(&self) -> impl Future<Output = ()> + use<> {
        let background = Rc::clone(&self.inner.background);
        async move { background.run().await }
    }

    /// Returns true if no write without a caller is left.
    pub fn is_idle(&self) -> bool {
        self.inner.background.is_idle()
    }

    /// Drops all work in flight, as the end of a process does. The branch must not be used any more.
    pub fn abandon(&self) {
        self.inner.background.abandon();
    }

    /// Takes a view, as the branch `id`: from now on no request is started on a member that it does not have, and members
    /// that are gone are closed.
    pub fn take(&self, id: BranchId, view: &View) {
        let content = view.content.clone();
        let is_there = |serial: &u32| *serial > content.newest || content.members.contains(serial);
        self.inner.devs.borrow_mut().retain(|serial, _| is_there(serial));
        let tenant = Tenant::of(id);
        if let (Some(tenant), Some(writes)) = (tenant, &content.writes)
            && self.inner.ranges.leases().is_none()
        {
            self.inner.ranges.share(&writes.leases, tenant);
        }
        let mut present = self.inner.present.borrow_mut();
        (present.content, present.number, present.tenant) = (Some(content), view.number, tenant);
        drop(present);
        self.inner.seat();
    }

    /// Adds the shard's device on the member with this serial number.
    pub fn open(&self, serial: u32, dev: Dev) {
        self.inner.devs.borrow_mut().insert(serial, dev);
        self.inner.seat();
    }
}

impl Device for Branch {
    fn limits(&self) -> Limits {
        self.inner.limits
    }

    #[inline]
    fn start(&self, io: Io) -> Pending {
        match io.op {
            Op::Read => self.inner.read(io),
            Op::Write => self.inner.write(io),
            _ => self.inner.home.start(io, Cause::NotHere),
        }
    }

    fn extents(&self, span: Span) -> Extents {
        self.inner.extents(addressed(span)).unwrap_or_else(|| Extents::data(span.len))
    }
}

impl Inner {
    /// Joins the view with the devices.
    fn seat(&self) {
        let mut present = self.present.borrow_mut();
        let devs = self.devs.borrow();
        let before: Vec<Rc<Source>> =
            present.sources.iter().flat_map(|all| all.values().flatten().cloned()).collect();
        let source = |seat: Seat| {
            if let Some(known) = before.iter().find(|one| one.seat.get().serial == seat.serial) {
                known.seat.set(seat);
                return Some(Rc::clone(known));
            }
            let dev = devs.get(&seat.serial)?.clone();
            let (seat, reads, head) = (Cell::new(seat), Cell::new(0), Cell::default());
            Some(Rc::new(Source { dev, seat, reads, head }))
        };
        let seats = present.content.as_ref().and_then(|content| content.seats.as_ref());
        present.sources =
            seats.map(|seats| Rc::new(seats.values().map(|seat| seat.and_then(source)).collect()));
        // Not asked for each write: its cost does not depend on the number of members.
        let have_all = |is_one: &dyn Fn(&Rc<Source>) -> bool| {
            present
                .sources
                .as_ref()
                .is_some_and(|all| all.values().all(|source| source.as_ref().is_some_and(is_one)))
        };
        let (is_whole, is_immediate) =
            (have_all(&|_| true), have_all(&|one| one.dev.limits().immediate));
        (present.is_whole, present.is_immediate) = (is_whole, is_immediate);
    }

    /// Returns true if the member with this serial number is not removed.
    pub(super) fn has(&self, serial: u32) -> bool {
        self.devs.borrow().contains_key(&serial)
    }

    /// Returns the source with this serial number, if reads may use it now.
    fn source(&self, serial: u32) -> Option<Rc<Source>> {
        let present = self.present.borrow();
        let mut all = present.sources.as_ref()?.values().flatten();
        all.find(|one| one.seat.get().serial == serial).cloned()
    }

    #[inline]
    fn read(self: &Rc<Self>, io: Io) -> Pending {
        let span = addressed(io.span);
        let present = self.present.borrow();
        let (Some(content), Some(sources)) = (&present.content, &present.sources) else {
            drop(present);
            return self.home.start(io, Cause::NotHere);
        };
        let plan = plan(&content.layout, sources, span);
        match plan {
            Some(Plan::Forward { role, offset }) => {
                let source = sources[role].as_ref().expect("planned because it is there");
                let at = Span::new(source.on_device(offset), span.len);
                match source.dev.start(Io { span: at, ..io }) {
                    pending @ Pending::Ready(Some(Completion { result: Ok(()), .. })) => pending,
                    pending => {
                        let source = Rc::clone(source);
                        drop(present);
                        self.follow(source, span, pending)
                    }
                }
            }
            Some(Plan::Fan(fan)) => self.read_fan(span, io.payload, fan, sources),
            None => {
                drop(present);
                self.home.start(io, Cause::NotHere)
            }
        }
    }

    fn follow(self: &Rc<Self>, source: Rc<Source>, span: ArraySpan, pending: Pending) -> Pending {
        let serial = source.serial();
        let token = Token { member: serial, offset: span.offset };
        match pending {
            Pending::Ready(Some(completion)) => self.again(token, completion),
            Pending::Ticket(ticket) => {
                source.reads.set(source.reads.get() + 1);
                Pending::Watched(Watched::new(ticket, Rc::clone(self) as Rc<dyn Watch>, token))
            }
            pending => {
                let this = Rc::clone(self);
                Pending::task(async move {
                    let completion = pending.await;
                    match completion.result.is_ok() && this.source(serial).is_some() {
                        true => completion,
                        false => this.again(token, completion).await,
                    }
                })
            }
        }
    }

    /// Has the home shard carry out a read that failed here, or does not count.
    #[cold]
    fn again(&self, token: Token, completion: Completion) -> Pending {
        let Completion { result, payload } = completion;
        let failed = result.err().and_then(|_| self.source(token.member));
        let unread = |source: Rc<Source>| Cause::Unread(source.seat.get().number);
        let cause = failed.map_or(Cause::NotHere, unread);
        self.home.start(whole(token.offset.get(), payload), cause)
    }

    fn read_fan(
        self: &Rc<Self>,
        span: ArraySpan,
        payload: Payload,
        fan: Fan,
        sources: &Sources,
    ) -> Pending {
        let mut started = Vec::with_capacity(fan.spans.len());
        let mut serials = Vec::with_capacity(fan.spans.len());
        for (one, payload) in fan.spans.iter().zip(scatter(&fan, payload)) {
            let source = sources[one.role].as_ref().expect("planned because it is there");
            started.push(source.dev.start(Io::read(source.on_device(one.span.offset), payload)));
            serials.push(source.serial());
        }
        let this = Rc::clone(self);
        Pending::task(async move {
            let mut completions = join_all(started).await;
            let is_read = completions.iter().all(|one| one.result.is_ok());
            let counts = is_read && serials.iter().all(|serial| this.source(*serial).is_some());
            let payload = gather(&fan, &mut completions);
            match counts {
                true => Completion { result: Ok(()), payload },
                false => this.home.start(whole(span.offset.get(), payload), Cause::NotHere).await,
            }
        })
    }

    fn extents(&self, span: ArraySpan) -> Option<Extents> {
        let present = self.present.borrow();
        let (content, sources) = (present.content.as_ref()?, present.sources.as_ref()?);
        let Layout::Copies(geometry) = &content.layout else { return None };
        let standing =
            |role: Role, _: MemberSpan| sources.get(role)?.as_deref().map(Source::standing);
        let copy = choose(&**geometry, span, true, standing)?;
        let run = geometry.locate(span.offset, copy);
        let source = sources[run.role].as_ref()?;
        let there = Span::new(source.on_device(run.offset), span.len.min(run.len));
        Some(source.dev.extents(there))
    }
}

/// Returns the plan of a read of `span`; `None` if a part of it is on no source.
#[inline]
fn plan(layout: &Layout, sources: &ByRole<Option<Rc<Source>>>, span: ArraySpan) -> Option<Plan> {
    match layout {
        Layout::Copies(geometry) => {
            let mut is_there = true;
            let plan = plan_span_with(sources.len(), span, |offset| {
                let rest = ArraySpan::between(offset, span.end());
                let standing = |role: Role, _| sources[role].as_deref().map(Source::standing);
                let copy = choose(&**geometry, rest, false, standing);
                is_there &= copy.is_some();
                let run = geometry.locate(offset, copy.unwrap_or(0));
                if let Some(source) = &sources[run.role] {
                    source.head.set(run.offset + run.len.min(rest.len));
                }
                run
            });
            is_there.then_some(plan)
        }
        Layout::Parity(geometry) => {
            let plan = plan_span(geometry, span);
            let is_there = match &plan {
                Plan::Forward { role, .. } => sources[*role].is_some(),
                Plan::Fan(fan) => fan.spans.iter().all(|one| sources[one.role].is_some()),
            };
            is_there.then_some(plan)
        }
    }
}

/// Returns a read of all of `payload`.
fn whole(offset: u64, payload: Payload) -> Io {
    Io { op: Op::Read, span: Span::new(offset, payload.len()), flags: Flags::NONE, payload }
}

impl Watch for Inner {
    #[inline]
    fn completed(self: Rc<Self>, token: Token, completion: Completion) -> Pending {
        let source = self.source(token.member);
        if let Some(source) = &source {
            source.reads.set(source.reads.get().saturating_sub(1));
        }
        match completion.result.is_ok() && source.is_some() {
            true => Pending::ready(completion),
            false => self.again(token, completion),
        }
    }

    fn abandoned(&self, token: Token) {
        if let Some(source) = self.source(token.member) {
            source.reads.set(source.reads.get().saturating_sub(1));
        }
    }
}
