//! The admission of a device to a running array: in its former role, or as a spare.
//!
//! ```text
//!   carries a superblock of this array, in a role that is free,  ──▶ back in that role: the chunks
//!   and the bitmap names all later writes                            in the bitmap are copied
//!   carries one that went on without the array's members         ──▶ refused
//!   anything else                                                ──▶ a spare, with a new superblock
//! ```
//!
//! Invariants
//! * A superblock names only areas that were written before, above all the bad-block log.
//! * A member that went on alone is refused: its own writes would be lost.
//!
//! Deliberately absent: the check whether the device's contents may be overwritten, which comes before.

use std::io;

use braid_array::MemberByte;
use braid_block::{Flags, Io};
use braid_md::assembly::{Reason, came_back};
use braid_md::superblock::SUPERBLOCK_BYTES;
use braid_md::{BadBlocks, Role, Superblock, Uuid, Version};
use braid_mem::Pool;

use super::carried::empty_log;
use super::{Carried, LogPlace};
use crate::Dev;
use crate::canary::Canary;
use crate::redundant::{MemberState, MemberStatus, NewMember, Redundant, Status};

/// A device that is to become a member.
pub struct Newcomer<'a> {
    /// The name of the device in messages.
    pub label: String,
    /// The whole device.
    pub dev: Dev,
    /// The device's contents as a former member of this array, if they count.
    pub known: Option<&'a Carried>,
    /// The device becomes a new member, even if it was one before.
    pub anew: bool,
    /// Offsets of all superblocks on the device, of any array and version, in bytes.
    pub superblocks: &'a [u64],
    /// Size in bytes.
    pub size: u64,
    /// The device's UUID for its superblock, which no other device has.
    pub uuid: Uuid,
}

/// Reasons why a device is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotTaken {
    /// The device and the array's members went on without each other.
    #[error(
        "it went on without the members that are here, and they without it: it counts {events} \
         events, they {ours}, and neither has what the other was written"
    )]
    WentOnAlone {
        /// Events of the device.
        events: u64,
        /// Events of the array.
        ours: u64,
    },
    /// The device cannot hold the data or metadata of a member.
    #[error("{0}")]
    Unfit(String),
}

/// A member for the engine, and the writes that come before.
pub struct Admitted {
    new: NewMember,
    why_anew: Option<String>,
    /// Bytes that must be on the device before its superblock says that it is a member.
    patches: Vec<(u64, Vec<u8>)>,
}

impl Newcomer<'_> {
    /// Admits the device; it needs room for the log `log`.
    ///
    /// # Errors
    /// The reason why the device cannot be a member.
    pub fn admit(self, log: LogPlace, engine: &Redundant) -> Result<Admitted, NotTaken> {
        let Some(array) = engine.superblock() else {
            let why = "the array has no superblocks: nothing would remember it".to_owned();
            return Err(NotTaken::Unfit(why));
        };
        let again = match self.known {
            Some(known) => come_back(known, &array, engine)?,
            None => Err("it was no member of this array".to_owned()),
        };
        let again = if self.anew { Err("it starts anew".to_owned()) } else { again };
        let (superblock, role, why_anew) = match again {
            Ok((superblock, role)) => (superblock, Some(role), None),
            Err(why) => {
                let number = engine.free_number();
                let superblock = array.for_newcomer(self.size, number, self.uuid);
                (superblock.map_err(|why| NotTaken::Unfit(why.to_string()))?, None, Some(why))
            }
        };
        log.check_room(&superblock).map_err(NotTaken::Unfit)?;
        let known = self.known.filter(|_| role.is_some());
        let bad_blocks = match known.and_then(|known| known.bad_blocks.clone()) {
            Some(known) => known,
            None => empty_log(&superblock),
        };
        let patches = match role {
            Some(_) => Vec::new(),
            None => patches(self.superblocks, &superblock, &bad_blocks),
        };
        let new = NewMember {
            label: self.label,
            dev: self.dev,
            data_offset: superblock.data_offset,
            number: superblock.device_number,
            role: role.map(braid_array::Role::new),
            replacement: false,
            state: role.map_or(MemberState::Spare, |_| MemberState::Recovering(MemberByte::START)),
            by_bitmap: role.is_some(),
            write_mostly: superblock.write_mostly,
            superblock: Some(superblock),
            bad_blocks,
        };
        Ok(Admitted { new, why_anew, patches })
    }
}

impl Admitted {
    /// Returns the member for the engine, and why the device does not come back as the member that it was.
    pub fn new_member(&self) -> (&NewMember, Option<&str>) {
        (&self.new, self.why_anew.as_deref())
    }

    /// Writes the patches, durably. Returns the member for the engine, and why the device does not come back as
    /// the member that it was.
    ///
    /// # Errors
    /// The device fails a write.
    pub async fn prepare(self, pool: &Pool) -> Result<(NewMember, Option<String>), String> {
        let Admitted { new, why_anew, patches } = self;
        if patches.is_empty() {
            return Ok((new, why_anew));
        }
        for (offset, bytes) in patches {
            let mut buf = pool.get_wait(bytes.len()).await;
            buf.copy_from_slice(&bytes);
            let written = new.dev.start(Io::write(offset, buf, Flags::NONE)).await.result;
            written.map_err(|error| {
                format!("cannot write to it at {offset}: {}", io::Error::from(error))
            })?;
        }
        let flushed = new.dev.start(Io::flush()).await.result.map_err(io::Error::from);
        flushed.map_err(|error| format!("cannot make durable what it needs: {error}"))?;
        Ok((new, why_anew))
    }
}

/// Returns the bytes that must be on a new member: zeroes over older superblocks of md, and an empty bad-block
/// log.
fn patches(
    superblocks: &[u64],
    superblock: &Superblock,
    bad_blocks: &BadBlocks,
) -> Vec<(u64, Vec<u8>)> {
    let older = superblocks.iter().filter(|offset| **offset != superblock.super_offset);
    let mut patches: Vec<(u64, Vec<u8>)> =
        older.map(|offset| (*offset, vec![0; SUPERBLOCK_BYTES])).collect();
    let log = superblock
        .bad_block_log
        .and_then(|log| superblock.super_offset.checked_add_signed(log.offset));
    patches.extend(log.map(|at| (at, bad_blocks.encode())));
    patches
}

/// Returns the member's former role if it lacks only chunks that the array's bitmap names; else why all of it
/// has to be filled.
#[allow(clippy::type_complexity, reason = "either it comes back, or it says why not")]
fn come_back(
    known: &Carried,
    array: &Superblock,
    engine: &Redundant,
) -> Result<Result<(Superblock, u16), String>, NotTaken> {
    let superblock = &known.superblock;
    let status = engine.status();
    match came_back(&at_work(array, &status), superblock) {
        Ok(()) => {}
        Err(Reason::Diverged { .. }) if Canary::HalfTakenBack.is_planted() => {}
        Err(Reason::Diverged { events, .. }) => {
            return Err(NotTaken::WentOnAlone { events, ours: status.events });
        }
        Err(shape) => return Ok(Err(format!("{shape}: the array has changed since"))),
    }
    let Role::Active(role) = superblock.role() else {
        return Ok(Err("it had no role".to_owned()));
    };
    let number = superblock.device_number;
    let has_it = |one: &&MemberStatus| {
        one.role.is_some_and(|one| one.get() == role)
            && one.state != MemberState::Faulty
            && !one.replacement
    };
    if let Some(holder) = status.members.iter().find(has_it) {
        return Ok(Err(format!("its role {role} is taken by {}", holder.label)));
    }
    if let Some(holder) = status.members.iter().find(|one| one.number == number) {
        return Ok(Err(format!("its device number {number} is that of {}", holder.label)));
    }
    if usize::from(role) >= status.raid_disks {
        return Ok(Err(format!("the array has no role {role} any more")));
    }
    // In version 0.90 a successor has the number of its predecessor, so the table of a member that went on
    // alone names the successors of members that it failed.
    let is_old = superblock.version == Version::V0_90;
    let mut in_sync = status.members.iter().filter(|one| one.state == MemberState::InSync);
    let counts_on = |one: &MemberStatus| {
        let role = one.role.map(|role| Role::Active(role.get()));
        superblock.roles.get(one.number as usize).copied() == role
    };
    if is_old && !in_sync.all(counts_on) {
        return Ok(Err(
            "by its superblock other members were in sync than are now, and version 0.90 does not \
                       tell successors apart"
                .to_owned(),
        ));
    }
    if superblock.recovery_offset.is_some() || superblock.is_replacement() {
        return Ok(Err("it was being filled when it left".to_owned()));
    }
    Ok(match engine.events_cleared() {
        None => Err("the array has no write-intent bitmap, so that nothing says what was written \
                     meanwhile"
            .to_owned()),
        Some(cleared) if superblock.events < cleared => Err(format!(
            "the bitmap knows what was written since event {cleared}, and it left at {}",
            superblock.events
        )),
        Some(_) => Ok((superblock.clone(), role)),
    })
}

/// Returns the array's superblock as it would be written now, as far as it names members.
fn at_work(array: &Superblock, status: &Status) -> Superblock {
    let in_sync = status.members.iter().filter(|one| one.state == MemberState::InSync);
    let roles = in_sync.filter_map(|one| Some((one.number, Role::Active(one.role?.get()))));
    let mut now = array.clone().at_event(status.events);
    now.set_membership(status.raid_disks as u32, roles);
    now
}

/// Returns the areas of the log of a new member of `size` bytes: offsets and lengths in bytes.
///
/// # Errors
/// The device cannot be a member.
pub fn areas_of_log(
    array: &Superblock,
    log: LogPlace,
    size: u64,
) -> Result<Vec<(u64, u64)>, String> {
    let superblock = array.for_newcomer(size, 0, Uuid::default());
    superblock.map(|superblock| log.areas(&superblock)).map_err(|why| why.to_string())
}
