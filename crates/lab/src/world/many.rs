//! Running several programs at once, and a story beside them.
//!
//! ```text
//!   0 s ──┬── program 1 ────────────────┤ wall_s
//!         ├── program 2 ───────────┤ wall_s
//!         └── story: fail ┤   add ┤ ask ┤ ask ┤      one command at a time
//! ```
//!
//! Invariants:
//!
//! * the end of a program is recorded when it comes: its time is not rounded to the interval at which the stop
//!   flag is checked;
//! * only the program itself is waited for: neither its children nor the end of its output.

use std::ffi::OsString;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::StopFlag;
use super::process::{Process, wait_for};
use crate::command::{CommandLine, Exit, ToolOutput};
use crate::error::LabError;
use crate::story::Story;

/// Interval at which the stop flag and the story are checked while programs run: 50 wake-ups a second beside
/// the measurement.
const POLL: Duration = Duration::from_millis(20);
/// Time for programs to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(5);
/// Time for a command of the story beyond the end of the programs.
const STORY_LIMIT: Duration = Duration::from_secs(30);

/// Treatment of the children that a program leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    /// They are ended: their work is not measured, and disturbs the next trial.
    Ended,
    /// They stay: the program's purpose is to start them, such as the server of a file system.
    Alone,
}

/// See [`super::World::run_all`].
pub(super) fn run_all(
    commands: &[CommandLine],
    left: Left,
    limit: Duration,
    stop: &StopFlag,
    story: &mut Story,
    mark: Option<&OsString>,
) -> Result<Vec<ToolOutput>, LabError> {
    let began = Instant::now();
    let started = commands.iter().map(|command| Process::start(command, mark));
    let mut running = started.collect::<Result<Vec<_>, _>>()?;
    let mut aside = None;
    while running.iter().any(Process::runs) {
        wait_for(&running, POLL);
        running.iter_mut().try_for_each(|one| one.look(left == Left::Ended))?;
        go_on(&mut aside, began, story, mark)?;
        let verdict = if stop.is_set() {
            Some(Exit::Stopped)
        } else if running.iter().any(Process::is_flood) {
            Some(Exit::Flooded)
        } else {
            (began.elapsed() >= limit).then_some(Exit::TimedOut)
        };
        if let Some(exit) = verdict {
            end_all(&mut running, &exit)?;
        }
    }
    if let Some(last) = aside {
        finish(last, began, stop, story)?;
    }
    running.into_iter().map(|one| output_of(one, began)).collect()
}

fn output_of(one: Process, began: Instant) -> Result<ToolOutput, LabError> {
    let is_flood = one.is_flood();
    let (done, at) = one.finished()?;
    let exit = match done.exit {
        // It ended by itself before the check; its stored output is incomplete.
        Exit::Code(_) if is_flood => Exit::Flooded,
        exit => exit,
    };
    let wall_s = at.saturating_duration_since(began).as_secs_f64();
    Ok(ToolOutput { exit, stdout: done.stdout, stderr: done.stderr, wall_s })
}

/// Ends every program that still runs: SIGTERM, so that it can end its own children, then SIGKILL, also for
/// remaining children.
fn end_all(running: &mut [Process], exit: &Exit) -> Result<(), LabError> {
    running.iter().try_for_each(|one| one.signal(Signal::TERM))?;
    let deadline = Instant::now() + GRACE;
    for one in running.iter_mut().filter(|one| one.runs()) {
        one.end_by(deadline)?;
        one.call_it(exit.clone());
    }
    Ok(())
}

/// Passes the result of the story's command to the story, if there is one, and starts the next command.
fn go_on(
    aside: &mut Option<Process>,
    began: Instant,
    story: &mut Story,
    mark: Option<&OsString>,
) -> Result<(), LabError> {
    if let Some(process) = aside {
        process.look(false)?;
    }
    if let Some(ended) = aside.take_if(|process| !process.runs()) {
        story.did(began.elapsed(), &ended.finished()?.0);
    }
    if aside.is_none()
        && let Some(command) = story.due(began.elapsed())
    {
        *aside = Some(Process::start(&command, mark)?);
    }
    Ok(())
}

/// Lets the running command of the story end: an array is not left in the middle of a change.
fn finish(
    mut last: Process,
    began: Instant,
    stop: &StopFlag,
    story: &mut Story,
) -> Result<(), LabError> {
    let grace = if stop.is_set() { GRACE } else { STORY_LIMIT };
    if !last.end_by(Instant::now() + grace)? {
        last.call_it(Exit::TimedOut);
    }
    story.did(began.elapsed(), &last.finished()?.0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::{Array, Braid, Keeper};

    fn shell(script: &str) -> CommandLine {
        CommandLine::new("sh").arg("-c").arg(script)
    }

    fn run(commands: &[CommandLine], stop: &StopFlag) -> Vec<ToolOutput> {
        run_all(commands, Left::Ended, Duration::from_secs(600), stop, &mut Story::none(), None)
            .unwrap()
    }

    #[test]
    fn all_run_at_once_and_each_has_its_own_output() {
        // Each waits for the other's file: in sequence they would never end.
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
        // Written by another process: this one could not run a program that it has open for writing.
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
        // It ends when the array is queried, whose output is invalid.
        let wait = shell(&format!("until [ -e {end} ]; do sleep 0.01; done"));
        let limit = Duration::from_secs(600);
        let done =
            run_all(&[wait], Left::Ended, limit, &StopFlag::default(), &mut story, None).unwrap();
        assert_eq!(done[0].exit, Exit::Code(0));
        let events: Vec<&str> = story.events().iter().map(|(_, what)| what.as_str()).collect();
        assert_eq!(events[..2], ["member a failed", "recovery began"]);
        assert!(events[2].contains("does not answer"), "{events:?}");
    }

    /// Returns true if a process runs and is no zombie.
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
        let (stop, mut story) = (StopFlag::default(), Story::none());
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
        let done = run_all(&commands, Left::Ended, limit, &stop, &mut Story::none(), None).unwrap();
        assert_eq!(done[0].exit, Exit::TimedOut);
    }

    #[test]
    fn what_cannot_be_started_takes_the_others_along() {
        let dir = tempfile::tempdir().unwrap();
        let mark = dir.path().display().to_string();
        // Its command line has the mark while it lives.
        let commands =
            [shell(&format!("sleep 1000; : {mark}")), CommandLine::new("/nonexistent/tool")];
        let limit = Duration::from_secs(600);
        let stop = StopFlag::default();
        let error = run_all(&commands, Left::Ended, limit, &stop, &mut Story::none(), None);
        assert!(error.unwrap_err().to_string().contains("/nonexistent/tool"));
        let is_alive = || {
            let command_lines = std::fs::read_dir("/proc").unwrap().flatten();
            command_lines
                .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
                .any(|line| String::from_utf8_lossy(&line).contains(&mark))
        };
        // A child that it had just begun to start has been signalled, and ends a little later.
        while is_alive() {
            std::thread::yield_now();
        }
    }
}
