//! A program that is asked something: what it writes is bounded, and so is its time.

use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// The interval of the checks for its end.
const LOOK: Duration = Duration::from_millis(10);
/// The wait for the end of a killed program. One that waits for a disk in the kernel lives longer.
const GRACE: Duration = Duration::from_secs(1);

/// The outcome of a program.
#[derive(Debug)]
pub(crate) struct Ran {
    /// Its exit status; none if a signal ended it.
    pub(crate) status: Option<i32>,
    /// Its output.
    pub(crate) output: Vec<u8>,
}

/// The reason why there is no answer.
#[derive(Debug)]
pub(crate) struct Unanswered {
    pub(crate) why: String,
    /// The process, if it was killed and still lives.
    pub(crate) left: Option<Child>,
}

/// The wanted part of its output.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Standard output.
    Output,
    /// Standard output and standard error together.
    All,
}

/// Runs `command` to its end, for at most `limit`; more than `most` bytes of output are no answer. It is killed,
/// with what it started, when it exceeds either.
pub(crate) fn run(
    mut command: Command,
    wanted: Wanted,
    limit: Duration,
    most: u64,
) -> Result<Ran, Unanswered> {
    let name = command.get_program().to_string_lossy().into_owned();
    let failed =
        |error: io::Error| Unanswered { why: format!("cannot run {name}: {error}"), left: None };
    let deadline = Instant::now() + limit;
    let (mut reader, writer) = io::pipe().map_err(failed)?;
    let errors = match wanted {
        Wanted::Output => Stdio::null(),
        Wanted::All => writer.try_clone().map_err(failed)?.into(),
    };
    command.stdin(Stdio::null()).stdout(writer).stderr(errors).process_group(0);
    let started = command.spawn();
    // It holds the writing ends of the pipe, which would keep the reader waiting.
    drop(command);
    let mut child = started.map_err(failed)?;
    let (sender, receiver) = channel();
    // A process that inherited the pipe may never close it: this thread is not waited for.
    std::thread::spawn(move || {
        let mut output = Vec::new();
        let read = reader.by_ref().take(most + 1).read_to_end(&mut output);
        // If that took too long, the receiver is gone.
        let _ = sender.send(read.map(|_| output));
    });
    let answered = receiver.recv_timeout(deadline.saturating_duration_since(Instant::now()));
    let why = match answered {
        Ok(Ok(output)) if output.len() as u64 > most => {
            format!("{name} wrote more than {most} bytes")
        }
        Ok(Ok(output)) => match wait(&mut child, deadline, || true).map_err(failed)? {
            Some(status) => return Ok(Ran { status: status.code(), output }),
            None => format!("{name} did not end within {} s", limit.as_secs()),
        },
        Ok(Err(error)) => format!("{name} cannot be listened to: {error}"),
        Err(_) => format!("{name} did not end within {} s", limit.as_secs()),
    };
    Err(Unanswered { why, left: end(child) })
}

/// Waits for the end of a child: until `deadline` at the latest, and as long as `goes_on`. `None` if the child
/// has not ended.
pub(crate) fn wait(
    child: &mut Child,
    deadline: Instant,
    goes_on: impl Fn() -> bool,
) -> io::Result<Option<ExitStatus>> {
    loop {
        let ended = child.try_wait()?;
        if ended.is_some() || Instant::now() >= deadline || !goes_on() {
            return Ok(ended);
        }
        std::thread::sleep(LOOK);
    }
}

/// Kills it with what it started; answers it if it goes on.
pub(crate) fn end(mut child: Child) -> Option<Child> {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // It may have ended just now.
        let _ = kill_process_group(group, Signal::KILL);
    }
    let ended = wait(&mut child, Instant::now() + GRACE, || true);
    matches!(ended, Ok(None)).then_some(child)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn sh(script: &str, limit: Duration, most: u64) -> Result<Ran, Unanswered> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        run(command, Wanted::Output, limit, most)
    }

    #[test]
    fn what_it_writes_and_its_exit_status_are_the_answer() {
        let ran = sh("echo a; echo b >&2; exit 72", LONG, 100).expect("it ends");
        assert_eq!((ran.status, ran.output.as_slice()), (Some(72), &b"a\n"[..]));
        let ran = sh("kill -9 $$", LONG, 100).expect("it ends");
        assert_eq!(ran.status, None);
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "echo b >&2"]);
        let ran = run(command, Wanted::All, LONG, 100).expect("it ends");
        assert_eq!(ran.output, b"b\n");
        let unanswered = run(Command::new("/nowhere"), Wanted::All, LONG, 100).expect_err("none");
        assert!(unanswered.why.contains("cannot run /nowhere"), "{}", unanswered.why);
    }

    #[test]
    fn one_that_hangs_or_writes_without_end_is_ended_with_what_it_started() {
        let folder = tempfile::tempdir().expect("a folder");
        let note = folder.path().join("pid");
        for (script, limit, why) in [
            (
                "exec >/dev/null; sleep 600 & echo $! > NOTE; wait",
                Duration::from_secs(1),
                "within 1 s",
            ),
            ("sleep 600 & echo $! > NOTE; wait", Duration::from_secs(1), "within 1 s"),
            ("sleep 600 & echo $! > NOTE; cat /dev/zero", LONG, "more than 1000 bytes"),
        ] {
            let script = script.replace("NOTE", &note.display().to_string());
            let unanswered = sh(&script, limit, 1000).expect_err("no answer");
            assert!(unanswered.why.contains(why), "{}", unanswered.why);
            assert!(unanswered.left.is_none());
            let pid = std::fs::read_to_string(&note).expect("its number");
            // The signal takes time, and the process that inherits the child collects it later.
            let sleeps = || {
                let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
                stat.is_ok_and(|stat| !stat.contains(") Z "))
            };
            let deadline = Instant::now() + LONG;
            while sleeps() {
                assert!(Instant::now() < deadline, "it sleeps on: {script}");
                std::thread::sleep(LOOK);
            }
        }
    }
}
