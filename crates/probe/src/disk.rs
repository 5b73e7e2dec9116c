//! The disk that a member is, or is a partition of, and what the kernel counts of it.
//!
//! A disk is what has hardware, or what a hypervisor gives for it, behind it: sysfs shows that as `device`. Loop,
//! device-mapper, md, zram and nbd devices have none, and files lie on a file system; what is below those is not
//! looked for, because its health is not that of one member.
//!
//! Source of the counts: `drivers/scsi/scsi_sysfs.c` (`ioerr_cnt`, `iotmo_cnt`, in hexadecimal);
//! `drivers/nvme/host/sysfs.c` (`diag`, from Linux 7.2 on). virtio-blk and MMC have none.

use std::path::Path;

use crate::ProbeError;
use crate::identity::{Identity, identify};
use crate::sysfs::BlockDevice;

/// A whole disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disk {
    /// The kernel's name, such as `sda`.
    pub name: String,
    /// Commands that ended with an error. SCSI counts also what is refused and harmless, such as a question for
    /// a page that the disk does not have.
    pub errors: Option<u64>,
    /// Commands that were not answered in time.
    pub timeouts: Option<u64>,
}

/// The disk that `path` is, or is a partition of; `None` for everything else. Nothing is opened.
///
/// # Errors
/// [`ProbeError::Io`] when the path does not exist, or sysfs cannot be read.
pub fn disk_of(path: &Path) -> Result<Option<Disk>, ProbeError> {
    let (_, Identity::Block(number)) = identify(path)? else { return Ok(None) };
    let Some(disk) = BlockDevice::find(number)?.map(|device| device.whole_disk()) else {
        return Ok(None);
    };
    let count = |name: &str| parse_count(&disk.attribute(name)?);
    Ok(disk.has_hardware().then(|| Disk {
        name: disk.name(),
        errors: count("device/ioerr_cnt").or_else(|| count("diag/command_error_count")),
        timeouts: count("device/iotmo_cnt"),
    }))
}

/// SCSI's are hexadecimal, with `0x` in front.
fn parse_count(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_as_the_kernel_writes_them() {
        assert_eq!(parse_count("0x1f"), Some(31));
        assert_eq!(parse_count("12"), Some(12));
        for text in ["", "0x", "-1", "0xg", "1 2", "0x10000000000000000"] {
            assert_eq!(parse_count(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_file_is_no_disk_and_what_has_hardware_is_one() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        assert_eq!(disk_of(file.path()).expect("it is there"), None);
        assert!(disk_of(Path::new("/dev/none-of-this-name")).is_err());
        for device in
            BlockDevice::all().expect("sysfs").iter().filter(|one| one.partition().is_none())
        {
            let path = Path::new("/dev").join(device.name());
            // A container may have sysfs without the nodes.
            let Ok(found) = disk_of(&path) else { continue };
            let is_made_up = ["loop", "dm-", "md", "zram", "nbd", "ram"]
                .iter()
                .any(|prefix| device.name().starts_with(prefix));
            assert!(!(is_made_up && found.is_some()), "{found:?}");
            assert!(is_made_up || found.is_none_or(|disk| disk.name == device.name()));
        }
    }
}
