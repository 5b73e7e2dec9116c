//! The stack expression of an array that was opened, and the maps that it names.

use std::path::PathBuf;

use braid_level::{Level, Raid0Layout, layout};
use braid_stack::{ByteSize, File};

use super::layout::{Ranges, joined};
use super::{Claimant, Opening, Seat};

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
            None => "missing".to_owned(),
            Some(seat) => {
                let one = &claimants[seat.claimant];
                let length = match array.level.is_redundant() {
                    true => array.component_size,
                    false => one.superblock.used(),
                };
                let offset = ByteSize(one.start + one.superblock.data_offset);
                let whole = File::whole_at(one.path.clone());
                match map(role, seat) {
                    None => File { offset, length: Some(ByteSize(length)), ..whole }.to_string(),
                    Some(map) => {
                        let map = File::whole_at(map.to_string_lossy().into_owned());
                        let length = ByteSize(length);
                        format!(
                            "slice(holes({whole}, map={map}), offset={offset}, length={length})"
                        )
                    }
                }
            }
        });
        array_expression(array.level, array.layout, array.chunk, &members.collect::<Vec<_>>())
    }
}

/// Returns the expression of an array without superblocks: `layout` is md's number, `chunk` in bytes.
pub(crate) fn array_expression(
    level: Level,
    layout: u32,
    chunk: u64,
    members: &[String],
) -> String {
    let (members, chunk) = (members.join(", "), ByteSize(chunk));
    let name = match level {
        Level::Linear | Level::Raid1 => return format!("{level}({members})"),
        Level::Raid4 => return format!("{level}(chunk={chunk}, {members})"),
        Level::Raid0 => Raid0Layout::from_number(layout).unwrap_or_default().to_string(),
        Level::Raid5 | Level::Raid6 => layout::name_of(level, layout),
        Level::Raid10 => braid_level::Raid10Layout::from_number(layout)
            .map_or_else(|_| layout::name_of(level, layout), |layout| layout.to_string()),
    };
    format!("{level}(chunk={chunk}, layout={name}, {members})")
}
