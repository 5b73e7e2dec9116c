//! A whole campaign in a world without tools, servers and time.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::*;
use crate::campaign::{OneOrMany, Op, Source, Subject};
use crate::preset::quick_campaign;
use crate::world::{Service, StopFlag};

/// fio's own words, from which the mock answers.
const FIO: &str = include_str!("../../testdata/fio-3.33-randread-file.json");

/// What happens at the n-th start of the tool's trial (fills and versions are not counted).
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    /// The user presses Ctrl-C while it runs.
    Interrupt(usize),
    /// The tool fails.
    Fail(usize),
    /// The tool always fails.
    AlwaysFail,
    /// Its output ends in the middle.
    Truncate(usize),
    /// The server of the stack ends before it is ready.
    ServerDies,
}

#[derive(Default)]
struct Log {
    /// Sockets of the servers that are up.
    up: BTreeSet<String>,
    most_up: usize,
    starts: usize,
    fills: usize,
    trials: usize,
    commands: Vec<String>,
}

struct MockWorld {
    now: Duration,
    asked: u32,
    log: Rc<RefCell<Log>>,
    faults: Vec<Fault>,
}

struct MockService {
    socket: String,
    dead: bool,
    log: Rc<RefCell<Log>>,
}

impl Service for MockService {
    fn poll_exit(&mut self) -> Result<Option<(Exit, String)>, LabError> {
        Ok(self.dead.then(|| (Exit::Code(1), "cannot open a.img: it is mounted\n".to_owned())))
    }

    fn cpu_time(&self) -> Option<Duration> {
        Some(Duration::from_millis(self.log.borrow().trials as u64))
    }

    fn stop(&mut self, _grace: Duration) -> Result<(Exit, String), LabError> {
        self.log.borrow_mut().up.remove(&self.socket);
        Ok((Exit::Code(0), String::new()))
    }
}

impl MockWorld {
    fn new(faults: &[Fault]) -> Self {
        Self { now: Duration::ZERO, asked: 0, log: Rc::default(), faults: faults.to_vec() }
    }

    fn trial(&mut self, command: &str, stop: &StopFlag) -> Finished {
        let number = {
            let mut log = self.log.borrow_mut();
            log.trials += 1;
            log.commands.push(command.to_owned());
            log.trials
        };
        let output = match command.contains("write") {
            // The golden output is a read; the same numbers under the other heading.
            true => FIO
                .replace("\"read\" :", "\"other\" :")
                .replace("\"write\" :", "\"read\" :")
                .replace("\"other\" :", "\"write\" :"),
            false => FIO.to_owned(),
        };
        let mut done = Finished { exit: Exit::Code(0), stdout: output, stderr: String::new() };
        for fault in &self.faults {
            match fault {
                Fault::Interrupt(n) if *n == number => {
                    stop.set();
                    done.exit = Exit::Stopped;
                }
                Fault::Truncate(n) if *n == number => done.stdout.truncate(1000),
                Fault::Fail(n) if *n == number => done = broken(),
                Fault::AlwaysFail => done = broken(),
                _ => {}
            }
        }
        done
    }
}

fn broken() -> Finished {
    let stderr = "fio: pid=1, err=5/file:io_u.c:1876, error=Input/output error\n".to_owned();
    Finished { exit: Exit::Code(1), stdout: String::new(), stderr }
}

impl World for MockWorld {
    fn monotonic(&self) -> Duration {
        self.now
    }

    fn unix_time_s(&self) -> u64 {
        1_795_297_686 + self.now.as_secs()
    }

    fn sleep(&mut self, time: Duration) {
        self.now += time;
    }

    fn run(
        &mut self,
        command: &CommandLine,
        _: Duration,
        stop: &StopFlag,
    ) -> Result<Finished, LabError> {
        let text = command.to_string();
        let words = |stdout: &str| Finished {
            exit: Exit::Code(0),
            stdout: stdout.into(),
            stderr: String::new(),
        };
        if text.contains("--version") {
            return Ok(words("fio-3.33\n"));
        }
        self.now += Duration::from_millis(1300);
        if text.contains("--name=fill") {
            self.log.borrow_mut().fills += 1;
            return Ok(words("{}"));
        }
        Ok(self.trial(&text, stop))
    }

    fn start(&mut self, command: &CommandLine) -> Result<Box<dyn Service>, LabError> {
        let socket = command.args[3].strip_prefix("unix:").expect("a Unix socket").to_owned();
        let dead = self.faults.contains(&Fault::ServerDies);
        let mut log = self.log.borrow_mut();
        log.starts += 1;
        if !dead {
            log.up.insert(socket.clone());
            log.most_up = log.most_up.max(log.up.len());
        }
        Ok(Box::new(MockService { socket, dead, log: Rc::clone(&self.log) }))
    }

    fn nbd_size(&mut self, uri: &str) -> Result<u64, LabError> {
        // Ready at the second time of asking.
        let up = self.log.borrow().up.iter().any(|socket| uri.ends_with(socket.as_str()));
        self.asked += 1;
        if up && self.asked.is_multiple_of(2) {
            return Ok(1 << 30);
        }
        Err(LabError::Nbd { uri: uri.to_owned(), reason: "connection refused".to_owned() })
    }

    fn path_size(&mut self, _: &Path) -> Result<u64, LabError> {
        Ok(1 << 30)
    }
}

fn options(dir: &Path) -> LabOptions {
    LabOptions {
        braid_binary: PathBuf::from("/usr/bin/braid"),
        serve_args: vec!["--verbose".to_owned()],
        results_dir: dir.to_path_buf(),
        destroy: ["a.img", "b.img"].map(PathBuf::from).to_vec(),
        quiet: true,
        colour: false,
        stop: StopFlag::default(),
    }
}

fn small(baseline: &str, subject: &str) -> Campaign {
    let mut campaign = quick_campaign(baseline, &[("two".to_owned(), subject.to_owned())]).unwrap();
    campaign.jobs[0].pattern = OneOrMany(vec![crate::campaign::Pattern::Rand]);
    campaign.repetitions = 2;
    campaign
}

/// 4 workloads x 2 subjects x 2 repetitions.
const TRIALS: usize = 16;

fn rivals() -> Campaign {
    small("./a.img", "raid0(./a.img, ./b.img)")
}

#[test]
fn a_campaign_measures_every_cell_and_leaves_no_server() {
    let dir = tempfile::tempdir().unwrap();
    let mut world = MockWorld::new(&[]);
    let mut options = options(dir.path());
    options.destroy = ["./a.img", "./b.img"].map(PathBuf::from).to_vec();
    let summary = crate::run_in(&mut world, &rivals(), &options).unwrap();
    let tally = summary.tally.unwrap();
    assert_eq!((tally.planned, tally.measured, tally.failed, tally.stopped), (16, 16, 0, false));
    let log = world.log.borrow();
    assert!(log.up.is_empty(), "servers left: {:?}", log.up);
    assert_eq!(log.most_up, 1, "members are shared, so the servers must take turns");
    assert_eq!(log.fills, 2, "what lies in files stays there");
    assert!(log.commands[0].contains("--uri=nbd+unix:///?socket="), "{}", log.commands[0]);
    assert!(summary.table.contains("random read 4K, depth 32"), "{}", summary.table);
    let store = Store::open(dir.path()).unwrap();
    for (trial, samples) in store.trials().unwrap() {
        assert!(samples.iter().any(|sample| sample.metric == Metric::ServerCpu), "{trial:?}");
        assert!(dir.path().join(&trial.raw).is_file());
    }
}

#[test]
fn servers_that_share_nothing_stay_up() {
    let dir = tempfile::tempdir().unwrap();
    let mut world = MockWorld::new(&[]);
    let campaign = small("ram(1G)", "raid0(ram(1G), ram(1G))");
    crate::run_in(&mut world, &campaign, &options(dir.path())).unwrap();
    let log = world.log.borrow();
    assert_eq!((log.starts, log.most_up, log.fills), (2, 2, 2));
    assert!(log.up.is_empty());
}

#[test]
fn a_campaign_that_only_reads_writes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut world = MockWorld::new(&[]);
    let mut campaign = rivals();
    campaign.jobs[0].op = OneOrMany(vec![Op::Read]);
    let mut options = options(dir.path());
    options.destroy.clear();
    crate::run_in(&mut world, &campaign, &options).unwrap();
    assert_eq!(world.log.borrow().fills, 0);
}

#[test]
fn nothing_is_started_when_something_would_be_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let results = dir.path().join("results");
    let mut world = MockWorld::new(&[]);
    let mut options = options(&results);
    options.destroy.clear();
    let error = crate::run_in(&mut world, &rivals(), &options).unwrap_err();
    assert!(matches!(error, LabError::WouldDestroy { .. }), "{error}");
    assert_eq!(world.log.borrow().starts, 0);
    assert!(!results.exists());
}

fn run_rivals(dir: &Path, faults: &[Fault]) -> (Result<Tally, LabError>, Rc<RefCell<Log>>) {
    let mut world = MockWorld::new(faults);
    let mut options = options(dir);
    options.destroy = ["./a.img", "./b.img"].map(PathBuf::from).to_vec();
    let tally = run_campaign(&rivals(), &options, &mut world);
    let log = Rc::clone(&world.log);
    assert!(log.borrow().up.is_empty(), "a server was left");
    (tally, log)
}

/// Stopped at trial n, everything before n is saved, and the next run does the rest exactly once.
#[test]
fn an_interrupted_campaign_resumes_at_every_index() {
    for n in 1..=TRIALS {
        let dir = tempfile::tempdir().unwrap();
        let (tally, first) = run_rivals(dir.path(), &[Fault::Interrupt(n)]);
        let tally = tally.unwrap();
        assert!(tally.stopped, "at {n}");
        assert_eq!(tally.measured as usize, n - 1, "at {n}");
        let saved = Store::open(dir.path()).unwrap().finished_trials().unwrap();
        assert_eq!(saved.len(), n - 1, "at {n}");

        let (tally, second) = run_rivals(dir.path(), &[]);
        let tally = tally.unwrap();
        assert_eq!((tally.skipped as usize, tally.measured as usize), (n - 1, TRIALS - n + 1));
        assert_eq!(first.borrow().trials + second.borrow().trials, TRIALS + 1);
        let store = Store::open(dir.path()).unwrap();
        assert_eq!(store.finished_trials().unwrap().len(), TRIALS);
        assert_eq!(store.sessions().unwrap().len(), 2);
    }
}

#[test]
fn one_failure_is_kept_and_the_next_run_repeats_it() {
    for fault in [Fault::Fail(5), Fault::Truncate(5)] {
        let dir = tempfile::tempdir().unwrap();
        let (tally, _) = run_rivals(dir.path(), &[fault]);
        let tally = tally.unwrap();
        assert_eq!((tally.measured as usize, tally.failed), (TRIALS - 1, 1));
        let report = crate::report(dir.path(), false).unwrap();
        assert!(report.table.contains("! trial 5 failed"), "{}", report.table);
        let (tally, log) = run_rivals(dir.path(), &[]);
        assert_eq!(tally.unwrap().measured, 1);
        assert_eq!(log.borrow().trials, 1);
    }
}

#[test]
fn three_failures_in_a_row_end_it_with_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    let (tally, log) = run_rivals(dir.path(), &[Fault::AlwaysFail]);
    let error = tally.unwrap_err().to_string();
    assert!(error.contains("Input/output error"), "{error}");
    assert_eq!(log.borrow().trials, 3);
}

#[test]
fn a_server_that_does_not_start_shows_its_own_words() {
    let dir = tempfile::tempdir().unwrap();
    let (tally, _) = run_rivals(dir.path(), &[Fault::ServerDies]);
    let error = tally.unwrap_err().to_string();
    assert!(error.contains("| cannot open a.img: it is mounted"), "{error}");
    assert!(error.contains("/usr/bin/braid serve"), "{error}");
}

#[test]
fn a_server_that_is_never_ready_is_given_up() {
    let dir = tempfile::tempdir().unwrap();
    let mut campaign = rivals();
    let uri = "nbd+unix:///?socket=/nonexistent";
    campaign.subjects =
        vec![Subject { name: "x".into(), source: Source::Nbd(uri.into()), baseline: true }];
    let mut options = options(dir.path());
    options.destroy = vec![PathBuf::from(uri)];
    let error = run_campaign(&campaign, &options, &mut MockWorld::new(&[])).unwrap_err();
    assert!(matches!(error, LabError::SubjectDown { .. }), "{error}");
}
