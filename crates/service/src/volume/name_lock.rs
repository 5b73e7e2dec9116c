//! The name of a volume that is up: of two commands at once that bring it up, one is late, and must
//! not take what the other has made for leftovers.
//!
//! The file goes with the volume. Only the process that has it locked removes it, and a lock counts only on the
//! file that the path still leads to: a process that waited for a removed file starts again.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

/// A process that was killed a moment ago may still be on its way out.
const PATIENCE: Duration = Duration::from_secs(1);
/// Interval between two looks.
const RETRY: Duration = Duration::from_millis(20);

/// A name that no other process has.
#[derive(Debug)]
pub struct NameLock {
    path: PathBuf,
    /// Locked; the lock goes when it is closed, after the path.
    _file: File,
}

impl NameLock {
    /// Locks the file at `path`; `None` if another process has it.
    pub fn claim(path: &Path) -> io::Result<Option<NameLock>> {
        NameLock::claim_within(PATIENCE, path)
    }

    /// Locks the file at `path`; `None` if another process has it for longer than `patience`.
    pub fn claim_within(patience: Duration, path: &Path) -> io::Result<Option<NameLock>> {
        let deadline = Instant::now() + patience;
        loop {
            let file = File::options().write(true).create(true).truncate(false).open(path)?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) if is_at(&file, path)? => {
                    return Ok(Some(NameLock { path: path.to_owned(), _file: file }));
                }
                Ok(()) => {}
                Err(rustix::io::Errno::WOULDBLOCK) if Instant::now() < deadline => {
                    std::thread::sleep(RETRY);
                }
                Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Drop for NameLock {
    fn drop(&mut self) {
        // A file that stays does no harm.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Returns true if `path` leads to `file`.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let own = file.metadata()?;
    match std::fs::metadata(path) {
        Ok(there) => Ok((there.dev(), there.ino()) == (own.dev(), own.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_somebodys_until_it_is_let_go_and_leaves_no_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("vol.lock");
        let first = NameLock::claim(&path).unwrap().unwrap();
        assert!(NameLock::claim(&path).unwrap().is_none());
        drop(first);
        assert!(!path.exists());
        assert!(NameLock::claim(&path).unwrap().is_some());
    }

    #[test]
    fn of_many_at_once_one_has_it_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("vol.lock");
        let inside = std::sync::atomic::AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let Some(lock) = NameLock::claim(&path).unwrap() else { continue };
                        use std::sync::atomic::Ordering::SeqCst;
                        assert_eq!(inside.fetch_add(1, SeqCst), 0);
                        inside.fetch_sub(1, SeqCst);
                        drop(lock);
                    }
                });
            }
        });
        assert!(!path.exists());
    }
}
