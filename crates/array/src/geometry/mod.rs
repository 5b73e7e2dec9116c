//! Geometries: the place of an array's bytes on its members; one file per level.

mod linear;
mod raid0;
mod raid1;
mod raid10;
mod raid456;

pub use linear::Linear;
pub use raid0::Raid0;
pub use raid1::Raid1;
pub use raid10::Raid10;
pub use raid456::{Column, Raid456};

use braid_level::{LayoutError, Level, ParityLayout, ParityLevel, Raid10Layout};

use crate::{ArrayByte, MemberByte, Role};

/// A stretch of an array that lies in one piece on one member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The role of the member: its place in the order given.
    pub role: Role,
    /// Start on the member.
    pub offset: MemberByte,
    /// Number of bytes in one piece, at least 1.
    pub len: u64,
}

/// The map from an array's bytes to its members' bytes, where each byte lies in one place.
pub trait Geometry {
    /// Capacity of the array in bytes.
    fn size(&self) -> u64;

    /// Number of members.
    fn members(&self) -> usize;

    /// Returns the place of byte `offset` of the array.
    ///
    /// # Panics
    /// May panic if `offset` is not below [`Geometry::size`].
    fn locate(&self, offset: ArrayByte) -> Run;

    /// Bytes of one full stripe, the size that keeps all members busy; 0 if there is none.
    fn stripe(&self) -> u64;
}

/// The map of a level that keeps several copies of each byte.
///
/// Invariants: the copies of a byte lie on different members; a byte of a member holds at most one
/// byte of the array; [`Mirrored::owner`] is the inverse of [`Mirrored::locate`].
pub trait Mirrored: Send + Sync {
    /// Capacity of the array in bytes.
    fn size(&self) -> u64;

    /// Number of members.
    fn members(&self) -> usize;

    /// Returns the number of copies of each byte, at most the number of members.
    fn copies(&self) -> usize;

    /// Returns the place of copy `copy` of byte `offset` of the array.
    ///
    /// # Panics
    /// May panic if `offset` is not below [`Mirrored::size`] or `copy` not below
    /// [`Mirrored::copies`].
    fn locate(&self, offset: ArrayByte, copy: usize) -> Run;

    /// Returns the content of byte `offset` of the member with `role`; `None` if it is unused: behind
    /// [`Mirrored::member_size`], or in a last chunk that the copies do not fill.
    fn owner(&self, role: Role, offset: MemberByte) -> Option<Owner>;

    /// Bytes of one full stripe, the size that keeps all members busy; 0 if there is none.
    fn stripe(&self) -> u64;

    /// Returns the bytes of each member that the array uses, from the member's first on.
    fn member_size(&self) -> u64;

    /// Returns true if each byte of the array has a copy on a member for which `alive` holds.
    fn is_readable(&self, alive: &dyn Fn(Role) -> bool) -> bool;
}

/// A stretch of a member that holds one copy of a stretch of the array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Start in the array.
    pub offset: ArrayByte,
    /// Number of the copy.
    pub copy: usize,
    /// Number of bytes in one piece, at least 1.
    pub len: u64,
}

/// Why members and parameters do not make an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GeometryError {
    /// Fewer than 1 or more than [`crate::MAX_MEMBERS`].
    #[error("an array has 1 to 384 members, not {count}")]
    MemberCount {
        /// The given number.
        count: usize,
    },
    /// A chunk that the level cannot have.
    #[error("a {level} chunk of {chunk} bytes: it must be {needs}")]
    Chunk {
        /// The level.
        level: Level,
        /// The given chunk in bytes.
        chunk: u64,
        /// The required property.
        needs: &'static str,
    },
    /// A chunk that is not a multiple of the members' block size.
    #[error("a chunk of {chunk} bytes is no multiple of the members' blocks of {block} bytes")]
    PartOfBlock {
        /// The given chunk in bytes.
        chunk: u64,
        /// The members' largest logical block, in bytes.
        block: u32,
    },
    /// A member that is smaller than the part of it that the array needs.
    #[error("member {member} has {size} bytes, less than the {least} that one chunk needs")]
    TooSmall {
        /// Index of the member.
        member: usize,
        /// Its size in bytes.
        size: u64,
        /// The least it must have, in bytes.
        least: u64,
    },
    /// Members too small for a level that takes the same of each.
    #[error("members of {size} bytes: at least {least} are needed of each")]
    MemberSize {
        /// The given size in bytes.
        size: u64,
        /// The least, in bytes.
        least: u64,
    },
    /// Fewer members than copies of each byte.
    #[error(
        "raid10 layout {layout} keeps {copies} copies on different members; there are {members}"
    )]
    Copies {
        /// The layout.
        layout: Raid10Layout,
        /// Copies of each byte.
        copies: usize,
        /// Number of members.
        members: usize,
    },
    /// A layout that means nothing, or not over so many members.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// Too few or too many members for a level with parity.
    #[error("{level} has {least} to {most} members, not {count}")]
    ParityMembers {
        /// The level.
        level: ParityLevel,
        /// The given number.
        count: usize,
        /// The fewest.
        least: usize,
        /// The most: of a raid6 fewer than of the others, by what md computes a Q of.
        most: usize,
    },
    /// A layout that another level has.
    #[error("{level} has no layout {layout}")]
    ParityLayout {
        /// The level.
        level: ParityLevel,
        /// The given layout.
        layout: ParityLayout,
    },
    /// The sizes add up to more than an array can have.
    #[error("the members have more than 2^63 bytes together")]
    TooLarge,
}

/// Checks what holds for every level and answers the members' usable sizes: each rounded down
/// to a multiple of `unit` bytes, of which a member must have at least one.
fn usable_sizes(sizes: &[u64], unit: u64) -> Result<Vec<u64>, GeometryError> {
    if sizes.is_empty() || sizes.len() > crate::MAX_MEMBERS {
        return Err(GeometryError::MemberCount { count: sizes.len() });
    }
    let mut total = 0u64;
    let mut usable = Vec::with_capacity(sizes.len());
    for (member, &size) in sizes.iter().enumerate() {
        if size < unit {
            return Err(GeometryError::TooSmall { member, size, least: unit });
        }
        let rounded = size / unit * unit;
        total = total.checked_add(rounded).ok_or(GeometryError::TooLarge)?;
        usable.push(rounded);
    }
    if total > i64::MAX as u64 {
        return Err(GeometryError::TooLarge);
    }
    Ok(usable)
}
