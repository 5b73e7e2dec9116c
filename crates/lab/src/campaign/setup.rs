//! What is done to a subject before a tool meets it: file system, mount options, read-ahead,
//! health, and how many processes come at once.

use std::fmt;

use braid_stack::ByteSize;
use serde::{Deserialize, Serialize};

/// The file system that a trial runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileSystem {
    /// None: the tool gets the raw device.
    None,
    /// ext2, without a journal.
    Ext2,
    /// ext3.
    Ext3,
    /// ext4.
    Ext4,
    /// XFS.
    Xfs,
    /// btrfs.
    Btrfs,
    /// F2FS, where the kernel has it.
    F2fs,
    /// The one that a folder lies on, whatever it is: nothing is made and nothing is mounted. A
    /// campaign cannot ask for it; it is what a folder has.
    Own,
}

impl FileSystem {
    /// Every one that a campaign can name, in the order of reports.
    pub const ALL: [Self; 7] =
        [Self::None, Self::Ext2, Self::Ext3, Self::Ext4, Self::Xfs, Self::Btrfs, Self::F2fs];

    /// Whether each trial makes it anew, on a device.
    pub fn is_made(self) -> bool {
        !matches!(self, Self::None | Self::Own)
    }

    /// Its name in campaigns, `mkfs.NAME` and `mount -t NAME`; of [`FileSystem::Own`] words for
    /// labels, as nobody has said what it is.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Ext2 => "ext2",
            Self::Ext3 => "ext3",
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
            Self::F2fs => "f2fs",
            Self::Own => "the folder's file system",
        }
    }
}

/// What state an array is in while it is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Health {
    /// All members are there and in sync.
    Healthy,
    /// One member has failed and nothing replaces it.
    Degraded,
    /// A replaced member is being filled while the tool runs.
    Rebuilding,
    /// A check of the whole array runs beside the tool.
    Scrubbing,
    /// All of it in one trial: healthy, a member fails, it is replaced and filled, a check runs.
    /// Latency over time shows what users see of a failure.
    Story,
}

impl Health {
    /// Every one, in the order of reports.
    pub const ALL: [Self; 5] =
        [Self::Healthy, Self::Degraded, Self::Rebuilding, Self::Scrubbing, Self::Story];

    /// Its name in campaigns.
    pub fn name(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Degraded => "degraded",
            Self::Rebuilding => "rebuilding",
            Self::Scrubbing => "scrubbing",
            Self::Story => "story",
        }
    }
}

/// Everything around a tool.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Setup {
    /// The file system; each trial begins on a fresh one, but for [`FileSystem::Own`].
    pub filesystem: FileSystem,
    /// Further words for `mkfs`, split at blanks.
    pub mkfs: String,
    /// Mount options, as for `mount -o`; empty for the defaults.
    pub mount: String,
    /// Read-ahead of the block device; `None` leaves the kernel's.
    pub readahead: Option<ByteSize>,
    /// State of the array.
    pub health: Health,
    /// Processes at once, at least 1.
    pub processes: u32,
    /// Whether the page cache is dropped before the tool starts.
    pub drop_caches: bool,
}

impl Setup {
    /// Whether a folder can have it: no file system is made and nothing is mounted.
    pub(crate) fn leaves_folders_alone(&self) -> bool {
        self.filesystem == FileSystem::Own && self.mkfs.is_empty() && self.mount.is_empty()
    }
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            filesystem: FileSystem::None,
            mkfs: String::new(),
            mount: String::new(),
            readahead: None,
            health: Health::Healthy,
            processes: 1,
            drop_caches: true,
        }
    }
}

impl fmt::Display for Setup {
    /// What differs from the default, each part with a comma before it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.processes > 1 {
            write!(f, " × {}", self.processes)?;
        }
        if self.filesystem != FileSystem::None {
            write!(f, ", {}", self.filesystem.name())?;
        }
        if !self.mkfs.is_empty() {
            write!(f, " ({})", self.mkfs)?;
        }
        if !self.mount.is_empty() {
            write!(f, " -o {}", self.mount)?;
        }
        if let Some(size) = self.readahead {
            write!(f, ", read-ahead {size}")?;
        }
        if self.health != Health::Healthy {
            write!(f, ", {}", self.health.name())?;
        }
        if !self.drop_caches {
            f.write_str(", caches kept")?;
        }
        Ok(())
    }
}
