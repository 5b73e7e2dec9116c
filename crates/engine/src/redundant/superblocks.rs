//! The contents of superblocks: arithmetic on the core's state.
//!
//! ```text
//!   array's part   events, time, resync, the members' roles    ── the same for all
//!   member's own   offsets of its areas, its filled part       ── [`said_of`]
//! ```
//!
//! Deliberately absent: writing them ([`super::publish`]).
//!
//! Source: Linux `drivers/md/md.c` (`super_1_sync`, `super_90_sync`).

use std::rc::Rc;

use braid_md::superblock::{OfMember, Recovery};
use braid_md::{Level, Resync, Role, Superblock, Timestamp, Version};

use super::core::Core;
use super::lane::Told;
use super::roster::{Member, MemberState};
use crate::canary::Canary;

/// The superblocks that are to be written next.
pub(super) struct Next {
    /// The superblock of each known member.
    pub(super) superblocks: Vec<(Rc<Member>, Superblock)>,
    /// The membership in the superblocks.
    pub(super) generation: u64,
    /// The extent to which they say the array is in sync.
    pub(super) resync: Resync,
}

impl Next {
    /// Delays the changes of members that are being filled. A member whose superblock says that it is being
    /// filled repeats it. A member that takes a role stays a spare in the superblocks of the others, and its
    /// own is not written yet.
    pub(super) fn put_off_changes(&mut self) {
        let mut put_off = Vec::new();
        self.superblocks.retain_mut(|(member, next)| {
            if next.recovery_offset.is_none() || !member.is_changed_by(next) {
                return true;
            }
            let own = member.superblock.borrow();
            let own = own
                .as_ref()
                .filter(|own| own.device_number == member.number && own.recovery_offset.is_some());
            put_off.push((member.number, own.map_or(Role::Spare, |own| own.role())));
            if let Some(own) = own {
                *next = next.clone().filled_as(own);
            }
            own.is_some()
        });
        for (_, next) in &mut self.superblocks {
            for (number, role) in &put_off {
                next.set_role(*number, *role);
            }
        }
    }
}

impl Core {
    /// Prepares the next superblock of each known member, with one more event; `promoted` is a member that is
    /// being filled, and is in sync in these superblocks. Returns `None` for an array without superblocks.
    ///
    /// A failed member is believed beside superblocks that do not leave it behind yet. They call nothing in
    /// sync that the earlier superblocks do not: a kernel before 6.8 would accept stale data of the failed
    /// member. A clean raid10 becomes dirty only with the superblocks that leave the failed member behind: the
    /// failed member's superblock says that it is being filled, and the kernel's resync would read it. Writes
    /// wait for those superblocks, so the array stays clean until then.
    pub(super) fn prepare_superblocks(&self, promoted: Option<&Rc<Member>>) -> Option<Next> {
        let members = self.roster.members();
        let now = self.clock.unix_time();
        let now = Timestamp { seconds: now.as_secs(), micros: now.subsec_micros() };
        let events = self.publisher.events() + 1;
        self.publisher.set_time(events, now);
        let mut array = self.publisher.array.borrow_mut();
        let array = array.as_mut()?;
        let resync = self.agreement.resync();
        let reached = match (self.gate.is_active(), resync) {
            // The part below is in sync except for the rows in the log.
            (true, Resync::From(from)) if from > 0 && self.has_partial_log => Resync::From(from),
            (true, _) if !Canary::WriteWhileClean.is_planted() => Resync::From(0),
            (_, resync) => resync,
        };
        array.set_resync(match self.publisher.said.get() {
            _ if self.publisher.leaves_behind(events) => reached,
            Resync::Clean if array.level == Level::Raid10 => Resync::Clean,
            said => earlier(reached, said),
        });
        let replaced = promoted.filter(|one| one.is_replacement()).and_then(|one| {
            let slots = self.roster.slots();
            slots[one.role()?].primary.as_ref().map(|old| old.number)
        });
        let said_late = SaidLate::of(array);
        let role_of = |member: &Rc<Member>| match member.role() {
            _ if replaced == Some(member.number) => Role::Faulty,
            Some(role) if promoted.is_some_and(|one| Rc::ptr_eq(one, member)) => {
                Role::Active(role.get())
            }
            _ => md_role(member, said_late),
        };
        let raid_disks = self.roster.slots().len() as u32;
        array.set_membership(
            raid_disks,
            members.iter().map(|member| (member.number, role_of(member))),
        );
        self.lane.tell(Told::Events(events));
        let known = members.iter().filter(|member| member.is_known());
        let superblocks = known.filter_map(|member| {
            let own = member.superblock.borrow();
            let next = array.of_member(own.as_ref()?, said_of(member)).at_event(events);
            let is_promoted = promoted.is_some_and(|one| Rc::ptr_eq(one, member));
            Some((Rc::clone(member), if is_promoted { next.filled() } else { next }))
        });
        let generation = self.roster.generation();
        Some(Next { superblocks: superblocks.collect(), generation, resync })
    }
}

impl Core {
    /// Returns true if superblocks name an absent member, by a role or as a spare. A spare may have been
    /// filled, and have announced itself before the others did: version 0.90 cannot express a replacement, and
    /// no version can express the new member of an array that grows.
    pub(super) fn names_others(&self) -> bool {
        let members = self.roster.members();
        let is_there = |number: usize| members.iter().any(|one| one.number as usize == number);
        let array = self.publisher.array.borrow();
        let mut roles = array.iter().flat_map(|array| array.roles.iter().enumerate());
        roles.any(|(number, role)| *role != Role::Faulty && !is_there(number))
    }

    /// Retires the number of a removed member. It is reused only when no other is free: a spare keeps its
    /// superblock, and kernels since 6.8 that find it again ask the others for the role of its number.
    pub(super) fn retire_number(&self, number: u32) {
        if let Some(array) = &mut *self.publisher.array.borrow_mut()
            && array.roles.len() > number as usize
        {
            array.set_role(number, Role::Faulty);
        }
    }

    /// Returns a device number that no member has or had, removed and absent members included; an array is
    /// created with the first numbers. Returns the lowest free number if there is none.
    pub(super) fn free_number(&self) -> u32 {
        /// Number of roles in a superblock of version 1 of one sector.
        const MOST: u32 = 128;
        let members = self.roster.members();
        let array = self.publisher.array.borrow();
        let is_free = |number: &u32| members.iter().all(|one| one.number != *number);
        let is_new = |number: &u32| {
            let is_unused = |array: &Superblock| {
                let role = array.roles.get(*number as usize);
                array.version == Version::V0_90
                    || (*number >= array.raid_disks && role.is_none_or(|role| *role == Role::Spare))
            };
            array.as_ref().is_none_or(is_unused)
        };
        let new = (0..MOST).find(|number| is_free(number) && is_new(number));
        new.or_else(|| (0..).find(is_free)).unwrap_or(u32::MAX)
    }
}

/// Returns the state that calls less in sync.
fn earlier(a: Resync, b: Resync) -> Resync {
    match (a, b) {
        (Resync::From(a), Resync::From(b)) => Resync::From(a.min(b)),
        (Resync::Clean, other) | (other, Resync::Clean) => other,
    }
}

/// The members whose role superblocks name only once they are in sync; until then they are spares. Version 0.90
/// cannot express a member that is being filled. The resync of Linux' raid10 reads every copy that is not
/// faulty: before it continues to fill a member, it would write the member's stale data over the only good copy
/// (`raid10_sync_request`; a replacement is not read). So with data to resync, a crash costs the filled part.
#[derive(Clone, Copy)]
enum SaidLate {
    NoMember,
    ReadByResync,
    Recovering,
}

impl SaidLate {
    fn of(array: &Superblock) -> SaidLate {
        match array.level {
            _ if array.version == Version::V0_90 => SaidLate::Recovering,
            Level::Raid10 if array.resync != Resync::Clean => {
                match Canary::FilledWhileDirty.is_planted() {
                    false => SaidLate::ReadByResync,
                    true => SaidLate::NoMember,
                }
            }
            _ => SaidLate::NoMember,
        }
    }

    fn has(self, member: &Member) -> bool {
        match self {
            SaidLate::NoMember => false,
            SaidLate::ReadByResync => !member.is_replacement(),
            SaidLate::Recovering => true,
        }
    }
}

/// Returns the role of `member` in superblocks.
fn md_role(member: &Member, said_late: SaidLate) -> Role {
    match (member.state(), member.role()) {
        (MemberState::Faulty, Some(role)) if Canary::StaleMemberBelieved.is_planted() => {
            Role::Active(role.get())
        }
        (MemberState::Faulty, _) => Role::Faulty,
        (MemberState::Recovering(_), _) if said_late.has(member) => Role::Spare,
        (MemberState::InSync | MemberState::Recovering(_), Some(role)) => Role::Active(role.get()),
        _ => Role::Spare,
    }
}

/// Returns the member's own part of its superblock. The bad-block log is the present one, not that of the
/// superblock before, which may have been in flight while a place was entered.
pub(super) fn said_of(member: &Member) -> OfMember {
    let ahead = if Canary::RecoveryOffsetAhead.is_planted() { 16 << 10 } else { 0 };
    OfMember {
        number: member.number,
        data_size: member.data_size.get(),
        corrected_reads: member.corrected.get(),
        recovery: member
            .recovering()
            .map(|done| Recovery { filled: done.get() + ahead, by_bitmap: member.is_by_bitmap() }),
        is_replacement: member.is_replacement(),
        has_bad_blocks: member.has_bad_blocks.get(),
    }
}
