//! A file that is written anew: beside the old one, made durable, then renamed over it. Whatever happens,
//! the old file or the new one is there, whole.
//!
//! Invariant: no link is followed, also in a folder that another user may write to: the new file has a name
//! that cannot be guessed and is made only if nothing has it; a link in the old one's place is replaced itself.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A new file in the folder of another, which goes unless it takes that one's place.
pub struct Beside {
    file: File,
    path: PathBuf,
    is_placed: bool,
}

impl Beside {
    /// Makes it, for the owner alone.
    ///
    /// # Errors
    /// An error of the file system.
    pub fn create(path: &Path) -> io::Result<Beside> {
        Beside::create_with(path, 0o600)
    }

    /// Makes it with these permissions, less what the umask takes away.
    ///
    /// # Errors
    /// An error of the file system.
    pub fn create_with(path: &Path, mode: u32) -> io::Result<Beside> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let mut random = [0; 8];
        rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
        let mut hidden = OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".new-{:016x}", u64::from_le_bytes(random)));
        let path = path.with_file_name(hidden);
        let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&path)?;
        Ok(Beside { file, path, is_placed: false })
    }

    /// Writes all of a file anew.
    ///
    /// # Errors
    /// An error of the file system; the old file is as it was.
    pub fn replace(path: &Path, mode: u32, text: &[u8]) -> io::Result<()> {
        let new = Beside::create_with(path, mode)?;
        new.file().write_all(text)?;
        new.into_place(path, true).map(drop)
    }

    /// The new file, for writing.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Makes it durable, then gives it the name `path`; answers its length.
    pub fn into_place(mut self, path: &Path, replace: bool) -> io::Result<u64> {
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

/// True if a file that begins with `magic` may replace the entry at `path`: there is none, or it is a link, which is
/// replaced itself, or a file that is empty or begins with `magic`, too. A member that was named by mistake stays.
///
/// # Errors
/// The file cannot be read, or a volume uses it.
pub fn may_replace(path: &Path, magic: &[u8]) -> io::Result<bool> {
    use rustix::fs::{FlockOperation, OFlags, flock};
    // What another user puts there meanwhile is not waited for.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
            return Ok(true);
        }
        Err(error) => return Err(error),
    };
    if !file.metadata()?.is_file() {
        return Ok(false);
    }
    let mut first = Vec::new();
    (&file).take(magic.len() as u64).read_to_end(&mut first)?;
    if !first.is_empty() && first != magic {
        return Ok(false);
    }
    let busy = |_| io::Error::other("a volume uses what is there");
    flock(&file, FlockOperation::NonBlockingLockShared).map(|()| true).map_err(busy)
}

impl Drop for Beside {
    fn drop(&mut self) {
        if !self.is_placed {
            // There is nothing else to be done about it.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_in_the_way_is_replaced_and_what_it_leads_to_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, precious) = (folder.path().join("v.json"), folder.path().join("precious"));
        std::fs::write(&precious, "as it was").expect("a file");
        std::os::unix::fs::symlink(&precious, &file).expect("a link");
        Beside::replace(&file, 0o600, b"new").expect("replaced");
        assert_eq!(std::fs::read_to_string(&precious).expect("it is there"), "as it was");
        assert!(std::fs::symlink_metadata(&file).expect("it is there").is_file());
        assert_eq!(std::fs::read_to_string(&file).expect("it is there"), "new");
        let other = Beside::create(&file).expect("a file");
        let name = |one: &Beside| one.path.file_name().map(ToOwned::to_owned);
        assert_ne!(
            name(&other),
            name(&Beside::create(&file).expect("a file")),
            "no name is known before"
        );
        drop(other);
        assert_eq!(
            std::fs::read_dir(folder.path()).expect("a folder").count(),
            2,
            "nothing is left"
        );
    }
}
