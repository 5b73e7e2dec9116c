//! Why an array cannot be made as requested.

use crate::{Level, Rejection, Version};

/// Why an array cannot be made as requested. Sizes are in bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "each message says what its values are")]
pub enum CreateError {
    #[error("{level} needs at least {least} members, and {given} were given")]
    TooFewMembers { level: Level, least: usize, given: usize },
    #[error("{given} members and spares are too many: metadata {version} has room for {most}")]
    TooManyMembers { version: Version, most: usize, given: usize },
    #[error("{level} has no more than {most} members, and {given} were given")]
    TooManyRoles { level: Level, most: usize, given: usize },
    #[error("{level} needs all of its members, and {missing} are \"missing\"")]
    MissingWithoutRedundancy { level: Level, missing: usize },
    #[error("{level} does not hold its data without the {missing} members that are \"missing\"")]
    TooManyMissing { level: Level, missing: usize },
    #[error("{level} has no redundancy, so that no spare can replace a member")]
    SparesWithoutRedundancy { level: Level },
    #[error("{level} has no layout {layout:?}: there are {choices}")]
    Layout { level: Level, layout: String, choices: &'static str },
    #[error("{copies} copies of each chunk need as many members, and {given} were given")]
    TooManyCopies { copies: u32, given: usize },
    #[error("{level} has no chunk, and {chunk} bytes were given")]
    ChunkWithoutMeaning { level: Level, chunk: u64 },
    #[error("a chunk of {chunk} bytes is not possible for {level}: it is {needs}")]
    Chunk { level: Level, chunk: u64, needs: &'static str },
    #[error(
        "{label} is too small: of its {size} bytes {free} are free for data, and {needed} are needed"
    )]
    TooSmall { label: String, size: u64, free: u64, needed: u64 },
    #[error("a size of {size} bytes for each member is too small: a chunk has {chunk}")]
    SizeBelowChunk { size: u64, chunk: u64 },
    #[error("a size for each member means nothing to {level}, which uses all of them")]
    SizeWithoutMeaning { level: Level },
    #[error("metadata 0.90 has no room for {size} bytes of a member: its limit is {most}")]
    TooLargeForOld { size: u64, most: u64 },
    #[error("{label} has {size} bytes, and md's limit is 2^63")]
    DeviceTooLarge { label: String, size: u64 },
    #[error("the array would be larger than 2^63 bytes")]
    TooLarge,
    #[error("metadata 0.90 cannot record how raid0 is laid out over members of unequal sizes")]
    UnequalForOld,
    #[error("metadata {version} has its data at the start, not at {offset}")]
    DataOffsetWithoutMeaning { version: Version, offset: u64 },
    #[error("data cannot start at {offset}: it starts at a multiple of 4096, from {least}")]
    DataOffset { offset: u64, least: u64 },
    #[error("a bitmap means nothing to {level}")]
    BitmapWithoutMeaning { level: Level },
    #[error("a bitmap's chunk of {chunk} bytes is not possible: it is a power of two from {least}")]
    BitmapChunk { chunk: u64, least: u64 },
    #[error("there is no room for a bitmap")]
    NoRoomForBitmap,
    #[error(
        "there is no room for a stripe log: {room} bytes in front of the data at {offset}, and {needed} are needed"
    )]
    NoRoomForLog { offset: u64, room: u64, needed: u64 },
    #[error(
        "{host:?} cannot be the host in an array's name: a ':' ends it there, and it has no control characters"
    )]
    Homehost { host: String },
    #[error("a consistency policy of {policy} does not go with {with}")]
    Policy { policy: &'static str, with: String },
    #[error("the name {name:?} has {len} bytes: there is room for 32")]
    Name { name: String, len: usize },
    #[error("{label} is write-mostly, which means something to raid1 only, not to {level}")]
    WriteMostly { label: String, level: Level },
    #[error("write-behind means something to raid1 only, not to {level}")]
    WriteBehindLevel { level: Level },
    #[error("write-behind needs a write-intent bitmap, which says what a member lacks")]
    WriteBehindWithoutBitmap,
    #[error("write-behind of {given} writes: md has {most} at most")]
    WriteBehind { given: u32, most: u32 },
    #[error("metadata 0.90 has no {what}")]
    NotInOld { what: &'static str },
    #[error("the array has no identifier: its UUID is all zeroes")]
    NoUuid,
    #[error("the superblock of {label} would not be valid: {why}")]
    Invalid { label: String, why: Rejection },
}

impl CreateError {
    /// Returns true if the members, or the room in front of the data, are too small.
    pub(super) fn is_about_room(&self) -> bool {
        use CreateError::{DataOffset, NoRoomForLog, TooSmall};
        matches!(self, TooSmall { .. } | DataOffset { .. } | NoRoomForLog { .. })
    }
}
