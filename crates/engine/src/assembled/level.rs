//! Levels: the geometries that join members, as a volume uses them.

use std::sync::Arc;

use braid_array::geometry::{Linear, Raid0, Raid1, Raid10, Raid456};
use braid_array::{Geometry, GeometryError, Mirrored};
use braid_block::Limits;
use braid_level::{ParityLayout, ParityLevel, Raid0Layout, Raid10Layout, Shape};
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
        let (level, chunk, mut layout) = (superblock.level, superblock.chunk, superblock.layout);
        if level == MdLevel::Raid0 && Raid0Layout::from_number(layout).is_none() {
            // Without a recorded layout the members are equal, or assembly has refused the array.
            layout = raid0_layout.unwrap_or_default().number();
        }
        let count = superblock.raid_disks as usize;
        Level::new(Shape { level, layout, chunk }, &sizes, count, superblock.component_size, 512)
    }

    /// The level of `shape` over members with these limits, `None` for one that is missing; all of a member is
    /// used that whole blocks or chunks make.
    ///
    /// # Errors
    /// No geometry is like that.
    pub fn over(shape: Shape, members: &[Option<Limits>]) -> Result<Level, GeometryError> {
        let there = || members.iter().flatten();
        let sizes: Vec<u64> = there().map(|member| member.size).collect();
        let block = there().map(|member| member.logical_block).max().unwrap_or(512);
        let least = sizes.iter().copied().min().unwrap_or(0);
        let least = match shape.level {
            MdLevel::Raid1 => least / u64::from(block) * u64::from(block),
            _ => least,
        };
        Level::new(shape, &sizes, members.len(), least, block)
    }

    /// `sizes` are of the members that are there, for levels that use all of each; the others use `size` of each of
    /// `count`.
    fn new(
        shape: Shape,
        sizes: &[u64],
        count: usize,
        size: u64,
        block: u32,
    ) -> Result<Level, GeometryError> {
        let Shape { level, layout, chunk } = shape;
        match level {
            MdLevel::Linear => Linear::new(sizes, block).map(Level::Linear),
            MdLevel::Raid0 => {
                let layout = Raid0Layout::from_number(layout).unwrap_or_default();
                Raid0::new(sizes, chunk, layout, block).map(Level::Raid0)
            }
            MdLevel::Raid1 => Raid1::new(size, count).map(Level::Raid1),
            MdLevel::Raid10 => {
                let layout = Raid10Layout::from_number(layout)?;
                Raid10::new(size, count, chunk, layout).map(Level::Raid10)
            }
            MdLevel::Raid4 => parity(size, count, chunk, ParityLevel::Raid4, layout),
            MdLevel::Raid5 => parity(size, count, chunk, ParityLevel::Raid5, layout),
            MdLevel::Raid6 => parity(size, count, chunk, ParityLevel::Raid6, layout),
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
            Level::Raid1(raid1) => Some(Layout::Copies(Arc::new(raid1.clone()))),
            Level::Raid10(raid10) => Some(Layout::Copies(Arc::new(raid10.clone()))),
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
