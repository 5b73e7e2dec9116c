//! Why bytes are no superblock, bitmap or bad-block log that can be believed.
//!
//! Every reason carries what was found and what would have been right, so that its message can be
//! printed as it is. Reasons are about one member only: whether members fit together is decided
//! where several are known.

use crate::{Level, SECTOR, Uuid};

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
        /// The magic number of the place.
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
        /// The unit of the value.
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
        /// The level of the array.
        level: Level,
        /// The required property.
        needs: &'static str,
    },
    /// A layout that md refuses for the level.
    #[error("{level} of {raid_disks} members has no layout {layout:#x}")]
    Layout {
        /// md's number.
        layout: u32,
        /// The level of the array.
        level: Level,
        /// Members.
        raid_disks: u32,
    },
    /// Feature bits that exclude each other, or that do not fit the level or the role.
    #[error("the feature map is {features:#x}: {why}")]
    Features {
        /// The map.
        features: u32,
        /// The conflict.
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
        /// Number of roles.
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
        /// Number of members with the role.
        count: u32,
        /// Largest allowed number.
        most: u32,
    },
    /// An array does not change its state so often, and could not do so any more.
    #[error("the event count is {0}, it must be below 2^63")]
    Events(u64),
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
        /// The fault.
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
    /// An unknown version.
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
    /// Finer than is kept up to date.
    #[error(
        "the bitmap has {chunks} chunks, and at most {most} are kept up to date: it needs larger ones"
    )]
    TooFine {
        /// Chunks.
        chunks: u64,
        /// As many as there may be.
        most: u64,
    },
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

/// Why a partial parity log, or a part of it, was not accepted. Sizes are in bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "each message says what its values are")]
pub enum PplRejection {
    #[error("the partial parity log is cut off: a header has 4096 bytes, {got} were read")]
    Truncated { got: usize },
    #[error("the log header's checksum is {stored:08x}, its bytes have {computed:08x}")]
    Checksum { stored: u32, computed: u32 },
    #[error("the log is signed {found:08x}, this array signs {expected:08x}")]
    Signature { found: u32, expected: u32 },
    #[error("the log header counts {count} entries, there is room for 148")]
    TooManyEntries { count: u32 },
    #[error("entry {entry} of the log is about sector {sector}, it must be below 2^54")]
    DataSector { entry: usize, sector: u64 },
    #[error("entry {entry} of the log has its parity at role {role}, it must be below 2^16")]
    ParityRole { entry: usize, role: u32 },
    #[error("partial parity at {start} to {end} goes beyond the log's area of {area} bytes")]
    ParityOutside { start: usize, end: usize, area: usize },
    #[error("the partial parity's checksum is {computed:08x}, its entry says {stored:08x}")]
    ParityChecksum { stored: u32, computed: u32 },
    #[error(
        "an entry of {data_len} bytes at {data_start} with {parity_len} of partial parity cannot be: {why}"
    )]
    Shape { data_start: u64, data_len: u32, parity_len: u32, why: &'static str },
    #[error("an entry is about byte {data_start}, the array has {array_size}")]
    OutsideArray { data_start: u64, array_size: u64 },
    #[error("an entry has its parity at role {role}, the array has {members} members")]
    NoSuchRole { role: u16, members: usize },
    #[error(
        "an entry has its parity at role {role}, the layout has it at {by_layout}, and the log lies on role {member}"
    )]
    ParityElsewhere { role: u16, by_layout: u16, member: u16 },
}

impl PplRejection {
    /// Returns true if a crash may have left it so, halfway through writing the log: its writes never began in
    /// place, and no repair is needed. A later damage of the log looks the same.
    #[must_use]
    pub fn is_torn(&self) -> bool {
        matches!(self, PplRejection::Checksum { .. } | PplRejection::ParityChecksum { .. })
    }
}

/// Why a stripe log, or a part of it, was not accepted. Sizes are in bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "each message says what its values are")]
pub enum LogRejection {
    #[error("the {what} of the stripe log is cut off: it has 4096 bytes, {got} were read")]
    Truncated { what: &'static str, got: usize },
    #[error("no {what} of a stripe log: it starts with {found:02x?}")]
    Magic { what: &'static str, found: [u8; 8] },
    #[error("the {what} of the stripe log has version {found}, known is 1")]
    Version { what: &'static str, found: u32 },
    #[error(
        "the checksum of the stripe log's {what} is {stored:08x}, its bytes have {computed:08x}"
    )]
    Checksum { what: &'static str, stored: u32, computed: u32 },
    #[error("the stripe log is of array {found}, this is {expected}")]
    OtherArray { found: Uuid, expected: Uuid },
    #[error("the stripe log is of device number {found}, this is {expected}")]
    OtherDevice { found: u32, expected: u32 },
    #[error(
        "the stripe log's area of {area} bytes cannot be: it has whole 4096, from {least} to {most}"
    )]
    Area { area: u64, least: u64, most: u64 },
    #[error(
        "the stripe log is of {log} events, the array has {array}, or another time of update: \
         another program wrote it since"
    )]
    NotCurrent { log: u64, array: u64 },
    #[error("the record was made under number {found:016x}, the log's is {expected:016x}")]
    OtherNonce { found: u64, expected: u64 },
    #[error("the record has {found} parts, there are 1 to 64")]
    Parts { found: u16 },
    #[error(
        "a part of the record, {len} bytes at {offset}, cannot be: it has whole sectors below 2^63"
    )]
    Part { offset: u64, len: u32 },
    #[error("the record's parts have {parts} bytes, its payload {payload}")]
    PayloadLen { parts: u64, payload: u32 },
    #[error("the record of role {role} is none of its participants")]
    Role { role: u16 },
    #[error("the record's sequence {sequence} is below its tail {tail}")]
    Sequence { sequence: u64, tail: u64 },
    #[error("the {what} counts {value}, which must be below 2^63")]
    Count { what: &'static str, value: u64 },
    #[error("the payload's checksum is {computed:08x}, its record says {stored:08x}")]
    PayloadChecksum { stored: u32, computed: u32 },
    #[error("a record of {len} bytes at {start} goes beyond the ring of {ring}")]
    OutsideRing { start: usize, len: u64, ring: usize },
    #[error("role {role} is in sync and has no log, so that nothing is known to be complete")]
    NoLog { role: u16 },
}
