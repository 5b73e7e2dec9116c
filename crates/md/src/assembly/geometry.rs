//! What the shape of an array says before any data moves: which members suffice, how much of
//! each is used, and how large the whole is.
//!
//! ```text
//! raid10, n2 on 3 members: chunk c starts at copy number 2c, and the copies go round
//!   role      0   1   2
//!   row 0     c0  c0  c1
//!   row 1     c1  c2  c2      after 3 chunks the picture repeats
//! ```
//!
//! Invariant: nothing here overflows for the values of a checked superblock; sums saturate to
//! `None`. Deliberately absent: where a byte lies, which is the engine's.
//!
//! Source: Linux `drivers/md/raid10.c` (`__raid10_find_phys`, `_enough`, `raid10_size`),
//! `raid0.c` (`create_strip_zones`), `md-linear.c` (`linear_conf`), `raid5.c` (`raid5_size`).

use crate::{Level, Superblock};

/// raid10's layout, from md's number: near copies in bits 0–7, far copies in bits 8–15, bit 16
/// when the far copies lie one chunk further instead of far away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copies {
    /// Copies on neighbouring members.
    pub near: u32,
    /// Copies far away, or one row further.
    pub far: u32,
    /// Whether the far copies lie one row further.
    pub offset: bool,
}

impl Copies {
    /// The layout of md's number; `None` for the far sets of bits 17 and 18, for unknown bits,
    /// for no copies, and for more copies than members.
    #[must_use]
    pub fn from_number(number: u32, raid_disks: u32) -> Option<Copies> {
        let copies =
            Copies { near: number & 255, far: number >> 8 & 255, offset: number & 1 << 16 != 0 };
        let plausible = number >> 17 == 0 && (1..=raid_disks).contains(&copies.total());
        plausible.then_some(copies)
    }

    /// md's number.
    #[must_use]
    pub fn number(self) -> u32 {
        self.near | self.far << 8 | u32::from(self.offset) << 16
    }

    /// Copies of each chunk.
    #[must_use]
    pub fn total(self) -> u32 {
        self.near * self.far
    }

    /// The roles that hold chunk `chunk` of an array of `raid_disks` members.
    pub fn roles(self, chunk: u64, raid_disks: u32) -> impl Iterator<Item = usize> {
        let disks = u64::from(raid_disks.max(1));
        let first = chunk % disks * u64::from(self.near);
        let (near, far) = (u64::from(self.near), u64::from(self.far));
        (0..near)
            .flat_map(move |n| (0..far).map(move |f| ((first + n + f * near) % disks) as usize))
    }
}

/// Whether the members `present` (one for each role) hold all of the array's data.
#[must_use]
pub fn suffice(level: Level, layout: u32, present: &[bool]) -> bool {
    let absent = present.iter().filter(|present| !**present).count();
    match level {
        Level::Linear | Level::Raid0 => absent == 0,
        Level::Raid1 => absent < present.len(),
        Level::Raid4 | Level::Raid5 => absent <= 1,
        Level::Raid6 => absent <= 2,
        Level::Raid10 => {
            let disks = present.len() as u32;
            // The first copies of `disks` chunks start on every role that any chunk starts on.
            Copies::from_number(layout, disks).is_some_and(|copies| {
                (0..u64::from(disks))
                    .all(|chunk| copies.roles(chunk, disks).any(|role| present[role]))
            })
        }
    }
}

/// How many bytes of a member's data the array uses: all of its chunks for linear and raid0, the
/// component size for the others.
#[must_use]
pub fn usable(member: &Superblock) -> u64 {
    match member.level {
        Level::Linear | Level::Raid0 => round_down(member.data_size, member.chunk),
        _ => member.component_size,
    }
}

/// The array's size in bytes, given what it uses of each member (`usable`, in the order of the
/// roles); `None` where it exceeds 2^64 or the layout is not understood.
#[must_use]
pub fn array_size(level: Level, layout: u32, chunk: u64, usable: &[u64]) -> Option<u64> {
    let disks = usable.len() as u64;
    let component = usable.iter().copied().min()?;
    match level {
        Level::Linear | Level::Raid0 => {
            usable.iter().try_fold(0_u64, |sum, bytes| sum.checked_add(*bytes))
        }
        Level::Raid1 => Some(component),
        Level::Raid4 | Level::Raid5 => {
            round_down(component, chunk).checked_mul(disks.checked_sub(1)?)
        }
        Level::Raid6 => round_down(component, chunk).checked_mul(disks.checked_sub(2)?),
        Level::Raid10 => {
            let copies = Copies::from_number(layout, disks as u32)?;
            let rows = component.checked_div(chunk)? / u64::from(copies.far);
            (rows.checked_mul(disks)? / u64::from(copies.near)).checked_mul(chunk)
        }
    }
}

/// `bytes` without what does not fill a `unit`; all of them if there is no unit.
pub(crate) fn round_down(bytes: u64, unit: u64) -> u64 {
    bytes - bytes.checked_rem(unit).unwrap_or(0)
}
