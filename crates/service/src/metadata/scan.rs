//! The block devices of this machine, where members may be.

use std::fs;
use std::path::{Path, PathBuf};

use braid_probe::{Holder, find_users_by_kernel, served_by};

use crate::failure::{Context, Failure};

/// All block devices that the kernel knows, but for those that another process serves: the last column of
/// `/proc/partitions`, behind a heading.
///
/// # Errors
/// The error of reading that file.
pub fn block_devices() -> Result<Vec<PathBuf>, Failure> {
    let text = fs::read_to_string("/proc/partitions").context("cannot read /proc/partitions")?;
    let name = |line: &str| line.split_whitespace().nth(3).map(str::to_owned);
    // A slash in a device's name is a `!` in the kernel's.
    let path = |name: String| Path::new("/dev").join(name.replace('!', "/"));
    let mut devices: Vec<PathBuf> = text.lines().skip(1).filter_map(name).map(path).collect();
    // Their processes may have stopped, and then a reader of such a device waits, unkillably, until they go on.
    let mut served = Vec::new();
    devices.retain(|path| {
        let server = served_by(path).ok().flatten();
        served.extend(server.iter().map(|server| format!("{} (by {server})", path.display())));
        server.is_none()
    });
    // The devices of volumes that are up are no news.
    served.retain(|one| !one.contains("(by braid:"));
    if !served.is_empty() {
        eprintln!(
            "braid: passed over, because other processes serve them: {}; name one to have it looked at",
            served.join(", ")
        );
    }
    Ok(devices)
}

/// Returns true if a loop or device-mapper device has the same bytes: that one is examined instead.
pub fn is_behind_another(path: &Path) -> bool {
    let holders = find_users_by_kernel(path).map(|usage| usage.holders).unwrap_or_default();
    holders.iter().any(|holder| match holder {
        Holder::BackingFile { .. } => true,
        Holder::Device { name } => name.starts_with("dm-"),
        _ => false,
    })
}
