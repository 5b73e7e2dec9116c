//! A member that can only be read.
//!
//! Invariants
//! * A [`Patient`] is opened O_RDONLY and has no method that writes; its file is not handed out.
//! * A range that cannot be read is reported with its bytes as zeros. It does not end a scan.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use braid_probe::{FileKind, ReadAt, identify, look_at};
use serde::{Deserialize, Serialize};

/// Bytes of the start and of the end of a member that its fingerprint covers.
const ENDS: u64 = 1 << 20;
/// Bytes that are retried alone where a larger read fails.
const PIECE: u64 = 4096;

/// A file or block device that is examined, and never written.
#[derive(Debug)]
pub struct Patient {
    path: PathBuf,
    file: File,
    size: u64,
    serial: Option<String>,
}

/// Properties that tell a member from others, and from itself after it was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fingerprint {
    /// Size in bytes.
    pub size: u64,
    /// The serial number of a disk; `None` for a file, or where the disk has none.
    pub serial: Option<String>,
    /// SHA-1 of the first MiB, or of all if the member is smaller. Unreadable bytes count as zeros.
    pub head_sha1: String,
    /// SHA-1 of the last MiB.
    pub tail_sha1: String,
}

/// Why a path cannot be examined.
#[derive(Debug, thiserror::Error)]
pub enum PatientError {
    /// There is neither a regular file nor a block device.
    #[error("{path} is {kind}: a member is a regular file or a block device", path = .path.display())]
    Kind {
        /// The path.
        path: PathBuf,
        /// The kind of thing that is there.
        kind: FileKind,
    },
    /// It has no bytes.
    #[error("{path} is empty: it has 0 bytes", path = .path.display())]
    Empty {
        /// The path.
        path: PathBuf,
    },
    /// It cannot be opened or measured.
    #[error("{why}")]
    Unreadable {
        /// The reason, with the path.
        why: String,
    },
}

impl Patient {
    /// Opens a regular file or a block device for reading.
    ///
    /// # Errors
    /// [`PatientError`]: there is none, or it is empty, or it cannot be opened.
    pub fn open(path: &Path) -> Result<Patient, PatientError> {
        let unreadable = |why: String| PatientError::Unreadable { why };
        let (kind, _) = identify(path).map_err(|error| unreadable(error.to_string()))?;
        if !matches!(kind, FileKind::Regular | FileKind::Block) {
            return Err(PatientError::Kind { path: path.to_owned(), kind });
        }
        let failed =
            |error: io::Error| unreadable(format!("cannot read {}: {error}", path.display()));
        let mut file = OpenOptions::new().read(true).open(path).map_err(failed)?;
        // The end of a block device is its size; `stat` says 0 for it.
        let size = file.seek(SeekFrom::End(0)).map_err(failed)?;
        if size == 0 {
            return Err(PatientError::Empty { path: path.to_owned() });
        }
        let is_disk = kind == FileKind::Block;
        let serial = is_disk.then(|| look_at(path).ok()?.serial).flatten();
        Ok(Patient { path: path.to_owned(), file, size, serial })
    }

    /// The path under which it was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Size in bytes, at least 1.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Fills `bytes` from `offset` on.
    ///
    /// # Errors
    /// The range goes beyond the end, or the medium fails.
    pub fn read(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let end = offset.checked_add(bytes.len() as u64).filter(|end| *end <= self.size);
        end.ok_or(io::ErrorKind::UnexpectedEof)?;
        self.file.read_exact_at(bytes, offset)
    }

    /// The same, with zeros for what cannot be read; these ranges are appended to `unreadable`, in pieces of 4 KiB.
    pub fn read_around(&self, offset: u64, bytes: &mut [u8], unreadable: &mut Vec<Range<u64>>) {
        if self.read(offset, bytes).is_ok() {
            return;
        }
        let mut at = offset;
        for piece in bytes.chunks_mut(PIECE as usize) {
            let end = at + piece.len() as u64;
            if self.read(at, piece).is_err() {
                piece.fill(0);
                match unreadable.last_mut() {
                    Some(last) if last.end == at => last.end = end,
                    _ => unreadable.push(at..end),
                }
            }
            at = end;
        }
    }

    /// Returns the fingerprint of its present content.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        let length = ENDS.min(self.size);
        let sha1 = |offset: u64| {
            let mut bytes = vec![0; usize::try_from(length).expect("at most a MiB")];
            self.read_around(offset, &mut bytes, &mut Vec::new());
            sha1_smol::Sha1::from(&bytes).digest().to_string()
        };
        let (head_sha1, tail_sha1) = (sha1(0), sha1(self.size - length));
        Fingerprint { size: self.size, serial: self.serial.clone(), head_sha1, tail_sha1 }
    }
}

/// Bytes that cannot be read are zeros.
impl ReadAt for Patient {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.size.saturating_sub(offset).min(buffer.len() as u64);
        let count = usize::try_from(left).expect("no more than the buffer has");
        if count > 0 {
            self.read_around(offset, &mut buffer[..count], &mut Vec::new());
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fingerprint_changes_with_the_ends_and_the_size() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.img");
        let mut bytes = vec![7; 3 << 20];
        let taken = |bytes: &[u8]| {
            std::fs::write(&path, bytes).expect("it can be written");
            Patient::open(&path).expect("a file").fingerprint()
        };
        let before = taken(&bytes);
        assert_eq!(before, taken(&bytes));
        bytes[100] = 8;
        let other_head = taken(&bytes);
        assert_eq!(before.tail_sha1, other_head.tail_sha1);
        assert_ne!(before.head_sha1, other_head.head_sha1);
        bytes.push(7);
        assert_ne!(other_head, taken(&bytes));
    }

    #[test]
    fn only_files_with_content_are_patients() {
        let folder = tempfile::tempdir().expect("a folder");
        let refused = |path: &Path| Patient::open(path).expect_err("refused").to_string();
        assert!(refused(folder.path()).contains("a member is a regular file or a block device"));
        let empty = folder.path().join("empty");
        std::fs::write(&empty, []).expect("it can be written");
        assert!(refused(&empty).contains("has 0 bytes"));
        assert!(refused(&folder.path().join("none")).contains("none"));
    }
}
