//! Mounting the file system in the tree of files: mount(2), and the ways to unmount.
//!
//! Invariants
//! * Nothing here waits for the server: paths inside the file system are not touched, and its state is read
//!   from `/proc` and `/sys`.
//! * A dropped [`Mount`] leaves nothing behind, even if the file system is in use.
//!
//! Source: `fs/fuse/inode.c` (options), `Documentation/filesystems/fuse/fuse.rst` (abort).

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno as Os;
use rustix::mount::{MountFlags, UnmountFlags};

use crate::mountinfo;
use crate::protocol::MAX_DATA;
use crate::session::VOLUME;

/// Type of the file system, as in the third column of `/proc/mounts`.
const KIND: &str = "fuse.braid";
const CONNECTIONS: &str = "/sys/fs/fuse/connections";

/// A mounted file system of one file.
#[derive(Debug)]
pub struct Mount {
    dir: PathBuf,
    /// Minor number of the file system's device, and name of its directory in
    /// `/sys/fs/fuse/connections`.
    connection: u32,
    /// The directory was made for it.
    made_dir: bool,
    mounted: bool,
}

/// Why there is no mount, or why it stays.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MountError {
    /// A volume's name must be fit for the table of mounts.
    #[error(
        "`{name}` cannot be the name of a mounted volume: it has other characters than letters, digits and . _ -"
    )]
    Name {
        /// The name.
        name: String,
    },
    /// Another volume is mounted there, perhaps one whose process has ended.
    #[error("{} is mounted already ({source_name})", dir.display())]
    AlreadyMounted {
        /// The directory.
        dir: PathBuf,
        /// Source in the table of mounts.
        source_name: String,
    },
    /// Files of the file system are open.
    #[error("{} is in use", dir.display())]
    Busy {
        /// The directory.
        dir: PathBuf,
    },
    /// A system call failed.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The operation.
        action: &'static str,
        /// The path.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl Mount {
    /// Mounts a volume called `name` (letters, digits, `.`, `_`, `-`) at `dir`, which is made if it is missing,
    /// and returns the descriptor for [`crate::serve()`]. Needs `CAP_SYS_ADMIN`. Until the connection is
    /// served, accesses to `dir` wait.
    ///
    /// # Errors
    /// [`MountError`]; nothing is left behind then.
    pub fn new(dir: &Path, name: &str, read_only: bool) -> Result<(Mount, OwnedFd), MountError> {
        let is_fit = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if name.is_empty() || !name.chars().all(is_fit) {
            return Err(MountError::Name { name: name.to_owned() });
        }
        let dir = resolve(dir)?;
        if let Some((entry, _)) = find_mount(&dir)? {
            let source_name = entry.source.display().to_string();
            return Err(MountError::AlreadyMounted { dir, source_name });
        }
        let made_dir = make_dir(&dir)?;
        // From here on dropping it undoes what was done.
        let mut mount = Mount { dir, connection: 0, made_dir, mounted: false };
        let fd = open_device()?;
        let options = format!(
            "fd={},rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions,max_read={MAX_DATA}\0",
            fd.as_raw_fd()
        );
        let options = std::ffi::CString::from_vec_with_nul(options.into_bytes())
            .expect("one NUL, at the end");
        let mut flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        if read_only {
            flags |= MountFlags::RDONLY;
        }
        let source = format!("braid:{name}");
        rustix::mount::mount(&source, &mount.dir, KIND, flags, Some(options.as_c_str()))
            .map_err(failed("mount a volume at", &mount.dir))?;
        mount.mounted = true;
        match find_mount(&mount.dir)? {
            Some((_, connection)) => mount.connection = connection,
            None => return Err(failed("find the mount at", &mount.dir)(Os::NOENT)),
        }
        Ok((mount, fd))
    }

    /// Returns the volume mounted at `dir`, if there is one, served or not.
    ///
    /// # Errors
    /// When the table of mounts cannot be read.
    pub fn find(dir: &Path) -> Result<Option<Mount>, MountError> {
        let dir = resolve(dir)?;
        let found = find_mount(&dir)?;
        let mount = |(_, connection)| Mount { dir, connection, made_dir: true, mounted: true };
        Ok(found.map(mount))
    }

    /// Returns the mount point.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The file that is the volume.
    pub fn volume_path(&self) -> PathBuf {
        self.dir.join(VOLUME)
    }

    /// Returns a handle that ends the connection, from any thread.
    pub fn aborter(&self) -> Aborter {
        Aborter { file: Path::new(CONNECTIONS).join(self.connection.to_string()).join("abort") }
    }

    /// Unmounts it, waiting up to `limit` for descriptors that are just being closed, and
    /// removes the directory if it was made for it.
    ///
    /// # Errors
    /// [`MountError::Busy`] when files of it stay open.
    pub fn unmount(&mut self, limit: Duration) -> Result<(), MountError> {
        let deadline = Instant::now() + limit;
        while self.mounted {
            match rustix::mount::unmount(&self.dir, UnmountFlags::NOFOLLOW) {
                Ok(()) | Err(Os::INVAL) => self.mounted = false,
                Err(Os::BUSY) if Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                Err(Os::BUSY) => return Err(MountError::Busy { dir: self.dir.clone() }),
                Err(other) => return Err(failed("unmount", &self.dir)(other)),
            }
        }
        self.remove_dir();
        Ok(())
    }

    /// Ends the connection, so that waits for the server fail, takes the file system out of the tree, and
    /// removes the directory if it was made for it. Does not wait; failures mean that an object is gone
    /// already.
    pub fn unmount_force(&mut self) {
        // It may have been unmounted, and another file system may have its number now.
        let is_ours = |found: Option<(_, u32)>| found.is_some_and(|(_, n)| n == self.connection);
        if std::mem::take(&mut self.mounted) && find_mount(&self.dir).is_ok_and(is_ours) {
            self.aborter().abort();
            // Without /sys/fs/fuse, MNT_FORCE ends the connection as well.
            let flags = UnmountFlags::FORCE | UnmountFlags::DETACH | UnmountFlags::NOFOLLOW;
            let _ = rustix::mount::unmount(&self.dir, flags);
        }
        self.remove_dir();
    }

    fn remove_dir(&mut self) {
        if std::mem::take(&mut self.made_dir) {
            // The directory may have another use by now.
            let _ = fs::remove_dir(&self.dir);
        }
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        self.unmount_force();
    }
}

/// Ends a FUSE connection: all requests under way and to come fail at once.
#[derive(Clone, Debug)]
pub struct Aborter {
    file: PathBuf,
}

impl Aborter {
    /// Aborts the connection. Nothing happens if it is gone.
    pub fn abort(&self) {
        let _ = fs::write(&self.file, "1");
    }
}

/// The absolute path of `dir`, whose last component is not looked at: it may be missing, or a
/// dead mount.
fn resolve(dir: &Path) -> Result<PathBuf, MountError> {
    let parent = match dir.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => Path::new("/"),
    };
    let absolute = fs::canonicalize(parent).map_err(failed("resolve", parent))?;
    Ok(absolute.join(dir.file_name().unwrap_or_default()))
}

/// Makes `dir`, and says whether it had to.
fn make_dir(dir: &Path) -> Result<bool, MountError> {
    match fs::create_dir(dir) {
        Ok(()) => Ok(true),
        // A link would be followed by mount(2), and the mount then be somewhere else.
        Err(error)
            if error.kind() == io::ErrorKind::AlreadyExists
                && fs::symlink_metadata(dir).is_ok_and(|metadata| metadata.is_dir()) =>
        {
            Ok(false)
        }
        Err(source) => Err(failed("make the directory", dir)(source)),
    }
}

fn open_device() -> Result<OwnedFd, MountError> {
    let path = Path::new("/dev/fuse");
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK;
    rustix::fs::open(path, flags, Mode::empty()).map_err(failed("open", path))
}

/// Returns the topmost mount at `dir`, if it is a volume, and its connection's number.
fn find_mount(dir: &Path) -> Result<Option<(braid_probe::Mount, u32)>, MountError> {
    let mounts =
        mountinfo::read_own().map_err(failed("read", Path::new("/proc/self/mountinfo")))?;
    let top = mounts.into_iter().rfind(|mount| mount.mount_point == dir);
    Ok(top.filter(|mount| mount.kind == KIND).map(|mount| {
        let minor = mount.device.minor;
        (mount, minor)
    }))
}

/// For `map_err`: attaches what was tried, and on what.
fn failed<E: Into<io::Error>>(action: &'static str, path: &Path) -> impl FnOnce(E) -> MountError {
    move |source| MountError::Io { action, path: path.to_owned(), source: source.into() }
}
