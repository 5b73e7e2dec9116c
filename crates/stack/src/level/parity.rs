//! `raid4(chunk=512K, MEMBER, MEMBER|missing, …)`, `raid5(…)` and `raid6(chunk=512K, layout=left-symmetric, …)`:
//! stripes with parity.
//!
//! ```text
//!            member 0   member 1   member 2   member 3         raid4
//!  stripe 0  chunk 0    chunk 1    chunk 2    parity
//!  stripe 1  chunk 3    chunk 4    chunk 5    parity
//!
//!            member 0   member 1   member 2                    raid5, left-symmetric
//!  stripe 0  chunk 0    chunk 1    parity
//!  stripe 1  chunk 3    parity     chunk 2
//!  stripe 2  parity     chunk 4    chunk 5
//!
//!            member 0   member 1   member 2   member 3         raid6, left-symmetric
//!  stripe 0  Q          chunk 0    chunk 1    P
//!  stripe 1  chunk 2    chunk 3    P          Q
//!  stripe 2  chunk 5    P          Q          chunk 4
//! ```
//!
//! Deliberately absent: the address arithmetic, which belongs to the geometry.

use std::fmt;

use braid_level::{ParityLayout, ParityLevel};

use super::args::{Args, size_between};
use super::raid0::Raid0;
use super::{Level, Stack, fmt_members};
use crate::error::Fault;
use crate::expr::Word;
use crate::problem::Problem;
use crate::size::ByteSize;
use crate::suggest::suggest;

/// Stripes with one parity (raid4, raid5) or two (raid6).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parity {
    /// Which of the three levels.
    pub level: ParityLevel,
    /// Bytes on one member before the next one takes over: a power of two from 4 KiB to 64 MiB.
    pub chunk: ByteSize,
    /// The layout of the parities: one of [`ParityLayout::of`] its level; raid4 has only one.
    pub layout: ParityLayout,
    /// [`ParityLevel::least_members`] devices or more, in order. As many as the level has parities
    /// may be [`crate::Missing`]. [`crate::MAX_MEMBERS`] and the layout bound their number.
    pub members: Vec<Stack>,
}

impl Parity {
    fn check(args: &Args<'_>, level: ParityLevel) -> Result<Self, Fault> {
        let chunk = chunk(args)?;
        let layout = args.word("layout")?.map(|word| layout(word, level)).transpose()?;
        let only = ParityLayout::of(level).next().filter(|_| has_one_layout(level));
        let layout = layout.or(only).unwrap_or_default();
        Ok(Self { level, chunk, layout, members: members(args, level)? })
    }

    pub(super) fn word(&self) -> &'static str {
        self.level.name()
    }

    pub(super) fn members(&self) -> &[Stack] {
        &self.members
    }

    pub(super) fn members_mut(&mut self) -> &mut [Stack] {
        &mut self.members
    }
}

/// True if `level` is written without a layout, because it has only one.
fn has_one_layout(level: ParityLevel) -> bool {
    ParityLayout::of(level).nth(1).is_none()
}

impl fmt::Display for Parity {
    /// Chunk and layout are always printed, so that a log has them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(chunk={}, ", self.level, self.chunk)?;
        if !has_one_layout(self.level) {
            write!(f, "layout={}, ", self.layout)?;
        }
        fmt_members(f, &self.members)?;
        f.write_str(")")
    }
}

/// One name in expressions for each level.
macro_rules! forms {
    ($($form:ident: $name:literal, $usage:literal, $parameters:expr;)*) => {
        $(pub(crate) struct $form(Parity);

        impl Level for $form {
            const NAME: &'static str = $name;
            const USAGE: &'static str = $usage;
            const PARAMETERS: &'static [&'static str] = $parameters;
            const TAKES_MISSING: bool = true;

            fn check(args: &Args<'_>) -> Result<Self, Fault> {
                Parity::check(args, ParityLevel::$form).map(Self)
            }
        }

        impl From<$form> for Parity {
            fn from($form(parity): $form) -> Self {
                parity
            }
        })*
    };
}

forms! {
    Raid4: "raid4", "raid4(chunk=512K, MEMBER, MEMBER|missing, …)", &["chunk"];
    Raid5: "raid5", "raid5(chunk=512K, layout=left-symmetric, MEMBER, MEMBER|missing, …)", &["chunk", "layout"];
    Raid6: "raid6", "raid6(chunk=512K, layout=left-symmetric, MEMBER, MEMBER|missing, …)", &["chunk", "layout"];
}

/// Reads mdadm's name or short name of a layout of `level`.
fn layout(word: &Word, level: ParityLevel) -> Result<ParityLayout, Fault> {
    let text = word.text.as_str();
    if let Some(layout) = ParityLayout::from_name(text).filter(|layout| layout.suits(level)) {
        return Ok(layout);
    }
    let known: Vec<String> = ParityLayout::of(level)
        .map(|layout| match layout.short_name() {
            Some(short) => format!("{layout} ({short})"),
            None => layout.to_string(),
        })
        .collect();
    let problem = Problem::UnknownChoice {
        what: "layout",
        text: word.text.clone(),
        suggestion: suggest(text, ParityLayout::of(level).map(ParityLayout::name)),
        known: known.join(", "),
    };
    Err(Fault::new(problem, word.span))
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

/// The members of `level`: enough of them, and no more missing than there are parities.
fn members(args: &Args<'_>, level: ParityLevel) -> Result<Vec<Stack>, Fault> {
    let members = args.members()?;
    let (least, parities, level) = (level.least_members(), level.parities(), level.name());
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
