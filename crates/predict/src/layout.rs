//! Which members a request of an array moves bytes of, and in which order.
//!
//! The geometries and the choice between read-modify-write and reconstruct-write are the engine's
//! (`braid_array`), and so is the choice of a copy. Deliberately absent: what is written besides, a
//! bitmap's bits, a log's records, superblocks; and missing members.

use braid_array::geometry::Raid456;
use braid_array::parity_plan::{Lost, ParityState, bands, choose, reads, split_stripes, writes};
use braid_array::{ArrayByte, ArraySpan, Geometry, Mirrored};

/// Where bytes lie.
pub enum Layout {
    /// All on member 0.
    Single,
    /// Each byte on one member.
    Of(Box<dyn Geometry>),
    /// Copies of each byte on several.
    Mirrored(Box<dyn Mirrored>),
    /// Parity of each stripe.
    Parity(Raid456),
}

/// Bytes of one member to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Op {
    pub(crate) member: usize,
    pub(crate) write: bool,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

/// Bytes of a request that are done together: first all of one list, then all of the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unit {
    pub(crate) bytes: u64,
    pub(crate) first: Vec<Op>,
    pub(crate) then: Vec<Op>,
}

/// What a member is doing, for the choice of a copy.
pub(crate) struct Busy {
    /// Where its last read ended.
    pub(crate) head: u64,
    /// Reads under way.
    pub(crate) reads: u64,
}

impl Layout {
    /// Bytes that keep all members busy, 0 if there is no such number.
    pub fn stripe(&self) -> u64 {
        match self {
            Layout::Single => 0,
            Layout::Of(geometry) => geometry.stripe(),
            Layout::Mirrored(geometry) => geometry.stripe(),
            Layout::Parity(geometry) => geometry.stripe(),
        }
    }

    /// The units of a request, in the order of its bytes.
    pub(crate) fn units(
        &self,
        write: bool,
        offset: u64,
        bytes: u64,
        busy: &dyn Fn(usize) -> Busy,
    ) -> Vec<Unit> {
        let op = |member: usize, offset: u64, bytes: u64| Op { member, write, offset, bytes };
        let one = |op: Op| Unit { bytes: op.bytes, first: vec![op], then: Vec::new() };
        let mut units = Vec::new();
        let (mut at, end) = (offset, offset + bytes);
        match self {
            Layout::Single => units.push(one(op(0, offset, bytes))),
            Layout::Of(geometry) => {
                while at < end {
                    let run = geometry.locate(ArrayByte::new(at));
                    let len = run.len.min(end - at);
                    units.push(one(op(run.role.index(), run.offset.get(), len)));
                    at += len;
                }
            }
            Layout::Mirrored(geometry) => {
                while at < end {
                    let copies = (0..geometry.copies())
                        .map(|copy| geometry.locate(ArrayByte::new(at), copy));
                    let copies: Vec<_> = copies.collect();
                    let len = copies.iter().map(|run| run.len).min().unwrap_or(1).min(end - at);
                    let ops = copies.iter().map(|run| op(run.role.index(), run.offset.get(), len));
                    let rank = |op: &Op| {
                        let Busy { head, reads } = busy(op.member);
                        (head != op.offset, reads, head.abs_diff(op.offset))
                    };
                    let first = if write {
                        ops.collect()
                    } else {
                        ops.min_by_key(rank).into_iter().collect()
                    };
                    units.push(Unit { bytes: len, first, then: Vec::new() });
                    at += len;
                }
            }
            Layout::Parity(geometry) if !write => {
                while at < end {
                    let run = geometry.locate(ArrayByte::new(at));
                    let len = run.len.min(end - at);
                    units.push(one(op(run.role.index(), run.offset.get(), len)));
                    at += len;
                }
            }
            Layout::Parity(geometry) => {
                let span = ArraySpan::new(ArrayByte::new(offset), bytes);
                for (stripe, part) in split_stripes(geometry, span) {
                    let bands = bands(geometry, stripe, part);
                    let methods = choose(geometry, &bands, &Lost::NOTHING, ParityState::InSync);
                    let ops =
                        |write: bool, list: Vec<(braid_array::Role, braid_array::MemberSpan)>| {
                            let op =
                                |(role, rows): (braid_array::Role, braid_array::MemberSpan)| Op {
                                    member: role.index(),
                                    write,
                                    offset: rows.offset.get(),
                                    bytes: rows.len,
                                };
                            list.into_iter().map(op).collect::<Vec<_>>()
                        };
                    let before =
                        ops(false, reads(geometry, stripe, &bands, &methods, &Lost::NOTHING));
                    let after = ops(true, writes(geometry, stripe, &bands, &Lost::NOTHING));
                    units.push(match before.is_empty() {
                        true => Unit { bytes: part.len, first: after, then: Vec::new() },
                        false => Unit { bytes: part.len, first: before, then: after },
                    });
                }
            }
        }
        units
    }
}
