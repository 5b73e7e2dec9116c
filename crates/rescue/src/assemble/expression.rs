//! The stack expression of an array that was opened or solved.

use std::ops::Range;
use std::path::{Path, PathBuf};

use braid_level::{Level, Raid0Layout, Raid10Layout, Shape, layout};
use braid_stack::{ByteSize, File};

use super::layout::{Ranges, joined};
use super::{Claimant, Opening, Seat};

/// Returns the expression of a part of a file or device, without the bytes that a map calls unreadable.
pub(crate) fn member_text(path: &str, offset: u64, length: u64, map: Option<&Path>) -> String {
    let (offset, length) = (ByteSize(offset), ByteSize(length));
    let whole = File::whole_at(path.to_owned());
    match map {
        None => File { offset, length: Some(length), ..whole }.to_string(),
        Some(map) => {
            let map = File::whole_at(map.to_string_lossy().into_owned());
            format!("slice(holes({whole}, map={map}), offset={offset}, length={length})")
        }
    }
}

/// Returns the expression of an array over members, in the order of their roles.
pub(crate) fn array_text(shape: Shape, members: &[String]) -> String {
    let (level, chunk, members) = (shape.level, ByteSize(shape.chunk), members.join(", "));
    let name = layout::name_of(level, shape.layout);
    match level {
        Level::Linear | Level::Raid1 => format!("{level}({members})"),
        Level::Raid4 => format!("{level}(chunk={chunk}, {members})"),
        Level::Raid0 => {
            let layout = Raid0Layout::from_number(shape.layout).unwrap_or_default();
            format!("{level}(chunk={chunk}, layout={layout}, {members})")
        }
        Level::Raid5 | Level::Raid6 => format!("{level}(chunk={chunk}, layout={name}, {members})"),
        Level::Raid10 => {
            let number = Raid10Layout::from_number(shape.layout);
            let name = number.map_or(name, |layout| layout.to_string());
            format!("{level}(chunk={chunk}, layout={name}, {members})")
        }
    }
}

/// Returns the expression of a part of a device.
pub(crate) fn slice_text(device: &str, part: &Range<u64>) -> String {
    let (offset, length) = (ByteSize(part.start), ByteSize(part.end - part.start));
    format!("slice({device}, offset={offset}, length={length})")
}

/// Returns the expression of devices one after another.
pub(crate) fn linear_text(parts: &[String]) -> String {
    format!("linear({})", parts.join(", "))
}

impl Opening {
    /// Returns the bytes of a seat's file or device that must not be read.
    #[must_use]
    pub fn holes_of(claimants: &[Claimant], seat: &Seat) -> Ranges {
        let one = &claimants[seat.claimant];
        let start = one.start + one.superblock.data_offset;
        let moved = seat.holes.iter().map(|hole| hole.start + start..hole.end + start);
        joined(one.holes.iter().cloned().chain(moved).collect())
    }

    /// Returns the expression by which `braid cat` and `braid serve` read the array. `map` names the map of a seat
    /// that has holes.
    pub fn expression(
        &self,
        claimants: &[Claimant],
        map: &dyn Fn(usize, &Seat) -> Option<PathBuf>,
    ) -> String {
        let array = &claimants[self.freshest].superblock;
        let members = self.seats.iter().enumerate().map(|(role, seat)| match seat {
            None => match self.gap {
                Some(length) => format!("error({})", ByteSize(length)),
                None => "missing".to_owned(),
            },
            Some(seat) => {
                let one = &claimants[seat.claimant];
                let length = match array.level.is_redundant() {
                    true => array.component_size,
                    false => one.superblock.used(),
                };
                let offset = one.start + one.superblock.data_offset;
                member_text(&one.path, offset, length, map(role, seat).as_deref())
            }
        });
        let members: Vec<String> = members.collect();
        let (level, layout, chunk) = (array.level, array.layout, array.chunk);
        array_text(Shape { level, layout, chunk }, &members)
    }
}
