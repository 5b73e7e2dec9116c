//! `linear(MEMBER, …)`: members one after another.
//!
//! ```text
//!  volume  │ member 0 ........ │ member 1 ... │ member 2 ............ │
//! ```

use std::fmt;

use super::args::Args;
use super::{Level, Stack, fmt_members, has_members};
use crate::error::Fault;

/// Members one after another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Linear {
    /// 1 to [`crate::MAX_MEMBERS`] devices, in order.
    pub members: Vec<Stack>,
}

impl Level for Linear {
    const NAME: &'static str = "linear";
    const USAGE: &'static str = "linear(MEMBER, MEMBER, …)";
    const PARAMETERS: &'static [&'static str] = &[];

    fn check(args: &Args<'_>) -> Result<Self, Fault> {
        Ok(Self { members: args.members()? })
    }

    has_members!();
}

impl fmt::Display for Linear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("linear(")?;
        fmt_members(f, &self.members)?;
        f.write_str(")")
    }
}
