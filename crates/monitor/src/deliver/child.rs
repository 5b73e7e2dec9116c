//! A program that receives a message. When its time limit has passed, the program and its children are killed.

use std::io::{ErrorKind, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::Outcome;
use crate::program::{end, wait};

/// The program that is run. Its standard error is the monitor's, its standard output is dropped.
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
        let stdin = child.stdin.take();
        let input = self.input;
        // The child may not read its input, so only a thread waits for that, which ends with the child.
        let writer = std::thread::spawn(move || match stdin {
            Some(mut stdin) => stdin.write_all(&input),
            None => Ok(()),
        });
        let is_ending = || ending.load(Ordering::Relaxed);
        let ended = match wait(&mut child, deadline, || !is_ending()) {
            Ok(Some(status)) => Ok(status),
            Err(error) => Err(format!("cannot wait for {path}: {error}")),
            Ok(None) if is_ending() => Err(format!("{path} was at it when the monitor ended")),
            Ok(None) => Err(format!("{path} did not end within {} s", limit.as_secs())),
        };
        match ended {
            Err(why) => {
                drop(end(child));
                Outcome::Later(why)
            }
            Ok(status) if !status.success() => judge(&path.to_string(), status),
            // A process that the program left behind may hold the pipe; the monitor does not wait for it.
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

/// Status 75 of `sysexits.h` asks for another attempt. Any other status would be the same at the next attempt.
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
        // The signal takes time, and the process that inherits the child collects it later.
        let sleeps = || {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
            stat.is_ok_and(|stat| !stat.contains(") Z "))
        };
        let deadline = Instant::now() + Duration::from_secs(60);
        while sleeps() {
            assert!(Instant::now() < deadline, "it sleeps on");
            std::thread::yield_now();
        }
    }
}
