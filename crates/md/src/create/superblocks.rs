//! The superblocks of a new array: numbers and roles.
//!
//! ```text
//! device number   0 … members-1    then the spares, then devices with a role that wait
//! ```
//!
//! Source: mdadm's `Create.c`, `super1.c` (`init_super1`, `add_to_super1`, `write_init_super1`).

use super::place::{self, BAD_BLOCKS};
use super::{CreateError, Device, NewBitmap, Place, Planned, Request, Shape, resync};
use crate::superblock::{BadBlockLog, Contents, Old};
use crate::{Features, Level, Role, Superblock, Uuid, Version};

/// mdadm makes room for this many roles at a time.
const ROLES_STEP: usize = 128;

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

/// All superblocks, members first, then spares.
pub(super) fn superblocks(
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
        bitmap.map(|bitmap| (bitmap.offset, bitmap.size)).or(shape.ppl),
        shape.stripe_log,
    )
    .ok_or_else(too_small)?;
    let mut features = Features::default();
    if bitmap.is_some() {
        features = features.union(Features::BITMAP);
    }
    if shape.ppl.is_some() {
        // mdadm says "PPL"; a kernel that knows of rings makes this of it for such an area.
        features = features.union(Features::MULTIPLE_PPLS);
    }
    if level == Level::Raid0 && shape.layout != 0 {
        features = features.union(Features::RAID0_LAYOUT);
    }
    let contents = Contents {
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
        ppl: shape.ppl,
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
    };
    Superblock::new(contents, device.size)
        .map_err(|why| CreateError::Invalid { label: device.label.clone(), why })
}
