//! The stack expressions of hypotheses.

use std::path::PathBuf;

use braid_stack::{ByteSize, File};

use super::answer::{Hypothesis, Reshape, Seat};
use crate::assemble::array_expression;

/// A member as expressions name it.
#[derive(Clone, Debug)]
pub struct Named {
    /// The path of the file or device.
    pub path: String,
    /// Its size in bytes.
    pub size: u64,
    /// The map of the ranges that must not be read; `None` if all may be.
    pub map: Option<PathBuf>,
}

impl Hypothesis {
    /// Returns the bytes of data that the array uses of each member that is there; `None` for a missing one.
    ///
    /// Where the geometry does not depend on them, it is what the smallest member has: the array's real size is in
    /// superblocks alone.
    #[must_use]
    pub fn lengths(&self, members: &[Named]) -> Vec<Option<u64>> {
        let unit = self.pattern.chunk.max(4096);
        let has = |seat: &Seat| members[seat.member].size.saturating_sub(seat.data_offset);
        let smallest = self.seats.iter().flatten().map(has).min().unwrap_or(0) / unit * unit;
        let of = |seat: &Seat| seat.length.or(self.component).unwrap_or(smallest);
        self.seats.iter().map(|seat| seat.as_ref().map(of)).collect()
    }

    /// Returns the expression by which `braid cat` and `braid serve` read the array.
    #[must_use]
    pub fn expression(&self, members: &[Named]) -> String {
        let lengths = self.lengths(members);
        let member = |(seat, length): (&Option<Seat>, Option<u64>)| {
            let (Some(seat), Some(length)) = (seat, length) else { return "missing".to_owned() };
            let one = &members[seat.member];
            let (offset, length) = (ByteSize(seat.data_offset), ByteSize(length));
            let whole = File::whole_at(one.path.clone());
            match &one.map {
                None => File { offset, length: Some(length), ..whole }.to_string(),
                Some(map) => {
                    let map = File::whole_at(map.to_string_lossy().into_owned());
                    format!("slice(holes({whole}, map={map}), offset={offset}, length={length})")
                }
            }
        };
        let texts: Vec<String> = self.seats.iter().zip(lengths).map(member).collect();
        array_expression(self.pattern.level, self.pattern.layout, self.pattern.chunk, &texts)
    }
}

impl Reshape {
    /// Returns the expression that reads what lies below the position by one geometry, and the rest by the other.
    /// The position is the lowest one that the evidence allows.
    #[must_use]
    pub fn expression(&self, members: &[Named]) -> String {
        let (below, above) = (self.below.expression(members), self.above.expression(members));
        let at = ByteSize(self.position.start);
        format!("linear(slice({below}, offset=0, length={at}), slice({above}, offset={at}))")
    }
}
