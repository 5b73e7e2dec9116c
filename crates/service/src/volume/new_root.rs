//! Following init into the root file system that this volume holds.
//!
//! ```text
//!   initramfs                            root file system, on the volume
//!   braid up NAME --root-storage
//!   mounts /dev/…, moves /run, /dev,
//!   /proc there, empties itself
//!   init changes its root  ───────────▶  /proc/1/root is another directory
//!                                        the volume's process makes it its root, too
//! ```
//!
//! A process that stays behind finds nothing by its paths any more: no `/dev` to take a member from, no
//! `/run/braid` to take its socket away from. That init has changed its root is seen at `/proc`, which was
//! opened before.
//!
//! Looking a path up now begins on the volume itself, at its root directory, which is in memory as long as
//! something is mounted below it. Nothing on the path of a request looks one up.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, openat, statat};
use rustix::process::{chdir, chroot, fchdir};

/// Interval between two looks at the root of init.
const PAUSE: Duration = Duration::from_millis(200);
/// The root directory of the first process, below `/proc`.
const ROOT_OF_INIT: &str = "1/root";

/// Starts to follow, in a thread that ends when it has.
///
/// # Errors
/// There is no `/proc`, or no thread.
pub(super) fn follow() -> io::Result<()> {
    let proc =
        openat(CWD, "/proc", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let follow = move || {
        loop {
            std::thread::sleep(PAUSE);
            match enter(&proc) {
                Ok(false) => {}
                Ok(true) => return eprintln!("the root file system is that of init now"),
                Err(error) => {
                    return eprintln!("the root file system of init cannot be entered: {error}");
                }
            }
        }
    };
    std::thread::Builder::new().name("new-root".to_owned()).spawn(follow).map(drop)
}

/// Makes the root directory of init that of this process, if it is another one.
fn enter(proc: &OwnedFd) -> io::Result<bool> {
    let identity = |at: &OwnedFd, path| {
        statat(at, path, AtFlags::empty()).map(|stat| (stat.st_dev, stat.st_ino))
    };
    let own = openat(CWD, "/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    if identity(&own, ".")? == identity(proc, ROOT_OF_INIT)? {
        return Ok(false);
    }
    let root = openat(
        proc,
        ROOT_OF_INIT,
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    fchdir(&root)?;
    chroot(".")?;
    chdir("/")?;
    Ok(true)
}
