//! A server process: watched, stopped with SIGTERM, killed when it does not listen.

use std::process::Child;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::Service;
use super::process::{Output, failed, signal_group, try_wait, wait};
use crate::command::{CommandLine, Exit};
use crate::error::LabError;

/// How often a server that is to end is looked at.
const POLL: Duration = Duration::from_millis(5);

pub(super) struct SystemService {
    command: CommandLine,
    child: Child,
    output: Output,
    /// Once it has ended and has been waited for.
    ended: Option<(Exit, String)>,
}

impl SystemService {
    pub(super) fn new(command: CommandLine, child: Child, output: Output) -> Self {
        Self { command, child, output, ended: None }
    }

    fn finish(&mut self, exit: Exit) -> (Exit, String) {
        let (_, stderr) = self.output.collect();
        let ended = (exit, stderr);
        self.ended = Some(ended.clone());
        ended
    }

    fn terminate(&self) -> Result<(), LabError> {
        let Some(pid) = rustix::process::Pid::from_raw(self.child.id() as i32) else {
            return Ok(());
        };
        match rustix::process::kill_process(pid, Signal::TERM) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
            Err(errno) => Err(failed("stop", &self.command)(errno.into())),
        }
    }
}

impl Service for SystemService {
    fn poll_exit(&mut self) -> Result<Option<(Exit, String)>, LabError> {
        if let Some(ended) = &self.ended {
            return Ok(Some(ended.clone()));
        }
        let exit = try_wait(&mut self.child, &self.command)?;
        Ok(exit.map(|exit| self.finish(exit)))
    }

    fn pid(&self) -> Option<u32> {
        Some(self.child.id())
    }

    fn stop(&mut self, grace: Duration) -> Result<(Exit, String), LabError> {
        if let Some(ended) = self.poll_exit()? {
            return Ok(ended);
        }
        self.terminate()?;
        let deadline = Instant::now() + grace;
        while Instant::now() < deadline {
            if let Some(ended) = self.poll_exit()? {
                return Ok(ended);
            }
            std::thread::sleep(POLL);
        }
        signal_group(&self.child, &self.command, Signal::KILL)?;
        wait(&mut self.child, &self.command)?;
        Ok(self.finish(Exit::TimedOut))
    }
}

impl Drop for SystemService {
    /// The way out after an error: nobody is left to report a failure to, and the process must
    /// not outlive the campaign.
    fn drop(&mut self) {
        if self.ended.is_none() && self.stop(Duration::from_secs(10)).is_err() {
            eprintln!("{} (process {}) is still running", self.command.program, self.child.id());
        }
    }
}
