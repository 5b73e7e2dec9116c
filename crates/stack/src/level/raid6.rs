//! `raid6(chunk=512K, layout=left-symmetric, MEMBER, MEMBER|missing, …)`: stripes with two parities
//! that go round.
//!
//! ```text
//!            member 0   member 1   member 2   member 3         left-symmetric
//!  stripe 0  Q          chunk 0    chunk 1    P
//!  stripe 1  chunk 2    chunk 3    P          Q
//!  stripe 2  chunk 5    P          Q          chunk 4
//! ```

use std::fmt;

use braid_level::{ParityLayout, ParityLevel};

use super::args::Args;
use super::parity;
use super::{Level, Stack, fmt_members};
use crate::error::Fault;
use crate::size::ByteSize;

/// Stripes with two parities that go round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raid6 {
    /// Bytes on one member before the next one takes over: a power of two from 4 KiB to 64 MiB.
    pub chunk: ByteSize,
    /// Where the parities lie: one of [`ParityLayout::of`] its level.
    pub layout: ParityLayout,
    /// 4 devices or more, in order; two of them may be [`crate::Missing`]. How many there can be
    /// at most is the layout's.
    pub members: Vec<Stack>,
}

impl Level for Raid6 {
    const NAME: &'static str = "raid6";
    const USAGE: &'static str =
        "raid6(chunk=512K, layout=left-symmetric, MEMBER, MEMBER|missing, …)";
    const PARAMETERS: &'static [&'static str] = &["chunk", "layout"];
    const TAKES_MISSING: bool = true;

    fn check(args: &Args<'_>) -> Result<Self, Fault> {
        let chunk = parity::chunk(args)?;
        let layout = args
            .word("layout")?
            .map(|word| parity::layout(word, ParityLevel::Raid6))
            .transpose()?;
        let members = parity::members(args, Self::NAME, 4, 2)?;
        Ok(Self { chunk, layout: layout.unwrap_or_default(), members })
    }

    fn members(&self) -> &[Stack] {
        &self.members
    }

    fn members_mut(&mut self) -> &mut [Stack] {
        &mut self.members
    }
}

impl fmt::Display for Raid6 {
    /// Chunk and layout are always there, so that a log says them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "raid6(chunk={}, layout={}, ", self.chunk, self.layout)?;
        fmt_members(f, &self.members)?;
        f.write_str(")")
    }
}
