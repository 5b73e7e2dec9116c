//! Child processes: started in a group of their own, watched, ended.
//!
//! Output of a child goes to files in memory and not through pipes: a full pipe cannot stop the child, and a
//! pipe that its children keep open cannot delay the end.
//!
//! Invariants:
//!
//! * a child is waited for on every way out, and only by its [`Process`]: until then its number is not reused,
//!   so a signal cannot reach another process;
//! * at most [`MOST_OUTPUT`] bytes of a stream are read; the caller checks whether there is more, and ends the
//!   child.

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use crate::command::{CommandLine, Exit, Finished, MOST_OUTPUT};
use crate::error::LabError;

/// A started child.
pub(super) struct Process {
    program: String,
    child: Child,
    group: Pid,
    /// Readable when the child has ended.
    hold: OwnedFd,
    said: [File; 2],
    /// The exit, and the time at which it was seen.
    ended: Option<(Exit, Instant)>,
}

impl Process {
    /// Starts a child in a process group of its own, so that Ctrl-C at the terminal reaches only this process,
    /// which then stops its children in order.
    ///
    /// `mark` goes into its environment, and so to its own children.
    pub(super) fn start(command: &CommandLine, mark: Option<&OsString>) -> Result<Self, LabError> {
        let failed = |error| failed("start", &command.program)(error);
        let memory = |name| memfd_create(name, MemfdFlags::CLOEXEC).map(File::from);
        let (stdout, stderr) = memory("stdout")
            .and_then(|stdout| Ok((stdout, memory("stderr")?)))
            .map_err(|errno| failed(errno.into()))?;
        let mut program = Command::new(&command.program);
        if let Some(folder) = &command.cwd {
            program.current_dir(folder);
        }
        if let Some(mark) = mark {
            program.env(super::strays::MARK, mark);
        }
        let mut child = program
            .args(&command.args)
            // Tools write in the user's language and with its decimal sign; parsers read English and a point.
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .stdout(stdout.try_clone().map_err(failed)?)
            .stderr(stderr.try_clone().map_err(failed)?)
            .process_group(0)
            .spawn()
            .map_err(|source| LabError::Spawn { program: command.program.clone(), source })?;
        let group = Pid::from_child(&child);
        let hold = pidfd_open(group, PidfdFlags::empty()).map_err(|errno| {
            // Nothing could watch the child.
            let _ = child.kill().and_then(|()| child.wait());
            failed(errno.into())
        })?;
        let (program, said) = (command.program.clone(), [stdout, stderr]);
        Ok(Self { program, child, group, hold, said, ended: None })
    }

    /// Returns true if the child's end has not been seen yet.
    pub(super) fn runs(&self) -> bool {
        self.ended.is_none()
    }

    /// Returns true if there is more output than is read.
    pub(super) fn is_flood(&self) -> bool {
        let length = |file: &File| file.metadata().map_or(0, |meta| meta.len());
        self.said.iter().any(|file| length(file) > MOST_OUTPUT as u64)
    }

    /// Records the child's end, if it has ended; `with_children` ends its remaining children.
    pub(super) fn look(&mut self, with_children: bool) -> Result<(), LabError> {
        if self.runs() && wait_for([&*self], Duration::ZERO) {
            let now = Instant::now();
            if with_children {
                self.signal(Signal::KILL)?;
            }
            self.wait(now)?;
        }
        Ok(())
    }

    /// Waits until the deadline, then ends the child and its children. Returns true if it ended by itself.
    pub(super) fn end_by(&mut self, deadline: Instant) -> Result<bool, LabError> {
        // A signal to this process ends a wait before its time.
        let in_time = loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let has_ended = wait_for([&*self], left);
            if has_ended || left.is_zero() {
                break has_ended;
            }
        };
        self.signal(Signal::KILL)?;
        self.wait(Instant::now())?;
        Ok(in_time)
    }

    /// Replaces the recorded exit by a more exact one.
    pub(super) fn call_it(&mut self, exit: Exit) {
        if let Some((known, _)) = &mut self.ended {
            *known = exit;
        }
    }

    /// Signals the child and its children, as long as it has not been waited for.
    pub(super) fn signal(&self, signal: Signal) -> Result<(), LabError> {
        if !self.runs() {
            return Ok(());
        }
        match kill_process_group(self.group, signal) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
            Err(errno) => Err(failed("stop", &self.program)(errno.into())),
        }
    }

    fn wait(&mut self, at: Instant) -> Result<(), LabError> {
        let status = self.child.wait().map_err(failed("wait for", &self.program))?;
        self.ended = Some((exit_of(status), at));
        Ok(())
    }

    /// Returns exit, time and output of a child that has ended.
    pub(super) fn finished(self) -> Result<(Finished, Instant), LabError> {
        let text = |file: &File| {
            let length = file.metadata()?.len();
            let mut bytes =
                vec![0; usize::try_from(length).unwrap_or(MOST_OUTPUT).min(MOST_OUTPUT)];
            file.read_exact_at(&mut bytes, 0)?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        };
        let [stdout, stderr] =
            self.said.each_ref().map(|file| text(file).map_err(failed("read from", &self.program)));
        let (exit, at) = self.ended.clone().unwrap_or((Exit::Code(-1), Instant::now()));
        Ok((Finished { exit, stdout: stdout?, stderr: stderr? }, at))
    }
}

impl Drop for Process {
    /// Ends the child after an error: a further error cannot be reported.
    fn drop(&mut self) {
        if self.runs() {
            let _ = self.signal(Signal::KILL);
            let _ = self.child.wait();
        }
    }
}

/// Waits, at most so long, for the end of any running process. Returns true if one has ended.
pub(super) fn wait_for<'p>(
    processes: impl IntoIterator<Item = &'p Process>,
    most: Duration,
) -> bool {
    let running = processes.into_iter().filter(|one| one.runs());
    let mut ends: Vec<_> = running.map(|one| PollFd::new(&one.hold, PollFlags::IN)).collect();
    // A longer time than the system supports means no limit.
    let most = Timespec::try_from(most).ok();
    // An interrupted wait counts as one in which none ended.
    poll(&mut ends, most.as_ref()).is_ok_and(|ended| ended > 0)
}

fn exit_of(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Code(-1),
    }
}

/// Returns a function for `map_err` on operations on a child.
fn failed(action: &'static str, program: &str) -> impl FnOnce(std::io::Error) -> LabError {
    let program = program.to_owned();
    move |source| LabError::Process { action, program, source }
}
