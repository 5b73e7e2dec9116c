//! The setup of a subject before the tool starts: file system, mount options, read-ahead, health, and the
//! number of processes.

use std::fmt;

use braid_stack::ByteSize;
use serde::{Deserialize, Serialize};

use crate::settings::Value;

/// An enumeration whose variants have names in campaigns.
macro_rules! named {
    (
        $(#[$attribute:meta])*
        $type:ident: $count:literal { $($(#[$about:meta])* $variant:ident $name:literal,)* }
        $($(#[$beside:meta])* besides $other:ident $word:literal)?
    ) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "lowercase")]
        pub enum $type {
            $($(#[$about])* $variant,)*
            $($(#[$beside])* $other,)?
        }

        impl $type {
            /// All values that a campaign can name, in the order of reports.
            pub const ALL: [Self; $count] = [$(Self::$variant,)*];
            /// The names.
            pub const NAMES: [&str; $count] = [$($name,)*];

            /// Returns the value with this name.
            pub(crate) fn find(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|one| one.name() == name)
            }

            /// Returns the name in campaigns; for values that a campaign cannot name, words for labels.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                    $(Self::$other => $word,)?
                }
            }
        }
    };
}

named! {
    /// The file system that a trial runs on. Its name is that of `mkfs.NAME` and `mount -t NAME`.
    FileSystem: 7 {
        /// None: the tool gets the raw device.
        None "none",
        /// ext2, without a journal.
        Ext2 "ext2",
        /// ext3.
        Ext3 "ext3",
        /// ext4.
        Ext4 "ext4",
        /// XFS.
        Xfs "xfs",
        /// btrfs.
        Btrfs "btrfs",
        /// F2FS, where the kernel has it.
        F2fs "f2fs",
    }
    /// The file system on which a folder lies: no file system is made and none is mounted. Campaigns cannot
    /// name it; folders have it.
    besides Own "the folder's file system"
}

impl FileSystem {
    /// Returns true if each trial makes the file system anew, on a device.
    pub fn is_made(self) -> bool {
        !matches!(self, Self::None | Self::Own)
    }
}

named! {
    /// The state of an array during a measurement.
    Health: 5 {
        /// All members are there and in sync.
        Healthy "healthy",
        /// One member has failed and nothing replaces it.
        Degraded "degraded",
        /// A replaced member is being filled while the tool runs.
        Rebuilding "rebuilding",
        /// A check of the whole array runs beside the tool.
        Scrubbing "scrubbing",
        /// All states in one trial: healthy, a member fails, it is replaced and filled, a check runs. Latency
        /// over time shows the effect of a failure on users.
        Story "story",
    }
}

/// The environment of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Setup {
    /// The file system; each trial begins on a new one, except for [`FileSystem::Own`].
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
    /// True if the page cache is dropped before the tool starts.
    pub drop_caches: bool,
}

impl Setup {
    /// The keys that jobs can set, in the order in which they vary.
    pub(crate) const KEYS: [&str; 6] =
        ["mkfs", "mount", "readahead", "health", "processes", "drop_caches"];

    /// Sets the checked value of one of these keys.
    pub(crate) fn set(&mut self, key: &str, value: Value) {
        match (key, value) {
            ("mkfs", Value::Word(words)) => self.mkfs = words,
            ("mount", Value::Word(options)) => self.mount = options,
            ("readahead", Value::Size(size)) => self.readahead = Some(size),
            ("health", Value::Word(name)) => {
                self.health = Health::find(&name).unwrap_or(self.health);
            }
            ("processes", Value::Count(count)) => {
                self.processes = u32::try_from(count).unwrap_or(u32::MAX);
            }
            ("drop_caches", Value::Flag(drop)) => self.drop_caches = drop,
            _ => {}
        }
    }

    /// Returns true if the setup is possible for a folder: no file system is made or mounted.
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
    /// Writes the differences from the default, each with a comma before it.
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
