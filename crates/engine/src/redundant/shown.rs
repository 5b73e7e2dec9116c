//! The home shard's part of requests on other shards: which members they may use, and the writes that failed there.
//!
//! Deliberately absent: the transport of views, which the caller has.

use std::io;
use std::rc::Rc;
use std::sync::Arc;

use braid_block::{Errno, Io};

use super::core::Core;
use super::keeping::Inner;
use super::layout::Layout;
use super::roster::Member;
use super::shards::{Branch, BranchId, Cause, Content, Home, Seat, View, Writes};
use super::{Redundant, Setup, limits_of};
use crate::device::addressed;
use crate::{Device, Pending};

impl Branch {
    /// Joins the shard's own devices on the members of `setup`, the setup by which the home shard made the array.
    /// Until the first view everything goes to `home`. [`Branch::run`] must be polled beside it.
    ///
    /// # Errors
    /// No memory for writes into parity.
    pub fn new(setup: Setup, home: Box<dyn Home>) -> io::Result<Branch> {
        let has_parity = matches!(setup.layout, Layout::Parity(_));
        let limits = limits_of(&setup);
        // The serial numbers that the roster gave them.
        let devs = (1..).zip(setup.members).map(|(serial, member)| (serial, member.dev));
        Branch::of(limits, devs.collect(), home, has_parity)
    }
}

impl Redundant {
    /// Adds a branch of the array on another shard. `send` takes each view, the present one first, and sends it to the
    /// shard without waiting. The shard gives the view to [`Branch::take`], and then [`Redundant::has_seen`] is
    /// called here.
    ///
    /// [`Redundant::has_seen`]: Redundant::has_seen
    pub fn add_branch(&self, send: impl Fn(BranchId, Arc<View>) + 'static) {
        let core = &self.inner.core;
        if let (leases, true) = core.branches.leases() {
            core.lane.share(leases);
        }
        core.branches.add(Box::new(send));
        core.reopen();
    }

    /// Returns true if both are the same array.
    pub fn is_same(&self, other: &Redundant) -> bool {
        Rc::ptr_eq(&self.inner, &other.inner)
    }

    /// Notes that the shard `branch` has taken the view `number`, or with `None` that it has ended.
    pub fn has_seen(&self, branch: BranchId, number: Option<u64>) {
        let core = &self.inner.core;
        core.branches.has_seen(branch, number.unwrap_or(u64::MAX));
        core.reopen();
    }

    /// Returns the serial number of the member `label`, which no other member of the array ever has.
    pub fn serial(&self, label: &str) -> Option<u32> {
        let members = self.inner.core.roster.members();
        members.iter().find(|member| member.label == label).map(|member| member.serial())
    }

    /// Notes that a write of another shard is over, which this one may wait for.
    pub fn other_left(&self) {
        self.inner.core.lane.ranges().other_left();
    }

    /// Starts a request that another shard sent because of `cause`.
    pub fn start_at_home(&self, io: Io, cause: Cause) -> Pending {
        match cause {
            Cause::NotHere => self.start(io),
            Cause::Unread(number) => self.inner.retry(addressed(io.span), io.payload, Some(number)),
            Cause::HalfWritten(failed) => self.inner.judge_write(io, failed),
        }
    }
}

impl Inner {
    /// Judges a write of another shard that failed on members with these serial numbers, and ends it as a write of this
    /// shard is ended.
    fn judge_write(self: &Rc<Self>, io: Io, failed: Vec<(u32, Errno)>) -> Pending {
        let inner = Rc::clone(self);
        self.core.write_in_steps(async move {
            let failed = inner.core.named_by(&failed);
            (inner.keeping.judge(&inner, addressed(io.span), failed).await, io.payload)
        })
    }
}

impl Core {
    /// Shows other shards which members reads may use, if that changed.
    pub(super) fn show(&self) {
        if !self.branches.is_empty() {
            self.branches.show(self.content());
        }
    }

    fn content(&self) -> Content {
        let layout = self.layout.borrow().clone();
        let may_differ = matches!(layout, Layout::Copies(_)) && !self.agreement.is_clean();
        // Reads of a member that may lack a write wait for it at home.
        let is_late = |member: &Member| member.write_mostly && self.lane.most_behind() > 0;
        let seat = |member: &Member| {
            (!member.has_bad_blocks.get() && !is_late(member)).then(|| Seat::of(member))
        };
        let seats = (!may_differ && !self.work.is_timing()).then(|| {
            let slots = self.roster.slots();
            slots.values().map(|slot| slot.readable().and_then(|member| seat(member))).collect()
        });
        let is_for_all = |member: &Rc<Member>| {
            !member.has_bad_blocks.get() && !is_late(member) && member.dev.limits().shared_flush
        };
        let may_write = seats.is_some()
            && self.agreement.is_clean()
            && self.follower.is_none()
            && !self.read_only
            && self.roster.slots().values().all(|slot| {
                slot.readable().is_some_and(is_for_all) && slot.replacement().is_none()
            });
        let writes = may_write.then(|| {
            let (leases, bits) = (self.branches.leases().0, self.lane.shared_bits());
            Writes { leases: Arc::clone(leases), bits }
        });
        let members = self.roster.members().iter().map(|member| member.serial()).collect();
        Content { layout, seats, writes, members, newest: self.roster.newest() }
    }

    /// Returns the members with these serial numbers that are still there, with their errors.
    fn named_by(&self, serials: &[(u32, Errno)]) -> Vec<(Rc<Member>, Errno)> {
        let members = self.roster.members();
        let named = serials.iter().filter_map(|(serial, errno)| {
            let member = members.iter().find(|member| member.serial() == *serial)?;
            Some((Rc::clone(member), *errno))
        });
        named.collect()
    }
}
