//! The superblocks by which md assembles an array as a stack expression reads it.
//!
//! ```text
//!   expression ──▶ Geometry: a part of a member for each role ─┐
//!   superblocks that are left ──▶ UUID, name, creation time ───┴─▶ Plan: new superblocks, older ones that go
//!                                                                    └──▶ mdadm: the command that does the same
//! ```
//!
//! Invariants
//! * Nothing is written here. The one command that writes takes the bytes of [`Plan::writes`].
//! * No new superblock shares a byte with the data of the array, and the data stay where they are.
//! * A role is given only to a member that is read without a hole.
//!
//! Deliberately absent: bitmaps and logs. The copies, or data and parity, are called in agreement.

mod geometry;
mod mdadm;
mod place;
mod plan;
#[cfg(test)]
mod tests;

use braid_md::{Level, Rejection};

pub use geometry::{Geometry, Part};
pub use plan::{Identity, Plan, Planned, Write, plan};

/// Why no superblocks can be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// The expression is not one array over parts of files and devices.
    #[error(
        "{0} is not one array over files and devices, so that no set of superblocks describes it"
    )]
    NoArray(String),
    /// A member has holes.
    #[error(
        "{0} has bytes that are not read: md would take them for good, and hand out what lies there"
    )]
    Holes(String),
    /// Too few members.
    #[error("{level} of {disks} does not start without its roles {}", join(.roles))]
    TooFew {
        /// The level.
        level: Level,
        /// The number of roles.
        disks: usize,
        /// The roles without a member that may be taken as good.
        roles: Vec<usize>,
    },
    /// A member has a list of blocks that it does not hold.
    #[error("{0} has a log of bad blocks with entries, which new superblocks would lose")]
    BadBlocks(String),
    /// The superblock that is kept has a feature that braid does not know.
    #[error("the superblock of {0} uses features that this braid does not know")]
    Unknown(String),
    /// The case has no such member.
    #[error("{0} is not a member of the case")]
    NoMember(String),
    /// No version of the superblock has room beside the data.
    #[error("no superblock has room on {label} beside the data: {why}")]
    NoRoom {
        /// The member.
        label: String,
        /// The reason of the version that was tried last.
        why: Rejection,
    },
    /// `mdadm --create` would place the data elsewhere.
    #[error("`mdadm --create` cannot do this: {0}")]
    NotByMdadm(&'static str),
}

fn join(roles: &[usize]) -> String {
    roles.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
}
