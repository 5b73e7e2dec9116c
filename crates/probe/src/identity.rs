//! The file or device that a path really names.
//!
//! Invariants: two paths have equal identities exactly if they name the same bytes: through symbolic links,
//! hard links, or two device nodes with the same number.
//!
//! Deliberately absent: devices that share bytes through a mapping (a loop device and its backing file, a
//! device-mapper volume and its disk). Those are found as holders, see [`crate::find_users`].

use std::fmt;
use std::fs::{self, Metadata};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use rustix::fs::{FileType as RawFileType, Statx};

use crate::ProbeError;

/// The number of a device, `8:16`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceNumber {
    /// The number of the driver.
    pub major: u32,
    /// The number of the device within that driver.
    pub minor: u32,
}

impl DeviceNumber {
    /// Splits a `dev_t` as `stat` gives it.
    pub(crate) fn from_raw(raw: u64) -> Self {
        Self { major: rustix::fs::major(raw), minor: rustix::fs::minor(raw) }
    }

    /// True for a number that the kernel invented for a file system without a device of its own (tmpfs, btrfs,
    /// overlay, …).
    pub(crate) fn is_anonymous(self) -> bool {
        self.major == 0
    }
}

impl fmt::Display for DeviceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

/// The identity of a member: equal for two paths that name the same member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Identity {
    /// A regular file (or anything else that is not a device): its file system and inode.
    File {
        /// The file system's device number (`st_dev`).
        device: DeviceNumber,
        /// The inode number.
        inode: u64,
    },
    /// A block device: its own number (`st_rdev`).
    Block(DeviceNumber),
}

impl Identity {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        if metadata.file_type().is_block_device() {
            return Identity::Block(DeviceNumber::from_raw(metadata.rdev()));
        }
        Identity::File { device: DeviceNumber::from_raw(metadata.dev()), inode: metadata.ino() }
    }

    /// The identity from an answer of `statx`.
    pub(crate) fn of_status(status: &Statx) -> Self {
        if RawFileType::from_raw_mode(status.stx_mode.into()) == RawFileType::BlockDevice {
            let (major, minor) = (status.stx_rdev_major, status.stx_rdev_minor);
            return Identity::Block(DeviceNumber { major, minor });
        }
        let device = DeviceNumber { major: status.stx_dev_major, minor: status.stx_dev_minor };
        Identity::File { device, inode: status.stx_ino }
    }
}

/// The kind of object that a path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    Regular,
    /// A block device.
    Block,
    /// A directory.
    Directory,
    /// A character device.
    Character,
    /// A named pipe.
    Pipe,
    /// A Unix socket.
    Socket,
    /// A kind that this version does not know.
    Other,
}

impl FileKind {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        let file_type = metadata.file_type();
        if file_type.is_file() {
            FileKind::Regular
        } else if file_type.is_block_device() {
            FileKind::Block
        } else if file_type.is_dir() {
            FileKind::Directory
        } else if file_type.is_char_device() {
            FileKind::Character
        } else if file_type.is_fifo() {
            FileKind::Pipe
        } else if file_type.is_socket() {
            FileKind::Socket
        } else {
            FileKind::Other
        }
    }
}

impl fmt::Display for FileKind {
    /// The kind with its article: `a regular file`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FileKind::Regular => "a regular file",
            FileKind::Block => "a block device",
            FileKind::Directory => "a directory",
            FileKind::Character => "a character device",
            FileKind::Pipe => "a named pipe",
            FileKind::Socket => "a socket",
            FileKind::Other => "neither a file nor a block device",
        })
    }
}

/// The kind of object that `path` names after links are followed; for a member that is a part, the object that
/// contains it. Nothing is opened.
///
/// # Errors
/// [`ProbeError::Io`] when it does not exist or cannot be reached.
pub fn identify(path: &Path) -> Result<(FileKind, Identity), ProbeError> {
    let metadata =
        fs::metadata(braid_stack::path_of(path)).map_err(ProbeError::io("look at", path))?;
    Ok((FileKind::of(&metadata), Identity::of(&metadata)))
}
