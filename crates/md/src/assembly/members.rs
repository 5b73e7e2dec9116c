//! The roles of members, and the candidates that are left out.
//!
//! Each candidate is checked in this order, and the first finding counts:
//!
//! 1. Is it a second copy of another one?
//! 2. Does it describe the same array, and is it large enough?
//! 3. Does it call all of the freshest members failed, and they it? Then both went on alone, also if each
//!    side has filled new members since.
//! 4. Is it more than one event behind? (One is allowed: a crash may come between the writes of
//!    two superblocks.)
//! 5. Does the freshest member's table still give it its role?
//! 6. Does another one hold the role as well?

use braid_level::size::suffice;

use super::history::{not_stale, same_shape, went_on_alone};
use super::left_out::{LeftOut, Reason};
use super::state::Risk;
use super::{BitmapFacts, Candidate};
use crate::canary::Canary;
use crate::{Features, Level, Role, Superblock};

/// A candidate that takes part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its index in [`super::Set::candidates`].
    pub candidate: usize,
    /// The user's name of it.
    pub label: String,
    /// Start of its data in bytes.
    pub data_offset: u64,
    /// Number of bytes from there that the array uses.
    pub usable: u64,
}

impl Member {
    fn new(candidates: &[Candidate], candidate: usize) -> Member {
        let Candidate { label, superblock, .. } = &candidates[candidate];
        let (data_offset, usable) = (superblock.data_offset, superblock.used());
        Member { candidate, label: label.clone(), data_offset, usable }
    }
}

/// The member of a role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Slot {
    /// A member with all of its data.
    InSync(Member),
    /// A member that is being rebuilt.
    Recovering {
        /// The member.
        member: Member,
        /// It has its data below this many bytes.
        from: u64,
        /// True if it had all data before, so that it lacks only the chunks in the bitmap.
        by_bitmap: bool,
    },
    /// No member.
    Missing,
}

impl Slot {
    /// Returns the member of the role.
    #[must_use]
    pub fn member(&self) -> Option<&Member> {
        match self {
            Slot::InSync(member) | Slot::Recovering { member, .. } => Some(member),
            Slot::Missing => None,
        }
    }

    /// Returns true if its data can be read.
    #[must_use]
    pub fn is_in_sync(&self) -> bool {
        matches!(self, Slot::InSync(_))
    }
}

/// The claim of a candidate.
enum Claim {
    Active(u16),
    Replacement(u16),
    Spare,
    Journal,
}

/// The members of all roles.
pub(super) struct Selection {
    pub(super) freshest: usize,
    pub(super) slots: Vec<Slot>,
    pub(super) replacements: Vec<(u16, Member, u64)>,
    pub(super) spares: Vec<Member>,
    pub(super) journal: Option<Member>,
    pub(super) left_out: Vec<LeftOut>,
}

/// The candidate that knows best: of those with a role the one with the most events, and of
/// several one that is not [superseded](is_superseded), whose data is complete, then the first.
/// Spares know nothing.
pub(super) fn freshest(candidates: &[Candidate]) -> usize {
    let rank = |index: &usize| {
        let superblock = &candidates[*index].superblock;
        let takes_part = matches!(superblock.role(), Role::Active(_));
        let is_last = !candidates.iter().any(|by| is_superseded(superblock, &by.superblock));
        let complete = superblock.recovery_offset.is_none() && !superblock.is_replacement()
            || Canary::FilledDescribes.is_planted();
        (takes_part, superblock.events, is_last, complete, std::cmp::Reverse(*index))
    };
    (0..candidates.len()).max_by_key(rank).unwrap_or(0)
}

/// Returns true if `by`, with as many events, was written later than `superblock`: it gives that member no role
/// any more, and itself has a role in its table. A crash interrupted the update of `superblock` before `by` had
/// it, and the array went on without that member: no write relies on an update that some of its members lack.
fn is_superseded(superblock: &Superblock, by: &Superblock) -> bool {
    let gives_role = |of: &Superblock, to: &Superblock| {
        let role = of.roles.get(to.device_number as usize);
        matches!(to.role(), Role::Active(_)) && role == Some(&to.role())
    };
    by.events == superblock.events && !gives_role(by, superblock) && gives_role(superblock, by)
}

impl Selection {
    pub(super) fn of(candidates: &[Candidate]) -> Selection {
        let freshest = freshest(candidates);
        let authority = &candidates[freshest].superblock;
        let mut selection = Selection {
            freshest,
            slots: vec![Slot::Missing; authority.raid_disks as usize],
            replacements: Vec::new(),
            spares: Vec::new(),
            journal: None,
            left_out: Vec::new(),
        };
        // The freshest first, so that no older one has its role when it comes.
        let mut order: Vec<usize> = (0..candidates.len()).collect();
        order.sort_by_key(|index| {
            (std::cmp::Reverse(candidates[*index].superblock.events), *index != freshest, *index)
        });
        let mut seen: Vec<usize> = Vec::new();
        for index in order {
            let claim = match twin(candidates, &seen, index) {
                Some(reason) => Err(reason),
                None => claim(candidates, freshest, index),
            };
            seen.push(index);
            match claim.and_then(|claim| selection.place(candidates, index, claim)) {
                Ok(()) => {}
                Err(reason) => selection.leave_out(candidates, index, reason),
            }
        }
        selection.have_replacements_stand_in(candidates);
        selection.left_out.sort_by_key(|left_out| left_out.candidate);
        selection.spares.sort_by_key(|spare| spare.candidate);
        selection.note_who_can_come_back(candidates);
        selection
    }

    /// Gives a candidate what it claims, unless another has it.
    fn place(
        &mut self,
        candidates: &[Candidate],
        index: usize,
        claim: Claim,
    ) -> Result<(), Reason> {
        let superblock = &candidates[index].superblock;
        let member = Member::new(candidates, index);
        match claim {
            Claim::Active(role) => {
                let slot = &mut self.slots[usize::from(role)];
                if let Some(holder) = slot.member() {
                    let equal = candidates[holder.candidate].superblock.events == superblock.events;
                    return Err(Reason::SameRole { role, other: holder.label.clone(), equal });
                }
                *slot = match superblock.recovery_offset {
                    None => Slot::InSync(member),
                    Some(from) => {
                        let by_bitmap = superblock.features.contains(Features::RECOVERY_BITMAP);
                        Slot::Recovering { member, from, by_bitmap }
                    }
                };
            }
            Claim::Replacement(role) => {
                let filled = superblock.recovery_offset.unwrap_or(member.usable);
                self.replacements.push((role, member, filled));
            }
            Claim::Spare => self.spares.push(member),
            Claim::Journal => match &self.journal {
                Some(journal) => return Err(Reason::Duplicate { of: journal.label.clone() }),
                None => self.journal = Some(member),
            },
        }
        Ok(())
    }

    /// Gives the role of a missing member to its replacement, as far as that is filled (Linux: "the replacement
    /// is all we have yet").
    fn have_replacements_stand_in(&mut self, candidates: &[Candidate]) {
        for (role, member, filled) in std::mem::take(&mut self.replacements) {
            let slot = &mut self.slots[usize::from(role)];
            let superblock = &candidates[member.candidate].superblock;
            match (&slot, superblock.recovery_offset) {
                (Slot::Missing, None) => *slot = Slot::InSync(member),
                (Slot::Missing, Some(from)) => {
                    let by_bitmap = superblock.features.contains(Features::RECOVERY_BITMAP);
                    *slot = Slot::Recovering { member, from, by_bitmap };
                }
                _ => self.replacements.push((role, member, filled)),
            }
        }
    }

    fn leave_out(&mut self, candidates: &[Candidate], candidate: usize, reason: Reason) {
        let label = candidates[candidate].label.clone();
        self.left_out.push(LeftOut { candidate, label, reason, re_add: None });
    }

    /// Marks members that left late enough for the bitmap to have all later writes, and whose role is free.
    fn note_who_can_come_back(&mut self, candidates: &[Candidate]) {
        let Some(BitmapFacts { events_cleared, .. }) = candidates[self.freshest].bitmap else {
            return;
        };
        for left_out in &mut self.left_out {
            let superblock = &candidates[left_out.candidate].superblock;
            let was_complete = superblock.recovery_offset.is_none()
                || superblock.features.contains(Features::RECOVERY_BITMAP);
            if let (Reason::Stale { .. } | Reason::Disowned { .. }, Role::Active(role)) =
                (&left_out.reason, superblock.role())
                && was_complete
                && superblock.events >= events_cleared
                && self.slots.get(usize::from(role)) == Some(&Slot::Missing)
            {
                left_out.re_add = Some(role);
            }
        }
    }

    /// Takes in stale members, the freshest first and all of the same age together, until the
    /// rest suffices: mdadm's rule for `--force`.
    pub(super) fn take_in_stale(&mut self, candidates: &[Candidate], risks: &mut Vec<Risk>) {
        let freshest = &candidates[self.freshest].superblock;
        while !self.suffices(freshest) {
            let usable: Vec<usize> = (0..self.left_out.len())
                .filter(|index| self.can_be_forced(candidates, &self.left_out[*index]))
                .collect();
            let events =
                |index: &usize| candidates[self.left_out[*index].candidate].superblock.events;
            let Some(newest) = usable.iter().map(events).max() else { return };
            let chosen: Vec<usize> =
                usable.into_iter().filter(|index| events(index) == newest).collect();
            for index in chosen.into_iter().rev() {
                let candidate = self.left_out[index].candidate;
                let Role::Active(role) = candidates[candidate].superblock.role() else { continue };
                if self.place(candidates, candidate, Claim::Active(role)).is_ok() {
                    let LeftOut { label, .. } = self.left_out.remove(index);
                    let freshest = freshest.events;
                    risks.push(Risk::StaleMember { label, role, events: newest, freshest });
                }
            }
        }
    }

    /// Returns true if `force` may take the member in: it has complete, if old, data for a free role.
    fn can_be_forced(&self, candidates: &[Candidate], left_out: &LeftOut) -> bool {
        let superblock = &candidates[left_out.candidate].superblock;
        let is_free = match superblock.role() {
            Role::Active(role) => self.slots.get(usize::from(role)) == Some(&Slot::Missing),
            _ => false,
        };
        is_free
            && matches!(left_out.reason, Reason::Stale { .. } | Reason::Disowned { .. })
            && superblock.recovery_offset.is_none()
            && !superblock.is_replacement()
            && superblock.reshape.is_none()
    }

    /// Those that went on alone.
    pub(super) fn diverged(&self) -> impl Iterator<Item = &str> {
        let alone = |reason: &Reason| matches!(reason, Reason::Diverged { .. });
        self.left_out.iter().filter(move |one| alone(&one.reason)).map(|one| one.label.as_str())
    }

    /// Returns true if the members in sync hold all data.
    pub(super) fn suffices(&self, array: &Superblock) -> bool {
        let present: Vec<bool> = self.slots.iter().map(Slot::is_in_sync).collect();
        suffice(array.level, array.layout, &present)
    }
}

/// Returns the reason if one of the candidates `seen`, all with at least as many events, is the same member.
fn twin(candidates: &[Candidate], seen: &[usize], index: usize) -> Option<Reason> {
    let this = &candidates[index].superblock;
    let is_same = |other: &&usize| {
        let other = &candidates[**other].superblock;
        if this.device_uuid.is_nil() {
            // Version 0.90 has numbers only, and a member's successor has the same one.
            other.device_uuid.is_nil()
                && (other.device_number, other.events) == (this.device_number, this.events)
        } else {
            other.device_uuid == this.device_uuid
        }
    };
    let other = &candidates[*seen.iter().find(is_same)?];
    let of = other.label.clone();
    Some(if other.superblock.events == this.events {
        Reason::Duplicate { of }
    } else {
        Reason::OldCopy { of }
    })
}

/// Returns the claim of a candidate, or the reason why it has none.
fn claim(candidates: &[Candidate], freshest: usize, index: usize) -> Result<Claim, Reason> {
    let authority = &candidates[freshest].superblock;
    let this = &candidates[index].superblock;
    same_shape(this, authority)?;
    let needs_room = !matches!(authority.level, Level::Linear | Level::Raid0);
    if needs_room && this.role() != Role::Journal && this.data_size < authority.component_size {
        let (size, needed) = (this.data_size, authority.component_size);
        return Err(Reason::TooSmall { size, needed });
    }
    let now = authority.roles.get(this.device_number as usize).copied().unwrap_or(Role::Spare);
    let claimed = match this.role() {
        Role::Active(role) => role,
        Role::Faulty => return Err(Reason::Faulty),
        // A spare holds no data, so its events do not matter.
        Role::Spare if now == Role::Faulty => return Err(Reason::Faulty),
        // It was let go of, and its number was given to another.
        Role::Spare if is_number_of_another(candidates, index) => {
            let (events, freshest) = (this.events, authority.events);
            let behind = authority.updated.seconds.saturating_sub(this.updated.seconds);
            return Err(Reason::Stale { events, freshest, behind });
        }
        Role::Spare => return Ok(Claim::Spare),
        Role::Journal => {
            not_stale(this, authority)?;
            return Ok(Claim::Journal);
        }
    };
    if u32::from(claimed) >= authority.raid_disks {
        let raid_disks = authority.raid_disks;
        return Err(Reason::NoSuchRole { role: claimed, raid_disks });
    }
    // Whom the freshest counts on went nowhere alone: of a newcomer that says so first, before the
    // others do, these know nothing yet.
    let is_disowned = now != Role::Active(claimed);
    if index != freshest && is_disowned && went_on_alone(this, authority) {
        let freshest = candidates[freshest].label.clone();
        return Err(Reason::Diverged { freshest, events: this.events });
    }
    not_stale(this, authority)?;
    if now != Role::Active(claimed) {
        let freshest = candidates[freshest].label.clone();
        return Err(Reason::Disowned { claimed, now, freshest });
    }
    Ok(if this.is_replacement() { Claim::Replacement(claimed) } else { Claim::Active(claimed) })
}

/// Returns true if a candidate with more events has the same device number.
fn is_number_of_another(candidates: &[Candidate], index: usize) -> bool {
    let this = &candidates[index].superblock;
    candidates
        .iter()
        .map(|other| &other.superblock)
        .any(|other| other.device_number == this.device_number && other.events > this.events)
}
