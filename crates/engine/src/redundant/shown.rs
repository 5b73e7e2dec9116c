//! The home shard's part of reads on other shards: which members they may use.
//!
//! Deliberately absent: the transport of views, which the caller has.

use std::rc::Rc;
use std::sync::Arc;

use braid_block::{Io, Limits, Op};

use super::core::Core;
use super::layout::Layout;
use super::roster::Member;
use super::shards::{Content, Home, Reader, ReaderId, Seat, View};
use super::{Redundant, Setup, limits_of};
use crate::device::addressed;
use crate::{Device, Pending};

impl Reader {
    /// Joins the shard's own devices on the members of `setup`, the setup by which the home shard made the array.
    /// Until the first view everything goes to `home`.
    pub fn new(setup: Setup, home: Box<dyn Home>) -> Reader {
        let limits = Limits { immediate: false, ..limits_of(&setup) };
        // The serial numbers that the roster gave them.
        let devs = (1..).zip(setup.members).map(|(serial, member)| (serial, member.dev));
        Reader::of(limits, devs.collect(), home)
    }
}

impl Redundant {
    /// Adds a shard that reads from the members. `send` takes each view, the present one first, and sends it to the
    /// shard without waiting. The shard gives the view to [`Reader::take`], and then [`Redundant::has_seen`] is
    /// called here.
    ///
    /// [`Redundant::has_seen`]: Redundant::has_seen
    pub fn add_reader(&self, send: impl Fn(ReaderId, Arc<View>) + 'static) {
        let core = &self.inner.core;
        core.readers.add(Box::new(send));
        core.reopen();
    }

    /// Returns true if both are the same array.
    pub fn is_same(&self, other: &Redundant) -> bool {
        Rc::ptr_eq(&self.inner, &other.inner)
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
    pub fn start_at_home(&self, io: Io, failed: Option<u32>) -> Pending {
        match failed {
            Some(_) if io.op == Op::Read => {
                self.inner.retry(addressed(io.span), io.payload, failed)
            }
            _ => self.start(io),
        }
    }
}

impl Core {
    /// Shows other shards which members reads may use, if that changed.
    pub(super) fn show(&self) {
        if !self.readers.is_empty() {
            self.readers.show(self.content());
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
        let members = self.roster.members().iter().map(|member| member.serial()).collect();
        Content { layout, seats, members, newest: self.roster.newest() }
    }
}
