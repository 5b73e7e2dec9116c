//! `raid0(chunk=512K, layout=alternate, MEMBER, …)`: stripes over the members.
//!
//! ```text
//!            member 0   member 1   member 2
//!  stripe 0  chunk 0    chunk 1    chunk 2
//!  stripe 1  chunk 3    chunk 4    chunk 5
//!  …         member 1 is full; the next zone has two members and so stripes of two chunks:
//!  stripe n  chunk 3n              chunk 3n+1        which of them comes first is the layout
//! ```

use std::fmt;

use braid_level::Raid0Layout;

use super::args::{Args, size_between};
use super::{Level, Stack, fmt_members, has_members};
use crate::error::Fault;
use crate::size::ByteSize;

/// Stripes over the members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raid0 {
    /// Bytes on one member before the next one takes over: a multiple of 4 KiB from 4 KiB to 64 MiB;
    /// a power of two is not required.
    pub chunk: ByteSize,
    /// Matters only when members differ in size.
    pub layout: Raid0Layout,
    /// 1 to [`crate::MAX_MEMBERS`] devices, in order.
    pub members: Vec<Stack>,
}

impl Raid0 {
    /// The chunk if none is given: mdadm's default, 512 KiB.
    pub const DEFAULT_CHUNK: ByteSize = ByteSize::kib(512);
    /// The smallest chunk; every chunk is a multiple of it.
    pub const MIN_CHUNK: ByteSize = ByteSize::kib(4);
    /// The greatest chunk.
    pub const MAX_CHUNK: ByteSize = ByteSize::mib(64);
}

pub(super) const LAYOUTS: &[(&str, Raid0Layout)] = &[
    (Raid0Layout::Original.name(), Raid0Layout::Original),
    (Raid0Layout::Alternate.name(), Raid0Layout::Alternate),
];

impl Level for Raid0 {
    const NAME: &'static str = "raid0";
    const USAGE: &'static str = "raid0(chunk=512K, layout=alternate, MEMBER, MEMBER, …)";
    const PARAMETERS: &'static [&'static str] = &["chunk", "layout"];

    fn check(args: &Args<'_>) -> Result<Self, Fault> {
        let chunk = match args.word("chunk")? {
            Some(word) => {
                size_between("chunk", word, Self::MIN_CHUNK, Self::MAX_CHUNK, Self::MIN_CHUNK)?
            }
            None => Self::DEFAULT_CHUNK,
        };
        let layout = args.choice("layout", LAYOUTS)?.unwrap_or_default();
        Ok(Self { chunk, layout, members: args.members()? })
    }

    has_members!();
}

impl fmt::Display for Raid0 {
    /// The chunk is always there, so that a log says it; the layout only when it is not the default.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "raid0(chunk={}, ", self.chunk)?;
        if self.layout != Raid0Layout::default() {
            write!(f, "layout={}, ", self.layout)?;
        }
        fmt_members(f, &self.members)?;
        f.write_str(")")
    }
}
