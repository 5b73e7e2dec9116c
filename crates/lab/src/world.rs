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

/// Everything that the runner needs from outside.
///
/// # Errors
///
/// What fails says what was tried, on what, and why. A program that fails is no error: its exit says
/// so, also when `stop` was set or it took longer than its limit. Anything else that takes `stop` fails
/// with [`LabError::Stopped`] when it is set meanwhile.
pub trait World {
    /// Time since some fixed moment; never goes back.
    fn monotonic(&self) -> Duration;
    /// Seconds since 1970.
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

    /// Starts all programs at once and waits for all, at most `limit`, less if `stop` is set.
    /// Then each that still runs is ended, with an exit of `TimedOut` or `Stopped`; with one of
    /// `Flooded` when one prints without end. What a program started and left behind is
    /// ended with it. Meanwhile the commands of `story` are run. Answers one output for
    /// each program, in order, with its seconds from the common start. When one cannot be started,
    /// none is left running.
    fn run_all(
        &mut self,
        commands: &[CommandLine],
        limit: Duration,
        stop: &StopFlag,
        story: &mut Story,
    ) -> Result<Vec<ToolOutput>, LabError>;

    /// Carries out a step of preparing or cleaning up. Nothing that exists is overwritten, and
    /// nothing is removed but what lies below a folder of [`World::make_folder`].
    fn perform(&mut self, step: &Step, limit: Duration, stop: &StopFlag) -> Result<(), LabError>;

    /// Makes a folder of a new name in `parent`, for this user alone.
    fn make_folder(&mut self, parent: &Path) -> Result<PathBuf, LabError>;

    /// Removes a folder of [`World::make_folder`], which must be empty unless `with_content`. One
    /// that is gone already is no error.
    fn remove_folder(&mut self, folder: &Path, with_content: bool) -> Result<(), LabError>;

    /// Takes on a folder of [`World::make_folder`] that an earlier run left, so that it can be
    /// removed; refuses another.
    fn adopt_folder(&mut self, _folder: &Path) -> Result<(), LabError> {
        Ok(())
    }

    /// Marks every process that is started from now on as this results folder's.
    fn mark_processes(&mut self, _results: &Path) -> Result<(), LabError> {
        Ok(())
    }

    /// Ends the processes with that mark that an earlier run left; `but_volumes` spares
    /// those that serve braid's volumes, which `braid down` ends in order. Answers how many there
    /// were.
    fn end_strays(&mut self, _but_volumes: bool) -> Result<usize, LabError> {
        Ok(0)
    }

    /// Size in bytes of the export of an NBD server that is ready; an error while it is not.
    fn nbd_size(&mut self, uri: &str) -> Result<u64, LabError> {
        crate::nbd::query_size(uri)
    }

    /// Size in bytes of a file or block device.
    fn path_size(&mut self, path: &Path) -> Result<u64, LabError> {
        files::path_size(path).map_err(LabError::file("find out the size of", path))
    }

    /// Writes everything back and empties the page cache.
    fn drop_caches(&mut self) -> Result<(), LabError> {
        files::drop_caches()
    }

    /// Writes back what is dirty of a block device, or of the file system that `path` lies on.
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

    /// What the machine has done so far, of what a trial has to do with.
    fn snapshot(&mut self, watch: &Watch) -> Snapshot {
        crate::evidence::take(watch)
    }

    /// The machine, for a session whose tools have these versions.
    fn environment(&mut self, tools: Vec<(String, String)>) -> Environment {
        crate::environment::read_environment(tools)
    }

    /// Whether this user may attach and mount.
    fn is_root(&self) -> bool {
        rustix::process::geteuid().is_root()
    }

    /// What a path leads to; `None` if nothing is there.
    fn path_kind(&mut self, path: &Path) -> Result<Option<PathKind>, LabError> {
        files::path_kind(path)
    }

    /// Refuses a file or block device that somebody uses ([`LabError::InUse`]), which whatever writes
    /// asks before: mounted, also by a partition; swap; under another device; behind a loop device;
    /// open in a process that could write. One that is not there is refused by whoever opens it.
    fn check_unused(&mut self, path: &Path) -> Result<(), LabError> {
        files::check_unused(path)
    }

    /// Takes a block device exclusively for as long as the answer lives, so that nobody mounts it or
    /// builds on it meanwhile. `None` for anything else, which nobody can take so.
    fn claim(&mut self, path: &Path) -> Result<Option<File>, LabError> {
        files::claim(path)
    }

    /// The holes in the first `bytes` bytes of a file; `None` if it is none, so that nobody knows.
    fn holes(&mut self, path: &Path, bytes: u64) -> Result<Option<Holes>, LabError> {
        files::holes(path, bytes)
    }

    /// Bytes that this user may still write to the file system of `path`.
    fn free_bytes(&mut self, path: &Path) -> Result<u64, LabError> {
        files::free_bytes(path)
    }

    /// A short text of the system's, from `/sys` or `/proc`; `None` if it is not there.
    fn read_text(&mut self, path: &Path) -> Result<Option<String>, LabError> {
        files::read_text(path)
    }

    /// Gives the system an order through a file of `/sys`.
    fn write_text(&mut self, path: &Path, text: &str) -> Result<(), LabError> {
        std::fs::write(path, text).map_err(LabError::file("write to", path))
    }
}

/// How often a rest looks whether it is to go on.
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

/// What of a file was never written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holes {
    /// Bytes in holes.
    pub holes: u64,
    /// Bytes that were looked at.
    pub bytes: u64,
}

/// What a path leads to.
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
