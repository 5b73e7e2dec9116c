//! What superblocks say of the array as it is: arithmetic on what the core knows.
//!
//! ```text
//!   array's part   events, time, resync, who has which role    ── the same for all
//!   member's own   where its areas lie, how far it is filled   ── [`said_of`]
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
    /// Of each known member.
    pub(super) superblocks: Vec<(Rc<Member>, Superblock)>,
    /// The membership that they tell of.
    pub(super) generation: u64,
    /// How far they say that the array is in sync.
    pub(super) resync: Resync,
}

impl Next {
    /// Has nobody who is being filled say anything new of itself, nor the others of it. Who says on
    /// its superblock that it is being filled goes on saying what it did; of who takes a role the
    /// others know a spare, and itself is told nothing yet.
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
    /// What the superblock of each known member says next, with one more event; `promoted` is a
    /// member that is being filled, and of which they say that it is in sync. None for an array without
    /// superblocks.
    ///
    /// A failed member is believed beside superblocks that do not leave it behind yet. They call nothing in
    /// sync that the superblocks before them do not: a kernel before 6.8 would take what the failed member
    /// lacks for agreed on. And a clean raid10 becomes dirty with the superblocks that leave the failed member
    /// behind, not before: its own says that it is being filled, and the kernel's resync would read it. Writes wait
    /// for those superblocks, so until then the array is as clean as it was.
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
            // What lies below is in sync but for what the log says of it.
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
    /// Whether superblocks know somebody who is not there: by a role, or as a spare. A spare may have
    /// been filled, and have said so itself before the others did: version 0.90 has no other word for a
    /// replacement, and no version has one for the new member of an array that grows.
    pub(super) fn names_others(&self) -> bool {
        let members = self.roster.members();
        let is_there = |number: usize| members.iter().any(|one| one.number as usize == number);
        let array = self.publisher.array.borrow();
        let mut roles = array.iter().flat_map(|array| array.roles.iter().enumerate());
        roles.any(|(number, role)| *role != Role::Faulty && !is_there(number))
    }

    /// The member with `number` was let go of. As long as there are others, its number is not given
    /// to anybody: a spare keeps its superblock, and when it is found again kernels since 6.8 ask the
    /// others which role its number has.
    pub(super) fn retire_number(&self, number: u32) {
        if let Some(array) = &mut *self.publisher.array.borrow_mut()
            && array.roles.len() > number as usize
        {
            array.set_role(number, Role::Faulty);
        }
    }

    /// A device number that no member has, and that none had that was let go of, or that is only away: an array
    /// was made with the first numbers. The lowest that is free if there is none.
    pub(super) fn free_number(&self) -> u32 {
        /// As many roles are in a superblock of version 1 of one sector.
        const MOST: u32 = 128;
        let members = self.roster.members();
        let array = self.publisher.array.borrow();
        let is_free = |number: &u32| members.iter().all(|one| one.number != *number);
        let is_new = |number: &u32| {
            let nobody_had_it = |array: &Superblock| {
                let role = array.roles.get(*number as usize);
                array.version == Version::V0_90
                    || (*number >= array.raid_disks && role.is_none_or(|role| *role == Role::Spare))
            };
            array.as_ref().is_none_or(nobody_had_it)
        };
        let new = (0..MOST).find(|number| is_free(number) && is_new(number));
        new.or_else(|| (0..).find(is_free)).unwrap_or(u32::MAX)
    }
}

/// Of two states the one that calls less in sync.
fn earlier(a: Resync, b: Resync) -> Resync {
    match (a, b) {
        (Resync::From(a), Resync::From(b)) => Resync::From(a.min(b)),
        (Resync::Clean, other) | (other, Resync::Clean) => other,
    }
}

/// Of which members superblocks say only when they are in sync that they have a role: until then they are spares.
/// Version 0.90 has no other word for a member that is being filled. And the resync of Linux' raid10 reads every copy
/// that is not faulty: before it goes on filling a member, it would write what that one lacks over the only good copy
/// (`raid10_sync_request`; who replaces another is not read). So while there is something to resync, a crash costs what
/// was filled.
#[derive(Clone, Copy)]
enum SaidLate {
    Nobody,
    ReadByResync,
    WhoIsFilled,
}

impl SaidLate {
    fn of(array: &Superblock) -> SaidLate {
        match array.level {
            _ if array.version == Version::V0_90 => SaidLate::WhoIsFilled,
            Level::Raid10 if array.resync != Resync::Clean => {
                match Canary::FilledWhileDirty.is_planted() {
                    false => SaidLate::ReadByResync,
                    true => SaidLate::Nobody,
                }
            }
            _ => SaidLate::Nobody,
        }
    }

    fn has(self, member: &Member) -> bool {
        match self {
            SaidLate::Nobody => false,
            SaidLate::ReadByResync => !member.is_replacement(),
            SaidLate::WhoIsFilled => true,
        }
    }
}

/// What superblocks say of `member`.
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

/// What is `member`'s own in its superblock. Of its log of bad blocks as it is now, and not of the
/// superblock before: that may have been on its way while a place was entered.
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
