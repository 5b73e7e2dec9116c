//! The world outside: processes, clocks, files' sizes. The runner sees only [`World`], so a mock
//! can play a whole campaign without a tool, a server or time.
//!
//! [`SystemWorld`] is the real one; its parts lie under `world/`.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::command::{CommandLine, Finished, Step, Target, ToolOutput};
use crate::environment::Environment;
use crate::error::LabError;
use crate::evidence::{Snapshot, Watch};
use crate::story::Story;

mod content;
mod files;
mod many;
mod process;
mod stop;
mod strays;
mod system;

pub(crate) use content::{Leave, make_file};
pub(crate) use files::{free_bytes, read_text, size_of};

pub use stop::StopFlag;
pub use system::SystemWorld;

/// The environment of the runner.
///
/// # Errors
///
/// An error says what was tried, on which object, and why. A failed program is no error: its exit says so, also
/// after a stop or its time limit. Any other operation with `stop` fails with [`LabError::Stopped`] if it is
/// set meanwhile.
pub trait World {
    /// Returns the time since some fixed moment; never goes back.
    fn monotonic(&self) -> Duration;
    /// Returns the seconds since 1970.
    fn unix_time_s(&self) -> u64;
    /// Waits.
    fn sleep(&mut self, time: Duration);
    /// Runs a program to its end, at most `limit`, less if `stop` is set.
    fn run(
        &mut self,
        command: &CommandLine,
        limit: Duration,
        stop: &StopFlag,
    ) -> Result<Finished, LabError>;

    /// Starts all programs at once and waits for all, at most `limit`, less if `stop` is set. Programs that
    /// still run are then ended, with an exit of `TimedOut` or `Stopped`, or of `Flooded` if one prints without
    /// end. Remaining processes of a program are ended with it. Meanwhile the commands of `story` are run.
    /// Returns one output for each program, in order, with its seconds from the common start. If one cannot be
    /// started, none is left running.
    fn run_all(
        &mut self,
        commands: &[CommandLine],
        limit: Duration,
        stop: &StopFlag,
        story: &mut Story,
    ) -> Result<Vec<ToolOutput>, LabError>;

    /// Carries out a step of preparing or cleaning up. No existing file is overwritten, and only files below a
    /// folder of [`World::make_folder`] are removed.
    fn perform(&mut self, step: &Step, limit: Duration, stop: &StopFlag) -> Result<(), LabError>;

    /// Makes a folder of a new name in `parent`, for this user alone.
    fn make_folder(&mut self, parent: &Path) -> Result<PathBuf, LabError>;

    /// Removes a folder of [`World::make_folder`], which must be empty unless `with_content`. A folder that is
    /// gone already is no error.
    fn remove_folder(&mut self, folder: &Path, with_content: bool) -> Result<(), LabError>;

    /// Adopts a folder of [`World::make_folder`] from an earlier run, so that it can be removed; refuses
    /// another.
    fn adopt_folder(&mut self, _folder: &Path) -> Result<(), LabError> {
        Ok(())
    }

    /// Marks every process that is started from now on with this results folder.
    fn mark_processes(&mut self, _results: &Path) -> Result<(), LabError> {
        Ok(())
    }

    /// Ends the processes of an earlier run with that mark; `but_volumes` spares the processes of braid's
    /// volumes, which `braid down` ends in order. Returns the number of processes.
    fn end_strays(&mut self, _but_volumes: bool) -> Result<usize, LabError> {
        Ok(0)
    }

    /// Returns the size in bytes of the export of an NBD server that is ready; an error while it is not.
    fn nbd_size(&mut self, uri: &str) -> Result<u64, LabError> {
        crate::nbd::query_size(uri)
    }

    /// Returns the size in bytes of a file or block device.
    fn path_size(&mut self, path: &Path) -> Result<u64, LabError> {
        files::path_size(path).map_err(LabError::file("find out the size of", path))
    }

    /// Writes everything back and empties the page cache.
    fn drop_caches(&mut self) -> Result<(), LabError> {
        files::drop_caches()
    }

    /// Writes back the dirty pages of a block device, or of the file system of `path`.
    fn sync_path(&mut self, path: &Path) -> Result<(), LabError> {
        files::sync_path(path).map_err(LabError::file("sync", path))
    }

    /// Writes the first `bytes` bytes, whole blocks, of a device, file or NBD export with
    /// incompressible data from `seed`, durably, past the page cache where that is possible.
    fn fill(
        &mut self,
        target: &Target,
        bytes: u64,
        seed: u64,
        limit: Duration,
        stop: &StopFlag,
    ) -> Result<(), LabError> {
        content::fill(target, bytes, seed, &Leave::new(limit, stop))
    }

    /// Takes a snapshot of the counters that concern a trial.
    fn snapshot(&mut self, watch: &Watch) -> Snapshot {
        crate::evidence::take(watch)
    }

    /// Returns the machine, for a session with tools of these versions.
    fn environment(&mut self, tools: Vec<(String, String)>) -> Environment {
        crate::environment::read_environment(tools)
    }

    /// Returns true if this user may attach and mount.
    fn is_root(&self) -> bool {
        rustix::process::geteuid().is_root()
    }

    /// Returns the kind of a path; `None` if it does not exist.
    fn path_kind(&mut self, path: &Path) -> Result<Option<PathKind>, LabError> {
        files::path_kind(path)
    }

    /// Refuses a file or block device in use ([`LabError::InUse`]), before each write: mounted, also by a
    /// partition; swap; under another device; behind a loop device; open in a process that could write. An
    /// absent one fails when it is opened.
    fn check_unused(&mut self, path: &Path) -> Result<(), LabError> {
        files::check_unused(path)
    }

    /// Claims a block device exclusively while the result lives, so that it is neither mounted nor built on
    /// meanwhile. `None` for any other file, which cannot be claimed.
    fn claim(&mut self, path: &Path) -> Result<Option<File>, LabError> {
        files::claim(path)
    }

    /// Returns the holes in the first `bytes` bytes of a file; `None` if it is no file: its holes are unknown.
    fn holes(&mut self, path: &Path, bytes: u64) -> Result<Option<Holes>, LabError> {
        files::holes(path, bytes)
    }

    /// Returns the bytes that this user may still write to the file system of `path`.
    fn free_bytes(&mut self, path: &Path) -> Result<u64, LabError> {
        files::free_bytes(path)
    }

    /// Reads a short text from `/sys` or `/proc`; `None` if it does not exist.
    fn read_text(&mut self, path: &Path) -> Result<Option<String>, LabError> {
        files::read_text(path)
    }

    /// Writes an order to a file of `/sys`.
    fn write_text(&mut self, path: &Path, text: &str) -> Result<(), LabError> {
        std::fs::write(path, text).map_err(LabError::file("write to", path))
    }
}

/// Interval at which a rest checks the stop flag.
const SLICE: Duration = Duration::from_millis(100);

/// Waits, less if `stop` is set.
///
/// # Errors
///
/// [`LabError::Stopped`] when it was set.
pub(crate) fn rest(world: &mut dyn World, time: Duration, stop: &StopFlag) -> Result<(), LabError> {
    let end = world.monotonic() + time;
    loop {
        if stop.is_set() {
            return Err(LabError::Stopped);
        }
        let left = end.saturating_sub(world.monotonic());
        if left.is_zero() {
            return Ok(());
        }
        world.sleep(left.min(SLICE));
    }
}

/// The unwritten parts of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holes {
    /// Bytes in holes.
    pub holes: u64,
    /// Bytes in total.
    pub bytes: u64,
}

/// The kind of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathKind {
    /// A regular file.
    File,
    /// A block device.
    Block,
    /// A folder.
    Folder,
    /// Anything else.
    Other,
}
