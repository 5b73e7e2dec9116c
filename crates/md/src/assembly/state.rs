//! The names of an array's states, the obstacles to serving it, and the risks of a start.

use std::fmt;

use braid_level::Raid0Layout;

use super::plural;
use crate::Level;

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
        /// The roles that are not in sync.
        absent: Absent,
        /// The resync that is due.
        resync: ResyncDue,
        /// Parity may not match data that was being written, so that reconstructed data of a missing member may
        /// be wrong.
        write_hole: bool,
        /// The log that closes the write hole.
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

/// The roles without a member in sync.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Absent {
    /// Roles without a member.
    pub missing: Vec<u16>,
    /// Roles whose member is being rebuilt.
    pub recovering: Vec<u16>,
    /// Number of members of the array.
    pub raid_disks: usize,
}

/// The range of a resync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResyncDue {
    /// Start in bytes (of the array for raid10, of each member otherwise).
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
        /// The level.
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
        /// The given layout.
        given: Raid0Layout,
        /// The layout that is recorded, or the level.
        recorded: String,
    },
    /// Unknown feature bits, or data in bytes that must be zero.
    #[error("{label} uses something unknown (feature bits {bits:#x}): a newer program wrote it")]
    UnknownFeatures {
        /// The member.
        label: String,
        /// The unknown bits; none if it is in the padding.
        bits: u32,
    },
    /// Writes must be in the bitmap; otherwise the next user of the bitmap loses data.
    #[error("the write-intent bitmap of {label} cannot be kept up to date: {why}")]
    Bitmap {
        /// The member with the bitmap: the freshest.
        label: String,
        /// The fault.
        why: String,
    },
    /// A reshape is under way.
    #[error("a reshape is under way, at {position} bytes of the array")]
    Reshape {
        /// Up to where it got, in bytes of the array.
        position: u64,
        /// True if data lies in the same place before and behind that position.
        readable: bool,
    },
    /// A journal device may hold data that the members do not.
    #[error("it has a write journal, which may hold newer data than the members")]
    Journal,
    /// Other machines may be writing.
    #[error("it is clustered: other machines may be writing to it")]
    Clustered,
    /// The next events would exceed what a superblock may count.
    #[error("the event count is {0}, and an array is written only while it is below 2^62")]
    Events(u64),
}

impl Obstacle {
    /// Returns the start that it allows.
    #[must_use]
    pub fn start(&self) -> Start {
        match self {
            Obstacle::UnknownFeatures { .. }
            | Obstacle::Clustered
            | Obstacle::Events(_)
            | Obstacle::Bitmap { .. }
            | Obstacle::Reshape { readable: true, .. } => Start::ReadOnly,
            _ => Start::Refused,
        }
    }
}

/// The way in which an array can be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Start {
    /// No.
    Refused,
    /// Nothing may be written.
    ReadOnly,
    /// Yes.
    ReadWrite,
}

/// A risk of lost or damaged data that was accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Risk {
    /// A stale member was taken in.
    #[error(
        "{label} (role {role}) is taken in with {events} events against {freshest}: what was written since is old there"
    )]
    StaleMember {
        /// The member.
        label: String,
        /// The role.
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
        /// The member.
        label: String,
    },
    /// Members that the array was last seen with are not here, and will have to be rebuilt.
    #[error("role {role} was there when the array was last written: without it, it becomes stale")]
    LeftBehind {
        /// Whose.
        role: u16,
    },
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
