//! What a level is: md's names and numbers of levels and layouts, which layouts each level has,
//! how many members it needs and may lose, and how large the array is.
//!
//! ```text
//!   stack (expressions)   md (superblocks)   array (geometries)   lab (plans)
//!            └────────────────┴──────┬───────────┴────────────────────┘
//!                                  level
//! ```
//!
//! * [`level`]: the levels, and what holds for each of them.
//! * [`raid0`], [`raid10`], [`parity`]: the layouts of those that have several.
//! * [`layout`]: the layout of any level, by md's number and by mdadm's name.
//! * [`cache`]: what a cache does with writes, and who leaves it.
//! * [`size`]: what an array uses of its members, how large it is, which members suffice.
//!
//! Invariants: the arithmetic overflows for no values whatever; where a size exceeds 64 bits, the
//! answer is `None`. A number or a name that is accepted comes back from the type. Deliberately
//! absent: where a byte lies, which is `braid-array`'s, and dependencies.
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
        /// What was given.
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
