//! Stores of `cow(…)`: files that keep the changes of a device.
//!
//! ```text
//!   no file, or an empty one ──▶ as long as a store ──▶ locked ──▶ no data at all? ──▶ header written
//!   a file ───────────────────────────────────────────▶ locked ──▶ header checked
//! ```
//!
//! Invariant: a file that has data, and is no store of this device, is never written.

use std::fs::{self, File as StdFile, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use braid_device::{Access, File};
use braid_engine::decorators::{Layout, PAGE, StoreError};

use crate::file::open_file;
use crate::kind::MemberError;

/// Opens the store at `path` for the changes of a device of `origin` bytes. To be written, it is made if there is no
/// file, or an empty one.
///
/// # Errors
/// [`MemberError::Locked`] only for a file that stays locked; [`MemberError::Store`] for one that is something else.
pub fn open_store(path: &Path, access: Access, origin: u64) -> Result<File, MemberError> {
    let layout = Layout::new(origin);
    let cannot = |source| MemberError::Open { path: path.to_owned(), source };
    let is_written = access == Access::Exclusive;
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => {
            return Err(MemberError::Store { path: path.to_owned(), why: StoreError::Foreign });
        }
        Ok(found) if is_written && found.len() == 0 => lengthen(path, layout).map_err(cannot)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound && is_written => {
            lengthen(path, layout).map_err(cannot)?;
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(MemberError::NoStore { path: path.to_owned() });
        }
        Ok(found) if found.len() < PAGE => {
            return Err(MemberError::Store { path: path.to_owned(), why: StoreError::Foreign });
        }
        Ok(_) => {}
        Err(error) => return Err(cannot(error)),
    }
    let file = open_file(path, access, 0, None)?;
    match judge(path, is_written, layout).map_err(cannot)? {
        Ok(()) => Ok(file),
        Err(why) => Err(MemberError::Store { path: path.to_owned(), why }),
    }
}

/// Makes an empty file as long as a store. It takes no room.
fn lengthen(path: &Path, layout: Layout) -> io::Result<()> {
    let file =
        OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)?;
    if file.metadata()?.len() == 0 { file.set_len(layout.size()) } else { Ok(()) }
}

/// Checks the header of a store, which is locked if it `is_written`; writes that of a store without any data.
fn judge(path: &Path, is_written: bool, layout: Layout) -> io::Result<Result<(), StoreError>> {
    let file = OpenOptions::new().read(true).write(is_written).open(path)?;
    let metadata = file.metadata()?;
    let mut header = [0; PAGE as usize];
    file.read_exact_at(&mut header, 0)?;
    let is_new = metadata.len() == layout.size() && metadata.blocks() == 0;
    if is_written && is_new && header == [0; PAGE as usize] {
        file.write_all_at(&layout.header(), 0)?;
        file.sync_all()?;
        let folder = path.parent().map_or_else(PathBuf::new, Path::to_owned);
        let folder = if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder };
        StdFile::open(folder)?.sync_all()?;
        return Ok(Ok(()));
    }
    Ok(layout.check(&header, metadata.len()))
}
