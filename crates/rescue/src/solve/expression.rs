//! The stack expressions of hypotheses.

use std::ops::Range;
use std::path::{Path, PathBuf};

use braid_stack::ByteSize;

use super::answer::{Hypothesis, Reshape, Seat};
use crate::assemble::{Ranges, array_text, linear_text, member_text, slice_text};

/// A member as expressions name it.
#[derive(Clone, Debug)]
pub struct Named {
    /// The path of the file or device.
    pub path: String,
    /// Its size in bytes.
    pub size: u64,
    /// The ranges that must not be read, in order.
    pub holes: Ranges,
    /// Their map; `None` if there are none.
    pub map: Option<PathBuf>,
}

impl Named {
    /// The map, if a part of it must not be read.
    fn map_of(&self, offset: u64, length: u64) -> Option<&Path> {
        let is_cut = |hole: &Range<u64>| hole.start < offset + length && hole.end > offset;
        self.map.as_deref().filter(|_| self.holes.iter().any(is_cut))
    }
}

impl Hypothesis {
    /// Returns the bytes of data that the array uses of each member that is there; `None` for a missing one.
    ///
    /// Without evidence, it is what the smallest member has, or what each member has if there is no redundancy: the
    /// array's real size is in superblocks alone.
    #[must_use]
    pub fn lengths(&self, members: &[Named]) -> Vec<Option<u64>> {
        let unit = self.pattern.chunk.max(4096);
        let room =
            |seat: &Seat| members[seat.member].size.saturating_sub(seat.data_offset) / unit * unit;
        let smallest = self.seats.iter().flatten().map(room).min().unwrap_or(0);
        let of = |seat: &Seat| match self.pattern.level.is_redundant() {
            true => self.component.unwrap_or(smallest),
            false => seat.length.unwrap_or_else(|| room(seat)),
        };
        self.seats.iter().map(|seat| seat.as_ref().map(of)).collect()
    }

    /// Returns the expression by which `braid cat` and `braid serve` read the array.
    #[must_use]
    pub fn expression(&self, members: &[Named]) -> String {
        let text = |(seat, length): (&Option<Seat>, Option<u64>)| {
            let (Some(seat), Some(length)) = (seat, length) else { return "missing".to_owned() };
            let one = &members[seat.member];
            let map = one.map_of(seat.data_offset, length);
            member_text(&one.path, seat.data_offset, length, map)
        };
        let texts: Vec<String> = self.seats.iter().zip(self.lengths(members)).map(text).collect();
        array_text(self.pattern.shape(), &texts)
    }
}

impl Reshape {
    /// Returns the expression that reads what lies below the position by one geometry, and the rest by the other.
    /// The position is the lowest one that the evidence allows.
    #[must_use]
    pub fn expression(&self, members: &[Named]) -> String {
        let (below, above) = (self.below.expression(members), self.above.expression(members));
        let at = self.position.start;
        let above = format!("slice({above}, offset={})", ByteSize(at));
        linear_text(&[slice_text(&below, &(0..at)), above])
    }
}
