//! Maps of the parts of a device that could be read: GNU ddrescue's mapfile, read and written.
//!
//! ```text
//!   # Mapfile. Created by GNU ddrescue version 1.27        comment
//!   0x00002000     +               1                       position, phase, pass: for ddrescue, when it resumes
//!   0x00000000  0x00001000  +    ┐
//!   0x00001000  0x00000200  -    │ start, size, state: from byte 0 on, without gaps
//!   0x00001200  0x00000E00  +    ┘
//!
//!   device   |■■■■■■■■■■■■|░|■■■■■■■■|                     a hole is every byte that is not finished
//! ```
//!
//! Invariants
//! * The blocks of a [`Map`] begin at byte 0, follow one another, are not empty, and two neighbours differ in state.
//! * A text that was parsed and written again parses to an equal map.
//! * A text is read in one pass. An error names its line.
//!
//! Deliberately absent: I/O, and comments, which are not kept.
//!
//! Source: the manual of GNU ddrescue 1.28, "Mapfile structure"; of 1.9 for the open end, size −1.

mod error;
pub mod fuzz;
mod map;
mod text;

pub use error::{MapError, Misfit, Wrong};
pub use map::{Activity, Block, Map, Phase, State};

/// The largest end of a block in bytes: offsets in files are signed.
pub const MAX_SIZE: u64 = i64::MAX as u64;

/// The longest text that is parsed, in bytes: some two million blocks.
pub const MAX_TEXT: usize = 64 << 20;
