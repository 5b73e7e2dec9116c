//! `missing`: the place of a member that is not there, in a level that does without.
//!
//! It is no device: nothing is opened for it, and [`crate::Stack::leaves`] passes over it.

use std::fmt;

use super::args::Args;
use super::{Level, misplaced_missing};
use crate::error::Fault;

/// The place of a member that is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missing;

impl Level for Missing {
    const NAME: &'static str = "missing";
    const USAGE: &'static str = "missing, in place of a member of a level with redundancy";
    const PARAMETERS: &'static [&'static str] = &[];

    /// It is a word, not a call: [`Args::members`] reads it.
    fn check(args: &Args<'_>) -> Result<Self, Fault> {
        Err(misplaced_missing(args.span()))
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::NAME)
    }
}
