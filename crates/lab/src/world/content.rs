//! Making incompressible bytes fast: files for tools to read, and the first content of raw subjects.
//!
//! ```text
//!   Rng(seed) ──1 MiB──▶ write ──▶ … ──▶ fsync
//! ```
//!
//! Each mebibyte has different content, so that a device that deduplicates finds nothing.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use super::StopFlag;
use crate::command::Target;
use crate::error::LabError;
use crate::nbd::Writer;
use braid_seed::Rng;

/// Bytes of one write.
const PIECE: usize = 1 << 20;
/// Alignment of address, offset and length that every device takes with O_DIRECT.
const ALIGNMENT: usize = 4096;

/// Limits of an operation: a deadline and a stop flag.
pub(crate) struct Leave<'s> {
    deadline: Instant,
    limit: Duration,
    stop: &'s StopFlag,
}

impl<'s> Leave<'s> {
    pub(crate) fn new(limit: Duration, stop: &'s StopFlag) -> Self {
        Self { deadline: Instant::now() + limit, limit, stop }
    }

    /// Checks that the operation may continue.
    pub(super) fn check(&self, action: &str) -> Result<(), LabError> {
        if self.stop.is_set() {
            return Err(LabError::Stopped);
        }
        if Instant::now() < self.deadline {
            return Ok(());
        }
        Err(LabError::step(action, format!("it took longer than {} s", self.limit.as_secs())))
    }
}

/// Pieces of incompressible bytes, aligned for O_DIRECT.
struct Pieces {
    rng: Rng,
    memory: Vec<u8>,
    start: usize,
}

impl Pieces {
    fn new(seed: u64) -> Self {
        let memory = vec![0; PIECE + ALIGNMENT];
        let start = memory.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        Self { rng: Rng::new(seed), memory, start }
    }

    /// Returns the next bytes, at most one piece.
    fn next(&mut self, left: u64) -> &[u8] {
        let length = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
        let piece = &mut self.memory[self.start..self.start + PIECE];
        for word in piece.chunks_exact_mut(8) {
            word.copy_from_slice(&self.rng.next_u64().to_le_bytes());
        }
        &piece[..length]
    }

    /// Writes so many bytes piece by piece, each at its offset.
    fn pour(
        mut self,
        bytes: u64,
        action: &str,
        leave: &Leave<'_>,
        mut write: impl FnMut(u64, &[u8]) -> Result<(), LabError>,
    ) -> Result<(), LabError> {
        let mut done = 0;
        while done < bytes {
            leave.check(action)?;
            let piece = self.next(bytes - done);
            write(done, piece)?;
            done += piece.len() as u64;
        }
        Ok(())
    }
}

/// Writes the first bytes of a target, whole blocks; see [`super::World::fill`].
pub(super) fn fill(
    target: &Target,
    bytes: u64,
    seed: u64,
    leave: &Leave<'_>,
) -> Result<(), LabError> {
    let (pieces, action) = (Pieces::new(seed), "fill the subject");
    match target {
        Target::Device(path) => {
            let failed = || LabError::file("fill", path);
            let mut file = open_to_fill(path).map_err(failed())?;
            pieces
                .pour(bytes, action, leave, |_, piece| file.write_all(piece).map_err(failed()))?;
            file.sync_all().map_err(failed())
        }
        Target::Nbd(uri) => {
            let mut writer = Writer::connect(uri)?;
            pieces.pour(bytes, action, leave, |offset, piece| writer.write(offset, piece))?;
            writer.finish()
        }
        Target::Folder(path) => {
            Err(LabError::step(format!("fill {}", path.display()), "it is a folder"))
        }
    }
}

fn open_to_fill(path: &Path) -> io::Result<File> {
    // A block device that is mounted or built on is busy then.
    let is_block = std::fs::metadata(path)?.file_type().is_block_device();
    let exclusive = if is_block { OFlags::EXCL } else { OFlags::empty() };
    let open = |flags: OFlags| {
        let flags = (flags | exclusive).bits().cast_signed();
        OpenOptions::new().write(true).custom_flags(flags).open(path)
    };
    match open(OFlags::DIRECT) {
        // Some file systems have no direct I/O.
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::INVAL.raw_os_error()) => {
            open(OFlags::empty())
        }
        other => other,
    }
}

/// Makes a new file of so many bytes, complete and synced; a partial file is removed.
pub(crate) fn make_file(
    path: &Path,
    bytes: u64,
    seed: u64,
    leave: &Leave<'_>,
) -> Result<(), LabError> {
    let mut file = File::create_new(path).map_err(LabError::file("create", path))?;
    let written = Pieces::new(seed)
        .pour(bytes, "write a file", leave, |_, piece| {
            file.write_all(piece).map_err(LabError::file("write", path))
        })
        .and_then(|()| file.sync_all().map_err(LabError::file("sync", path)));
    if written.is_err() {
        // The first error is returned.
        let _ = std::fs::remove_file(path);
    }
    written
}

/// Reads a file, or all files of a folder, so that the page cache holds them. Symbolic links are not followed.
pub(super) fn read_all(path: &Path, leave: &Leave<'_>) -> Result<(), LabError> {
    let mut buffer = vec![0; PIECE];
    let mut paths = vec![path.to_path_buf()];
    while let Some(path) = paths.pop() {
        let kind =
            std::fs::symlink_metadata(&path).map_err(LabError::file("read", &path))?.file_type();
        if kind.is_dir() {
            for entry in std::fs::read_dir(&path).map_err(LabError::file("read", &path))? {
                paths.push(entry.map_err(LabError::file("read", &path))?.path());
            }
        } else if kind.is_file() {
            let mut file = File::open(&path).map_err(LabError::file("read", &path))?;
            while file.read(&mut buffer).map_err(LabError::file("read", &path))? > 0 {
                leave.check("read files")?;
            }
        }
    }
    Ok(())
}

/// Prefix of the names of folders.
const PREFIX: &str = "braid-lab-";

/// Checks that a folder was made by [`make_folder`], or by a run, of this user.
///
/// # Errors
///
/// It was not, or cannot be examined.
pub(super) fn check_folder(path: &Path) -> Result<(), LabError> {
    let meta = std::fs::symlink_metadata(path).map_err(LabError::file("look at", path))?;
    let name = path.file_name().unwrap_or_default();
    let is_ours = meta.is_dir()
        && name.as_encoded_bytes().starts_with(PREFIX.as_bytes())
        && meta.uid() == rustix::process::geteuid().as_raw();
    match is_ours {
        true => Ok(()),
        false => {
            let action = format!("remove {}", path.display());
            Err(LabError::step(action, "it is no folder that the laboratory made"))
        }
    }
}

/// Makes a folder of a new name, for this user alone.
pub(super) fn make_folder(parent: &Path) -> Result<std::path::PathBuf, LabError> {
    tempfile::Builder::new()
        .prefix(PREFIX)
        .permissions(std::fs::Permissions::from_mode(0o700))
        .tempdir_in(parent)
        .map(tempfile::TempDir::keep)
        .map_err(LabError::file("create a folder in", parent))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leave(stop: &StopFlag) -> Leave<'_> {
        Leave::new(Duration::from_secs(600), stop)
    }

    #[test]
    fn a_file_is_whole_incompressible_and_the_same_for_a_seed() {
        let dir = tempfile::tempdir().unwrap();
        let stop = StopFlag::default();
        let bytes = 2 * PIECE + 777;
        let read = |name: &str, seed| {
            let path = dir.path().join(name);
            make_file(&path, bytes as u64, seed, &leave(&stop)).unwrap();
            std::fs::read(path).unwrap()
        };
        let (a, again, other) = (read("a", 1), read("b", 1), read("c", 2));
        assert_eq!(a.len(), bytes);
        assert!(a == again && a != other);
        assert!(a[..PIECE] != a[PIECE..2 * PIECE]);
        // All values of a byte are about equally frequent.
        let mut counts = [0u32; 256];
        a.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
        let mean = bytes as u32 / 256;
        assert!(counts.iter().all(|count| count.abs_diff(mean) < mean / 4), "{counts:?}");
    }

    #[test]
    fn nothing_that_exists_is_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        std::fs::write(&path, b"precious").unwrap();
        assert!(make_file(&path, 10, 1, &leave(&StopFlag::default())).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"precious");
    }

    #[test]
    fn a_stop_leaves_no_part_of_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let stop = StopFlag::default();
        stop.set();
        let error = make_file(&path, 10, 1, &leave(&stop)).unwrap_err();
        assert!(matches!(error, LabError::Stopped));
        assert!(!path.exists());
    }

    #[test]
    fn filling_writes_exactly_the_region() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let size = 3 * PIECE + 5000;
        std::fs::write(&path, vec![0; size]).unwrap();
        let region = 2 * PIECE + ALIGNMENT;
        let target = Target::Device(path.clone());
        fill(&target, region as u64, 7, &leave(&StopFlag::default())).unwrap();
        let content = std::fs::read(&path).unwrap();
        assert_eq!(content.len(), size);
        assert!(content[region..].iter().all(|byte| *byte == 0));
        let zeros = content[..region].chunks(500).filter(|part| part.iter().all(|b| *b == 0));
        assert_eq!(zeros.count(), 0);
    }

    #[test]
    fn a_time_limit_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        File::create(&path).unwrap().write_all(&[0; 8192]).unwrap();
        let stop = StopFlag::default();
        let over = Leave::new(Duration::ZERO, &stop);
        let error = fill(&Target::Device(path), 8192, 7, &over).unwrap_err().to_string();
        assert!(error.contains("longer than 0 s"), "{error}");
    }
}
