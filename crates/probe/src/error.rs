//! The errors of a look at files and devices.

use std::io;
use std::path::{Path, PathBuf};

/// Why something could not be looked at.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// A system call failed.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The attempted action, as in "cannot _open_ /dev/sdb".
        action: &'static str,
        /// The path of the file or device.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The path named something else when it was opened than when it was examined.
    #[error("{} changed while it was being examined", path.display())]
    Changed {
        /// The path.
        path: PathBuf,
    },
    /// A partition that was named is not there.
    #[error("{}: {why}", path.display())]
    NoPartition {
        /// The disk.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// A line of the kernel that is not in its documented form.
    #[error("cannot understand the line `{line}` of {file}")]
    Malformed {
        /// The file in `/proc`.
        file: &'static str,
        /// The line.
        line: String,
    },
}

impl ProbeError {
    /// For `map_err`: attaches what was tried, and on what.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }
}
