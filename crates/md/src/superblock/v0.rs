//! Version 0.90, and the 0.91 of an array that is being reshaped.
//!
//! ```text
//!   0        128       256          512                              3968      4096
//!   | array   | state   | layout …   | 27 disks, 128 bytes each …      | this disk |
//!   |<------------------------- under the checksum -------------------------------->|
//! ```
//!
//! Numbers lie in the byte order of the host that wrote them; the magic number tells which. There
//! is no identifier of a member, no name, no offset of the data (it starts with the member), and
//! sizes are in KiB. Encoding starts from the bytes that were read, and writes a disk's
//! descriptor only where its role has changed.
//!
//! Source: Linux `include/uapi/linux/raid/md_p.h` (`struct mdp_superblock_s`), `drivers/md/md.c`
//! (`super_90_load`, `super_90_validate`, `super_90_sync`, `calc_sb_csum`).

use super::fields::{ByteOrder, Fields, FieldsMut};
use super::{Contents, Features, MAGIC, Old, OldDisk, Reshape, Resync, Role, Timestamp};
use crate::{Level, Rejection, SECTOR, Uuid, Version};

/// Bytes of the whole superblock.
const BYTES: usize = 4096;
/// Descriptors in the table.
const DISKS: usize = 27;
/// Bytes from one descriptor to the next.
const DISK_BYTES: usize = 128;
const KIB: u64 = 1024;
/// From this many bytes on, a member of a level above 0 is used as if it were a sector pair
/// smaller than that: sizes in KiB have 32 bits.
const MOST_DATA: u64 = 1 << 42;

/// The place of each field, in bytes.
mod at {
    pub(super) const MAGIC: usize = 0;
    pub(super) const MAJOR_VERSION: usize = 4;
    pub(super) const MINOR_VERSION: usize = 8;
    pub(super) const PATCH_VERSION: usize = 12;
    pub(super) const UUID: [usize; 4] = [20, 52, 56, 60];
    pub(super) const CTIME: usize = 24;
    pub(super) const LEVEL: usize = 28;
    pub(super) const SIZE: usize = 32;
    pub(super) const NR_DISKS: usize = 36;
    pub(super) const RAID_DISKS: usize = 40;
    pub(super) const MD_MINOR: usize = 44;
    pub(super) const UTIME: usize = 128;
    pub(super) const STATE: usize = 132;
    /// Active, working, failed, spare.
    pub(super) const COUNTS: usize = 136;
    pub(super) const SB_CSUM: usize = 152;
    pub(super) const EVENTS: usize = 156;
    pub(super) const CP_EVENTS: usize = 164;
    pub(super) const RECOVERY_CP: usize = 172;
    pub(super) const RESHAPE_POSITION: usize = 176;
    pub(super) const NEW_LEVEL: usize = 184;
    pub(super) const DELTA_DISKS: usize = 188;
    pub(super) const NEW_LAYOUT: usize = 192;
    pub(super) const NEW_CHUNK: usize = 196;
    pub(super) const LAYOUT: usize = 256;
    pub(super) const CHUNK_SIZE: usize = 260;
    pub(super) const DISKS: usize = 512;
    pub(super) const THIS_DISK: usize = 3968;
    // In a descriptor.
    pub(super) const DISK_NUMBER: usize = 0;
    pub(super) const DISK_MAJOR: usize = 4;
    pub(super) const DISK_MINOR: usize = 8;
    pub(super) const DISK_RAID_DISK: usize = 12;
    pub(super) const DISK_STATE: usize = 16;
}

const STATE_CLEAN: u32 = 1;
const STATE_ERRORS: u32 = 1 << 1;
const STATE_BITMAP: u32 = 1 << 8;

const DISK_FAULTY: u32 = 1;
const DISK_ACTIVE: u32 = 1 << 1;
const DISK_SYNC: u32 = 1 << 2;
const DISK_REMOVED: u32 = 1 << 3;
const DISK_WRITE_MOSTLY: u32 = 1 << 9;
const DISK_FAIL_FAST: u32 = 1 << 10;

/// In which order the numbers lie, or what is in the place of the magic number.
fn byte_order(bytes: &[u8]) -> Result<ByteOrder, Rejection> {
    let little = Fields::new(bytes, ByteOrder::Little).u32(at::MAGIC);
    match little {
        MAGIC => Ok(ByteOrder::Little),
        swapped if swapped == MAGIC.swap_bytes() => Ok(ByteOrder::Big),
        other => Err(Rejection::Magic(other)),
    }
}

/// The checksum that is stored and the one that the bytes have; `None` if there are too few bytes
/// or they are no superblock.
pub(super) fn checksum(bytes: &[u8]) -> Option<(u32, u32)> {
    let bytes = bytes.get(..BYTES)?;
    let field = Fields::new(bytes, byte_order(bytes).ok()?);
    let stored = field.u32(at::SB_CSUM);
    let sum: u64 = (0..BYTES).step_by(4).map(|at| u64::from(field.u32(at))).sum();
    let sum = sum - u64::from(stored);
    Some((stored, (sum as u32).wrapping_add((sum >> 32) as u32)))
}

/// Some hosts stored the sum folded to 16 bits; md compares both after folding.
fn folded(sum: u32) -> u32 {
    let once = (sum & 0xffff) + (sum >> 16);
    (once & 0xffff) + (once >> 16)
}

pub(super) fn parse(super_offset: u64, bytes: &[u8]) -> Result<Contents, Rejection> {
    let (raw, order) = check_bytes(bytes)?;
    let field = Fields::new(&raw, order);
    let number = field.i32(at::LEVEL);
    let level = Level::from_number(number).ok_or(Rejection::Level(number))?;
    let state = field.u32(at::STATE);
    let has_bitmap = state & STATE_BITMAP != 0;
    let reshape = reshape(field)?;
    let device_number = field.u32(at::THIS_DISK + at::DISK_NUMBER);
    let this = disk_at(device_number).map_or(0, |at| field.u32(at + at::DISK_STATE));
    let roles = roles(field)?;
    let is_filled = reshape.is_some()
        && matches!(roles.get(device_number as usize), Some(Role::Active(_)))
        && this & DISK_SYNC == 0;
    Ok(Contents {
        version: Version::V0_90,
        array_uuid: uuid(field),
        name: String::new(),
        created: Timestamp { seconds: field.u32(at::CTIME).into(), micros: 0 },
        updated: Timestamp { seconds: field.u32(at::UTIME).into(), micros: 0 },
        level,
        layout: if level == Level::Raid0 { 0 } else { field.u32(at::LAYOUT) },
        chunk: field.u32(at::CHUNK_SIZE).into(),
        component_size: u64::from(field.u32(at::SIZE)) * KIB,
        raid_disks: field.u32(at::RAID_DISKS),
        events: field.u64(at::EVENTS),
        resync: resync(field),
        features: if has_bitmap { Features::BITMAP } else { Features::default() },
        bitmap_offset: has_bitmap.then_some(BYTES as i64),
        ppl: None,
        reshape,
        roles,
        logical_block_size: 0,
        super_offset,
        data_offset: 0,
        data_size: data_size(level, super_offset),
        device_uuid: Uuid::default(),
        device_number,
        corrected_reads: 0,
        write_mostly: this & DISK_WRITE_MOSTLY != 0,
        fail_fast: this & DISK_FAIL_FAST != 0,
        // How far it got is not recorded: md starts again.
        recovery_offset: is_filled.then_some(0),
        bad_block_log: None,
        old: Some(Old {
            preferred_minor: field.u32(at::MD_MINOR),
            minor_version: field.u32(at::MINOR_VERSION),
            patch_version: field.u32(at::PATCH_VERSION),
            errors: state & STATE_ERRORS != 0,
            nr_disks: field.u32(at::NR_DISKS),
            counts: std::array::from_fn(|index| field.u32(at::COUNTS + 4 * index)),
            byte_order: order,
        }),
        raw,
    })
}

/// Checks the bytes before any field has a meaning: that they are a complete and undamaged superblock.
fn check_bytes(bytes: &[u8]) -> Result<(Vec<u8>, ByteOrder), Rejection> {
    let got = bytes.len();
    let bytes = bytes.get(..BYTES).ok_or(Rejection::Truncated { needed: BYTES, got })?;
    let order = byte_order(bytes)?;
    let field = Fields::new(bytes, order);
    let found = field.u32(at::MAJOR_VERSION);
    if found != 0 {
        return Err(Rejection::MajorVersion { found, expected: 0 });
    }
    let minor = field.u32(at::MINOR_VERSION);
    if !(90..=91).contains(&minor) {
        return Err(Rejection::MinorVersion(minor));
    }
    match checksum(bytes) {
        Some((stored, expected)) if folded(stored) != folded(expected) => {
            Err(Rejection::Checksum { stored, expected })
        }
        _ => Ok((bytes.to_vec(), order)),
    }
}

/// Four words, which mdadm prints as numbers.
fn uuid(field: Fields<'_>) -> Uuid {
    let mut uuid = [0; 16];
    for (bytes, at) in uuid.chunks_exact_mut(4).zip(at::UUID) {
        bytes.copy_from_slice(&field.u32(at).to_be_bytes());
    }
    Uuid(uuid)
}

fn data_size(level: Level, super_offset: u64) -> u64 {
    if super_offset >= MOST_DATA && level.number() >= 1 {
        MOST_DATA - 2 * SECTOR
    } else {
        super_offset
    }
}

/// Returns the resync state. `recovery_cp` holds only for the events count with which it was written.
fn resync(field: Fields<'_>) -> Resync {
    if field.u32(at::STATE) & STATE_CLEAN != 0 {
        Resync::Clean
    } else if field.u64(at::EVENTS) == field.u64(at::CP_EVENTS) {
        Resync::From(u64::from(field.u32(at::RECOVERY_CP)) * SECTOR)
    } else {
        Resync::From(0)
    }
}

fn is_reshaping(field: Fields<'_>) -> bool {
    field.u32(at::MINOR_VERSION) > 90
}

fn reshape(field: Fields<'_>) -> Result<Option<Reshape>, Rejection> {
    if !is_reshaping(field) {
        return Ok(None);
    }
    let sectors = field.u64(at::RESHAPE_POSITION);
    let position = sectors.checked_mul(SECTOR).filter(|bytes| *bytes < 1 << 63).ok_or(
        Rejection::TooLarge { field: "reshape_position", value: sectors, unit: "sectors" },
    )?;
    let delta_disks = field.i32(at::DELTA_DISKS);
    Ok(Some(Reshape {
        position,
        delta_disks,
        new_level: field.i32(at::NEW_LEVEL),
        new_layout: field.u32(at::NEW_LAYOUT),
        new_chunk: field.u32(at::NEW_CHUNK).into(),
        new_offset: 0,
        backwards: delta_disks < 0,
    }))
}

/// Returns the place of a disk's descriptor.
fn disk_at(number: u32) -> Option<usize> {
    ((number as usize) < DISKS).then(|| at::DISKS + DISK_BYTES * number as usize)
}

fn roles(field: Fields<'_>) -> Result<Vec<Role>, Rejection> {
    (0..DISKS as u32)
        .map(|number| {
            let role = role(field, at::DISKS + DISK_BYTES * number as usize);
            role.map_err(|role| Rejection::Role { number, role, limit: DISKS as u32 })
        })
        .collect()
}

/// The role in a descriptor; an error if its number is none that a role can have.
fn role(field: Fields<'_>, at: usize) -> Result<Role, u32> {
    let state = field.u32(at + at::DISK_STATE);
    // Active but not in sync: only while the array is being reshaped on to it.
    let takes_part = state & DISK_SYNC != 0 || state & DISK_ACTIVE != 0 && is_reshaping(field);
    if state & DISK_FAULTY != 0 {
        Ok(Role::Faulty)
    } else if takes_part {
        let role = field.u32(at + at::DISK_RAID_DISK);
        u16::try_from(role).map(Role::Active).map_err(|_| role)
    } else {
        Ok(Role::Spare)
    }
}

/// The descriptors as they stand in the bytes: this disk's, and the table.
pub(super) fn disks(bytes: &[u8]) -> Option<(OldDisk, Vec<OldDisk>)> {
    let bytes = bytes.get(..BYTES)?;
    let field = Fields::new(bytes, byte_order(bytes).ok()?);
    let disk = |at: usize| OldDisk {
        number: field.u32(at + at::DISK_NUMBER),
        major: field.u32(at + at::DISK_MAJOR),
        minor: field.u32(at + at::DISK_MINOR),
        raid_disk: field.u32(at + at::DISK_RAID_DISK),
        state: field.u32(at + at::DISK_STATE),
    };
    let table = (0..DISKS).map(|number| disk(at::DISKS + DISK_BYTES * number)).collect();
    Some((disk(at::THIS_DISK), table))
}

pub(super) fn encode(superblock: &Contents) -> Vec<u8> {
    let old = superblock.old.unwrap_or_default();
    let mut bytes = superblock.raw.clone();
    bytes.resize(BYTES, 0);
    let mut field = FieldsMut::new(&mut bytes, old.byte_order);
    put_array(&mut field, superblock, old);
    put_reshape(&mut field, superblock.reshape);
    put_resync(&mut field, superblock);
    put_disks(&mut field, superblock);
    put_checksum(&mut bytes, old.byte_order);
    bytes
}

fn put_array(field: &mut FieldsMut<'_>, superblock: &Contents, old: Old) {
    field.put_u32(at::MAGIC, MAGIC);
    field.put_u32(at::MAJOR_VERSION, 0);
    field.put_u32(at::PATCH_VERSION, old.patch_version);
    for (bytes, at) in superblock.array_uuid.0.chunks_exact(4).zip(at::UUID) {
        field.put_u32(at, Fields::new(bytes, ByteOrder::Big).u32(0));
    }
    field.put_u32(at::CTIME, superblock.created.seconds.min(u32::MAX.into()) as u32);
    field.put_u32(at::UTIME, superblock.updated.seconds.min(u32::MAX.into()) as u32);
    field.put_i32(at::LEVEL, superblock.level.number());
    if superblock.level != Level::Raid0 {
        field.put_u32(at::LAYOUT, superblock.layout);
    }
    field.put_u32(at::SIZE, (superblock.component_size / KIB) as u32);
    field.put_u32(at::NR_DISKS, old.nr_disks);
    field.put_u32(at::RAID_DISKS, superblock.raid_disks);
    field.put_u32(at::MD_MINOR, old.preferred_minor);
    field.put_u32(at::CHUNK_SIZE, superblock.chunk as u32);
    for (index, count) in old.counts.iter().enumerate() {
        field.put_u32(at::COUNTS + 4 * index, *count);
    }
    let mut state = field.read().u32(at::STATE) & !(STATE_CLEAN | STATE_ERRORS | STATE_BITMAP);
    state |= if superblock.is_clean() { STATE_CLEAN } else { 0 };
    state |= if old.errors { STATE_ERRORS } else { 0 };
    state |= if superblock.bitmap_offset.is_some() { STATE_BITMAP } else { 0 };
    field.put_u32(at::STATE, state);
}

fn put_reshape(field: &mut FieldsMut<'_>, reshape: Option<Reshape>) {
    field.put_u32(at::MINOR_VERSION, if reshape.is_some() { 91 } else { 90 });
    let Some(reshape) = reshape else { return };
    field.put_u64(at::RESHAPE_POSITION, reshape.position / SECTOR);
    field.put_i32(at::NEW_LEVEL, reshape.new_level);
    field.put_i32(at::DELTA_DISKS, reshape.delta_disks);
    field.put_u32(at::NEW_LAYOUT, reshape.new_layout);
    field.put_u32(at::NEW_CHUNK, reshape.new_chunk as u32);
}

fn put_resync(field: &mut FieldsMut<'_>, superblock: &Contents) {
    field.put_u64(at::EVENTS, superblock.events);
    if resync(field.read()) == superblock.resync {
        return;
    }
    if let Resync::From(offset) = superblock.resync {
        field.put_u64(at::CP_EVENTS, superblock.events);
        // A resync that starts earlier than it must is slower, never wrong.
        let sectors = (offset / SECTOR).min(u32::MAX.into()) as u32;
        field.put_u32(at::RECOVERY_CP, sectors);
    }
}

fn put_disks(field: &mut FieldsMut<'_>, superblock: &Contents) {
    for number in 0..DISKS as u32 {
        let at = at::DISKS + DISK_BYTES * number as usize;
        let before = field.bytes[at..at + DISK_BYTES].to_vec();
        let wanted = superblock.roles.get(number as usize).copied().unwrap_or(Role::Spare);
        // A spare's descriptor has its number; one of zeroes reads as a spare, but as number 0.
        let is_blank = superblock.old.is_some_and(|old| number < old.nr_disks)
            && before.iter().all(|byte| *byte == 0);
        if is_blank || role(field.read(), at) != Ok(wanted) {
            put_disk(field, at, number, wanted);
        }
        if number != superblock.device_number {
            continue;
        }
        put_own_state(field, at, superblock);
        // md writes its own descriptor twice.
        let is_other = field.read().u32(at::THIS_DISK + at::DISK_NUMBER) != number;
        if is_other || field.bytes[at..at + DISK_BYTES] != before {
            field.put_u32(at + at::DISK_NUMBER, number);
            field.bytes.copy_within(at..at + DISK_BYTES, at::THIS_DISK);
        }
    }
}

fn put_disk(field: &mut FieldsMut<'_>, at: usize, number: u32, role: Role) {
    let (raid_disk, state) = match role {
        Role::Active(role) => (role.into(), DISK_ACTIVE | DISK_SYNC),
        Role::Faulty => (number, DISK_FAULTY | DISK_REMOVED),
        Role::Spare | Role::Journal => (number, 0),
    };
    field.put_u32(at + at::DISK_NUMBER, number);
    field.put_u32(at + at::DISK_RAID_DISK, raid_disk);
    field.put_u32(at + at::DISK_STATE, state);
}

fn put_own_state(field: &mut FieldsMut<'_>, at: usize, superblock: &Contents) {
    let mut state = field.read().u32(at + at::DISK_STATE);
    if matches!(superblock.role(), Role::Active(_)) {
        let is_filled = superblock.reshape.is_some() && superblock.recovery_offset.is_some();
        state = if is_filled { state & !DISK_SYNC | DISK_ACTIVE } else { state | DISK_SYNC };
    }
    state &= !(DISK_WRITE_MOSTLY | DISK_FAIL_FAST);
    state |= if superblock.write_mostly { DISK_WRITE_MOSTLY } else { 0 };
    state |= if superblock.fail_fast { DISK_FAIL_FAST } else { 0 };
    field.put_u32(at + at::DISK_STATE, state);
}

/// A sum that was folded and still holds stays as it is.
fn put_checksum(bytes: &mut [u8], order: ByteOrder) {
    if let Some((stored, expected)) = checksum(bytes)
        && (folded(stored) != folded(expected) || stored > 0xffff)
    {
        FieldsMut::new(bytes, order).put_u32(at::SB_CSUM, expected);
    }
}
