//! Levels: the geometries that join members, as a volume uses them.

use std::rc::Rc;

use braid_array::geometry::{Linear, Raid0, Raid1, Raid10, Raid456};
use braid_array::{Geometry, GeometryError, Mirrored};
use braid_level::{ParityLayout, ParityLevel, Raid0Layout, Raid10Layout};
use braid_md::{Level as MdLevel, Superblock};

use crate::redundant::Layout;

/// The geometry that joins members.
#[derive(Clone)]
pub enum Level {
    /// Members one behind the other.
    Linear(Linear),
    /// Stripes.
    Raid0(Raid0),
    /// Copies.
    Raid1(Raid1),
    /// Stripes of copies.
    Raid10(Raid10),
    /// Stripes with parity: raid4, raid5, raid6.
    Parity(Raid456),
}

impl Level {
    /// Returns the level that a superblock describes. `sizes` are the bytes that the array uses of each member,
    /// in the order of roles. `raid0_layout` applies if none is recorded.
    ///
    /// # Errors
    /// No geometry fits the description.
    pub fn of(
        superblock: &Superblock,
        raid0_layout: Option<Raid0Layout>,
        sizes: Vec<u64>,
    ) -> Result<Level, GeometryError> {
        let count = superblock.raid_disks as usize;
        let size = superblock.component_size;
        let with_parity = |level| parity(size, count, superblock.chunk, level, superblock.layout);
        match superblock.level {
            MdLevel::Linear => Linear::new(&sizes, 512).map(Level::Linear),
            MdLevel::Raid0 => {
                // Without a recorded layout the members are equal, or assembly has refused the array.
                let layout = Raid0Layout::from_number(superblock.layout).or(raid0_layout);
                let layout = layout.unwrap_or_default();
                Raid0::new(&sizes, superblock.chunk, layout, 512).map(Level::Raid0)
            }
            MdLevel::Raid1 => Raid1::new(size, count).map(Level::Raid1),
            MdLevel::Raid10 => {
                let layout = Raid10Layout::from_number(superblock.layout)?;
                Raid10::new(size, count, superblock.chunk, layout).map(Level::Raid10)
            }
            MdLevel::Raid4 => with_parity(ParityLevel::Raid4),
            MdLevel::Raid5 => with_parity(ParityLevel::Raid5),
            MdLevel::Raid6 => with_parity(ParityLevel::Raid6),
        }
    }

    /// Returns md's name of the level.
    pub fn name(&self) -> &'static str {
        match self {
            Level::Linear(_) => "linear",
            Level::Raid0(_) => "raid0",
            Level::Raid1(_) => "raid1",
            Level::Raid10(_) => "raid10",
            Level::Parity(parity) => parity.level().name(),
        }
    }

    /// Returns the capacity in bytes.
    pub fn size(&self) -> u64 {
        match self {
            Level::Linear(linear) => linear.size(),
            Level::Raid0(raid0) => raid0.size(),
            Level::Raid1(raid1) => Mirrored::size(raid1),
            Level::Raid10(raid10) => Mirrored::size(raid10),
            Level::Parity(parity) => parity.size(),
        }
    }

    /// Returns true if the level survives the loss of a member.
    pub fn is_redundant(&self) -> bool {
        matches!(self, Level::Raid1(_) | Level::Raid10(_) | Level::Parity(_))
    }

    /// Returns the layout for the engine, if the level survives the loss of a member.
    pub fn redundant(&self) -> Option<Layout> {
        match self {
            Level::Raid1(raid1) => Some(Layout::Copies(Rc::new(raid1.clone()))),
            Level::Raid10(raid10) => Some(Layout::Copies(Rc::new(raid10.clone()))),
            Level::Parity(parity) => Some(Layout::Parity(parity.clone())),
            Level::Linear(_) | Level::Raid0(_) => None,
        }
    }
}

/// Returns a level with parity; `layout` is md's number of its layout.
///
/// # Errors
/// No geometry fits the description.
pub fn parity(
    member_size: u64,
    members: usize,
    chunk: u64,
    level: ParityLevel,
    layout: u32,
) -> Result<Level, GeometryError> {
    let layout = ParityLayout::from_number(level, layout)?;
    Raid456::new(member_size, members, chunk, level, layout).map(Level::Parity)
}
