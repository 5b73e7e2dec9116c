//! Why bytes are no superblock, bitmap or bad-block log that can be believed.
//!
//! Every reason carries what was found and what would have been right, so that its message can be
//! printed as it is. Reasons are about one member only: whether members fit together is decided
//! where several are known.

use crate::{Level, SECTOR};

/// Why a superblock was not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// Fewer bytes than a superblock has.
    #[error("the superblock is cut off: it has {needed} bytes, {got} were read")]
    Truncated {
        /// Bytes that it needs.
        needed: usize,
        /// Bytes that there are.
        got: usize,
    },
    /// Not md's.
    #[error("the magic number is {0:08x}, md's is a92b4efc")]
    Magic(u32),
    /// Version 1 is little-endian on every host.
    #[error("the superblock is big-endian, which only version 0.90 can be")]
    BigEndian,
    /// A superblock of another major version than its place belongs to.
    #[error("the major version is {found}, a superblock in this place has {expected}")]
    MajorVersion {
        /// As read.
        found: u32,
        /// Of the place.
        expected: u32,
    },
    /// Neither 0.90 nor 0.91.
    #[error("the version is 0.{0}, there are 0.90 and 0.91")]
    MinorVersion(u32),
    /// More roles than fit into the 4096 bytes that md reads.
    #[error("max_dev is {0}, there is room for 1 to 1920")]
    MaxDev(u32),
    /// The sum over the superblock is another one.
    #[error("the checksum is {stored:08x}, the bytes add up to {expected:08x}")]
    Checksum {
        /// As read.
        stored: u32,
        /// As computed.
        expected: u32,
    },
    /// It was written for another place: a copy of a disk, or a member whose size changed.
    #[error(
        "the superblock says that it lies at sector {stored}, it was found at sector {}",
        found / SECTOR
    )]
    SuperOffset {
        /// The field, in sectors.
        stored: u64,
        /// The place, in bytes.
        found: u64,
    },
    /// A size or position of 2^63 bytes or more.
    #[error("{field} is {value} {unit}, it must be below 2^63 bytes")]
    TooLarge {
        /// The field's name in `md_p.h`.
        field: &'static str,
        /// As read.
        value: u64,
        /// What it counts.
        unit: &'static str,
    },
    /// A level that braid does not know.
    #[error("the level is {0}, known are -1 (linear), 0, 1, 4, 5, 6 and 10")]
    Level(i32),
    /// More or fewer members than an array can have.
    #[error("{field} is {value}, an array of this level and version has {least} to {most}")]
    RaidDisks {
        /// The field's name.
        field: &'static str,
        /// As read, or computed for the array before a reshape.
        value: i64,
        /// The fewest.
        least: u32,
        /// The most.
        most: u32,
    },
    /// A chunk that md refuses for the level.
    #[error("the chunk is {chunk} bytes, {level} needs {needs}")]
    Chunk {
        /// In bytes.
        chunk: u64,
        /// Of the array.
        level: Level,
        /// What would be right.
        needs: &'static str,
    },
    /// A layout that md refuses for the level.
    #[error("{level} of {raid_disks} members has no layout {layout:#x}")]
    Layout {
        /// md's number.
        layout: u32,
        /// Of the array.
        level: Level,
        /// Members.
        raid_disks: u32,
    },
    /// Feature bits that exclude each other, or that do not fit the level or the role.
    #[error("the feature map is {features:#x}: {why}")]
    Features {
        /// The map.
        features: u32,
        /// What excludes what.
        why: &'static str,
    },
    /// A size that cannot be.
    #[error("{what} is {value} bytes, it must be {needs} {limit}")]
    Size {
        /// Which.
        what: &'static str,
        /// In bytes.
        value: u64,
        /// `at least` or `at most`.
        needs: &'static str,
        /// In bytes.
        limit: u64,
    },
    /// The array would have 2^63 bytes or more.
    #[error("{raid_disks} members of {component_size} bytes make an array of 2^63 bytes or more")]
    ArraySize {
        /// Members.
        raid_disks: u32,
        /// Bytes of each.
        component_size: u64,
    },
    /// The member's own number has no role.
    #[error("the device number is {number}, there are roles for {roles} devices")]
    DeviceNumber {
        /// As read.
        number: u32,
        /// How many roles there are.
        roles: u32,
    },
    /// A role that no member has.
    #[error("device {number} has role {role}, the array has roles 0 to {}", limit.saturating_sub(1))]
    Role {
        /// The device.
        number: u32,
        /// Its role.
        role: u32,
        /// Roles of the array, the old and the new shape together.
        limit: u32,
    },
    /// More devices in one role than md allows: one, and its replacement where there can be one.
    #[error("{count} devices have role {role}, at most {most} can")]
    RoleTwice {
        /// The role.
        role: u32,
        /// How many have it.
        count: u32,
        /// How many may.
        most: u32,
    },
    /// An area that does not lie on the member.
    #[error(
        "{what} lies {offset} bytes from the superblock at {super_offset} and has {len} bytes, the member has {device_size}"
    )]
    Outside {
        /// Which area.
        what: &'static str,
        /// In bytes from the superblock.
        offset: i64,
        /// In bytes from the member's start.
        super_offset: u64,
        /// In bytes.
        len: u64,
        /// In bytes.
        device_size: u64,
    },
    /// Data that goes beyond the member, or beyond the superblock behind it.
    #[error("{what} at {offset} of {len} bytes goes beyond {limit}, where the room for it ends")]
    DataOutside {
        /// Which data.
        what: &'static str,
        /// In bytes from the member's start.
        offset: u64,
        /// In bytes.
        len: u64,
        /// In bytes from the member's start.
        limit: u64,
    },
    /// Two areas that share bytes.
    #[error(
        "{first} (bytes {first_start} to {first_end}) and {second} (bytes {second_start} to {second_end}) overlap"
    )]
    Overlap {
        /// One area.
        first: &'static str,
        /// Its start.
        first_start: u64,
        /// Its end.
        first_end: u64,
        /// The other.
        second: &'static str,
        /// Its start.
        second_start: u64,
        /// Its end.
        second_end: u64,
    },
    /// A bad-block log whose description makes no sense.
    #[error("the bad-block log of {sectors} sectors at offset {offset}, shift {shift}: {why}")]
    BadBlockLog {
        /// Sectors from the superblock.
        offset: i32,
        /// Sectors.
        sectors: u16,
        /// Unit.
        shift: u8,
        /// What is wrong.
        why: &'static str,
    },
}

/// Why a write-intent bitmap was not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BitmapRejection {
    /// Fewer bytes than a header has.
    #[error("the bitmap is cut off: its header has 256 bytes, {got} were read")]
    Truncated {
        /// Bytes that there are.
        got: usize,
    },
    /// No bitmap.
    #[error("the bitmap's magic number is {0:08x}, md's is 6d746962")]
    Magic(u32),
    /// A version that nobody knows.
    #[error("the bitmap's version is {0}, known are 3 and 4")]
    Version(u32),
    /// A bitmap of several hosts that share the array.
    #[error("the bitmap is a clustered one (version 5, {nodes} nodes), which braid cannot share")]
    Clustered {
        /// Hosts.
        nodes: u32,
    },
    /// A byte for each chunk instead of a bit, since Linux 6.18.
    #[error("the bitmap is a lockless one (version 6), which braid does not know")]
    Lockless,
    /// A chunk that md refuses.
    #[error("the bitmap's chunk is {0} bytes, it must be a power of two from 512")]
    ChunkSize(u64),
    /// A period of nothing.
    #[error("the bitmap's flush period is 0 s, it must be at least 1")]
    DaemonSleep,
    /// More than md counts.
    #[error("the bitmap's write-behind limit is {0}, it must be at most 16383")]
    WriteBehind(u32),
    /// 2^63 bytes or more.
    #[error("the bitmap covers {0} sectors, it must be below 2^63 bytes")]
    SyncSize(u64),
    /// Not all bits lie in the area.
    #[error("the bitmap has {chunks} chunks and {needed} bytes, there is room for {area}")]
    AreaTooSmall {
        /// Chunks.
        chunks: u64,
        /// Bytes needed.
        needed: u64,
        /// Bytes that there are.
        area: u64,
    },
}
