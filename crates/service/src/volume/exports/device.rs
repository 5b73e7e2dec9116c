//! Parts that all kinds of block devices of this machine have in common.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use braid_block::Limits;
use braid_probe::Holder;

use super::link::Link;
use crate::control::ExportStatus;
use crate::volume::error::ExportError;

/// Time that programs have which look at every new device (udev, blkid) to close it.
const LOOK: Duration = Duration::from_secs(1);

/// Facts of a device, which stay while it is there.
pub(super) struct Facts {
    path: PathBuf,
    /// A name of the device that stays.
    link: Option<PathBuf>,
}

impl Facts {
    pub(super) fn new(path: PathBuf, link: Option<&Link>) -> Facts {
        Facts { path, link: link.map(|link| link.path().to_owned()) }
    }

    /// Returns the status of an export of this `kind`, with its facts once it was started.
    pub(super) fn status(facts: Option<&Facts>, kind: &str) -> ExportStatus {
        let text = |path: &PathBuf| path.display().to_string();
        ExportStatus {
            kind: kind.to_owned(),
            address: facts.map(|facts| text(&facts.path)).unwrap_or_default(),
            link: facts.and_then(|facts| facts.link.as_ref()).map(text),
            ..ExportStatus::default()
        }
    }
}

/// # Errors
/// Another user cannot make block devices.
pub(super) fn check_root() -> Result<(), ExportError> {
    if rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let why = "only root can attach a volume as a block device: --attach none serves it over NBD";
    Err(ExportError::failed(why))
}

/// Bytes that a block device reads ahead: two stripes, so that all members read while the first are used
/// (drivers/md/raid0.c, `raid0_run`).
pub(super) fn read_ahead(limits: &Limits) -> u64 {
    (2 * u64::from(limits.optimal_io)).max(braid_sys::loop_device::READ_AHEAD)
}

/// The users of the device at `path`, without this process, which may have to have it open.
///
/// # Errors
/// They cannot be found out.
pub(super) fn holders(path: &Path) -> Result<Vec<Holder>, ExportError> {
    let own = std::process::id();
    let found = braid_probe::find_users(path).map_err(ExportError::failed)?.holders;
    let is_own = |holder: &Holder| matches!(holder, Holder::Process { pid, .. } if *pid == own);
    Ok(found.into_iter().filter(|holder| !is_own(holder)).collect())
}

/// Users as texts for people.
pub(super) fn texts(holders: &[Holder]) -> Vec<String> {
    holders.iter().map(Holder::to_string).collect()
}

/// Waits for programs that only look at the device at `path`.
///
/// # Errors
/// It is in use.
pub(super) fn check_unused(path: &Path) -> Result<(), ExportError> {
    let deadline = Instant::now() + LOOK;
    loop {
        let holders = holders(path)?;
        if holders.is_empty() {
            return Ok(());
        }
        if holders.iter().any(Holder::is_exclusive) || Instant::now() >= deadline {
            let holders = texts(&holders);
            let text = format!("{} is in use: {}", path.display(), holders.join(", "));
            return Err(ExportError::InUse { text, holders });
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Opens the device at `path` for this process alone.
///
/// # Errors
/// It is mounted, or claimed otherwise; it is not there.
pub(super) fn claim(path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::EXCL.bits().cast_signed();
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// The refusal of a device that cannot be claimed.
pub(super) fn in_use(path: &Path, error: &io::Error) -> ExportError {
    let text = format!("{} is in use: {error}", path.display());
    ExportError::InUse { text, holders: Vec::new() }
}

/// Tells of a device that a killed process left, and of what was mounted on it.
pub(super) fn told_of_left(device: &Path, points: &[PathBuf]) -> String {
    let device = device.display();
    let gone = format!("{device}, which a process that was killed had left, was taken away");
    let points: Vec<String> = points.iter().map(|point| point.display().to_string()).collect();
    match points.is_empty() {
        true => gone,
        false => format!(
            "{gone}, and what was mounted on it: {}; check that file system before it is mounted again",
            points.join(", ")
        ),
    }
}
