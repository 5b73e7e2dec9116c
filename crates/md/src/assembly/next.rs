//! Commands that lead on from a verdict.

use braid_level::Raid0Layout;
use braid_level::size::suffice;
use braid_shell::{shell_path, shell_word};

use super::members::Selection;
use super::verdict::{diverged, plural};
use super::{Obstacle, Options, Set, Slot, Start, State};
use crate::Superblock;

/// Commands that lead on from here.
pub(super) fn next(
    set: &Set,
    selection: &Selection,
    state: &State,
    can_start: Start,
    options: Options<'_>,
) -> Vec<String> {
    let array = &set.candidates()[selection.freshest].superblock;
    let all: Vec<&str> = set.candidates().iter().map(|one| one.label.as_str()).collect();
    let assemble = |labels: &[&str], flag: &str| {
        let labels: Vec<String> = labels.iter().map(shell_path).collect();
        format!("braid assemble {}{flag}", labels.join(" "))
    };
    let without = |dropped: &[&str]| -> Vec<&str> {
        all.iter().copied().filter(|label| !dropped.contains(label)).collect()
    };
    let alone: Vec<&str> = diverged(selection).collect();
    let name = if set.name.is_empty() { "NAME".to_owned() } else { shell_word(set.short_name()) };
    let mut next = Vec::new();
    match state {
        State::Conflicting(labels) => {
            next.extend(labels.iter().map(|label| format!("braid examine {}", shell_path(label))));
        }
        State::Partial(absent) => {
            if !options.force && would_suffice_with_force(set, array) {
                next.push(assemble(&all, " --force"));
            }
            let roles: Vec<String> = absent.missing.iter().map(u16::to_string).collect();
            if !roles.is_empty() {
                next.push(format!(
                    "braid assemble {} DEVICE..   (with {})",
                    all.iter().map(shell_path).collect::<Vec<_>>().join(" "),
                    plural(&roles, "role")
                ));
            }
        }
        State::Unsupported(obstacle)
            if obstacle.start() == Start::ReadOnly && !options.read_only =>
        {
            next.push(assemble(&all, " --read-only"));
        }
        State::Unsupported(Obstacle::LayoutNotRecorded) => {
            next.extend(
                [Raid0Layout::Alternate, Raid0Layout::Original]
                    .map(|layout| assemble(&all, &format!(" --layout {layout} --read-only"))),
            );
        }
        State::Unsupported(_) => {}
        _ if can_start == Start::Refused && !alone.is_empty() => {
            next.push(assemble(&without(&alone), ""));
            next.push(assemble(&alone, " --read-only"));
        }
        _ if can_start == Start::Refused => {
            next.push(assemble(&all, " --read-only"));
            next.push(assemble(&all, " --force"));
        }
        // Members that it counts on are not here: mdadm asks for `--run`.
        _ if can_start == Start::ReadOnly && !options.read_only => {
            next.push(assemble(&all, " --degraded"));
            next.push(assemble(&all, " --force"));
        }
        State::Degraded(absent) | State::DegradedDirty { absent, .. } => {
            let mut free = absent.missing.len().saturating_sub(selection.spares.len());
            for one in selection.left_out.iter().filter(|one| one.re_add.is_some()).take(free) {
                next.push(format!("braid member re-add {name} {}", shell_path(&one.label)));
                free -= 1;
            }
            if free > 0 {
                next.push(format!("braid member add {name} DEVICE"));
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
