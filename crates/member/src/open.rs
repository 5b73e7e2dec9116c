//! From the leaves of a stack to members.

use braid_device::{Access, Buses, Unreadable};
use braid_stack::Node;

use crate::kind::{Kind, MemberError};
use crate::rbd::Ceph;
use crate::remote::Remote;
use crate::{file, modelled, ram};

/// Options for opening the leaves of a stack.
pub struct Opening<'a> {
    /// The access to files and devices.
    pub access: Access,
    /// Bytes that a RAM disk can be resized to; 0 for its size.
    pub most_ram: u64,
    /// The buses of modelled devices, which those of one name share.
    pub buses: &'a mut Buses,
}

/// Opens, or makes, what a leaf of a stack is; `None` for a level, which has members.
///
/// # Errors
/// [`MemberError::Locked`] only for a file that stays locked.
pub fn open(node: &Node, opening: &mut Opening<'_>) -> Result<Option<Box<dyn Kind>>, MemberError> {
    Ok(Some(match node {
        Node::Ram(ram) => Box::new(ram::open(ram, opening.most_ram)?),
        Node::File(file) => Box::new(file::open_file(&file.name(), opening.access, 0, None)?),
        Node::Nbd(nbd) => Box::new(Remote::open(nbd, opening.access)?),
        Node::Rbd(rbd) => Box::new(Ceph::open(rbd, opening.access)?),
        Node::Model(model) => Box::new(modelled::open(model, opening.buses)?),
        Node::Unreadable(one) => Box::new(Unreadable::new(one.size.bytes())),
        _ => return Ok(None),
    }))
}
