//! The block devices of this machine, where members may be.

use std::fs;
use std::path::{Path, PathBuf};

use braid_probe::{Holder, find_users, served_by};

use crate::failure::{Context, Failure};

/// All block devices that the kernel knows, but for those that another process serves: the last column of
/// `/proc/partitions`, behind a heading.
///
/// # Errors
/// That cannot be read.
pub(crate) fn block_devices() -> Result<Vec<PathBuf>, Failure> {
    let text = fs::read_to_string("/proc/partitions").context("cannot read /proc/partitions")?;
    let name = |line: &str| line.split_whitespace().nth(3).map(str::to_owned);
    // A slash in a device's name is a `!` in the kernel's.
    let path = |name: String| Path::new("/dev").join(name.replace('!', "/"));
    let devices = text.lines().skip(1).filter_map(name).map(path);
    Ok(devices.filter(|path| !is_served(path)).collect())
}

/// Whether another process serves what is on the device, as braid does for a volume's. It may have
/// stopped, and then a reader of its device waits, unkillably, until it goes on.
fn is_served(path: &Path) -> bool {
    let Ok(Some(server)) = served_by(path) else { return false };
    let path = path.display();
    eprintln!(
        "braid: passed over: {path} stands on {server}, which another process serves; name it to have it looked at"
    );
    true
}

/// Whether a loop or device-mapper device has the same bytes: that one is looked at instead.
pub(crate) fn is_behind_another(path: &Path) -> bool {
    let holders = find_users(path).map(|usage| usage.holders).unwrap_or_default();
    holders.iter().any(|holder| match holder {
        Holder::BackingFile { .. } => true,
        Holder::Device { name } => name.starts_with("dm-"),
        _ => false,
    })
}
