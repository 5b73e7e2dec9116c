//! Why a file system is not read, and why a part of it is not.

use thiserror::Error;

/// Why nothing can be said of a volume.
#[derive(Debug, Error)]
pub enum FilesError {
    /// Neither ext2, ext3, ext4, xfs nor btrfs.
    #[error(
        "the volume has no file system whose files can be told: only ext2, ext3, ext4, xfs and btrfs are read"
    )]
    NotKnown,
    /// A feature that changes what numbers mean.
    #[error("the {kind} file system has features that are not understood: {features}")]
    Features {
        /// The file system.
        kind: &'static str,
        /// Their names, or bits.
        features: String,
    },
    /// The superblock.
    #[error("the superblock of the {kind} file system cannot be believed: {0}", .trouble)]
    Superblock {
        /// The file system.
        kind: &'static str,
        /// Why.
        trouble: Trouble,
    },
    /// The superblock could not be read.
    #[error("cannot tell what is on the volume: {0}")]
    Read(#[from] Trouble),
}

/// Why a piece of metadata is not used.
#[derive(Debug, Error)]
pub enum Trouble {
    /// The device says so.
    #[error("{len} bytes at {offset} cannot be read: {error}")]
    Read {
        /// Bytes from the beginning of the volume.
        offset: u64,
        /// Bytes.
        len: usize,
        /// The device's reason.
        error: std::io::Error,
    },
    /// A place that the volume does not have.
    #[error("{len} bytes at {offset} lie beyond the volume")]
    Beyond {
        /// Bytes from the beginning of the volume.
        offset: u64,
        /// Bytes.
        len: usize,
    },
    /// A number that cannot be.
    #[error("{0}")]
    Damaged(&'static str),
}

pub(crate) type Tried<T> = Result<T, Trouble>;

/// Fails with `why` unless `holds`.
pub(crate) fn check(holds: bool, why: &'static str) -> Tried<()> {
    if holds { Ok(()) } else { Err(Trouble::Damaged(why)) }
}
