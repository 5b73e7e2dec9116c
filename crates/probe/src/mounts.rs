//! `/proc/self/mountinfo` and `/proc/swaps`.
//!
//! ```text
//!  36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue
//!        dev  root  mount point      optional   type source    of the file system
//! ```
//!
//! Source: the kernel's `Documentation/filesystems/proc.rst`, 3.5. Space, tab, newline and backslash
//! in a field are `\040`, `\011`, `\012` and `\134`.
//!
//! Invariant: no path is looked up that leads through a file system of another process or machine ([`may_be`],
//! [`waits_for_others`], [`leads_to`]). Such a server may be stopped, and then every request, even for a file's
//! attributes, waits until it continues.
//!
//! Deliberately absent: other mount namespaces. A file system that is mounted only there is still held
//! exclusively, which the `O_EXCL` test finds.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::ProbeError;
use crate::identity::{DeviceNumber, FileKind, Identity, identify};

const MOUNTINFO: &str = "/proc/self/mountinfo";
const SWAPS: &str = "/proc/swaps";

/// One mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// The file system's device; anonymous for btrfs and others.
    pub device: DeviceNumber,
    /// Directory that it is mounted on.
    pub mount_point: PathBuf,
    /// Its type, such as `ext4`.
    pub kind: String,
    /// The mounted source: a device node, or any other word.
    pub source: PathBuf,
    /// The options of the mount and those of the file system, each once, with commas between them.
    pub options: String,
}

impl Mount {
    /// The block device under it: by number, or for a file system with an anonymous number by its
    /// source. `None` for file systems without a device.
    pub(crate) fn block_device(&self, mounts: &[Mount]) -> Option<DeviceNumber> {
        if !self.device.is_anonymous() {
            return Some(self.device);
        }
        if !self.source.is_absolute() || waits_for_others(&self.source, mounts) {
            return None;
        }
        match identify(&self.source) {
            Ok((FileKind::Block, Identity::Block(number))) => Some(number),
            // A source that is gone, or no device at all, names no block device.
            _ => None,
        }
    }

    /// True if its requests wait for another process (FUSE, virtiofs) or machine.
    pub(crate) fn is_served_elsewhere(&self) -> bool {
        const OTHERS: [&str; 9] =
            ["fuse", "fuseblk", "virtiofs", "nfs", "nfs4", "cifs", "smb3", "9p", "ceph"];
        OTHERS.contains(&self.kind.as_str()) || self.kind.starts_with("fuse.")
    }
}

/// True if a look at `path`, which the kernel named (absolute, resolved), may wait for another process or
/// machine. Only the table of mounts is used.
pub(crate) fn waits_for_others(path: &Path, mounts: &[Mount]) -> bool {
    mount_of(path, mounts).is_some_and(Mount::is_served_elsewhere)
}

/// True if `path`, which the kernel named, may be `identity`, so that it is worth a look. If another process or
/// machine serves its file system, it can only be a file of that same file system, which the caller has already
/// looked at.
pub(crate) fn may_be(path: &Path, identity: Identity, mounts: &[Mount]) -> bool {
    match (mount_of(path, mounts), identity) {
        (Some(mount), Identity::File { device, .. }) if mount.is_served_elsewhere() => {
            mount.device == device
        }
        (Some(mount), Identity::Block(_)) => !mount.is_served_elsewhere(),
        _ => true,
    }
}

/// True if `path` leads to the file with this device number and inode (`st_dev`, `st_ino`); `None` if a look
/// would wait for another process or machine, or if it cannot be determined.
///
/// # Errors
/// [`ProbeError`] when the table of mounts cannot be read.
pub fn leads_to(path: &Path, (device, inode): (u64, u64)) -> Result<Option<bool>, ProbeError> {
    let path = &braid_stack::path_of(path);
    // Only the folders that the path names: a link may lead anywhere.
    if waits_for_others(path, &read_mounts()?) {
        return Ok(None);
    }
    let is_link = |part: &Path| fs::symlink_metadata(part).is_ok_and(|part| part.is_symlink());
    if path.ancestors().any(is_link) {
        return Ok(None);
    }
    Ok(match fs::metadata(path) {
        Ok(there) => Some((there.dev(), there.ino()) == (device, inode)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Some(false),
        Err(_) => None,
    })
}

/// All mounts of this process's namespace, in mount order.
pub(crate) fn read_mounts() -> Result<Vec<Mount>, ProbeError> {
    let bytes = fs::read(MOUNTINFO).map_err(ProbeError::io("read", Path::new(MOUNTINFO)))?;
    lines(&bytes)
        .map(|line| {
            parse_mount(line).ok_or_else(|| ProbeError::Malformed {
                file: MOUNTINFO,
                line: String::from_utf8_lossy(line).into_owned(),
            })
        })
        .collect()
}

/// The files and devices that are swapped to.
pub(crate) fn read_swaps() -> Result<Vec<PathBuf>, ProbeError> {
    match fs::read(SWAPS) {
        Ok(bytes) => Ok(parse_swaps(&bytes)),
        // A kernel without swap has no such file.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(ProbeError::io("read", Path::new(SWAPS))(error)),
    }
}

/// The mounts in a table of the form of `/proc/PID/mountinfo`, in mount order. Lines that cannot be read are
/// left out.
#[must_use]
pub fn parse_mounts(table: &[u8]) -> Vec<Mount> {
    lines(table).filter_map(parse_mount).collect()
}

/// The mount that holds `path`, which is absolute and resolved: the longest mount point wins, the
/// latest mount wins between equals.
#[must_use]
pub fn mount_of<'a>(path: &Path, mounts: &'a [Mount]) -> Option<&'a Mount> {
    mounts
        .iter()
        .filter(|mount| path.starts_with(&mount.mount_point))
        .max_by_key(|mount| mount.mount_point.components().count())
}

fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty())
}

fn parse_mount(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|byte| *byte == b' ');
    let number = std::str::from_utf8(fields.nth(2)?).ok()?;
    let (major, minor) = number.split_once(':')?;
    let device = DeviceNumber { major: major.parse().ok()?, minor: minor.parse().ok()? };
    let mount_point = unescape(fields.nth(1)?);
    let own = fields.next()?;
    // Any number of optional fields, then `-`.
    fields.find(|field| *field == b"-")?;
    let kind = String::from_utf8_lossy(fields.next()?).into_owned();
    let source = unescape(fields.next()?);
    let both = [own, fields.next().unwrap_or_default()].map(String::from_utf8_lossy);
    let mut options: Vec<&str> = Vec::new();
    for option in both.iter().flat_map(|one| one.split(',')) {
        if !option.is_empty() && !options.contains(&option) {
            options.push(option);
        }
    }
    let options = options.join(",");
    Some(Mount { device, mount_point, kind, source, options })
}

/// The first column of every line but the heading; a deleted swap file ends in `\040(deleted)`.
fn parse_swaps(bytes: &[u8]) -> Vec<PathBuf> {
    lines(bytes)
        .skip(1)
        .filter_map(|line| line.split(u8::is_ascii_whitespace).next())
        .map(unescape)
        .collect()
}

/// Undoes the kernel's octal escapes.
fn unescape(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&byte, tail)) = rest.split_first() {
        match (byte, octal(tail)) {
            (b'\\', Some(value)) => {
                bytes.push(value);
                rest = &tail[3..];
            }
            _ => {
                bytes.push(byte);
                rest = tail;
            }
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}

/// The value of three leading octal digits.
fn octal(digits: &[u8]) -> Option<u8> {
    let digits = std::str::from_utf8(digits.get(..3)?).ok()?;
    u8::from_str_radix(digits, 8).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_line_with_optional_fields_and_escapes() {
        let line =
            br"36 35 98:1 /mnt1 /mnt\040two\134 rw,noatime master:1 shared:3 - ext3 /dev/a\011b rw,errors=continue";
        let expected = Mount {
            device: DeviceNumber { major: 98, minor: 1 },
            mount_point: PathBuf::from("/mnt two\\"),
            kind: "ext3".to_owned(),
            source: PathBuf::from("/dev/a\tb"),
            options: "rw,noatime,errors=continue".to_owned(),
        };
        assert_eq!(parse_mount(line), Some(expected));
        let table = [line, &b"\nshort line\n"[..], line].concat();
        assert_eq!(parse_mounts(&table).len(), 2, "a line that is none is left out");
        for end in 0..table.len() {
            drop(parse_mounts(&table[..end]));
            drop(parse_mounts(&table[end..]));
        }
    }

    #[test]
    fn swaps_without_the_heading() {
        let text = b"Filename\t\t\t\tType\t\tSize\n/dev/sda2                               partition\t8\n/swap\\040file file 8\n";
        assert_eq!(parse_swaps(text), [PathBuf::from("/dev/sda2"), PathBuf::from("/swap file")]);
    }

    #[test]
    fn the_innermost_mount_wins() {
        let mount = |minor, point: &str| Mount {
            device: DeviceNumber { major: 8, minor },
            mount_point: PathBuf::from(point),
            kind: "ext4".to_owned(),
            source: PathBuf::from("x"),
            options: String::new(),
        };
        let mounts = [mount(1, "/"), mount(2, "/srv"), mount(3, "/srv"), mount(4, "/srv2")];
        let minor = |path: &str| mount_of(Path::new(path), &mounts).map(|mount| mount.device.minor);
        assert_eq!(minor("/srv/a"), Some(3));
        assert_eq!(minor("/srv2/a"), Some(4));
        assert_eq!(minor("/var/a"), Some(1));
    }

    #[test]
    fn what_others_serve_is_looked_at_only_for_a_file_of_its_own() {
        let mount = |minor, point: &str, kind: &str| Mount {
            device: DeviceNumber { major: 0, minor },
            mount_point: PathBuf::from(point),
            kind: kind.to_owned(),
            source: PathBuf::from("/run/x/deep"),
            options: String::new(),
        };
        let mounts = [mount(1, "/", "btrfs"), mount(2, "/run/x", "fuse.braid")];
        let file = |minor| Identity::File { device: DeviceNumber { major: 0, minor }, inode: 2 };
        let look = |path: &str, identity| may_be(Path::new(path), identity, &mounts);
        assert!(!look("/run/x/volume", file(1)));
        assert!(look("/run/x/volume", file(2)));
        assert!(!look("/run/x/volume", Identity::Block(DeviceNumber { major: 7, minor: 0 })));
        assert!(look("/run/y", file(9)), "btrfs gives each subvolume a number of its own");
        assert_eq!(mounts[0].block_device(&mounts), None, "its source is not looked at");
        for (kind, elsewhere) in [("fuse", true), ("fuseblk", true), ("nfs4", true), ("xfs", false)]
        {
            assert_eq!(mount(1, "/", kind).is_served_elsewhere(), elsewhere, "{kind}");
        }
    }
}
