//! What state an array is in, whether it can be started, and what to do next.
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

use super::members::{Member, Reason, Selection, Slot};
use super::{Assembly, Options, Set, next, plural};
use crate::{Features, Level, Resync, Role, Superblock};

/// The state of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// All members are in sync, and the copies agree.
    Clean,
    /// All members are in sync, but a crash left copies that may not agree.
    Dirty(ResyncDue),
    /// Members are missing, but all data is there.
    Degraded(Absent),
    /// The same after a crash.
    DegradedDirty {
        /// Who is not in sync.
        absent: Absent,
        /// What is to be resynced.
        resync: ResyncDue,
        /// Parity may not match the data that was being written, so that what is computed in
        /// place of a missing member may be wrong.
        write_hole: bool,
        /// What closes the write hole.
        log: Option<ClosedBy>,
    },
    /// Too few members for all data.
    Partial(Absent),
    /// Members that contradict each other: their labels.
    Conflicting(Vec<String>),
    /// Complete, but of a kind that cannot be served, or not for writing.
    Unsupported(Obstacle),
}

/// A log that makes parity match the data again after a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClosedBy {
    /// md's partial parity log ([`ppl`](crate::ppl)).
    Ppl,
    /// The stripe log ([`stripe_log`](crate::stripe_log)), on every member that is in sync, and
    /// not older than the array.
    StripeLog,
}

/// The roles that nobody fills.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Absent {
    /// Roles without a member.
    pub missing: Vec<u16>,
    /// Roles whose member is being rebuilt.
    pub recovering: Vec<u16>,
    /// How many members the array has.
    pub raid_disks: usize,
}

/// What a resync has to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResyncDue {
    /// From where on, in bytes (of the array for raid10, of each member otherwise).
    pub from: u64,
    /// Only these chunks, if there is a bitmap: how many, of how many bytes.
    pub chunks: Option<(u64, u64)>,
}

/// Why an array cannot be served, or not for writing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Obstacle {
    /// The level.
    #[error("{0} is not served")]
    Level(Level),
    /// The layout.
    #[error("layout {layout:#x} of {level} is not known")]
    Layout {
        /// Of which level.
        level: Level,
        /// md's number.
        layout: u32,
    },
    /// raid0 over members of unequal sizes without a record of how it was laid out.
    #[error(
        "the members differ in size, and which of raid0's two layouts was used is not recorded: \
         alternate, which Linux has since 3.14, or original, which it had before; by the wrong one \
         everything behind the shortest member's end is in the wrong order, so that a file system \
         check that only reads (fsck -n) finds errors, and by the right one none"
    )]
    LayoutNotRecorded,
    /// A layout of raid0 is given to an array that says another, or is no raid0.
    #[error("the layout {given} was given, and the superblocks say {recorded}")]
    LayoutGiven {
        /// What was given.
        given: Raid0Layout,
        /// The layout that is recorded, or the level.
        recorded: String,
    },
    /// Feature bits that nobody knows, or something where nothing is known to be.
    #[error("{label} uses something unknown (feature bits {bits:#x}): somebody newer wrote it")]
    UnknownFeatures {
        /// Whose superblock.
        label: String,
        /// The unknown bits; none if it is in the padding.
        bits: u32,
    },
    /// A reshape is under way.
    #[error("a reshape is under way, at {position} bytes of the array")]
    Reshape {
        /// Up to where it got, in bytes of the array.
        position: u64,
        /// Whether data lies in the same place before and behind that position.
        readable: bool,
    },
    /// A journal device may hold data that the members do not.
    #[error("it has a write journal, which may hold newer data than the members")]
    Journal,
    /// Other machines may be writing.
    #[error("it is clustered: other machines may be writing to it")]
    Clustered,
}

impl Obstacle {
    /// What it allows.
    #[must_use]
    pub fn start(&self) -> Start {
        match self {
            Obstacle::UnknownFeatures { .. }
            | Obstacle::Clustered
            | Obstacle::Reshape { readable: true, .. } => Start::ReadOnly,
            _ => Start::Refused,
        }
    }
}

/// Whether an array can be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Start {
    /// No.
    Refused,
    /// Nothing may be written.
    ReadOnly,
    /// Yes.
    ReadWrite,
}

/// What was accepted although it may lose or damage data.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Risk {
    /// A stale member was taken in.
    #[error(
        "{label} (role {role}) is taken in with {events} events against {freshest}: what was written since is old there"
    )]
    StaleMember {
        /// Who.
        label: String,
        /// As what.
        role: u16,
        /// Its events.
        events: u64,
        /// The freshest member's.
        freshest: u64,
    },
    /// Degraded and dirty parity.
    #[error("what is computed in place of a missing member may be wrong where the crash came")]
    WriteHole,
    /// Another member went on alone.
    #[error("{label} went on by itself: what was written there is given up")]
    Diverged {
        /// Who.
        label: String,
    },
    /// Members that the array was last seen with are not here, and will have to be rebuilt.
    #[error("role {role} was there when the array was last written: without it, it becomes stale")]
    LeftBehind {
        /// Whose.
        role: u16,
    },
}

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

/// What stands against serving the array, however complete it is.
fn obstacle(set: &Set, selection: &Selection, options: Options<'_>) -> Option<Obstacle> {
    let array = &set.candidates()[selection.freshest].superblock;
    let (level, layout) = (array.level, array.layout);
    // Those that allow nothing first.
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
    let taking_part = selection.slots.iter().filter_map(Slot::member);
    let mut superblocks = taking_part.map(|member| &set.candidates()[member.candidate]);
    let strange = superblocks.find(|candidate| candidate.superblock.has_unknown())?;
    let bits = strange.superblock.features.unknown().0;
    Some(Obstacle::UnknownFeatures { label: strange.label.clone(), bits })
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
            State::DegradedDirty { absent, resync, write_hole, log }
        }
    }
}

/// The log that an array with parity has. It counts if all members in sync have one that can be
/// used: what one of them lacks may have been what was being written.
fn closed_by(set: &Set, selection: &Selection) -> Option<ClosedBy> {
    let array = &set.candidates()[selection.freshest].superblock;
    let is_current = |member: &Member| {
        let head = set.candidates()[member.candidate].log_head.as_ref();
        head.is_some_and(|head| head.check_current(array.events, array.updated).is_ok())
    };
    let is_usable = |member: &Member| set.candidates()[member.candidate].log_trouble.is_none();
    let mut in_sync = selection.slots.iter().filter_map(|slot| match slot {
        Slot::InSync(member) => Some(member),
        Slot::Recovering { .. } | Slot::Missing => None,
    });
    if array.ppl.is_some() {
        return in_sync.all(is_usable).then_some(ClosedBy::Ppl);
    }
    let area = |member: &Member| {
        let head = set.candidates()[member.candidate].log_head.as_ref();
        head.map(|head| head.area)
    };
    let members: Vec<&Member> = in_sync.collect();
    let is_one_log = members.windows(2).all(|pair| area(pair[0]) == area(pair[1]));
    let is_whole = is_one_log && members.into_iter().all(is_current);
    is_whole.then_some(ClosedBy::StripeLog)
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

/// Those that went on alone.
pub(super) fn diverged(selection: &Selection) -> impl Iterator<Item = &str> {
    let alone = |reason: &Reason| matches!(reason, Reason::Diverged { .. });
    selection.left_out.iter().filter(move |one| alone(&one.reason)).map(|one| one.label.as_str())
}

/// The roles that are missing, though the freshest member's table has somebody for them.
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
    for label in diverged(selection) {
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
    /// Those who hold data, in the order of their roles.
    pub fn members(&self) -> impl Iterator<Item = &Member> {
        self.slots.iter().filter_map(Slot::member)
    }
}

impl fmt::Display for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let there = self.raid_disks - self.missing.len() - self.recovering.len();
        write!(f, "{there} of {} members in sync", self.raid_disks)?;
        for (roles, what) in [(&self.missing, "missing"), (&self.recovering, "being rebuilt")] {
            if !roles.is_empty() {
                let roles: Vec<String> = roles.iter().map(u16::to_string).collect();
                write!(f, "; {} {what}", plural(&roles, "role"))?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for ResyncDue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.chunks {
            Some((dirty, chunk)) => write!(f, "resync of {dirty} chunks of {chunk} bytes is due"),
            None if self.from == 0 => f.write_str("resync of all is due"),
            None => write!(f, "resync from byte {} on is due", self.from),
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            State::Clean => f.write_str("clean"),
            State::Dirty(resync) => write!(f, "dirty: {resync}"),
            State::Degraded(absent) => write!(f, "degraded: {absent}"),
            State::DegradedDirty { absent, resync, write_hole, log } => {
                write!(f, "degraded and dirty: {absent}; {resync}")?;
                if *write_hole {
                    f.write_str("; parity may not match the data (write hole)")?;
                }
                match log {
                    Some(ClosedBy::Ppl) => {
                        f.write_str("; the partial parity log closes the write hole")
                    }
                    Some(ClosedBy::StripeLog) => {
                        f.write_str("; the stripe log closes the write hole")
                    }
                    None => Ok(()),
                }
            }
            State::Partial(absent) => write!(f, "too few members: {absent}"),
            State::Conflicting(labels) => {
                write!(f, "conflicting: {} contradict each other", labels.join(" and "))
            }
            State::Unsupported(obstacle) => write!(f, "unsupported: {obstacle}"),
        }
    }
}

impl fmt::Display for Start {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Start::Refused => "cannot be started",
            Start::ReadOnly => "can be started read-only",
            Start::ReadWrite => "can be started",
        })
    }
}

impl fmt::Display for Assembly {
    /// The verdict in one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.state, self.can_start)
    }
}
