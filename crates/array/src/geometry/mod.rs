//! Where the bytes of an array lie on its members; one file a level.

mod linear;
mod raid0;

pub use linear::Linear;
pub use raid0::{Raid0, Raid0Layout};

/// A stretch of an array that lies in one piece on one member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Index of the member, counted from 0 in the order given.
    pub member: usize,
    /// Where it starts on the member, in bytes.
    pub offset: u64,
    /// How many bytes follow in one piece, at least 1.
    pub len: u64,
}

/// The map from an array's bytes to its members' bytes, where each byte lies in one place.
pub trait Geometry {
    /// Capacity of the array in bytes.
    fn size(&self) -> u64;

    /// Number of members.
    fn members(&self) -> usize;

    /// Where byte `offset` of the array lies.
    ///
    /// # Panics
    /// May panic if `offset` is not below [`Geometry::size`].
    fn locate(&self, offset: u64) -> Run;

    /// Bytes of one full stripe, the size that keeps all members busy; 0 if there is none.
    fn stripe(&self) -> u64;
}

/// Why members and parameters do not make an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GeometryError {
    /// Fewer than 1 or more than [`crate::MAX_MEMBERS`].
    #[error("an array has 1 to 384 members, not {count}")]
    MemberCount {
        /// What was given.
        count: usize,
    },
    /// A chunk outside 4 KiB to 64 MiB, or not a multiple of the members' block size.
    #[error(
        "a chunk of {chunk} bytes: it must be from 4096 to 67108864 and a multiple of the members' blocks of {block} bytes"
    )]
    Chunk {
        /// What was given, in bytes.
        chunk: u64,
        /// The members' largest logical block, in bytes.
        block: u32,
    },
    /// A member that is smaller than what the array must take of it.
    #[error("member {member} has {size} bytes, less than the {least} that one chunk needs")]
    TooSmall {
        /// Index of the member.
        member: usize,
        /// Its size in bytes.
        size: u64,
        /// The least it must have, in bytes.
        least: u64,
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
