//! What a new array's metadata is, and what has to be written to make it.
//!
//! ```text
//!  Request ──plan──▶ Plan ─┬─ explain(): what would be done
//!                          ├─ areas(): what will be overwritten, to be saved first
//!                          └─ writes(): bitmaps, bad-block logs, then the superblocks
//! ```
//!
//! The defaults are those of mdadm: chunk, places, the size used of each member, when there is a
//! bitmap. Where braid differs: raid4 and raid5 are resynced like the others, while mdadm makes
//! the last member a spare that is rebuilt; raid0 records its layout also over equal members, as
//! mdadm does since 4.3; a bad-block log is written empty, and the bitmap of an array that is
//! assumed clean has no bit set.
//!
//! Invariants
//! * Superblocks come last, so that a crash leaves devices without one, not members of half an
//!   array.
//! * No two areas of a member overlap.
//!
//! Deliberately absent: I/O, the clock, randomness: times and identifiers are arguments. Whether
//! something lies on a device that should be kept is the caller's to find out.

mod error;
mod layout;
mod place;
mod request;

pub use error::CreateError;
pub use layout::{layout_name, parse_layout};
pub use request::{BitmapChoice, Consistency, Device, Place, Request};

use crate::assembly::{Copies, array_size, round_down, suffice, usable};
use crate::superblock::{BadBlockLog, Old};
use crate::{BitmapHeader, Features, Level, Resync, Role, SECTOR, Superblock, Uuid, Version};
use place::{BAD_BLOCKS, SUPERBLOCK};

/// mdadm's default chunk.
const DEFAULT_CHUNK: u64 = 512 * 1024;
/// Above this many bytes of each member an array gets a bitmap unless it is told not to.
const BITMAP_FROM: u64 = 100 << 30;
/// raid1's size is rounded down to this, which leaves the way open to other levels.
const RAID1_ROUNDING: u64 = 64 * 1024;
/// The most roles: what fits mdadm's superblock of 1 KiB.
const MOST_ROLES: usize = 384;
/// The most in version 0.90.
const MOST_ROLES_OLD: usize = 27;
/// Version 0.90 counts KiB in 32 bits.
const MOST_COMPONENT_OLD: u64 = 4 << 40;
/// mdadm makes room for this many roles at a time.
const ROLES_STEP: usize = 128;

/// All that is needed to make an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The array's size in bytes.
    pub array_size: u64,
    /// The devices, members first, then spares, each with its superblock.
    pub members: Vec<Planned>,
    /// The bitmap on each of them.
    pub bitmap: Option<NewBitmap>,
}

/// A device of a new array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// What the user calls it.
    pub label: String,
    /// Its superblock, complete.
    pub superblock: Superblock,
}

/// A new write-intent bitmap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewBitmap {
    /// Bytes for each bit.
    pub chunk: u64,
    /// What it covers, in bytes: the array for raid10, of each member otherwise.
    pub sync_size: u64,
    /// Where it lies, in bytes from the superblock.
    pub offset: i64,
    /// How long it is, in bytes, header included.
    pub size: u64,
    /// Whether every bit is set, because everything is to be resynced.
    pub all_set: bool,
}

/// What lies in an area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A write-intent bitmap.
    Bitmap,
    /// A bad-block log.
    BadBlockLog,
    /// A superblock.
    Superblock,
}

/// A part of a device that will be overwritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Area {
    /// Index in [`Plan::members`].
    pub member: usize,
    /// In bytes.
    pub offset: u64,
    /// In bytes.
    pub len: u64,
    /// By what.
    pub what: What,
}

/// Bytes to be written to a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// Where, and what it is.
    pub area: Area,
    /// As many as the area has.
    pub bytes: Vec<u8>,
}

/// Decides everything about a new array.
///
/// # Errors
/// [`CreateError`] if such an array cannot be.
pub fn plan(request: &Request) -> Result<Plan, CreateError> {
    check_members(request)?;
    let layout = layout(request)?;
    let chunk = chunk(request)?;
    let data_offset = data_offset(request, chunk)?;
    let component_size = component_size(request, layout, chunk, data_offset)?;
    let disks = request.members.len();
    let sync_size = match request.level {
        Level::Raid10 => array_size(request.level, layout, chunk, &vec![component_size; disks])
            .ok_or(CreateError::TooLarge)?,
        _ => component_size,
    };
    let shape = Shape { layout, chunk, data_offset, component_size };
    let bitmap = bitmap(request, &shape, sync_size)?;
    let least_offset = SUPERBLOCK + bitmap.map_or(0, |bitmap| bitmap.size) + super_start(request);
    if !request.version.is_at_end() && data_offset < least_offset {
        return Err(CreateError::DataOffset { offset: data_offset, least: least_offset });
    }
    let members = superblocks(request, &shape, bitmap)?;
    let used: Vec<u64> = match request.level {
        Level::Linear | Level::Raid0 => {
            members.iter().map(|member| usable(&member.superblock)).collect()
        }
        _ => vec![component_size; disks],
    };
    if request.version == Version::V0_90
        && request.level == Level::Raid0
        && used.iter().any(|size| *size != used[0])
    {
        return Err(CreateError::UnequalForOld);
    }
    let array_size = array_size(request.level, layout, chunk, &used)
        .filter(|size| *size < 1 << 63)
        .ok_or(CreateError::TooLarge)?;
    Ok(Plan { array_size, members, bitmap })
}

/// What all members have in common.
struct Shape {
    layout: u32,
    chunk: u64,
    data_offset: u64,
    component_size: u64,
}

/// Where the superblock starts, for versions that have it before the data.
fn super_start(request: &Request) -> u64 {
    if request.version == Version::V1_2 { 4096 } else { 0 }
}

fn check_members(request: &Request) -> Result<(), CreateError> {
    let (level, version) = (request.level, request.version);
    let given = request.members.len();
    let least = match level {
        Level::Linear | Level::Raid0 => 1,
        Level::Raid1 | Level::Raid4 | Level::Raid5 | Level::Raid10 => 2,
        Level::Raid6 => 4,
    };
    if given < least {
        return Err(CreateError::TooFewMembers { level, least, given });
    }
    // raid6 computes in a field of 256 elements.
    if level == Level::Raid6 && given > 256 {
        return Err(CreateError::TooManyRoles { level, most: 256, given });
    }
    let all = given + request.spares.len();
    let most = if version == Version::V0_90 { MOST_ROLES_OLD } else { MOST_ROLES };
    if all > most {
        return Err(CreateError::TooManyMembers { version, most, given: all });
    }
    let missing = request.members.iter().filter(|place| **place == Place::Missing).count();
    if !level.is_redundant() {
        if missing > 0 {
            return Err(CreateError::MissingWithoutRedundancy { level, missing });
        }
        if !request.spares.is_empty() {
            return Err(CreateError::SparesWithoutRedundancy { level });
        }
    }
    if level != Level::Raid1
        && let Some(device) = request.devices().find(|device| device.write_mostly)
    {
        return Err(CreateError::WriteMostly { label: device.label.clone(), level });
    }
    if request.name.len() > 32 {
        let name = request.name.clone();
        return Err(CreateError::Name { len: name.len(), name });
    }
    if request.array_uuid.is_nil() {
        return Err(CreateError::NoUuid);
    }
    Ok(())
}

/// md's number of the layout; that it fits the members, and that those present hold all data.
fn layout(request: &Request) -> Result<u32, CreateError> {
    let (level, given) = (request.level, request.members.len());
    let mut layout = parse_layout(level, request.layout.as_deref())?;
    if level == Level::Raid0 && request.version == Version::V0_90 {
        if request.layout.is_some() {
            return Err(CreateError::NotInOld { what: "record of raid0's layout" });
        }
        layout = 0;
    }
    if level == Level::Raid10 && Copies::from_number(layout, given as u32).is_none() {
        let copies = (layout & 255) * (layout >> 8 & 255);
        return Err(CreateError::TooManyCopies { copies, given });
    }
    let present: Vec<bool> = request.members.iter().map(|place| *place != Place::Missing).collect();
    if !suffice(level, layout, &present) {
        let missing = present.iter().filter(|present| !**present).count();
        return Err(CreateError::TooManyMissing { level, missing });
    }
    Ok(layout)
}

fn chunk(request: &Request) -> Result<u64, CreateError> {
    let level = request.level;
    let Some(chunk) = request.chunk else {
        return Ok(match level {
            Level::Linear | Level::Raid1 => 0,
            _ => DEFAULT_CHUNK,
        });
    };
    if !level.has_chunk() {
        return Err(CreateError::ChunkWithoutMeaning { level, chunk });
    }
    let needs = match level {
        Level::Linear | Level::Raid0 => (chunk == 0 || !chunk.is_multiple_of(4096))
            .then_some("a multiple of 4096, and more than 0"),
        _ => (chunk < 4096 || !chunk.is_power_of_two()).then_some("a power of two, from 4096"),
    };
    let needs = needs.or((chunk >= 1 << 31).then_some("less than 2 GiB"));
    match needs {
        Some(needs) => Err(CreateError::Chunk { level, chunk, needs }),
        None => Ok(chunk),
    }
}

fn data_offset(request: &Request, chunk: u64) -> Result<u64, CreateError> {
    let version = request.version;
    let first = request.devices().next().map_or(0, |device| device.size);
    match request.data_offset {
        None => Ok(place::default_data_offset(version, first, chunk)),
        Some(offset) if version.is_at_end() => {
            Err(CreateError::DataOffsetWithoutMeaning { version, offset })
        }
        Some(offset) if !offset.is_multiple_of(4096) => {
            Err(CreateError::DataOffset { offset, least: super_start(request) + SUPERBLOCK })
        }
        Some(offset) => Ok(offset),
    }
}

/// What is used of each member; 0 for linear and raid0, which use all of each.
fn component_size(
    request: &Request,
    layout: u32,
    chunk: u64,
    data_offset: u64,
) -> Result<u64, CreateError> {
    let level = request.level;
    let uses_all = matches!(level, Level::Linear | Level::Raid0);
    let least = chunk.max(if level == Level::Raid1 { RAID1_ROUNDING } else { 4096 });
    let wanted = match request.size {
        Some(_) if uses_all => return Err(CreateError::SizeWithoutMeaning { level }),
        Some(size) => Some(round_down(size, chunk.max(4096))),
        None => None,
    };
    if wanted == Some(0) {
        let size = request.size.unwrap_or(0);
        return Err(CreateError::SizeBelowChunk { size, chunk: chunk.max(4096) });
    }
    let needed = wanted.unwrap_or(least);
    let mut smallest = u64::MAX;
    for device in request.devices() {
        let free = place::free_for_data(request.version, device.size, data_offset).unwrap_or(0);
        if free < needed {
            let (label, size) = (device.label.clone(), device.size);
            return Err(CreateError::TooSmall { label, size, free, needed });
        }
        smallest = smallest.min(free);
    }
    if uses_all {
        return Ok(0);
    }
    // mdadm counts KiB.
    let rounding = if level == Level::Raid1 { RAID1_ROUNDING } else { chunk.max(1024) };
    let size = wanted.unwrap_or(round_down(smallest, rounding));
    if request.version == Version::V0_90 && size >= MOST_COMPONENT_OLD {
        return Err(CreateError::TooLargeForOld { size, most: MOST_COMPONENT_OLD });
    }
    if level != Level::Raid10 {
        return Ok(size);
    }
    whole_rows(layout, chunk, request.members.len() as u64, size)
        .filter(|used| *used > 0)
        .ok_or(CreateError::SizeBelowChunk { size, chunk })
}

/// How much of `size` raid10 needs for as many chunks as the array has: the kernel writes that
/// down when it first runs the array (`calc_sectors`).
fn whole_rows(layout: u32, chunk: u64, disks: u64, size: u64) -> Option<u64> {
    let copies = Copies::from_number(layout, disks as u32)?;
    let array = array_size(Level::Raid10, layout, chunk, &vec![size; disks as usize])?;
    let chunks = (array / chunk).checked_mul(u64::from(copies.total()))?;
    Some(chunks.div_ceil(disks) * chunk)
}

/// Whether there is a bitmap, and where.
fn bitmap(
    request: &Request,
    shape: &Shape,
    sync_size: u64,
) -> Result<Option<NewBitmap>, CreateError> {
    let level = request.level;
    let given = match (request.bitmap, request.consistency) {
        (BitmapChoice::Internal { .. }, Some(Consistency::Resync)) => {
            let with = "a bitmap".to_owned();
            return Err(CreateError::Policy { policy: "resync", with });
        }
        (BitmapChoice::None, Some(Consistency::Bitmap)) => {
            let with = "no bitmap".to_owned();
            return Err(CreateError::Policy { policy: "bitmap", with });
        }
        (BitmapChoice::Internal { chunk }, _) => chunk,
        (BitmapChoice::Default, Some(Consistency::Bitmap)) => None,
        (BitmapChoice::Default, None)
            if level.is_redundant() && shape.component_size > BITMAP_FROM =>
        {
            None
        }
        _ => return Ok(None),
    };
    if !level.is_redundant() {
        return Err(CreateError::BitmapWithoutMeaning { level });
    }
    let invalid = |chunk: &u64| !chunk.is_power_of_two() || *chunk < 4096 || *chunk >= 1 << 32;
    if let Some(chunk) = given.filter(invalid) {
        return Err(CreateError::BitmapChunk { chunk, least: 4096 });
    }
    let chunk = place::bitmap_chunk(request.version, shape.component_size, sync_size, given)
        .map_err(|least| match (given, least) {
            (Some(chunk), Some(least)) => CreateError::BitmapChunk { chunk, least },
            _ => CreateError::NoRoomForBitmap,
        })?;
    let (offset, size) = place::bitmap_place(request.version, sync_size, chunk);
    let all_set = resync(request) != Resync::Clean;
    Ok(Some(NewBitmap { chunk, sync_size, offset, size, all_set }))
}

/// Whether the copies, or the parity, have to be made. Where parity cannot be trusted *and* a
/// member is missing nothing can be computed, so an array that starts like that is called clean:
/// its parity is what the missing member's data is defined by.
fn resync(request: &Request) -> Resync {
    let missing = request.members.iter().filter(|place| **place == Place::Missing).count();
    let is_defined = match request.level {
        Level::Linear | Level::Raid0 => true,
        Level::Raid1 | Level::Raid10 => false,
        Level::Raid4 | Level::Raid5 | Level::Raid6 => missing > 0,
    };
    if request.assume_clean || is_defined { Resync::Clean } else { Resync::From(0) }
}

/// The role of raid6's member that starts as a spare: with one member missing, P alone would
/// define the missing data while Q would have to be made, so mdadm makes the last member a spare
/// and has it rebuilt.
fn postponed(request: &Request) -> Option<usize> {
    let missing: Vec<usize> = (0..request.members.len())
        .filter(|role| request.members[*role] == Place::Missing)
        .collect();
    let [missing] = missing[..] else { return None };
    let last = request.members.len() - 1;
    let is_due = request.level == Level::Raid6 && !request.assume_clean;
    is_due.then_some(if missing == last { last - 1 } else { last })
}

fn superblocks(
    request: &Request,
    shape: &Shape,
    bitmap: Option<NewBitmap>,
) -> Result<Vec<Planned>, CreateError> {
    let is_old = request.version == Version::V0_90;
    let postponed = postponed(request);
    let disks = request.members.len();
    let absent = if is_old { Role::Faulty } else { Role::Spare };
    // Device numbers are roles first, then the spares.
    let mut roles: Vec<Role> = request
        .members
        .iter()
        .enumerate()
        .map(|(role, place)| match place {
            Place::Device(_) if postponed != Some(role) => Role::Active(role as u16),
            _ => absent,
        })
        .collect();
    let mut devices: Vec<(u32, &Device)> = Vec::new();
    let mut extra = Vec::new();
    for (role, place) in request.members.iter().enumerate() {
        match place {
            Place::Device(device) if postponed == Some(role) => extra.push(device),
            Place::Device(device) => devices.push((role as u32, device)),
            Place::Missing => {}
        }
    }
    let active = devices.len();
    for device in request.spares.iter().chain(extra) {
        devices.push((roles.len() as u32, device));
        roles.push(Role::Spare);
    }
    let spare = devices.len() - active;
    let counts = [active, devices.len(), disks - active, spare].map(|count| count as u32);
    if !is_old {
        roles.resize(roles.len().next_multiple_of(ROLES_STEP), Role::Spare);
    }
    let mut planned = Vec::new();
    for (device_number, device) in devices {
        let superblock = superblock(request, shape, bitmap, device, device_number, &roles, counts)?;
        planned.push(Planned { label: device.label.clone(), superblock });
    }
    Ok(planned)
}

fn superblock(
    request: &Request,
    shape: &Shape,
    bitmap: Option<NewBitmap>,
    device: &Device,
    device_number: u32,
    roles: &[Role],
    counts: [u32; 4],
) -> Result<Superblock, CreateError> {
    let (version, level) = (request.version, request.level);
    let is_old = version == Version::V0_90;
    let too_small = || CreateError::TooSmall {
        label: device.label.clone(),
        size: device.size,
        free: 0,
        needed: shape.data_offset + shape.component_size,
    };
    let super_offset = version.superblock_offset(device.size).ok_or_else(too_small)?;
    let (log, data_size) = place::log_and_data_size(
        version,
        device.size,
        shape.data_offset,
        shape.component_size,
        bitmap.map(|bitmap| (bitmap.offset, bitmap.size)),
    )
    .ok_or_else(too_small)?;
    let mut features = Features::default();
    if bitmap.is_some() {
        features = features.union(Features::BITMAP);
    }
    if level == Level::Raid0 && shape.layout != 0 {
        features = features.union(Features::RAID0_LAYOUT);
    }
    Ok(Superblock {
        version,
        array_uuid: request.array_uuid,
        name: if is_old { String::new() } else { request.full_name() },
        created: request.created,
        updated: request.created,
        level,
        layout: shape.layout,
        chunk: shape.chunk,
        component_size: shape.component_size,
        raid_disks: request.members.len() as u32,
        // What mdadm writes before the kernel counts on.
        events: u64::from(is_old),
        resync: resync(request),
        features,
        bitmap_offset: bitmap.map(|bitmap| bitmap.offset),
        ppl: None,
        reshape: None,
        roles: roles.to_vec(),
        logical_block_size: 0,
        super_offset,
        data_offset: shape.data_offset,
        data_size,
        device_uuid: if is_old { Uuid::default() } else { device.uuid },
        device_number,
        corrected_reads: 0,
        write_mostly: device.write_mostly,
        fail_fast: false,
        recovery_offset: None,
        bad_block_log: log.map(|offset| BadBlockLog { offset, size: BAD_BLOCKS, shift: 0 }),
        old: is_old.then_some(Old {
            minor_version: 90,
            nr_disks: counts[1] + counts[2],
            counts,
            ..Old::default()
        }),
        raw: Vec::new(),
    })
}

impl Plan {
    /// All parts of devices that will be overwritten, in the order in which they are.
    #[must_use]
    pub fn areas(&self) -> Vec<Area> {
        let all = |what: What| {
            let area = move |(member, planned): (usize, &Planned)| {
                let (offset, len) = self.place(&planned.superblock, what)?;
                Some(Area { member, offset, len, what })
            };
            self.members.iter().enumerate().filter_map(area)
        };
        all(What::Bitmap).chain(all(What::BadBlockLog)).chain(all(What::Superblock)).collect()
    }

    /// All bytes to be written, in the order in which they must be: whoever writes them makes
    /// what came before the first superblock durable before it.
    pub fn writes(&self) -> impl Iterator<Item = Write> {
        self.areas().into_iter().filter_map(|area| {
            let superblock = &self.members[area.member].superblock;
            let mut bytes = match area.what {
                What::Bitmap => self.bitmap?.bytes(superblock),
                What::BadBlockLog => vec![0xff; area.len as usize],
                What::Superblock => superblock.encode(),
            };
            bytes.resize(area.len as usize, 0);
            Some(Write { area, bytes })
        })
    }

    fn place(&self, superblock: &Superblock, what: What) -> Option<(u64, u64)> {
        let (offset, len) = match what {
            What::Bitmap => self.bitmap.map(|bitmap| (bitmap.offset, bitmap.size))?,
            What::BadBlockLog => superblock.bad_block_log.map(|log| (log.offset, log.size))?,
            What::Superblock => (0, SUPERBLOCK),
        };
        Some((superblock.super_offset.checked_add_signed(offset)?, len))
    }

    /// What would be done, in lines.
    #[must_use]
    pub fn explain(&self) -> Vec<String> {
        let Some(Planned { superblock: array, .. }) = self.members.first() else {
            return Vec::new();
        };
        let mut lines = vec![format!(
            "{} of {} members, metadata {}, {}",
            array.level,
            array.raid_disks,
            array.version,
            bytes(self.array_size)
        )];
        if array.chunk != 0 {
            lines.push(format!("chunk {}", bytes(array.chunk)));
        }
        if !layout_name(array.level, array.layout).is_empty() {
            lines.push(format!("layout {}", layout_name(array.level, array.layout)));
        }
        lines.push(match array.resync {
            Resync::Clean => "clean: nothing has to be resynced".to_owned(),
            Resync::From(_) => "a resync follows".to_owned(),
        });
        if let Some(bitmap) = self.bitmap {
            lines.push(format!("bitmap of {} chunks", bytes(bitmap.chunk)));
        }
        for Planned { label, superblock } in &self.members {
            let role = match superblock.role() {
                Role::Active(role) => format!("role {role}"),
                _ => "spare".to_owned(),
            };
            let end = superblock.data_offset + superblock.data_size;
            lines.push(format!("{label}: {role}, data {}..{end}", superblock.data_offset));
        }
        for area in self.areas() {
            let what = match area.what {
                What::Bitmap => "bitmap",
                What::BadBlockLog => "bad-block log",
                What::Superblock => "superblock",
            };
            let label = &self.members[area.member].label;
            lines.push(format!("write {} bytes at {} of {label}: {what}", area.len, area.offset));
        }
        lines
    }
}

impl NewBitmap {
    /// The bitmap's bytes for a member, as mdadm has them but for the bits.
    fn bytes(&self, superblock: &Superblock) -> Vec<u8> {
        let header = BitmapHeader {
            version: 4,
            uuid: Uuid(superblock.uuid_on_disk()),
            events: superblock.events,
            events_cleared: 0,
            sync_size: self.sync_size,
            stale: false,
            write_error: false,
            host_endian: false,
            chunk_size: self.chunk,
            daemon_sleep: 5,
            write_behind: 0,
            reserved: 0,
            nodes: 0,
            cluster_name: [0; 64],
            unknown: Default::default(),
        };
        let mut bytes = header.encode().to_vec();
        let chunks = header.chunk_count();
        let bits = (0..chunks.div_ceil(8)).map(|byte| match chunks - 8 * byte {
            _ if !self.all_set => 0,
            1..8 => (1 << (chunks % 8)) - 1,
            _ => 0xff,
        });
        bytes.extend(bits);
        bytes
    }
}

/// A size in the largest unit that leaves no rest, with the bytes beside it.
fn bytes(size: u64) -> String {
    let units = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let whole = |(_, shift): &&(&str, u32)| size != 0 && size.trailing_zeros() >= *shift;
    match units.iter().find(whole) {
        Some((unit, shift)) => format!("{} {unit} ({size} bytes)", size >> shift),
        None => format!("{size} bytes ({} sectors)", size / SECTOR),
    }
}
