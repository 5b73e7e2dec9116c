//! Reasons why a text is no map, or a map does not fit a device.

use crate::MAX_TEXT;

/// The reason why a text is no map.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MapError {
    /// The text is longer than [`MAX_TEXT`].
    #[error("it has {bytes} bytes; a map has at most {MAX_TEXT}")]
    TooLong {
        /// Length of the text in bytes.
        bytes: usize,
    },
    /// No line but comments.
    #[error(
        "it has no status line, which every map of GNU ddrescue begins with, such as `0x00000000 + 1`"
    )]
    NoStatusLine,
    /// A line that a map cannot have.
    #[error("line {line}: {wrong}")]
    At {
        /// Number of the line, from 1 on.
        line: usize,
        /// The reason.
        wrong: Wrong,
    },
}

/// The fault of a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    /// Too few words.
    #[error("{needed} is missing")]
    Missing {
        /// The missing part.
        needed: &'static str,
    },
    /// A word more than the line has.
    #[error("unexpected {word:?} at its end")]
    Extra {
        /// The word, cut off if it is long.
        word: String,
    },
    /// A word that is no number.
    #[error("{word:?} is no number: decimal, 0x and hexadecimal digits, or 0 and octal digits")]
    NotANumber {
        /// The word, cut off if it is long.
        word: String,
    },
    /// A number above [`crate::MAX_SIZE`].
    #[error("{word:?} is more than 2^63 - 1")]
    TooLarge {
        /// The word, cut off if it is long.
        word: String,
    },
    /// A word that is no state of a block.
    #[error("{word:?} is no state of a block: one of ? * / - +")]
    NotAState {
        /// The word, cut off if it is long.
        word: String,
    },
    /// A word that is no phase of ddrescue.
    #[error("{word:?} is no phase of ddrescue: one of ? * / - F G +")]
    NotAPhase {
        /// The word, cut off if it is long.
        word: String,
    },
    /// Bytes that no block covers.
    #[error("its block starts at {start:#x}, and the one before ends at {end:#x}: a gap")]
    Gap {
        /// Start of the block.
        start: u64,
        /// End of the block before, 0 for the first.
        end: u64,
    },
    /// Bytes that two blocks cover.
    #[error("its block starts at {start:#x}, and the one before ends at {end:#x}: they overlap")]
    Overlap {
        /// Start of the block.
        start: u64,
        /// End of the block before.
        end: u64,
    },
    /// A block that ends beyond [`crate::MAX_SIZE`].
    #[error("its block of {size:#x} bytes at {start:#x} ends beyond 2^63 - 1")]
    BeyondEnd {
        /// Start of the block.
        start: u64,
        /// Size of the block.
        size: u64,
    },
}

/// A map that is not one of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the map describes {map} bytes, and the device has {device}")]
pub struct Misfit {
    /// Bytes that the map describes.
    pub map: u64,
    /// Bytes of the device.
    pub device: u64,
}
