//! Which members make an array, what state it is in, and whether it can be started.
//!
//! ```text
//!  candidates ──group──▶ Set (one UUID) ──assess──▶ Assembly
//!                                                    ├ slots: who has which role
//!                                                    ├ left_out: who has none, and why
//!                                                    └ state, can_start, risks, next
//! ```
//!
//! The member whose superblock counts the most events, the *freshest*, tells the array's state;
//! its table of roles decides who still takes part.
//!
//! Invariants
//! * The answer depends on the candidates alone, not on the order in which they were found.
//! * No choice is made between members that contradict each other: the answer is
//!   [`State::Conflicting`], with what to do next.
//! * `force` takes in the freshest of the stale, and only as many as it needs; each one is a
//!   [`Risk`].
//!
//! Deliberately absent: I/O. Whether two labels are the same device is seen by the members'
//! identifiers alone.
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
    /// What the user calls it: a path.
    pub label: String,
    /// Its size in bytes.
    pub size: u64,
    /// What it says.
    pub superblock: Superblock,
    /// What its write-intent bitmap says; `None` without one, or if it is damaged or older than
    /// the superblock.
    pub bitmap: Option<BitmapFacts>,
    /// Why its write-intent bitmap cannot be kept up to date, if it has one like that.
    pub bitmap_trouble: Option<String>,
    /// The head of its stripe log; `None` without one that is sound and of this device.
    pub log_head: Option<Head>,
    /// Why what it holds of a log cannot be used: of the partial parity log, or of a stripe log
    /// whose head is not sound or not its own.
    pub log_trouble: Option<String>,
}

/// What assembly needs to know of a write-intent bitmap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitmapFacts {
    /// Bits were cleared up to this event: whoever left later can come back by the bitmap.
    pub events_cleared: u64,
    /// Bytes for each bit.
    pub chunk: u64,
    /// Bits that are set.
    pub dirty: u64,
}

/// How to assemble.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// Take in stale members where the array cannot start without, and start it where a crash
    /// may have left parity that does not match.
    pub force: bool,
    /// Nothing will be written.
    pub read_only: bool,
    /// Start for writing also without members that the array was last seen with.
    pub degraded: bool,
    /// How a raid0 over members of unequal sizes was laid out, where that is not recorded.
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

/// What a set of candidates is good for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assembly {
    /// The candidate, by its index in [`Set::candidates`], that tells the array's state.
    pub freshest: usize,
    /// Who has each role.
    pub slots: Vec<Slot>,
    /// Who is being filled beside the holder of a role: role, member, up to where in bytes.
    pub replacements: Vec<(u16, Member, u64)>,
    /// Who waits for a member to fail.
    pub spares: Vec<Member>,
    /// Who holds the journal.
    pub journal: Option<Member>,
    /// Who takes no part, and why.
    pub left_out: Vec<LeftOut>,
    /// The array's size in bytes; `None` while members are missing that decide it.
    pub array_size: Option<u64>,
    /// The state of the whole.
    pub state: State,
    /// Whether it can be started.
    pub can_start: Start,
    /// What was accepted because of `force` or `read_only`.
    pub risks: Vec<Risk>,
    /// Commands that lead on.
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

    /// Decides who takes part and whether the array can be started.
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
