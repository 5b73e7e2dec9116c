//! RAID levels: md's names and numbers of levels and layouts, the layouts of each level, the number of members
//! that it needs and may lose, and the size of the array.
//!
//! ```text
//!   stack (expressions)   md (superblocks)   array (geometries)   lab (plans)
//!            └────────────────┴──────┬───────────┴────────────────────┘
//!                                  level
//! ```
//!
//! * [`level`]: the levels, and their properties.
//! * [`raid0`], [`raid10`], [`parity`]: the layouts of levels that have several.
//! * [`layout`]: the layout of any level, by md's number and by mdadm's name.
//! * [`cache`]: the handling of writes by a cache, and the policy by which blocks leave it.
//! * [`size`]: the part of the members that an array uses, its size, and the sets of members that suffice.
//!
//! Invariants: the arithmetic does not overflow for any values; if a size exceeds 64 bits, the answer is
//! `None`. The type returns a number or a name as it was accepted. Deliberately absent: the place of a byte,
//! which `braid-array` computes, and dependencies.
//!
//! Source: Linux `include/uapi/linux/raid/md_u.h`, `drivers/md/raid0.h`, `raid5.h`, `raid10.c`;
//! mdadm's manual page (`--level`, `--layout`).

pub mod cache;
pub mod layout;
pub mod level;
pub mod parity;
pub mod raid0;
pub mod raid10;
pub mod size;

use std::fmt;

pub use cache::{CacheMode, CachePolicy};
pub use level::{Level, ParityLevel};
pub use parity::ParityLayout;
pub use raid0::Raid0Layout;
pub use raid10::{FarSets, Raid10Layout};
pub use size::Shape;

/// A layout that a level does not have, or not over so many members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayoutError {
    /// A raid10's number that means nothing, or that md gives no sound meaning.
    Raid10 {
        /// md's number.
        number: u32,
        /// Why it is refused.
        reason: &'static str,
    },
    /// A number that means no layout of the level.
    Parity {
        /// The level.
        level: ParityLevel,
        /// The given number.
        number: u32,
    },
}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LayoutError::Raid10 { number, reason } => {
                write!(f, "raid10 layout {number:#x}: {reason}")
            }
            LayoutError::Parity { level, number } => {
                write!(f, "{level} has no layout of number {number}")
            }
        }
    }
}

impl std::error::Error for LayoutError {}
