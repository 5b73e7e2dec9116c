//! A file that is written anew: beside the old one, made durable, then renamed over it. Whatever happens,
//! the old file or the new one is there, whole.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A new file in the folder of another, which goes unless it takes that one's place.
pub(super) struct Beside {
    file: File,
    path: PathBuf,
    is_placed: bool,
}

impl Beside {
    /// Makes it, for the owner alone.
    ///
    /// # Errors
    /// What the file system answers.
    pub(super) fn create(path: &Path) -> io::Result<Beside> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let mut hidden = OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".new-{}", std::process::id()));
        let path = path.with_file_name(hidden);
        // One that an earlier process of this number left.
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        Ok(Beside { file, path, is_placed: false })
    }

    /// What it is to hold is written to it.
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Makes it durable, then gives it the name `path`; answers its length.
    pub(super) fn into_place(mut self, path: &Path, replace: bool) -> io::Result<u64> {
        self.file.sync_all()?;
        let len = self.file.metadata()?.len();
        match replace {
            true => std::fs::rename(&self.path, path)?,
            false => {
                let flags = rustix::fs::RenameFlags::NOREPLACE;
                let here = rustix::fs::CWD;
                rustix::fs::renameat_with(here, &self.path, here, path, flags)?;
            }
        }
        self.is_placed = true;
        let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
        Ok(len)
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        if !self.is_placed {
            // There is nothing else to be done about it.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
