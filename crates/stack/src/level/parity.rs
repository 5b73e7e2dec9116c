//! What raid4, raid5 and raid6 have in common: the chunk, how many members they need and how many
//! may be missing, and the layouts of md.
//!
//! Deliberately absent: where a byte lies, which is the geometry's.

use braid_level::{ParityLayout, ParityLevel};

use super::Stack;
use super::args::{Args, size_between};
use super::raid0::Raid0;
use crate::error::Fault;
use crate::expr::Word;
use crate::problem::Problem;
use crate::size::ByteSize;
use crate::suggest::suggest;

/// Reads mdadm's name or short name of a layout of `level`.
pub(super) fn layout(word: &Word, level: ParityLevel) -> Result<ParityLayout, Fault> {
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
