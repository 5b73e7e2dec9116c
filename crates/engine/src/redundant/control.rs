//! Orders of an operator to an array.
//!
//! Each order has a check of its own, which changes nothing: the order begins with it, and a plan of the order is
//! the check alone.

use std::rc::Rc;
use std::sync::Arc;

use braid_array::geometry::{Raid1, Run};
use braid_array::{ArrayByte, MemberByte, Role};
use braid_md::{Level, Superblock};

use super::Redundant;
use super::core::Core;
use super::keeping::Inner;
use super::kind::JobKind;
use super::layout::{Layout, SyncSpan};
use super::publish::Turn;
use super::roster::{Member, MemberState};
use super::scrub::ScrubOrder;
use super::throttle::Speed;

/// Reasons why an order is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ControlError {
    /// No member has that name.
    #[error("{label} is no member: there are {known}")]
    NoSuchMember {
        /// The name in the order.
        label: String,
        /// The members.
        known: String,
    },
    /// Without the member, data would be lost.
    #[error("{label} holds the only copy of some of the data: it is kept")]
    LastCopy {
        /// The member.
        label: String,
    },
    /// The member takes part.
    #[error("{label} is {state}: only a faulty member or a spare can be removed")]
    InUse {
        /// The member.
        label: String,
        /// The member's state.
        state: &'static str,
    },
    /// The device is a member already.
    #[error("{label} is a member already")]
    Twice {
        /// The device.
        label: String,
    },
    /// The device is too small.
    #[error("{label} has room for {has} bytes of data, {needed} are needed")]
    TooSmall {
        /// The device.
        label: String,
        /// Room for data in bytes.
        has: u64,
        /// Required room in bytes.
        needed: u64,
    },
    /// The member has a replacement already, or no data to replace.
    #[error("{label} cannot be replaced: {why}")]
    NoReplacement {
        /// The member.
        label: String,
        /// The reason.
        why: &'static str,
    },
    /// The volume is read-only.
    #[error("the volume is read-only")]
    ReadOnly,
    /// The array is stopped, so its members cannot record the order.
    #[error("it could not be recorded: nothing is written to the array any more")]
    Stopped,
    /// The level does not support the change.
    #[error("{0}")]
    Unsuitable(String),
}

/// Remark of a member that an operator took out.
pub const BY_ORDER: &str = "taken out by order";

impl Redundant {
    /// Adds a line to the array's notes.
    pub fn note(&self, text: String) {
        self.inner.core.note(text);
    }

    /// Records the membership if it differs from that in the superblocks: the array was started without some
    /// members.
    ///
    /// # Errors
    /// The array is stopped: the membership was not recorded.
    pub async fn record(&self) -> Result<(), ControlError> {
        if self.inner.core.read_only {
            return Ok(());
        }
        self.inner.core.recorded(true).await
    }

    /// Takes a member out, as after an error.
    ///
    /// # Errors
    /// The member does not exist, or holds the last copy of some data.
    pub async fn fail(&self, label: &str) -> Result<(), ControlError> {
        self.fail_because(label, BY_ORDER).await
    }

    /// Takes a member out, with `why` as its remark.
    ///
    /// # Errors
    /// The member does not exist, or holds the last copy of some data.
    pub async fn fail_because(&self, label: &str, why: &str) -> Result<(), ControlError> {
        let (core, member) = self.may_fail(label)?;
        if !core.fail(&member, why) {
            return Err(ControlError::LastCopy { label: label.to_owned() });
        }
        core.recorded(false).await
    }

    /// Checks [`Redundant::fail`]. Returns true if the member is faulty already.
    ///
    /// # Errors
    /// Those of the order.
    pub fn check_fail(&self, label: &str) -> Result<bool, ControlError> {
        let (_, member) = self.may_fail(label)?;
        Ok(member.state() == MemberState::Faulty)
    }

    fn may_fail(&self, label: &str) -> Result<(&Rc<Core>, Rc<Member>), ControlError> {
        let core = self.writable()?;
        let member = core.named(label)?;
        match member.is_in_sync() && !core.can_do_without(&[&member]) {
            true => Err(ControlError::LastCopy { label: label.to_owned() }),
            false => Ok((core, member)),
        }
    }

    /// Makes reads avoid the members whose labels satisfy `is_slow`, if another copy can be read. This is a
    /// hint: it is not recorded, and does not decide which member is believed.
    pub fn avoid(&self, is_slow: impl Fn(&str) -> bool) {
        let members = self.inner.core.roster.members();
        members.iter().for_each(|member| member.is_slow.set(is_slow(&member.label)));
        drop(members);
        self.inner.core.show();
    }

    /// Removes a member that is faulty or a spare.
    ///
    /// # Errors
    /// The member does not exist, or takes part.
    pub async fn remove(&self, label: &str) -> Result<(), ControlError> {
        let (core, member) = self.may_remove(label)?;
        core.roster.let_go(&member);
        // Other shards close it before the order is done.
        core.reopen();
        core.retire_number(member.number);
        // Its superblock still says "spare", and a member that is one event behind is believed.
        core.publisher.leave_behind(member.told.get());
        core.note(format!("{label} was removed"));
        core.recorded(true).await
    }

    /// Checks [`Redundant::remove`].
    ///
    /// # Errors
    /// Those of the order.
    pub fn check_remove(&self, label: &str) -> Result<(), ControlError> {
        self.may_remove(label).map(drop)
    }

    fn may_remove(&self, label: &str) -> Result<(&Rc<Core>, Rc<Member>), ControlError> {
        let core = self.writable()?;
        let member = core.named(label)?;
        let state = match member.state() {
            MemberState::InSync => "in sync",
            MemberState::Recovering(_) => "being filled",
            MemberState::Spare | MemberState::Faulty => return Ok((core, member)),
        };
        Err(ControlError::InUse { label: label.to_owned(), state })
    }

    /// Returns the device number for the next member: one that no member had, as long as there are such.
    pub fn free_number(&self) -> u32 {
        self.inner.core.free_number()
    }

    /// Returns the array's superblock as it is now, in the format of the member that it was assembled by;
    /// `None` without superblocks.
    pub fn superblock(&self) -> Option<Superblock> {
        self.inner.core.publisher.array.borrow().clone()
    }

    /// Returns the event up to which the bitmap is cleared: a member that left later can come back by the
    /// bitmap. `None` without a bitmap.
    pub fn events_cleared(&self) -> Option<u64> {
        self.inner.core.lane.bitmap().map(|bitmap| bitmap.header.events_cleared)
    }

    /// Starts a check or a repair, or with `None` ends the running one.
    ///
    /// # Errors
    /// The volume is read-only.
    pub fn scrub(&self, kind: Option<JobKind>) -> Result<(), ControlError> {
        let whole = |kind| ScrubOrder { kind, from: None, until: None, speed: None };
        self.scrub_as(kind.map(whole))
    }

    /// Starts a check or a repair, or a part of one; with `None` ends the running one. A paused scrub is
    /// forgotten: the order says where to start.
    ///
    /// # Errors
    /// The volume is read-only.
    pub fn scrub_as(&self, order: Option<ScrubOrder>) -> Result<(), ControlError> {
        let core = self.writable()?;
        let kind = order.as_ref().map(|order| order.kind);
        debug_assert!(kind.is_none_or(JobKind::is_scrub));
        core.work.request(order, core.clock.unix_time());
        Ok(())
    }

    /// Checks [`Redundant::scrub`] and [`Redundant::retest`].
    ///
    /// # Errors
    /// Those of the orders.
    pub fn check_writable(&self) -> Result<(), ControlError> {
        self.writable().map(drop)
    }

    /// Stops passes and takeovers by spares from now on, and records how far the running pass got.
    ///
    /// # Errors
    /// The array is stopped: the state was not recorded.
    pub async fn hold_passes(&self) -> Result<(), ControlError> {
        let core = &self.inner.core;
        core.work.hold(true);
        core.work.until_idle().await;
        if core.read_only || core.gate.is_stopped() {
            return Ok(());
        }
        core.recorded(true).await
    }

    /// Resumes passes where they were.
    pub fn let_passes_go_on(&self) {
        self.inner.core.work.hold(false);
    }

    /// Sets the limits of passes.
    pub fn set_speed(&self, speed: Speed) {
        self.inner.core.work.set_speed(speed);
    }

    /// Sets the number of roles of a raid1: new roles wait for spares, and roles at the end that no member has
    /// can be given up.
    ///
    /// # Errors
    /// Another level; a role that is given up has a member.
    pub async fn set_raid_disks(&self, count: usize) -> Result<(), ControlError> {
        self.check_raid_disks(count)?;
        let core = self.writable()?;
        // No write is in flight to the earlier members.
        let sync_size = core.layout.borrow().sync_size();
        let locked = core.lane.ranges().lock(SyncSpan::first(sync_size)).await;
        let turn = core.settled_turn().await?;
        let grown = self.check_raid_disks(count)?;
        core.roster.resize(count);
        self.inner.reshape(grown);
        core.publisher.require();
        drop((turn, locked));
        core.note(format!("the array has {count} roles"));
        core.reconsider();
        core.recorded(true).await
    }

    /// Checks [`Redundant::set_raid_disks`]. Returns the new geometry.
    ///
    /// # Errors
    /// Those of the order.
    pub fn check_raid_disks(&self, count: usize) -> Result<Raid1, ControlError> {
        let core = self.writable()?;
        if !core.is_raid1() {
            let why = "only raid1 can have members added while it works";
            return Err(ControlError::Unsuitable(why.to_owned()));
        }
        let member_size = core.layout.borrow().member_size();
        let grown = Raid1::new(member_size, count)
            .map_err(|error| ControlError::Unsuitable(error.to_string()))?;
        match core.roster.slots().values().skip(count).any(|slot| slot.primary.is_some()) {
            false => Ok(grown),
            true => Err(ControlError::Unsuitable(format!(
                "{count} roles are fewer than the members that take part"
            ))),
        }
    }

    pub(super) fn writable(&self) -> Result<&Rc<Core>, ControlError> {
        let core = &self.inner.core;
        match (core.read_only, core.gate.is_stopped()) {
            (true, _) => Err(ControlError::ReadOnly),
            (_, true) => Err(ControlError::Stopped),
            _ => Ok(core),
        }
    }
}

impl Inner {
    /// Switches to another number of members of raid1.
    pub(super) fn reshape(&self, raid1: Raid1) {
        if self.keeping.reshape(raid1.clone()) {
            self.core.layout.replace(Layout::Copies(Arc::new(raid1)));
        }
    }
}

impl Core {
    /// Returns true if each member has the whole array. A raid10 can also have as many copies as members, in
    /// another order.
    pub(super) fn is_raid1(&self) -> bool {
        let Layout::Copies(geometry) = &*self.layout.borrow() else { return false };
        let level = self.publisher.array.borrow().as_ref().map(|array| array.level);
        let is_whole = |copy| {
            let (role, offset) = (Role::nth(copy), MemberByte::START);
            let whole = Run { role, offset, len: geometry.size() };
            geometry.locate(ArrayByte::START, copy) == whole
        };
        geometry.copies() == geometry.members()
            && (0..geometry.copies()).all(is_whole)
            && level.is_none_or(|level| level == Level::Raid1)
    }

    /// Waits until all required state is on the members; with `changed`, also the present state.
    ///
    /// # Errors
    /// [`ControlError::Stopped`].
    pub(super) async fn recorded(self: &Rc<Self>, changed: bool) -> Result<(), ControlError> {
        if self.record(changed).await { Ok(()) } else { Err(ControlError::Stopped) }
    }

    /// Waits for the turn to write metadata with all required state recorded, for a change that the superblocks
    /// of all members must share. A state that one member has announced, one event ahead of the others, is on
    /// the others by then, so their superblocks have the same shape.
    ///
    /// # Errors
    /// [`ControlError::Stopped`].
    pub(super) async fn settled_turn(self: &Rc<Self>) -> Result<Turn<'_>, ControlError> {
        loop {
            self.recorded(false).await?;
            let turn = self.publisher.turn().await;
            if self.publisher.is_settled() {
                return Ok(turn);
            }
        }
    }

    pub(super) fn named(&self, label: &str) -> Result<Rc<Member>, ControlError> {
        let members = self.roster.members();
        members.iter().find(|member| member.label == label).cloned().ok_or_else(|| {
            let known: Vec<&str> = members.iter().map(|member| member.label.as_str()).collect();
            ControlError::NoSuchMember { label: label.to_owned(), known: known.join(", ") }
        })
    }
}
