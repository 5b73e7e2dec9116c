//! Runs the tests, a process each.
//!
//! ```text
//!   Plan ──▶ start ──▶ Child, output in a file ──▶ ended by itself ──▶ Outcome
//!              │                                ├─▶ over its limit ──▶ killed with all that it started
//!              │                                └─▶ output over 64 MiB ──▶ the same
//!              └── BRAID_TEST=RUNNER-NUMBER, which all descendants inherit
//! ```
//!
//! Invariants
//! * A test's processes end with it. One that lives on becomes a child of the runner, is recognised by its
//!   environment, gets [`GRACE`] to end, and then fails the test.
//! * When the runner is interrupted, all that it started is killed first.
//! * Where it may, each test has a table of mounts of its own. Programs walk that table: mkfs.btrfs fails while
//!   another test's volume has been killed below a mounted file system.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions};

use crate::plan::{Plan, Rules};
use crate::procfs;
use crate::program::{Program, Test};

/// The variable by which a test's processes are recognised.
const MARK: &str = "BRAID_TEST";
/// The time for which a process may outlive the test that started it.
const GRACE: Duration = Duration::from_secs(5);
/// The greatest length of a test's output.
const MOST_OUTPUT: u64 = 64 << 20;
/// The interval of the measurements of the machine's load.
const TICK: Duration = Duration::from_millis(50);
/// The period over which the load is measured.
const WINDOW: Duration = Duration::from_millis(200);
/// Gives the program that follows a table of mounts of its own, in which the machine's later mounts appear too.
const OWN_MOUNTS: [&str; 4] = ["unshare", "--mount", "--propagation", "slave"];
/// Memory that must remain before another test is started.
const SPARE_MEMORY: u64 = 3 << 30;

/// The outcome of a test.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The test's number.
    pub test: usize,
    /// Why it failed; none if it passed.
    pub failure: Option<String>,
    /// Its output: standard output and errors in their order.
    pub output: String,
    /// From start to end, in seconds.
    pub wall: f64,
    /// Processor time of the test and of all its child processes, in seconds.
    pub processor: f64,
}

struct Running {
    test: usize,
    child: Child,
    ends: Option<OwnedFd>,
    output: File,
    started: Instant,
    limit: Duration,
    killed: Option<String>,
}

/// The running tests, and the facts about them.
pub struct Runner<'a> {
    programs: &'a [Program],
    tests: &'a [Test],
    plan: Plan<'a>,
    running: Vec<Running>,
    /// Processes that outlived the one that started them, and the test that they belong to, once it is known.
    adopted: BTreeMap<u32, Option<usize>>,
    /// Processor time of adopted processes that have ended, by test.
    spent: BTreeMap<usize, Duration>,
    /// Ended tests whose processes may not have ended: until when these may.
    leaving: Vec<(Instant, Outcome)>,
    load: Load,
    /// Tests get [`OWN_MOUNTS`]: root may, outside of most containers.
    own_mounts: bool,
    root: &'a Path,
    interrupted: &'a AtomicBool,
}

impl<'a> Runner<'a> {
    /// A runner of `tests`, of the workspace in `root`.
    pub fn new(
        (programs, tests): (&'a [Program], &'a [Test]),
        rules: &'a Rules,
        took: &BTreeMap<String, f64>,
        root: &'a Path,
        interrupted: &'a AtomicBool,
    ) -> Runner<'a> {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let ids: Vec<&str> = tests.iter().map(|test| test.id.as_str()).collect();
        Runner {
            programs,
            tests,
            plan: Plan::new(rules, &ids, took, processors),
            running: Vec::new(),
            adopted: BTreeMap::new(),
            spent: BTreeMap::new(),
            leaving: Vec::new(),
            load: Load::new(processors),
            own_mounts: can_own_mounts(),
            root,
            interrupted,
        }
    }

    /// Runs all tests, and gives each outcome to `told` with the number of tests that are left.
    ///
    /// # Errors
    /// A test program cannot be started, or the runner was interrupted.
    pub fn run(mut self, told: &mut dyn FnMut(Outcome, usize)) -> io::Result<()> {
        // Processes whose parent ends become children of this one, and not of init.
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        let result = self.turn(told);
        if result.is_err() {
            self.kill_all();
        }
        rustix::process::set_child_subreaper(None)?;
        result
    }

    fn turn(&mut self, told: &mut dyn FnMut(Outcome, usize)) -> io::Result<()> {
        loop {
            if self.interrupted.load(Ordering::Relaxed) {
                return Err(io::Error::other("interrupted"));
            }
            self.load.look();
            while procfs::memory_available() > SPARE_MEMORY || self.running.is_empty() {
                let Some(test) = self.plan.start_next(self.load.busy()) else { break };
                let running = self.start(test)?;
                self.running.push(running);
                self.load.started();
            }
            self.end_what_must();
            self.collect();
            // After the tests that ended: only now are their processes children of this one.
            self.adopt();
            for outcome in self.have_left() {
                let left = self.plan.waiting() + self.running.len() + self.leaving.len();
                told(outcome, left);
            }
            if self.running.is_empty() && self.leaving.is_empty() && self.plan.waiting() == 0 {
                return Ok(());
            }
            self.wait()?;
        }
    }

    fn start(&self, test: usize) -> io::Result<Running> {
        let Test { program, name, .. } = &self.tests[test];
        let program = &self.programs[*program];
        let output = tempfile::tempfile()?;
        let mut command = Command::new(OWN_MOUNTS[0]);
        if self.own_mounts {
            command.args(&OWN_MOUNTS[1..]).arg(&program.executable);
        } else {
            command = Command::new(&program.executable);
        }
        // What cargo sets for the tests that it runs; insta asks cargo for the workspace unless it is told.
        command
            .args(["--exact", name, "--nocapture", "--test-threads", "1"])
            .current_dir(&program.folder)
            .env("CARGO_MANIFEST_DIR", &program.folder)
            .env("CARGO_PKG_NAME", &program.package)
            .env("INSTA_WORKSPACE_ROOT", self.root)
            .env(MARK, mark(test))
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output.try_clone()?)
            .process_group(0);
        let child = command.spawn()?;
        let pid = Pid::from_child(&child);
        let ends = rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok();
        let limit = Duration::from_secs(self.plan.limit_seconds(test));
        Ok(Running { test, child, ends, output, started: Instant::now(), limit, killed: None })
    }

    /// Waits until a test ends, or for the next look.
    fn wait(&self) -> io::Result<()> {
        let ends = self.running.iter().filter_map(|one| one.ends.as_ref());
        let mut ends: Vec<PollFd<'_>> = ends.map(|end| PollFd::new(end, PollFlags::IN)).collect();
        let tick = Timespec { tv_sec: 0, tv_nsec: i64::from(TICK.subsec_nanos()) };
        match poll(&mut ends, Some(&tick)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Notes processes that have become children of this one, and takes those that have ended.
    fn adopt(&mut self) {
        let is_test = |pid: u32| self.running.iter().any(|one| one.child.id() == pid);
        for pid in procfs::children().into_iter().filter(|pid| !is_test(*pid)) {
            // A process that has ended has no environment any more, so its test is looked up while it lives.
            let known = self.adopted.get(&pid).copied().flatten();
            let read = || procfs::variable(pid, MARK).map(|value| marked(value.as_deref()?));
            match known.map(Some).or_else(read) {
                // Of no test of this runner.
                Some(None) => drop(self.adopted.remove(&pid)),
                test => drop(self.adopted.insert(pid, test.flatten())),
            }
            let Some(usage) = procfs::usage(pid).filter(|usage| usage.has_ended) else { continue };
            // Only a child can be waited for, and nothing else waits for this one.
            let _ = rustix::process::waitpid(pid_of(pid), WaitOptions::NOHANG);
            if let Some(Some(test)) = self.adopted.remove(&pid) {
                *self.spent.entry(test).or_default() += usage.time;
            }
        }
    }

    /// Ends tests that take or print too much.
    fn end_what_must(&mut self) {
        for one in self.running.iter_mut().filter(|one| one.killed.is_none()) {
            let printed = one.output.metadata().map_or(0, |data| data.len());
            let why = if one.started.elapsed() > one.limit {
                format!("it did not end within {} s, and was killed", one.limit.as_secs())
            } else if printed > MOST_OUTPUT {
                format!("it printed more than {} MiB, and was killed", MOST_OUTPUT >> 20)
            } else {
                continue;
            };
            one.killed = Some(why);
            kill_tests(&[one.test]);
        }
    }

    /// Takes the tests that have ended.
    fn collect(&mut self) {
        let mut index = 0;
        while index < self.running.len() {
            let pid = self.running[index].child.id();
            let usage = procfs::usage(pid);
            if usage.is_some_and(|usage| !usage.has_ended) {
                index += 1;
                continue;
            }
            let mut one = self.running.swap_remove(index);
            self.plan.end(one.test);
            let failure = match one.child.wait() {
                Ok(status) => one.killed.take().or_else(|| why_failed(status)),
                Err(error) => Some(error.to_string()),
            };
            let outcome = Outcome {
                test: one.test,
                failure,
                output: text_of(&mut one.output),
                wall: one.started.elapsed().as_secs_f64(),
                processor: usage.map_or(0.0, |usage| usage.time.as_secs_f64()),
            };
            self.leaving.push((Instant::now() + GRACE, outcome));
        }
    }

    /// The outcomes of tests all of whose processes have ended.
    fn have_left(&mut self) -> Vec<Outcome> {
        let mut ended = Vec::new();
        for (until, mut outcome) in std::mem::take(&mut self.leaving) {
            let stays = self.adopted.iter().find(|(_, test)| **test == Some(outcome.test));
            let may_stay = self.adopted.values().any(Option::is_none);
            if (stays.is_some() || may_stay) && Instant::now() < until {
                self.leaving.push((until, outcome));
                continue;
            }
            if let Some((pid, _)) = stays {
                let what = procfs::command_line(*pid);
                let left = format!("it left a process behind, which was killed: {what}");
                outcome.failure.get_or_insert(left);
                kill_tests(&[outcome.test]);
                self.adopted.retain(|_, test| *test != Some(outcome.test));
            }
            let spent = self.spent.remove(&outcome.test).unwrap_or_default();
            outcome.processor += spent.as_secs_f64();
            ended.push(outcome);
        }
        ended
    }

    fn kill_all(&mut self) {
        let running = self.running.iter().map(|one| one.test);
        let leaving = self.leaving.iter().map(|one| one.1.test);
        kill_tests(&running.chain(leaving).collect::<Vec<_>>());
        for one in &mut self.running {
            // It has been killed, so this ends.
            let _ = one.child.wait();
        }
    }
}

/// Ends every process that these tests started. Volumes are asked to, so that they detach their devices; after
/// [`GRACE`] what is left is killed. A process may start another one meanwhile, so this looks again until there is
/// none.
fn kill_tests(tests: &[usize]) {
    let start = Instant::now();
    while start.elapsed() < 2 * GRACE {
        let alive = |pid: &u32| procfs::usage(*pid).is_some_and(|usage| !usage.has_ended);
        let all =
            procfs::all_with(MARK, |value| marked(value).is_some_and(|test| tests.contains(&test)));
        let all: Vec<u32> = all.into_iter().filter(alive).collect();
        if all.is_empty() {
            return;
        }
        let signal = if start.elapsed() < GRACE { Signal::TERM } else { Signal::KILL };
        for pid in all.into_iter().filter_map(pid_of) {
            // It may have ended by itself this moment.
            let _ = rustix::process::kill_process(pid, signal);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn can_own_mounts() -> bool {
    let mut tried = Command::new(OWN_MOUNTS[0]);
    tried.args(&OWN_MOUNTS[1..]).arg("true").stdin(Stdio::null()).stderr(Stdio::null());
    tried.status().is_ok_and(|status| status.success())
}

/// The value of [`MARK`] for a test of this runner: others may run beside it.
fn mark(test: usize) -> String {
    format!("{}-{test}", std::process::id())
}

/// The test of this runner that has this mark.
fn marked(value: &str) -> Option<usize> {
    value.strip_prefix(&format!("{}-", std::process::id()))?.parse().ok()
}

fn pid_of(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid).ok()?)
}

/// libtest ends with 101 where a test fails; anything else is worth a word.
fn why_failed(status: ExitStatus) -> Option<String> {
    match (status.code(), status.signal()) {
        (Some(0), _) => None,
        (Some(101), _) => Some("it failed".to_owned()),
        (Some(code), _) => Some(format!("it ended with status {code}")),
        (None, Some(signal)) => Some(format!("signal {signal} ended it")),
        (None, None) => Some("it ended in an unknown way".to_owned()),
    }
}

fn text_of(file: &mut File) -> String {
    let mut bytes = Vec::new();
    let read = file.seek(SeekFrom::Start(0)).and_then(|_| file.read_to_end(&mut bytes));
    let text = String::from_utf8_lossy(&bytes).into_owned();
    match read {
        Ok(_) => text,
        Err(error) => format!("{text}\nthe rest of its output cannot be read: {error}"),
    }
}

/// The number of processors in use, computed from the recent idle time. A test that was just started counts as
/// one, until the window has seen it.
struct Load {
    processors: usize,
    seen: VecDeque<(Instant, Duration)>,
    started: VecDeque<Instant>,
}

impl Load {
    fn new(processors: usize) -> Load {
        Load { processors, seen: VecDeque::new(), started: VecDeque::new() }
    }

    fn look(&mut self) {
        let now = Instant::now();
        let last = self.seen.back().map(|seen| seen.0);
        if last.is_none_or(|last| now - last >= TICK)
            && let Some(idle) = procfs::idle(Path::new("/proc/stat"))
        {
            self.seen.push_back((now, idle));
        }
        // The window begins with the last look before it.
        while self.seen.get(1).is_some_and(|seen| now - seen.0 >= WINDOW) {
            self.seen.pop_front();
        }
        while self.started.front().is_some_and(|started| now - *started >= WINDOW) {
            self.started.pop_front();
        }
    }

    fn started(&mut self) {
        self.started.push_back(Instant::now());
    }

    fn busy(&self) -> f64 {
        let idle = match (self.seen.front(), self.seen.back()) {
            (Some(first), Some(last)) if last.0 > first.0 => {
                (last.1 - first.1).as_secs_f64() / (last.0 - first.0).as_secs_f64()
            }
            _ => 0.0,
        };
        let busy = (self.processors as f64 - idle).max(0.0);
        busy + self.started.len() as f64
    }
}
