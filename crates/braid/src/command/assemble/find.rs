//! Members to be looked at: those that are named, all block devices, all files of a folder.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use braid_probe::{FileKind, Place, identify};
use braid_shell::shell_path;

use crate::cli::Assemble;
use crate::command::{given, stacks};
use braid_service::failure::{Context, Failure};
use braid_service::metadata::{Metadata, MetadataError, block_devices, is_behind_another, parts};
use braid_service::refusal::said;
use braid_service::volume::{OpenOptions, Unusable, admit};

/// The members that have a superblock: of those that are named, of the places that are to be looked at, and
/// of `listed`.
///
/// # Errors
/// A member that was named has none, or may not be one; a folder cannot be read.
pub(super) fn members(assemble: &Assemble, listed: Vec<PathBuf>) -> Result<Vec<Metadata>, Failure> {
    let has_place = assemble.scan || !assemble.folders.is_empty() || assemble.mdadm_conf.is_some();
    if assemble.members.is_empty() && !has_place {
        return Err(Failure::usage("nothing says where to look")
            .next("name members, or --scan for all block devices, or --in FOLDER for its files"));
    }
    let named = given::absolute(&assemble.members)?;
    let mut found = named_members(assemble, &named)?;
    let which = |path: &PathBuf| Some((identify(path).ok()?.1, Place::of(path).ok()?.start));
    let mut seen: HashSet<_> = named.iter().filter_map(which).collect();
    let mut places = listed;
    if assemble.scan {
        places.extend(block_devices()?);
    }
    for folder in &given::absolute(&assemble.folders)? {
        places.extend(files_of(folder)?);
    }
    let mut unreadable = Vec::new();
    for path in places {
        // One device has many names; the first one counts.
        if which(&path).is_some_and(|place| seen.insert(place)) {
            let metadata = look_at(&path, &mut unreadable);
            found.extend(metadata.filter(|_| !assemble.scan || !is_behind_another(&path)));
        }
    }
    if !unreadable.is_empty() {
        eprintln!("braid: passed over, because they cannot be read: {}", unreadable.join(", "));
    }
    Ok(found)
}

/// Returns the named members. An unusable one is skipped only if an option permits the array to
/// start without it.
fn named_members(assemble: &Assemble, named: &[PathBuf]) -> Result<Vec<Metadata>, Failure> {
    if named.is_empty() {
        return Ok(Vec::new());
    }
    let may_be_missed = assemble.degraded || assemble.force || assemble.read_only;
    let without = |path: &Path| {
        let others = named.iter().filter(|other| *other != path).map(shell_path);
        format!("without it: braid assemble {} --degraded", others.collect::<Vec<_>>().join(" "))
    };
    let options = OpenOptions { read_only: true, degraded: true, ..OpenOptions::default() };
    let unusable =
        admit(&stacks::md_of(None, named)?, named, &options).map_err(|refusal| said(&refusal))?;
    let (mut found, mut failure) = (Vec::new(), None);
    for path in named {
        if let Some(Unusable { why, .. }) = unusable.iter().find(|one| one.path == *path) {
            let text = format!("{} is refused: {why}", path.display());
            if !may_be_missed {
                return Err(Failure::refused(text).next(without(path)));
            }
            eprintln!("braid: passed over: {text}");
            continue;
        }
        match Metadata::look(path) {
            Ok(metadata) => found.push(metadata),
            Err(error) if may_be_missed => {
                let error = Failure::from(error);
                eprintln!("braid: passed over: {}", error.text());
                failure = failure.or(Some(error));
            }
            // Without it, there has to be something left.
            Err(error) if !named.iter().any(|one| Metadata::look(one).is_ok()) => {
                return Err(error.into());
            }
            Err(error) => {
                let failure = Failure::from(error);
                let next = failure.next.iter().cloned().chain([without(path)]);
                let next = next.collect::<Vec<_>>().join("\n");
                return Err(failure.next(next));
            }
        }
    }
    match failure {
        Some(failure) if found.is_empty() => Err(failure),
        _ => Ok(found),
    }
}

/// Skips a device without a superblock, reports one that cannot be judged, and adds unreadable
/// ones, which may be most of a machine's disks, to `unreadable`.
fn look_at(path: &Path, unreadable: &mut Vec<String>) -> Option<Metadata> {
    match Metadata::look(path) {
        Ok(metadata) => Some(metadata),
        Err(MetadataError::NoSuperblock { .. } | MetadataError::OfPartition { .. }) => None,
        Err(MetadataError::Unreadable(_)) => {
            unreadable.push(path.display().to_string());
            None
        }
        Err(error) => {
            eprintln!("braid: passed over: {}", Failure::from(error).text());
            None
        }
    }
}

/// The regular files in a folder, not in those below it, by name.
fn files_of(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let what = format!("cannot list {}", folder.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).context(&what)? {
        let path = entry.context(&what)?.path();
        if identify(&path).is_ok_and(|(kind, _)| kind == FileKind::Regular) {
            files.push(path.clone());
            files.extend(parts(&path).into_iter().map(|(_, name)| name));
        }
    }
    files.sort();
    Ok(files)
}
