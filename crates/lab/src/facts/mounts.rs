//! `/proc/self/mountinfo`: what is mounted where, and how.
//!
//! ```text
//! 36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - btrfs /dev/sdb rw,compress=zstd:3
//!       number     point own options           kind  source   options of the file system
//! ```

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use super::real_path;

/// One line of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount {
    /// The device's number, `8:16`.
    pub(super) number: String,
    /// Where it is.
    pub(crate) point: PathBuf,
    /// Kind of the file system.
    pub(crate) kind: String,
    /// What is mounted.
    pub(super) source: String,
    /// Its own and those of the file system, each once.
    pub(crate) options: String,
}

impl Mount {
    fn parse(line: &str) -> Option<Self> {
        let (mount, system) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(2);
        let (number, _root, point) = (mount.next()?, mount.next()?, mount.next()?);
        let mut system = system.split(' ');
        let (kind, source) = (system.next()?, system.next()?);
        let mut options: Vec<&str> = Vec::new();
        let words = [mount.next(), system.next()].into_iter().flatten();
        for option in words.flat_map(|words| words.split(',')) {
            if !options.contains(&option) {
                options.push(option);
            }
        }
        Some(Self {
            number: number.to_owned(),
            point: OsString::from_vec(unescape(point)).into(),
            kind: kind.to_owned(),
            source: source.to_owned(),
            options: options.join(","),
        })
    }
}

/// All mounts, first to last: of several at one place the last is what is seen.
pub(super) fn mounts(table: &str) -> impl Iterator<Item = Mount> {
    table.lines().filter_map(Mount::parse)
}

/// The mount that a path lies on: the deepest above it, and of several there the last.
pub(crate) fn mount_of(path: &Path, table: &str) -> Option<Mount> {
    let path = real_path(path);
    mounts(table)
        .filter(|mount| path.starts_with(&mount.point))
        .max_by_key(|mount| mount.point.components().count())
}

/// Blanks, tabs, line ends and backslashes are written as `\040` and the like.
fn unescape(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let code = bytes.get(at + 1..at + 4).filter(|_| byte == b'\\').and_then(octal);
        out.push(code.unwrap_or(byte));
        at += if code.is_some() { 4 } else { 1 };
    }
    out
}

fn octal(digits: &[u8]) -> Option<u8> {
    u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok()
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
            (mount.point.display().to_string(), format!("{} {}", mount.kind, mount.options))
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

    #[test]
    fn nearly_a_table_is_no_panic() {
        for end in 0..TABLE.len() {
            for line in [&TABLE[end..], &TABLE[..end]] {
                drop(mount_of(Path::new("/"), line));
            }
        }
        assert_eq!(unescape("\\04"), b"\\04");
    }
}
