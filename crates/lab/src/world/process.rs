//! Child processes: started in a group of their own, watched, ended.

use std::ffi::OsString;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Instant;

use rustix::process::{Pid, Signal};

use super::stream::{LINGER, Stream};
use crate::command::{CommandLine, Exit};
use crate::error::LabError;

/// What a child says, read beside everything else: a full pipe would stop it.
pub(super) struct Output {
    stdout: Option<Stream>,
    stderr: Option<Stream>,
}

impl Output {
    /// Standard output and standard error of a child that has ended: to their ends, or as far as
    /// they came when somebody else keeps them open.
    pub(super) fn collect(&mut self) -> (String, String) {
        let until = Instant::now() + LINGER;
        let text = |stream: Option<Stream>| stream.map_or_else(String::new, |s| s.collect(until));
        (text(self.stdout.take()), text(self.stderr.take()))
    }

    /// Whether more was said than is kept.
    pub(super) fn is_flood(&self) -> bool {
        [&self.stdout, &self.stderr].into_iter().flatten().any(Stream::is_flood)
    }
}

/// Starts a child in a process group of its own, so that Ctrl-C at the terminal reaches only this
/// process, which then stops its children in order.
///
/// `mark` goes into its environment, and so to its own children.
pub(super) fn spawn(
    command: &CommandLine,
    mark: Option<&OsString>,
) -> Result<(Child, Output), LabError> {
    let mut program = Command::new(&command.program);
    if let Some(folder) = &command.cwd {
        program.current_dir(folder);
    }
    if let Some(mark) = mark {
        program.env(super::strays::MARK, mark);
    }
    let mut child = program
        .args(&command.args)
        // Tools write for people in the user's language and with its decimal sign; parsers read
        // English and a point.
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(|source| LabError::Spawn { program: command.program.clone(), source })?;
    let output = Output {
        stdout: child.stdout.take().map(Stream::read),
        stderr: child.stderr.take().map(Stream::read),
    };
    Ok((child, output))
}

pub(super) fn try_wait(child: &mut Child, command: &CommandLine) -> Result<Option<Exit>, LabError> {
    let status = child.try_wait().map_err(failed("wait for", command))?;
    Ok(status.map(exit_of))
}

pub(super) fn wait(child: &mut Child, command: &CommandLine) -> Result<Exit, LabError> {
    child.wait().map(exit_of).map_err(failed("wait for", command))
}

fn exit_of(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Code(-1),
    }
}

/// Signals the child and what it has started. The child must not have been waited for: its number
/// may belong to somebody else then.
pub(super) fn signal_group(
    child: &Child,
    command: &CommandLine,
    signal: Signal,
) -> Result<(), LabError> {
    let Some(group) = Pid::from_raw(child.id() as i32) else { return Ok(()) };
    match rustix::process::kill_process_group(group, signal) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(errno) => Err(failed("stop", command)(errno.into())),
    }
}

/// For `map_err` on what is done to a child.
pub(super) fn failed(
    action: &'static str,
    command: &CommandLine,
) -> impl FnOnce(std::io::Error) -> LabError {
    let program = command.program.clone();
    move |source| LabError::Process { action, program, source }
}
