//! Facts about paths: their kind, their users, and short texts of the system.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use braid_probe::{Holder, Policy, Reason, Refusal, check_member};
use rustix::fs::OFlags;

use super::{Holes, PathKind};
use crate::error::LabError;

/// Time for which a process that has a file open is waited for.
const PATIENCE: Duration = Duration::from_secs(1);

pub(super) fn path_kind(path: &Path) -> Result<Option<PathKind>, LabError> {
    let kind = match fs::metadata(path) {
        Ok(meta) => meta.file_type(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(LabError::file("look at", path)(error)),
    };
    Ok(Some(match () {
        () if kind.is_file() => PathKind::File,
        () if kind.is_block_device() => PathKind::Block,
        () if kind.is_dir() => PathKind::Folder,
        () => PathKind::Other,
    }))
}

/// See [`super::World::check_unused`].
pub(super) fn check_unused(path: &Path) -> Result<(), LabError> {
    // The caller has named the path to be destroyed: only its use is checked.
    let force = [PathBuf::from(path)];
    let policy = Policy { force: &force, ..Policy::default() };
    let deadline = Instant::now() + PATIENCE;
    loop {
        match check_member(path, &policy) {
            Err(Refusal { reason: Reason::Missing | Reason::WrongKind { .. }, .. }) | Ok(_) => {
                return Ok(());
            }
            Err(refusal) if is_passing(&refusal) && Instant::now() < deadline => {
                std::thread::sleep(PATIENCE / 20);
            }
            Err(refusal) => {
                let next = refusal.next();
                return Err(LabError::InUse { refusal: refusal.to_string(), next });
            }
        }
    }
}

/// Returns true if only processes have the path open: one that ends, or has been started and has not yet
/// executed its program, closes it in a moment.
fn is_passing(refusal: &Refusal) -> bool {
    let Reason::InUse { holders } = &refusal.reason else { return false };
    holders.iter().all(|holder| matches!(holder, Holder::Process { .. }))
}

/// See [`super::World::claim`].
pub(super) fn claim(path: &Path) -> Result<Option<File>, LabError> {
    let failed = || LabError::file("take for itself", path);
    if !fs::metadata(path).map_err(failed())?.file_type().is_block_device() {
        return Ok(None);
    }
    let flags = OFlags::EXCL.bits().cast_signed();
    match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(device) => Ok(Some(device)),
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::BUSY.raw_os_error()) => {
            // The probe names the users; if there are none any more, the claim was short.
            check_unused(path).and(Err(failed()(error)))
        }
        Err(error) => Err(failed()(error)),
    }
}

/// Returns the bytes of a file or block device; `None` if it is neither, or cannot be opened for reading.
pub(crate) fn size_of(path: &Path) -> Option<u64> {
    match path_kind(path).ok()?? {
        PathKind::File | PathKind::Block => path_size(path).ok(),
        PathKind::Folder | PathKind::Other => None,
    }
}

/// Returns the offset of the end, also of a block device, and without an ioctl.
pub(super) fn path_size(path: &Path) -> io::Result<u64> {
    File::open(path)?.seek(SeekFrom::End(0))
}

/// See [`super::World::sync_path`].
pub(super) fn sync_path(path: &Path) -> io::Result<()> {
    let file = File::open(path)?;
    match file.metadata()?.file_type().is_block_device() {
        true => file.sync_all(),
        false => Ok(rustix::fs::syncfs(&file)?),
    }
}

/// See [`super::World::drop_caches`].
pub(super) fn drop_caches() -> Result<(), LabError> {
    rustix::fs::sync();
    let path = "/proc/sys/vm/drop_caches";
    fs::write(path, "3").map_err(|error| {
        let next = "run as root, or set drop_caches = false in the campaign";
        LabError::step("drop the page cache", format!("{path}: {error}; {next}"))
    })
}

/// See [`super::World::holes`]. A file system that does not report holes shows none.
pub(super) fn holes(path: &Path, most: u64) -> Result<Option<Holes>, LabError> {
    use rustix::fs::{SeekFrom, seek};
    let failed = || LabError::file("look for holes in", path);
    let meta = fs::metadata(path).map_err(failed())?;
    if !meta.is_file() {
        return Ok(None);
    }
    let file = File::open(path).map_err(failed())?;
    let bytes = meta.len().min(most);
    let (mut holes, mut at) = (0, 0);
    while at < bytes {
        let data = match seek(&file, SeekFrom::Data(at)) {
            Ok(data) => data.min(bytes),
            // A hole up to the end.
            Err(rustix::io::Errno::NXIO) => bytes,
            Err(errno) => return Err(failed()(errno.into())),
        };
        holes += data - at;
        if data == bytes {
            break;
        }
        at = seek(&file, SeekFrom::Hole(data)).map_err(|errno| failed()(errno.into()))?;
    }
    Ok(Some(Holes { holes, bytes }))
}

pub(crate) fn free_bytes(path: &Path) -> Result<u64, LabError> {
    let facts = rustix::fs::statvfs(path)
        .map_err(|errno| LabError::file("find out the free space of", path)(errno.into()))?;
    Ok(facts.f_bavail.saturating_mul(facts.f_frsize))
}

pub(crate) fn read_text(path: &Path) -> Result<Option<String>, LabError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(LabError::file("read", path)(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a");
        fs::write(&file, b"").unwrap();
        assert_eq!(path_kind(&file).unwrap(), Some(PathKind::File));
        assert_eq!(path_kind(dir.path()).unwrap(), Some(PathKind::Folder));
        assert_eq!(path_kind(Path::new("/dev/null")).unwrap(), Some(PathKind::Other));
        assert_eq!(path_kind(&dir.path().join("b")).unwrap(), None);
        assert!(path_kind(&file.join("below")).is_err());
    }

    #[test]
    fn what_another_process_has_open_is_in_use() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.img");
        fs::write(&path, b"precious").unwrap();
        check_unused(&path).unwrap();
        check_unused(&dir.path().join("none")).unwrap();
        let file = File::open(&path).unwrap();
        let mut reader =
            std::process::Command::new("sleep").arg("100").stdin(file).spawn().unwrap();
        let refused = check_unused(&path);
        reader.kill().unwrap();
        reader.wait().unwrap();
        let refused = refused.unwrap_err();
        let text = refused.to_string();
        assert!(text.contains("a.img is refused: it is in use: open by "), "{text}");
        let LabError::InUse { next, .. } = refused else { panic!("{text}") };
        assert!(next.starts_with("end "), "{next}");
        check_unused(&path).unwrap();
        assert!(claim(&path).unwrap().is_none(), "a file cannot be taken");
    }

    #[test]
    fn sizes_are_of_files_and_devices_alone() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a");
        fs::write(&file, [0; 777]).unwrap();
        assert_eq!(size_of(&file), Some(777));
        for none in [dir.path(), Path::new("/dev/null"), &dir.path().join("b")] {
            assert_eq!(size_of(none), None, "{}", none.display());
        }
    }

    #[test]
    fn a_text_that_is_not_there_is_none() {
        assert_eq!(read_text(Path::new("/proc/none")).unwrap(), None);
        assert!(read_text(Path::new("/proc/uptime")).unwrap().unwrap().contains('.'));
        assert!(free_bytes(Path::new("/")).unwrap() > 0);
    }
}
