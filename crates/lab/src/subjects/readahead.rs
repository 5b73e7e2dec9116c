//! Read-ahead of a block device, restored afterwards.

use braid_stack::ByteSize;

use super::hand::command;
use super::site::Site;
use super::things::Thing;
use crate::campaign::FileSystem;
use crate::error::Obstacle;

/// Unit of blockdev's counts, for every device.
const SECTOR: u64 = 512;

pub(super) fn set(
    site: &mut Site<'_>,
    device: &str,
    size: ByteSize,
    filesystem: FileSystem,
) -> Result<(), Obstacle> {
    if filesystem == FileSystem::Btrfs {
        return Err(Obstacle::Impossible(
            "btrfs reads ahead by a setting of its own and not by the device's".to_owned(),
        ));
    }
    site.needs_root("setting the read-ahead")?;
    let get = command(&["blockdev", "--getra", device]);
    let before = site.must(&get)?.stdout.trim().to_owned();
    site.hold(Thing::Readahead { device: device.to_owned(), sectors: before });
    let wanted = (size.0 / SECTOR).to_string();
    site.must(&command(&["blockdev", "--setra", &wanted, device]))?;
    let found = site.must(&get)?.stdout.trim().to_owned();
    if found == wanted {
        return Ok(());
    }
    Err(Obstacle::Impossible(format!(
        "the kernel took a read-ahead of {found} sectors of 512 bytes for {device} and not {wanted}"
    )))
}
