//! Where a subject is being built: runs commands, notes them, and says what stood in the way.

use std::io;
use std::path::Path;
use std::time::Duration;

use super::held::Held;
use super::journal::Thing;
use crate::array::Array;
use crate::command::{CommandLine, Exit, Finished, Target, last_lines};
use crate::error::LabError;
use crate::world::{StopFlag, World};

/// How long a command may take that does not write the whole device.
pub(super) const LIMIT: Duration = Duration::from_secs(120);
/// How often an array is asked whether its pass is over.
const ASK_EVERY: Duration = Duration::from_millis(200);

/// Why a subject is not there.
#[derive(Debug)]
pub(super) enum Obstacle {
    /// It cannot be on this machine; the campaign goes on without it.
    Impossible(String),
    /// The user asked to stop.
    Stopped,
    /// It should be there and is not.
    Failed(LabError),
}

impl From<LabError> for Obstacle {
    fn from(error: LabError) -> Self {
        match error {
            LabError::Stopped => Self::Stopped,
            LabError::Spawn { program, source } => match package_of(&program) {
                Some(package) if source.kind() == io::ErrorKind::NotFound => Self::Impossible(
                    format!("{program} is not installed: apt-get install {package}"),
                ),
                _ => Self::Failed(LabError::Spawn { program, source }),
            },
            other => Self::Failed(other),
        }
    }
}

/// The Debian package of a program that is used here.
fn package_of(program: &str) -> Option<&'static str> {
    Some(match program {
        "mkfs.ext2" | "mkfs.ext3" | "mkfs.ext4" => "e2fsprogs",
        "mkfs.xfs" => "xfsprogs",
        "mkfs.btrfs" => "btrfs-progs",
        "mkfs.f2fs" => "f2fs-tools",
        "mdadm" => "mdadm",
        "losetup" | "mount" | "umount" => "mount",
        "modprobe" => "kmod",
        "blockdev" | "zramctl" | "fallocate" => "util-linux",
        _ => return None,
    })
}

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

    /// Runs a command that must succeed; answers its standard output.
    pub(super) fn must(&mut self, command: &CommandLine) -> Result<String, Obstacle> {
        let done = self.run(command, LIMIT)?;
        match done.exit {
            Exit::Code(0) => Ok(done.stdout),
            _ => Err(self.failed(command, &done)),
        }
    }

    /// A command that failed and should not have.
    pub(super) fn failed(&self, command: &CommandLine, done: &Finished) -> Obstacle {
        let reason = format!("{} ended with {}", command.program, done.exit);
        self.down(reason, command.to_string(), done.stderr.clone())
    }

    /// The subject is not there, and should be.
    pub(super) fn down(&self, reason: String, command: String, stderr: String) -> Obstacle {
        let subject = self.subject.to_owned();
        Obstacle::Failed(LabError::SubjectDown { subject, reason, command, stderr })
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
        self.hold(thing);
        let done = self.run(command, LIMIT);
        if !matches!(&done, Ok(done) if done.exit == Exit::Code(0)) {
            self.held.withdraw();
        }
        done
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

    /// The size of a device that is there.
    pub(super) fn size_of(&mut self, path: &Path) -> Result<u64, Obstacle> {
        Ok(self.world.path_size(path)?)
    }

    /// Waits until no pass runs over the array.
    pub(super) fn settle(&mut self, array: &Array, size_bytes: u64) -> Result<(), Obstacle> {
        self.commands.push(format!("# until no pass runs: {}", array.ask()));
        settle(self.world, array, size_bytes, self.stop)
            .map_err(|why| why.into_obstacle(self.subject, array))
    }
}

/// Why an array did not come to rest.
pub(super) enum Restless {
    Stopped,
    Lab(LabError),
    /// It answers no more, or takes too long.
    Why(String),
}

impl Restless {
    pub(super) fn into_obstacle(self, subject: &str, array: &Array) -> Obstacle {
        match self {
            Self::Stopped => Obstacle::Stopped,
            Self::Lab(error) => error.into(),
            Self::Why(reason) => Obstacle::Failed(LabError::SubjectDown {
                subject: subject.to_owned(),
                reason,
                command: array.ask().to_string(),
                stderr: String::new(),
            }),
        }
    }
}

/// Waits until no pass runs over an array. A pass of 1 MiB/s and a minute are waited for; what is
/// slower is stuck.
pub(super) fn settle(
    world: &mut dyn World,
    array: &Array,
    size_bytes: u64,
    stop: &StopFlag,
) -> Result<(), Restless> {
    let limit = Duration::from_secs(60 + (size_bytes >> 20));
    let deadline = world.monotonic() + limit;
    loop {
        let done = world.run(&array.ask(), LIMIT, stop).map_err(Restless::Lab)?;
        if done.exit == Exit::Stopped || stop.is_set() {
            return Err(Restless::Stopped);
        }
        let found = array
            .read(&done)
            .map_err(|why| Restless::Why(format!("the array does not answer: {why}")))?;
        let Some(pass) = found.pass else { return Ok(()) };
        if world.monotonic() >= deadline {
            let seconds = limit.as_secs();
            return Err(Restless::Why(format!("its {pass} was not over after {seconds} s")));
        }
        world.sleep(ASK_EVERY);
    }
}

/// What a program said, for a reason.
pub(super) fn said(done: &Finished) -> String {
    match last_lines(&done.stderr) {
        lines if lines.is_empty() => done.exit.to_string(),
        lines => lines,
    }
}
