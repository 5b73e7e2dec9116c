//! `/proc/PID/mountinfo`, which says what is mounted where without asking the file systems.
//!
//! ```text
//!  36 35 0:52 / /run/braid/x rw,nosuid shared:3 - fuse.braid braid:x rw,user_id=0
//!        dev  root point     options optional     type       source
//! ```
//!
//! Source: the kernel's `Documentation/filesystems/proc.rst`, 3.5. Deliberately absent: every
//! field that is not used here.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// One mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Major and minor number of the file system's device.
    pub(crate) device: (u32, u32),
    /// Where.
    pub(crate) point: PathBuf,
    /// Type, such as `ext4`.
    pub(crate) kind: String,
    /// What was mounted: usually a device's path.
    pub(crate) source: PathBuf,
}

/// The mounts of this process's namespace, in the order in which they were made.
///
/// # Errors
/// When `/proc` cannot be read.
pub(crate) fn read_own() -> io::Result<Vec<Entry>> {
    Ok(parse(&fs::read("/proc/self/mountinfo")?))
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
        let held = parse(&bytes).into_iter().filter(|entry| entry.is_of(number, path));
        found.extend(held.map(|entry| (pid, entry.point)));
    }
    Ok(found)
}

impl Entry {
    /// Whether this is a file system on the device. Some (btrfs) have device numbers of their
    /// own, and name the device as their source.
    pub(crate) fn is_of(&self, number: (u32, u32), path: &Path) -> bool {
        self.device == number || self.source == path
    }
}

fn parse(bytes: &[u8]) -> Vec<Entry> {
    bytes.split(|byte| *byte == b'\n').filter_map(parse_line).collect()
}

fn parse_line(line: &[u8]) -> Option<Entry> {
    let mut fields = line.split(|byte| *byte == b' ');
    let device = std::str::from_utf8(fields.nth(2)?).ok()?;
    let (major, minor) = device.split_once(':')?;
    let device = (major.parse().ok()?, minor.parse().ok()?);
    let point = unescape(fields.nth(1)?);
    // Options, then any number of optional fields, then `-`.
    fields.find(|field| *field == b"-")?;
    let kind = String::from_utf8_lossy(fields.next()?).into_owned();
    let source = unescape(fields.next()?);
    Some(Entry { device, point, kind, source })
}

/// Undoes `\040` and its like.
fn unescape(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [first, tail @ ..] = rest {
        let digits = tail.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        match (first, digits.and_then(|digits| u8::from_str_radix(digits, 8).ok())) {
            (b'\\', Some(byte)) => {
                bytes.push(byte);
                rest = &tail[3..];
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_with_optional_fields_and_escapes() {
        let bytes =
            br"36 35 0:52 / /run/a\040b\134 rw,nosuid shared:3 master:1 - fuse.braid braid:x rw
short line
37 35 7:3 / /mnt rw - ext4 /dev/loop3 rw
";
        let entries = parse(bytes);
        assert_eq!(entries.len(), 2);
        assert_eq!(entries[0].device, (0, 52));
        assert_eq!(entries[0].point, Path::new("/run/a b\\"));
        assert_eq!(entries[0].kind, "fuse.braid");
        assert_eq!(entries[0].source, Path::new("braid:x"));
        assert!(entries[1].is_of((7, 3), Path::new("")));
        assert!(entries[1].is_of((0, 40), Path::new("/dev/loop3")));
        assert!(!entries[1].is_of((7, 4), Path::new("/dev/loop4")));
    }

    #[test]
    fn this_process_has_mounts() {
        assert!(read_own().unwrap().iter().any(|entry| entry.kind == "proc"));
    }
}
