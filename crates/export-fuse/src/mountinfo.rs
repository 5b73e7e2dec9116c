//! Mounts as `/proc/PID/mountinfo` names them, without asking the file systems.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use braid_probe::{Mount, parse_mounts};

/// The mounts of this process's namespace, in the order in which they were made.
///
/// # Errors
/// When `/proc` cannot be read.
pub(crate) fn read_own() -> io::Result<Vec<Mount>> {
    Ok(parse_mounts(&fs::read("/proc/self/mountinfo")?))
}

/// Mount points of block device `number`, or of the device node `path`, in other namespaces
/// than this process's, each with a process that sees it.
pub(crate) fn find_elsewhere(number: (u32, u32), path: &Path) -> io::Result<Vec<(u32, PathBuf)>> {
    let namespace = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/mnt")).ok();
    let mut seen = vec![namespace("self")];
    let mut found = Vec::new();
    for process in fs::read_dir("/proc")? {
        let name = process?.file_name();
        let Some(pid) = name.to_str().filter(|name| name.parse::<u32>().is_ok()) else { continue };
        let namespace = namespace(pid);
        if namespace.is_none() || seen.contains(&namespace) {
            continue;
        }
        // A process that ended meanwhile has no mounts.
        let Ok(bytes) = fs::read(format!("/proc/{pid}/mountinfo")) else { continue };
        seen.push(namespace);
        let pid = pid.parse().expect("digits, as checked above");
        let held = parse_mounts(&bytes).into_iter().filter(|mount| is_of(mount, number, path));
        found.extend(held.map(|mount| (pid, mount.mount_point)));
    }
    Ok(found)
}

/// Returns true if a mount is a file system on the device. Some (btrfs) have device numbers of their own, and
/// name the device as their source.
pub(crate) fn is_of(mount: &Mount, (major, minor): (u32, u32), path: &Path) -> bool {
    (mount.device.major, mount.device.minor) == (major, minor) || mount.source == path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_told_by_its_number_or_its_path() {
        let mounts = parse_mounts(b"37 35 7:3 / /mnt rw - ext4 /dev/loop3 rw\n");
        let is_of = |number, path: &str| is_of(&mounts[0], number, Path::new(path));
        assert!(is_of((7, 3), ""));
        assert!(is_of((0, 40), "/dev/loop3"));
        assert!(!is_of((7, 4), "/dev/loop4"));
    }

    #[test]
    fn this_process_has_mounts() {
        assert!(read_own().unwrap().iter().any(|mount| mount.kind == "proc"));
    }
}
