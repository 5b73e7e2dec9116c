//! Versions 1.0, 1.1 and 1.2: one format, little-endian, in three places.
//!
//! ```text
//!   0        128       192      256                         256 + 2·max_dev
//!   | array   | member  | state  | roles, 2 bytes a device …        | up to a whole sector |
//!   |<------------------ under the checksum ---------------------->|
//! ```
//!
//! Encoding starts from the bytes that were read, so that bytes without meaning here (padding, fields of unused
//! features, unknown flags) are written unchanged.
//!
//! Source: Linux `include/uapi/linux/raid/md_p.h` (`struct mdp_superblock_1`), `drivers/md/md.c`
//! (`super_1_load`, `super_1_validate`, `super_1_sync`, `calc_sb_1_csum`).

use super::fields::{ByteOrder, Fields, FieldsMut};
use super::{BadBlockLog, Contents, Features, MAGIC, Reshape, Resync, Role, Timestamp};
use crate::canary::Canary;
use crate::{Level, Rejection, SECTOR, Uuid, Version};

/// The header, before the roles.
const HEADER: usize = 256;
/// The most roles in the 4096 bytes that md reads.
const MOST_ROLES: u32 = 1920;
/// mdadm makes room for this many roles at a time, which keeps whole sectors.
const ROLES_STEP: usize = 128;
/// md's word for "all of it", in sectors.
const MAX_SECTOR: u64 = u64::MAX;

/// The place of each field, in bytes.
mod at {
    pub(super) const MAGIC: usize = 0;
    pub(super) const MAJOR_VERSION: usize = 4;
    pub(super) const FEATURE_MAP: usize = 8;
    pub(super) const PAD0: usize = 12;
    pub(super) const SET_UUID: usize = 16;
    pub(super) const SET_NAME: usize = 32;
    pub(super) const CTIME: usize = 64;
    pub(super) const LEVEL: usize = 72;
    pub(super) const LAYOUT: usize = 76;
    pub(super) const SIZE: usize = 80;
    pub(super) const CHUNKSIZE: usize = 88;
    pub(super) const RAID_DISKS: usize = 92;
    pub(super) const BITMAP_OFFSET: usize = 96;
    pub(super) const PPL_OFFSET: usize = 96;
    pub(super) const PPL_SIZE: usize = 98;
    pub(super) const NEW_LEVEL: usize = 100;
    pub(super) const RESHAPE_POSITION: usize = 104;
    pub(super) const DELTA_DISKS: usize = 112;
    pub(super) const NEW_LAYOUT: usize = 116;
    pub(super) const NEW_CHUNK: usize = 120;
    pub(super) const NEW_OFFSET: usize = 124;
    pub(super) const DATA_OFFSET: usize = 128;
    pub(super) const DATA_SIZE: usize = 136;
    pub(super) const SUPER_OFFSET: usize = 144;
    pub(super) const RECOVERY_OFFSET: usize = 152;
    pub(super) const DEV_NUMBER: usize = 160;
    pub(super) const CNT_CORRECTED_READ: usize = 164;
    pub(super) const DEVICE_UUID: usize = 168;
    pub(super) const DEVFLAGS: usize = 184;
    pub(super) const BBLOG_SHIFT: usize = 185;
    pub(super) const BBLOG_SIZE: usize = 186;
    pub(super) const BBLOG_OFFSET: usize = 188;
    pub(super) const UTIME: usize = 192;
    pub(super) const EVENTS: usize = 200;
    pub(super) const RESYNC_OFFSET: usize = 208;
    pub(super) const SB_CSUM: usize = 216;
    pub(super) const MAX_DEV: usize = 220;
    pub(super) const LOGICAL_BLOCK_SIZE: usize = 224;
    pub(super) const PAD3: usize = 228;
    pub(super) const DEV_ROLES: usize = 256;
}

const WRITE_MOSTLY: u8 = 1;
const FAIL_FAST: u8 = 2;

const ROLE_SPARE: u16 = 0xffff;
const ROLE_FAULTY: u16 = 0xfffe;
const ROLE_JOURNAL: u16 = 0xfffd;

/// The checksum that is stored and the one that the bytes have; `None` if there are too few bytes
/// for the roles that they claim.
pub(super) fn checksum(bytes: &[u8]) -> Option<(u32, u32)> {
    let header = Fields::new(bytes.get(..HEADER)?, ByteOrder::Little);
    let max_dev = header.u32(at::MAX_DEV);
    let roles = Some(max_dev).filter(|max_dev| *max_dev <= MOST_ROLES)?;
    let summed = bytes.get(..HEADER + 2 * roles as usize)?;
    let stored = header.u32(at::SB_CSUM);
    let mut sum: u64 = 0;
    for word in summed.chunks(4) {
        let mut whole = [0; 4];
        whole[..word.len()].copy_from_slice(word);
        sum += u64::from(u32::from_le_bytes(whole));
    }
    sum -= u64::from(stored);
    Some((stored, (sum as u32).wrapping_add((sum >> 32) as u32)))
}

pub(super) fn parse(
    version: Version,
    super_offset: u64,
    bytes: &[u8],
) -> Result<Contents, Rejection> {
    let raw = check_bytes(bytes)?;
    let field = Fields::new(&raw, ByteOrder::Little);
    if field.u64(at::SUPER_OFFSET) != super_offset / SECTOR {
        let stored = field.u64(at::SUPER_OFFSET);
        return Err(Rejection::SuperOffset { stored, found: super_offset });
    }
    let features = Features(field.u32(at::FEATURE_MAP));
    let number = field.i32(at::LEVEL);
    let level = Level::from_number(number).ok_or(Rejection::Level(number))?;
    let layout_holds = level != Level::Raid0 || features.contains(Features::RAID0_LAYOUT);
    let component_size = in_bytes("size", field.u64(at::SIZE))?;
    Ok(Contents {
        version,
        array_uuid: Uuid(field.array(at::SET_UUID)),
        name: name(&field.array(at::SET_NAME)),
        created: timestamp(field.u64(at::CTIME)),
        updated: timestamp(field.u64(at::UTIME)),
        level,
        layout: if layout_holds { field.u32(at::LAYOUT) } else { 0 },
        chunk: u64::from(field.u32(at::CHUNKSIZE)) * SECTOR,
        component_size,
        raid_disks: field.u32(at::RAID_DISKS),
        events: field.u64(at::EVENTS),
        resync: match field.u64(at::RESYNC_OFFSET) {
            MAX_SECTOR => Resync::Clean,
            sectors => Resync::From(in_bytes("resync_offset", sectors)?),
        },
        features,
        bitmap_offset: features
            .contains(Features::BITMAP)
            .then(|| i64::from(field.i32(at::BITMAP_OFFSET)) * SECTOR as i64),
        ppl: has_ppl(features).then(|| {
            let offset = i64::from(field.u16(at::PPL_OFFSET).cast_signed());
            (offset * SECTOR as i64, u64::from(field.u16(at::PPL_SIZE)) * SECTOR)
        }),
        reshape: reshape(field, features)?,
        roles: roles(field),
        logical_block_size: field.u32(at::LOGICAL_BLOCK_SIZE),
        super_offset,
        data_offset: in_bytes("data_offset", field.u64(at::DATA_OFFSET))?,
        data_size: in_bytes("data_size", field.u64(at::DATA_SIZE))?,
        device_uuid: Uuid(field.array(at::DEVICE_UUID)),
        device_number: field.u32(at::DEV_NUMBER),
        corrected_reads: field.u32(at::CNT_CORRECTED_READ),
        write_mostly: field.u8(at::DEVFLAGS) & WRITE_MOSTLY != 0,
        fail_fast: field.u8(at::DEVFLAGS) & FAIL_FAST != 0,
        recovery_offset: recovery_offset(field, features, component_size)?,
        bad_block_log: bad_block_log(field, features)?,
        old: None,
        raw,
    })
}

/// Checks the bytes before any field has a meaning: that they are a complete and undamaged superblock. Returns
/// the whole sectors of the superblock.
fn check_bytes(bytes: &[u8]) -> Result<Vec<u8>, Rejection> {
    let truncated = |needed| Rejection::Truncated { needed, got: bytes.len() };
    let header = bytes.get(..HEADER).ok_or(truncated(HEADER))?;
    let header = Fields::new(header, ByteOrder::Little);
    match header.u32(at::MAGIC) {
        MAGIC => {}
        swapped if swapped == MAGIC.swap_bytes() => return Err(Rejection::BigEndian),
        other => return Err(Rejection::Magic(other)),
    }
    let found = header.u32(at::MAJOR_VERSION);
    if found != 1 {
        return Err(Rejection::MajorVersion { found, expected: 1 });
    }
    let max_dev = header.u32(at::MAX_DEV);
    if max_dev == 0 || max_dev > MOST_ROLES {
        return Err(Rejection::MaxDev(max_dev));
    }
    let needed = HEADER + 2 * max_dev as usize;
    let (stored, expected) = checksum(bytes).ok_or(truncated(needed))?;
    if stored != expected && !Canary::ChecksumIgnored.is_planted() {
        return Err(Rejection::Checksum { stored, expected });
    }
    let sectors = whole_sectors(needed);
    let mut raw = bytes[..sectors.min(bytes.len())].to_vec();
    raw.resize(sectors, 0);
    Ok(raw)
}

fn whole_sectors(bytes: usize) -> usize {
    bytes.next_multiple_of(SECTOR as usize)
}

fn in_bytes(field: &'static str, sectors: u64) -> Result<u64, Rejection> {
    match sectors.checked_mul(SECTOR) {
        Some(bytes) if bytes < 1 << 63 => Ok(bytes),
        _ => Err(Rejection::TooLarge { field, value: sectors, unit: "sectors" }),
    }
}

/// The name up to its end; a byte that is not UTF-8 becomes `?`.
fn name(bytes: &[u8; 32]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let mut name = String::new();
    for chunk in bytes[..end].utf8_chunks() {
        name.push_str(chunk.valid());
        name.extend(chunk.invalid().iter().map(|_| '?'));
    }
    name
}

/// 40 bits of seconds below 24 bits of microseconds.
fn timestamp(value: u64) -> Timestamp {
    Timestamp { seconds: value & ((1 << 40) - 1), micros: (value >> 40) as u32 }
}

fn timestamp_bits(time: Timestamp) -> u64 {
    time.seconds & ((1 << 40) - 1) | u64::from(time.micros) << 40
}

fn has_ppl(features: Features) -> bool {
    features.contains(Features::PPL) || features.contains(Features::MULTIPLE_PPLS)
}

fn reshape(field: Fields<'_>, features: Features) -> Result<Option<Reshape>, Rejection> {
    if !features.contains(Features::RESHAPE) {
        return Ok(None);
    }
    let delta_disks = field.i32(at::DELTA_DISKS);
    let moved = features.contains(Features::NEW_OFFSET);
    Ok(Some(Reshape {
        position: in_bytes("reshape_position", field.u64(at::RESHAPE_POSITION))?,
        delta_disks,
        new_level: field.i32(at::NEW_LEVEL),
        new_layout: field.u32(at::NEW_LAYOUT),
        new_chunk: u64::from(field.u32(at::NEW_CHUNK)) * SECTOR,
        new_offset: if moved { i64::from(field.i32(at::NEW_OFFSET)) * SECTOR as i64 } else { 0 },
        backwards: delta_disks < 0
            || delta_disks == 0 && features.contains(Features::RESHAPE_BACKWARDS),
    }))
}

/// md writes its word for "all of it" in the moment between the end of a recovery and the
/// member's becoming in sync.
fn recovery_offset(
    field: Fields<'_>,
    features: Features,
    component_size: u64,
) -> Result<Option<u64>, Rejection> {
    if !features.contains(Features::RECOVERY_OFFSET) {
        return Ok(None);
    }
    match field.u64(at::RECOVERY_OFFSET) {
        MAX_SECTOR => Ok(Some(component_size)),
        sectors => in_bytes("recovery_offset", sectors).map(Some),
    }
}

fn bad_block_log(field: Fields<'_>, features: Features) -> Result<Option<BadBlockLog>, Rejection> {
    let (offset, sectors) = (field.i32(at::BBLOG_OFFSET), field.u16(at::BBLOG_SIZE));
    let shift = field.u8(at::BBLOG_SHIFT);
    let refused = |why| Err(Rejection::BadBlockLog { offset, sectors, shift, why });
    if offset == 0 || sectors == 0 {
        return match features.contains(Features::BAD_BLOCKS) {
            true => refused("there are bad blocks and no room for them"),
            false => Ok(None),
        };
    }
    if sectors > 8 {
        return refused("md has at most 8 sectors");
    }
    if shift >= 64 {
        return refused("the shift is below 64");
    }
    Ok(Some(BadBlockLog {
        offset: i64::from(offset) * SECTOR as i64,
        size: u64::from(sectors) * SECTOR,
        shift,
    }))
}

fn roles(field: Fields<'_>) -> Vec<Role> {
    (0..field.u32(at::MAX_DEV) as usize)
        .map(|number| match field.u16(at::DEV_ROLES + 2 * number) {
            ROLE_SPARE => Role::Spare,
            ROLE_FAULTY => Role::Faulty,
            ROLE_JOURNAL => Role::Journal,
            role => Role::Active(role),
        })
        .collect()
}

/// Returns true if bytes that must be zero until md gives them a meaning are not.
pub(super) fn has_unknown_padding(raw: &[u8]) -> bool {
    [(at::PAD0, 4), (at::PAD3, HEADER - at::PAD3)]
        .iter()
        .any(|(at, len)| raw.iter().skip(*at).take(*len).any(|byte| *byte != 0))
}

pub(super) fn encode(superblock: &Contents) -> Vec<u8> {
    let mut bytes = superblock.raw.clone();
    let max_dev = room_for_roles(superblock);
    bytes.resize(whole_sectors(HEADER + 2 * max_dev).max(bytes.len()), 0);
    let mut field = FieldsMut::new(&mut bytes, ByteOrder::Little);
    field.put_u32(at::MAGIC, MAGIC);
    field.put_u32(at::MAJOR_VERSION, 1);
    field.put_u32(at::MAX_DEV, max_dev as u32);
    put_array(&mut field, superblock);
    put_member(&mut field, superblock);
    put_optional(&mut field, superblock);
    let roles = superblock.roles.iter().copied().chain(std::iter::repeat(Role::Spare));
    for (number, role) in roles.take(max_dev).enumerate() {
        let bits = match role {
            Role::Active(role) => role,
            Role::Spare => ROLE_SPARE,
            Role::Faulty => ROLE_FAULTY,
            Role::Journal => ROLE_JOURNAL,
        };
        field.put_u16(at::DEV_ROLES + 2 * number, bits);
    }
    if let Some((_, expected)) = checksum(&bytes) {
        bytes[at::SB_CSUM..at::SB_CSUM + 4].copy_from_slice(&expected.to_le_bytes());
    }
    bytes
}

/// As many roles as there were; more if there are more devices. Where nothing was, as many as
/// mdadm makes.
fn room_for_roles(superblock: &Contents) -> usize {
    let needed = superblock.roles.len().max(superblock.device_number as usize + 1);
    let room = match superblock.raw.get(at::MAX_DEV..at::MAX_DEV + 4) {
        Some(bytes) => needed.max(Fields::new(bytes, ByteOrder::Little).u32(0) as usize),
        None => needed.next_multiple_of(ROLES_STEP),
    };
    room.min(MOST_ROLES as usize)
}

fn put_array(field: &mut FieldsMut<'_>, superblock: &Contents) {
    field.put(at::SET_UUID, &superblock.array_uuid.0);
    if name(&field.read().array(at::SET_NAME)) != superblock.name {
        let mut name = [0; 32];
        for (to, from) in name.iter_mut().zip(superblock.name.bytes()) {
            *to = from;
        }
        field.put(at::SET_NAME, &name);
    }
    field.put_u64(at::CTIME, timestamp_bits(superblock.created));
    field.put_u64(at::UTIME, timestamp_bits(superblock.updated));
    field.put_i32(at::LEVEL, superblock.level.number());
    if superblock.level != Level::Raid0
        || writable_features(superblock).contains(Features::RAID0_LAYOUT)
    {
        field.put_u32(at::LAYOUT, superblock.layout);
    }
    field.put_u64(at::SIZE, superblock.component_size / SECTOR);
    field.put_u32(at::CHUNKSIZE, (superblock.chunk / SECTOR) as u32);
    field.put_u32(at::RAID_DISKS, superblock.raid_disks);
    field.put_u64(at::EVENTS, superblock.events);
    field.put_u64(
        at::RESYNC_OFFSET,
        match superblock.resync {
            Resync::Clean => MAX_SECTOR,
            Resync::From(offset) => offset / SECTOR,
        },
    );
    field.put_u32(at::LOGICAL_BLOCK_SIZE, superblock.logical_block_size);
}

fn put_member(field: &mut FieldsMut<'_>, superblock: &Contents) {
    field.put_u64(at::SUPER_OFFSET, superblock.super_offset / SECTOR);
    field.put_u64(at::DATA_OFFSET, superblock.data_offset / SECTOR);
    field.put_u64(at::DATA_SIZE, superblock.data_size / SECTOR);
    field.put(at::DEVICE_UUID, &superblock.device_uuid.0);
    field.put_u32(at::DEV_NUMBER, superblock.device_number);
    field.put_u32(at::CNT_CORRECTED_READ, superblock.corrected_reads);
    let mut flags = field.read().u8(at::DEVFLAGS) & !(WRITE_MOSTLY | FAIL_FAST);
    flags |= if superblock.write_mostly { WRITE_MOSTLY } else { 0 };
    flags |= if superblock.fail_fast { FAIL_FAST } else { 0 };
    field.put(at::DEVFLAGS, &[flags]);
}

/// The fields that hold only with a feature; without it their bytes stay as they were.
fn put_optional(field: &mut FieldsMut<'_>, superblock: &Contents) {
    let features = writable_features(superblock);
    field.put_u32(at::FEATURE_MAP, features.0);
    if let Some(offset) = superblock.bitmap_offset {
        field.put_i32(at::BITMAP_OFFSET, in_sectors(offset));
    }
    if let Some((offset, size)) = superblock.ppl {
        field.put_u16(at::PPL_OFFSET, (in_sectors(offset) as i16).cast_unsigned());
        field.put_u16(at::PPL_SIZE, (size / SECTOR) as u16);
    }
    if let Some(reshape) = superblock.reshape {
        field.put_u64(at::RESHAPE_POSITION, reshape.position / SECTOR);
        field.put_i32(at::DELTA_DISKS, reshape.delta_disks);
        field.put_i32(at::NEW_LEVEL, reshape.new_level);
        field.put_u32(at::NEW_LAYOUT, reshape.new_layout);
        field.put_u32(at::NEW_CHUNK, (reshape.new_chunk / SECTOR) as u32);
        if features.contains(Features::NEW_OFFSET) {
            field.put_i32(at::NEW_OFFSET, in_sectors(reshape.new_offset));
        }
    }
    if let Some(offset) = superblock.recovery_offset {
        let all = field.read().u64(at::RECOVERY_OFFSET) == MAX_SECTOR
            && offset == superblock.component_size;
        field.put_u64(at::RECOVERY_OFFSET, if all { MAX_SECTOR } else { offset / SECTOR });
    }
    if let Some(log) = superblock.bad_block_log {
        field.put_i32(at::BBLOG_OFFSET, in_sectors(log.offset));
        field.put_u16(at::BBLOG_SIZE, (log.size / SECTOR) as u16);
        field.put(at::BBLOG_SHIFT, &[log.shift]);
    }
}

fn in_sectors(bytes: i64) -> i32 {
    (bytes / SECTOR as i64) as i32
}

/// The features as they follow from the fields that need them; the others as they are.
fn writable_features(superblock: &Contents) -> Features {
    let mut features = superblock.features;
    let mut holds = |feature: Features, holds: bool| {
        features = if holds { features.union(feature) } else { features.without(feature) };
    };
    holds(Features::BITMAP, superblock.bitmap_offset.is_some());
    holds(Features::RECOVERY_OFFSET, superblock.recovery_offset.is_some());
    holds(Features::RESHAPE, superblock.reshape.is_some());
    if superblock.ppl.is_none() {
        holds(Features::PPL.union(Features::MULTIPLE_PPLS), false);
    } else if !has_ppl(superblock.features) {
        holds(Features::PPL, true);
    }
    match superblock.reshape {
        Some(reshape) if reshape.delta_disks == 0 => {
            holds(Features::RESHAPE_BACKWARDS, reshape.backwards);
        }
        _ => {}
    }
    if superblock.reshape.is_some_and(|reshape| reshape.new_offset != 0) {
        holds(Features::NEW_OFFSET, true);
    }
    if superblock.level == Level::Raid0 && superblock.layout != 0 {
        holds(Features::RAID0_LAYOUT, true);
    }
    features
}
