//! The place of an array's bytes on its members, before anything is known of the members' sizes.
//!
//! ```text
//!   array     ├──────────at───┤
//!                             ├──▶ a spot for each copy: role, row, section
//!   role r    ├──row──┤ section 0      ├──row──┤ section 1 (raid10 with far copies)
//!             └ data offset            └ data offset + distance of the sections
//! ```
//!
//! Geometries of crate `array` want a size. They are given one that no member has ([`BOUNDLESS`]); only the
//! distance of raid10's far sections depends on it, so a spot names its section, and the row counts from there.

use std::fmt;

use braid_array::geometry::{Column, Linear, Raid0, Raid10, Raid456};
use braid_array::{ArrayByte, Geometry, MemberByte, Mirrored, Role};
use braid_level::{Level, ParityLayout, Raid0Layout, Raid10Layout, Shape};
use braid_md::Superblock;

/// Bytes of a member's data that are assumed while its size is not known: 1 PiB.
pub(super) const BOUNDLESS: u64 = 1 << 50;

/// A geometry without its members: all that tells in which role and row a byte of the array lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// The level.
    pub level: Level,
    /// md's number of the layout; 0 where the level has none.
    pub layout: u32,
    /// Bytes of a chunk; 0 for raid1 and linear.
    pub chunk: u64,
    /// Number of roles, missing members included.
    pub members: usize,
}

impl Pattern {
    /// Returns the pattern that a superblock names.
    pub(crate) fn of(superblock: &Superblock) -> Pattern {
        Pattern {
            level: superblock.level,
            layout: superblock.layout,
            chunk: superblock.chunk,
            members: superblock.raid_disks as usize,
        }
    }

    /// Returns it without the number of members.
    #[must_use]
    pub fn shape(&self) -> Shape {
        let Pattern { level, layout, chunk, .. } = *self;
        Shape { level, layout, chunk }
    }
}

impl fmt::Display for Pattern {
    /// `raid5 left-symmetric, 4 members, chunk 64 KiB`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Pattern { level, layout, chunk, members } = *self;
        write!(f, "{level}")?;
        let layout = braid_level::layout::name_of(level, layout);
        if !layout.is_empty() && level != Level::Raid0 {
            write!(f, " {layout}")?;
        }
        write!(f, ", {members} members")?;
        if chunk > 0 { write!(f, ", chunk {} KiB", chunk / 1024) } else { Ok(()) }
    }
}

/// One place at which a byte of the array lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spot {
    /// The role of its member.
    pub role: usize,
    /// Bytes from the start of the section.
    pub row: u64,
    /// Number of the section: 0 but for far copies of raid10.
    pub section: u64,
}

#[derive(Clone, Debug)]
enum Kind {
    Mirror,
    Stripes,
    Parity(Raid456),
    Copies {
        raid10: Raid10,
        section: u64,
    },
    /// raid0 over members of different sizes.
    Zones(Raid0),
    Row(Linear),
}

/// A pattern with its arithmetic.
#[derive(Clone, Debug)]
pub(super) struct Map {
    pub pattern: Pattern,
    kind: Kind,
}

impl Map {
    /// The map of a pattern; `None` if md has no such geometry, and for linear, which needs lengths.
    pub(super) fn new(pattern: Pattern) -> Option<Map> {
        let Pattern { level, layout, chunk, members } = pattern;
        if level.refuses_chunk(chunk).is_some()
            || !(1..=braid_array::MAX_MEMBERS).contains(&members)
        {
            return None;
        }
        let kind = match level {
            Level::Linear => return None,
            Level::Raid1 => Kind::Mirror,
            Level::Raid0 => Kind::Stripes,
            Level::Raid4 | Level::Raid5 | Level::Raid6 => {
                let level = level.with_parity()?;
                let layout = ParityLayout::from_number(level, layout).ok()?;
                Kind::Parity(Raid456::new(BOUNDLESS, members, chunk, level, layout).ok()?)
            }
            Level::Raid10 => {
                let layout = Raid10Layout::from_number(layout).ok()?;
                let raid10 = Raid10::new(BOUNDLESS, members, chunk, layout).ok()?;
                let sections = if layout.is_offset() { 1 } else { layout.far() as u64 };
                let section = raid10.member_size() / sections;
                Kind::Copies { raid10, section }
            }
        };
        Some(Map { pattern, kind })
    }

    /// The map of a raid0 over members whose data have these lengths, or of a linear array of them.
    pub(super) fn over(pattern: Pattern, lengths: &[u64]) -> Option<Map> {
        let kind = match pattern.level {
            Level::Linear => Kind::Row(Linear::new(lengths, 512).ok()?),
            _ => {
                let layout = Raid0Layout::from_number(pattern.layout).unwrap_or_default();
                Kind::Zones(Raid0::new(lengths, pattern.chunk, layout, 512).ok()?)
            }
        };
        Some(Map { pattern, kind })
    }

    /// The geometry of parity, if the level has one.
    pub(super) fn parity(&self) -> Option<&Raid456> {
        match &self.kind {
            Kind::Parity(raid) => Some(raid),
            _ => None,
        }
    }

    /// Number of copies of each byte.
    pub(super) fn copies(&self) -> usize {
        match &self.kind {
            Kind::Mirror => self.pattern.members,
            Kind::Copies { raid10, .. } => raid10.copies(),
            _ => 1,
        }
    }

    /// Number of sections of a member.
    pub(super) fn sections(&self) -> u64 {
        match &self.kind {
            Kind::Copies { raid10, section } => raid10.member_size() / section,
            _ => 1,
        }
    }

    /// For each section and each role, the role in whose first section lie the bytes of which this section has copies.
    pub(super) fn roles_of_sections(&self) -> Vec<Vec<usize>> {
        let mut roles = vec![vec![0; self.pattern.members]; self.sections() as usize];
        let mut spots = Vec::new();
        for chunk in 0..self.pattern.members as u64 {
            self.spots(chunk * self.pattern.chunk, &mut spots);
            let first = spots.first().map_or(0, |spot| spot.role);
            spots.iter().for_each(|spot| roles[spot.section as usize][spot.role] = first);
        }
        roles
    }

    /// Replaces `spots` by the places of byte `at`; by none if it lies behind the array.
    pub(super) fn spots(&self, at: u64, spots: &mut Vec<Spot>) {
        spots.clear();
        let geometry: &dyn Geometry = match &self.kind {
            Kind::Mirror => {
                spots.extend((0..self.pattern.members).map(|role| Spot {
                    role,
                    row: at,
                    section: 0,
                }));
                return;
            }
            Kind::Stripes => {
                let (chunk, width) = (self.pattern.chunk, self.pattern.members as u64);
                let (index, within) = (at / chunk, at % chunk);
                let role = (index % width) as usize;
                spots.push(Spot { role, row: index / width * chunk + within, section: 0 });
                return;
            }
            Kind::Copies { raid10, section } => {
                if at < raid10.size() {
                    spots.extend((0..raid10.copies()).map(|copy| {
                        let run = raid10.locate(ArrayByte::new(at), copy);
                        let row = run.offset.get();
                        Spot { role: run.role.index(), row: row % section, section: row / section }
                    }));
                }
                return;
            }
            Kind::Parity(raid) => raid,
            Kind::Zones(raid) => raid,
            Kind::Row(linear) => linear,
        };
        if at < geometry.size() {
            let run = geometry.locate(ArrayByte::new(at));
            spots.push(Spot { role: run.role.index(), row: run.offset.get(), section: 0 });
        }
    }

    /// Adds the places of parity that equals byte `at` if all other data of its row are zero: P, and Q where it
    /// takes the byte with power 0.
    pub(super) fn echoes(&self, at: u64, spots: &mut Vec<Spot>) {
        let Some(raid) = self.parity().filter(|raid| at < raid.size()) else { return };
        let index = at / raid.chunk();
        let (stripe, index) = (index / raid.data() as u64, (index % raid.data() as u64) as usize);
        let row = stripe * raid.chunk() + at % raid.chunk();
        let spot = |column| Spot { role: raid.role_of(stripe, column).index(), row, section: 0 };
        spots.push(spot(Column::P));
        if raid.parities() == 2 && raid.power(stripe, index) == 0 {
            spots.push(spot(Column::Q));
        }
    }

    /// Returns the byte of the array that lies at a spot; `None` for parity, for unused bytes, and where the map
    /// depends on the members' lengths.
    pub(super) fn owner(&self, spot: Spot) -> Option<u64> {
        let Pattern { chunk, members, .. } = self.pattern;
        match &self.kind {
            Kind::Mirror => Some(spot.row),
            Kind::Stripes => {
                let index = spot.row / chunk * members as u64 + spot.role as u64;
                Some(index * chunk + spot.row % chunk)
            }
            Kind::Parity(raid) => {
                let stripe = raid.stripe_of_row(MemberByte::new(spot.row));
                match raid.column_of(stripe, Role::nth(spot.role)) {
                    Column::Data(index) => {
                        let first = raid.span_of_stripe(stripe).offset.get();
                        Some(first + index as u64 * chunk + spot.row % chunk)
                    }
                    Column::P | Column::Q => None,
                }
            }
            Kind::Copies { raid10, section } => {
                let row = MemberByte::new(spot.section * section + spot.row);
                Some(raid10.owner(Role::nth(spot.role), row)?.offset.get())
            }
            Kind::Zones(_) | Kind::Row(_) => None,
        }
    }
}
