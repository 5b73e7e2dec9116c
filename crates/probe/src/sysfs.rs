//! A block device as `/sys/dev/block/MAJOR:MINOR` describes it.
//!
//! ```text
//!  /sys/devices/…/block/sda/            queue/  device/  holders/  slaves/     a whole disk
//!  /sys/devices/…/block/sda/sda1/       partition        holders/  start       its partition
//! ```
//!
//! Source: the kernel's `Documentation/ABI/stable/sysfs-block`.
//!
//! Invariants: a descriptive attribute that is absent or unreadable is `None` (many drivers do not
//! have it); a list that safety depends on (holders, partitions) is either complete or an error.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::ProbeError;
use crate::identity::DeviceNumber;

const BY_NUMBER: &str = "/sys/dev/block";

/// A block device that sysfs knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockDevice {
    /// The resolved directory below `/sys/devices`.
    directory: PathBuf,
}

impl BlockDevice {
    /// The device with this number; `None` when sysfs does not have it (not mounted, or anonymous).
    ///
    /// # Errors
    /// [`ProbeError::Io`] when sysfs cannot be read.
    pub fn find(number: DeviceNumber) -> Result<Option<Self>, ProbeError> {
        Self::resolve(&Path::new(BY_NUMBER).join(number.to_string()))
    }

    /// The device that `directory` below `/sys/devices` describes.
    #[must_use]
    pub fn at(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// The device with this name in `/sys/class/block`.
    pub(crate) fn find_name(name: &str) -> Result<Option<Self>, ProbeError> {
        Self::resolve(&Path::new("/sys/class/block").join(name))
    }

    fn resolve(link: &Path) -> Result<Option<Self>, ProbeError> {
        match fs::canonicalize(link) {
            Ok(directory) => Ok(Some(Self { directory })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(ProbeError::io("look at", link)(error)),
        }
    }

    /// The kernel's name, such as `sda1`.
    #[must_use]
    pub fn name(&self) -> String {
        let name = self.directory.file_name().unwrap_or_default().to_string_lossy();
        // `cciss!c0d0` is the device node `cciss/c0d0`.
        name.replace('!', "/")
    }

    /// The names of the folders that lead to it, from `/sys` on.
    pub(crate) fn components(&self) -> impl Iterator<Item = String> + '_ {
        self.directory.iter().map(|part| part.to_string_lossy().into_owned())
    }

    /// Its number; `None` when sysfs does not tell it.
    #[must_use]
    pub fn number(&self) -> Option<DeviceNumber> {
        let text = self.attribute("dev")?;
        let (major, minor) = text.split_once(':')?;
        Some(DeviceNumber { major: major.parse().ok()?, minor: minor.parse().ok()? })
    }

    /// The trimmed text of an attribute; `None` when it is absent, unreadable or empty.
    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<String> {
        read_attribute(&self.directory.join(name))
    }

    /// All block devices, by name.
    pub(crate) fn all() -> Result<Vec<Self>, ProbeError> {
        let names = list(Path::new("/sys/class/block"))?;
        // One that went meanwhile is none.
        Ok(names.iter().filter_map(|name| Self::find_name(name).ok().flatten()).collect())
    }

    /// Which partition of its disk it is; `None` for a whole disk.
    pub(crate) fn partition(&self) -> Option<u32> {
        self.attribute("partition")?.parse().ok()
    }

    fn is_partition(&self) -> bool {
        self.directory.join("partition").exists()
    }

    /// The whole disk: the parent of a partition, otherwise the device itself.
    #[must_use]
    pub fn whole_disk(&self) -> Self {
        match self.directory.parent() {
            Some(parent) if self.is_partition() => Self { directory: parent.to_owned() },
            _ => self.clone(),
        }
    }

    /// True if a hardware driver has it, and not another part of the kernel.
    pub(crate) fn has_hardware(&self) -> bool {
        self.directory.join("device").exists()
    }

    /// The number of the disk that this is a partition of.
    pub(crate) fn parent_disk(&self) -> Option<DeviceNumber> {
        if self.is_partition() { self.whole_disk().number() } else { None }
    }

    /// The partitions of a whole disk.
    pub(crate) fn partitions(&self) -> Result<Vec<Self>, ProbeError> {
        let children = list(&self.directory)?;
        let devices =
            children.into_iter().map(|name| Self { directory: self.directory.join(name) });
        Ok(devices.filter(Self::is_partition).collect())
    }

    /// Names of the devices built on top of this one, such as `dm-0`.
    pub(crate) fn holders(&self) -> Result<Vec<String>, ProbeError> {
        list(&self.directory.join("holders"))
    }

    /// The devices that this one is built on.
    ///
    /// # Errors
    /// [`ProbeError::Io`] when sysfs cannot be read.
    pub fn slaves(&self) -> Result<Vec<Self>, ProbeError> {
        let folder = self.directory.join("slaves");
        let names = list(&folder)?;
        // A device that is removed meanwhile is skipped.
        names.iter().filter_map(|name| Self::resolve(&folder.join(name)).transpose()).collect()
    }

    /// The file behind a loop device.
    #[must_use]
    pub fn backing_file(&self) -> Option<PathBuf> {
        read_attribute(&self.directory.join("loop/backing_file")).map(PathBuf::from)
    }

    /// The process that has a network block device connected.
    pub(crate) fn nbd_client(&self) -> Option<u32> {
        let is_nbd = self.name().starts_with("nbd");
        is_nbd.then(|| self.attribute("pid")?.parse().ok()).flatten()
    }

    /// Vendor and model, as far as the driver says.
    pub(crate) fn model(&self) -> Option<String> {
        let vendor = self.attribute("device/vendor").filter(|vendor| !is_number(vendor));
        let model = self.attribute("device/model").or_else(|| self.attribute("device/name"));
        match (vendor, model) {
            // ATA disks all have the vendor `ATA`, which says nothing.
            (Some(vendor), Some(model)) if vendor != "ATA" => Some(format!("{vendor} {model}")),
            (_, model) => model,
        }
    }

    /// The serial number: of the disk (virtio, NVMe), of SCSI's vital product data page 0x80, or of
    /// the USB device that the disk is in.
    pub(crate) fn serial(&self) -> Option<String> {
        self.attribute("serial")
            .or_else(|| self.attribute("device/serial"))
            .or_else(|| self.scsi_serial())
            .or_else(|| self.usb_serial())
    }

    /// Page 0x80: four bytes of header, then the serial in ASCII (SPC-4, 7.8.15).
    fn scsi_serial(&self) -> Option<String> {
        let page = fs::read(self.directory.join("device/vpd_pg80")).ok()?;
        let text = String::from_utf8_lossy(page.get(4..)?).trim_matches(['\0', ' ']).to_owned();
        (!text.is_empty()).then_some(text)
    }

    /// The nearest ancestor with `idVendor` is the USB device; above it are only hubs, whose serial
    /// numbers are not the disk's.
    fn usb_serial(&self) -> Option<String> {
        let device = self.directory.ancestors().find(|parent| parent.join("idVendor").exists())?;
        read_attribute(&device.join("serial"))
    }

    /// The world-wide name, such as `naa.5000c500…` or `eui.0025…`.
    pub(crate) fn wwn(&self) -> Option<String> {
        self.attribute("wwid").or_else(|| self.attribute("device/wwid"))
    }
}

/// Virtio's vendor is a number such as `0x1af4`, not a name.
fn is_number(text: &str) -> bool {
    text.starts_with("0x")
}

fn read_attribute(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// Sorted names in a directory; empty when there is no such directory.
fn list(directory: &Path) -> Result<Vec<String>, ProbeError> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(ProbeError::io("list", directory)(error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(ProbeError::io("list", directory))?;
        names.push(entry.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// All loop devices that have a backing file.
pub(crate) fn loop_devices() -> Result<Vec<(BlockDevice, PathBuf)>, ProbeError> {
    let mut loops = Vec::new();
    for name in list(Path::new("/sys/block"))?.iter().filter(|name| name.starts_with("loop")) {
        let Some(device) = BlockDevice::find_name(name)? else { continue };
        if let Some(file) = device.backing_file() {
            loops.push((device, file));
        }
    }
    Ok(loops)
}

/// The other devices of the btrfs that the device with this name is one of; none of any other.
pub(crate) fn btrfs_siblings(name: &str) -> Result<Vec<BlockDevice>, ProbeError> {
    let all = Path::new("/sys/fs/btrfs");
    for file_system in list(all)? {
        let names = list(&all.join(file_system).join("devices"))?;
        if names.iter().any(|one| one == name) {
            let others = names.iter().filter(|one| *one != name);
            return Ok(others
                .filter_map(|one| BlockDevice::find_name(one).ok().flatten())
                .collect());
        }
    }
    Ok(Vec::new())
}
