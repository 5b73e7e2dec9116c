//! The volumes under test.

use std::rc::Rc;

use braid_array::geometry::{Linear, Raid0};
use braid_array::{ArrayByte, Geometry};
use braid_engine::{Array, Dev};
use braid_level::Raid0Layout;

use crate::world::Member;

/// A volume, by construction. Sizes and chunks are in units of the world that builds it.
#[derive(Clone, Debug)]
pub(crate) enum Stack {
    Disk(u64),
    Linear(Vec<Stack>),
    Raid0 { chunk: u64, layout: Raid0Layout, members: Vec<Stack> },
}

/// A volume and the members at its leaves.
pub(crate) struct Volume {
    pub(crate) dev: Dev,
    pub(crate) members: Vec<Member>,
    locate: Rc<dyn Fn(u64) -> (usize, u64)>,
}

fn disks(sizes: &[u64]) -> Vec<Stack> {
    sizes.iter().map(|size| Stack::Disk(*size)).collect()
}

fn raid0(chunk: u64, layout: Raid0Layout, members: Vec<Stack>) -> Stack {
    Stack::Raid0 { chunk, layout, members }
}

impl Stack {
    /// Both levels; members equal, unequal and alone; chunks that are powers of two and not;
    /// both layouts; nested both ways.
    pub(crate) fn all() -> Vec<Stack> {
        use Raid0Layout::{Alternate, Original};
        vec![
            Stack::Linear(disks(&[100, 37, 64])),
            raid0(8, Alternate, disks(&[96, 96, 96, 96])),
            raid0(9, Original, disks(&[50, 120, 75, 75])),
            raid0(9, Alternate, disks(&[50, 120, 75, 75])),
            raid0(8, Alternate, vec![Stack::Linear(disks(&[40, 33])), Stack::Disk(80)]),
            Stack::Linear(vec![raid0(11, Original, disks(&[44, 70])), Stack::Disk(30)]),
            raid0(16, Alternate, disks(&[100])),
            Stack::Linear(disks(&[64])),
        ]
    }

    /// One of them, every one in turn.
    pub(crate) fn number(index: u64) -> Stack {
        let mut all = Stack::all();
        let index = index as usize % all.len();
        all.swap_remove(index)
    }

    /// Makes the members, from front to back, and the arrays over them.
    pub(crate) fn build(&self, unit: u64, make: &mut dyn FnMut(u64) -> Member) -> Volume {
        match self {
            Stack::Disk(size) => {
                let member = make(size * unit);
                let dev = member.dev.clone();
                Volume { dev, members: vec![member], locate: Rc::new(|offset| (0, offset)) }
            }
            Stack::Linear(members) => {
                let parts = build_all(members, unit, make);
                let (sizes, block) = shape_of(&parts);
                join(Linear::new(&sizes, block).unwrap(), parts)
            }
            Stack::Raid0 { chunk, layout, members } => {
                let parts = build_all(members, unit, make);
                let (sizes, block) = shape_of(&parts);
                join(Raid0::new(&sizes, chunk * unit, *layout, block).unwrap(), parts)
            }
        }
    }
}

impl Volume {
    /// The member that holds byte `offset` of the volume.
    pub(crate) fn member_at(&self, offset: u64) -> usize {
        (self.locate)(offset).0
    }

    /// The place of byte `offset` on that member.
    pub(crate) fn offset_at(&self, offset: u64) -> u64 {
        (self.locate)(offset).1
    }

    /// Capacity in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.dev.limits().size
    }

    /// Logical block in bytes.
    pub(crate) fn block(&self) -> u64 {
        self.dev.limits().logical_block.into()
    }
}

fn build_all(stacks: &[Stack], unit: u64, make: &mut dyn FnMut(u64) -> Member) -> Vec<Volume> {
    stacks.iter().map(|stack| stack.build(unit, make)).collect()
}

fn shape_of(parts: &[Volume]) -> (Vec<u64>, u32) {
    let sizes = parts.iter().map(Volume::size).collect();
    let block = parts.iter().map(|part| part.dev.limits().logical_block).max();
    (sizes, block.expect("a member"))
}

fn join<G: Geometry + Clone + 'static>(geometry: G, parts: Vec<Volume>) -> Volume {
    let devs = parts.iter().map(|part| part.dev.clone()).collect();
    let dev = Dev::new(Array::new(geometry.clone(), devs));
    let mut members = Vec::new();
    // For each part, the number of its first member among all, and its own map.
    let mut maps = Vec::new();
    for part in parts {
        maps.push((members.len(), part.locate));
        members.extend(part.members);
    }
    let locate = move |offset| {
        let run = geometry.locate(ArrayByte::new(offset));
        let (first, locate) = &maps[run.role.index()];
        let (member, offset) = locate(run.offset.get());
        (first + member, offset)
    };
    Volume { dev, members, locate: Rc::new(locate) }
}
