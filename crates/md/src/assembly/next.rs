//! The next steps after a verdict.

use braid_level::Raid0Layout;
use braid_level::size::suffice;

use super::members::Selection;
use super::{Obstacle, Options, Set, Slot, Start, State};
use crate::Superblock;

/// A next step of an administrator; devices have the names under which they were read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Find out, without writing to a member, what the array can be read from.
    Rescue {
        /// The members that are here.
        members: Vec<String>,
    },
    /// Examine superblocks.
    Examine {
        /// The members.
        members: Vec<String>,
    },
    /// Assemble these members, and no others.
    Assemble {
        /// All of them.
        members: Vec<String>,
        /// The option.
        how: How,
    },
    /// Find members with these roles, and assemble them with those that are here.
    FindMembers {
        /// The members that are here.
        members: Vec<String>,
        /// The roles without a member.
        roles: Vec<u16>,
    },
    /// Take a member back, with a copy of the chunks in the bitmap only.
    ReAdd {
        /// The array's name, if it has one.
        array: Option<String>,
        /// The member.
        member: String,
    },
    /// Add a new member.
    Add {
        /// The array's name, if it has one.
        array: Option<String>,
    },
}

/// The option of an assembly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// No option.
    Normally,
    /// Stale members are taken in.
    Force,
    /// Nothing is written.
    ReadOnly,
    /// Members that the array counts on may be missing.
    Degraded,
    /// For a raid0 without a recorded layout, read-only.
    WithLayout(Raid0Layout),
}

/// Returns the next steps, the safest first.
pub(super) fn next(
    set: &Set,
    selection: &Selection,
    state: &State,
    can_start: Start,
    options: Options<'_>,
) -> Vec<Next> {
    let array = &set.candidates()[selection.freshest].superblock;
    let all: Vec<&str> = set.candidates().iter().map(|one| one.label.as_str()).collect();
    let owned = |labels: &[&str]| labels.iter().copied().map(str::to_owned).collect::<Vec<_>>();
    let assemble = |labels: &[&str], how| Next::Assemble { members: owned(labels), how };
    let without = |dropped: &[&str]| -> Vec<&str> {
        all.iter().copied().filter(|label| !dropped.contains(label)).collect()
    };
    let alone: Vec<&str> = selection.diverged().collect();
    let name = (!set.name.is_empty()).then(|| set.short_name().to_owned());
    let mut next = Vec::new();
    match state {
        State::Conflicting(labels) => {
            next.extend(labels.iter().map(|label| Next::Examine { members: vec![label.clone()] }));
        }
        State::Partial(absent) => {
            if !options.force {
                next.push(Next::Rescue { members: owned(&all) });
            }
            if !options.force && would_suffice_with_force(set, array) {
                next.push(assemble(&all, How::Force));
            }
            if !absent.missing.is_empty() {
                let roles = absent.missing.clone();
                next.push(Next::FindMembers { members: owned(&all), roles });
            }
        }
        State::Unsupported(obstacle)
            if obstacle.start() == Start::ReadOnly && !options.read_only =>
        {
            next.push(assemble(&all, How::ReadOnly));
        }
        State::Unsupported(Obstacle::LayoutNotRecorded) => {
            next.extend(
                [Raid0Layout::Alternate, Raid0Layout::Original]
                    .map(|layout| assemble(&all, How::WithLayout(layout))),
            );
        }
        State::Unsupported(_) => {}
        _ if can_start == Start::Refused && !alone.is_empty() => {
            next.push(assemble(&without(&alone), How::Normally));
            next.push(assemble(&alone, How::ReadOnly));
        }
        _ if can_start == Start::Refused => {
            next.push(assemble(&all, How::ReadOnly));
            next.push(assemble(&all, How::Force));
        }
        // Members that it counts on are not here: mdadm asks for `--run`.
        _ if can_start == Start::ReadOnly && !options.read_only => {
            next.push(assemble(&all, How::Degraded));
            next.push(assemble(&all, How::Force));
        }
        State::Degraded(absent) | State::DegradedDirty { absent, .. } => {
            let mut free = absent.missing.len().saturating_sub(selection.spares.len());
            for one in selection.left_out.iter().filter(|one| one.re_add.is_some()).take(free) {
                next.push(Next::ReAdd { array: name.clone(), member: one.label.clone() });
                free -= 1;
            }
            if free > 0 {
                next.push(Next::Add { array: name });
            }
        }
        _ => {}
    }
    next
}

fn would_suffice_with_force(set: &Set, array: &Superblock) -> bool {
    let mut forced = Selection::of(set.candidates());
    forced.take_in_stale(set.candidates(), &mut Vec::new());
    let present: Vec<bool> = forced.slots.iter().map(Slot::is_in_sync).collect();
    suffice(array.level, array.layout, &present)
}
