//! A whole campaign in a world without tools, servers and time.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::*;
use crate::command::{CommandLine, Exit, Finished, Step as ScriptStep, Target, ToolOutput};
use crate::evidence::{Roots, Snapshot, Watch, take_under};
use crate::matrix::{Planned, parse_campaign};
use crate::metric::Metric;
use crate::preset::quick_campaign;
use crate::settings::Value;
use crate::story::Story;
use crate::world::{PathKind, StopFlag};

/// Output of fio, from which the mock answers.
const FIO: &str = include_str!("../../testdata/fio-3.33-randread-file.json");

/// A fault at the n-th start of a trial's tool (fills and versions are not counted).
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    /// The user presses Ctrl-C while the tool runs.
    Interrupt(usize),
    /// The tool fails.
    Fail(usize),
    /// The tool always fails.
    AlwaysFail,
    /// The tool fails if this word is in its command.
    FailOn(&'static str),
    /// The tool's output ends in the middle.
    Truncate(usize),
    /// The tool does not end by itself.
    Hang(usize),
    /// The stack does not come up.
    NoVolume,
    /// The tool is not installed.
    NoTool,
    /// A program that a subject needs is not installed.
    NoProgram(&'static str),
}

#[derive(Default)]
struct Log {
    /// Names of the volumes that are up.
    up: BTreeSet<String>,
    most_up: usize,
    starts: usize,
    fills: usize,
    trials: usize,
    drops: usize,
    commands: Vec<String>,
}

struct MockWorld {
    now: Duration,
    log: Rc<RefCell<Log>>,
    faults: Vec<Fault>,
    /// Time of Ctrl-C, and the flag that it sets.
    interrupt: Option<(Duration, StopFlag)>,
}

impl MockWorld {
    fn new(faults: &[Fault]) -> Self {
        let (now, log, faults) = (Duration::ZERO, Rc::default(), faults.to_vec());
        Self { now, log, faults, interrupt: None }
    }

    fn trial(&mut self, command: &str, stop: &StopFlag) -> Finished {
        let number = {
            let mut log = self.log.borrow_mut();
            log.trials += 1;
            log.commands.push(command.to_owned());
            log.trials
        };
        let output = match command.contains("write") {
            // The golden output is of a read; this moves its numbers to the write.
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
                Fault::Hang(n) if *n == number => done.exit = Exit::TimedOut,
                Fault::FailOn(word) if command.contains(word) => done = broken(),
                Fault::AlwaysFail => done = broken(),
                _ => {}
            }
        }
        done
    }
}

fn refused() -> Finished {
    let stderr = "cannot open a.img: it is mounted\n".to_owned();
    Finished { exit: Exit::Code(1), stdout: String::new(), stderr }
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
        if let Some((_, stop)) = self.interrupt.as_ref().filter(|(at, _)| self.now >= *at) {
            stop.set();
        }
    }

    fn run(
        &mut self,
        command: &CommandLine,
        _: Duration,
        _: &StopFlag,
    ) -> Result<Finished, LabError> {
        let text = command.to_string();
        let words = |stdout: &str| Finished {
            exit: Exit::Code(0),
            stdout: stdout.into(),
            stderr: String::new(),
        };
        if text.contains("--version") {
            if self.faults.contains(&Fault::NoTool) {
                let source = std::io::ErrorKind::NotFound.into();
                return Err(LabError::Spawn { program: command.program.clone(), source });
            }
            return Ok(words(match command.program.as_str() {
                "cp" => "cp (GNU coreutils) 9.1\n",
                _ => "fio-3.33\n",
            }));
        }
        let word = |at: usize| command.args.get(at).map_or("", String::as_str);
        if word(3) != "down" {
            self.now += Duration::from_millis(1300);
        }
        let program = command.program.as_str();
        if self.faults.iter().any(|fault| matches!(fault, Fault::NoProgram(one) if *one == program))
        {
            let source = std::io::ErrorKind::NotFound.into();
            return Err(LabError::Spawn { program: program.to_owned(), source });
        }
        let mut log = self.log.borrow_mut();
        match word(3) {
            "up" if self.faults.contains(&Fault::NoVolume) => Ok(refused()),
            "up" => {
                log.starts += 1;
                log.up.insert(word(6).to_owned());
                log.most_up = log.most_up.max(log.up.len());
                Ok(words("{\"device\": \"/dev/loop99\"}"))
            }
            "down" => {
                log.up.remove(word(4));
                Ok(words(""))
            }
            "status" => Ok(words("{\"volumes\": [{\"pid\": 7, \"arrays\": []}]}")),
            _ => Ok(words("")),
        }
    }

    fn run_all(
        &mut self,
        commands: &[CommandLine],
        limit: Duration,
        stop: &StopFlag,
        _: &mut Story,
    ) -> Result<Vec<ToolOutput>, LabError> {
        self.now += Duration::from_millis(1300);
        let outputs = commands.iter().map(|command| {
            let Finished { exit, stdout, stderr } = self.trial(&command.to_string(), stop);
            ToolOutput { exit, stdout, stderr, wall_s: 1.3 }
        });
        let outputs: Vec<ToolOutput> = outputs.collect();
        if outputs.iter().any(|output| output.exit == Exit::TimedOut) {
            self.now += limit;
        }
        Ok(outputs)
    }

    fn nbd_size(&mut self, _: &str) -> Result<u64, LabError> {
        Ok(1 << 30)
    }

    fn path_size(&mut self, _: &Path) -> Result<u64, LabError> {
        Ok(1 << 30)
    }

    fn perform(&mut self, _: &ScriptStep, _: Duration, _: &StopFlag) -> Result<(), LabError> {
        Ok(())
    }

    fn drop_caches(&mut self) -> Result<(), LabError> {
        self.log.borrow_mut().drops += 1;
        Ok(())
    }

    fn sync_path(&mut self, _: &Path) -> Result<(), LabError> {
        Ok(())
    }

    fn fill(
        &mut self,
        _: &Target,
        _: u64,
        _: u64,
        _: Duration,
        _: &StopFlag,
    ) -> Result<(), LabError> {
        self.log.borrow_mut().fills += 1;
        Ok(())
    }

    fn make_folder(&mut self, parent: &Path) -> Result<PathBuf, LabError> {
        Ok(parent.join("folder"))
    }

    fn remove_folder(&mut self, _: &Path, _: bool) -> Result<(), LabError> {
        Ok(())
    }

    fn is_root(&self) -> bool {
        true
    }

    fn free_bytes(&mut self, _: &Path) -> Result<u64, LabError> {
        Ok(1 << 30)
    }

    fn path_kind(&mut self, path: &Path) -> Result<Option<PathKind>, LabError> {
        let is_gone = path.ends_with("gone.img");
        Ok((!is_gone).then(|| if path.is_dir() { PathKind::Folder } else { PathKind::File }))
    }

    /// Returns a snapshot of a machine without files.
    fn snapshot(&mut self, watch: &Watch) -> Snapshot {
        let nowhere = Path::new("/nonexistent");
        take_under(&Roots { proc: nowhere.into(), sys: nowhere.into() }, watch)
    }
}

fn options(dir: &Path, destroy: &[&str]) -> LabOptions {
    LabOptions {
        braid_binary: PathBuf::from("/usr/bin/braid"),
        destroy: destroy.iter().map(PathBuf::from).collect(),
        quiet: true,
        ..LabOptions::new(dir).unwrap()
    }
}

/// A campaign over two image files of one test, so that no other test has their locks.
struct Rivals {
    dir: tempfile::TempDir,
    campaign: Campaign,
    members: [String; 2],
}

impl Rivals {
    /// 4 workloads x 2 subjects x 2 repetitions.
    const TRIALS: usize = 16;

    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let members = ["a.img", "b.img"].map(|name| dir.path().join(name).display().to_string());
        let subject = format!("raid0({}, {})", members[0], members[1]);
        let campaign = small(&members[0], &subject);
        Self { dir, campaign, members }
    }

    fn results(&self) -> PathBuf {
        self.dir.path().join("results")
    }

    fn options(&self) -> LabOptions {
        let members: Vec<&str> = self.members.iter().map(String::as_str).collect();
        options(&self.results(), &members)
    }

    fn run(&self, faults: &[Fault]) -> (Result<Tally, LabError>, Rc<RefCell<Log>>) {
        let mut world = MockWorld::new(faults);
        let tally = run_campaign(&self.campaign, &self.options(), &mut world);
        let log = Rc::clone(&world.log);
        assert!(log.borrow().up.is_empty(), "a server was left");
        (tally, log)
    }

    fn store(&self) -> Store {
        Store::open(&self.results()).unwrap()
    }
}

fn small(baseline: &str, subject: &str) -> Campaign {
    let mut campaign = quick_campaign(baseline, &[("two".to_owned(), subject.to_owned())]).unwrap();
    let random = vec![Value::Word("rand".into())];
    campaign.jobs[0].settings.insert("pattern".into(), random);
    campaign.repetitions = 2;
    campaign
}

#[test]
fn a_campaign_measures_every_cell_and_leaves_no_server() {
    let rivals = Rivals::new();
    let (tally, log) = rivals.run(&[]);
    let tally = tally.unwrap();
    assert_eq!((tally.planned, tally.measured, tally.failed, tally.stopped), (16, 16, 0, false));
    let log = log.borrow();
    assert_eq!(log.most_up, 1, "members are shared, so the servers must take turns");
    assert_eq!(log.fills, 2, "what lies in files stays there");
    assert_eq!(log.drops, 16);
    assert!(log.commands[0].contains("--uri=nbd+unix:///?socket="), "{}", log.commands[0]);
    for trial in rivals.store().results().unwrap().trials {
        assert!(trial.measured.get(Metric::Iops).is_some(), "{trial:?}");
        assert!(trial.commands.iter().any(|command| command.starts_with("fio ")), "{trial:?}");
        assert!(rivals.results().join(&trial.raw).join("0.stdout").is_file());
        assert_eq!(trial.dimensions["family"], Value::Word(trial.subject.clone()));
    }
    assert!((tally.times.busy_s - 16.0 * 1.3).abs() < 1e-6, "{:?}", tally.times);
}

#[test]
fn servers_that_share_nothing_stay_up() {
    let dir = tempfile::tempdir().unwrap();
    let mut world = MockWorld::new(&[]);
    let campaign = small("ram(1G)", "raid0(ram(1G), ram(1G))");
    run_campaign(&campaign, &options(dir.path(), &[]), &mut world).unwrap();
    let log = world.log.borrow();
    assert_eq!((log.starts, log.most_up, log.fills), (2, 2, 2));
    assert!(log.up.is_empty());
}

#[test]
fn a_campaign_that_only_reads_writes_nothing() {
    let mut rivals = Rivals::new();
    rivals.campaign.jobs[0].settings.insert("op".into(), vec![Value::Word("read".into())]);
    let mut world = MockWorld::new(&[]);
    run_campaign(&rivals.campaign, &options(&rivals.results(), &[]), &mut world).unwrap();
    assert_eq!(world.log.borrow().fills, 0);
}

/// Otherwise the others would be measured without the baseline.
#[test]
fn nothing_is_measured_when_something_is_not_there() {
    let rivals = Rivals::new();
    let mut world = MockWorld::new(&[]);
    let campaign = small("/img/gone.img", "raid0(/img/a.img, /img/gone.img)");
    let options = options(&rivals.results(), &["/img/a.img", "/img/gone.img"]);
    let error = run_campaign(&campaign, &options, &mut world).unwrap_err();
    let LabError::Missing { paths } = &error else { panic!("{error}") };
    assert_eq!(paths, &["/img/gone.img"]);
    assert!(error.to_string().contains("/img/gone.img does not exist; make it"), "{error}");
    assert_eq!(world.log.borrow().starts, 0);
    assert!(!rivals.results().exists());
}

#[test]
fn nothing_is_started_when_something_would_be_overwritten() {
    let rivals = Rivals::new();
    let mut world = MockWorld::new(&[]);
    let options = options(&rivals.results(), &[]);
    let error = run_campaign(&rivals.campaign, &options, &mut world).unwrap_err();
    assert!(matches!(error, LabError::WouldDestroy { .. }), "{error}");
    assert_eq!(world.log.borrow().starts, 0);
    assert!(!rivals.results().exists());
}

/// If trial n is stopped, everything before n is stored, and the next run measures the rest exactly once.
#[test]
fn an_interrupted_campaign_resumes_at_every_index() {
    for n in 1..=Rivals::TRIALS {
        let rivals = Rivals::new();
        let (tally, first) = rivals.run(&[Fault::Interrupt(n)]);
        let tally = tally.unwrap();
        assert!(tally.stopped, "at {n}");
        assert_eq!(tally.measured as usize, n - 1, "at {n}");
        assert_eq!(rivals.store().measured_trials().unwrap().len(), n - 1, "at {n}");

        let (tally, second) = rivals.run(&[]);
        let tally = tally.unwrap();
        let rest = Rivals::TRIALS - n + 1;
        assert_eq!((tally.skipped as usize, tally.measured as usize), (n - 1, rest));
        assert_eq!(first.borrow().trials + second.borrow().trials, Rivals::TRIALS + 1);
        let results = rivals.store().results().unwrap();
        assert_eq!((results.trials.len(), results.sessions.len()), (Rivals::TRIALS, 2));
    }
}

#[test]
fn one_failure_is_kept_and_the_next_run_repeats_it() {
    for fault in [Fault::Fail(5), Fault::Truncate(5), Fault::Hang(5)] {
        let rivals = Rivals::new();
        let (tally, _) = rivals.run(&[fault]);
        let tally = tally.unwrap();
        assert_eq!((tally.measured as usize, tally.failed), (Rivals::TRIALS - 1, 1));
        let trials = rivals.store().results().unwrap().trials;
        let failed: Vec<&StoredTrial> =
            trials.iter().filter(|t| matches!(t.outcome, Outcome::Failed(_))).collect();
        assert_eq!((failed.len(), failed[0].number), (1, 5));
        if let (Fault::Hang(_), Outcome::Failed(reason)) = (fault, &failed[0].outcome) {
            assert!(
                reason.contains("time limit of ") && reason.contains(" is 120 s and "),
                "{reason}"
            );
        }
        assert!(rivals.results().join(&failed[0].raw).is_dir(), "its words are kept");
        let (tally, log) = rivals.run(&[]);
        assert_eq!(tally.unwrap().measured, 1);
        assert_eq!(log.borrow().trials, 1);
    }
}

#[test]
fn a_subject_that_fails_again_and_again_is_left_out_and_the_other_goes_on() {
    let mut rivals = Rivals::new();
    // The second subject's socket is 1.sock.
    rivals.campaign.repetitions = 3;
    let (tally, log) = rivals.run(&[Fault::FailOn("/1.sock")]);
    let tally = tally.unwrap();
    assert_eq!((tally.measured, tally.failed, tally.left_out), (12, 3, 9));
    assert_eq!(log.borrow().trials, 15);
    let reason = tally.reasons.keys().next().unwrap();
    assert!(reason.contains("Input/output error"), "{reason}");
}

#[test]
fn when_everything_fails_it_ends_soon() {
    let rivals = Rivals::new();
    let (tally, log) = rivals.run(&[Fault::AlwaysFail]);
    let tally = tally.unwrap();
    assert_eq!((tally.measured, tally.failed, tally.left_out), (0, 6, 10));
    assert_eq!(log.borrow().trials, 6);
}

#[test]
fn a_server_that_does_not_start_shows_its_own_words() {
    let rivals = Rivals::new();
    let (tally, _) = rivals.run(&[Fault::NoVolume]);
    let tally = tally.unwrap();
    let reasons: Vec<&String> = tally.reasons.keys().collect();
    assert!(reasons[0].contains("| cannot open a.img: it is mounted"), "{reasons:?}");
    assert!(reasons[0].contains("/usr/bin/braid up"), "{reasons:?}");
}

#[test]
fn a_tool_that_is_not_there_names_its_package() {
    let rivals = Rivals::new();
    let (tally, log) = rivals.run(&[Fault::NoTool]);
    let error = tally.unwrap_err().to_string();
    assert!(error.contains("apt-get install fio"), "{error}");
    assert_eq!(log.borrow().trials, 0);
}

#[test]
fn two_runs_never_share_a_device_or_a_folder() {
    let rivals = Rivals::new();
    let _devices = lock_devices(&Planned::of(&rivals.campaign)).unwrap();
    let (tally, log) = rivals.run(&[]);
    assert!(matches!(tally, Err(LabError::Busy { .. })));
    assert_eq!(log.borrow().starts, 0);
}

#[test]
fn what_is_impossible_is_kept_with_its_reason_and_the_rest_runs() {
    let dir = tempfile::tempdir().unwrap();
    let text = "name = \"t\"\nrepetitions = 2\n\
        [[member]]\nname = \"a\"\ndevice = \"ram(1G)\"\n\
        [[subject]]\nname = \"one\"\nstack = \"{a}\"\nbaseline = true\n\
        [[subject]]\nname = \"many\"\nstack = \"raid0({members})\"\nmembers = [1, 2]\n\
        [[job]]\npattern = \"seq\"\nop = \"read\"\nblock_size = \"1M\"\n";
    let campaign = parse_campaign(text, "test").unwrap();
    let mut world = MockWorld::new(&[]);
    let tally = run_campaign(&campaign, &options(dir.path(), &[]), &mut world).unwrap();
    assert_eq!((tally.measured, tally.impossible, tally.failed), (4, 2, 0));
    let again = run_campaign(&campaign, &options(dir.path(), &[]), &mut world).unwrap();
    assert_eq!((again.skipped, again.measured_before, again.measured), (6, 4, 0));
    let results = Store::open(dir.path()).unwrap().results().unwrap();
    let reasons: BTreeSet<String> = results
        .trials
        .iter()
        .filter_map(|trial| match &trial.outcome {
            Outcome::Impossible(reason) => Some(reason.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(reasons.into_iter().collect::<Vec<_>>(), ["it needs 2 members and there are 1"]);
}

#[test]
fn going_on_keeps_what_is_known_of_the_subjects() {
    let rivals = Rivals::new();
    rivals.run(&[]).0.unwrap();
    let before = rivals.store().results().unwrap().facts;
    assert!(before.iter().all(|one| one.size_bytes.is_some() && !one.commands.is_empty()));
    let (tally, log) = rivals.run(&[]);
    assert_eq!((tally.unwrap().measured, log.borrow().starts), (0, 0));
    assert_eq!(rivals.store().results().unwrap().facts, before);
}

/// A continued run measures the files of the first start, in any directory.
#[test]
fn relative_paths_are_kept_with_what_they_are_relative_to() {
    let dir = tempfile::tempdir().unwrap();
    let results = dir.path().join("results");
    let name = format!("{}.img", dir.path().file_name().unwrap().to_string_lossy());
    let file = std::env::current_dir().unwrap().join(&name).display().to_string();
    let campaign = small(&format!("./{name}"), "ram(1G)");
    let mut world = MockWorld::new(&[]);
    run_campaign(&campaign, &options(&results, &[name.as_str()]), &mut world).unwrap();
    let found = Store::open(&results).unwrap().results().unwrap();
    assert_eq!(found.campaign.working_dir, Some(std::env::current_dir().unwrap()));
    assert_eq!(found.facts[0].members[0].member, file);
    assert!(found.facts[0].commands[0].contains(&format!(" {file} ")), "{:?}", found.facts[0]);
}

/// A program that is missing today may be installed tomorrow.
#[test]
fn what_the_machine_could_not_do_is_tried_again() {
    let mut rivals = Rivals::new();
    rivals.campaign.jobs[0].settings.insert("filesystem".into(), vec![Value::Word("ext4".into())]);
    let all = Rivals::TRIALS as u32;
    for _ in 0..2 {
        let (tally, log) = rivals.run(&[Fault::NoProgram("mkfs.ext4")]);
        let tally = tally.unwrap();
        assert_eq!((tally.skipped, tally.measured, tally.impossible), (0, 0, all));
        assert!(tally.is_empty());
        let told: Vec<(&String, &u32)> = tally.obstacles.iter().collect();
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].0.contains("apt-get install e2fsprogs"), "{told:?}");
        assert_eq!((*told[0].1, log.borrow().trials), (all, 0));
    }
    let (tally, _) = rivals.run(&[]);
    let tally = tally.unwrap();
    assert_eq!((tally.skipped, tally.measured, tally.impossible), (0, all, 0));
    let (again, _) = rivals.run(&[Fault::NoProgram("mkfs.ext4")]);
    let again = again.unwrap();
    assert_eq!((again.skipped, again.measured_before, again.impossible), (all, all, 0));
    assert!(!again.is_empty(), "it has what it has");
}

#[test]
fn what_the_campaign_makes_impossible_is_not_tried_again_and_its_reason_is_told() {
    let mut rivals = Rivals::new();
    rivals.campaign.jobs[0].settings.insert("health".into(), vec![Value::Word("degraded".into())]);
    let all = Rivals::TRIALS as u32;
    for skipped in [0, all] {
        let (tally, log) = rivals.run(&[]);
        let tally = tally.unwrap();
        assert_eq!((tally.skipped, tally.impossible), (skipped, all - skipped));
        assert!(tally.is_empty());
        assert_eq!(tally.obstacles.values().sum::<u32>(), all);
        assert!(tally.obstacles.keys().all(|why| why.contains("survives a failure")));
        assert_eq!(log.borrow().starts, 0);
    }
}

/// A rest may last an hour.
#[test]
fn a_rest_ends_when_the_user_wants_to_stop() {
    let mut rivals = Rivals::new();
    rivals.campaign.rest_s = 3600.0;
    let options = rivals.options();
    let at = Duration::from_secs(60);
    let mut world = MockWorld::new(&[]);
    world.interrupt = Some((at, options.stop.clone()));
    let tally = run_campaign(&rivals.campaign, &options, &mut world).unwrap();
    assert_eq!((tally.stopped, tally.measured), (true, 0));
    assert!(world.now < at + Duration::from_secs(1), "it rested on: {:?}", world.now);
    assert!(world.log.borrow().up.is_empty(), "a server was left");
    assert_eq!(world.log.borrow().trials, 0);
}

#[test]
fn a_trial_tells_all_that_was_done_in_its_order() {
    let dir = tempfile::tempdir().unwrap();
    let text = format!(
        "name = \"t\"\nrepetitions = 1\n\
         [[subject]]\nname = \"one\"\ndirectory = {:?}\nbaseline = true\n\
         [[job]]\ntool = \"cp-cached\"\nsize = \"4K\"\nsync = [true, false]\n",
        dir.path().display().to_string()
    );
    let campaign = parse_campaign(&text, "test").unwrap();
    let results = dir.path().join("results");
    // The folder that the mock claims to have made.
    std::fs::create_dir(dir.path().join("folder")).unwrap();
    let tally = run_campaign(&campaign, &options(&results, &[]), &mut MockWorld::new(&[]));
    assert_eq!(tally.unwrap().measured, 2);
    for trial in Store::open(&results).unwrap().results().unwrap().trials {
        let folder = format!("{}/folder", dir.path().display());
        let sources = trial.commands.iter().find_map(|line| line.strip_prefix("[ -e "));
        let (source, _) = sources.unwrap().split_once(" ]").unwrap();
        let (sources, _) = source.rsplit_once('/').unwrap();
        let mut expected = vec![
            format!("mkdir -p {folder}"),
            format!("mkdir -p {sources}"),
            format!(
                "[ -e {source} ] || {{ head -c 4096 /dev/urandom >{source} && sync {source}; }}"
            ),
            "sync; echo 3 > /proc/sys/vm/drop_caches".to_owned(),
            format!("find {source} -type f -exec cat {{}} + >/dev/null"),
            format!("cp --reflink=never {source} {folder}/copy1"),
        ];
        if trial.dimensions["sync"] == Value::Flag(true) {
            expected.push(format!("sync -f {folder}  # counted"));
        }
        expected.push(format!("rm -r {folder}/copy1"));
        let (lies_on, commands) = trial.commands.split_first().unwrap();
        assert!(lies_on.starts_with(&format!("# {} lies on ", dir.path().display())), "{lies_on}");
        assert_eq!(commands, expected);
    }
}
