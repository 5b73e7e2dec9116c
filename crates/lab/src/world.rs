//! The world outside: processes, clocks, files' sizes. The runner sees only [`World`], so a mock
//! can play a whole campaign without a tool, a server or time.
//!
//! [`SystemWorld`] is the real one; its parts lie under `world/`.
//!
//! Deliberately absent: shells. A [`CommandLine`] is a program and its arguments.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::error::LabError;
use crate::evidence::{Snapshot, Watch};
use crate::story::Story;
use crate::tool::{Step, Target, ToolOutput};

mod content;
mod files;
mod many;
mod process;
mod service;
mod strays;
mod stream;
mod system;

pub(crate) use content::{Leave, make_file};
pub use files::Claim;
pub(crate) use files::{free_bytes, read_text, size_of};

pub use system::SystemWorld;

/// A program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine {
    /// Name (looked up on PATH) or path.
    pub program: String,
    /// Arguments.
    pub args: Vec<String>,
    /// The folder it runs in; `None`: this process's.
    pub cwd: Option<String>,
}

impl CommandLine {
    /// A command without arguments.
    pub fn new(program: impl Into<String>) -> Self {
        Self { program: program.into(), args: Vec::new(), cwd: None }
    }

    /// With one more argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Run in a folder, for programs that know no other way to be told where.
    #[must_use]
    pub fn in_folder(mut self, folder: impl Into<String>) -> Self {
        self.cwd = Some(folder.into());
        self
    }
}

impl fmt::Display for CommandLine {
    /// As a shell would read it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // In a shell of its own: the next command starts where this one did.
        if let Some(folder) = &self.cwd {
            write!(f, "(cd {} && ", shell_word(folder))?;
        }
        f.write_str(&shell_word(&self.program))?;
        for arg in &self.args {
            write!(f, " {}", shell_word(arg))?;
        }
        f.write_str(if self.cwd.is_some() { ")" } else { "" })
    }
}

/// A word quoted for a POSIX shell where it needs it.
pub(crate) fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+./:,%@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// The end of what a program said, on one line.
pub(crate) fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(3)..].join(" | ")
}

/// How a tool ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exit {
    /// With this status.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// It was killed because it took longer than it was allowed to.
    TimedOut,
    /// It was killed because the user wants to stop.
    Stopped,
    /// It was killed because it said more than is kept.
    Flooded,
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit status {code}"),
            Self::Signal(signal) => write!(f, "killed by signal {signal}"),
            Self::TimedOut => f.write_str("killed after its time limit"),
            Self::Stopped => f.write_str("stopped by the user"),
            Self::Flooded => {
                write!(f, "killed because it printed more than {} MiB", stream::MOST >> 20)
            }
        }
    }
}

/// A tool's run from start to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// How it ended.
    pub exit: Exit,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

/// A server that is running.
pub trait Service {
    /// How it ended and what it said on standard error, if it has ended.
    ///
    /// # Errors
    ///
    /// When the process cannot be watched.
    fn poll_exit(&mut self) -> Result<Option<(Exit, String)>, LabError>;

    /// Its process, if it is one.
    fn pid(&self) -> Option<u32> {
        None
    }

    /// Asks it to end (SIGTERM), waits, and kills it after `grace`. Returns how it ended and what
    /// it said on standard error.
    ///
    /// # Errors
    ///
    /// When the process can be neither signalled nor waited for.
    fn stop(&mut self, grace: Duration) -> Result<(Exit, String), LabError>;
}

/// Everything that the runner needs from outside.
pub trait World {
    /// Time since some fixed moment; never goes back.
    fn monotonic(&self) -> Duration;
    /// Seconds since 1970.
    fn unix_time_s(&self) -> u64;
    /// Waits.
    fn sleep(&mut self, time: Duration);
    /// Runs a tool to its end, at most `limit`, less if `stop` is set.
    ///
    /// # Errors
    ///
    /// When it cannot be started or watched; a tool that fails is not an error here.
    fn run(
        &mut self,
        command: &CommandLine,
        limit: Duration,
        stop: &StopFlag,
    ) -> Result<Finished, LabError>;
    /// Starts a server.
    ///
    /// # Errors
    ///
    /// When it cannot be started.
    fn start(&mut self, command: &CommandLine) -> Result<Box<dyn Service>, LabError>;
    /// Size in bytes of the export of an NBD server that is ready; an error while it is not.
    ///
    /// # Errors
    ///
    /// When nothing listens there or it does not speak NBD.
    fn nbd_size(&mut self, uri: &str) -> Result<u64, LabError>;
    /// Size in bytes of a file or block device.
    ///
    /// # Errors
    ///
    /// When it cannot be opened for reading.
    fn path_size(&mut self, path: &Path) -> Result<u64, LabError>;

    /// Starts all programs at once and waits for all, at most `limit`, less if `stop` is set.
    /// Then each that still runs is ended, with [`Exit::TimedOut`] or [`Exit::Stopped`]; with
    /// [`Exit::Flooded`] when one prints without end. What a program started and left behind is
    /// ended with it. Meanwhile the story's commands are run beside them. Answers one output for
    /// each program, in order, with its seconds from the common start.
    ///
    /// # Errors
    ///
    /// When one cannot be started or watched; none is left running then. A program that fails is
    /// not an error here.
    fn run_all(
        &mut self,
        commands: &[CommandLine],
        limit: Duration,
        stop: &StopFlag,
        story: &mut Story,
    ) -> Result<Vec<ToolOutput>, LabError>;

    /// Carries out a step of preparing or cleaning up. Nothing that exists is overwritten, and
    /// nothing is removed but what lies below a folder of [`World::make_folder`].
    ///
    /// # Errors
    ///
    /// When it cannot be done, or `stop` was set meanwhile ([`LabError::Stopped`]).
    fn perform(&mut self, step: &Step, limit: Duration, stop: &StopFlag) -> Result<(), LabError>;

    /// Writes everything back and empties the page cache.
    ///
    /// # Errors
    ///
    /// When this user may not.
    fn drop_caches(&mut self) -> Result<(), LabError>;

    /// Writes back what is dirty of a block device, or of the file system that `path` lies on.
    ///
    /// # Errors
    ///
    /// When it cannot be opened, or writing fails.
    fn sync_path(&mut self, path: &Path) -> Result<(), LabError>;

    /// Writes the first `bytes` bytes of a device, file or NBD export with incompressible data
    /// from `seed`, durably, past the page cache where that is possible.
    ///
    /// # Errors
    ///
    /// When writing fails, takes longer than `limit`, or `stop` is set meanwhile
    /// ([`LabError::Stopped`]).
    fn fill(
        &mut self,
        target: &Target,
        bytes: u64,
        seed: u64,
        limit: Duration,
        stop: &StopFlag,
    ) -> Result<(), LabError>;

    /// Makes a folder of a new name in `parent`, for this user alone.
    ///
    /// # Errors
    ///
    /// When it cannot be made.
    fn make_folder(&mut self, parent: &Path) -> Result<PathBuf, LabError>;

    /// Removes a folder of [`World::make_folder`], which must be empty unless `with_content`. One
    /// that is gone already is no error.
    ///
    /// # Errors
    ///
    /// When it is not such a folder, not empty, or cannot be removed.
    fn remove_folder(&mut self, folder: &Path, with_content: bool) -> Result<(), LabError>;

    /// Takes on a folder of [`World::make_folder`] that an earlier run left, so that it can be
    /// removed.
    ///
    /// # Errors
    ///
    /// When it is there and not such a folder of this user's.
    fn adopt_folder(&mut self, _folder: &Path) -> Result<(), LabError> {
        Ok(())
    }

    /// Marks every process that is started from now on as this results folder's.
    ///
    /// # Errors
    ///
    /// When the folder cannot be looked at.
    fn mark_processes(&mut self, _results: &Path) -> Result<(), LabError> {
        Ok(())
    }

    /// Ends the processes with that mark that an earlier run left; `but_volumes` spares
    /// those that serve braid's volumes, which `braid down` ends in order. Answers how many there
    /// were.
    ///
    /// # Errors
    ///
    /// When one does not end.
    fn end_strays(&mut self, _but_volumes: bool) -> Result<usize, LabError> {
        Ok(0)
    }

    /// What the machine has done so far, of what a trial has to do with.
    fn snapshot(&mut self, watch: &Watch) -> Snapshot {
        crate::evidence::take(watch)
    }

    /// Whether this user may attach and mount.
    fn is_root(&self) -> bool {
        rustix::process::geteuid().is_root()
    }

    /// What a path leads to; `None` if nothing is there.
    ///
    /// # Errors
    ///
    /// When it cannot be looked at.
    fn path_kind(&mut self, path: &Path) -> Result<Option<PathKind>, LabError> {
        files::path_kind(path)
    }

    /// Refuses a file or block device that somebody uses, which whatever writes asks before:
    /// mounted, also by a partition; swap; under another device; behind a loop device; open in a
    /// process that could write. One that is not there is refused by whoever opens it.
    ///
    /// # Errors
    ///
    /// [`LabError::InUse`], also when it cannot be found out.
    fn check_unused(&mut self, path: &Path) -> Result<(), LabError> {
        files::check_unused(path)
    }

    /// Takes a block device exclusively, so that nobody mounts it or builds on it meanwhile. `None`
    /// for anything else, which nobody can take so.
    ///
    /// # Errors
    ///
    /// [`LabError::InUse`] when somebody has it.
    fn claim(&mut self, path: &Path) -> Result<Option<Claim>, LabError> {
        files::claim(path)
    }

    /// The holes in the first `bytes` bytes of a file; `None` if it is none, so that nobody knows.
    ///
    /// # Errors
    ///
    /// When it cannot be looked at.
    fn holes(&mut self, path: &Path, bytes: u64) -> Result<Option<Holes>, LabError> {
        files::holes(path, bytes)
    }

    /// Bytes that this user may still write to the file system of `path`.
    ///
    /// # Errors
    ///
    /// When it cannot be asked.
    fn free_bytes(&mut self, path: &Path) -> Result<u64, LabError> {
        files::free_bytes(path)
    }

    /// A short text of the system's, from `/sys` or `/proc`; `None` if it is not there.
    ///
    /// # Errors
    ///
    /// When it is there and cannot be read.
    fn read_text(&mut self, path: &Path) -> Result<Option<String>, LabError> {
        files::read_text(path)
    }

    /// Gives the system an order through a file of `/sys`.
    ///
    /// # Errors
    ///
    /// When it is not there or refuses.
    fn write_text(&mut self, path: &Path, text: &str) -> Result<(), LabError> {
        std::fs::write(path, text).map_err(LabError::file("write to", path))
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

/// Tells the runner to stop. Clones share one flag.
#[derive(Debug, Clone, Default)]
pub struct StopFlag(Arc<AtomicBool>);

impl StopFlag {
    /// A flag that SIGINT and SIGTERM set. A second signal ends the process at once, as without
    /// a handler.
    ///
    /// # Errors
    ///
    /// When the handlers cannot be installed.
    pub fn on_signals() -> Result<Self, LabError> {
        let flag = Self::default();
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            // The order matters: the second signal must find the flag set by the first.
            signal_hook::flag::register_conditional_default(signal, Arc::clone(&flag.0))
                .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&flag.0)))
                .map_err(|source| LabError::Process {
                    action: "catch signals of",
                    program: "this program".to_owned(),
                    source,
                })?;
        }
        Ok(flag)
    }

    /// Asks to stop.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether somebody asked to stop.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_prints_as_a_shell_reads_it() {
        let command = CommandLine::new("fio").arg("--uri=nbd+unix:///?socket=/x").arg("it's");
        assert_eq!(command.to_string(), "fio '--uri=nbd+unix:///?socket=/x' 'it'\\''s'");
        let there = CommandLine::new("ls").in_folder("/a b");
        assert_eq!(there.to_string(), "(cd '/a b' && ls)");
    }
}
