//! `raid10(chunk=512K, layout=n2, MEMBER, MEMBER|missing, …)`: copies of each chunk, dealt to the
//! members.
//!
//! ```text
//!                       n2                     f2                      o2
//!  member        0   1   2   3          0   1   2   3           0   1   2   3
//!              │ 0   0   1   1 │      │ 0   1   2   3 │       │ 0   1   2   3 │
//!              │ 2   2   3   3 │      │ 4   5   6   7 │       │ 3   0   1   2 │
//!              │ 4   4   5   5 │      │ 3   0   1   2 │       │ 4   5   6   7 │
//!              │ 6   6   7   7 │      │ 7   4   5   6 │       │ 7   4   5   6 │
//! ```
//!
//! Deliberately absent: layouts that md can read but mdadm cannot make, such as near and far copies
//! together. Members that carry such an array say so themselves ([`crate::Md`]).

use std::fmt;

use braid_level::Raid10Layout;

use super::args::Args;
use super::parity::power_of_two_chunk;
use super::raid0::Raid0;
use super::{Level, Stack, fmt_members, has_members};
use crate::error::Fault;
use crate::expr::Word;
use crate::problem::Problem;
use crate::size::ByteSize;

/// Copies of each chunk, dealt to the members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raid10 {
    /// Bytes on one member before the next one takes over: a power of two from 4 KiB to 64 MiB.
    pub chunk: ByteSize,
    /// The number of copies, and their places.
    pub layout: Raid10Layout,
    /// Devices, in order: at least as many as copies, at most [`crate::MAX_MEMBERS`]; any but all
    /// of them may be [`crate::Missing`].
    pub members: Vec<Stack>,
}

/// The layout as `Display` writes it: `n2`, `f2`, `o3`.
fn layout_of(word: &Word) -> Result<Raid10Layout, Fault> {
    let layout = Raid10Layout::from_name(&word.text)
        .filter(|layout| layout.has_one_kind() && layout.to_string() == word.text);
    layout.ok_or_else(|| {
        let problem = Problem::UnknownChoice {
            what: "layout",
            text: word.text.clone(),
            suggestion: None,
            known: "n2 (near), f2 (far), o2 (offset), with 2 to 255 copies".to_owned(),
        };
        Fault::new(problem, word.span)
    })
}

impl Level for Raid10 {
    const NAME: &'static str = "raid10";
    const USAGE: &'static str = "raid10(chunk=512K, layout=n2, MEMBER, MEMBER|missing, …)";
    const PARAMETERS: &'static [&'static str] = &["chunk", "layout"];
    const TAKES_MISSING: bool = true;

    fn check(args: &Args<'_>) -> Result<Self, Fault> {
        let chunk = args.word("chunk")?.map(power_of_two_chunk).transpose()?;
        let layout = args.word("layout")?.map(layout_of).transpose()?;
        let layout = layout.unwrap_or_default();
        let members = args.members()?;
        if members.len() < layout.copies() {
            let problem = Problem::FewerMembersThanCopies {
                level: Self::NAME,
                count: members.len(),
                copies: layout.copies(),
            };
            return Err(Fault::new(problem, args.span()));
        }
        Ok(Self { chunk: chunk.unwrap_or(Raid0::DEFAULT_CHUNK), layout, members })
    }

    has_members!();
}

impl fmt::Display for Raid10 {
    /// Chunk and layout are always there, so that a log says them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "raid10(chunk={}, layout={}, ", self.chunk, self.layout)?;
        fmt_members(f, &self.members)?;
        f.write_str(")")
    }
}
