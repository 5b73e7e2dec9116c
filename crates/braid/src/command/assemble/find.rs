//! Members to be looked at: those that are named, all block devices, all files of a folder.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use braid_probe::{FileKind, Holder, Policy, check_members, find_users, identify, served_by};

use crate::cli::Assemble;
use crate::command::given;
use crate::failure::{Context, Failure};
use crate::metadata::{Metadata, MetadataError};

/// The members that have a superblock.
///
/// # Errors
/// A member that was named has none, or may not be one; a folder cannot be read.
pub(super) fn members(assemble: &Assemble) -> Result<Vec<Metadata>, Failure> {
    if assemble.members.is_empty() && !assemble.scan && assemble.folders.is_empty() {
        return Err(Failure::usage("nothing says where to look")
            .next("name members, or --scan for all block devices, or --in FOLDER for its files"));
    }
    let named = given::absolute(&assemble.members)?;
    let policy = Policy { force: &named, read_only: true, min_bytes: 0 };
    check_members(&named, &policy).map_err(Failure::refused)?;
    let mut found: Vec<Metadata> = named
        .iter()
        .map(|path| Metadata::read(path).map_err(Failure::failed))
        .collect::<Result<_, _>>()?;
    let mut seen: HashSet<_> =
        named.iter().filter_map(|path| identify(path).ok()).map(|(_, id)| id).collect();
    let mut places = Vec::new();
    if assemble.scan {
        places.extend(block_devices()?.into_iter().filter(|path| !is_served(path)));
    }
    for folder in &given::absolute(&assemble.folders)? {
        places.extend(files_of(folder)?);
    }
    for path in places {
        // One device has many names; the first one counts.
        if identify(&path).is_ok_and(|(_, identity)| seen.insert(identity)) {
            found.extend(look_at(&path).filter(|_| !assemble.scan || !is_behind_another(&path)));
        }
    }
    Ok(found)
}

/// What has no superblock is passed over; what cannot be judged is named.
fn look_at(path: &Path) -> Option<Metadata> {
    match Metadata::read(path) {
        Ok(metadata) => Some(metadata),
        Err(MetadataError::NoSuperblock { .. }) => None,
        Err(error) => {
            eprintln!("braid: passed over: {error}");
            None
        }
    }
}

/// Whether another process serves what is on the device, as braid does for a volume's. It may have
/// stopped, and then a reader of its device waits, unkillably, until it goes on.
fn is_served(path: &Path) -> bool {
    let Ok(Some(server)) = served_by(path) else { return false };
    let path = path.display();
    eprintln!(
        "braid: passed over: {path} stands on {server}, which another process serves; name it to have it looked at"
    );
    true
}

/// Whether a loop or device-mapper device has the same bytes: that one is looked at instead.
fn is_behind_another(path: &Path) -> bool {
    let holders = find_users(path).map(|usage| usage.holders).unwrap_or_default();
    holders.iter().any(|holder| match holder {
        Holder::BackingFile { .. } => true,
        Holder::Device { name } => name.starts_with("dm-"),
        _ => false,
    })
}

/// All block devices that the kernel knows: the last column of `/proc/partitions`, behind a
/// heading.
fn block_devices() -> Result<Vec<PathBuf>, Failure> {
    let text = fs::read_to_string("/proc/partitions").context("cannot read /proc/partitions")?;
    let name = |line: &str| line.split_whitespace().nth(3).map(str::to_owned);
    // A slash in a device's name is a `!` in the kernel's.
    let path = |name: String| Path::new("/dev").join(name.replace('!', "/"));
    Ok(text.lines().skip(1).filter_map(name).map(path).collect())
}

/// The regular files in a folder, not in those below it, by name.
fn files_of(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let what = format!("cannot list {}", folder.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).context(&what)? {
        let path = entry.context(&what)?.path();
        if identify(&path).is_ok_and(|(kind, _)| kind == FileKind::Regular) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
