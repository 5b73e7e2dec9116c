//! A program that gets a message, with a time limit: it and what it started are ended when that is over.

use std::io::{ErrorKind, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::Outcome;

/// How often it is looked whether it has ended.
const LOOK: Duration = Duration::from_millis(20);

/// What is run. Its standard error is the monitor's, its standard output is dropped.
pub(super) struct Child<'a> {
    pub(super) path: &'a Path,
    pub(super) arguments: Vec<String>,
    pub(super) input: Vec<u8>,
}

impl Child<'_> {
    /// Runs it to its end.
    pub(super) fn run(
        self,
        environment: &[(&str, String)],
        limit: Duration,
        ending: &AtomicBool,
    ) -> Outcome {
        let path = self.path.display();
        let deadline = Instant::now() + limit;
        let started = Command::new(self.path)
            .args(&self.arguments)
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .process_group(0)
            .spawn();
        let mut child = match started {
            Ok(child) => child,
            Err(error) => return Outcome::Later(format!("cannot run {path}: {error}")),
        };
        let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let stdin = child.stdin.take();
        let input = self.input;
        // It may not read, so nobody waits for that but a thread which ends with it.
        let writer = std::thread::spawn(move || match stdin {
            Some(mut stdin) => stdin.write_all(&input),
            None => Ok(()),
        });
        let ended = loop {
            match child.try_wait() {
                Ok(Some(status)) => break Ok(status),
                Err(error) => break Err(format!("cannot wait for {path}: {error}")),
                Ok(None) if ending.load(Ordering::Relaxed) => {
                    break Err(format!("{path} was at it when the monitor ended"));
                }
                Ok(None) if Instant::now() >= deadline => {
                    break Err(format!("{path} did not end within {} s", limit.as_secs()));
                }
                Ok(None) => std::thread::sleep(LOOK),
            }
        };
        if ended.is_err()
            && let Some(group) = group
        {
            // Whatever is left of it; it may have ended just now.
            let _ = kill_process_group(group, Signal::KILL);
            let _ = child.wait();
        }
        match ended {
            Err(why) => Outcome::Later(why),
            Ok(status) if !status.success() => judge(&path.to_string(), status),
            // What left a pipe to a process of its own may still hold it: that is not waited for.
            Ok(_) if !writer.is_finished() => Outcome::Delivered,
            Ok(_) => match writer.join() {
                Ok(Err(error)) if error.kind() != ErrorKind::BrokenPipe => {
                    Outcome::Later(format!("cannot hand the message to {path}: {error}"))
                }
                _ => Outcome::Delivered,
            },
        }
    }
}

/// By `sysexits.h`, 75 asks to be tried again; whatever else a program says of what it got, it would say again.
fn judge(path: &str, status: ExitStatus) -> Outcome {
    match (status.code(), status.signal()) {
        (Some(75), _) => Outcome::Later(format!("{path} failed for now (exit status 75)")),
        (Some(code), _) => Outcome::Never(format!("{path} ended with exit status {code}")),
        (None, signal) => {
            Outcome::Later(format!("{path} was ended by signal {}", signal.unwrap_or(0)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(script: &str, input: usize, limit: Duration) -> Outcome {
        let arguments = ["-c", script].map(ToOwned::to_owned).to_vec();
        let child = Child { path: Path::new("/bin/sh"), arguments, input: vec![b'x'; input] };
        child.run(&[("BRAID_WHAT", "it's".to_owned())], limit, &AtomicBool::new(false))
    }

    #[test]
    fn its_end_says_what_became_of_the_message() {
        let long = Duration::from_secs(60);
        assert_eq!(
            run("test \"$(wc -c)\" = 300000 && test \"$BRAID_WHAT\" = \"it's\"", 300_000, long),
            Outcome::Delivered
        );
        assert_eq!(run("exit 0", 300_000, long), Outcome::Delivered);
        assert!(matches!(run("exit 75", 0, long), Outcome::Later(_)));
        assert!(matches!(run("exit 1", 0, long), Outcome::Never(_)));
        assert!(matches!(run("kill -9 $$", 0, long), Outcome::Later(_)));
        let child = Child { path: Path::new("/nowhere"), arguments: Vec::new(), input: Vec::new() };
        let outcome = child.run(&[], long, &AtomicBool::new(false));
        assert!(matches!(outcome, Outcome::Later(why) if why.contains("cannot run /nowhere")));
    }

    #[test]
    fn one_that_hangs_is_ended_with_what_it_started() {
        let folder = tempfile::tempdir().expect("a folder");
        let note = folder.path().join("pid");
        let script = format!("sleep 600 & echo $! > {}; wait", note.display());
        let outcome = run(&script, 300_000, Duration::from_secs(1));
        assert!(matches!(outcome, Outcome::Later(why) if why.contains("within 1 s")));
        let pid = std::fs::read_to_string(&note).expect("its number");
        // The signal takes its time, and whoever inherits it looks when it likes.
        let sleeps = || {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
            stat.is_ok_and(|stat| !stat.contains(") Z "))
        };
        let deadline = Instant::now() + Duration::from_secs(60);
        while sleeps() {
            assert!(Instant::now() < deadline, "it sleeps on");
            std::thread::sleep(LOOK);
        }
    }
}
