//! What the members of a stack are joined by.

use braid_array::GeometryError;
use braid_array::geometry::{Linear, ParityLevel, Raid0, Raid0Layout, Raid1, Raid10, Raid10Layout};
use braid_block::Limits;
use braid_engine::assembled::parity;
use braid_stack::{Node, Stack};

pub(crate) use braid_engine::assembled::Level;

/// The level of a stack's top over members of these limits; none for one that is missing.
///
/// # Errors
/// The members cannot be joined so.
pub(super) fn of_stack(stack: &Stack, members: &[Option<Limits>]) -> Result<Level, GeometryError> {
    let sizes: Vec<u64> = members.iter().flatten().map(|member| member.size).collect();
    let block = members.iter().flatten().map(|member| member.logical_block).max().unwrap_or(512);
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
