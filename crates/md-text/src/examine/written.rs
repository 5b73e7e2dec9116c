//! A superblock as it is written, word for word, believed or not.
//!
//! Invariants: reading never fails; what lies beyond the bytes reads as zero. A [`Written`] is for
//! showing only: nothing may be assembled from it (that needs a [`braid_md::Superblock`]).
//!
//! Source: Linux `include/uapi/linux/raid/md_p.h` (`mdp_superblock_1`, `mdp_superblock_s`).

use super::Surroundings;
use braid_md::superblock::MAGIC;
use braid_md::{Rejection, Superblock, Version};

/// A resync offset that says: the copies agree.
pub(super) const IN_SYNC: u64 = u64::MAX;

/// The bytes of a superblock, with an eye for the byte order of version 0.90.
#[derive(Clone, Copy, Debug)]
pub struct Written<'a> {
    version: Version,
    bytes: &'a [u8],
    big_endian: bool,
}

impl<'a> Written<'a> {
    /// `bytes` are those of the superblock from its magic on, 4096 of them if the member has
    /// them. Version 0.90 is in the byte order of the machine that wrote it: here that of the
    /// magic, little where the magic is neither.
    #[must_use]
    pub fn new(version: Version, bytes: &'a [u8]) -> Written<'a> {
        let bytes = &bytes[..bytes.len().min(4096)];
        let big_endian = version == Version::V0_90 && bytes.starts_with(&MAGIC.to_be_bytes());
        Written { version, bytes, big_endian }
    }

    /// The format as which the bytes are read.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// True if a machine with the most significant byte first wrote it (0.90 only).
    #[must_use]
    pub fn is_big_endian(&self) -> bool {
        self.big_endian
    }

    /// Why braid does not believe it, on this member; `None` if it does.
    pub(super) fn rejection(&self, around: &Surroundings<'_>) -> Option<Rejection> {
        let size = around.device_size;
        let place = self.version.superblock_offset(size).unwrap_or(0);
        Superblock::parse(self.version, place, size, self.bytes).err()
    }

    /// True if it is of version 0.90.
    pub(super) fn is_old(&self) -> bool {
        self.version == Version::V0_90
    }

    pub(super) fn array<const N: usize>(&self, offset: usize) -> [u8; N] {
        std::array::from_fn(|index| self.bytes.get(offset + index).copied().unwrap_or(0))
    }

    /// `length` bytes from `offset` on, or as many as there are.
    pub(super) fn slice(&self, offset: usize, length: usize) -> &'a [u8] {
        let end = (offset + length).min(self.bytes.len());
        self.bytes.get(offset..end).unwrap_or(&[])
    }

    pub(super) fn u8(&self, offset: usize) -> u8 {
        self.array::<1>(offset)[0]
    }

    pub(super) fn u16(&self, offset: usize) -> u16 {
        u16::from_le_bytes(self.array(offset))
    }

    pub(super) fn u32(&self, offset: usize) -> u32 {
        let bytes = self.array(offset);
        if self.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
    }

    pub(super) fn i32(&self, offset: usize) -> i32 {
        self.u32(offset).cast_signed()
    }

    pub(super) fn u64(&self, offset: usize) -> u64 {
        let bytes = self.array(offset);
        if self.big_endian { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) }
    }

    /// 0.90's words, in the order of the format.
    pub(super) fn word(&self, index: usize) -> u32 {
        self.u32(index * 4)
    }

    /// The number of changes of the array's state.
    pub(super) fn events(&self) -> u64 {
        if !self.is_old() {
            return self.u64(v1::EVENTS);
        }
        self.halves(old::EVENTS)
    }

    /// 64 bits of 0.90 that lie as two words, in the order of the machine's bytes.
    pub(super) fn halves(&self, index: usize) -> u64 {
        let (first, second) = (self.word(index), self.word(index + 1));
        let (low, high) = if self.big_endian { (second, first) } else { (first, second) };
        u64::from(high) << 32 | u64::from(low)
    }

    /// The level's number.
    pub(super) fn level(&self) -> i32 {
        if self.is_old() { self.word(old::LEVEL).cast_signed() } else { self.i32(v1::LEVEL) }
    }

    pub(super) fn layout(&self) -> u32 {
        if self.is_old() { self.word(old::LAYOUT) } else { self.u32(v1::LAYOUT) }
    }

    /// Chunk (or linear's rounding) in bytes.
    pub(super) fn chunk(&self) -> u64 {
        if self.is_old() {
            u64::from(self.word(old::CHUNK))
        } else {
            u64::from(self.u32(v1::CHUNK)) * braid_md::SECTOR
        }
    }

    pub(super) fn raid_disks(&self) -> u32 {
        if self.is_old() { self.word(old::RAID_DISKS) } else { self.u32(v1::RAID_DISKS) }
    }

    /// The feature bits; none for 0.90.
    pub(super) fn features(&self) -> braid_md::Features {
        braid_md::Features(if self.is_old() { 0 } else { self.u32(v1::FEATURES) })
    }

    /// The number of recorded roles, as far as there are bytes for them (version 1).
    pub(super) fn roles_len(&self) -> usize {
        let room = self.bytes.len().saturating_sub(v1::ROLES) / 2;
        (self.u32(v1::MAX_DEV) as usize).min(room)
    }

    /// The recorded roles in order, as numbers (version 1).
    pub(super) fn roles(&self) -> impl Iterator<Item = u16> {
        (0..self.roles_len()).map(|index| self.u16(v1::ROLES + 2 * index))
    }

    /// This device's role number (version 1): a device beyond the recorded roles is a spare.
    pub(super) fn role(&self) -> u16 {
        let number = self.u32(v1::DEV_NUMBER) as usize;
        if number < self.roles_len() { self.u16(v1::ROLES + 2 * number) } else { role::SPARE }
    }

    /// The checksum that is recorded.
    pub(super) fn checksum(&self) -> u32 {
        if self.is_old() { self.word(old::CHECKSUM) } else { self.u32(v1::CHECKSUM) }
    }

    /// The checksum that the bytes have: the sum of their words without the checksum, the carry
    /// added once. Version 1 sums up to the last role, 0.90 all of the 4 KiB.
    pub(super) fn expected_checksum(&self) -> u32 {
        let (length, own) = if self.is_old() {
            (4096, old::CHECKSUM * 4)
        } else {
            (v1::ROLES + 2 * self.roles_len(), v1::CHECKSUM)
        };
        let words = (0..length / 4).map(|index| index * 4).filter(|offset| *offset != own);
        let mut sum: u64 = words.map(|offset| u64::from(self.u32(offset))).sum();
        if length % 4 == 2 {
            sum += u64::from(self.u16(length - 2));
        }
        (sum as u32).wrapping_add((sum >> 32) as u32)
    }
}

/// Offsets in bytes of version 1, and its flags.
pub(super) mod v1 {
    pub(crate) const MAJOR: usize = 4;
    pub(crate) const FEATURES: usize = 8;
    pub(crate) const PAD0: usize = 12;
    pub(crate) const SET_UUID: usize = 16;
    pub(crate) const SET_NAME: usize = 32;
    pub(crate) const CREATED: usize = 64;
    pub(crate) const LEVEL: usize = 72;
    pub(crate) const LAYOUT: usize = 76;
    pub(crate) const SIZE: usize = 80;
    pub(crate) const CHUNK: usize = 88;
    pub(crate) const RAID_DISKS: usize = 92;
    pub(crate) const BITMAP_OFFSET: usize = 96;
    pub(crate) const PPL_OFFSET: usize = 96;
    pub(crate) const PPL_SIZE: usize = 98;
    pub(crate) const NEW_LEVEL: usize = 100;
    pub(crate) const RESHAPE_POSITION: usize = 104;
    pub(crate) const DELTA_DISKS: usize = 112;
    pub(crate) const NEW_LAYOUT: usize = 116;
    pub(crate) const NEW_CHUNK: usize = 120;
    pub(crate) const NEW_OFFSET: usize = 124;
    pub(crate) const DATA_OFFSET: usize = 128;
    pub(crate) const DATA_SIZE: usize = 136;
    pub(crate) const SUPER_OFFSET: usize = 144;
    pub(crate) const RECOVERY_OFFSET: usize = 152;
    pub(crate) const DEV_NUMBER: usize = 160;
    pub(crate) const CORRECTED_READS: usize = 164;
    pub(crate) const DEVICE_UUID: usize = 168;
    pub(crate) const DEV_FLAGS: usize = 184;
    pub(crate) const BAD_SHIFT: usize = 185;
    pub(crate) const BAD_SIZE: usize = 186;
    pub(crate) const BAD_OFFSET: usize = 188;
    pub(crate) const UPDATED: usize = 192;
    pub(crate) const EVENTS: usize = 200;
    pub(crate) const RESYNC_OFFSET: usize = 208;
    pub(crate) const CHECKSUM: usize = 216;
    pub(crate) const MAX_DEV: usize = 220;
    pub(crate) const LOGICAL_BLOCK_SIZE: usize = 224;
    pub(crate) const PAD3: usize = 228;
    pub(crate) const ROLES: usize = 256;

    /// A bit of the device's flags.
    pub(crate) const WRITE_MOSTLY: u8 = 1;
    /// A bit of the device's flags.
    pub(crate) const FAIL_FAST: u8 = 2;

    /// Times hold 40 bits of seconds, and microseconds above them.
    pub(crate) const SECONDS: u64 = (1 << 40) - 1;
}

/// Numbers of roles with a meaning of their own (version 1).
pub(super) mod role {
    pub(crate) const SPARE: u16 = 0xffff;
    pub(crate) const FAULTY: u16 = 0xfffe;
    pub(crate) const JOURNAL: u16 = 0xfffd;
    /// The highest number of a member.
    pub(crate) const MAX: u16 = 0xff00;
}

/// Indices of 0.90's 32-bit words, and its bits.
pub(super) mod old {
    pub(crate) const MAGIC: usize = 0;
    pub(crate) const MAJOR: usize = 1;
    pub(crate) const MINOR: usize = 2;
    pub(crate) const PATCH: usize = 3;
    pub(crate) const UUID0: usize = 5;
    pub(crate) const CREATED: usize = 6;
    pub(crate) const LEVEL: usize = 7;
    pub(crate) const SIZE: usize = 8;
    pub(crate) const NR_DISKS: usize = 9;
    pub(crate) const RAID_DISKS: usize = 10;
    pub(crate) const MD_MINOR: usize = 11;
    pub(crate) const NOT_PERSISTENT: usize = 12;
    pub(crate) const UUID1: usize = 13;
    pub(crate) const UPDATED: usize = 32;
    pub(crate) const STATE: usize = 33;
    pub(crate) const ACTIVE: usize = 34;
    pub(crate) const WORKING: usize = 35;
    pub(crate) const FAILED: usize = 36;
    pub(crate) const SPARE: usize = 37;
    pub(crate) const CHECKSUM: usize = 38;
    pub(crate) const EVENTS: usize = 39;
    pub(crate) const RECOVERY_CHECKPOINT: usize = 43;
    pub(crate) const RESHAPE_POSITION: usize = 44;
    pub(crate) const NEW_LEVEL: usize = 46;
    pub(crate) const DELTA_DISKS: usize = 47;
    pub(crate) const NEW_LAYOUT: usize = 48;
    pub(crate) const NEW_CHUNK: usize = 49;
    pub(crate) const LAYOUT: usize = 64;
    pub(crate) const CHUNK: usize = 65;
    const DISKS: usize = 128;
    pub(crate) const DISK_WORDS: usize = 32;
    pub(crate) const DISK_COUNT: usize = 27;
    pub(crate) const THIS_DISK: usize = disk(DISK_COUNT);

    /// The start of the table's entry.
    pub(crate) const fn disk(index: usize) -> usize {
        DISKS + index * DISK_WORDS
    }

    /// A bit of the state: the copies agree.
    pub(crate) const CLEAN: u32 = 1;
    /// A bit of the state.
    pub(crate) const ERRORS: u32 = 1 << 1;
    /// A bit of the state.
    pub(crate) const BITMAP_PRESENT: u32 = 1 << 8;

    /// Bits of a disk's state.
    pub(crate) const DISK_FAULTY: u32 = 1;
    pub(crate) const DISK_ACTIVE: u32 = 1 << 1;
    pub(crate) const DISK_SYNC: u32 = 1 << 2;
    pub(crate) const DISK_REMOVED: u32 = 1 << 3;
    pub(crate) const DISK_WRITE_MOSTLY: u32 = 1 << 9;
    pub(crate) const DISK_FAIL_FAST: u32 = 1 << 10;
}
