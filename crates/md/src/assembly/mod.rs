//! Assembly: the members of an array, its state, and whether it can be started.
//!
//! ```text
//!  candidates ──group──▶ Set (one UUID) ──assess──▶ Assembly
//!                                                    ├ slots: the members of the roles
//!                                                    ├ left_out: the others, and why
//!                                                    └ state, can_start, risks, next
//! ```
//!
//! The member whose superblock has the most events, the *freshest*, defines the array's state; its table of
//! roles decides which members still take part.
//!
//! Invariants
//! * The result depends on the candidates alone, not on the order in which they were found.
//! * No choice is made between members that contradict each other: the result is [`State::Conflicting`], with
//!   the next command.
//! * `force` takes in the freshest of the stale members, and only as many as the array needs; each one is a
//!   [`Risk`].
//!
//! Deliberately absent: I/O. Two labels of one device are recognised only by the members' identifiers.
//!
//! Source: Linux `drivers/md/md.c` (`analyze_sbs`, `super_1_load`, `super_1_validate`), mdadm's
//! `Assemble.c` (the order in which `--force` takes in stale devices; devices that report the
//! most recent one as failed).

mod history;
mod hole;
mod left_out;
mod members;
mod next;
mod state;
mod verdict;

pub use history::came_back;
pub use left_out::{LeftOut, Reason};
pub use members::{Member, Slot};
pub use next::{How, Next};
pub use state::{Absent, ClosedBy, Obstacle, ResyncDue, Risk, Start, State};

use braid_level::Raid0Layout;

use crate::stripe_log::Head;
use crate::{Level, Superblock, Uuid};
use members::Selection;

/// A device that carries a superblock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The user's name of it: a path.
    pub label: String,
    /// Its size in bytes.
    pub size: u64,
    /// The superblock.
    pub superblock: Superblock,
    /// Facts of the write-intent bitmap; `None` without one, or if it is damaged or older than the superblock.
    pub bitmap: Option<BitmapFacts>,
    /// The reason why an existing write-intent bitmap cannot be kept up to date.
    pub bitmap_trouble: Option<String>,
    /// The head of its stripe log; `None` without one that is sound and of this device.
    pub log_head: Option<Head>,
    /// Why what it holds of a log cannot be used: of the partial parity log, or of a stripe log
    /// whose head is not sound or not its own.
    pub log_trouble: Option<String>,
}

/// The facts of a write-intent bitmap for assembly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitmapFacts {
    /// Bits were cleared up to this event: a member that left later can come back by the bitmap.
    pub events_cleared: u64,
    /// Bytes for each bit.
    pub chunk: u64,
    /// Bits that are set.
    pub dirty: u64,
}

/// Options of an assembly.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// Take in stale members if the array cannot start without them, and start it even if a crash may have left
    /// parity that does not match.
    pub force: bool,
    /// Nothing will be written.
    pub read_only: bool,
    /// Start for writing also without members that the array was last seen with.
    pub degraded: bool,
    /// The layout of a raid0 over members of unequal sizes, if the superblock does not record it.
    pub raid0_layout: Option<Raid0Layout>,
    /// The levels that can be served.
    pub supported: &'a dyn Fn(Level) -> bool,
}

/// The candidates of one array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Set {
    /// The array's identifier.
    pub uuid: Uuid,
    /// The array's name as the freshest member has it, often `host:name`; may be empty.
    pub name: String,
    /// Another array that would have the same name.
    pub name_conflict: Option<Uuid>,
    candidates: Vec<Candidate>,
}

/// The verdict on a set of candidates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assembly {
    /// The candidate, by its index in [`Set::candidates`], that defines the array's state.
    pub freshest: usize,
    /// The member of each role.
    pub slots: Vec<Slot>,
    /// Members that are filled beside the holder of a role: role, member, filled bytes.
    pub replacements: Vec<(u16, Member, u64)>,
    /// Members that wait for another to fail.
    pub spares: Vec<Member>,
    /// The member with the journal.
    pub journal: Option<Member>,
    /// Candidates that take no part, with the reasons.
    pub left_out: Vec<LeftOut>,
    /// The array's size in bytes; `None` while members are missing that decide it.
    pub array_size: Option<u64>,
    /// The state of the whole.
    pub state: State,
    /// The way in which it can be started.
    pub can_start: Start,
    /// Risks that were accepted because of `force` or `read_only`.
    pub risks: Vec<Risk>,
    /// The next commands.
    pub next: Vec<Next>,
}

/// Sorts candidates by array: by name, then by UUID; each set's candidates by device number, then
/// by label.
#[must_use]
pub fn group(mut candidates: Vec<Candidate>) -> Vec<Set> {
    candidates.sort_by(|a, b| {
        let key = |candidate: &Candidate| {
            (candidate.superblock.array_uuid, candidate.superblock.device_number)
        };
        key(a).cmp(&key(b)).then_with(|| a.label.cmp(&b.label))
    });
    let mut sets: Vec<Set> = Vec::new();
    for candidate in candidates {
        let uuid = candidate.superblock.array_uuid;
        match sets.last_mut() {
            Some(set) if set.uuid == uuid => set.candidates.push(candidate),
            _ => sets.push(Set {
                uuid,
                name: String::new(),
                name_conflict: None,
                candidates: vec![candidate],
            }),
        }
    }
    for set in &mut sets {
        set.name = set.candidates[members::freshest(&set.candidates)].superblock.name.clone();
    }
    sets.sort_by(|a, b| (a.short_name(), a.uuid).cmp(&(b.short_name(), b.uuid)));
    let names: Vec<(String, Uuid)> =
        sets.iter().map(|set| (set.short_name().to_owned(), set.uuid)).collect();
    for set in &mut sets {
        let clash = |(name, uuid): &&(String, Uuid)| name == set.short_name() && *uuid != set.uuid;
        if !set.name.is_empty() {
            set.name_conflict = names.iter().find(clash).map(|(_, uuid)| *uuid);
        }
    }
    sets
}

impl Set {
    /// The name without the host that it belongs to: what the array is called where it runs.
    #[must_use]
    pub fn short_name(&self) -> &str {
        self.name.split_once(':').map_or(&self.name, |(_host, name)| name)
    }

    /// All members that were found; never empty.
    #[must_use]
    pub fn candidates(&self) -> &[Candidate] {
        &self.candidates
    }

    /// Decides which members take part and whether the array can be started.
    #[must_use]
    pub fn assess(&self, options: Options<'_>) -> Assembly {
        let mut selection = Selection::of(&self.candidates);
        let mut risks = Vec::new();
        if options.force {
            selection.take_in_stale(&self.candidates, &mut risks);
        }
        verdict::judge(self, selection, options, risks)
    }
}

/// `role 1`, or `roles 1, 2 and 5`.
#[must_use]
pub fn plural(roles: &[String], noun: &str) -> String {
    match roles {
        [] => format!("no {noun}"),
        [one] => format!("{noun} {one}"),
        [most @ .., last] => format!("{noun}s {} and {last}", most.join(", ")),
    }
}
