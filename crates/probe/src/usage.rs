//! The users of a file or a block device.
//!
//! ```text
//!  a block device, its partitions   mountinfo · /proc/swaps · sysfs holders/ · O_EXCL
//!  a regular file                   /proc/swaps · loop devices that it backs, and their users
//!  both                             /proc/PID/fd of every process but this one
//! ```
//!
//! The `O_EXCL` test (`open(2)`: on a block device it fails with `EBUSY` while the kernel has it
//! claimed) claims the device for a few microseconds; a mount at that very moment would fail.
//!
//! Invariant: nothing here waits for another process, whatever file systems and devices it serves: paths that
//! lead to these are not followed, and for open files only the kernel's memory is asked (`AT_STATX_DONT_SYNC`).
//!
//! Deliberately absent: this process itself (it knows what it opened), processes that hold a file
//! only through a memory map, and file locks.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, OFlags, StatxFlags, statx};
use rustix::io::Errno;

use crate::ProbeError;
use crate::identity::{DeviceNumber, Identity, identify};
use crate::mounts::{may_be, read_mounts, read_swaps};
use crate::sysfs::{BlockDevice, loop_devices};

/// A user of a file or a block device.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Holder {
    /// A mounted file system, of the device itself, a partition, or a loop device on the file.
    Mounted {
        /// The mount point.
        at: PathBuf,
    },
    /// The kernel swaps to it.
    Swap,
    /// A device is built on it.
    Device {
        /// The kernel's name of that device, such as `dm-0` or `md127`.
        name: String,
    },
    /// Something claims the block device exclusively and is not visible otherwise: another mount
    /// namespace, another program with `O_EXCL`.
    Exclusive,
    /// It is the backing file of a loop device.
    BackingFile {
        /// The loop device, such as `/dev/loop3`.
        device: PathBuf,
    },
    /// A process has it open.
    Process {
        /// The process.
        pid: u32,
        /// The name of its program, at most 15 bytes (`/proc/PID/comm`).
        command: String,
        /// True if it may write through that file descriptor.
        can_write: bool,
    },
}

impl Holder {
    /// True if the holder relies on being the only writer of the bytes, so that even a reader would see a
    /// changing mixture: all holders but an open file descriptor and a loop device without users.
    #[must_use]
    pub fn is_exclusive(&self) -> bool {
        !matches!(self, Holder::BackingFile { .. } | Holder::Process { .. })
    }

    /// True if it may end in a moment: a process has a device open, or claims it, for a short look.
    pub(crate) fn may_pass(&self) -> bool {
        matches!(self, Holder::Exclusive | Holder::Process { .. })
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Holder::Mounted { at } => write!(f, "mounted at {}", at.display()),
            Holder::Swap => f.write_str("swap"),
            Holder::Device { name } => write!(f, "held by {name}"),
            Holder::Exclusive => f.write_str("claimed exclusively"),
            Holder::BackingFile { device } => write!(f, "backing file of {}", device.display()),
            Holder::Process { pid, command, .. } => write!(f, "open by {command} (pid {pid})"),
        }
    }
}

/// The users of a file or device, and how much of the answer is missing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Usage {
    /// All users that were found, each once.
    pub holders: Vec<Holder>,
    /// The number of processes that could not be examined, because they belong to other users.
    pub hidden_processes: usize,
}

/// Finds the users of the file or block device at `path`.
///
/// # Errors
/// [`ProbeError`] when the path or one of the kernel's tables cannot be read.
pub fn find_users(path: &Path) -> Result<Usage, ProbeError> {
    let (_, identity) = identify(path)?;
    let mut usage = users_by_kernel(path, identity)?;
    find_processes(&[identity], std::slice::from_mut(&mut usage))?;
    Ok(usage)
}

/// Finds the users of the file or block device at `path` that are no processes.
///
/// # Errors
/// As [`find_users`].
pub fn find_users_by_kernel(path: &Path) -> Result<Usage, ProbeError> {
    let (_, identity) = identify(path)?;
    users_by_kernel(path, identity)
}

pub(crate) fn users_by_kernel(path: &Path, identity: Identity) -> Result<Usage, ProbeError> {
    let mut usage = Usage::default();
    match identity {
        Identity::Block(number) => {
            find_kernel_users(number, &mut usage)?;
            // The claim says nothing new when its reason is already known.
            if usage.holders.is_empty() && is_claimed(path)? {
                usage.push(Holder::Exclusive);
            }
        }
        Identity::File { .. } => find_loop_users(identity, &mut usage)?,
    }
    find_swap(identity, &mut usage)?;
    Ok(usage)
}

impl Usage {
    fn push(&mut self, holder: Holder) {
        if !self.holders.contains(&holder) {
            self.holders.push(holder);
        }
    }
}

/// Mounts, swap and devices on top of a block device and its partitions.
fn find_kernel_users(number: DeviceNumber, usage: &mut Usage) -> Result<(), ProbeError> {
    let mut numbers = vec![number];
    if let Some(device) = BlockDevice::find(number)? {
        let partitions = device.partitions()?;
        for user in std::iter::once(&device).chain(&partitions) {
            for name in user.holders()? {
                usage.push(Holder::Device { name });
            }
        }
        numbers.extend(partitions.iter().filter_map(BlockDevice::number));
    }
    let mounts = read_mounts()?;
    for mount in &mounts {
        if mount.block_device(&mounts).is_some_and(|device| numbers.contains(&device)) {
            usage.push(Holder::Mounted { at: mount.mount_point.clone() });
        }
    }
    numbers.into_iter().try_for_each(|number| find_swap(Identity::Block(number), usage))
}

/// Loop devices that a file backs, and the users of those.
fn find_loop_users(file: Identity, usage: &mut Usage) -> Result<(), ProbeError> {
    let mounts = read_mounts()?;
    for (device, backing_file) in loop_devices()? {
        if !may_be(&backing_file, file, &mounts) {
            continue;
        }
        // The path may be deleted or of another namespace: then it is not this file's path.
        if identify(&backing_file).ok().is_none_or(|(_, identity)| identity != file) {
            continue;
        }
        usage.push(Holder::BackingFile { device: Path::new("/dev").join(device.name()) });
        if let Some(number) = device.number() {
            find_kernel_users(number, usage)?;
        }
    }
    Ok(())
}

fn find_swap(identity: Identity, usage: &mut Usage) -> Result<(), ProbeError> {
    let swaps = read_swaps()?;
    // Most machines have none, and then the mounts are not needed.
    let mounts = if swaps.is_empty() { Vec::new() } else { read_mounts()? };
    for swap in swaps.iter().filter(|swap| may_be(swap, identity, &mounts)) {
        // A swap file that was deleted has no path any more, so it cannot be named as a member.
        if identify(swap).is_ok_and(|(_, other)| other == identity) {
            usage.push(Holder::Swap);
        }
    }
    Ok(())
}

/// True if the kernel has claimed the block device.
fn is_claimed(path: &Path) -> Result<bool, ProbeError> {
    let path = &braid_stack::path_of(path);
    let flags = OFlags::EXCL | OFlags::NONBLOCK;
    match OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path) {
        Ok(_) => Ok(false),
        Err(error) if error.raw_os_error() == Some(Errno::BUSY.raw_os_error()) => Ok(true),
        Err(error) => Err(ProbeError::io("open", path)(error)),
    }
}

/// Adds to each usage the processes, but for this one, that have the file or device of the same index open. Each process
/// is looked into once.
pub(crate) fn find_processes(
    identities: &[Identity],
    usages: &mut [Usage],
) -> Result<(), ProbeError> {
    if identities.is_empty() {
        // A volume in RAM does not wait until all processes were looked into.
        return Ok(());
    }
    let own = std::process::id();
    let processes = fs::read_dir("/proc").map_err(ProbeError::io("list", Path::new("/proc")))?;
    for entry in processes {
        let entry = entry.map_err(ProbeError::io("list", Path::new("/proc")))?;
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        if pid == own {
            continue;
        }
        match find_descriptors(&entry.path(), identities) {
            Ok(found) => {
                for (can_write, usage) in found.into_iter().zip(&mut *usages) {
                    let Some(can_write) = can_write else { continue };
                    let command = command_of(&entry.path());
                    usage.push(Holder::Process { pid, command, can_write });
                }
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                usages.iter_mut().for_each(|usage| usage.hidden_processes += 1);
            }
            // It ended meanwhile, and so has nothing open.
            Err(error) if has_ended(&error) => {}
            Err(error) => return Err(ProbeError::io("look into", &entry.path())(error)),
        }
    }
    Ok(())
}

fn has_ended(error: &io::Error) -> bool {
    let code = error.raw_os_error();
    code == Some(Errno::NOENT.raw_os_error()) || code == Some(Errno::SRCH.raw_os_error())
}

/// For each identity, whether the process may write it, if the process has it open.
fn find_descriptors(process: &Path, identities: &[Identity]) -> io::Result<Vec<Option<bool>>> {
    let mut found = vec![None; identities.len()];
    for entry in fs::read_dir(process.join("fd"))? {
        let link = entry?.path();
        // Sockets, pipes and the like have names without a leading slash; no need to look at them.
        let is_file = fs::read_link(&link).is_ok_and(|target| target.is_absolute());
        if !is_file {
            continue;
        }
        // A descriptor that was closed meanwhile is none.
        let Ok(status) = statx(CWD, &link, AtFlags::STATX_DONT_SYNC, StatxFlags::BASIC_STATS)
        else {
            continue;
        };
        let open = Identity::of_status(&status);
        for (found, _) in found.iter_mut().zip(identities).filter(|(_, one)| **one == open) {
            let can_write = can_write(process, &link).unwrap_or(true);
            *found = Some(found.unwrap_or(false) || can_write);
        }
    }
    Ok(found)
}

/// The access mode in the line `flags:` (octal) of `/proc/PID/fdinfo/N`; `None` when it is gone.
fn can_write(process: &Path, link: &Path) -> Option<bool> {
    let text = fs::read_to_string(process.join("fdinfo").join(link.file_name()?)).ok()?;
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"))?;
    let flags = u32::from_str_radix(flags.trim(), 8).ok()?;
    // O_ACCMODE is the lowest two bits; 0 is O_RDONLY.
    Some(flags & 3 != 0)
}

fn command_of(process: &Path) -> String {
    match fs::read_to_string(process.join("comm")) {
        Ok(name) => name.trim_end().to_owned(),
        Err(_) => "a process".to_owned(),
    }
}
