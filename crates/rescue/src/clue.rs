//! Places that blocks which describe themselves name.
//!
//! ```text
//!   member 2   ├──────────────▓▓▓▓────────┤        at: where the block was found
//!                              │
//!   volume     ├─────base─────┼place───────────┤   place: where it belongs, from the start of its structure
//! ```

/// The kinds of structures that evidence comes from. Their names are those of `blkid`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Structure {
    /// ext2, ext3 or ext4.
    Ext,
    /// xfs, version 5 or 4.
    Xfs,
    /// btrfs.
    Btrfs,
    /// NTFS.
    Ntfs,
    /// A GUID partition table.
    Gpt,
    /// A physical volume of LVM2.
    Lvm2,
    /// LUKS, version 2 or 1.
    Luks,
}

/// A structure that was found: a file system, a partition table, a physical volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// Its kind.
    pub structure: Structure,
    /// Its UUID, as its metadata store it.
    pub uuid: [u8; 16],
    /// Its size in bytes, as it says itself; `None` if it does not say.
    pub size: Option<u64>,
}

/// A block that says where it belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Clue {
    /// Index of the member on which it was found.
    pub member: usize,
    /// Bytes from the start of the member.
    pub at: u64,
    /// Index of its [`Anchor`].
    pub anchor: usize,
    /// Bytes from the start of its structure.
    pub place: u64,
    /// Number of bytes that are certain, at least 512: those that its checksum covers, or that carry the address.
    pub length: u32,
}
