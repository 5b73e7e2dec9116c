//! A server process: watched, stopped with SIGTERM, killed when it does not listen.

use std::process::Child;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::process::{Output, failed, signal_group, try_wait, wait};
use super::{CommandLine, Exit, Service};
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

    fn cpu_time(&self) -> Option<Duration> {
        // Of the whole process, threads that have ended included.
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).ok()?;
        let ticks = parse_cpu_ticks(&stat)?;
        let per_second = rustix::param::clock_ticks_per_second();
        Some(Duration::from_secs_f64(ticks as f64 / per_second as f64))
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

/// User and system time from `/proc/PID/stat`. The name in parentheses may hold anything, so
/// fields are counted from its end: utime and stime are the 12th and 13th after it.
fn parse_cpu_ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let utime: u64 = fields.next()?.parse().ok()?;
    let stime: u64 = fields.next()?.parse().ok()?;
    utime.checked_add(stime)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strange_process_name_does_not_shift_the_fields() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 100 0 0 0 31 11 0 0 20 0 1 0 50 1 1";
        assert_eq!(parse_cpu_ticks(stat), Some(42));
        assert_eq!(parse_cpu_ticks("7 (x) S 1"), None);
    }
}
