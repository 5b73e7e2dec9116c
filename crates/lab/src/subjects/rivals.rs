//! Who cannot be up together: subjects that share a member's path. And names of devices.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::campaign::Source;
use crate::facts::{Member, Place, members_of, place_members};
use crate::safety::real_path;

/// The paths that a subject takes for itself.
pub(super) fn paths_of(source: &Source) -> BTreeSet<PathBuf> {
    // A folder is shared with whoever works in it.
    if matches!(source, Source::Directory(_)) {
        return BTreeSet::new();
    }
    let paths = members_of(source).into_iter().filter_map(|member| match member {
        Member::Path(path) => Some(real_path(Path::new(&path))),
        _ => None,
    });
    paths.collect()
}

/// The kernel's name of a block device: `loop3`, `md127`.
pub(super) fn kernel_name(device: &Path) -> Option<String> {
    let device = real_path(device);
    let name = device.strip_prefix("/dev").ok()?.file_name()?;
    Some(name.to_string_lossy().into_owned())
}

/// Kernel names of the whole disks that carry a subject's members, each once.
pub(super) fn disks_of(source: &Source) -> Vec<String> {
    let names = place_members(source).into_iter().filter_map(|placed| match placed.place {
        Place::Disk(disk) => Some(disk.name),
        _ => None,
    });
    names.collect::<BTreeSet<_>>().into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_a_path_are_one() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.img");
        std::fs::write(&file, b"").unwrap();
        let other = dir.path().join(".").join("a.img");
        let source = |path: &Path| Source::Stack(format!("raid1({}, ram(1M))", path.display()));
        assert_eq!(paths_of(&source(&file)), paths_of(&source(&other)));
        assert_eq!(paths_of(&source(&file)).len(), 1);
        assert!(paths_of(&Source::Directory(dir.path().display().to_string())).is_empty());
    }

    #[test]
    fn only_devices_have_names() {
        assert_eq!(kernel_name(Path::new("/dev/loop77")), Some("loop77".to_owned()));
        assert_eq!(kernel_name(Path::new("/srv/a.img")), None);
    }
}
