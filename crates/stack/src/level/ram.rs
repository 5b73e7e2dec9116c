//! `ram(SIZE)`: a RAM disk. Its content is zero when it is made and gone when its process ends.

use std::fmt;

use super::Level;
use super::args::{Args, device_size};
use crate::error::Fault;
use crate::size::ByteSize;

/// A RAM disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ram {
    /// Bytes: a multiple of 512, not zero.
    pub size: ByteSize,
}

impl Level for Ram {
    const NAME: &'static str = "ram";
    const USAGE: &'static str = "ram(SIZE), for example ram(1G)";
    const PARAMETERS: &'static [&'static str] = &[];

    fn check(args: &Args<'_>) -> Result<Self, Fault> {
        let size = device_size("size", args.only("size", "a size")?)?;
        Ok(Self { size })
    }
}

impl fmt::Display for Ram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ram({})", self.size)
    }
}
