//! A device that is to become a member of an array that runs: as what it is taken in.
//!
//! ```text
//!   carries a superblock of this array, in a role that is free,  ──▶ back in that role: what the
//!   and the bitmap knows all that was written since                  bitmap says is copied to it
//!   anything else                                                ──▶ a spare, with a new superblock
//! ```
//!
//! Deliberately absent: whether what it carries may be overwritten, which is asked before.

use braid_md::{BadBlocks, Role, Superblock, Uuid, Version};

use super::{Carried, LogPlace};
use crate::Dev;
use crate::redundant::{MemberState, NewMember, Redundant};

/// A device that is to become a member.
pub struct Newcomer<'a> {
    /// What people call it.
    pub label: String,
    /// The whole of it.
    pub dev: Dev,
    /// What it carries of this array already, if that counts.
    pub known: Option<&'a Carried>,
    /// In bytes.
    pub size: u64,
    /// A number for its superblock that no other device has.
    pub uuid: Uuid,
}

impl Newcomer<'_> {
    /// As the engine takes it in; `array` is the array's superblock, `log` the log that a member
    /// needs room for.
    ///
    /// # Errors
    /// Why it cannot be a member.
    pub fn member(
        self,
        array: &Superblock,
        log: LogPlace,
        engine: &Redundant,
    ) -> Result<NewMember, String> {
        let again = self.known.and_then(|known| come_back(known, engine));
        let number = match &again {
            Some((superblock, _)) => superblock.device_number,
            None => engine.free_number(),
        };
        let (superblock, role) = match again {
            Some((superblock, role)) => (superblock, Some(role)),
            None => (superblock_for(array, self.size, number, self.uuid)?, None),
        };
        log.check_room(&superblock)?;
        let bad_blocks = self.known.and_then(|known| known.bad_blocks.clone());
        Ok(NewMember {
            label: self.label,
            dev: self.dev,
            data_offset: superblock.data_offset,
            number,
            role,
            replacement: false,
            state: role.map_or(MemberState::Spare, |_| MemberState::Recovering(0)),
            by_bitmap: role.is_some(),
            write_mostly: superblock.write_mostly,
            superblock: Some(superblock),
            bad_blocks: bad_blocks.unwrap_or_else(BadBlocks::none),
        })
    }
}

/// The role that it had, if it lacks nothing but what the array's bitmap says.
fn come_back(known: &Carried, engine: &Redundant) -> Option<(Superblock, u16)> {
    let superblock = &known.superblock;
    let Role::Active(role) = superblock.role() else { return None };
    let status = engine.status();
    let vacant =
        !status.members.iter().any(|one| {
            one.role == Some(role) && one.state != MemberState::Faulty && !one.replacement
        }) && usize::from(role) < status.raid_disks;
    let number = superblock.device_number;
    let free = !status.members.iter().any(|one| one.number == number);
    let recent = engine.events_cleared().is_some_and(|cleared| superblock.events >= cleared);
    let whole = superblock.recovery_offset.is_none() && !superblock.is_replacement();
    (vacant && free && recent && whole).then(|| (superblock.clone(), role))
}

/// A superblock for a new member of `size` bytes, laid out as those of the other members are.
fn superblock_for(
    array: &Superblock,
    size: u64,
    number: u32,
    device_uuid: Uuid,
) -> Result<Superblock, String> {
    let version = array.version;
    let too_small = || format!("{size} bytes are too few for a superblock and data");
    let super_offset = version.superblock_offset(size).ok_or_else(too_small)?;
    let end = match version {
        // What lies beside the superblock lies in front of it, or behind.
        Version::V0_90 | Version::V1_0 => {
            let areas = [
                array.bitmap_offset,
                array.ppl.map(|(offset, _)| offset),
                array.bad_block_log.map(|log| log.offset),
            ];
            let front = areas.into_iter().flatten().map(|offset| offset.min(0)).min().unwrap_or(0);
            super_offset.checked_add_signed(front).ok_or_else(too_small)?
        }
        Version::V1_1 | Version::V1_2 => size / 512 * 512,
    };
    let data_size =
        end.checked_sub(array.data_offset).filter(|room| *room > 0).ok_or_else(too_small)?;
    Ok(Superblock {
        super_offset,
        data_size,
        device_uuid,
        device_number: number,
        corrected_reads: 0,
        write_mostly: false,
        fail_fast: false,
        recovery_offset: None,
        raw: Vec::new(),
        ..array.clone()
    })
}
