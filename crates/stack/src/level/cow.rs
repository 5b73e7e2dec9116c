//! `cow(DEVICE, store=FILE)`: a device that is never written: changes go to a file (copy on write).
//!
//! ```text
//!  read      ──▶ is the block in the store? ── yes ──▶ store
//!                                            └─ no ──▶ device
//!  write     ──▶ store
//! ```

use std::fmt;

use super::args::Args;
use super::{Level, Stack, has_origin};
use crate::error::Fault;
use crate::expr::fmt_word;

/// A device whose changes go to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cow {
    /// The device. Neither it nor anything below it is written.
    pub origin: Box<Stack>,
    /// The path of the file with the changes; not empty, without NUL.
    pub store: String,
}

impl Level for Cow {
    const NAME: &'static str = "cow";
    const USAGE: &'static str = "cow(DEVICE, store=FILE)";
    const PARAMETERS: &'static [&'static str] = &["store"];

    fn check(args: &Args<'_>) -> Result<Self, Fault> {
        let store = args.required_path("store", "the file to which changes go: store=FILE")?;
        Ok(Self { origin: args.origin()?, store })
    }

    has_origin!();
}

impl fmt::Display for Cow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cow({}, store=", self.origin)?;
        fmt_word(f, &self.store)?;
        f.write_str(")")
    }
}
