//! Files of the results directory, whole or absent; and the lock that keeps a second run out.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

use crate::error::LabError;
use crate::tool::RunOutput;

/// Time for which a held lock is retried: a child of a killed run holds its lock until it executes its program.
const PATIENCE: Duration = Duration::from_secs(1);

/// Takes a shared lock, which keeps runs out while the result lives, and writes nothing. `None` if that is
/// impossible: there was no run, or the file system or its permissions allow no lock.
///
/// # Errors
///
/// [`LabError::Busy`] if a run holds the lock.
pub(super) fn share_lock(path: &Path, what: &str) -> Result<Option<File>, LabError> {
    // Opening a pipe would wait for its writer.
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let Ok(file) = File::options().read(true).custom_flags(flags).open(path) else {
        return Ok(None);
    };
    match flock(&file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => Ok(Some(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(LabError::Busy { what: what.to_owned() }),
        Err(_) => Ok(None),
    }
}

/// Takes a lock file for a run, while the result lives; the kernel releases the lock when the process ends in
/// any way.
///
/// # Errors
///
/// [`LabError::Busy`] if another run holds the lock, or the file cannot be created.
pub(crate) fn take_lock(path: &Path, what: &str) -> Result<File, LabError> {
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)
        .map_err(LabError::file("create the lock", path))?;
    patiently(what, || match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(())),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(errno) => Err(LabError::file("lock", path)(errno.into())),
    })?;
    Ok(file)
}

/// Tries to get an object that another run may have.
///
/// # Errors
///
/// [`LabError::Busy`] if the other run keeps it for a while, or the error of an attempt.
pub(crate) fn patiently<T>(
    what: &str,
    mut attempt: impl FnMut() -> Result<Option<T>, LabError>,
) -> Result<T, LabError> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match attempt()? {
            Some(got) => return Ok(got),
            None if Instant::now() < deadline => std::thread::sleep(PATIENCE / 20),
            None => return Err(LabError::Busy { what: what.to_owned() }),
        }
    }
}

/// Writes the output of the tools, each stream in a file of its own.
pub(super) fn write_raw(folder: &Path, output: &RunOutput) -> Result<(), LabError> {
    fs::create_dir_all(folder).map_err(LabError::file("create", folder))?;
    for (index, process) in output.processes.iter().enumerate() {
        write_whole(&folder.join(format!("{index}.stdout")), &process.stdout)?;
        if !process.stderr.is_empty() {
            write_whole(&folder.join(format!("{index}.stderr")), &process.stderr)?;
        }
    }
    for (name, text) in &output.files {
        write_whole(&folder.join(name), text)?;
    }
    Ok(())
}

/// Writes a file beside its place and moves it there, so that it is whole or absent.
///
/// # Errors
///
/// [`LabError::File`]: it cannot be written.
pub fn write_whole(path: &Path, content: impl AsRef<[u8]>) -> Result<(), LabError> {
    let mut draft = path.as_os_str().to_owned();
    draft.push(".new");
    let draft = PathBuf::from(draft);
    // The folder may belong to another user, and contain a link of that name.
    let _ = fs::remove_file(&draft);
    let made = File::options().write(true).create_new(true).open(&draft);
    let written = made.and_then(|mut file| file.write_all(content.as_ref()));
    written.and_then(|()| fs::rename(&draft, path)).map_err(|error| {
        // A half-written draft on a full disk must not stay; the first error is returned.
        let _ = fs::remove_file(&draft);
        LabError::file("write", path)(error)
    })
}
