//! `braid lab` as its users meet it: the real binary, the real tools, modelled members.
//!
//! ```text
//!   presets   every preset at a small scale, its reports read back
//!   plans     what is planned to be written, beside what devices were written
//!   endings   interrupted, killed, tools that are missing, crash, hang, print garbage;
//!             a device that goes, a full disk, two runs at once
//!   reports   list, show, compare
//!   predictions   the same campaigns in virtual time
//!   readme    the README's campaign
//!   safety    what is not named, and what is in use, keeps its bytes
//! ```
//!
//! The presets take a quarter of an hour together, so here each is cut to a few of its subjects and
//! jobs, and one repetition; with `$BRAID_LAB_SMOKE=all` nothing is cut but amounts and times. Reports and
//! pages then stay in the folder that cargo has for tests.

#[path = "../common/mod.rs"]
mod common;
mod endings;
mod plans;
mod predictions;
mod presets;
mod readme;
mod reports;
mod safety;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use braid_lab::matrix::Planned;
use braid_lab::store::{Outcome, Store};

use common::{Output, Scratch, Tool};

/// The time for a campaign on a busy machine; the limit ends campaigns that hang. The whole of
/// `two-disk-levels` takes ten minutes on a quiet machine.
fn limit() -> Duration {
    Duration::from_secs(if all() { 2400 } else { 540 })
}

/// True if nothing is cut.
fn all() -> bool {
    std::env::var_os("BRAID_LAB_SMOKE").is_some()
}

/// `braid lab` in a folder of its own, with sources and mounts of its own too.
struct Lab {
    scratch: Scratch,
}

impl Lab {
    fn new() -> Self {
        let scratch = Scratch::new();
        std::fs::create_dir(scratch.join("tmp")).expect("a folder can be made");
        Self { scratch }
    }

    fn results(&self) -> PathBuf {
        self.scratch.join("results")
    }

    fn tool(&self, words: &[&str]) -> Tool {
        let tool = self.scratch.braid().arg("lab").args(words).folder(self.scratch.path());
        tool.env("TMPDIR", self.scratch.join("tmp")).limit(limit())
    }

    /// Checks that no process, mount, loop device, volume, folder or note of a run is there.
    #[track_caller]
    fn assert_nothing_is_left(&self, results: &Path) {
        let folder = self.scratch.path().display().to_string();
        let mut left: Vec<String> = marked_processes(&results.display().to_string());
        left.extend(lines_with("/proc/self/mounts", &format!("{folder}/tmp/")));
        for device in entries(Path::new("/sys/block")) {
            let file = device.join("loop/backing_file");
            left.extend(lines_with(&file.display().to_string(), &folder));
        }
        for below in ["tmp", "run", "config"] {
            let paths = entries(&self.scratch.join(below));
            left.extend(paths.iter().map(|path| path.display().to_string()));
        }
        left.extend(results.join("held.json").exists().then(|| "held.json".to_owned()));
        assert_eq!(left, [] as [String; 0]);
    }

    fn run(&self, words: &[&str]) -> Output {
        self.tool(words).run()
    }

    /// A campaign file in the folder.
    fn campaign(&self, text: &str) -> String {
        let path = self.scratch.join("campaign.toml");
        common::with_files_open(|| std::fs::write(&path, text)).expect("a campaign can be written");
        path.display().to_string()
    }
}

impl Drop for Lab {
    /// After a test that failed: what a killed run of it has left. Volumes go with the folder.
    fn drop(&mut self) {
        let folder = self.scratch.path().display().to_string();
        for path in marked_processes(&format!("{folder}/")) {
            if let Some(pid) = path.rsplit('/').next().and_then(|name| name.parse().ok())
                && lines_with(&format!("{path}/cmdline"), "braid-volume").is_empty()
            {
                common::send_signal(pid, rustix::process::Signal::KILL);
            }
        }
        let run = |tool: Tool| {
            // A panic inside a panic would end all tests.
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| tool.run()));
        };
        for line in lines_with("/proc/self/mounts", &format!("{folder}/tmp/")) {
            let point = line.split(' ').nth(1).unwrap_or_default();
            run(Tool::new("umount").args(["--lazy", point]));
        }
        for device in entries(Path::new("/sys/block")) {
            let file = device.join("loop/backing_file").display().to_string();
            let backing = lines_with(&file, &folder);
            // Those of volumes are their own.
            if backing.iter().any(|file| !file.contains("/run/")) {
                let name = device.file_name().unwrap_or_default().to_string_lossy();
                run(Tool::new("losetup").arg("--detach").arg(format!("/dev/{name}")));
            }
        }
    }
}

/// The time for which processes of the machine waited for a processor, for tests in wall time.
struct Pressure {
    began: Instant,
    waited: Option<Duration>,
}

impl Pressure {
    fn begin() -> Pressure {
        Pressure { began: Instant::now(), waited: Pressure::total() }
    }

    /// Time in which at least one process waited, from the start of the machine on; `None` if the kernel does not
    /// count it.
    fn total() -> Option<Duration> {
        let text = std::fs::read_to_string("/proc/pressure/cpu").ok()?;
        let some = text.lines().find(|line| line.starts_with("some "))?;
        Some(Duration::from_micros(some.split_once("total=")?.1.parse().ok()?))
    }

    /// Words about a machine on which processes waited for a quarter of the time since the begin: its wall time
    /// shows nothing.
    fn of_busy_machine(&self) -> Option<String> {
        let (took, waited) =
            (self.began.elapsed(), Pressure::total()?.saturating_sub(self.waited?));
        (waited > took / 4)
            .then(|| format!("processes waited for a processor in {waited:.0?} of {took:.0?}"))
    }
}

/// The content of a folder, if it exists.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// Lines of a file of the system's with this text; none where there is no file.
fn lines_with(path: &str, text: &str) -> Vec<String> {
    let all = std::fs::read_to_string(path).unwrap_or_default();
    all.lines().filter(|line| line.contains(text)).map(ToOwned::to_owned).collect()
}

/// Processes that a run has started in a results folder whose path begins so.
fn marked_processes(results: &str) -> Vec<String> {
    let mark = format!("BRAID_LAB_RESULTS={results}");
    let is_marked = |folder: &PathBuf| {
        let environment = std::fs::read(folder.join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|word| word.starts_with(mark.as_bytes()))
    };
    let marked = entries(Path::new("/proc")).into_iter().filter(is_marked);
    marked.map(|folder| folder.display().to_string()).collect()
}

fn read(path: &Path) -> String {
    common::with_files_open(|| std::fs::read_to_string(path))
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The results of a campaign's trials.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    planned: usize,
    measured: usize,
    /// Why some cannot be done here.
    impossible: Vec<String>,
    /// Why some failed.
    failed: Vec<String>,
    /// The number of times that the runner was started.
    sessions: usize,
}

/// Counts what a results directory holds.
fn tally(results: &Path) -> Tally {
    let held = common::with_files_open(|| Store::open(results)?.results())
        .unwrap_or_else(|error| panic!("{error}"));
    let mut tally = Tally {
        planned: Planned::of(&held.campaign).trials.len(),
        sessions: held.sessions.len(),
        ..Tally::default()
    };
    for trial in held.trials {
        let told = |reason| format!("{}: {}: {reason}", trial.subject, trial.workload);
        match trial.outcome {
            Outcome::Ok => tally.measured += 1,
            Outcome::Impossible(reason) => tally.impossible.push(told(reason)),
            Outcome::Failed(reason) => tally.failed.push(told(reason)),
        }
    }
    tally
}
