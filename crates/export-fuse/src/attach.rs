//! Attaching a loop device to the file, and detaching it regularly or by force.
//!
//! ```text
//!  attach        open MOUNT/volume ─ LOOP_CONFIGURE ─ check that I/O is direct
//!  detach        check users ─ LOOP_CLR_FD ─ wait ─ umount ─ rmdir             all or an error
//!  detach_force  save and lazily unmount what is on it ─ LOOP_CLR_FD           for some seconds
//!                └─ then: end the connection ─ lazily unmount ─ rmdir          whatever happens
//! ```
//!
//! Invariants
//! * A loop device is touched only while its backing file is ours: numbers are reused.
//! * `attach` and `detach_force` end in bounded time, whether or not the server answers. Steps that may wait
//!   for it run beside a deadline, at which the connection is ended and all waits fail.
//! * Called from other threads than the serving one, see the crate's page.
//!
//! Direct I/O matters twice: it avoids a second copy of the data in the page cache, and a kernel that waits for
//! memory that only writing back to this very process can free.
//!
//! Source: `drivers/block/loop.c`. Deliberately absent: partitions on the loop device, and disabling a swap
//! area (`swapoff` would have to read back from a volume that may be gone).

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use braid_block::Limits;
use braid_probe::{Holder, ProbeError, find_users};
use braid_sys::loop_device::{self, Setup};
use rustix::fs::OFlags;
use rustix::mount::UnmountFlags;

use crate::mount::{Aborter, Mount, MountError};
use crate::mountinfo;

/// For what waits for a healthy server, which answers in microseconds.
const SERVER_LIMIT: Duration = Duration::from_secs(30);
/// For descriptors that are just being closed.
const CLOSE_LIMIT: Duration = Duration::from_secs(5);
/// For saving what is on the device before the connection is ended.
const SAVE_LIMIT: Duration = Duration::from_secs(10);
/// Major number of loop devices (`linux/major.h`).
const LOOP_MAJOR: u32 = 7;

/// A volume as `/dev/loopN`. Dropping it is [`Attachment::detach_force`].
#[derive(Debug)]
pub struct Attachment {
    mount: Mount,
    /// N, while the loop device has the volume behind it.
    number: Option<u32>,
}

/// Why there is no block device.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AttachError {
    /// The volume's file cannot be opened.
    #[error("cannot open {}: {source}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The loop driver refused.
    #[error("cannot set a loop device up on {}: {source}", path.display())]
    Loop {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The loop driver fell back to the page cache.
    #[error("{} does not do direct I/O with blocks of {logical_block} bytes", device.display())]
    NotDirect {
        /// The loop device, which is detached again.
        device: PathBuf,
        /// Its block size in bytes.
        logical_block: u32,
    },
}

/// Why the block device stays.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DetachError {
    /// It is used.
    #[error("{} is in use: {}", device.display(), list(holders))]
    Busy {
        /// The loop device.
        device: PathBuf,
        /// By whom.
        holders: Vec<Holder>,
    },
    /// The users of the device are unknown.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// Mounts cannot be looked at.
    #[error("cannot read the tables of mounts: {0}")]
    Mounts(io::Error),
    /// The loop driver refused.
    #[error("cannot detach {}: {source}", device.display())]
    Loop {
        /// The loop device.
        device: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// It was opened while it was being detached, and goes when it is closed.
    #[error("{} is still open and goes when it is closed", device.display())]
    StillOpen {
        /// The loop device.
        device: PathBuf,
    },
    /// The block device is gone, but the FUSE mount is not.
    #[error(transparent)]
    Mount(#[from] MountError),
}

/// The result of a detachment by force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forced {
    /// File systems on the device that were written out and taken out of the tree.
    pub unmounted: Vec<PathBuf>,
    /// All that was asked of the device in peace was done: nothing was lost that had reached
    /// the kernel.
    pub saved: bool,
    /// The loop device is free. Otherwise it is freed when the last process closes its files on it; until then
    /// these get errors.
    pub released: bool,
}

fn list(holders: &[Holder]) -> String {
    holders.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

impl Attachment {
    /// Makes a served `mount` a block device with the blocks of `limits`; `name` is what
    /// `losetup` shows (of at most 63 bytes).
    ///
    /// # Errors
    /// [`AttachError`]; the mount is gone then, too.
    pub fn attach(mount: Mount, name: &str, limits: &Limits) -> Result<Attachment, AttachError> {
        let path = mount.volume_path();
        let number = within(SERVER_LIMIT, &mount.aborter(), || {
            let file = open_volume(&path, limits.read_only)
                .map_err(|source| AttachError::Open { path: path.clone(), source })?;
            let setup = Setup {
                block_size: limits.logical_block,
                read_only: limits.read_only,
                // Two stripes, so that all members read while the first are used (drivers/md/raid0.c, raid0_run).
                read_ahead: 2 * u64::from(limits.optimal_io),
                name,
            };
            loop_device::attach(&file, setup)
                .map_err(|source| AttachError::Loop { path: path.clone(), source })
        })?;
        let attachment = Attachment { mount, number: Some(number) };
        if loop_device::is_direct(number).unwrap_or(false) {
            return Ok(attachment);
        }
        let device = loop_device::path(number).into();
        Err(AttachError::NotDirect { device, logical_block: limits.logical_block })
    }

    /// Returns the mount at `dir` of a volume whose process may have ended, and the loop device on it if there
    /// is one.
    ///
    /// # Errors
    /// When the table of mounts cannot be read.
    pub fn find(dir: &Path) -> Result<Option<Attachment>, MountError> {
        let Some(mount) = Mount::find(dir)? else { return Ok(None) };
        let volume = mount.volume_path();
        let number = fs::read_dir("/sys/block").into_iter().flatten().flatten().find_map(|entry| {
            let number = entry.file_name().to_str()?.strip_prefix("loop")?.parse().ok()?;
            (backing_file(number)? == volume).then_some(number)
        });
        Ok(Some(Attachment { mount, number }))
    }

    /// The block device, `/dev/loopN`; `None` after it was detached.
    pub fn device(&self) -> Option<PathBuf> {
        self.number.map(|number| loop_device::path(number).into())
    }

    /// The file system that the block device stands on.
    pub fn mount(&self) -> &Mount {
        &self.mount
    }

    /// Returns the users of the block device; see [`AttachedDevice::holders`].
    ///
    /// # Errors
    /// When the kernel's tables cannot be read.
    pub fn holders(&self) -> Result<Vec<Holder>, DetachError> {
        match self.attached().filter(AttachedDevice::is_ours) {
            Some(attached) => attached.holders(),
            None => Ok(Vec::new()),
        }
    }

    /// The block device as others may ask for it while this value is elsewhere; `None` after it was
    /// detached.
    pub fn attached(&self) -> Option<AttachedDevice> {
        Some(AttachedDevice { number: self.number?, volume: self.mount.volume_path() })
    }

    /// Removes block device and mount, if they are unused.
    ///
    /// # Errors
    /// [`DetachError`]. A further call continues where it stopped.
    pub fn detach(&mut self) -> Result<(), DetachError> {
        if let Some(attached) = self.attached().filter(AttachedDevice::is_ours) {
            self.check_unused()?;
            let device = PathBuf::from(loop_device::path(attached.number));
            attached
                .detach()
                .map_err(|source| DetachError::Loop { device: device.clone(), source })?;
            if !self.wait_for_release(CLOSE_LIMIT) {
                return Err(DetachError::StillOpen { device });
            }
        }
        self.number = None;
        Ok(self.mount.unmount(CLOSE_LIMIT)?)
    }

    /// Removes block device and mount, even if they are in use, and even if the volume is not served. File
    /// systems on the device are written out and unmounted if that takes less than 10 seconds; after a few
    /// more, all waits for this volume end with errors.
    pub fn detach_force(&mut self) -> Forced {
        let mut forced = Forced { unmounted: Vec::new(), saved: true, released: true };
        if let Some(attached) = self.attached().filter(AttachedDevice::is_ours) {
            let (saved, unmounted) = save(attached.clone());
            forced.unmounted = unmounted;
            // An open file keeps the device, for an unknown time.
            forced.saved = saved && self.wait_for_release(Duration::from_millis(500));
            if attached.is_ours() {
                self.mount.aborter().abort();
                // If saving took too long it may be at it still, and goes on with errors.
                let _ = attached.detach();
            }
            self.mount.unmount_force();
            forced.released = self.wait_for_release(CLOSE_LIMIT);
        }
        self.mount.unmount_force();
        self.number = None;
        forced
    }

    /// Refuses if anybody uses the block device. Programs that look at every new device (udev, blkid)
    /// open it for moments only, which is waited for.
    ///
    /// # Errors
    /// [`DetachError::Busy`]; or when the kernel's tables cannot be read.
    pub fn check_unused(&self) -> Result<(), DetachError> {
        let deadline = Instant::now() + Duration::from_secs(1);
        loop {
            let holders = self.holders()?;
            if holders.is_empty() {
                return Ok(());
            }
            if holders.iter().any(Holder::is_exclusive) || Instant::now() >= deadline {
                let device = self.device().unwrap_or_default();
                return Err(DetachError::Busy { device, holders });
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Returns true if the loop device lost our file within `limit`.
    fn wait_for_release(&self, limit: Duration) -> bool {
        let Some(attached) = self.attached() else { return true };
        let deadline = Instant::now() + limit;
        while attached.is_ours() {
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        true
    }
}

/// A volume's block device, while it is attached.
#[derive(Clone, Debug)]
pub struct AttachedDevice {
    number: u32,
    /// The file behind it.
    volume: PathBuf,
}

impl AttachedDevice {
    /// Returns true if our file is behind the loop device. If its mount was taken out of the tree, the file has
    /// the path in its own file system.
    fn is_ours(&self) -> bool {
        let inside = Path::new("/").join(crate::session::VOLUME);
        backing_file(self.number).is_some_and(|path| path == self.volume || path == inside)
    }

    /// Tells the driver to let go of our file, if it is still behind the device.
    fn detach(&self) -> io::Result<()> {
        loop_device::detach(self.number, || self.is_ours())
    }

    /// Returns the users of the device in all mount namespaces. Mounts elsewhere are named `/proc/PID/root/…`.
    /// This process's own descriptors do not count.
    ///
    /// # Errors
    /// When the kernel's tables cannot be read.
    pub fn holders(&self) -> Result<Vec<Holder>, DetachError> {
        let number = self.number;
        let path = PathBuf::from(loop_device::path(number));
        let mut holders = find_users(&path)?.holders;
        let elsewhere =
            mountinfo::find_elsewhere((LOOP_MAJOR, number), &path).map_err(DetachError::Mounts)?;
        if !elsewhere.is_empty() {
            // Now it is known whose the claim is.
            holders.retain(|holder| *holder != Holder::Exclusive);
        }
        holders.extend(elsewhere.into_iter().map(|(pid, point)| {
            let root = PathBuf::from(format!("/proc/{pid}/root"));
            Holder::Mounted { at: root.join(point.strip_prefix("/").unwrap_or(&point)) }
        }));
        Ok(holders)
    }

    /// Makes the kernel read the volume's present size. Open files and mounted file systems continue.
    ///
    /// # Errors
    /// The error of the kernel.
    pub fn refresh_size(&self) -> io::Result<()> {
        // The kernel keeps the size of the file for ever, unless a fresh one is requested.
        let flags = rustix::fs::AtFlags::STATX_FORCE_SYNC;
        let mask = rustix::fs::StatxFlags::SIZE;
        rustix::fs::statx(rustix::fs::CWD, &self.volume, flags, mask)?;
        loop_device::set_capacity(self.number)
    }

    /// Has the block layer refuse writes, after what it holds for the volume was written; or let them
    /// through again.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn set_read_only(&self, read_only: bool) -> io::Result<()> {
        if read_only {
            File::open(loop_device::path(self.number))?.sync_all()?;
        }
        loop_device::set_read_only(self.number, read_only)
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        if self.number.is_some() {
            self.detach_force();
        }
    }
}

/// The file behind a loop device as the driver names it.
fn backing_file(number: u32) -> Option<PathBuf> {
    let path = fs::read_to_string(format!("/sys/block/loop{number}/loop/backing_file")).ok()?;
    Some(path.trim_end_matches('\n').into())
}

fn open_volume(path: &Path, read_only: bool) -> io::Result<File> {
    let flags = OFlags::DIRECT.bits().cast_signed();
    OpenOptions::new().read(true).write(!read_only).custom_flags(flags).open(path)
}

/// Runs `work`, which waits for the server. After `limit` the connection is ended, which ends
/// `work` with an error.
fn within<T>(limit: Duration, aborter: &Aborter, work: impl FnOnce() -> T) -> T {
    let (done, waiting) = mpsc::channel::<()>();
    let aborter = aborter.clone();
    std::thread::spawn(move || {
        if waiting.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
            aborter.abort();
        }
    });
    let result = work();
    drop(done);
    result
}

/// Writes out and lazily unmounts what is on a loop device, and tells the driver to let go of
/// its file; on a thread of its own, because each of that may wait for the server. Answers
/// whether that was done in time, and what was found mounted.
fn save(attached: AttachedDevice) -> (bool, Vec<PathBuf>) {
    let number = attached.number;
    let device = PathBuf::from(loop_device::path(number));
    let mounts = mountinfo::read_own().unwrap_or_default().into_iter().rev();
    let points: Vec<PathBuf> = mounts
        .filter(|mount| mountinfo::is_of(mount, (LOOP_MAJOR, number), &device))
        .map(|mount| mount.mount_point)
        .collect();
    let (done, waiting) = mpsc::channel();
    let to_unmount = points.clone();
    std::thread::spawn(move || {
        let mut all = true;
        for point in &to_unmount {
            all &= sync_file_system(point).is_ok();
            let flags = UnmountFlags::DETACH | UnmountFlags::NOFOLLOW;
            all &= rustix::mount::unmount(point, flags).is_ok();
        }
        all &= attached.detach().is_ok();
        // The receiver may be gone.
        let _ = done.send(all);
    });
    (waiting.recv_timeout(SAVE_LIMIT).unwrap_or(false), points)
}

fn sync_file_system(point: &Path) -> io::Result<()> {
    Ok(rustix::fs::syncfs(File::open(point)?)?)
}
