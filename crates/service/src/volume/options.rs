//! Options with which a stack is opened: permissions, and known facts about its members.

use std::path::PathBuf;

use braid_device::Access;
use serde::{Deserialize, Serialize};

use super::deadline::MemberDeadline;

/// A member of an `md(…)` level that cannot be used as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unusable {
    /// The member's path.
    pub path: PathBuf,
    /// The reason, in words.
    pub why: String,
}

/// The member that a path was accepted as.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accepted {
    /// The path at which it was accepted.
    pub path: PathBuf,
    /// The identifier of its array.
    pub array: String,
    /// The identifier of the member itself; none if that is not known, or not asked for.
    pub device: Option<String>,
}

impl Accepted {
    /// Returns true if `device`, the identifier that a superblock of the array has at this path, is neither that of this
    /// member nor that of another one of `all`.
    pub fn is_stranger(&self, device: Option<&str>, all: &[Accepted]) -> bool {
        let is_known = |one: &Accepted| one.device.as_deref() == device;
        self.device.is_some() && !all.iter().any(is_known)
    }
}

/// Options with which a stack is opened.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    /// Nothing is written to members.
    pub read_only: bool,
    /// Start arrays without members that they were last seen with.
    pub degraded: bool,
    /// Members that were named again, whatever they hold.
    pub forced: Vec<PathBuf>,
    /// Members with superblocks that cannot be used.
    pub unusable: Vec<Unusable>,
    /// The arrays of which members with superblocks were accepted.
    pub arrays: Vec<Accepted>,
    /// Memory that other volumes have promised, in bytes.
    pub promised: u64,
    /// Largest size of a RAM disk that is the whole stack, in bytes.
    pub most_ram: u64,
    /// The folder that says which logs of caches must not be replayed.
    pub given_up: PathBuf,
    /// Time limits for requests to members.
    pub deadline: MemberDeadline,
    /// The command that brings this stack up, if there is one: `braid up NAME`.
    pub command: Option<String>,
}

impl OpenOptions {
    /// The access that members are opened with.
    pub fn access(&self) -> Access {
        if self.read_only { Access::ReadOnly } else { Access::Exclusive }
    }

    /// Returns the next command if members are missing that the array counts on.
    pub(super) fn degraded_command(&self) -> String {
        match &self.command {
            Some(command) => format!(
                "with the member that is missing (at another path: braid assemble PATH..); or, to go on without \
                 it: {command} --degraded"
            ),
            None => "with the member that is missing; or with --degraded".to_owned(),
        }
    }
}
