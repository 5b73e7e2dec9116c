//! What the members of a stack are joined by.

use braid_array::GeometryError;
use braid_array::geometry::{Linear, Raid0, Raid1, Raid10, Raid456};
use braid_block::Limits;
use braid_stack::{Node, Stack};

pub(super) use braid_engine::assembled::Level;

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
            Raid0::new(&sizes, raid0.chunk.bytes(), raid0.layout, block).map(Level::Raid0)
        }
        Node::Raid1(_) => {
            let whole = least / u64::from(block) * u64::from(block);
            Raid1::new(whole, members.len()).map(Level::Raid1)
        }
        Node::Raid10(raid10) => {
            let chunk = raid10.chunk.bytes();
            Raid10::new(least, members.len(), chunk, raid10.layout).map(Level::Raid10)
        }
        Node::Parity(raid) => {
            let chunk = raid.chunk.bytes();
            Raid456::new(least, members.len(), chunk, raid.level, raid.layout).map(Level::Parity)
        }
        _ => unreachable!("a leaf has no members"),
    }
}
