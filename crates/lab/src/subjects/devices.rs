//! Names of block devices.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::campaign::Source;
use crate::facts::{Place, place_members, real_path};

/// Returns the kernel's name of a block device: `loop3`, `md127`.
pub(super) fn kernel_name(device: &Path) -> Option<String> {
    let device = real_path(device);
    let name = device.strip_prefix("/dev").ok()?.file_name()?;
    Some(name.to_string_lossy().into_owned())
}

/// Returns the path of a `/sys` file that describes a loop device.
pub(super) fn sys_file(device: &str, name: &str) -> PathBuf {
    let device = Path::new(device).file_name().unwrap_or_default();
    Path::new("/sys/block").join(device).join("loop").join(name)
}

/// Returns the kernel names of the whole disks that carry a subject's members, each once.
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
    fn only_devices_have_names() {
        assert_eq!(kernel_name(Path::new("/dev/loop77")), Some("loop77".to_owned()));
        assert_eq!(kernel_name(Path::new("/srv/a.img")), None);
    }
}
