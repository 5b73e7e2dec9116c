//! Candidates that take no part, and why.

use crate::Role;

/// A candidate that takes no part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Its index in [`super::Set::candidates`].
    pub candidate: usize,
    /// The user's name of it.
    pub label: String,
    /// The reason.
    pub reason: Reason,
    /// The role that it can come back to by copying only what the bitmap says.
    pub re_add: Option<u16>,
}

/// Why a candidate takes no part.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// The array went on without it.
    #[error(
        "it is stale: {events} events against {freshest}, last written {behind} s before the freshest"
    )]
    Stale {
        /// Its events.
        events: u64,
        /// The freshest member's.
        freshest: u64,
        /// Seconds between the last writes of the two superblocks.
        behind: u64,
    },
    /// It and the freshest member each went on without the other.
    #[error("it went on by itself: it calls {freshest} failed, after {events} events")]
    Diverged {
        /// The freshest member's label.
        freshest: String,
        /// Its own events.
        events: u64,
    },
    /// The freshest member gives it another role than it claims.
    #[error("it claims role {claimed}, but {freshest} calls it {}", words(*now))]
    Disowned {
        /// The role in its own superblock.
        claimed: u16,
        /// The role in the freshest member's.
        now: Role,
        /// The freshest member's label.
        freshest: String,
    },
    /// It calls itself failed.
    #[error("it is marked as failed")]
    Faulty,
    /// It describes another array.
    #[error("its {what} is {own}, but the freshest member's is {freshest}")]
    OtherShape {
        /// Which value differs.
        what: &'static str,
        /// Its own.
        own: String,
        /// The freshest member's.
        freshest: String,
    },
    /// It cannot hold what the array needs of each member.
    #[error("it has {size} bytes for data, but the array uses {needed} of each member")]
    TooSmall {
        /// Its room for data in bytes.
        size: u64,
        /// The used size in bytes.
        needed: u64,
    },
    /// It is an older copy of another candidate.
    #[error("it is an older copy of {of}")]
    OldCopy {
        /// The newer one's label.
        of: String,
    },
    /// It cannot be told from another candidate.
    #[error("it is the same member as {of}, given twice or copied")]
    Duplicate {
        /// The other's label.
        of: String,
    },
    /// Another candidate has the role as well.
    #[error("it claims role {role}, which {other} has")]
    SameRole {
        /// The role.
        role: u16,
        /// The other's label.
        other: String,
        /// True if nothing tells which of the two is right.
        equal: bool,
    },
    /// Its role is beyond the array.
    #[error("it claims role {role} of an array with {raid_disks} members")]
    NoSuchRole {
        /// The role.
        role: u16,
        /// The array's members.
        raid_disks: u32,
    },
}

fn words(role: Role) -> String {
    match role {
        Role::Active(role) => format!("role {role}"),
        Role::Spare => "a spare, or removed".to_owned(),
        Role::Faulty => "failed".to_owned(),
        Role::Journal => "a journal".to_owned(),
    }
}
