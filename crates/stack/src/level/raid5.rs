//! `raid5(chunk=512K, layout=left-symmetric, MEMBER, MEMBER|missing, …)`: stripes with a parity that
//! goes round.
//!
//! ```text
//!            member 0   member 1   member 2         left-symmetric
//!  stripe 0  chunk 0    chunk 1    parity
//!  stripe 1  chunk 3    parity     chunk 2
//!  stripe 2  parity     chunk 4    chunk 5
//! ```

use std::fmt;

use braid_level::{ParityLayout, ParityLevel};

use super::args::Args;
use super::parity;
use super::{Level, Stack, fmt_members};
use crate::error::Fault;
use crate::size::ByteSize;

/// Stripes with a parity that goes round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raid5 {
    /// Bytes on one member before the next one takes over: a power of two from 4 KiB to 64 MiB.
    pub chunk: ByteSize,
    /// Where the parity lies: one of [`ParityLayout::of`] its level.
    pub layout: ParityLayout,
    /// 2 to [`crate::MAX_MEMBERS`] devices, in order; one of them may be [`crate::Missing`].
    pub members: Vec<Stack>,
}

impl Level for Raid5 {
    const NAME: &'static str = "raid5";
    const USAGE: &'static str =
        "raid5(chunk=512K, layout=left-symmetric, MEMBER, MEMBER|missing, …)";
    const PARAMETERS: &'static [&'static str] = &["chunk", "layout"];
    const TAKES_MISSING: bool = true;

    fn check(args: &Args<'_>) -> Result<Self, Fault> {
        let chunk = parity::chunk(args)?;
        let layout = args
            .word("layout")?
            .map(|word| parity::layout(word, ParityLevel::Raid5))
            .transpose()?;
        let members = parity::members(args, Self::NAME, 2, 1)?;
        Ok(Self { chunk, layout: layout.unwrap_or_default(), members })
    }

    fn members(&self) -> &[Stack] {
        &self.members
    }

    fn members_mut(&mut self) -> &mut [Stack] {
        &mut self.members
    }
}

impl fmt::Display for Raid5 {
    /// Chunk and layout are always there, so that a log says them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "raid5(chunk={}, layout={}, ", self.chunk, self.layout)?;
        fmt_members(f, &self.members)?;
        f.write_str(")")
    }
}
