//! `/proc/self/mountinfo`: the file system under a folder and how it is mounted.
//!
//! ```text
//! 36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - btrfs /dev/sdb rw,compress=zstd:3
//!                  where options               kind  source   options of the file system
//! ```

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Kind and options of what is mounted at a place, as `btrfs rw,noatime,compress=zstd:3`. Of
/// several mounts at one place the last is what is seen.
pub(super) fn find_mount(table: &str, place: &Path) -> Option<String> {
    table.lines().rev().find_map(|line| {
        let (mount, system) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(4);
        if OsStr::from_bytes(&unescape(mount.next()?)) != place.as_os_str() {
            return None;
        }
        let mut system = system.split(' ');
        let (kind, _source) = (system.next()?, system.next()?);
        let mut options: Vec<&str> = Vec::new();
        let words = [mount.next(), system.next()].into_iter().flatten();
        for option in words.flat_map(|words| words.split(',')) {
            if !options.contains(&option) {
                options.push(option);
            }
        }
        Some(format!("{kind} {}", options.join(",")))
    })
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
