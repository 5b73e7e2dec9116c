//! What members are joined by: the geometries, as a volume has them.

use std::rc::Rc;

use braid_array::geometry::{
    Linear, ParityLayout, ParityLevel, Raid0, Raid0Layout, Raid1, Raid10, Raid10Layout, Raid456,
};
use braid_array::{Geometry, GeometryError};
use braid_block::Limits;
use braid_engine::redundant::Layout;
use braid_stack::{Node, Stack};

/// What members are joined by.
#[derive(Clone)]
pub(crate) enum Level {
    Linear(Linear),
    Raid0(Raid0),
    Raid1(Raid1),
    Raid10(Raid10),
    Parity(Raid456),
}

impl Level {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Level::Linear(_) => "linear",
            Level::Raid0(_) => "raid0",
            Level::Raid1(_) => "raid1",
            Level::Raid10(_) => "raid10",
            Level::Parity(parity) => parity.level().name(),
        }
    }

    pub(crate) fn size(&self) -> u64 {
        match self {
            Level::Linear(linear) => linear.size(),
            Level::Raid0(raid0) => raid0.size(),
            Level::Raid1(raid1) => braid_array::Mirrored::size(raid1),
            Level::Raid10(raid10) => braid_array::Mirrored::size(raid10),
            Level::Parity(parity) => parity.size(),
        }
    }

    pub(crate) fn is_redundant(&self) -> bool {
        matches!(self, Level::Raid1(_) | Level::Raid10(_) | Level::Parity(_))
    }

    pub(super) fn redundant(&self) -> Option<Layout> {
        match self {
            Level::Raid1(raid1) => Some(Layout::Copies(Rc::new(raid1.clone()))),
            Level::Raid10(raid10) => Some(Layout::Copies(Rc::new(raid10.clone()))),
            Level::Parity(parity) => Some(Layout::Parity(parity.clone())),
            Level::Linear(_) | Level::Raid0(_) => None,
        }
    }

    /// The level of a stack's top over members of these limits; none for one that is missing.
    ///
    /// # Errors
    /// The members cannot be joined so.
    pub(super) fn of(stack: &Stack, members: &[Option<Limits>]) -> Result<Level, GeometryError> {
        let sizes: Vec<u64> = members.iter().flatten().map(|member| member.size).collect();
        let block =
            members.iter().flatten().map(|member| member.logical_block).max().unwrap_or(512);
        let least = sizes.iter().copied().min().unwrap_or(0);
        match &stack.node {
            Node::Linear(_) => Linear::new(&sizes, block).map(Level::Linear),
            Node::Raid0(raid0) => {
                let layout = match raid0.layout {
                    braid_stack::Raid0Layout::Original => Raid0Layout::Original,
                    braid_stack::Raid0Layout::Alternate => Raid0Layout::Alternate,
                };
                Raid0::new(&sizes, raid0.chunk.bytes(), layout, block).map(Level::Raid0)
            }
            Node::Raid1(_) => {
                let whole = least / u64::from(block) * u64::from(block);
                Raid1::new(whole, members.len()).map(Level::Raid1)
            }
            Node::Raid10(raid10) => Raid10Layout::from_number(raid10.layout.number())
                .and_then(|layout| Raid10::new(least, members.len(), raid10.chunk.bytes(), layout))
                .map(Level::Raid10),
            // The geometry has its own for a raid4.
            Node::Raid4(raid4) => {
                parity(least, members.len(), raid4.chunk.bytes(), ParityLevel::Raid4, 0)
            }
            Node::Raid5(raid5) => {
                let layout = raid5.layout.number();
                parity(least, members.len(), raid5.chunk.bytes(), ParityLevel::Raid5, layout)
            }
            Node::Raid6(raid6) => {
                let layout = raid6.layout.number();
                parity(least, members.len(), raid6.chunk.bytes(), ParityLevel::Raid6, layout)
            }
            _ => unreachable!("a leaf has no members"),
        }
    }
}

/// A level with parity, by md's number of its layout.
pub(super) fn parity(
    member_size: u64,
    members: usize,
    chunk: u64,
    level: ParityLevel,
    layout: u32,
) -> Result<Level, GeometryError> {
    let layout = ParityLayout::from_number(level, layout)?;
    Raid456::new(member_size, members, chunk, level, layout).map(Level::Parity)
}
