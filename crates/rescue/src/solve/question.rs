//! The question: members, evidence, and what is known already.

use std::ops::Range;

use braid_level::Level;

use super::map::Pattern;
use crate::{Anchor, Clue};

/// Members and the evidence that was found on them.
#[derive(Clone, Debug, Default)]
pub struct Question {
    /// Size of each member in bytes.
    pub sizes: Vec<u64>,
    /// The structures that clues belong to.
    pub anchors: Vec<Anchor>,
    /// For each anchor the places in the array at which it may begin, such as those of a partition table, the most
    /// likely first. An anchor without an entry, or with an empty one, may begin anywhere.
    pub bases: Vec<Vec<u64>>,
    /// Blocks that say where they belong.
    pub clues: Vec<Clue>,
    /// For each member the ranges (offset, length) in which clues were sought. A member without an entry was read
    /// from its first byte to its last.
    pub scanned: Vec<Vec<(u64, u64)>>,
    /// For each member the ranges without content, in order, in which no clue can have been found. A member without an entry
    /// has none.
    pub holes: Vec<Vec<Range<u64>>>,
    /// Members of which superblocks say that their array went on without them.
    pub stale: Vec<usize>,
    /// Geometries that superblocks name, where their roles may be wrong.
    pub claims: Vec<Claim>,
    /// Parameters that are not in question.
    pub fixed: Fixed,
}

/// A geometry that superblocks name, and the roles, which may be wrong: `mdadm --create` is often given the same parameters as
/// the array before, and the members in another order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The geometry.
    pub pattern: Pattern,
    /// Bytes from the start of each member to its data.
    pub offset: u64,
    /// For each role the first member whose superblock names it; `None` if there is none.
    pub roles: Vec<Option<usize>>,
}

/// Parameters that the caller knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fixed {
    /// The level.
    pub level: Option<Level>,
    /// md's number of the layout.
    pub layout: Option<u32>,
    /// Bytes of a chunk.
    pub chunk: Option<u64>,
    /// Number of roles, missing members included.
    pub members: Option<usize>,
}

/// The content of members.
pub trait Rows {
    /// Returns `length` bytes of a member from `at` on; `None` if they cannot be read, or lie behind its end.
    fn read(&self, member: usize, at: u64, length: usize) -> Option<Vec<u8>>;
}

impl<F: Fn(usize, u64, usize) -> Option<Vec<u8>>> Rows for F {
    fn read(&self, member: usize, at: u64, length: usize) -> Option<Vec<u8>> {
        self(member, at, length)
    }
}

impl Question {
    /// Returns true if the caller knows nothing else of this geometry.
    pub(super) fn allows(&self, pattern: &Pattern) -> bool {
        let Fixed { level, layout, chunk, members } = self.fixed;
        level.is_none_or(|one| one == pattern.level)
            && layout.is_none_or(|one| one == pattern.layout)
            && chunk.is_none_or(|one| one == pattern.chunk)
            && members.is_none_or(|one| one == pattern.members)
    }

    /// Returns true if a clue at this byte of the member would have been found.
    pub(super) fn was_scanned(&self, member: usize, at: u64) -> bool {
        let is_within = |&(offset, length): &(u64, u64)| at >= offset && at - offset < length;
        let is_hole = self.holes.get(member).is_some_and(|holes| {
            let next = holes.partition_point(|hole| hole.end <= at);
            holes.get(next).is_some_and(|hole| hole.start <= at)
        });
        !is_hole && self.scanned.get(member).is_none_or(|ranges| ranges.iter().any(is_within))
    }
}
