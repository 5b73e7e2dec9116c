//! Doubts about data that are read, and reasons for which an array cannot be read at all.

use braid_level::Level;

use super::layout::Ranges;

/// A reason for which data that are read may be wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// No member has these bytes of the array: reading them fails.
    Lost {
        /// Bytes of the array.
        ranges: Ranges,
    },
    /// A stale member is used, and nothing says what was written after it left.
    Stale {
        /// Its label.
        label: String,
        /// Its role.
        role: usize,
        /// When its superblock was last written, in seconds since 1970.
        at: u64,
    },
    /// A member without a superblock is used, because its role is the only one left.
    Guessed {
        /// Its label.
        label: String,
        /// Its role.
        role: usize,
    },
    /// Two members claim one role with as many events, and their contents differ.
    Ambiguous {
        /// The label of the one that is used.
        label: String,
        /// The role.
        role: usize,
    },
    /// Blocks of the file system say that they belong elsewhere: the superblocks are not those of the data.
    Contradicted {
        /// The roles on whose members they lie.
        roles: Vec<usize>,
    },
    /// The array was created over what lies on the members, and nothing proves that its geometry is that of the data.
    Recreated {
        /// When its superblocks say that it was created, in seconds since 1970.
        at: u64,
        /// When its file system was made, if that was before; `None` if members have superblocks of another array.
        made: Option<u64>,
    },
    /// The array is read by evidence, which leaves something open.
    Evidence {
        /// The question that it leaves open, in a sentence without an end.
        why: String,
        /// The bytes of the array; `None` if nothing says which.
        ranges: Option<Ranges>,
    },
    /// A reshape in place may have moved a part of these bytes.
    Critical {
        /// Bytes of the array.
        ranges: Ranges,
    },
    /// A file system begins where a partition may, and there is no table of partitions.
    NoTable {
        /// The byte of the array at which it begins.
        start: u64,
    },
    /// A file system whose superblock or root cannot be believed.
    Broken {
        /// The reason, in a sentence without an end.
        why: String,
    },
    /// The array has a write journal, which may have newer data than the members.
    Journal,
    /// Writes were under way when a member left: what is computed from parity there may be wrong.
    Torn {
        /// When, in seconds since 1970.
        at: u64,
        /// The bytes of the array; `None` if nothing says which.
        ranges: Option<Ranges>,
    },
}

impl Doubt {
    /// True if the geometry may be another one, so that no byte is sure: [`crate::solve()`] finds it.
    #[must_use]
    pub fn is_of_geometry(&self) -> bool {
        matches!(
            self,
            Doubt::Contradicted { .. }
                | Doubt::Recreated { .. }
                | Doubt::NoTable { .. }
                | Doubt::Broken { .. }
        )
    }

    /// The bytes of the array that are in doubt; `None` if nothing says which.
    #[must_use]
    pub fn ranges(&self) -> Option<&Ranges> {
        match self {
            Doubt::Lost { ranges } | Doubt::Critical { ranges } => Some(ranges),
            Doubt::Torn { ranges, .. } | Doubt::Evidence { ranges, .. } => ranges.as_ref(),
            _ => None,
        }
    }

    /// Returns the doubt about a volume in the array: `places` are the bytes of the volume on bytes of the array.
    /// `None` if the volume has none of the bytes in doubt.
    #[must_use]
    pub fn within(&self, places: impl Fn(&Ranges) -> Ranges) -> Option<Doubt> {
        let mut doubt = self.clone();
        let ranges = match &mut doubt {
            Doubt::Lost { ranges } | Doubt::Critical { ranges } => Some(ranges),
            Doubt::Torn { ranges, .. } | Doubt::Evidence { ranges, .. } => ranges.as_mut(),
            _ => None,
        };
        let Some(ranges) = ranges else { return Some(doubt) };
        *ranges = places(ranges);
        (!ranges.is_empty()).then_some(doubt)
    }
}

/// Why an array cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// Too few members.
    #[error("{level} of {disks} cannot be read without its roles {}", roles.iter().map(usize::to_string).collect::<Vec<_>>().join(", "))]
    TooFew {
        /// The level.
        level: Level,
        /// The number of roles.
        disks: usize,
        /// The roles without a member.
        roles: Vec<usize>,
    },
    /// A change of shape was interrupted.
    #[error("a reshape stopped at byte {position} of the array: two layouts are on the members")]
    Reshape {
        /// Bytes of the array that have the new shape.
        position: u64,
    },
    /// The layout is not known, or does not suit the members.
    #[error("its layout cannot be read: {why}")]
    Layout {
        /// The reason.
        why: String,
    },
}
