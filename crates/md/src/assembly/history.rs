//! The history of two members by their superblocks: whether one is stale, whether each went on without the
//! other, whether both describe one array.
//!
//! Source: Linux `drivers/md/md.c` (`super_1_load`, `super_1_validate`). The kernel does not look for two
//! halves that went on alone.

use super::left_out::Reason;
use crate::canary::Canary;
use crate::{Level, Role, Superblock};

/// md takes in a member that is one event behind, not more.
pub(super) fn not_stale(this: &Superblock, authority: &Superblock) -> Result<(), Reason> {
    let most = if Canary::TwoBehindIsCurrent.is_planted() { 2 } else { 1 };
    if this.events.saturating_add(most) >= authority.events {
        return Ok(());
    }
    let behind = authority.updated.seconds.saturating_sub(this.updated.seconds);
    Err(Reason::Stale { events: this.events, freshest: authority.events, behind })
}

/// Returns true if none of the members that `authority` counts on takes part by this member's table: then the
/// table was written when they were gone, and they went on without this member. Later members in roles that its
/// table fills may be successors of the members that it knew; but not if it has removed another one, or if [the
/// tables contradict each other](contradict).
pub(super) fn went_on_alone(this: &Superblock, authority: &Superblock) -> bool {
    let known: Vec<Known> = active(authority)
        .filter(|(number, _)| *number != this.device_number)
        .map(|(number, role)| Known::of(this, number, role))
        .collect();
    let has = |one| known.contains(&one);
    let is_alone = has(Known::Dropped) || !has(Known::Successor);
    let went_on = contradict(this, authority) || !has(Known::Member) && is_alone;
    went_on && !Canary::AloneIsMerged.is_planted()
}

/// The numbers of the members that take part by this table, and their roles.
fn active(table: &Superblock) -> impl Iterator<Item = (u32, Role)> {
    let numbered = (0..).zip(table.roles.iter().copied());
    numbered.filter(|(_, role)| matches!(role, Role::Active(_)))
}

/// The entry of a member's table about another member that takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    /// It has this role.
    Member,
    /// It was let go of.
    Dropped,
    /// It came later, into a role that the table fills.
    Successor,
    /// It came later, into a role that was empty.
    Newcomer,
}

impl Known {
    fn of(table: &Superblock, number: u32, role: Role) -> Known {
        let own = table.device_number;
        // Numbers grow: one that is below those of members, or of a new array, is no newcomer's.
        let last = active(table).map(|(number, _)| number).max();
        let is_old = number < table.raid_disks || Some(number) <= last;
        let is_taken = active(table).any(|(number, there)| number != own && there == role);
        let has_others = active(table).any(|(number, _)| number != own);
        match table.roles.get(number as usize) {
            Some(known) if *known == role => Known::Member,
            Some(Role::Faulty) if is_old => Known::Dropped,
            // Of those that came later it may be a spare's.
            Some(Role::Spare) if number < table.raid_disks => Known::Dropped,
            _ if is_taken || (role == table.role() && has_others) => Known::Successor,
            _ => Known::Newcomer,
        }
    }
}

/// Returns true if two tables of an array give a number to members with different roles: then two halves of the
/// array each took in a device of their own.
fn contradict(one: &Superblock, other: &Superblock) -> bool {
    let differs = |(number, role): (u32, Role)| {
        let other = other.roles.get(number as usize);
        other.is_some_and(|other| matches!(other, Role::Active(_)) && *other != role)
    };
    one.raid_disks == other.raid_disks && active(one).any(differs)
}

/// Checks that a member that comes back to a running array, whose superblocks say `ours`, can be brought up to
/// date: its last write must be of a state that the present array has passed.
///
/// # Errors
/// [`Reason::Diverged`] if the member went on without them: it has more events, or calls all of them failed, or
/// gives the number of one to another; its own writes would be lost.
/// [`Reason::OtherShape`] if the array has changed its shape since: then it is a new member.
pub fn came_back(ours: &Superblock, theirs: &Superblock) -> Result<(), Reason> {
    let mut in_use = active(ours).filter(|(number, _)| *number != theirs.device_number);
    let knows_one = |(number, role)| theirs.roles.get(number as usize) == Some(&role);
    if theirs.events > ours.events || !in_use.any(knows_one) || contradict(ours, theirs) {
        let freshest = "the array's members".to_owned();
        return Err(Reason::Diverged { freshest, events: theirs.events });
    }
    same_shape(theirs, ours)
}

/// Returns true if `this` was left by a crash in the middle of a raid1's change of size, by members or by bytes
/// of each: the others are an event ahead, and all copies are at their old places.
fn did_not_hear_of_resize(this: &Superblock, authority: &Superblock) -> bool {
    this.level == Level::Raid1 && this.events.checked_add(1) == Some(authority.events)
}

/// Checks that a candidate describes the array that the freshest member describes.
pub(super) fn same_shape(this: &Superblock, authority: &Superblock) -> Result<(), Reason> {
    const SIZE: &str = "component size";
    const MEMBERS: &str = "number of members";
    type Show = fn(&Superblock) -> String;
    let compared: [(&'static str, Show); 8] = [
        ("metadata version", |array| array.version.to_string()),
        ("creation time", |array| array.created.seconds.to_string()),
        ("level", |array| array.level.to_string()),
        ("layout", |array| array.layout.to_string()),
        ("chunk", |array| array.chunk.to_string()),
        (SIZE, |array| array.component_size.to_string()),
        (MEMBERS, |array| array.raid_disks.to_string()),
        ("reshape position", |array| match array.reshape {
            Some(reshape) => reshape.position.to_string(),
            None => "none".to_owned(),
        }),
    ];
    for (what, show) in compared {
        let (own, freshest) = (show(this), show(authority));
        let is_size = what == SIZE || what == MEMBERS;
        if own != freshest && !(is_size && did_not_hear_of_resize(this, authority)) {
            return Err(Reason::OtherShape { what, own, freshest });
        }
    }
    Ok(())
}
