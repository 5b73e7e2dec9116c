//! A member's superblock, of any version, as one type.
//!
//! ```text
//!   bytes ──parse──▶                                  ──encode──▶ bytes
//!                      check ──▶ Superblock (closed) ──transition──▶ Superblock
//!   Contents ──new──▶            reads as Contents    ──into_contents──▶ Contents
//! ```
//!
//! Invariants of a [`Superblock`]
//! * every size and offset is a number of bytes below 2^63, and the data lies inside the member;
//! * `raid_disks` is at most 384 (27 for 0.90), and there is a role for each of `roles`;
//! * `raw` is what was read: writing keeps every byte that has no meaning here.
//!
//! Code outside this module changes no field: the state changes by the transitions of [`transitions`], and any
//! other change takes the superblock apart and checks it anew.
//!
//! Source: Linux `include/uapi/linux/raid/md_p.h`, `drivers/md/md.c` (`super_90_*`, `super_1_*`).

mod check;
pub(crate) mod fields;
mod transitions;
mod v0;
mod v1;

pub use fields::ByteOrder;
pub use transitions::{NoRoom, OfMember, Recovery};

use crate::{Level, Rejection, Uuid, Version};

/// md's magic number, the first of every superblock.
pub const MAGIC: u32 = 0xa92b_4efc;
/// As many bytes as the longest superblock of either version has; md reads that many.
pub const SUPERBLOCK_BYTES: usize = 4096;

/// The statements of a member about itself and its array, within md's rules. It derefs to its [`Contents`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Superblock {
    contents: Contents,
}

impl std::ops::Deref for Superblock {
    type Target = Contents;

    fn deref(&self) -> &Contents {
        &self.contents
    }
}

/// The fields of a superblock, of whatever values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    /// Which format.
    pub version: Version,

    // Of the array: the same on every member that is up to date.
    /// The array's identifier.
    pub array_uuid: Uuid,
    /// The array's name, often `host:name`; empty for 0.90, which has none. At most 32 bytes.
    pub name: String,
    /// When the array was made.
    pub created: Timestamp,
    /// When this superblock was last written.
    pub updated: Timestamp,
    /// The level.
    pub level: Level,
    /// md's number of the layout: raid10's copies, raid5's rotation, raid0's 0 (not recorded),
    /// 1 (original) or 2 (alternate).
    pub layout: u32,
    /// Chunk in bytes; 0 where there is none.
    pub chunk: u64,
    /// Bytes used of each member, for levels that use the same of all; 0 for linear and raid0
    /// of version 1.
    pub component_size: u64,
    /// Members that take part.
    pub raid_disks: u32,
    /// Number of changes of the array's state; the member with more is fresher.
    pub events: u64,
    /// The extent to which copies agree.
    pub resync: Resync,
    /// Other features in use (version 1; for 0.90 only `BITMAP` can be set).
    pub features: Features,
    /// The write-intent bitmap's place in bytes from the superblock, if there is one.
    pub bitmap_offset: Option<i64>,
    /// The partial parity log's place in bytes from the superblock and size in bytes.
    pub ppl: Option<(i64, u64)>,
    /// A change of shape that was not finished.
    pub reshape: Option<Reshape>,
    /// The role of each device number, in order. For 0.90 made from its table of disks.
    pub roles: Vec<Role>,
    /// The logical block size that the array was made for, in bytes (since Linux 6.19, at byte
    /// 224); 0 where it is not recorded.
    pub logical_block_size: u32,

    // Of this member.
    /// Start of the superblock on the member.
    pub super_offset: u64,
    /// Start of its data.
    pub data_offset: u64,
    /// Bytes of the member that may hold data.
    pub data_size: u64,
    /// Its own identifier; nil for 0.90, which has none.
    pub device_uuid: Uuid,
    /// Its index in `roles`.
    pub device_number: u32,
    /// Read errors that were corrected so far.
    pub corrected_reads: u32,
    /// Reads avoid it.
    pub write_mostly: bool,
    /// Errors on it are not retried.
    pub fail_fast: bool,
    /// Up to where this member, which is being rebuilt, is in sync, in bytes of its data.
    pub recovery_offset: Option<u64>,
    /// The bad-block log: place in bytes from the superblock, size in bytes, and its unit as a
    /// power of two of sectors.
    pub bad_block_log: Option<BadBlockLog>,
    /// Fields of version 0.90 only.
    pub old: Option<Old>,
    /// The bytes as they were read, or zeroes.
    pub raw: Vec<u8>,
}

/// The place of a member's bad-block log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadBlockLog {
    /// In bytes from the superblock; may be negative.
    pub offset: i64,
    /// In bytes.
    pub size: u64,
    /// Entries count in units of `512 << shift` bytes.
    pub shift: u8,
}

/// Fields of version 0.90 only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Old {
    /// The number of the `/dev/md` device that was preferred.
    pub preferred_minor: u32,
    /// 90, or the 91 of a reshape; follows from [`Contents::reshape`] when it is written.
    pub minor_version: u32,
    /// The third part of the version, which mdadm prints.
    pub patch_version: u32,
    /// True if the array was marked as having errors.
    pub errors: bool,
    /// Counted when it was written: devices, which mdadm prints as total.
    pub nr_disks: u32,
    /// Counted when it was written: active, working, failed and spare members.
    pub counts: [u32; 4],
    /// The order of the bytes on disk: that of the host that made the array.
    pub byte_order: ByteOrder,
}

/// A device's descriptor in the table of version 0.90.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct OldDisk {
    /// Its number, which is its place in the table.
    pub number: u32,
    /// Major number of the block device that it last was.
    pub major: u32,
    /// Minor number of it.
    pub minor: u32,
    /// Its role.
    pub raid_disk: u32,
    /// `MD_DISK_*` bits: 0 faulty, 1 active, 2 in sync, 3 removed, 9 write-mostly, 10 fail-fast.
    pub state: u32,
}

/// Seconds and microseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, PartialOrd, Ord)]
pub struct Timestamp {
    /// Seconds, 40 bits in version 1, 32 in 0.90.
    pub seconds: u64,
    /// Microseconds, below 1,000,000 when written by md.
    pub micros: u32,
}

/// The extent to which the copies of an array agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resync {
    /// They do.
    Clean,
    /// They do below this many bytes (of the array for raid10, of each member otherwise).
    From(u64),
}

/// The use of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Takes part, as member of this number.
    Active(u16),
    /// Waits for a member to fail.
    Spare,
    /// Failed.
    Faulty,
    /// Holds a journal.
    Journal,
}

/// A change of shape under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reshape {
    /// Up to where it got, in bytes of the array.
    pub position: u64,
    /// Number of members that are added (or removed).
    pub delta_disks: i32,
    /// md's number of the new level.
    pub new_level: i32,
    /// md's number of the new layout.
    pub new_layout: u32,
    /// In bytes.
    pub new_chunk: u64,
    /// Bytes by which the data moves on this member.
    pub new_offset: i64,
    /// True if it goes from the end to the start.
    pub backwards: bool,
}

/// The feature bits of version 1 (`MD_FEATURE_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Features(pub u32);

impl Features {
    /// There is a write-intent bitmap (or, with [`Features::PPL`], a partial parity log).
    pub const BITMAP: Features = Features(1);
    /// `recovery_offset` holds.
    pub const RECOVERY_OFFSET: Features = Features(2);
    /// A reshape is under way.
    pub const RESHAPE: Features = Features(4);
    /// There is a bad-block log with entries.
    pub const BAD_BLOCKS: Features = Features(8);
    /// This device stands in for another of the same role, which still works.
    pub const REPLACEMENT: Features = Features(16);
    /// The reshape goes from the end to the start.
    pub const RESHAPE_BACKWARDS: Features = Features(32);
    /// The reshape moves the data.
    pub const NEW_OFFSET: Features = Features(64);
    /// Recovery is by the bitmap, not by `recovery_offset`.
    pub const RECOVERY_BITMAP: Features = Features(128);
    /// A clustered array.
    pub const CLUSTERED: Features = Features(256);
    /// Has a journal device.
    pub const JOURNAL: Features = Features(512);
    /// Has a partial parity log.
    pub const PPL: Features = Features(1024);
    /// Has a partial parity log with several entries.
    pub const MULTIPLE_PPLS: Features = Features(2048);
    /// raid0's layout is recorded.
    pub const RAID0_LAYOUT: Features = Features(4096);
    /// All that Linux 6.18 knows.
    pub const KNOWN: Features = Features(8191);

    /// Returns true if all of `other` are set.
    #[must_use]
    pub const fn contains(self, other: Features) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both sets.
    #[must_use]
    pub const fn union(self, other: Features) -> Features {
        Features(self.0 | other.0)
    }

    /// These without `other`.
    #[must_use]
    pub const fn without(self, other: Features) -> Features {
        Features(self.0 & !other.0)
    }

    /// Returns the unknown bits.
    #[must_use]
    pub const fn unknown(self) -> Features {
        self.without(Features::KNOWN)
    }
}

/// The checksum that is stored in a superblock's bytes and the one that they add up to, also of
/// bytes that are no valid superblock; `None` if there are fewer of them than they claim, or none
/// of md's at all.
#[must_use]
pub fn checksum(version: Version, bytes: &[u8]) -> Option<(u32, u32)> {
    match version {
        Version::V0_90 => v0::checksum(bytes),
        Version::V1_0 | Version::V1_1 | Version::V1_2 => v1::checksum(bytes),
    }
}

impl Superblock {
    /// Checks `contents` as those of a member of `device_size` bytes.
    ///
    /// # Errors
    /// [`Rejection`] if anything is out of range, contradicts itself or is not on the member.
    pub fn new(contents: Contents, device_size: u64) -> Result<Superblock, Rejection> {
        check::check(&contents, device_size)?;
        Ok(Superblock { contents })
    }

    /// The fields, to be changed and checked anew.
    #[must_use]
    pub fn into_contents(self) -> Contents {
        self.contents
    }

    /// Checks a superblock of `version` that was found `super_offset` bytes from the start of a
    /// member of `device_size` bytes. `bytes` may be longer than the superblock; with
    /// [`SUPERBLOCK_BYTES`] there are enough for any.
    ///
    /// Unknown features are no error: such an array may be read, and writers ask [`Contents::has_unknown`].
    ///
    /// # Errors
    /// [`Rejection`] if anything is out of range, contradicts itself or is not on the member.
    pub fn parse(
        version: Version,
        super_offset: u64,
        device_size: u64,
        bytes: &[u8],
    ) -> Result<Superblock, Rejection> {
        let contents = match version {
            Version::V0_90 => v0::parse(super_offset, bytes),
            Version::V1_0 | Version::V1_1 | Version::V1_2 => {
                v1::parse(version, super_offset, bytes)
            }
        };
        Superblock::new(contents?, device_size)
    }
}

impl Contents {
    /// Returns the bytes to be written at `super_offset`: whole sectors, with a new checksum.
    ///
    /// Bytes of `raw` that have no meaning here stay. With an empty `raw` they are zeroes, and version 1 gets
    /// room for a multiple of 128 roles. The feature bits of optional fields (bitmap, log, reshape, recovery)
    /// follow from the fields. Sizes and positions must be whole sectors (KiB for `component_size` of 0.90) and
    /// fit the disk's fields: the maker of a new superblock can parse the result to be sure.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        match self.version {
            Version::V0_90 => v0::encode(self),
            Version::V1_0 | Version::V1_1 | Version::V1_2 => v1::encode(self),
        }
    }

    /// Returns the size of the superblock on the member in bytes.
    fn len_on_disk(&self) -> u64 {
        let len = if self.raw.is_empty() { self.encode().len() } else { self.raw.len() };
        len as u64
    }

    /// Returns true if the superblock uses features that braid does not know (unknown bits, or values in bytes
    /// that are zero so far): then it must not be written.
    #[must_use]
    pub fn has_unknown(&self) -> bool {
        self.features.unknown() != Features::default()
            || self.version != Version::V0_90 && v1::has_unknown_padding(&self.raw)
    }

    /// Returns true if this superblock says that the copies agree.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.resync == Resync::Clean
    }

    /// The numbers of the devices in a role, lowest first: none, one, or a member and its
    /// replacement.
    pub fn devices_in(&self, role: u16) -> impl Iterator<Item = u32> + '_ {
        (0..)
            .zip(&self.roles)
            .filter(move |(_, found)| **found == Role::Active(role))
            .map(|(number, _)| number)
    }

    /// The array's identifier as its bytes lie on disk, which is how a bitmap's header has it:
    /// words of the host's byte order for 0.90.
    #[must_use]
    pub fn uuid_on_disk(&self) -> [u8; 16] {
        let mut bytes = self.array_uuid.0;
        if self.old.is_some_and(|old| old.byte_order == ByteOrder::Little) {
            bytes.chunks_exact_mut(4).for_each(<[u8]>::reverse);
        }
        bytes
    }

    /// For 0.90: this device's descriptor and the table of 27, as they would be written.
    #[must_use]
    pub fn old_disks(&self) -> Option<(OldDisk, Vec<OldDisk>)> {
        if self.version == Version::V0_90 { v0::disks(&self.encode()) } else { None }
    }

    /// Returns the use of this device, by its own superblock.
    #[must_use]
    pub fn role(&self) -> Role {
        self.roles.get(self.device_number as usize).copied().unwrap_or(Role::Spare)
    }

    /// Returns true if this device is a replacement that is still being filled beside the member that it
    /// replaces.
    #[must_use]
    pub fn is_replacement(&self) -> bool {
        self.features.contains(Features::REPLACEMENT)
    }
}
