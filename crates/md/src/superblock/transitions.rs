//! The transitions of the superblocks of a running array: the only ways to change them.
//!
//! ```text
//!   the array's part   members come, fail, are in sync ── set_membership, set_role
//!                      the copies agree, or not        ── set_resync
//!                      raid1 uses more of its members  ── grow
//!                      a bitmap comes, moves or goes   ── set_bitmap
//!                      it is written                   ── count_event
//!   a member's own     of the array's part and itself  ── of_member
//!                      recovery got as far as … , all  ── filled_to, filled, filled_as
//!   a new member       laid out as the others are      ── for_newcomer
//! ```
//!
//! Invariants
//! * Events only grow.
//! * A role that a member has is one of the array's.
//! * The places of a member's areas are its own: no transition moves them. The bitmap's place is the array's,
//!   as in the kernel.
//!
//! Source: Linux `drivers/md/md.c` (`super_1_sync`, `super_90_sync`).

use super::{Contents, Features, Resync, Role, Superblock, Timestamp};
use crate::{Rejection, Uuid, Version};

/// The array's knowledge of a member, for its superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfMember {
    /// Its index in the table of roles.
    pub number: u32,
    /// Bytes of it that may hold data.
    pub data_size: u64,
    /// Read errors that were corrected so far.
    pub corrected_reads: u32,
    /// The filled part; `None` if it has everything, or is a spare.
    pub recovery: Option<Recovery>,
    /// True if it takes over the role of a member that still works.
    pub is_replacement: bool,
    /// True if its bad-block log has entries.
    pub has_bad_blocks: bool,
}

/// The progress of a recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// In bytes of its data.
    pub filled: u64,
    /// True if only the chunks in the bitmap are copied to it.
    pub by_bitmap: bool,
}

/// Features about one member's contents only.
const OF_ONE: [Features; 4] = [
    Features::BAD_BLOCKS,
    Features::RECOVERY_OFFSET,
    Features::RECOVERY_BITMAP,
    Features::REPLACEMENT,
];

/// The array's part: the same in the superblocks of all members that are up to date.
impl Superblock {
    /// The state changed once more.
    pub fn count_event(&mut self) {
        self.contents.events += 1;
    }

    /// The same as of `events`.
    ///
    /// # Panics
    /// They are fewer than they were.
    #[must_use]
    pub fn at_event(mut self, events: u64) -> Superblock {
        assert!(events >= self.events, "an array's events go from {} to {events}", self.events);
        self.contents.events = events;
        self
    }

    /// It is written at `now`.
    pub fn set_updated(&mut self, now: Timestamp) {
        self.contents.updated = now;
    }

    /// The copies agree as far as `resync` says.
    pub fn set_resync(&mut self, resync: Resync) {
        self.contents.resync = resync;
    }

    /// Each member holds `component_size` bytes of what the array keeps: a raid1 uses more of them.
    ///
    /// # Panics
    /// They are fewer than before.
    pub fn grow(&mut self, component_size: u64) {
        let before = self.component_size;
        assert!(component_size >= before, "{component_size} bytes of a member, {before} before");
        self.contents.component_size = component_size;
    }

    /// The array has a write-intent bitmap, so many bytes from each member's superblock, or none.
    ///
    /// # Panics
    /// There is a partial parity log, which has the same field.
    pub fn set_bitmap(&mut self, offset: Option<i64>) {
        assert!(offset.is_none() || self.ppl.is_none(), "a bitmap beside a partial parity log");
        let others = self.features.without(Features::BITMAP);
        self.contents.features =
            if offset.is_some() { others.union(Features::BITMAP) } else { others };
        self.contents.bitmap_offset = offset;
    }

    /// There are `raid_disks` roles, which devices have as `roles` says, by their numbers. All others
    /// are spares, but for a journal, and for those that version 1 calls failed.
    ///
    /// # Panics
    /// A device has a role that the array does not have.
    pub fn set_membership(
        &mut self,
        raid_disks: u32,
        roles: impl IntoIterator<Item = (u32, Role)>,
    ) {
        self.contents.raid_disks = raid_disks;
        for role in &mut self.contents.roles {
            *role = match role {
                Role::Journal => Role::Journal,
                Role::Faulty if self.contents.version != Version::V0_90 => Role::Faulty,
                _ => Role::Spare,
            };
        }
        for (number, role) in roles {
            self.set_role(number, role);
        }
    }

    /// The device with `number` is what `role` says from now on.
    ///
    /// # Panics
    /// The array does not have the role.
    pub fn set_role(&mut self, number: u32, role: Role) {
        if let Role::Active(role) = role {
            let limit = self.raid_disks.max(self.previous_raid_disks());
            assert!(u32::from(role) < limit, "device {number} has role {role} of {limit}");
        }
        let number = number as usize;
        if self.roles.len() <= number {
            self.contents.roles.resize(number + 1, Role::Spare);
        }
        self.contents.roles[number] = role;
    }
}

/// A member's own part.
impl Superblock {
    /// The superblock of the member that wrote `own` last, and of which the array knows `member`; the
    /// array's part is that of this one. A spare says nothing of how far it is filled.
    #[must_use]
    pub fn of_member(&self, own: &Superblock, member: OfMember) -> Superblock {
        let role = self.roles.get(member.number as usize);
        let has_role = matches!(role, Some(Role::Active(_)));
        let recovery = member.recovery.filter(|_| has_role);
        let says = [
            (Features::BAD_BLOCKS, member.has_bad_blocks),
            (Features::RECOVERY_OFFSET, recovery.is_some()),
            (Features::RECOVERY_BITMAP, recovery.is_some_and(|recovery| recovery.by_bitmap)),
            (Features::REPLACEMENT, member.is_replacement),
        ];
        let said = says.into_iter().filter(|(_, holds)| *holds).map(|(feature, _)| feature);
        Superblock {
            contents: Contents {
                features: said.fold(without(self.features, &OF_ONE), Features::union),
                recovery_offset: recovery.map(|recovery| recovery.filled),
                version: own.version,
                super_offset: own.super_offset,
                data_offset: own.data_offset,
                data_size: member.data_size,
                device_uuid: own.device_uuid,
                device_number: member.number,
                corrected_reads: member.corrected_reads,
                write_mostly: own.write_mostly,
                fail_fast: own.fail_fast,
                bad_block_log: own.bad_block_log,
                ppl: own.ppl,
                raw: own.raw.clone(),
                ..self.contents.clone()
            },
        }
    }

    /// The superblock that this member writes when it has everything. One that replaces another goes
    /// on saying so until all say that it has the role: if it fails before that, its superblock may be
    /// as fresh as those of the others, and no kernel takes two members for one role.
    #[must_use]
    pub fn filled(mut self) -> Superblock {
        let recovery = [Features::RECOVERY_OFFSET, Features::RECOVERY_BITMAP];
        self.contents.features = without(self.features, &recovery);
        self.contents.recovery_offset = None;
        self
    }

    /// The same, filled below `filled` bytes of its data.
    #[must_use]
    pub fn filled_to(mut self, filled: u64) -> Superblock {
        self.contents.features = self.features.union(Features::RECOVERY_OFFSET);
        self.contents.recovery_offset = Some(filled);
        self
    }

    /// The same, saying of how far the member is filled, and beside whom, what `own` says.
    #[must_use]
    pub fn filled_as(mut self, own: &Superblock) -> Superblock {
        let recovery =
            [Features::RECOVERY_OFFSET, Features::RECOVERY_BITMAP, Features::REPLACEMENT];
        let said = recovery.into_iter().filter(|one| own.features.contains(*one));
        self.contents.features = said.fold(without(self.features, &recovery), Features::union);
        self.contents.recovery_offset = own.recovery_offset;
        self
    }

    /// The superblock of a new member of `size` bytes with `number` and `device_uuid`, a spare at
    /// first, laid out as this one's.
    ///
    /// # Errors
    /// It has no room for the superblock, what lies beside it, or the data.
    pub fn for_newcomer(
        &self,
        size: u64,
        number: u32,
        device_uuid: Uuid,
    ) -> Result<Superblock, NoRoom> {
        let too_small = || NoRoom::TooSmall { size };
        let super_offset = self.version.superblock_offset(size).ok_or_else(too_small)?;
        let end = match self.version {
            // What lies beside the superblock lies in front of it, or behind.
            Version::V0_90 | Version::V1_0 => {
                let areas = [
                    self.bitmap_offset,
                    self.ppl.map(|(offset, _)| offset),
                    self.bad_block_log.map(|log| log.offset),
                ];
                let before = areas.into_iter().flatten().map(|offset| offset.min(0)).min();
                super_offset.checked_add_signed(before.unwrap_or(0)).ok_or_else(too_small)?
            }
            Version::V1_1 | Version::V1_2 => size / 512 * 512,
        };
        let room = end.checked_sub(self.data_offset).filter(|room| *room > 0);
        let data_size = room.ok_or_else(too_small)?;
        let needed = self.component_size;
        if data_size < needed {
            return Err(NoRoom::TooLittleData { room: data_size, needed });
        }
        let mut roles = self.roles.clone();
        if roles.len() <= number as usize {
            roles.resize(number as usize + 1, Role::Spare);
        }
        let contents = Contents {
            roles,
            super_offset,
            data_size,
            device_uuid,
            device_number: number,
            corrected_reads: 0,
            write_mostly: false,
            fail_fast: false,
            recovery_offset: None,
            features: without(self.features, &OF_ONE),
            raw: Vec::new(),
            ..self.contents.clone()
        };
        Ok(Superblock::new(contents, size)?)
    }

    /// The same of this member, marked as write-mostly: it is read only if no other member has the data.
    #[must_use]
    pub fn marked_write_mostly(mut self) -> Superblock {
        self.contents.write_mostly = true;
        self
    }
}

/// Why a device cannot be a member.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoRoom {
    /// Nothing fits.
    #[error("{size} bytes are too few for a superblock and data")]
    TooSmall {
        /// The device's, in bytes.
        size: u64,
    },
    /// Less fits than each member holds.
    #[error("it has room for {room} bytes of data, {needed} are needed")]
    TooLittleData {
        /// In bytes.
        room: u64,
        /// In bytes.
        needed: u64,
    },
    /// The superblock that it would have is none.
    #[error("its superblock would not be valid: {0}")]
    Invalid(#[from] Rejection),
}

fn without(features: Features, all: &[Features]) -> Features {
    all.iter().copied().fold(features, Features::without)
}
