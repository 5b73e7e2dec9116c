//! How an array keeps its data: by copies or by parity; and what passes, the bitmap and locks
//! need to know of it.
//!
//! ```text
//!   copies   sync byte = byte of the array      | 0 ............................ size |
//!   parity   sync byte = row of the stripes     | 0 ............ member_size |
//!            = that byte of every member's data
//! ```
//!
//! Source: Linux `drivers/md/md.c` (`resync_max_sectors`), which raid10 sets to the array's size
//! and raid5 to a member's.

use std::cell::RefCell;
use std::rc::Rc;

use braid_array::geometry::{Raid1, Raid456};
use braid_array::{Geometry, Mirrored};
use braid_block::Span;

use super::copies::Copies;
use super::parity::{Kind, Log, LogSetup, Parity};

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

    pub(super) fn is_readable(&self, alive: &dyn Fn(usize) -> bool) -> bool {
        match self {
            Layout::Copies(geometry) => geometry.is_readable(alive),
            Layout::Parity(geometry) => geometry.is_readable(alive),
        }
    }

    /// What lies at `offset` of the data of the member with `role`, in sync bytes, as far as it
    /// lies in one piece; `None` if it holds nothing.
    pub(super) fn piece_of_member(&self, role: usize, offset: u64) -> Option<Span> {
        match self {
            Layout::Copies(geometry) => {
                geometry.owner(role, offset).map(|owner| Span::new(owner.offset, owner.len))
            }
            Layout::Parity(geometry) => Some(rest_of_chunk(geometry, offset)),
        }
    }

    /// What a comparison takes in one piece from sync byte `offset` on.
    pub(super) fn piece_to_compare(&self, offset: u64) -> Span {
        match self {
            Layout::Copies(geometry) => {
                let run = geometry.locate(offset, 0);
                Span::new(offset, run.len.min(geometry.size() - offset))
            }
            Layout::Parity(geometry) => rest_of_chunk(geometry, offset),
        }
    }

    /// How many buffers a comparison needs for each byte that it goes over.
    pub(super) fn compared(&self) -> usize {
        match self {
            Layout::Copies(geometry) => geometry.copies(),
            Layout::Parity(geometry) => geometry.members() + geometry.parities(),
        }
    }
}

/// Members have the same columns up to the end of a chunk.
fn rest_of_chunk(geometry: &Raid456, offset: u64) -> Span {
    Span::new(offset, geometry.chunk() - offset % geometry.chunk())
}

/// The data path of an array.
pub(super) enum Data {
    Copies(Copies),
    Parity(Box<Parity>),
}

impl Data {
    pub(super) fn new(
        layout: Layout,
        cache: usize,
        log: Option<LogSetup>,
    ) -> std::io::Result<Data> {
        Ok(match layout {
            Layout::Copies(geometry) => Data::Copies(Copies { geometry: RefCell::new(geometry) }),
            Layout::Parity(geometry) => Data::Parity(Box::new(Parity::new(geometry, cache, log)?)),
        })
    }

    /// The log of stripes, if there can be one.
    pub(super) fn log(&self) -> Option<&Log> {
        match self {
            Data::Copies(_) => None,
            Data::Parity(parity) => Some(&parity.log),
        }
    }

    /// Bytes of the stripe cache, and how many of them are in use.
    pub(super) fn cache_bytes(&self) -> Option<(usize, usize)> {
        match self {
            Data::Copies(_) => None,
            Data::Parity(parity) => Some(parity.cache_bytes()),
        }
    }

    /// Whether md's partial parity log is kept.
    pub(super) fn has_partial(&self) -> bool {
        self.log().is_some_and(|log| matches!(log.kind, Kind::Partial(_)))
    }

    /// Another shape of raid1.
    pub(super) fn replace(&self, raid1: Raid1) {
        match self {
            Data::Copies(copies) => copies.geometry.replace(Rc::new(raid1)),
            Data::Parity(_) => unreachable!("asked only of raid1"),
        };
    }

    pub(super) fn layout(&self) -> Layout {
        match self {
            Data::Copies(copies) => Layout::Copies(Rc::clone(&copies.geometry.borrow())),
            Data::Parity(parity) => Layout::Parity(parity.geometry.clone()),
        }
    }
}
