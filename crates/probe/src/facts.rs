//! The known facts about a member: size, block sizes, model, serial, contents, users.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use braid_stack::ByteSize;
use rustix::fs::OFlags;

use crate::identity::{DeviceNumber, FileKind, Identity, identify};
use crate::mounts::{mount_of, read_mounts, waits_for_others};
use crate::sysfs::BlockDevice;
use crate::usage::Holder;
use crate::{ProbeError, Signature};

/// The known facts about a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberFacts {
    /// The path as it was given.
    pub path: PathBuf,
    /// A regular file or a block device.
    pub kind: FileKind,
    /// Which file or device it is.
    pub identity: Identity,
    /// Size in bytes.
    pub size: u64,
    /// Bytes of the device's smallest addressable unit; of the disk below for a regular file.
    pub logical_block_size: Option<u32>,
    /// Bytes that the device writes without reading first; of the disk below for a regular file.
    pub physical_block_size: Option<u32>,
    /// The kernel's name of the whole disk that it is on, such as `sda`, if there is exactly one.
    pub disk: Option<String>,
    /// Vendor and model of the device itself (of its whole disk for a partition); not for a regular
    /// file, and not for a loop or mapped device, which has none.
    pub model: Option<String>,
    /// Serial number, as for the model.
    pub serial: Option<String>,
    /// World-wide name, as for the model.
    pub wwn: Option<String>,
    /// Which partition of its disk it is.
    pub partition: Option<u32>,
    /// When a regular file was made, in nanoseconds since 1970, where its file system says: with
    /// the inode it tells the file from its successors, also after a restart that gave the file
    /// system's device another number.
    pub born_ns: Option<u128>,
    /// The formats found in it.
    pub signatures: Vec<Signature>,
    /// Its users, if the caller asked for them.
    pub holders: Vec<Holder>,
}

impl MemberFacts {
    /// The description of the device without its contents: `/dev/sdb: SanDisk Ultra, serial 4C53…, 28.64 GiB`.
    #[must_use]
    pub fn describe(&self) -> String {
        let what = self.model.clone().unwrap_or_else(|| self.kind.to_string());
        let serial =
            self.serial.as_ref().map(|serial| format!(", serial {serial}")).unwrap_or_default();
        format!("{}: {what}{serial}, {:#}", self.path.display(), ByteSize(self.size))
    }
}

impl fmt::Display for MemberFacts {
    /// As [`MemberFacts::describe`], and `, contains ext4 "photos"`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe())?;
        for (index, signature) in self.signatures.iter().enumerate() {
            write!(f, "{}{signature}", if index == 0 { ", contains " } else { " and " })?;
        }
        Ok(())
    }
}

/// Opens a regular file or block device for reading, sure that it is the one that was identified.
///
/// `O_NONBLOCK` keeps the open from waiting, should the path meanwhile be a named pipe.
pub(crate) fn open_member(path: &Path, identity: Identity) -> Result<File, ProbeError> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path)
        .map_err(ProbeError::io("open", path))?;
    let metadata = file.metadata().map_err(ProbeError::io("look at", path))?;
    if Identity::of(&metadata) != identity {
        return Err(ProbeError::Changed { path: path.to_owned() });
    }
    Ok(file)
}

/// Collects everything but contents and users.
pub(crate) fn gather(
    path: &Path,
    kind: FileKind,
    identity: Identity,
    file: &mut File,
) -> Result<MemberFacts, ProbeError> {
    // The end of a block device is its size; `stat` says 0 for it.
    let size = file.seek(SeekFrom::End(0)).map_err(ProbeError::io("find the end of", path))?;
    let disk = match physical_device(path)? {
        Some(name) => BlockDevice::find_name(&name)?,
        None => None,
    };
    // A loop or device-mapper device has block sizes of its own, and is not the disk below it.
    let queue = match identity {
        Identity::Block(number) => BlockDevice::find(number)?.map(|device| device.whole_disk()),
        Identity::File { .. } => disk.clone(),
    };
    let number_of = |name: &str| queue.as_ref()?.attribute(name)?.parse().ok();
    let partition = match identity {
        Identity::Block(number) => BlockDevice::find(number)?.and_then(|one| one.partition()),
        Identity::File { .. } => None,
    };
    let born = || file.metadata().ok()?.created().ok()?.duration_since(UNIX_EPOCH).ok();
    let born_ns = (kind == FileKind::Regular).then(born).flatten().map(|born| born.as_nanos());
    let described = queue.as_ref().filter(|_| kind == FileKind::Block);
    Ok(MemberFacts {
        path: path.to_owned(),
        kind,
        identity,
        size,
        logical_block_size: number_of("queue/logical_block_size"),
        physical_block_size: number_of("queue/physical_block_size"),
        disk: disk.as_ref().map(BlockDevice::name),
        model: described.and_then(BlockDevice::model),
        serial: described.and_then(BlockDevice::serial),
        wwn: described.and_then(BlockDevice::wwn),
        partition,
        born_ns,
        signatures: Vec::new(),
        holders: Vec::new(),
    })
}

/// A block device that says what tells it apart from all others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// Its node in `/dev`.
    pub path: PathBuf,
    /// World-wide name of the disk.
    pub wwn: Option<String>,
    /// Serial number of the disk.
    pub serial: Option<String>,
    /// Which partition of the disk it is.
    pub partition: Option<u32>,
}

/// All block devices of this machine that have a world-wide name or a serial number. Nothing is
/// opened.
///
/// # Errors
/// [`ProbeError::Io`] when sysfs cannot be read.
pub fn named_devices() -> Result<Vec<Named>, ProbeError> {
    let mut found = Vec::new();
    for device in BlockDevice::all()? {
        let disk = device.whole_disk();
        let (wwn, serial) = (disk.wwn(), disk.serial());
        if wwn.is_some() || serial.is_some() {
            let (path, partition) = (Path::new("/dev").join(device.name()), device.partition());
            found.push(Named { path, wwn, serial, partition });
        }
    }
    Ok(found)
}

/// The whole disk that `path` is on, when it is exactly one; see [`physical_devices`].
///
/// # Errors
/// As [`physical_devices`].
pub fn physical_device(path: &Path) -> Result<Option<String>, ProbeError> {
    let mut devices = physical_devices(path)?.into_iter();
    Ok(devices.next().filter(|_| devices.next().is_none()))
}

/// The kernel's names of the whole disks that `path` is on: of a block device itself or of the file
/// system that a file is on, through partitions, device-mapper, md and loop devices.
///
/// Empty when there is none that the kernel names: tmpfs, network and overlay file systems. A btrfs
/// of several disks names only the one that it was mounted by.
///
/// # Errors
/// [`ProbeError::Io`] when the path or sysfs cannot be read.
pub fn physical_devices(path: &Path) -> Result<BTreeSet<String>, ProbeError> {
    let mut disks = BTreeSet::new();
    collect_disks_of_path(path, 0, &mut disks)?;
    Ok(disks)
}

/// Devices stack finitely (the kernel allows 8 levels of loop and of device-mapper); this is for
/// safety only.
const MAX_NESTING: usize = 32;

fn collect_disks_of_path(
    path: &Path,
    depth: usize,
    disks: &mut BTreeSet<String>,
) -> Result<(), ProbeError> {
    let (_, identity) = identify(path)?;
    let number = match identity {
        Identity::Block(number) => Some(number),
        Identity::File { device, .. } => device_under(path, device)?,
    };
    match number.map(BlockDevice::find).transpose()?.flatten() {
        Some(device) => collect_disks_of_device(&device, depth, disks),
        None => Ok(()),
    }
}

/// The block device of the file system that `path` is on. btrfs gives each subvolume an anonymous
/// number that even mountinfo does not know, so there the mount's source has to tell.
fn device_under(path: &Path, device: DeviceNumber) -> Result<Option<DeviceNumber>, ProbeError> {
    if !device.is_anonymous() {
        return Ok(Some(device));
    }
    let resolved =
        fs::canonicalize(braid_stack::path_of(path)).map_err(ProbeError::io("resolve", path))?;
    let mounts = read_mounts()?;
    Ok(mount_of(&resolved, &mounts).and_then(|mount| mount.block_device(&mounts)))
}

fn collect_disks_of_device(
    device: &BlockDevice,
    depth: usize,
    disks: &mut BTreeSet<String>,
) -> Result<(), ProbeError> {
    let disk = device.whole_disk();
    let slaves = disk.slaves()?;
    if depth == MAX_NESTING {
        disks.insert(disk.name());
        return Ok(());
    }
    // A backing file that is deleted or in another namespace cannot be followed further; one that
    // another process serves is that process's matter.
    if let Some(file) = disk.backing_file() {
        let mounts = read_mounts()?;
        if waits_for_others(&file, &mounts) {
            return Ok(());
        }
        if file.exists() {
            return collect_disks_of_path(&file, depth + 1, disks);
        }
    }
    if slaves.is_empty() {
        disks.insert(disk.name());
    }
    slaves.iter().try_for_each(|slave| collect_disks_of_device(slave, depth + 1, disks))
}

/// True if a file that the kernel names, on no file system that others serve, is there for others only.
fn is_hidden(file: &Path) -> bool {
    let is_deleted = file.as_os_str().as_encoded_bytes().ends_with(b" (deleted)");
    !is_deleted && file.symlink_metadata().is_err()
}

/// The file system that serves the bytes of the block device at `path` by another process: its name in the
/// table of mounts, such as `braid:home`; or words, if that is in the table of another namespace. Its file backs the loop device, or one below it. A read from such a
/// device waits for that process. Nothing on the way is touched.
///
/// # Errors
/// [`ProbeError`] when the path, sysfs or the table of mounts cannot be read.
pub fn served_by(path: &Path) -> Result<Option<String>, ProbeError> {
    let (_, Identity::Block(number)) = identify(path)? else { return Ok(None) };
    let mounts = read_mounts()?;
    let mut above = vec![number];
    // Each device is looked at once: devices stack finitely, but what sysfs says is not trusted.
    let mut seen = BTreeSet::new();
    while let Some(number) = above.pop() {
        let Some(device) = BlockDevice::find(number)?.filter(|_| seen.insert(number)) else {
            continue;
        };
        let disk = device.whole_disk();
        above.extend(disk.slaves()?.iter().filter_map(BlockDevice::number));
        let Some(file) = disk.backing_file() else { continue };
        match mount_of(&file, &mounts) {
            Some(mount) if mount.is_served_elsewhere() => {
                return Ok(Some(mount.source.display().to_string()));
            }
            // Its file system, and the process that serves it, are in another table of mounts.
            _ if is_hidden(&file) => {
                return Ok(Some(format!(
                    "the owner of {}, which is unseen from here",
                    file.display()
                )));
            }
            Some(mount) => above.extend(mount.block_device(&mounts)),
            None => {}
        }
    }
    Ok(None)
}
