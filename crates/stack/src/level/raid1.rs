//! `raid1(MEMBER, MEMBER|missing, …)`: the same on every member.
//!
//! ```text
//!  volume    │ ................ │
//!  member 0  │ ................ │
//!  member 1  │ ................ │
//! ```

use std::fmt;

use super::args::Args;
use super::{Level, Stack, fmt_members, has_members};
use crate::error::Fault;

/// The same on every member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raid1 {
    /// 1 to [`crate::MAX_MEMBERS`] devices, in order; any but all of them may be
    /// [`crate::Missing`].
    pub members: Vec<Stack>,
}

impl Level for Raid1 {
    const NAME: &'static str = "raid1";
    const USAGE: &'static str = "raid1(MEMBER, MEMBER|missing, …)";
    const PARAMETERS: &'static [&'static str] = &[];
    const TAKES_MISSING: bool = true;

    fn check(args: &Args<'_>) -> Result<Self, Fault> {
        Ok(Self { members: args.members()? })
    }

    has_members!();
}

impl fmt::Display for Raid1 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("raid1(")?;
        fmt_members(f, &self.members)?;
        f.write_str(")")
    }
}
