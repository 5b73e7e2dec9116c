//! `raid4(chunk=512K, MEMBER, MEMBER|missing, …)`: stripes over all members but the last, which has
//! their parity.
//!
//! ```text
//!            member 0   member 1   member 2   member 3
//!  stripe 0  chunk 0    chunk 1    chunk 2    parity
//!  stripe 1  chunk 3    chunk 4    chunk 5    parity
//! ```

use std::fmt;

use super::args::Args;
use super::{Level, Stack, fmt_members, parity};
use crate::error::Fault;
use crate::size::ByteSize;

/// Stripes, and their parity on the last member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raid4 {
    /// Bytes on one member before the next one takes over: a power of two from 4 KiB to 64 MiB.
    pub chunk: ByteSize,
    /// 2 to [`crate::MAX_MEMBERS`] devices, in order; one of them may be [`crate::Missing`].
    pub members: Vec<Stack>,
}

impl Level for Raid4 {
    const NAME: &'static str = "raid4";
    const USAGE: &'static str = "raid4(chunk=512K, MEMBER, MEMBER|missing, …)";
    const PARAMETERS: &'static [&'static str] = &["chunk"];
    const TAKES_MISSING: bool = true;

    fn check(args: &Args<'_>) -> Result<Self, Fault> {
        let chunk = parity::chunk(args)?;
        Ok(Self { chunk, members: parity::members(args, Self::NAME, 2, 1)? })
    }

    fn members(&self) -> &[Stack] {
        &self.members
    }

    fn members_mut(&mut self) -> &mut [Stack] {
        &mut self.members
    }
}

impl fmt::Display for Raid4 {
    /// The chunk is always there, so that a log says it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "raid4(chunk={}, ", self.chunk)?;
        fmt_members(f, &self.members)?;
        f.write_str(")")
    }
}
