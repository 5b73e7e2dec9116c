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

use super::parity::power_of_two_chunk;
use super::{Level, fmt_members};
use crate::args::Args;
use crate::error::{Fault, Problem};
use crate::expr::Word;
use crate::level::raid0::Raid0;
use crate::size::ByteSize;
use crate::stack::Stack;

/// Copies of each chunk, dealt to the members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raid10 {
    /// Bytes on one member before the next one takes over: a power of two from 4 KiB to 64 MiB.
    pub chunk: ByteSize,
    /// How many copies, and where.
    pub layout: Raid10Layout,
    /// Devices, in order: at least as many as copies, at most [`crate::MAX_MEMBERS`]; any but all
    /// of them may be [`crate::Missing`].
    pub members: Vec<Stack>,
}

/// How the copies of a raid10 are laid out, as `mdadm --layout` takes it: `n2`, `f2`, `o3`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Raid10Layout {
    /// Where the copies lie.
    pub kind: Raid10Kind,
    /// How many copies of each chunk: 2 to 255.
    pub copies: u8,
}

/// Where the copies of a raid10's chunk lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Raid10Kind {
    /// Side by side, on neighbouring members.
    Near,
    /// Far behind, in sections of the members.
    Far,
    /// In the next row.
    Offset,
}

impl Raid10Layout {
    /// The number by which md's superblocks know the layout (`drivers/md/raid10.c`: near copies in
    /// the low byte, far copies in the next one, bit 16 for offset).
    #[must_use]
    pub fn number(self) -> u32 {
        let copies = u32::from(self.copies);
        match self.kind {
            Raid10Kind::Near => copies | 1 << 8,
            Raid10Kind::Far => 1 | copies << 8,
            Raid10Kind::Offset => 1 | copies << 8 | 1 << 16,
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let kinds = [("n", Raid10Kind::Near), ("f", Raid10Kind::Far), ("o", Raid10Kind::Offset)];
        let (digits, kind) = kinds
            .into_iter()
            .find_map(|(letter, kind)| Some((text.strip_prefix(letter)?, kind)))?;
        // A number as `Display` writes it: no sign, no zero in front.
        let copies: u8 = digits.parse().ok()?;
        (copies >= 2 && digits == copies.to_string()).then_some(Self { kind, copies })
    }

    fn check(word: &Word) -> Result<Self, Fault> {
        Self::parse(&word.text).ok_or_else(|| {
            let problem = Problem::UnknownChoice {
                what: "layout",
                text: word.text.clone(),
                suggestion: None,
                known: "n2 (near), f2 (far), o2 (offset), with 2 to 255 copies".to_owned(),
            };
            Fault::new(problem, word.span)
        })
    }
}

impl Default for Raid10Layout {
    /// mdadm's: two near copies.
    fn default() -> Self {
        Self { kind: Raid10Kind::Near, copies: 2 }
    }
}

impl fmt::Display for Raid10Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter = match self.kind {
            Raid10Kind::Near => 'n',
            Raid10Kind::Far => 'f',
            Raid10Kind::Offset => 'o',
        };
        write!(f, "{letter}{}", self.copies)
    }
}

impl Level for Raid10 {
    const NAME: &'static str = "raid10";
    const USAGE: &'static str = "raid10(chunk=512K, layout=n2, MEMBER, MEMBER|missing, …)";
    const PARAMETERS: &'static [&'static str] = &["chunk", "layout"];
    const TAKES_MISSING: bool = true;

    fn check(args: &Args<'_>) -> Result<Self, Fault> {
        let chunk = args.word("chunk")?.map(power_of_two_chunk).transpose()?;
        let layout = args.word("layout")?.map(Raid10Layout::check).transpose()?;
        let layout = layout.unwrap_or_default();
        let members = args.members()?;
        if members.len() < usize::from(layout.copies) {
            let problem = Problem::FewerMembersThanCopies {
                level: Self::NAME,
                count: members.len(),
                copies: layout.copies,
            };
            return Err(Fault::new(problem, args.span()));
        }
        Ok(Self { chunk: chunk.unwrap_or(Raid0::DEFAULT_CHUNK), layout, members })
    }

    fn members(&self) -> &[Stack] {
        &self.members
    }

    fn members_mut(&mut self) -> &mut [Stack] {
        &mut self.members
    }
}

impl fmt::Display for Raid10 {
    /// Chunk and layout are always there, so that a log says them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "raid10(chunk={}, layout={}, ", self.chunk, self.layout)?;
        fmt_members(f, &self.members)?;
        f.write_str(")")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_md_s_numbers_and_mdadm_s_names() {
        for (text, number) in
            [("n2", 0x102), ("n255", 0x1ff), ("f2", 0x201), ("o2", 0x1_0201), ("o3", 0x1_0301)]
        {
            let layout = Raid10Layout::parse(text).unwrap();
            assert_eq!((layout.to_string().as_str(), layout.number()), (text, number));
        }
        for text in ["", "n", "2", "n1", "n0", "n256", "n+2", "n02", "N2", "f2o2", "near=2"] {
            assert_eq!(Raid10Layout::parse(text), None, "{text}");
        }
    }
}
