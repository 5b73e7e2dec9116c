//! The mount of a path, by the text of `/proc/self/mountinfo`.

use std::path::Path;

use braid_probe::{Mount, parse_mounts};

use super::real_path;

/// Returns the mount of a path: the deepest above it, and the last of several.
pub(crate) fn mount_of(path: &Path, table: &str) -> Option<Mount> {
    braid_probe::mount_of(&real_path(path), &parse_mounts(table.as_bytes())).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw,discard\n\
         36 22 0:35 / /mnt/with\\040blank rw,noatime - btrfs /dev/sdb rw,compress=zstd:3,subvol=/\n\
         41 22 7:1 / /mnt/twice rw - ext4 /dev/loop1 rw\n\
         42 22 7:2 / /mnt/twice ro - xfs /dev/loop2 ro,attr2\n";

    #[test]
    fn a_path_lies_on_the_deepest_mount_above_it_and_sees_the_last() {
        let found = |path: &str| {
            let mount = mount_of(Path::new(path), TABLE).unwrap();
            (mount.mount_point.display().to_string(), format!("{} {}", mount.kind, mount.options))
        };
        let [root, blank, twice] = [
            ("/", "ext4 rw,relatime,discard"),
            ("/mnt/with blank", "btrfs rw,noatime,compress=zstd:3,subvol=/"),
            ("/mnt/twice", "xfs ro,attr2"),
        ]
        .map(|(point, how)| (point.to_owned(), how.to_owned()));
        assert_eq!(found("/mnt/with blank/z"), blank);
        assert_eq!(found("/mnt/twice"), twice);
        assert_eq!(found("/mnt/twicer"), root);
        assert_eq!(mount_of(Path::new("/nowhere"), ""), None);
    }
}
