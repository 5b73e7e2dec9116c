//! The size of an array, the part of its members that it uses, and the sets of members that hold all of its
//! data.
//!
//! Source: Linux `md-linear.c` (`linear_conf`), `raid0.c` (`create_strip_zones`), `raid1.c`
//! (`raid1_size`), `raid5.c` (`raid5_size`), `raid10.c` (`raid10_size`, `_enough`).

use crate::raid10::Columns;
use crate::{Level, Raid10Layout};

/// All that tells where an array's bytes lie, but for its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The level.
    pub level: Level,
    /// md's number of its layout.
    pub layout: u32,
    /// Bytes on one member before the next one takes over; 0 where that has no meaning.
    pub chunk: u64,
}

impl Shape {
    /// The size in bytes of an array over members of these sizes, in the order of the roles; `None`
    /// as [`array_size`], or without any member.
    #[must_use]
    pub fn size_over(&self, members: &[Option<u64>]) -> Option<u64> {
        let least = members.iter().flatten().copied().min()?;
        let used: Vec<u64> = members
            .iter()
            .map(|size| if self.level.is_redundant() { least } else { size.unwrap_or(0) })
            .collect();
        array_size(self.level, self.layout, self.chunk, &used)
    }

    /// The size of an array over so many members of one size, as a multiple of that size: 2 for a raid5
    /// of three. `None` as [`array_size`].
    #[must_use]
    pub fn data_members(&self, members: usize) -> Option<f64> {
        // A multiple of every chunk.
        const UNIT: u64 = 1 << 40;
        Some(self.size_over(&vec![Some(UNIT); members])? as f64 / UNIT as f64)
    }
}

/// The number of a member's `data` bytes that the array uses: all whole chunks for linear and raid0, the
/// `component` size for the others.
#[must_use]
pub fn used_of_member(level: Level, chunk: u64, data: u64, component: u64) -> u64 {
    if level.is_redundant() { component } else { round_down(data, chunk) }
}

/// The array's size in bytes, given what it uses of each member, in the order of the roles.
/// `None` without members, where the size exceeds 2^64, or for a layout that md does not know.
#[must_use]
pub fn array_size(level: Level, layout: u32, chunk: u64, used: &[u64]) -> Option<u64> {
    let component = used.iter().copied().min()?;
    match level {
        Level::Linear | Level::Raid0 => {
            used.iter().try_fold(0_u64, |sum, bytes| sum.checked_add(round_down(*bytes, chunk)))
        }
        _ => redundant_size(level, layout, chunk, used.len() as u64, component),
    }
}

/// The size in bytes of an array of `members`, each of which gives it `component` bytes; `None`
/// where that does not tell the size (linear, raid0), and as [`array_size`].
#[must_use]
pub fn redundant_size(
    level: Level,
    layout: u32,
    chunk: u64,
    members: u64,
    component: u64,
) -> Option<u64> {
    match level {
        Level::Linear | Level::Raid0 => None,
        Level::Raid1 => Some(component),
        Level::Raid4 | Level::Raid5 | Level::Raid6 => {
            let parities = level.with_parity()?.parities() as u64;
            round_down(component, chunk).checked_mul(members.checked_sub(parities)?)
        }
        Level::Raid10 => {
            let layout = Raid10Layout::from_number(layout).ok()?;
            let rows = component.checked_div(chunk)? / layout.far() as u64;
            (rows.checked_mul(members)? / layout.near() as u64).checked_mul(chunk)
        }
    }
}

/// True if the members that are `present` (one for each role) hold all of the array's data.
#[must_use]
pub fn suffice(level: Level, layout: u32, present: &[bool]) -> bool {
    let absent = present.iter().filter(|present| !**present).count();
    match level {
        Level::Linear | Level::Raid0 => absent == 0,
        Level::Raid1 => absent < present.len(),
        Level::Raid4 | Level::Raid5 | Level::Raid6 => {
            level.with_parity().is_some_and(|level| absent <= level.parities())
        }
        Level::Raid10 => {
            let layout = Raid10Layout::from_number(layout);
            // The copies of as many chunks as there are members lie as those of all chunks.
            layout.and_then(|layout| Columns::new(layout, present.len())).is_ok_and(|columns| {
                (0..present.len() as u64)
                    .all(|chunk| columns.holders(chunk).any(|member| present[member]))
            })
        }
    }
}

/// `bytes` without what does not fill a `unit`; all of them if there is no unit.
#[must_use]
pub fn round_down(bytes: u64, unit: u64) -> u64 {
    bytes - bytes.checked_rem(unit).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_round_down() {
        assert_eq!((round_down(4097, 4096), round_down(4095, 4096)), (4096, 0));
        assert_eq!(round_down(7, 0), 7);
    }
}
