//! The wiring of a volume, without I/O: from the contents of members to the engine's setup.
//!
//! ```text
//!   bytes ──[`Carried::read`]──▶ superblock, bitmap, bad blocks, logs
//!                                        │ of all members
//!                                  [`assemble`]: `braid_md`'s verdict, and what follows from it
//!                                        │
//!                    Assembled: roles, states, bitmap, resync, log ──[`Assembled::setup`]──▶ Setup
//! ```
//!
//! | file | contents |
//! |---|---|
//! | `source` | access to the bytes of a member |
//! | `carried` | the contents of one member |
//! | `logs` | the logs among them, which close the write hole |
//! | `level` | the geometry that a superblock describes |
//! | `log_place` | the choice of the log for the whole array |
//! | `newcomer` | adding a device to a running array |
//!
//! The program that serves volumes and the simulator that crashes them both use this code, so the simulated
//! code is the code that serves.
//!
//! Invariants
//! * Metadata is used only after `braid_md` has checked it. A member that `braid_md` leaves out does not take
//!   part.
//! * If data may be wrong, the array is refused, with the next command, rather than started.
//!
//! Deliberately absent: files, locks on members, and volumes without superblocks.

mod carried;
mod level;
mod log_place;
mod logs;
mod newcomer;
mod source;

use std::io;
use std::rc::Rc;

use braid_array::{self as array, GeometryError, MemberByte};
use braid_level::Raid0Layout;
use braid_md::assembly::{
    self, Assembly, LeftOut, Member, Next, Reason, Set, Slot, Start, State, group,
};
use braid_md::{BadBlocks, Level as MdLevel, Resync, Role, Superblock};

use crate::canary::Canary;
use crate::redundant::{
    Layout, MemberState, NewMember, STRIPE_CACHE, Setup, Speed, StartingBitmap,
};
use crate::{Clock, Dev};

pub use carried::{Carried, CarriedError, bitmap_bytes};
pub use level::{Level, parity};
pub use log_place::{LogPlace, log_troubles};
pub use logs::{Logs, stripe_log_head};
pub use newcomer::{Admitted, Newcomer, NotTaken, areas_of_log};
pub use source::Source;

use carried::empty_log;

/// Reasons why members do not make an array that can be served.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// No member is given.
    #[error("no members are given")]
    NoMembers,
    /// The members belong to several arrays.
    #[error("{label} belongs to another array than {first}: {uuid} and {other}")]
    SeveralArrays {
        /// A member of another array.
        label: String,
        /// The first member that was given.
        first: String,
        /// The array of `first`.
        uuid: String,
        /// The array of `label`.
        other: String,
    },
    /// The state of the array does not allow a start.
    #[error("{what}: {state}")]
    State {
        /// The array in words.
        what: String,
        /// Its state, and other obstacles.
        state: String,
        /// The next commands.
        next: Vec<Next>,
        /// The array could be started without members that it had when last used.
        without_missing: bool,
    },
    /// No geometry fits the superblock.
    #[error("{what}: {source}")]
    Geometry {
        /// The array in words.
        what: String,
        /// The contradiction.
        source: GeometryError,
    },
}

/// Message for a degraded array that is started read-only after a crash.
const NOT_MADE_GOOD: &str = "it was being written when it was left, and its log makes that good \
                             only when it is brought up for writing: until then, what is worked \
                             out in place of a missing member may be wrong there";

/// Options of a start.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Nothing may be written.
    pub read_only: bool,
    /// Allows a start without members that the array had when last used.
    pub degraded: bool,
    /// The layout of a raid0 over members of unequal sizes, if the superblock does not record it.
    pub raid0_layout: Option<Raid0Layout>,
}

/// An array that can be started.
pub struct Assembled {
    /// The geometry.
    pub level: Level,
    /// The name of the array in messages.
    pub name: String,
    /// Defects that do not prevent a start.
    pub warnings: Vec<String>,
    /// Former members that lack later writes and can be brought up to date; true if the bitmap says which
    /// writes.
    pub left_out: Vec<(String, bool)>,
    /// The freshest superblock.
    pub superblock: Superblock,
    /// The members that take part, in the order of roles: first those that hold a role, then replacements, then
    /// spares.
    pub members: Vec<TakesPart>,
    /// The write-intent bitmap. A bit is set where copies, or data and parity, may differ.
    pub bitmap: Option<StartingBitmap>,
    /// The place from which on they may differ.
    pub resync: Resync,
    /// The log that closes the write hole.
    pub log: LogPlace,
    /// Nothing may be written.
    pub read_only: bool,
    /// The superblocks count on a member that does not take part, or kernels before 6.8 may believe that
    /// member: the membership is to be recorded at once ([`crate::redundant::Redundant::record`]).
    pub is_changed: bool,
}

/// A member that takes part.
pub struct TakesPart {
    /// The name of the member in messages.
    pub label: String,
    /// The superblock on the member.
    pub superblock: Superblock,
    /// Unusable places, in bytes from the start of the member.
    pub bad_blocks: BadBlocks,
    /// Number of bytes from the data's start that the array uses.
    pub usable: u64,
    /// The member's role, if it has one.
    pub role: Option<array::Role>,
    /// The member's state.
    pub state: MemberState,
    /// The member is filled beside the member that it replaces.
    pub replacement: bool,
    /// The member lacks only the chunks that the bitmap names.
    pub by_bitmap: bool,
}

/// Returns true if braid serves this level.
#[must_use]
pub fn is_served(level: MdLevel) -> bool {
    match level {
        MdLevel::Linear
        | MdLevel::Raid0
        | MdLevel::Raid1
        | MdLevel::Raid10
        | MdLevel::Raid4
        | MdLevel::Raid5
        | MdLevel::Raid6 => true,
    }
}

/// Decides which of `members` (each with its name for messages) take part, and in which role and state.
///
/// # Errors
/// [`Refusal`].
pub fn assemble(members: &[(String, &Carried)], options: Options) -> Result<Assembled, Refusal> {
    let sets = group(members.iter().map(|(label, one)| one.candidate(label.clone())).collect());
    let set = match &sets[..] {
        [] => return Err(Refusal::NoMembers),
        [set] => set,
        _ => return Err(several_arrays(members)),
    };
    let assess = |degraded| {
        let Options { read_only, raid0_layout, .. } = options;
        let supported = &is_served;
        set.assess(assembly::Options { force: false, read_only, degraded, raid0_layout, supported })
    };
    let verdict = assess(options.degraded);
    let needed = if options.read_only { Start::ReadOnly } else { Start::ReadWrite };
    let what = match set.short_name() {
        "" => format!("the array {}", set.uuid),
        name => format!("{name} ({})", set.uuid),
    };
    if verdict.can_start < needed {
        let state = state_in_words(set, &verdict);
        let without_missing = assess(true).can_start >= needed;
        return Err(Refusal::State { what, state, next: verdict.next, without_missing });
    }
    // The candidates of the set are in a different order.
    let of = |candidate: usize| -> &Carried {
        let label = &set.candidates()[candidate].label;
        let found = members.iter().find(|(one, _)| one == label);
        found.expect("a candidate is one of the members").1
    };
    let freshest = of(verdict.freshest);
    let sizes = verdict.slots.iter().filter_map(|slot| Some(slot.member()?.usable)).collect();
    let level = Level::of(&freshest.superblock, options.raid0_layout, sizes)
        .map_err(|source| Refusal::Geometry { what: what.clone(), source })?;
    let log = LogPlace::of(&freshest.superblock, set, &verdict, &of);
    let mut warnings = warnings_of(&what, set, &verdict, &log);
    if log_place::is_closed_by_log(&verdict.state) {
        if options.read_only {
            warnings.push(format!("{what}: {NOT_MADE_GOOD}"));
        } else if log == LogPlace::None {
            let state = "it was being written when it was left, members are missing, and not \
                         every member that is being filled has room for the stripe log; without \
                         the member that is being filled it can be brought up";
            let (state, next) = (state.to_owned(), Vec::new());
            return Err(Refusal::State { what, state, next, without_missing: false });
        }
    }
    let (bitmap, resync) = intent_of(freshest, &verdict, &of);
    let name = match set.short_name() {
        "" => set.uuid.to_string(),
        name => name.to_owned(),
    };
    let members = members_taking_part(&verdict, &of);
    let mut superblock = freshest.superblock.clone();
    superblock.set_resync(resync);
    let is_changed = counts_on_others(&freshest.superblock, &members) || disowns(&verdict);
    Ok(Assembled {
        level,
        name,
        warnings,
        left_out: left_out_of(&verdict),
        superblock,
        members,
        bitmap,
        resync,
        log,
        read_only: options.read_only,
        is_changed,
    })
}

/// Returns the state of an array that cannot be started, and what else stands in the way.
fn state_in_words(set: &Set, verdict: &Assembly) -> String {
    let mut state = verdict.state.to_string();
    for (label, why) in log_troubles(set, verdict) {
        state = format!("{state}; {label}: {why}");
    }
    for one in &verdict.left_out {
        state = format!("{state}; {} is left out: {}", one.label, one.reason);
    }
    state
}

/// Lists the defects of the array `what` that do not prevent a start.
fn warnings_of(what: &str, set: &Set, verdict: &Assembly, log: &LogPlace) -> Vec<String> {
    let mut warnings: Vec<String> =
        verdict.risks.iter().map(|risk| format!("{what}: {risk}")).collect();
    for left_out in &verdict.left_out {
        warnings.push(format!("{what}: {} takes no part: {}", left_out.label, left_out.reason));
    }
    for (label, why) in log_troubles(set, verdict) {
        let so = match log {
            LogPlace::Records { .. } => format!("the log of {label} begins anew"),
            _ => format!("{label} has a log that is not used"),
        };
        warnings.push(format!("{what}: {so}: {why}"));
    }
    warnings
}

impl Assembled {
    /// Returns the engine's setup of an array of this `layout`. `devs` are the whole devices of
    /// [`Assembled::members`]. `nonce` is called if the log needs a number that no earlier run had.
    ///
    /// # Errors
    /// The error of `nonce`.
    pub fn setup(
        &self,
        layout: Layout,
        devs: Vec<Dev>,
        clock: Rc<dyn Clock>,
        nonce: impl FnOnce() -> io::Result<u64>,
    ) -> io::Result<Setup> {
        let members = self.members.iter().zip(devs).map(|(member, dev)| NewMember {
            label: member.label.clone(),
            dev,
            data_offset: member.superblock.data_offset,
            number: member.superblock.device_number,
            role: member.role,
            replacement: member.replacement,
            state: member.state,
            by_bitmap: member.by_bitmap,
            write_mostly: member.superblock.write_mostly,
            superblock: Some(member.superblock.clone()),
            bad_blocks: member.bad_blocks.clone(),
        });
        Ok(Setup {
            layout,
            members: members.collect(),
            array: Some(self.superblock.clone()),
            bitmap: self.bitmap.clone(),
            resync: self.resync,
            log: self.log.setup(&self.superblock, nonce)?,
            stripe_cache: STRIPE_CACHE,
            read_only: self.read_only,
            clock,
            speed: Speed::default(),
        })
    }
}

fn several_arrays(members: &[(String, &Carried)]) -> Refusal {
    let uuid = |one: &Carried| one.superblock.array_uuid;
    let (first, of_first) = &members[0];
    let other = members.iter().find(|(_, one)| uuid(one) != uuid(of_first));
    let (label, other) = other.expect("several sets are of several arrays");
    Refusal::SeveralArrays {
        label: label.clone(),
        first: first.clone(),
        uuid: uuid(of_first).to_string(),
        other: uuid(other).to_string(),
    }
}

/// Returns the former members that lack later writes.
fn left_out_of(verdict: &Assembly) -> Vec<(String, bool)> {
    let is_late =
        |one: &&LeftOut| matches!(one.reason, Reason::Stale { .. } | Reason::Disowned { .. });
    let late = verdict.left_out.iter().filter(is_late);
    late.map(|one| (one.label.clone(), one.re_add.is_some())).collect()
}

/// Returns true if the superblocks count on a member that is not one of `members`.
fn counts_on_others(superblock: &Superblock, members: &[TakesPart]) -> bool {
    let takes_part =
        |number: usize| members.iter().any(|one| one.superblock.device_number as usize == number);
    let mut roles = superblock.roles.iter().enumerate();
    roles.any(|(number, role)| matches!(role, Role::Active(_)) && !takes_part(number))
}

/// Returns true if a member that is left out is at most one event behind.
fn disowns(verdict: &Assembly) -> bool {
    verdict.left_out.iter().any(|one| matches!(one.reason, Reason::Disowned { .. }))
}

/// Returns the bitmap that says where copies may differ, and the place from which on they may.
///
/// A bitmap has no checksum, and each member in sync has a copy. The copies are merged: a bit that is set in
/// one copy is set, and the latest `events_cleared` holds. A bit that rot cleared in one copy is not lost.
fn intent_of<'a>(
    freshest: &Carried,
    verdict: &Assembly,
    of: &impl Fn(usize) -> &'a Carried,
) -> (Option<StartingBitmap>, Resync) {
    let superblock = &freshest.superblock;
    // This holds even if only the freshest superblock says that writes may be under way.
    let is_clean = matches!(verdict.state, State::Clean | State::Degraded(_));
    let resync = if is_clean { Resync::Clean } else { superblock.resync };
    let in_sync = || {
        let in_sync = verdict.slots.iter().filter(|slot| slot.is_in_sync());
        in_sync.filter_map(|slot| Some(of(slot.member()?.candidate)))
    };
    let mut copies: Vec<&Carried> = std::iter::once(freshest).chain(in_sync()).collect();
    if Canary::OneBitmapBelieved.is_planted() {
        copies.truncate(1);
    }
    let Some(mut bitmap) = copies.iter().find_map(|one| one.bitmap.clone()) else {
        return (None, resync);
    };
    let mut known = true;
    for copy in copies.iter().filter_map(|one| Some((&one.superblock, one.bitmap.as_ref()?))) {
        // A bitmap that is older than its superblock lacks the bits of later writes.
        let (of, copy) = copy;
        let is_fresh = copy.header.events >= of.events && !copy.header.stale;
        known &= bitmap.join(copy) && is_fresh;
    }
    let degraded = verdict.slots.iter().any(|slot| !slot.is_in_sync());
    if !known && (resync != Resync::Clean || degraded) {
        bitmap.set_all();
    }
    bitmap.header.stale = false;
    // A crash between the pages of two members also leaves bits that one of them lacks.
    let has_the_same =
        |one: &Carried| one.bitmap.as_ref().is_some_and(|own| own.has_bits_of(&bitmap));
    let is_on_members = known && in_sync().all(has_the_same);
    (Some(StartingBitmap { bitmap, is_on_members }), resync)
}

/// Returns the state that a superblock gives by its `recovery_offset`.
fn filled_below(recovery_offset: u64) -> MemberState {
    MemberState::Recovering(MemberByte::new(recovery_offset))
}

fn members_taking_part<'a>(
    verdict: &Assembly,
    of: &impl Fn(usize) -> &'a Carried,
) -> Vec<TakesPart> {
    let spare = |member: &Member| {
        let carried = of(member.candidate);
        TakesPart {
            label: member.label.clone(),
            superblock: carried.superblock.clone(),
            bad_blocks: match &carried.bad_blocks {
                Some(known) => known.clone(),
                None => empty_log(&carried.superblock),
            },
            usable: member.usable,
            role: None,
            state: MemberState::Spare,
            replacement: false,
            by_bitmap: false,
        }
    };
    let mut members = Vec::new();
    for (role, slot) in array::Role::all(verdict.slots.len()).zip(&verdict.slots) {
        let role = Some(role);
        match slot {
            Slot::InSync(member) => {
                let state = MemberState::InSync;
                members.push(TakesPart { role, state, ..spare(member) });
            }
            Slot::Recovering { member, from, by_bitmap } => {
                let (state, by_bitmap) = (filled_below(*from), *by_bitmap);
                members.push(TakesPart { role, state, by_bitmap, ..spare(member) });
            }
            Slot::Missing => {}
        }
    }
    for (role, member, from) in &verdict.replacements {
        let (role, state) = (Some(array::Role::new(*role)), filled_below(*from));
        members.push(TakesPart { role, state, replacement: true, ..spare(member) });
    }
    members.extend(verdict.spares.iter().map(spare));
    members
}
