//! Several programs at once, and beside them what is done beside them.
//!
//! ```text
//!   0 s ──┬── program 1 ────────────────┤ wall_s
//!         ├── program 2 ───────────┤ wall_s
//!         └── beside: fail ┤   add ┤ ask ┤ ask ┤     one command at a time
//! ```
//!
//! Invariants:
//!
//! * the end of each program is noted by a thread that sleeps until then, so that its time is not
//!   rounded to the rhythm in which the stop flag is looked at;
//! * every program is waited for, on every way out, and only by this thread: until then its number
//!   is its own, so a signal cannot reach a stranger;
//! * nothing of a program that ends is waited for: neither its children nor what they say.

use std::ffi::OsString;
use std::process::Child;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

use super::process::{Output, signal_group, spawn, try_wait, wait};
use super::{Beside, StopFlag};
use crate::command::{CommandLine, Exit, Finished, ToolOutput};
use crate::error::LabError;

/// How often the stop flag and what is due are looked at while programs run: 50 wake-ups a second
/// beside the measurement.
const POLL: Duration = Duration::from_millis(20);
/// How long programs may take to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(5);
/// How long a command beside them may take beyond the programs that it accompanies.
const BESIDE_LIMIT: Duration = Duration::from_secs(30);

/// What becomes of the children that a program leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    /// They are ended: what they do is not measured, and disturbs what comes next.
    Ended,
    /// They stay: the program was started for their sake, as one that serves a file system.
    Alone,
}

/// A program that was started.
struct Running<'c> {
    command: &'c CommandLine,
    child: Child,
    output: Output,
    left: Left,
    /// How it ended, and when.
    ended: Option<(Exit, Duration)>,
}

impl Running<'_> {
    /// Takes note of its end, if it has ended.
    fn look(&mut self, at: Duration) -> Result<(), LabError> {
        if self.ended.is_none() && is_over(&self.child) {
            if self.left == Left::Ended {
                signal_group(&self.child, self.command, Signal::KILL)?;
            }
            self.ended = Some((wait(&mut self.child, self.command)?, at));
        }
        Ok(())
    }
}

impl Drop for Running<'_> {
    /// The way out after an error: nobody is left to report another to.
    fn drop(&mut self) {
        if self.ended.is_none() {
            let _ = signal_group(&self.child, self.command, Signal::KILL);
            let _ = self.child.wait();
        }
    }
}

/// See [`super::World::run_all`].
pub(super) fn run_all(
    commands: &[CommandLine],
    left: Left,
    limit: Duration,
    stop: &StopFlag,
    beside: &mut dyn Beside,
    mark: Option<&OsString>,
) -> Result<Vec<ToolOutput>, LabError> {
    let began = Instant::now();
    let (send, ends) = channel();
    let mut running = Vec::with_capacity(commands.len());
    for (index, command) in commands.iter().enumerate() {
        let (child, output) = spawn(command, mark)?;
        report_end(index, &child, began, send.clone());
        running.push(Running { command, child, output, left, ended: None });
    }
    let mut under_way = UnderWay { child: None, mark };
    while running.iter().any(|one| one.ended.is_none()) {
        note_ends(&ends, &mut running, began)?;
        under_way.go_on(began, beside)?;
        let verdict = if stop.is_set() {
            Some(Exit::Stopped)
        } else if running.iter().any(|one| one.output.is_flood()) {
            Some(Exit::Flooded)
        } else {
            (began.elapsed() >= limit).then_some(Exit::TimedOut)
        };
        if let Some(exit) = verdict {
            end_all(&mut running, &exit, began)?;
        }
    }
    under_way.finish(began, stop, beside)?;
    Ok(running.iter_mut().map(output_of).collect())
}

fn output_of(one: &mut Running<'_>) -> ToolOutput {
    let is_flood = one.output.is_flood();
    let (stdout, stderr) = one.output.collect();
    // The loop above has seen the end of each.
    let (mut exit, at) = one.ended.clone().unwrap_or((Exit::Code(-1), Duration::ZERO));
    if is_flood && matches!(exit, Exit::Code(_)) {
        // It ended by itself before anybody looked; what is kept is not all that it said.
        exit = Exit::Flooded;
    }
    ToolOutput { exit, stdout, stderr, wall_s: at.as_secs_f64() }
}

/// Sends the child's index and the time of its end, without waiting for it in the sense that frees
/// its number.
fn report_end(index: usize, child: &Child, began: Instant, to: Sender<(usize, Duration)>) {
    let Some(pid) = Pid::from_raw(child.id() as i32) else { return };
    std::thread::spawn(move || {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        let wait = || rustix::process::waitid(WaitId::Pid(pid), options);
        while matches!(wait(), Err(rustix::io::Errno::INTR)) {}
        // A closed channel means that the end has been seen otherwise.
        let _ = to.send((index, began.elapsed()));
    });
}

/// Waits a moment for an end, and takes note of it.
fn note_ends(
    ends: &Receiver<(usize, Duration)>,
    running: &mut [Running<'_>],
    began: Instant,
) -> Result<(), LabError> {
    match ends.recv_timeout(POLL) {
        Ok((index, at)) => running[index].look(at),
        // A thread could not report: look at all of them.
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
            running.iter_mut().try_for_each(|one| one.look(began.elapsed()))
        }
    }
}

/// Ends every program that still runs: SIGTERM, so that it can take its own children along, then
/// SIGKILL, also for children that it left.
fn end_all(running: &mut [Running<'_>], exit: &Exit, began: Instant) -> Result<(), LabError> {
    for one in running.iter().filter(|one| one.ended.is_none()) {
        signal_group(&one.child, one.command, Signal::TERM)?;
    }
    let deadline = Instant::now() + GRACE;
    for one in running.iter_mut().filter(|one| one.ended.is_none()) {
        while !is_over(&one.child) && Instant::now() < deadline {
            std::thread::sleep(POLL / 4);
        }
        signal_group(&one.child, one.command, Signal::KILL)?;
        wait(&mut one.child, one.command)?;
        one.ended = Some((exit.clone(), began.elapsed()));
    }
    Ok(())
}

/// Whether the child has ended, without freeing its number.
fn is_over(child: &Child) -> bool {
    let Some(pid) = Pid::from_raw(child.id() as i32) else { return true };
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    !matches!(rustix::process::waitid(WaitId::Pid(pid), options), Ok(None))
}

/// The command beside them that is under way.
struct UnderWay<'m> {
    child: Option<(CommandLine, Child, Output)>,
    mark: Option<&'m OsString>,
}

impl UnderWay<'_> {
    /// Hands the result of the command over when there is one, and starts the next.
    fn go_on(&mut self, began: Instant, beside: &mut dyn Beside) -> Result<(), LabError> {
        if let Some((command, mut child, mut output)) = self.child.take() {
            let Some(exit) = try_wait(&mut child, &command)? else {
                self.child = Some((command, child, output));
                return Ok(());
            };
            let (stdout, stderr) = output.collect();
            beside.did(began.elapsed(), &Finished { exit, stdout, stderr });
        }
        if let Some(command) = beside.due(began.elapsed()) {
            let (child, output) = spawn(&command, self.mark)?;
            self.child = Some((command, child, output));
        }
        Ok(())
    }

    /// Lets the command that is under way end: an array is not left in the middle of a change.
    fn finish(
        &mut self,
        began: Instant,
        stop: &StopFlag,
        beside: &mut dyn Beside,
    ) -> Result<(), LabError> {
        let Some((command, mut child, mut output)) = self.child.take() else { return Ok(()) };
        let deadline = Instant::now() + if stop.is_set() { GRACE } else { BESIDE_LIMIT };
        while !is_over(&child) && Instant::now() < deadline {
            std::thread::sleep(POLL / 4);
        }
        let in_time = is_over(&child);
        signal_group(&child, &command, Signal::KILL)?;
        let exit = wait(&mut child, &command)?;
        let exit = if in_time { exit } else { Exit::TimedOut };
        let (stdout, stderr) = output.collect();
        beside.did(began.elapsed(), &Finished { exit, stdout, stderr });
        Ok(())
    }
}

impl Drop for UnderWay<'_> {
    /// The way out after an error.
    fn drop(&mut self) {
        if let Some((command, child, _)) = &mut self.child {
            let _ = signal_group(child, command, Signal::KILL);
            let _ = child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::{Array, Braid, Keeper};
    use crate::story::Story;
    use crate::world::Alone;

    fn shell(script: &str) -> CommandLine {
        CommandLine::new("sh").arg("-c").arg(script)
    }

    fn run(commands: &[CommandLine], stop: &StopFlag) -> Vec<ToolOutput> {
        run_all(commands, Left::Ended, Duration::from_secs(600), stop, &mut Alone, None).unwrap()
    }

    #[test]
    fn all_run_at_once_and_each_has_its_own_output() {
        // Each waits for the other's file: one after the other would never end.
        let dir = tempfile::tempdir().unwrap();
        let meet = |mine: &str, other: &str| {
            shell(&format!(
                "cd {} && touch {mine} && until [ -e {other} ]; do sleep 0.01; done; echo {mine}",
                dir.path().display()
            ))
        };
        let done = run(&[meet("a", "b"), meet("b", "a"), shell("exit 3")], &StopFlag::default());
        assert_eq!(done[0].stdout, "a\n");
        assert_eq!(done[1].stdout, "b\n");
        assert_eq!(done[2].exit, Exit::Code(3));
        assert!(done.iter().all(|one| one.wall_s > 0.0));
    }

    #[test]
    fn a_stop_ends_all_and_keeps_what_had_ended() {
        let dir = tempfile::tempdir().unwrap();
        let stop = StopFlag::default();
        let flag = stop.clone();
        let over = dir.path().join("over");
        let seen = over.clone();
        let watcher = std::thread::spawn(move || {
            while !seen.exists() {
                std::thread::sleep(Duration::from_millis(1));
            }
            flag.set();
        });
        let commands = [
            shell("sleep 1000 & trap '' TERM; wait"),
            shell(&format!("sleep 1000 & touch {}; wait", over.display())),
        ];
        let done = run(&commands, &stop);
        watcher.join().unwrap();
        assert!(done.iter().all(|one| one.exit == Exit::Stopped), "{done:?}");
    }

    #[test]
    fn a_story_goes_on_beside_the_programs_and_is_over_with_them() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name).display().to_string();
        let (braid, end) = (path("braid"), path("end"));
        // Written by another process: a program that this one had open for writing might not run.
        let write =
            r#"printf '#!/bin/sh\n[ "$1" != status ] || touch %s\n' "$2" >"$1"; chmod +x "$1""#;
        run(&[shell(write).arg("sh").arg(&braid).arg(&end)], &StopFlag::default());
        let array = Array {
            keeper: Keeper::Volume {
                braid: Braid { program: braid, config: "/c".into(), state: "/s".into() },
                name: "lab-1".into(),
            },
            victim: Some("a".into()),
            remembers: true,
        };
        let mut story = Story::of_a_failure(&array, Duration::ZERO, Duration::from_millis(5));
        // It ends when the array is asked, which says nothing that could be understood.
        let wait = shell(&format!("until [ -e {end} ]; do sleep 0.01; done"));
        let limit = Duration::from_secs(600);
        let done =
            run_all(&[wait], Left::Ended, limit, &StopFlag::default(), &mut story, None).unwrap();
        assert_eq!(done[0].exit, Exit::Code(0));
        let events: Vec<&str> = story.events().iter().map(|(_, what)| what.as_str()).collect();
        assert_eq!(events[..2], ["member a failed", "recovery began"]);
        assert!(events[2].contains("does not answer"), "{events:?}");
    }

    /// Whether a process is there and not merely unburied.
    fn lives(pid: &str) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
        stat.is_ok_and(|stat| !stat.contains(") Z "))
    }

    #[test]
    fn a_program_that_prints_without_end_is_ended() {
        let done = run(&[shell("exec yes"), shell("exec yes >&2")], &StopFlag::default());
        assert!(done.iter().all(|one| one.exit == Exit::Flooded), "{:?}", done[0].exit);
        assert!(done.iter().any(|one| one.stdout.len() + one.stderr.len() == 64 << 20));
    }

    #[test]
    fn what_a_program_leaves_is_ended_with_it_and_not_waited_for() {
        let done = run(&[shell("sleep 1000 & echo $!")], &StopFlag::default());
        assert_eq!(done[0].exit, Exit::Code(0));
        while lives(&done[0].stdout) {
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_server_that_a_program_started_stays() {
        let (stop, mut story) = (StopFlag::default(), Alone);
        let commands = [shell("sleep 1000 & echo $!")];
        let limit = Duration::from_secs(600);
        let done = run_all(&commands, Left::Alone, limit, &stop, &mut story, None).unwrap();
        let pid = done[0].stdout.trim();
        let lived = lives(pid);
        run(&[CommandLine::new("kill").arg(pid)], &stop);
        assert!(lived);
    }

    #[test]
    fn a_limit_is_kept() {
        let limit = Duration::from_millis(1);
        let stop = StopFlag::default();
        let commands = [shell("sleep 1000")];
        let done = run_all(&commands, Left::Ended, limit, &stop, &mut Alone, None).unwrap();
        assert_eq!(done[0].exit, Exit::TimedOut);
    }

    #[test]
    fn what_cannot_be_started_takes_the_others_along() {
        let dir = tempfile::tempdir().unwrap();
        let mark = dir.path().display().to_string();
        // Its command line has the mark as long as it lives.
        let commands =
            [shell(&format!("sleep 1000; : {mark}")), CommandLine::new("/nonexistent/tool")];
        let limit = Duration::from_secs(600);
        let stop = StopFlag::default();
        let error = run_all(&commands, Left::Ended, limit, &stop, &mut Alone, None);
        assert!(error.unwrap_err().to_string().contains("/nonexistent/tool"));
        let command_lines = std::fs::read_dir("/proc").unwrap().flatten();
        let command_lines = command_lines.map(|entry| entry.path().join("cmdline"));
        let alive = command_lines
            .filter_map(|path| std::fs::read(path).ok())
            .any(|line| String::from_utf8_lossy(&line).contains(&mark));
        assert!(!alive, "the other one lives on");
    }
}
