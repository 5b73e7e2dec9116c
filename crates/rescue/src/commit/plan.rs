//! The superblocks, and the bytes that are written.

use braid_level::size::{array_size, round_down};
use braid_level::{Level, Raid10Layout, Shape};
use braid_md::superblock::{Contents, Old};
use braid_md::{Features, Rejection, Resync, Role, Superblock, Timestamp, Uuid, Version};

use super::place::{Member, member};
use super::{Geometry, Part, Unfit};
use crate::Examined;
use crate::scan::Place;

const SECTOR: u64 = 512;
/// mdadm makes room for this many roles at a time.
const ROLES_STEP: usize = 128;
/// The kernel wants the data this far behind a superblock in front of them.
const PAGE: u64 = 4096;

/// Values that no member has, if no superblock is left.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The array's identifier.
    pub uuid: Uuid,
    /// The array's name: at most 32 bytes.
    pub name: String,
    /// An identifier for the member of each role.
    pub device_uuids: Vec<Uuid>,
    /// The time of writing.
    pub now: Timestamp,
    /// The version of the superblocks; `None`: that of the ones that are left, or the first with room.
    pub version: Option<Version>,
}

/// Superblocks for the members of an array.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Level, layout and chunk.
    pub shape: Shape,
    /// The size of the array in bytes.
    pub size: u64,
    /// The members, by role; at least one.
    pub members: Vec<Planned>,
    /// The roles without a member.
    pub missing: Vec<usize>,
    /// The label of the member whose superblock gave UUID, name and creation time; `None` if they are new.
    pub kept_from: Option<String>,
    /// Bytes by which less of each member is used than the expression reads: the superblock lies there.
    pub shorter: u64,
}

/// A member with its superblock.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The role.
    pub role: usize,
    /// Index of the file or device in the case.
    pub member: usize,
    /// The part of it that is the member.
    pub place: Place,
    /// The superblock.
    pub superblock: Superblock,
    /// Places, in bytes of the file or device, and versions of older superblocks, which are removed.
    pub older: Vec<(u64, Version)>,
    /// True if a sound partition table lies where the superblock belongs, or beside it.
    pub is_over_table: bool,
}

/// Bytes for a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// Index of the file or device in the case.
    pub member: usize,
    /// Offset in it, in bytes.
    pub at: u64,
    /// The bytes: whole sectors.
    pub bytes: Vec<u8>,
    /// The kind of thing that they are, in words.
    pub what: &'static str,
}

impl Plan {
    /// The bytes that are written, in the order in which they must become durable: older superblocks go first, so that
    /// no member has two.
    #[must_use]
    pub fn writes(&self) -> Vec<Write> {
        let older = self.members.iter().flat_map(|one| {
            let write = |(at, _): &(u64, Version)| {
                let bytes = vec![0; SECTOR as usize];
                Write { member: one.member, at: *at, bytes, what: "older superblock" }
            };
            one.older.iter().map(write)
        });
        let new = self.members.iter().map(|one| {
            let at = one.place.start + one.superblock.super_offset;
            let bytes = one.superblock.encode();
            Write { member: one.member, at, bytes, what: "superblock" }
        });
        older.chain(new).collect()
    }

    /// The values that all superblocks share, from one of them.
    ///
    /// # Panics
    /// A plan without members, which [`plan`] does not make.
    #[must_use]
    pub fn array(&self) -> &Superblock {
        &self.members.first().expect("an array has a member").superblock
    }
}

/// A seat of the array that has a member.
struct Seat<'a> {
    role: usize,
    index: usize,
    examined: &'a Examined,
    part: &'a Part,
    on: Member<'a>,
}

/// Plans superblocks for an array over members of a case.
///
/// # Errors
/// [`Unfit`]: the array, or a member, is such that superblocks would make md read something else.
pub fn plan(geometry: &Geometry, members: &[Examined], identity: &Identity) -> Result<Plan, Unfit> {
    geometry.check()?;
    let mut seats = Vec::new();
    for (role, part) in geometry.seats.iter().enumerate() {
        let Some(part) = part else { continue };
        let index = members.iter().position(|one| one.path == part.path);
        let index = index.ok_or_else(|| Unfit::NoMember(part.path.clone()))?;
        let examined = &members[index];
        seats.push(Seat { role, index, examined, part, on: member(examined, part) });
    }
    let template = template(&seats);
    let listed = seats.iter().find(|seat| {
        let own = seat.on.superblock.filter(|one| is_of(one, template));
        own.is_some_and(|own| own.features.contains(Features::BAD_BLOCKS))
    });
    if let Some(seat) = listed {
        return Err(Unfit::BadBlocks(seat.examined.label.clone()));
    }
    if let Some((label, _)) = template.filter(|(_, one)| one.has_unknown()) {
        return Err(Unfit::Unknown(label.to_owned()));
    }
    let versions = match (identity.version, template) {
        (Some(version), _) => vec![version],
        (None, Some((_, left))) => {
            vec![left.version, Version::V1_2, Version::V1_1, Version::V1_0]
        }
        (None, None) => vec![Version::V1_2, Version::V1_1, Version::V1_0],
    };
    let draft = Draft { geometry, seats: &seats, members, template, identity };
    let mut refused = None;
    for version in versions {
        match draft.with(version) {
            Ok(plan) => return Ok(plan),
            Err(why) => drop(refused.get_or_insert(why)),
        }
    }
    Err(refused.expect("at least one version was tried"))
}

/// The superblock that gives the array's identity, with the label of its member: of the array that most of the members
/// are of, the one with most events.
fn template<'a>(seats: &[Seat<'a>]) -> Option<(&'a str, &'a Superblock)> {
    let left = seats.iter().filter_map(|seat| Some((&*seat.examined.label, seat.on.superblock?)));
    let left: Vec<_> = left.collect();
    let count = |uuid: Uuid| left.iter().filter(|(_, one)| one.array_uuid == uuid).count();
    let best = left.iter().max_by_key(|(_, one)| {
        (count(one.array_uuid), one.created.seconds, one.array_uuid.0, one.events)
    });
    best.copied()
}

/// True if a superblock is of the array whose identity is kept.
fn is_of(one: &Superblock, template: Option<(&str, &Superblock)>) -> bool {
    template.is_some_and(|(_, kept)| kept.array_uuid == one.array_uuid)
}

struct Draft<'a> {
    geometry: &'a Geometry,
    seats: &'a [Seat<'a>],
    members: &'a [Examined],
    template: Option<(&'a str, &'a Superblock)>,
    identity: &'a Identity,
}

impl Draft<'_> {
    /// The plan with superblocks of this version.
    fn with(&self, version: Version) -> Result<Plan, Unfit> {
        let shape = self.geometry.shape;
        let lengths = self.lengths(version)?;
        let read = self.seats.iter().map(|seat| seat.part.length);
        let shorter = read.zip(&lengths).map(|(read, used)| read - used).max().unwrap_or(0);
        let sizes: Vec<u64> = match shape.level.is_redundant() {
            true => vec![lengths[0]; self.geometry.seats.len()],
            false => lengths.clone(),
        };
        let members = self.seats.iter().zip(&lengths);
        let members = members.map(|(seat, length)| self.planned(seat, version, *length));
        Ok(Plan {
            shape,
            size: array_size(shape.level, shape.layout, shape.chunk, &sizes).unwrap_or(0),
            members: members.collect::<Result<_, _>>()?,
            missing: self.geometry.missing(),
            kept_from: self.template.map(|(label, _)| label.to_owned()),
            shorter,
        })
    }

    /// The bytes that the array uses of each member: what the expression reads, or the true size if a superblock is
    /// left that has it. Without one the expression reads all that members have, and leaves room for a superblock.
    fn lengths(&self, version: Version) -> Result<Vec<u64>, Unfit> {
        let read: Vec<u64> = self.seats.iter().map(|seat| seat.part.length).collect();
        let Shape { level, layout, chunk } = self.geometry.shape;
        let least = read.iter().copied().min().unwrap_or(0);
        if let Some(size) = self.known_size().filter(|size| *size <= least) {
            return Ok(vec![size; read.len()]);
        }
        let mut room = u64::MAX;
        for seat in self.seats {
            room = room.min(self.room(seat, version)?);
        }
        let far = Raid10Layout::from_number(layout).is_ok_and(|layout| layout.far() > 1);
        let is_fixed = level == Level::Raid10 && far || read.iter().any(|one| *one != least);
        let unit = chunk.max(if level == Level::Raid1 { 64 << 10 } else { PAGE });
        Ok(match least <= room || is_fixed {
            true => read,
            false => vec![round_down(room, unit); read.len()],
        })
    }

    /// The size of the members' data by the superblocks that are left, if these describe the same array.
    fn known_size(&self) -> Option<u64> {
        let (_, kept) = self.template?;
        let Shape { level, layout, chunk } = self.geometry.shape;
        let disks = self.geometry.seats.len();
        let is_same = (kept.level, kept.chunk) == (level, chunk)
            && kept.layout == layout
            && kept.raid_disks as usize == disks;
        let is_there = |seat: &Seat<'_>| {
            let own = seat.on.superblock.filter(|one| is_of(one, self.template));
            own.is_none_or(|own| seat.on.place.start + own.data_offset == seat.part.start)
        };
        let is_known = level.is_redundant() && is_same && self.seats.iter().all(is_there);
        is_known.then_some(kept.component_size)
    }

    /// The bytes of a member from the start of its data on that are free for data.
    fn room(&self, seat: &Seat<'_>, version: Version) -> Result<u64, Unfit> {
        let size = seat.on.place.length;
        let end = match version.is_at_end() {
            true => version.superblock_offset(size),
            false => Some(round_down(size, SECTOR)),
        };
        let room = end.and_then(|end| end.checked_sub(data_offset(seat)));
        room.ok_or_else(|| no_room(seat, Rejection::Truncated { needed: 4096, got: 0 }))
    }

    fn planned(&self, seat: &Seat<'_>, version: Version, length: u64) -> Result<Planned, Unfit> {
        let Place { start, length: size, .. } = seat.on.place;
        let refused = |why: Rejection| no_room(seat, why);
        let room = self.room(seat, version)?;
        let super_offset = version.superblock_offset(size).unwrap_or(u64::MAX / 2);
        let least = if version.is_at_end() { 0 } else { super_offset + PAGE };
        if data_offset(seat) < least {
            let (what, value) = ("data_offset", data_offset(seat));
            return Err(refused(Rejection::Size { what, value, needs: "at least", limit: least }));
        }
        let is_redundant = self.geometry.shape.level.is_redundant();
        let contents = Contents {
            super_offset,
            data_offset: data_offset(seat),
            data_size: if is_redundant { room } else { length },
            component_size: if is_redundant { length } else { 0 },
            ..self.contents(seat, version)
        };
        let superblock = Superblock::new(contents, size).map_err(refused)?;
        let at = start + super_offset;
        let new = at..at + superblock.encode().len() as u64;
        let older = seat.examined.findings.superblocks.iter();
        let older = older.filter(|one| one.place.start == start && !new.contains(&one.at));
        Ok(Planned {
            role: seat.role,
            member: seat.index,
            place: seat.on.place,
            superblock,
            older: older.map(|one| (one.at, one.version)).collect(),
            is_over_table: seat.on.is_over_table,
        })
    }

    /// The fields that do not depend on the member's size.
    fn contents(&self, seat: &Seat<'_>, version: Version) -> Contents {
        let Identity { uuid, name, device_uuids, now, .. } = self.identity;
        let Shape { level, layout, chunk } = self.geometry.shape;
        let kept = self.template.map(|(_, superblock)| superblock);
        let own = seat.on.superblock.filter(|one| is_of(one, self.template));
        let is_old = version == Version::V0_90;
        let disks = self.geometry.seats.len();
        let active = self.seats.len();
        let absent = if is_old { Role::Faulty } else { Role::Spare };
        let mut roles = vec![absent; disks];
        for seat in self.seats {
            roles[seat.role] = Role::Active(u16::try_from(seat.role).unwrap_or(u16::MAX));
        }
        if !is_old {
            roles.resize(disks.next_multiple_of(ROLES_STEP), Role::Spare);
        }
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let has_layout = level == Level::Raid0 && layout != 0 && !is_old;
        let device = own.map(|own| own.device_uuid).filter(|uuid| !uuid.is_nil());
        Contents {
            version,
            array_uuid: kept.map_or(*uuid, |kept| kept.array_uuid),
            name: match kept {
                _ if is_old => String::new(),
                Some(kept) if !kept.name.is_empty() => kept.name.clone(),
                _ => name.clone(),
            },
            created: kept.map_or(*now, |kept| kept.created),
            updated: *now,
            level,
            // md rounds the members of a linear array to its chunk; an expression has none.
            chunk: if level == Level::Linear { kept.map_or(0, |kept| kept.chunk) } else { chunk },
            layout,
            component_size: 0,
            raid_disks: count(disks),
            events: self.events() + 1,
            resync: Resync::Clean,
            features: if has_layout { Features::RAID0_LAYOUT } else { Features::default() },
            bitmap_offset: None,
            ppl: None,
            reshape: None,
            roles,
            logical_block_size: kept.map_or(0, |kept| kept.logical_block_size),
            super_offset: 0,
            data_offset: 0,
            data_size: 0,
            device_uuid: match is_old {
                true => Uuid::default(),
                false => device.unwrap_or(device_uuids[seat.role]),
            },
            device_number: count(seat.role),
            corrected_reads: 0,
            write_mostly: own.is_some_and(|own| own.write_mostly),
            fail_fast: false,
            recovery_offset: None,
            bad_block_log: None,
            old: is_old.then(|| Old {
                minor_version: 90,
                errors: false,
                nr_disks: count(disks),
                counts: [active, active, disks - active, 0].map(count),
                ..kept.and_then(|kept| kept.old).unwrap_or_default()
            }),
            raw: Vec::new(),
        }
    }

    /// The most events of a superblock of the array on any member of the case: those that are left out are stale.
    fn events(&self) -> u64 {
        let all = self.members.iter().flat_map(|one| &one.findings.superblocks);
        let all = all.filter_map(|found| found.result.as_ref().ok());
        all.filter(|one| is_of(one, self.template)).map(|one| one.events).max().unwrap_or(0)
    }
}

/// The start of the data in bytes from the start of the member.
fn data_offset(seat: &Seat<'_>) -> u64 {
    seat.part.start - seat.on.place.start
}

fn no_room(seat: &Seat<'_>, why: Rejection) -> Unfit {
    Unfit::NoRoom { label: seat.examined.label.clone(), why }
}
