//! Where a subject is being built: runs commands, notes them, and says what stood in the way.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::held::Held;
use super::things::Thing;
use crate::array::Array;
use crate::command::{CommandLine, Exit, Finished, Target, last_lines};
use crate::error::{LabError, Obstacle};
use crate::world::{StopFlag, World};

/// How long a command may take that does not write the whole device.
pub(super) const LIMIT: Duration = Duration::from_secs(120);

/// What is there once a provider is through.
#[derive(Debug, Clone)]
pub(super) struct Base {
    /// A device, a file, an NBD export, or the folder in which trials get folders of their own.
    pub(super) target: Target,
    pub(super) size_bytes: u64,
    pub(super) server_pid: Option<u32>,
    /// The volume's name, if braid has one.
    pub(super) volume: Option<String>,
    /// How its members are taken out, if it is an array.
    pub(super) array: Option<Array>,
}

impl Base {
    pub(super) fn new(target: Target, size_bytes: u64) -> Self {
        Self { target, size_bytes, server_pid: None, volume: None, array: None }
    }
}

/// Where a subject is being built.
pub(super) struct Site<'a> {
    pub(super) world: &'a mut dyn World,
    pub(super) held: &'a mut Held,
    pub(super) stop: &'a StopFlag,
    pub(super) subject: &'a str,
    /// Every command, as a shell reads it.
    pub(super) commands: &'a mut Vec<String>,
}

impl Site<'_> {
    /// Runs a command; how it ends is for the caller to judge, except that a stop is a stop.
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

    /// What a command said that must have succeeded.
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

    /// A command that failed and should not have.
    pub(super) fn failed(&self, command: &CommandLine, done: &Finished) -> Obstacle {
        let reason = format!("{} ended with {}", command.program, done.exit);
        self.down(reason, command.to_string(), done.stderr.clone())
    }

    /// The subject is not there, and should be.
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

    /// Notes what is to go away again.
    pub(super) fn hold(&mut self, thing: Thing) {
        self.held.push(thing);
    }

    /// Runs a command that makes a thing. It is noted before, so that a run that is killed meanwhile
    /// has it noted, and struck again when the command does not succeed.
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

    /// Mounts on a new folder, which is the command's last word. Answers the folder, the whole command
    /// and what it said.
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

    /// Refuses without the rights to attach and mount.
    pub(super) fn needs_root(&self, what: &str) -> Result<(), Obstacle> {
        match self.world.is_root() {
            true => Ok(()),
            false => Err(Obstacle::Impossible(format!("{what} needs root"))),
        }
    }

    /// Loads a module of the kernel's unless `sign` shows that what it brings is there.
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

    /// A file or block device that is there.
    pub(super) fn device(&mut self, path: impl Into<PathBuf>) -> Result<Base, Obstacle> {
        let path = path.into();
        let size = self.world.path_size(&path)?;
        Ok(Base::new(Target::Device(path), size))
    }
}

/// What a program said, for a reason.
pub(super) fn said(done: &Finished) -> String {
    match last_lines(&done.stderr) {
        lines if lines.is_empty() => done.exit.to_string(),
        lines => lines,
    }
}
