//! `slice(DEVICE, offset=SIZE, length=SIZE)`: a part of any device.
//!
//! ```text
//!  device    ├───────────┬─────────────────┬──────────────┤
//!            0         offset       offset + length      size
//!                        └───── slice ─────┘
//! ```

use std::fmt;

use super::args::Args;
use super::{Level, Stack, has_origin};
use crate::error::Fault;
use crate::size::ByteSize;

/// A part of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slice {
    /// The device.
    pub origin: Box<Stack>,
    /// The start of the part in bytes: a multiple of 512.
    pub offset: ByteSize,
    /// The length of the part in bytes: a multiple of 512, not zero; `None` reaches to the end.
    pub length: Option<ByteSize>,
}

impl Level for Slice {
    const NAME: &'static str = "slice";
    const USAGE: &'static str = "slice(DEVICE, offset=SIZE, length=SIZE)";
    const PARAMETERS: &'static [&'static str] = &["offset", "length"];

    fn check(args: &Args<'_>) -> Result<Self, Fault> {
        let (offset, length) = (args.offset("offset")?, args.size("length")?);
        Ok(Self { origin: args.origin()?, offset, length })
    }

    has_origin!();
}

impl fmt::Display for Slice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "slice({}", self.origin)?;
        if self.offset.0 != 0 {
            write!(f, ", offset={}", self.offset)?;
        }
        if let Some(length) = self.length {
            write!(f, ", length={length}")?;
        }
        f.write_str(")")
    }
}
