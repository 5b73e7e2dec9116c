//! What raid4, raid5 and raid6 have in common: the chunk, how many members they need and how many
//! may be missing, and the layouts of md.
//!
//! Deliberately absent: where a byte lies, which is the geometry's.

use std::fmt;

use crate::args::{Args, size_between};
use crate::error::{Fault, Problem};
use crate::expr::Word;
use crate::level::raid0::Raid0;
use crate::size::ByteSize;
use crate::stack::Stack;
use crate::suggest::suggest;

/// Where the parity of each stripe lies, and in which order the data: md's number, as superblocks
/// of raid5 and raid6 hold it (`drivers/md/raid5.h`, `ALGORITHM_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParityLayout(u32);

/// md's number, mdadm's name and its short one.
const LAYOUTS: [(u32, &str, Option<&str>); 14] = [
    (2, "left-symmetric", Some("ls")),
    (0, "left-asymmetric", Some("la")),
    (3, "right-symmetric", Some("rs")),
    (1, "right-asymmetric", Some("ra")),
    (4, "parity-first", None),
    (5, "parity-last", None),
    (8, "ddf-zero-restart", None),
    (9, "ddf-N-restart", None),
    (10, "ddf-N-continue", None),
    (18, "left-symmetric-6", None),
    (16, "left-asymmetric-6", None),
    (19, "right-symmetric-6", None),
    (17, "right-asymmetric-6", None),
    (20, "parity-first-6", None),
];
/// How many of them raid5 has, too: the first.
const OF_RAID5: usize = 6;

impl ParityLayout {
    /// The layouts of raid5, which raid6 has as well, mdadm's default first.
    pub fn of_raid5() -> impl Iterator<Item = ParityLayout> {
        LAYOUTS[..OF_RAID5].iter().map(|(number, ..)| ParityLayout(*number))
    }

    /// All layouts of raid6, mdadm's default first.
    pub fn of_raid6() -> impl Iterator<Item = ParityLayout> {
        LAYOUTS.iter().map(|(number, ..)| ParityLayout(*number))
    }

    /// md's number.
    #[must_use]
    pub fn number(self) -> u32 {
        self.0
    }

    /// Reads mdadm's name or short name of one of `layouts`.
    fn check(word: &Word, layouts: &'static [(u32, &str, Option<&str>)]) -> Result<Self, Fault> {
        let text = word.text.as_str();
        let is_it = |(_, name, short): &&(u32, &str, Option<&str>)| {
            *name == text || short.is_some_and(|short| short == text)
        };
        if let Some((number, ..)) = layouts.iter().find(is_it) {
            return Ok(ParityLayout(*number));
        }
        let known: Vec<String> = layouts
            .iter()
            .map(|(_, name, short)| match short {
                Some(short) => format!("{name} ({short})"),
                None => (*name).to_owned(),
            })
            .collect();
        let problem = Problem::UnknownChoice {
            what: "layout",
            text: word.text.clone(),
            suggestion: suggest(text, layouts.iter().map(|(_, name, _)| *name)),
            known: known.join(", "),
        };
        Err(Fault::new(problem, word.span))
    }

    pub(super) fn check_raid5(word: &Word) -> Result<Self, Fault> {
        Self::check(word, &LAYOUTS[..OF_RAID5])
    }

    pub(super) fn check_raid6(word: &Word) -> Result<Self, Fault> {
        Self::check(word, &LAYOUTS)
    }
}

impl Default for ParityLayout {
    /// mdadm's: left-symmetric.
    fn default() -> Self {
        ParityLayout(LAYOUTS[0].0)
    }
}

impl fmt::Display for ParityLayout {
    /// mdadm's name, in full.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let row = LAYOUTS.iter().find(|(number, ..)| *number == self.0);
        f.pad(row.expect("a layout is one of the table").1)
    }
}

/// The chunk: mdadm's default if none is given.
pub(super) fn chunk(args: &Args<'_>) -> Result<ByteSize, Fault> {
    let Some(word) = args.word("chunk")? else { return Ok(Raid0::DEFAULT_CHUNK) };
    power_of_two_chunk(word)
}

/// A chunk of a level whose chunks are powers of two, from 4 KiB to 64 MiB.
pub(super) fn power_of_two_chunk(word: &Word) -> Result<ByteSize, Fault> {
    let grid = Raid0::MIN_CHUNK;
    let chunk = size_between("chunk", word, Raid0::MIN_CHUNK, Raid0::MAX_CHUNK, grid)?;
    if !chunk.0.is_power_of_two() {
        let problem = Problem::NotPowerOfTwo { what: "chunk", value: chunk };
        return Err(Fault::new(problem, word.span));
    }
    Ok(chunk)
}

/// The members of a level that needs at least `least` of them, of which `parities` may be missing.
pub(super) fn members(
    args: &Args<'_>,
    level: &'static str,
    least: usize,
    parities: usize,
) -> Result<Vec<Stack>, Fault> {
    let members = args.members()?;
    if members.len() < least {
        let problem = Problem::TooFewMembers { level, count: members.len(), least };
        return Err(Fault::new(problem, args.span()));
    }
    let missing: Vec<&Stack> = members.iter().filter(|member| member.is_missing()).collect();
    if let Some(first_too_many) = missing.get(parities) {
        let problem = Problem::TooManyMissing { level, missing: missing.len(), most: parities };
        return Err(Fault::new(problem, first_too_many.span));
    }
    Ok(members)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layouts_are_md_s() {
        let numbers = |layouts: &mut dyn Iterator<Item = ParityLayout>| {
            let mut numbers: Vec<u32> = layouts.map(ParityLayout::number).collect();
            numbers.sort_unstable();
            numbers
        };
        assert_eq!(numbers(&mut ParityLayout::of_raid5()), [0, 1, 2, 3, 4, 5]);
        let of_raid6 = [0, 1, 2, 3, 4, 5, 8, 9, 10, 16, 17, 18, 19, 20];
        assert_eq!(numbers(&mut ParityLayout::of_raid6()), of_raid6);
        assert_eq!(ParityLayout::default().to_string(), "left-symmetric");
    }
}
