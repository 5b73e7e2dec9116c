//! The way from a path down to a volume, if there is one: the kernel's facts for the graph of
//! [`crate::ground`].
//!
//! ```text
//!  a file            its file system: st_dev, mountinfo
//!  a file system     its block device; for btrfs all of them, by /sys/fs/btrfs
//!  a block device    its disk, slaves/, the backing file of a loop device, the backend of its NBD client
//!  another volume    the files that its process has open: /proc/PID/fd
//! ```
//!
//! Invariant: a path is looked up only after the table of mounts has shown that it is not on a file system that
//! the volume serves.
//!
//! Deliberately absent: layers of overlay file systems, which are paths of another namespace; file systems
//! of a network; NBD over TCP; FUSE file systems of other programs.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

use crate::ProbeError;
use crate::ground::{Ground, find_way, in_words, served_to};
use crate::identity::{DeviceNumber, Identity, identify};
use crate::mounts::{Mount, mount_of, read_mounts, waits_for_others};
use crate::sysfs::{BlockDevice, btrfs_siblings};

/// The type of the volumes' file systems in the table of mounts.
const KIND: &str = "fuse.braid";

/// Says how `path`, which need not exist yet, stands on the volume that is served in the folder `mount`:
/// `/mnt/a.img lies on ext4 on /dev/loop1, which is volume s itself`. `None` if it does not. `process` says
/// which process serves in such a folder.
///
/// # Errors
/// [`ProbeError`] when the path, sysfs or the table of mounts cannot be read.
pub fn stands_on(
    path: &Path,
    mount: &Path,
    process: &dyn Fn(&Path) -> Option<u32>,
) -> Result<Option<String>, ProbeError> {
    let path = &braid_stack::path_of(path);
    let world = World { mounts: read_mounts()?, process };
    // Its own name is in a folder that others serve.
    let own = resolve_folder(mount);
    let find = |from| {
        find_way(
            from,
            |ground| world.below(ground),
            |ground| matches!(ground, Ground::Volume { mount } if *mount == own),
        )
    };
    let named = Ground::File { path: path.to_owned(), device: DeviceNumber { major: 0, minor: 0 } };
    if let Some(way) = find(named)? {
        return Ok(Some(in_words(&way)));
    }
    let real = fs::canonicalize(path).unwrap_or_else(|_| resolve_folder(path));
    let there = if real.exists() { Some(real.as_path()) } else { real.parent() };
    let Some((_, identity)) = there.map(identify).transpose()? else { return Ok(None) };
    let from = match identity {
        Identity::Block(number) => Ground::Block { number, path: path.to_owned() },
        Identity::File { device, .. } => Ground::File { path: real, device },
    };
    let way = find(from)?.map(|mut way| {
        // It gets the name that the caller used.
        if let Some(Ground::File { path: first, .. }) = way.first_mut() {
            *first = path.to_owned();
        }
        in_words(&way)
    });
    Ok(way)
}

/// The path with the links of its folder resolved, whether it is there or not.
fn resolve_folder(path: &Path) -> PathBuf {
    let folder = path.parent().and_then(|folder| fs::canonicalize(folder).ok());
    match (folder, path.file_name()) {
        (Some(folder), Some(name)) => folder.join(name),
        _ => path.to_owned(),
    }
}

struct World<'a> {
    mounts: Vec<Mount>,
    process: &'a dyn Fn(&Path) -> Option<u32>,
}

impl World<'_> {
    fn below(&self, ground: &Ground) -> Result<Vec<Ground>, ProbeError> {
        match ground {
            Ground::File { path, device } => {
                let mount = mount_of(path, &self.mounts);
                Ok(self.file_system(mount, *device).into_iter().collect())
            }
            Ground::FileSystem { block, .. } => {
                let Some(device) = block.map(BlockDevice::find).transpose()?.flatten() else {
                    return Ok(Vec::new());
                };
                let siblings = btrfs_siblings(&device.name())?;
                Ok(std::iter::once(&device).chain(&siblings).filter_map(block_ground).collect())
            }
            Ground::Block { number, .. } => match BlockDevice::find(*number)? {
                Some(device) => self.below_device(&device),
                None => Ok(Vec::new()),
            },
            Ground::Volume { mount } => {
                Ok((self.process)(mount).map_or(Vec::new(), |pid| self.opened_by(pid)))
            }
        }
    }

    /// The file system, with this number if it has one of its own.
    fn file_system(&self, mount: Option<&Mount>, device: DeviceNumber) -> Option<Ground> {
        if let Some(mount) = mount.filter(|mount| mount.kind == KIND) {
            return Some(Ground::Volume { mount: mount.mount_point.clone() });
        }
        let numbered = self.mounts.iter().find(|one| one.device == device).or(mount)?;
        let block = match device.is_anonymous() {
            true => numbered.block_device(&self.mounts),
            false => Some(device),
        };
        Some(Ground::FileSystem { kind: numbered.kind.clone(), block })
    }

    fn below_device(&self, device: &BlockDevice) -> Result<Vec<Ground>, ProbeError> {
        let disk = device.whole_disk();
        if disk != *device {
            return Ok(block_ground(&disk).into_iter().collect());
        }
        let mut below: Vec<Ground> = disk.slaves()?.iter().filter_map(block_ground).collect();
        below.extend(disk.backing_file().map(|path| self.backing(path)));
        let client =
            disk.nbd_client().and_then(|pid| fs::read(format!("/proc/{pid}/cmdline")).ok());
        below.extend(
            client.and_then(|words| served_to(&words)).map(|mount| Ground::Volume { mount }),
        );
        Ok(below)
    }

    /// The ground of a loop device, by the path that the kernel names.
    fn backing(&self, path: PathBuf) -> Ground {
        let mount = mount_of(&path, &self.mounts);
        if let Some(mount) = mount.filter(|mount| mount.kind == KIND) {
            return Ground::Volume { mount: mount.mount_point.clone() };
        }
        // What others serve is not looked at.
        let found =
            (!waits_for_others(&path, &self.mounts)).then(|| identify(&path).ok()).flatten();
        match found {
            Some((_, Identity::Block(number))) => Ground::Block { number, path },
            Some((_, Identity::File { device, .. })) => Ground::File { path, device },
            None => Ground::File { path, device: DeviceNumber { major: 0, minor: 0 } },
        }
    }

    /// The files that the process of a volume has open, apart from those that it was started with.
    fn opened_by(&self, pid: u32) -> Vec<Ground> {
        let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fd")) else { return Vec::new() };
        let ground = |link: PathBuf| {
            let path = fs::read_link(&link).ok().filter(|path| path.is_absolute())?;
            let status =
                statx(CWD, &link, AtFlags::STATX_DONT_SYNC, StatxFlags::BASIC_STATS).ok()?;
            Some(match Identity::of_status(&status) {
                Identity::Block(number) => Ground::Block { number, path },
                Identity::File { device, .. } => Ground::File { path, device },
            })
        };
        let is_later = |name: &std::ffi::OsStr| !["0", "1", "2"].iter().any(|std| name == *std);
        let links = descriptors.flatten().filter(|entry| is_later(&entry.file_name()));
        links.filter_map(|entry| ground(entry.path())).collect()
    }
}

fn block_ground(device: &BlockDevice) -> Option<Ground> {
    let path = Path::new("/dev").join(device.name());
    device.number().map(|number| Ground::Block { number, path })
}
