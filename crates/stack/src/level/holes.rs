//! `holes(DEVICE, map=FILE)`: a device with unreadable ranges, by GNU ddrescue's map.
//!
//! ```text
//!  map       |++++++++++++|-|++++++|??????????|      finished, a bad sector, never tried
//!  device    |■■■■■■■■■■■■|░|■■■■■■|░░░░░░░░░░|      a read of a hole fails; nothing can be written
//! ```

use std::fmt;

use super::args::Args;
use super::{Level, Stack, has_origin};
use crate::error::Fault;
use crate::expr::fmt_word;

/// A device with unreadable ranges. It cannot be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holes {
    /// The device.
    pub origin: Box<Stack>,
    /// The path of the map; not empty, without NUL.
    pub map: String,
}

impl Level for Holes {
    const NAME: &'static str = "holes";
    const USAGE: &'static str = "holes(DEVICE, map=FILE)";
    const PARAMETERS: &'static [&'static str] = &["map"];

    fn check(args: &Args<'_>) -> Result<Self, Fault> {
        let map = args.required_path("map", "the map of its holes: map=FILE")?;
        Ok(Self { origin: args.origin()?, map })
    }

    has_origin!();
}

impl fmt::Display for Holes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "holes({}, map=", self.origin)?;
        fmt_word(f, &self.map)?;
        f.write_str(")")
    }
}
