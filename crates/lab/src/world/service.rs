//! A server process: watched, stopped with SIGTERM, killed when it does not listen.

use std::process::Child;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::{CommandLine, Exit, POLL, Service, collect, kill_group, try_wait};
use crate::error::LabError;

pub(super) struct SystemService {
    command: CommandLine,
    child: Child,
    stdout: Option<JoinHandle<Vec<u8>>>,
    stderr: Option<JoinHandle<Vec<u8>>>,
    /// Once it has ended and has been waited for.
    ended: Option<(Exit, String)>,
}

impl SystemService {
    pub(super) fn new(
        command: CommandLine,
        child: Child,
        stdout: Option<JoinHandle<Vec<u8>>>,
        stderr: Option<JoinHandle<Vec<u8>>>,
    ) -> Self {
        Self { command, child, stdout, stderr, ended: None }
    }

    fn finish(&mut self, exit: Exit) -> (Exit, String) {
        collect(self.stdout.take());
        let ended = (exit, collect(self.stderr.take()));
        self.ended = Some(ended.clone());
        ended
    }

    fn terminate(&self) -> Result<(), LabError> {
        let Some(pid) = rustix::process::Pid::from_raw(self.child.id() as i32) else {
            return Ok(());
        };
        match rustix::process::kill_process(pid, rustix::process::Signal::TERM) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
            Err(errno) => Err(LabError::Process {
                action: "stop",
                program: self.command.program.clone(),
                source: errno.into(),
            }),
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

    fn cpu_time(&self) -> Option<Duration> {
        // The first field of schedstat is nanoseconds on a processor, of one thread.
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).ok()?;
        let mut total_ns = 0_u64;
        for task in tasks {
            let text = std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
            total_ns += text.split_whitespace().next()?.parse::<u64>().ok()?;
        }
        Some(Duration::from_nanos(total_ns))
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
            std::thread::sleep(POLL / 4);
        }
        kill_group(&mut self.child, &self.command)?;
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
