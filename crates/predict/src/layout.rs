//! The members whose bytes a request of an array moves, and their order.
//!
//! The geometries and the choice between read-modify-write and reconstruct-write are the engine's
//! (`braid_array`), and so is the choice of a copy. Deliberately absent: further writes, such as a bitmap's
//! bits, a log's records, superblocks.
//!
//! Invariant: no request goes to a missing member. The code that joins members ensures that the others suffice.

use braid_array::geometry::Raid456;
use braid_array::parity_plan::{
    Lost, ParityState, bands, choose, reads, sources, split_stripes, writes,
};
use braid_array::{ArrayByte, ArraySpan, Geometry, MemberByte, MemberSpan, Mirrored, Role};

/// The place of bytes on members.
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

/// The present work of a member, for the choice of a copy.
pub(crate) struct Busy {
    /// The end of its last read.
    pub(crate) head: u64,
    /// Reads under way.
    pub(crate) reads: u64,
    /// It is remote.
    pub(crate) is_far: bool,
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

    /// The units of a request, in the order of its bytes; `busy` answers nothing for a member that is missing.
    pub(crate) fn units(
        &self,
        write: bool,
        offset: u64,
        bytes: u64,
        busy: &dyn Fn(usize) -> Option<Busy>,
    ) -> Vec<Unit> {
        match self {
            Layout::Single => vec![Unit::of(Op { member: 0, write, offset, bytes })],
            Layout::Of(geometry) => runs(&**geometry, write, offset, bytes),
            Layout::Mirrored(geometry) => copies(&**geometry, write, offset, bytes, busy),
            Layout::Parity(geometry) => {
                let is_there = |role: Role| busy(role.index()).is_some();
                let span = ArraySpan::new(ArrayByte::new(offset), bytes);
                match write {
                    true => parity_writes(geometry, span, &is_there),
                    false => parity_reads(geometry, span, &is_there),
                }
            }
        }
    }
}

impl Unit {
    /// The units of one request as one, with what falls on one member in one piece, if they are of one step
    /// each: so braid asks members (`braid_array::Fan`).
    pub(crate) fn gather(units: Vec<Unit>) -> Vec<Unit> {
        if units.iter().any(|unit| !unit.then.is_empty()) {
            return units;
        }
        let mut one = Unit::default();
        for unit in units {
            one.bytes += unit.bytes;
            for op in unit.first {
                let goes_on = |last: &&mut Op| {
                    last.member == op.member && last.offset + last.bytes == op.offset
                };
                match one.first.iter_mut().rev().find(goes_on) {
                    Some(last) => last.bytes += op.bytes,
                    None => one.first.push(op),
                }
            }
        }
        vec![one]
    }

    pub(crate) fn of(op: Op) -> Unit {
        Unit { bytes: op.bytes, first: vec![op], then: Vec::new() }
    }
}

/// The runs of a request, each on one member.
fn runs(geometry: &dyn Geometry, write: bool, offset: u64, bytes: u64) -> Vec<Unit> {
    let mut units = Vec::new();
    let (mut at, end) = (offset, offset + bytes);
    while at < end {
        let run = geometry.locate(ArrayByte::new(at));
        let len = run.len.min(end - at);
        let (member, offset) = (run.role.index(), run.offset.get());
        units.push(Unit::of(Op { member, write, offset, bytes: len }));
        at += len;
    }
    units
}

/// All copies that there are for a write, the best one for a read. A remote member of a raid1 is taken for
/// write-mostly, as docs/two-machines.md has it.
fn copies(
    geometry: &dyn Mirrored,
    write: bool,
    offset: u64,
    bytes: u64,
    busy: &dyn Fn(usize) -> Option<Busy>,
) -> Vec<Unit> {
    let mut units = Vec::new();
    let (mut at, end) = (offset, offset + bytes);
    while at < end {
        let copies = (0..geometry.copies()).map(|copy| geometry.locate(ArrayByte::new(at), copy));
        let copies: Vec<_> = copies.collect();
        let len = copies.iter().map(|run| run.len).min().unwrap_or(1).min(end - at);
        let ops = copies.iter().filter_map(|run| {
            let (member, offset) = (run.role.index(), run.offset.get());
            Some((busy(member)?, Op { member, write, offset, bytes: len }))
        });
        let has_all = geometry.copies() == geometry.members();
        let rank = |(Busy { head, reads, is_far }, op): &(Busy, Op)| {
            (*is_far && has_all, *head != op.offset, *reads, head.abs_diff(op.offset))
        };
        let first = match write {
            true => ops.map(|(_, op)| op).collect(),
            false => ops.min_by_key(rank).map(|(_, op)| op).into_iter().collect(),
        };
        units.push(Unit { bytes: len, first, then: Vec::new() });
        at += len;
    }
    units
}

/// The data where they are. Where one is missing of several that are wanted of a stripe, all rows are read
/// once, and what is missing is reconstructed from what is wanted anyway.
fn parity_reads(geometry: &Raid456, span: ArraySpan, is_there: &dyn Fn(Role) -> bool) -> Vec<Unit> {
    let all = runs(geometry, false, span.offset.get(), span.len);
    let is_lost = |unit: &Unit| unit.first.iter().any(|op| !is_there(Role::nth(op.member)));
    if !all.iter().any(is_lost) {
        return all;
    }
    let reconstruct = |stripe, bytes, lost: usize, rows: MemberSpan| {
        let sources = sources(geometry, stripe, Role::nth(lost), is_there);
        let sources = sources.expect("the members that are there suffice");
        Unit {
            bytes,
            first: ops(false, sources.into_iter().map(|role| (role, rows))),
            then: Vec::new(),
        }
    };
    let mut units = Vec::new();
    for (stripe, part) in split_stripes(geometry, span) {
        let of_stripe = runs(geometry, false, part.offset.get(), part.len);
        match of_stripe.iter().find(|unit| is_lost(unit)) {
            Some(lost) => {
                let bands = bands(geometry, stripe, part);
                let first = bands.first().map_or(0, |band| band.rows.offset.get());
                let end = bands.last().map_or(0, |band| band.rows.end().get());
                let rows = MemberSpan::new(MemberByte::new(first), end - first);
                units.push(reconstruct(stripe, part.len, lost.first[0].member, rows));
            }
            None => units.extend(of_stripe),
        }
    }
    units
}

/// For each stripe, the reads before a write, and then the writes.
fn parity_writes(
    geometry: &Raid456,
    span: ArraySpan,
    is_there: &dyn Fn(Role) -> bool,
) -> Vec<Unit> {
    let unit = |(stripe, part): (u64, ArraySpan)| {
        let lost = Lost::of(geometry, stripe, is_there);
        let lost = lost.expect("the members that are there suffice");
        let bands = bands(geometry, stripe, part);
        let methods = choose(geometry, &bands, &lost, ParityState::InSync);
        let before = ops(false, reads(geometry, stripe, &bands, &methods, &lost));
        let after = ops(true, writes(geometry, stripe, &bands, &lost));
        match before.is_empty() {
            true => Unit { bytes: part.len, first: after, then: Vec::new() },
            false => Unit { bytes: part.len, first: before, then: after },
        }
    };
    split_stripes(geometry, span).map(unit).collect()
}

fn ops(write: bool, list: impl IntoIterator<Item = (Role, MemberSpan)>) -> Vec<Op> {
    let op = |(role, rows): (Role, MemberSpan)| Op {
        member: role.index(),
        write,
        offset: rows.offset.get(),
        bytes: rows.len,
    };
    list.into_iter().map(op).collect()
}
