//! Child processes: started in a group of their own, watched, ended.

use std::ffi::OsString;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;

use rustix::process::{Pid, Signal};

use super::{CommandLine, Exit};
use crate::error::LabError;

/// What a child says, read beside everything else: a full pipe would stop it.
pub(super) struct Output {
    stdout: Option<JoinHandle<Vec<u8>>>,
    stderr: Option<JoinHandle<Vec<u8>>>,
}

impl Output {
    /// Standard output and standard error, to their ends.
    pub(super) fn collect(&mut self) -> (String, String) {
        (collect(self.stdout.take()), collect(self.stderr.take()))
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
    let output = Output { stdout: drain(child.stdout.take()), stderr: drain(child.stderr.take()) };
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

fn drain(pipe: Option<impl Read + Send + 'static>) -> Option<JoinHandle<Vec<u8>>> {
    let mut pipe = pipe?;
    Some(std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Err(error) = pipe.read_to_end(&mut bytes) {
            bytes.extend_from_slice(format!("\n[the rest could not be read: {error}]").as_bytes());
        }
        bytes
    }))
}

fn collect(reader: Option<JoinHandle<Vec<u8>>>) -> String {
    let bytes = reader.map(|thread| thread.join().unwrap_or_default()).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}
