//! Room for what is written beside the data while an array is used.
//!
//! A log in a hole of an image file needs blocks of the file system when it is first written, and
//! by then it may be full: every small write would take its member out, though its own data has a
//! place. So the areas are allocated when the array is made, and when a member comes.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use braid_probe::Place;
use braid_stack::Stack;
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;

use crate::failure::{Context, Failure};

/// Bytes that are copied at once if the file system cannot allocate.
const STEP: u64 = 1 << 20;

/// Allocates these parts, offset and length in bytes, of a regular file; what they hold stays. A
/// block device has all of its blocks; those of a remote member are its server's.
///
/// # Errors
/// The file system has no room, or the file cannot be written.
pub fn allocate(path: &Path, areas: &[(u64, u64)]) -> Result<(), Failure> {
    if Stack::remote_called(path).is_some() {
        return Ok(());
    }
    let place = Place::of(path).map_err(Failure::failed)?;
    let is_file = || std::fs::metadata(&place.path).map(|metadata| metadata.is_file());
    if areas.is_empty() || !is_file().context(format_args!("cannot look at {}", path.display()))? {
        return Ok(());
    }
    let work = || -> io::Result<()> {
        let file = OpenOptions::new().read(true).write(true).open(&place.path)?;
        let size = place.size_in(file.metadata()?.len())?;
        for &(offset, len) in areas {
            // An area is cut at the end of the file: whether it fits is checked where it is planned.
            let len = len.min(size.saturating_sub(offset));
            if len == 0 {
                continue;
            }
            let offset = place.start + offset;
            match fallocate(&file, FallocateFlags::KEEP_SIZE, offset, len) {
                Err(Errno::OPNOTSUPP | Errno::NOSYS) => rewrite(&file, offset, len)?,
                result => result?,
            }
        }
        file.sync_all()
    };
    work().map_err(|error| {
        Failure::failed(format!("{}: no room for its log: {error}", path.display()))
            .next("make room in its file system")
    })
}

/// Writes what is there, which allocates it.
fn rewrite(file: &std::fs::File, offset: u64, len: u64) -> io::Result<()> {
    let mut at = offset;
    while at < offset + len {
        let mut bytes = vec![0; STEP.min(offset + len - at) as usize];
        file.read_exact_at(&mut bytes, at)?;
        file.write_all_at(&bytes, at)?;
        at += bytes.len() as u64;
    }
    Ok(())
}
