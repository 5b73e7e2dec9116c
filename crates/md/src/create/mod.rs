//! Metadata of a new array: its contents, and the writes that make it.
//!
//! ```text
//!  Request ──plan──▶ Plan ─┬─ explain(): the steps in words
//!                          ├─ areas(): areas to be overwritten, to be saved first
//!                          └─ writes(): bitmaps, logs, then the superblocks
//! ```
//!
//! The defaults are those of mdadm: chunk, places, the size used of each member, when there is a bitmap.
//! Differences of braid: raid4 and raid5 are resynced like the others, while mdadm makes the last member a
//! spare that is rebuilt; levels with parity get a log that closes the write hole (`policy.rs`); raid0 records
//! its layout also over equal members, as mdadm does since 4.3; a bad-block log is written empty, and the
//! bitmap of an array that is assumed clean has no bit set.
//!
//! Invariants
//! * Superblocks come last, so that a crash leaves devices without one, not members of half an
//!   array.
//! * No two areas of a member overlap.
//!
//! Deliberately absent: I/O, the clock, randomness: times and identifiers are arguments. The caller checks
//! whether a device holds data worth keeping.

mod added;
mod error;
mod past;
mod place;
mod policy;
mod request;
mod superblocks;
mod writes;

pub use added::{BitmapPlace, NoPlace, bitmap_place, bitmap_room_at};
pub use error::CreateError;
pub use past::{PastOffset, past_offsets};
pub use request::{BitmapChoice, Consistency, Device, Place, Request};

use braid_level::size::{array_size, redundant_size, round_down, suffice};
use braid_level::{Raid10Layout, layout};

use crate::bitmap::MOST_WRITE_BEHIND;
use crate::{Level, Resync, Superblock, Version};
use place::SUPERBLOCK;
use policy::{Policy, data_offset_and_log, policies};
use superblocks::superblocks;

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

/// All that is needed to make an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The array's size in bytes.
    pub array_size: u64,
    /// The devices, members first, then spares, each with its superblock.
    pub members: Vec<Planned>,
    /// The bitmap on each of them.
    pub bitmap: Option<NewBitmap>,
    /// Bytes of the stripe log in front of each member's data, its head included.
    pub stripe_log: Option<u64>,
}

/// A device of a new array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// The user's name of it.
    pub label: String,
    /// Its superblock, complete.
    pub superblock: Superblock,
}

/// A new write-intent bitmap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewBitmap {
    /// Bytes for each bit.
    pub chunk: u64,
    /// Number of bytes that it covers: the array for raid10, of each member otherwise.
    pub sync_size: u64,
    /// Offset from the superblock in bytes.
    pub offset: i64,
    /// Length in bytes, header included.
    pub size: u64,
    /// Writes that write-mostly members may have later than others.
    pub write_behind: u32,
    /// True if every bit is set, because everything is to be resynced.
    pub all_set: bool,
}

/// The content of an area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A write-intent bitmap.
    Bitmap,
    /// A partial parity log.
    Ppl,
    /// The head of a stripe log.
    StripeLog,
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
    /// The place, and its content.
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
    let (policy, otherwise) = policies(request)?;
    match (plan_with(request, policy, layout, chunk), otherwise) {
        (Err(error), Some(otherwise)) if error.is_about_room() => {
            plan_with(request, otherwise, layout, chunk)
        }
        (planned, _) => planned,
    }
}

/// The same with what protects the array decided.
fn plan_with(
    request: &Request,
    policy: Policy,
    layout: u32,
    chunk: u64,
) -> Result<Plan, CreateError> {
    let (data_offset, stripe_log) = data_offset_and_log(request, policy, chunk)?;
    let component_size = component_size(request, policy, layout, chunk, data_offset)?;
    let disks = request.members.len();
    let sync_size = match request.level {
        Level::Raid10 => redundant_size(request.level, layout, chunk, disks as u64, component_size)
            .ok_or(CreateError::TooLarge)?,
        _ => component_size,
    };
    let ppl = (policy == Policy::Ppl).then(|| place::ppl_place(request.version));
    let shape = Shape { layout, chunk, data_offset, component_size, ppl, stripe_log };
    let bitmap = bitmap(request, policy, &shape, sync_size)?;
    let beside = bitmap.map(|bitmap| bitmap.size).or(ppl.map(|(_, size)| size)).unwrap_or(0);
    let least_offset = super_start(request) + SUPERBLOCK + beside + stripe_log;
    if !request.version.is_at_end() && data_offset < least_offset {
        return Err(CreateError::DataOffset { offset: data_offset, least: least_offset });
    }
    let members = superblocks(request, &shape, bitmap)?;
    let used: Vec<u64> = match request.level {
        Level::Linear | Level::Raid0 => {
            members.iter().map(|member| member.superblock.used()).collect()
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
    Ok(Plan { array_size, members, bitmap, stripe_log: (stripe_log > 0).then_some(stripe_log) })
}

/// The values that all members share.
struct Shape {
    layout: u32,
    chunk: u64,
    data_offset: u64,
    component_size: u64,
    /// In bytes from the superblock, and how long it is.
    ppl: Option<(i64, u64)>,
    /// In bytes in front of the data; 0 without one.
    stripe_log: u64,
}

/// Returns the start of the superblock, for versions that have it before the data.
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
    if let Some(device) = request.devices().find(|device| device.size >= 1 << 63) {
        return Err(CreateError::DeviceTooLarge { label: device.label.clone(), size: device.size });
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
    let ends_name = |one: char| one == ':' || one.is_control();
    if let Some(host) = request.homehost.as_ref().filter(|host| host.contains(ends_name)) {
        return Err(CreateError::Homehost { host: host.clone() });
    }
    if request.array_uuid.is_nil() {
        return Err(CreateError::NoUuid);
    }
    Ok(())
}

/// md's number of the layout; that it fits the members, and that those present hold all data.
fn layout(request: &Request) -> Result<u32, CreateError> {
    let (level, given) = (request.level, request.members.len());
    let text = request.layout.as_deref();
    let mut layout = layout::number_of(level, text).ok_or_else(|| CreateError::Layout {
        level,
        layout: text.unwrap_or_default().to_owned(),
        choices: layout::choices(level),
    })?;
    if level == Level::Raid0 && request.version == Version::V0_90 {
        if request.layout.is_some() {
            return Err(CreateError::NotInOld { what: "record of raid0's layout" });
        }
        layout = 0;
    }
    if level == Level::Raid10 && !layout::is_known(level, layout, given as u32) {
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

/// Returns the bytes used of each member; 0 for linear and raid0, which use all of each.
fn component_size(
    request: &Request,
    policy: Policy,
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
        let reserved = policy.reserved(request.version, device.size);
        let free =
            place::free_for_data(request.version, device.size, data_offset, reserved).unwrap_or(0);
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

/// Returns the part of `size` that raid10 needs for the array's chunks: the kernel records it when it first
/// runs the array (`calc_sectors`).
fn whole_rows(layout: u32, chunk: u64, disks: u64, size: u64) -> Option<u64> {
    let copies = Raid10Layout::from_number(layout).ok()?.copies() as u64;
    let array = redundant_size(Level::Raid10, layout, chunk, disks, size)?;
    let chunks = (array / chunk).checked_mul(copies)?;
    Some(chunks.div_ceil(disks) * chunk)
}

/// Returns the bitmap, if there is one.
fn bitmap(
    request: &Request,
    policy: Policy,
    shape: &Shape,
    sync_size: u64,
) -> Result<Option<NewBitmap>, CreateError> {
    let level = request.level;
    let write_behind = request.write_behind;
    if write_behind > 0 && level != Level::Raid1 {
        return Err(CreateError::WriteBehindLevel { level });
    }
    if write_behind > MOST_WRITE_BEHIND {
        return Err(CreateError::WriteBehind { given: write_behind, most: MOST_WRITE_BEHIND });
    }
    if !policy.has_bitmap(shape.component_size) {
        return match write_behind {
            0 => Ok(None),
            _ => Err(CreateError::WriteBehindWithoutBitmap),
        };
    }
    let given = match request.bitmap {
        BitmapChoice::Internal { chunk } => chunk,
        BitmapChoice::Default | BitmapChoice::None => None,
    };
    if !level.is_redundant() {
        return Err(CreateError::BitmapWithoutMeaning { level });
    }
    if let Some(chunk) = given.filter(|chunk| !place::is_bitmap_chunk(*chunk)) {
        return Err(CreateError::BitmapChunk { chunk, least: 4096 });
    }
    let room = place::bitmap_room(request.version, shape.component_size);
    let chunk =
        place::bitmap_chunk(room, sync_size, given).map_err(|least| match (given, least) {
            (Some(chunk), Some(least)) => CreateError::BitmapChunk { chunk, least },
            _ => CreateError::NoRoomForBitmap,
        })?;
    let (offset, size) = place::bitmap_place(request.version, sync_size, chunk);
    let all_set = resync(request) != Resync::Clean;
    Ok(Some(NewBitmap { chunk, sync_size, offset, size, write_behind, all_set }))
}

/// Returns the resync that makes copies or parity. If parity cannot be trusted *and* a member is missing
/// nothing can be computed, so an array that starts like that is called clean: its parity defines the missing
/// member's data.
fn resync(request: &Request) -> Resync {
    let missing = request.members.iter().filter(|place| **place == Place::Missing).count();
    let is_defined = match request.level {
        Level::Linear | Level::Raid0 => true,
        Level::Raid1 | Level::Raid10 => false,
        Level::Raid4 | Level::Raid5 | Level::Raid6 => missing > 0,
    };
    if request.assume_clean || is_defined { Resync::Clean } else { Resync::From(0) }
}
