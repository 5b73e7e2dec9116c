//! A subject under construction: runs commands, records them, and returns obstacles.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::held::Held;
use super::things::Thing;
use crate::array::Array;
use crate::command::{CommandLine, Exit, Finished, Target, last_lines};
use crate::error::{LabError, Obstacle};
use crate::world::{StopFlag, World};

/// Time limit of a command that does not write the whole device.
pub(super) const LIMIT: Duration = Duration::from_secs(120);

/// The result of a provider.
#[derive(Debug, Clone)]
pub(super) struct Base {
    /// A device, a file, an NBD export, or the folder in which trials get folders of their own.
    pub(super) target: Target,
    pub(super) size_bytes: u64,
    pub(super) server_pid: Option<u32>,
    /// The volume's name, for a volume of braid.
    pub(super) volume: Option<String>,
    /// The way to remove its members, for an array.
    pub(super) array: Option<Array>,
}

impl Base {
    pub(super) fn new(target: Target, size_bytes: u64) -> Self {
        Self { target, size_bytes, server_pid: None, volume: None, array: None }
    }
}

/// A subject under construction.
pub(super) struct Site<'a> {
    pub(super) world: &'a mut dyn World,
    pub(super) held: &'a mut Held,
    pub(super) stop: &'a StopFlag,
    pub(super) subject: &'a str,
    /// All commands, in shell syntax.
    pub(super) commands: &'a mut Vec<String>,
}

impl Site<'_> {
    /// Runs a command whose result the caller judges. A stop is an obstacle.
    pub(super) fn run(
        &mut self,
        command: &CommandLine,
        limit: Duration,
    ) -> Result<Finished, Obstacle> {
        self.commands.push(command.to_string());
        let done = self.world.run(command, limit, self.stop)?;
        if done.exit == Exit::Stopped { Err(Obstacle::Stopped) } else { Ok(done) }
    }

    /// Runs a command that must succeed.
    pub(super) fn must(&mut self, command: &CommandLine) -> Result<Finished, Obstacle> {
        let done = self.run(command, LIMIT)?;
        self.expect(command, done)
    }

    /// Returns the result of a command that must have succeeded.
    pub(super) fn expect(
        &self,
        command: &CommandLine,
        done: Finished,
    ) -> Result<Finished, Obstacle> {
        match done.exit {
            Exit::Code(0) => Ok(done),
            _ => Err(self.failed(command, &done)),
        }
    }

    /// Returns the obstacle of a failed command.
    pub(super) fn failed(&self, command: &CommandLine, done: &Finished) -> Obstacle {
        let reason = format!("{} ended with {}", command.program, done.exit);
        self.down(reason, command.to_string(), done.stderr.clone())
    }

    /// Returns the obstacle of a subject that is down and should be up.
    pub(super) fn down(
        &self,
        reason: impl Into<String>,
        command: impl Into<String>,
        stderr: impl Into<String>,
    ) -> Obstacle {
        Obstacle::Failed(LabError::SubjectDown {
            subject: self.subject.to_owned(),
            reason: reason.into(),
            command: command.into(),
            stderr: stderr.into(),
        })
    }

    /// Records an object to be removed later.
    pub(super) fn hold(&mut self, thing: Thing) {
        self.held.push(thing);
    }

    /// Runs a command that makes an object. The record is written before, so that it exists if the run is
    /// killed meanwhile, and is struck if the command fails.
    pub(super) fn make(
        &mut self,
        thing: Thing,
        command: &CommandLine,
    ) -> Result<Finished, Obstacle> {
        let key = self.held.push(thing);
        let done = self.run(command, LIMIT);
        if !matches!(&done, Ok(done) if done.exit == Exit::Code(0)) {
            self.held.withdraw(key);
        }
        done
    }

    /// Mounts on a new folder, which is the command's last argument. Returns the folder, the whole command and
    /// its result.
    pub(super) fn mount(
        &mut self,
        command: CommandLine,
    ) -> Result<(PathBuf, CommandLine, Finished), Obstacle> {
        let folder = self.world.make_folder(&std::env::temp_dir())?;
        self.hold(Thing::Folder { path: folder.clone(), with_content: false });
        let command = command.arg(folder.display().to_string());
        let done = self.make(Thing::Mount { folder: folder.clone() }, &command)?;
        Ok((folder, command, done))
    }

    /// Refuses without the permission to attach and mount.
    pub(super) fn needs_root(&self, what: &str) -> Result<(), Obstacle> {
        match self.world.is_root() {
            true => Ok(()),
            false => Err(Obstacle::Impossible(format!("{what} needs root"))),
        }
    }

    /// Loads a kernel module unless the path `sign` shows that it is there.
    pub(super) fn load_module(
        &mut self,
        module: &str,
        sign: &Path,
        what: &str,
    ) -> Result<(), Obstacle> {
        if self.world.path_kind(sign)?.is_some() {
            return Ok(());
        }
        let why = match self.run(&CommandLine::new("modprobe").arg(module), LIMIT) {
            Ok(done) => said(&done),
            Err(Obstacle::Impossible(why)) => why,
            Err(other) => return Err(other),
        };
        match self.world.path_kind(sign)? {
            Some(_) => Ok(()),
            None => Err(Obstacle::Impossible(format!("this kernel has no {what}: {why}"))),
        }
    }

    /// Returns the base of an existing file or block device.
    pub(super) fn device(&mut self, path: impl Into<PathBuf>) -> Result<Base, Obstacle> {
        let path = path.into();
        let size = self.world.path_size(&path)?;
        Ok(Base::new(Target::Device(path), size))
    }
}

/// Returns the output of a program, for a reason.
pub(super) fn said(done: &Finished) -> String {
    match last_lines(&done.stderr) {
        lines if lines.is_empty() => done.exit.to_string(),
        lines => lines,
    }
}
