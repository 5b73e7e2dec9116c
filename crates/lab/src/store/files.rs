//! Files of the results directory: whole or absent; and the lock that keeps a second run out.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

use crate::error::LabError;
use crate::tool::RunOutput;

/// A process that a killed run was starting has its lock until it executes its program: so long a
/// lock that is held is tried again.
const PATIENCE: Duration = Duration::from_secs(1);

/// Keeps runs out while something is read and the answer lives, and writes nothing. `None` where that
/// cannot be: no run has been here, or the file system or its rights allow no lock.
///
/// # Errors
///
/// [`LabError::Busy`] when a run holds it.
pub(super) fn share_lock(path: &Path, what: &str) -> Result<Option<File>, LabError> {
    // A pipe would wait for somebody who writes to it.
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

/// Takes a lock file for a run, for as long as the answer lives; the kernel lets go when the process
/// ends, however it ends.
///
/// # Errors
///
/// [`LabError::Busy`] when another run holds it, or when the file cannot be created.
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

/// Tries to get what another run may have.
///
/// # Errors
///
/// [`LabError::Busy`] when it still has it after a while, or what the attempt says.
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

/// What the tools said, each in a file of its own.
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
/// [`LabError::File`] when it cannot be written.
pub fn write_whole(path: &Path, content: impl AsRef<[u8]>) -> Result<(), LabError> {
    let mut draft = path.as_os_str().to_owned();
    draft.push(".new");
    let draft = PathBuf::from(draft);
    // The folder may be another user's, who may have put a link there.
    let _ = fs::remove_file(&draft);
    let made = File::options().write(true).create_new(true).open(&draft);
    let written = made.and_then(|mut file| file.write_all(content.as_ref()));
    written.and_then(|()| fs::rename(&draft, path)).map_err(|error| {
        // A half-written draft of a full disk must not stay; the error that is told is the first.
        let _ = fs::remove_file(&draft);
        LabError::file("write", path)(error)
    })
}
