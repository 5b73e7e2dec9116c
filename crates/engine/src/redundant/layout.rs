//! Where data, and what protects it, lie: sizes, and what can be read without which members.
//!
//! ```text
//!   copies   sync byte = byte of the array      | 0 ............................ size |
//!   parity   sync byte = row of the stripes     | 0 ............ member_size |
//!            = that byte of every member's data
//! ```
//!
//! So a sync byte is a kind of its own: who keeps the data knows which of the others it is, and
//! converts (`copies`, `parity`).
//!
//! Source: Linux `drivers/md/md.c` (`resync_max_sectors`), which raid10 sets to the array's size
//! and raid5 to a member's.

use std::rc::Rc;

use braid_array::coordinates::{Coordinate, Offset, Stretch};
use braid_array::geometry::Raid456;
use braid_array::{Geometry, Mirrored, Role};

/// Of what passes go over, a bitmap is divided in, and ranges are locked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct OfSync;

impl Coordinate for OfSync {}

/// A sync byte: for copies a byte of the array, with parity a row.
pub(super) type SyncByte = Offset<OfSync>;
/// Sync bytes that follow each other.
pub(super) type SyncSpan = Stretch<OfSync>;

/// Where an array's data, and what protects it, lie.
#[derive(Clone)]
pub enum Layout {
    /// Copies: raid1, raid10.
    Copies(Rc<dyn Mirrored>),
    /// Parity: raid4, raid5, raid6.
    Parity(Raid456),
}

impl Layout {
    /// Capacity of the array in bytes.
    pub fn size(&self) -> u64 {
        match self {
            Layout::Copies(geometry) => geometry.size(),
            Layout::Parity(geometry) => geometry.size(),
        }
    }

    /// Number of members that take part.
    pub fn members(&self) -> usize {
        match self {
            Layout::Copies(geometry) => geometry.members(),
            Layout::Parity(geometry) => geometry.members(),
        }
    }

    /// How many bytes of each member the array uses.
    pub fn member_size(&self) -> u64 {
        match self {
            Layout::Copies(geometry) => geometry.member_size(),
            Layout::Parity(geometry) => geometry.member_size(),
        }
    }

    /// Bytes of one full stripe; 0 if there is none.
    pub fn stripe(&self) -> u64 {
        match self {
            Layout::Copies(geometry) => geometry.stripe(),
            Layout::Parity(geometry) => geometry.stripe(),
        }
    }

    /// How many bytes passes go over and a bitmap covers.
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
