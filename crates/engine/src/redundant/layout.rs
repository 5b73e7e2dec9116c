//! The place of an array's data and redundancy: sizes, and what can be read without which members.
//!
//! ```text
//!   copies   sync byte = byte of the array      | 0 ............................ size |
//!   parity   sync byte = row of the stripes     | 0 ............ member_size |
//!            = that byte of every member's data
//! ```
//!
//! A sync byte has a type of its own: `copies` and `parity` know its meaning, and convert.
//!
//! Source: Linux `drivers/md/md.c` (`resync_max_sectors`), which raid10 sets to the array's size and raid5 to a
//! member's.

use std::sync::Arc;

use braid_array::coordinates::{Coordinate, Offset, Stretch};
use braid_array::geometry::Raid456;
use braid_array::{Geometry, Mirrored, Role};

/// The coordinate of passes, of the chunks of a bitmap, and of locks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct OfSync;

impl Coordinate for OfSync {}

/// A sync byte: for copies a byte of the array, with parity a row.
pub(super) type SyncByte = Offset<OfSync>;
/// Consecutive sync bytes.
pub(super) type SyncSpan = Stretch<OfSync>;

/// The place of an array's data and redundancy.
#[derive(Clone)]
pub enum Layout {
    /// Copies: raid1, raid10.
    Copies(Arc<dyn Mirrored>),
    /// Parity: raid4, raid5, raid6.
    Parity(Raid456),
}

impl Layout {
    /// Returns the capacity of the array in bytes.
    pub fn size(&self) -> u64 {
        match self {
            Layout::Copies(geometry) => geometry.size(),
            Layout::Parity(geometry) => geometry.size(),
        }
    }

    /// Returns the number of members that take part.
    pub fn members(&self) -> usize {
        match self {
            Layout::Copies(geometry) => geometry.members(),
            Layout::Parity(geometry) => geometry.members(),
        }
    }

    /// Returns the bytes of each member that the array uses.
    pub fn member_size(&self) -> u64 {
        match self {
            Layout::Copies(geometry) => geometry.member_size(),
            Layout::Parity(geometry) => geometry.member_size(),
        }
    }

    /// Returns the bytes of one full stripe; 0 if there is none.
    pub fn stripe(&self) -> u64 {
        match self {
            Layout::Copies(geometry) => geometry.stripe(),
            Layout::Parity(geometry) => geometry.stripe(),
        }
    }

    /// Returns the number of sync bytes: of a pass, and of the bitmap.
    pub fn sync_size(&self) -> u64 {
        match self {
            Layout::Copies(geometry) => geometry.size(),
            Layout::Parity(geometry) => geometry.member_size(),
        }
    }

    pub(super) fn is_readable(&self, alive: &dyn Fn(Role) -> bool) -> bool {
        match self {
            Layout::Copies(geometry) => geometry.is_readable(alive),
            Layout::Parity(geometry) => geometry.is_readable(alive),
        }
    }
}
