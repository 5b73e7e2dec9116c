//! The verdict: the state of an array, the way in which it can be started, and the next steps.
//!
//! | state | for writing | read-only |
//! |---|---|---|
//! | clean, dirty | yes | yes |
//! | degraded, known to the array | yes | yes |
//! | degraded, not known to it | `degraded` or `force` | yes |
//! | degraded and dirty, mirrors | as degraded | yes |
//! | degraded and dirty, parity with a log | as degraded | yes |
//! | degraded and dirty, parity without a log | `force` | if asked for |
//! | two sides that went on alone | `force` takes the freshest | if asked for |
//! | partial, or members that contradict each other | no | no |

use std::fmt;

use braid_level::size::array_size;
use braid_level::{Raid0Layout, layout};

use super::hole::{closed_by, was_never_written};
use super::left_out::Reason;
use super::members::{Member, Selection, Slot};
use super::state::{Absent, Obstacle, ResyncDue, Risk, Start, State};
use super::{Assembly, Candidate, Options, Set, next};
use crate::{Features, Level, Resync, Role, Superblock};

/// An array with as many events is not written: its count would reach the limit of a superblock, and no member could
/// be read again. From here to there are 2^62 changes, so an array that is served does not come that far.
const MOST_EVENTS: u64 = 1 << 62;

/// Puts everything together.
pub(super) fn judge(
    set: &Set,
    selection: Selection,
    options: Options<'_>,
    mut risks: Vec<Risk>,
) -> Assembly {
    let candidates = set.candidates();
    let array = &candidates[selection.freshest].superblock;
    let obstacle = obstacle(set, &selection, options);
    let state = state(set, &selection, obstacle);
    let can_start = start(array, &selection, &state, options, &mut risks);
    let next = next::next(set, &selection, &state, can_start, options);
    let usable: Option<Vec<u64>> = match array.level {
        Level::Linear | Level::Raid0 => {
            selection.slots.iter().map(|slot| slot.member().map(|member| member.usable)).collect()
        }
        _ => Some(vec![array.component_size; selection.slots.len()]),
    };
    let size = |usable: Vec<u64>| array_size(array.level, array.layout, array.chunk, &usable);
    let Selection { freshest, slots, replacements, spares, journal, left_out } = selection;
    Assembly {
        freshest,
        array_size: usable.and_then(size),
        slots,
        replacements,
        spares,
        journal,
        left_out,
        state,
        can_start,
        risks,
        next,
    }
}

/// Returns the obstacle to serving the array, however complete it is.
fn obstacle(set: &Set, selection: &Selection, options: Options<'_>) -> Option<Obstacle> {
    let array = &set.candidates()[selection.freshest].superblock;
    let (level, layout) = (array.level, array.layout);
    // Obstacles that allow no start first.
    if !(options.supported)(level) {
        return Some(Obstacle::Level(level));
    }
    if !layout::is_sound(level, layout, array.raid_disks) {
        return Some(Obstacle::Layout { level, layout });
    }
    let recorded = match level {
        Level::Raid0 => Raid0Layout::from_number(layout).map(|layout| layout.to_string()),
        other => Some(other.to_string()),
    };
    if let (Some(given), Some(recorded)) = (options.raid0_layout, recorded)
        && given.name() != recorded
    {
        return Some(Obstacle::LayoutGiven { given, recorded });
    }
    if level == Level::Raid0 && layout == 0 && options.raid0_layout.is_none() {
        let mut sizes = selection.slots.iter().filter_map(Slot::member).map(|m| m.usable);
        let first = sizes.next();
        if sizes.any(|size| Some(size) != first) {
            return Some(Obstacle::LayoutNotRecorded);
        }
    }
    if array.features.contains(Features::JOURNAL) {
        return Some(Obstacle::Journal);
    }
    if let Some(reshape) = array.reshape {
        // A mirror's data lies in the same place whatever the number of its members.
        let readable =
            level == Level::Raid1 && reshape.new_level == level.number() && reshape.new_offset == 0;
        return Some(Obstacle::Reshape { position: reshape.position, readable });
    }
    if array.features.contains(Features::CLUSTERED) {
        return Some(Obstacle::Clustered);
    }
    if array.events >= MOST_EVENTS {
        return Some(Obstacle::Events(array.events));
    }
    let taking_part = selection.slots.iter().filter_map(Slot::member);
    let mut superblocks = taking_part.map(|member| &set.candidates()[member.candidate]);
    if let Some(strange) = superblocks.find(|candidate| candidate.superblock.has_unknown()) {
        let bits = strange.superblock.features.unknown().0;
        return Some(Obstacle::UnknownFeatures { label: strange.label.clone(), bits });
    }
    let Candidate { label, bitmap_trouble, .. } = &set.candidates()[selection.freshest];
    let why = bitmap_trouble.clone().filter(|_| !options.read_only)?;
    // Each member in sync has a copy of it: another one will do.
    let in_sync = selection.slots.iter().filter(|slot| slot.is_in_sync());
    let mut in_sync = in_sync.filter_map(Slot::member);
    let has_copy = |member: &Member| set.candidates()[member.candidate].bitmap.is_some();
    let is_lost = !in_sync.any(has_copy);
    is_lost.then(|| Obstacle::Bitmap { label: label.clone(), why })
}

fn state(set: &Set, selection: &Selection, obstacle: Option<Obstacle>) -> State {
    let array = &set.candidates()[selection.freshest].superblock;
    let contradicting = contradicting(selection);
    if !contradicting.is_empty() {
        return State::Conflicting(contradicting);
    }
    let roles = |wanted: fn(&Slot) -> bool| {
        let matching = selection.slots.iter().enumerate().filter(|(_, slot)| wanted(slot));
        matching.map(|(role, _)| role as u16).collect::<Vec<u16>>()
    };
    let absent = Absent {
        missing: roles(|slot| *slot == Slot::Missing),
        recovering: roles(|slot| matches!(slot, Slot::Recovering { .. })),
        raid_disks: selection.slots.len(),
    };
    let understood = !matches!(obstacle, Some(Obstacle::Layout { .. }));
    if understood && !selection.suffices(array) {
        return State::Partial(absent);
    }
    if let Some(obstacle) = obstacle {
        return State::Unsupported(obstacle);
    }
    let is_degraded = !absent.missing.is_empty() || !absent.recovering.is_empty();
    match (is_degraded, resync_due(set, selection.freshest)) {
        (false, None) => State::Clean,
        (false, Some(resync)) => State::Dirty(resync),
        (true, None) => State::Degraded(absent),
        (true, Some(resync)) => {
            let has_parity = matches!(array.level, Level::Raid4 | Level::Raid5 | Level::Raid6);
            let log = if has_parity { closed_by(set, selection) } else { None };
            let write_hole = has_parity && log.is_none();
            if write_hole && was_never_written(set, selection) {
                return State::Degraded(absent);
            }
            State::DegradedDirty { absent, resync, write_hole, log }
        }
    }
}

/// Those between which nothing decides.
fn contradicting(selection: &Selection) -> Vec<String> {
    let mut labels: Vec<String> = Vec::new();
    for left_out in &selection.left_out {
        if let Reason::Duplicate { of: other } | Reason::SameRole { other, equal: true, .. } =
            &left_out.reason
        {
            labels.extend([other.clone(), left_out.label.clone()]);
        }
    }
    labels.sort();
    labels.dedup();
    labels
}

fn resync_due(set: &Set, freshest: usize) -> Option<ResyncDue> {
    let candidate = &set.candidates()[freshest];
    match candidate.superblock.resync {
        Resync::From(from) if candidate.superblock.level.is_redundant() => {
            let chunks = candidate.bitmap.map(|bitmap| (bitmap.dirty, bitmap.chunk));
            Some(ResyncDue { from, chunks })
        }
        _ => None,
    }
}

/// Returns the missing roles that have a member in the freshest member's table.
fn left_behind(array: &Superblock, selection: &Selection) -> Vec<u16> {
    let is_missing = |role: &u16| selection.slots[usize::from(*role)] == Slot::Missing;
    (0..selection.slots.len() as u16)
        .filter(|role| is_missing(role) && array.roles.contains(&Role::Active(*role)))
        .collect()
}

fn start(
    array: &Superblock,
    selection: &Selection,
    state: &State,
    options: Options<'_>,
    risks: &mut Vec<Risk>,
) -> Start {
    let most = if options.read_only { Start::ReadOnly } else { Start::ReadWrite };
    let allowed = match state {
        State::Conflicting(_) | State::Partial(_) => return Start::Refused,
        State::Unsupported(obstacle) => obstacle.start(),
        _ => Start::ReadWrite,
    };
    for label in selection.diverged() {
        if !options.force && !options.read_only {
            return Start::Refused;
        }
        risks.push(Risk::Diverged { label: label.to_owned() });
    }
    if matches!(state, State::DegradedDirty { write_hole: true, .. }) {
        if !options.force && !options.read_only {
            return Start::Refused;
        }
        risks.push(Risk::WriteHole);
    }
    let left_behind = left_behind(array, selection);
    if left_behind.is_empty() || options.read_only {
        return most.min(allowed);
    }
    if !options.force && !options.degraded {
        return Start::ReadOnly.min(allowed);
    }
    risks.extend(left_behind.into_iter().map(|role| Risk::LeftBehind { role }));
    most.min(allowed)
}

impl Assembly {
    /// Returns the members with data, in the order of their roles.
    pub fn members(&self) -> impl Iterator<Item = &Member> {
        self.slots.iter().filter_map(Slot::member)
    }
}

impl fmt::Display for Assembly {
    /// The verdict in one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.state, self.can_start)
    }
}
