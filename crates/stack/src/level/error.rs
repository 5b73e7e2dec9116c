//! `error(SIZE)`: a device of which no byte can be read, as device-mapper's target of that name: the place of a member
//! that is lost, in a level that does not do without.

use std::fmt;

use super::Level;
use super::args::{Args, device_size};
use crate::error::Fault;
use crate::problem::Problem;
use crate::size::ByteSize;

/// A device of which no byte can be read. It cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unreadable {
    /// Bytes: a multiple of 512, not zero.
    pub size: ByteSize,
}

impl Unreadable {
    /// Bytes of a logical block.
    pub const BLOCK: ByteSize = ByteSize(512);
}

impl Level for Unreadable {
    const NAME: &'static str = "error";
    const USAGE: &'static str = "error(SIZE), for example error(1G)";
    const PARAMETERS: &'static [&'static str] = &[];

    fn check(args: &Args<'_>) -> Result<Self, Fault> {
        let (word, _) = args.first_and_words::<()>("size", "a size", "word", &[])?;
        let size = device_size("size", word)?;
        if !size.bytes().is_multiple_of(Self::BLOCK.bytes()) {
            let problem = Problem::NotMultiple { what: "size", value: size, multiple: Self::BLOCK };
            return Err(Fault::new(problem, word.span));
        }
        Ok(Self { size })
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error({})", self.size)
    }
}
