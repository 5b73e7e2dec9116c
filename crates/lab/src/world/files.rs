//! What a path is, and short texts of the system's.

use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use super::PathKind;
use crate::error::LabError;

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

pub(super) fn free_bytes(path: &Path) -> Result<u64, LabError> {
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
    fn a_text_that_is_not_there_is_none() {
        assert_eq!(read_text(Path::new("/proc/none")).unwrap(), None);
        assert!(read_text(Path::new("/proc/uptime")).unwrap().unwrap().contains('.'));
        assert!(free_bytes(Path::new("/")).unwrap() > 0);
    }
}
