//! Each verdict triggered for real: tools are run on real devices, the machine is looked at around
//! them, and the judgement is asked for.
//!
//! Needs root for loop devices and mounts, and fio, btrfs-progs and util-linux; what is missing is
//! printed and skipped. Every loop device and mount is given back, also by a test that fails.
//! `KLAB=PROGRAM`, a launcher of guests that have md, adds a real rebuild.
//!
//! What cannot be forced on an ordinary machine comes from a tree of files instead of `/sys`: heat.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use braid_lab::campaign::{Campaign, FileSystem, Setup, Source, SubjectDecl};
use braid_lab::environment::read_environment;
use braid_lab::evidence::{Evidence, Roots, Watch, take, take_under};
use braid_lab::facts::place_members;
use braid_lab::matrix::Workload;
use braid_lab::metric::{Measured, Metric, TimeSeries};
use braid_lab::settings::{Settings, Value};
use braid_lab::store::{Outcome, Results, Session, StoredTrial, SubjectFacts, Times};
use braid_lab::trust::{Finding, Judgement, Standing, judge};
use braid_stack::ByteSize;

const MIB: u64 = 1 << 20;

/// Trials of one process see each other's children, so they take turns.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a program answers to `--version`; says so if not.
fn has(program: &str, package: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    let found = command.status().is_ok();
    if !found {
        println!("skipped: {program} is not installed (apt install {package})");
    }
    found
}

fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}: {stderr}", output.status);
    output
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A loop device that is given back.
struct Loop(PathBuf, PathBuf);

impl Loop {
    /// Over a file; past the page cache below or through it. `None`, saying why, where there are
    /// no loop devices.
    fn attach(file: &Path, direct: bool) -> Option<Self> {
        let direct = format!("--direct-io={}", if direct { "on" } else { "off" });
        let output = Command::new("losetup").args(["--find", "--show", &direct]).arg(file).output();
        match output {
            Ok(output) if output.status.success() => {
                Some(Self(text(&output).into(), file.to_path_buf()))
            }
            Ok(output) => {
                println!("skipped: losetup: {}", String::from_utf8_lossy(&output.stderr).trim());
                None
            }
            Err(error) => {
                println!("skipped: losetup: {error} (apt install mount)");
                None
            }
        }
    }

    fn name(&self) -> String {
        self.0.file_name().unwrap().to_string_lossy().into_owned()
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        // Nobody else's, should this one have been taken away meanwhile.
        let backing = Path::new("/sys/block").join(self.name()).join("loop/backing_file");
        let backing = fs::read_to_string(backing).unwrap_or_default();
        if Path::new(backing.trim_end()) != self.1 {
            eprintln!("{} was detached by somebody else", self.0.display());
            return;
        }
        let status = Command::new("losetup").arg("--detach").arg(&self.0).status();
        if !status.is_ok_and(|status| status.success()) {
            eprintln!("{} is still attached", self.0.display());
        }
    }
}

/// A mount that is given back.
struct Mounted(PathBuf);

impl Mounted {
    fn mount(kind: &str, options: &str, device: &Loop, place: &Path) -> Self {
        let mut mkfs = Command::new(format!("mkfs.{kind}"));
        run(mkfs.arg(if kind == "btrfs" { "-f" } else { "-F" }).arg("-q").arg(&device.0));
        fs::create_dir_all(place).unwrap();
        let options = if options.is_empty() { "defaults" } else { options };
        run(Command::new("mount").args(["-t", kind, "-o", options]).arg(&device.0).arg(place));
        Self(place.to_path_buf())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let status = Command::new("umount").arg(&self.0).status();
        if !status.is_ok_and(|status| status.success()) {
            eprintln!("{} is still mounted", self.0.display());
        }
    }
}

/// A session of processes, none of them this one's child, that is ended.
struct Stranger(rustix::process::Pid);

impl Stranger {
    /// Runs a script for the shell.
    fn start(dir: &Path, script: &str) -> Self {
        let number = dir.join("stranger.pid");
        let script = format!("echo $$ > {0}.new; mv {0}.new {0}; {script}", number.display());
        // Nothing of it may keep a pipe to this process open.
        let mut command = Command::new("setsid");
        command.args(["--fork", "sh", "-c", &script]).stdin(Stdio::null());
        let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
        assert!(status.success(), "{command:?}: {status}");
        let process = wait_for("the stranger's number", || fs::read_to_string(&number).ok());
        let process: i32 = process.trim().parse().unwrap();
        Self(rustix::process::Pid::from_raw(process).unwrap())
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        let kill = rustix::process::Signal::KILL;
        if let Err(error) = rustix::process::kill_process_group(self.0, kill) {
            eprintln!("process group {:?} is still running: {error}", self.0);
        }
    }
}

/// Polls; two minutes are for a machine that is very busy.
fn wait_for<T>(what: &str, mut poll: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        if let Some(value) = poll() {
            return value;
        }
        assert!(Instant::now() < deadline, "{what} did not come");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A file of incompressible bytes that is on its disk.
fn make_file(path: &Path, mib: u64) {
    let of = format!("of={}", path.display());
    let count = format!("count={mib}");
    run(Command::new("dd").args(["if=/dev/urandom", &of, "bs=1M", &count, "conv=fsync"]));
}

/// Has a device's page cache filled. It is dropped when nobody has the device open any more.
fn keep_cached(device: &Path) -> fs::File {
    let mut file = fs::File::open(device).unwrap();
    std::io::copy(&mut file, &mut std::io::sink()).unwrap();
    file
}

/// What a tool did, ready to be judged.
struct Run {
    commands: Vec<String>,
    evidence: Evidence,
    measured: Measured,
    duration_s: f64,
    region_bytes: u64,
}

fn words(command: &Command) -> String {
    let args = command.get_args().map(|arg| arg.to_string_lossy().into_owned());
    let program = command.get_program().to_string_lossy().into_owned();
    std::iter::once(program).chain(args).collect::<Vec<_>>().join(" ")
}

/// Runs a tool between two looks.
fn between_looks(watch: &Watch, command: &mut Command) -> (Evidence, Output, f64) {
    let before = take(watch);
    let start = Instant::now();
    let output = run(command);
    let duration_s = start.elapsed().as_secs_f64();
    (Evidence::between(&before, &take(watch)), output, duration_s)
}

fn push(measured: &mut Measured, metric: Metric, value: f64) {
    measured.push(metric, value).unwrap();
}

/// fio on a file or device, reading for a second unless told otherwise.
fn fio(watch: &Watch, file: &Path, more: &[&str]) -> Run {
    let size = fs::File::open(file)
        .and_then(|mut file| std::io::Seek::seek(&mut file, std::io::SeekFrom::End(0)))
        .unwrap();
    let target = format!("--filename={}", file.display());
    let engine = ["--rw=read", "--ioengine=psync", "--allow_file_create=0", &target];
    fio_for_a_second(watch, size, &[&engine[..], more].concat())
}

fn fio_for_a_second(watch: &Watch, size: u64, more: &[&str]) -> Run {
    let mut command = Command::new("fio");
    command
        .args(["--name=t", "--thread=1", "--output-format=json", "--eta=never"])
        .args(["--time_based=1", "--runtime=1", &format!("--size={size}")])
        .args(more);
    let (evidence, output, duration_s) = between_looks(watch, &mut command);
    // fio's own talk comes before the JSON.
    let stdout = text(&output);
    let json: serde_json::Value =
        serde_json::from_str(&stdout[stdout.find('{').unwrap()..]).unwrap();
    let number = |direction: &str, field: &str| {
        let jobs = json["jobs"].as_array().unwrap();
        jobs.iter().map(|job| job[direction][field].as_f64().unwrap()).sum::<f64>()
    };
    let both = |field: &str| number("read", field) + number("write", field);
    let mut measured = Measured::default();
    push(&mut measured, Metric::Throughput, both("bw_bytes"));
    push(&mut measured, Metric::Iops, both("iops"));
    push(&mut measured, Metric::Requests, both("total_ios"));
    for (direction, metric) in [("read", Metric::BytesRead), ("write", Metric::BytesWritten)] {
        let bytes = number(direction, "io_bytes");
        if bytes > 0.0 {
            push(&mut measured, metric, bytes);
        }
    }
    Run { commands: vec![words(&command)], evidence, measured, duration_s, region_bytes: size }
}

/// dd, which is timed from outside.
fn dd(watch: &Watch, metric: Metric, bytes: u64, args: &[&str]) -> Run {
    let mut command = Command::new("dd");
    command.args(args);
    let (evidence, _, duration_s) = between_looks(watch, &mut command);
    let mut measured = Measured::default();
    push(&mut measured, Metric::Throughput, bytes as f64 / duration_s);
    push(&mut measured, Metric::Seconds, duration_s);
    push(&mut measured, metric, bytes as f64);
    Run { commands: vec![words(&command)], evidence, measured, duration_s, region_bytes: bytes }
}

fn workload(tool: &str, direct: bool, setup: Setup) -> Workload {
    let settings = Settings::default().with("direct", Value::Flag(direct));
    Workload { tool: tool.to_owned(), settings, setup }
}

/// Judges subjects with their repetitions under one workload. `file` carries the members.
fn judged(workload: &Workload, file: &Path, subjects: Vec<(&str, Source, Vec<Run>)>) -> Judgement {
    let mut trials = Vec::new();
    let mut declared = Vec::new();
    let mut facts = Vec::new();
    for (name, source, runs) in subjects {
        declared.push(SubjectDecl::new(name, source, declared.is_empty()));
        facts.push(SubjectFacts {
            name: name.to_owned(),
            size_bytes: None,
            members: place_members(&Source::Path(file.display().to_string())),
            commands: Vec::new(),
        });
        for (run, repetition) in runs.into_iter().zip(1..) {
            trials.push(StoredTrial {
                number: trials.len() as u32 + 1,
                repetition,
                subject: name.to_owned(),
                workload: workload.label(),
                dimensions: BTreeMap::new(),
                seed: 0,
                region_bytes: run.region_bytes,
                commands: run.commands,
                started_unix_s: 1,
                duration_s: run.duration_s,
                outcome: Outcome::Ok,
                measured: run.measured,
                evidence: run.evidence,
                events: Vec::new(),
                raw: String::new(),
            });
        }
    }
    let campaign = Campaign {
        only: Vec::new(),
        name: "real".into(),
        description: String::new(),
        repetitions: 1,
        seed: 1,
        runtime_s: 1.0,
        ramp_s: 0.0,
        region: ByteSize(MIB),
        fill: true,
        drop_caches: true,
        rounds: false,
        rest_s: 0.0,
        members: Vec::new(),
        subjects: declared,
        jobs: Vec::new(),
    };
    let session = Session {
        started_unix_s: 0,
        ended_unix_s: None,
        environment: read_environment(Vec::new()),
        times: Times::default(),
    };
    let subjects = campaign.expand();
    let results = Results { campaign, subjects, facts, sessions: vec![session], trials };
    judge(&results, std::slice::from_ref(workload))
}

/// What a rule found about one run on a path.
fn found(workload: &Workload, file: &Path, run: Run, rule: &str) -> Option<Finding> {
    let source = Source::Path(file.display().to_string());
    let judgement = judged(workload, file, vec![("it", source, vec![run])]);
    of(&judgement, "it", workload, rule)
}

fn of(judgement: &Judgement, subject: &str, workload: &Workload, rule: &str) -> Option<Finding> {
    let verdict = judgement.of(subject, &workload.label()).unwrap();
    for finding in &verdict.findings {
        println!("{subject}: {} {}: {}", finding.standing, finding.rule, finding.why);
    }
    verdict.findings.iter().find(|finding| finding.rule == rule).cloned()
}

/// The whole disk that a file lies on, for a watch.
fn disk_of(file: &Path) -> Vec<String> {
    let placed = place_members(&Source::Path(file.display().to_string()));
    let disks = placed.into_iter().filter_map(|member| match member.place {
        braid_lab::facts::Place::Disk(disk) => Some(disk.name),
        _ => None,
    });
    disks.collect()
}

fn watch(device: &Loop, file: &Path) -> Watch {
    Watch { target: Some(device.name()), members: disk_of(file), ..Watch::default() }
}

#[test]
fn a_cached_file_behind_a_loop_device() {
    let _turn = alone();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.img");
    make_file(&file, 32);
    let Some(device) = Loop::attach(&file, true).filter(|_| has("fio", "fio")) else { return };
    let watch = watch(&device, &file);
    let buffered = workload("fio", false, Setup::default());
    let _cache = keep_cached(&device.0);
    let cached = || fio(&watch, &device.0, &["--bs=64k", "--direct=0", "--invalidate=0"]);
    let finding = found(&buffered, &file, cached(), "page-cache").unwrap();
    assert_eq!(finding.standing, Standing::Invalid, "{finding:?}");

    // The same, where no device can be asked.
    let mut blind = cached();
    blind.evidence.target = None;
    blind.evidence.members.clear();
    let finding = found(&buffered, &file, blind, "fits-cache").unwrap();
    assert_eq!(finding.standing, Standing::Suspect, "{finding:?}");

    // Honest: past both caches.
    let direct = workload("fio", true, Setup::default());
    let honest = fio(&watch, &device.0, &["--bs=64k", "--direct=1"]);
    let source = Source::Path(device.0.display().to_string());
    let judgement = judged(&direct, &file, vec![("it", source, vec![honest])]);
    for rule in ["page-cache", "fits-cache", "compressible", "rebuilding", "too-short"] {
        assert_eq!(of(&judgement, "it", &direct, rule), None);
    }
    assert_eq!(judgement.unchecked.get("page-cache"), None);
}

#[test]
fn a_cache_below_a_loop_device() {
    let _turn = alone();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.img");
    make_file(&file, 32);
    if disk_of(&file).is_empty() {
        println!("skipped: {} is not on a disk", dir.path().display());
        return;
    }
    let Some(device) = Loop::attach(&file, false).filter(|_| has("fio", "fio")) else { return };
    let run = fio(&watch(&device, &file), &device.0, &["--bs=64k", "--direct=1"]);
    // Other programs may read as much from this disk as the trial did.
    let disk = run.evidence.members[0].1.read_bytes as f64;
    if disk > 0.4 * run.measured.get(Metric::BytesRead).unwrap() {
        println!("skipped: the disk is too busy with something else");
        return;
    }
    let finding =
        found(&workload("fio", true, Setup::default()), &file, run, "page-cache").unwrap();
    assert_eq!(finding.standing, Standing::Suspect, "{finding:?}");
    assert!(finding.action.contains("losetup"), "{finding:?}");
}

#[test]
fn writes_that_did_not_reach_the_device() {
    let _turn = alone();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.img");
    fs::File::create(&file).unwrap().set_len(256 * MIB).unwrap();
    let Some(device) = Loop::attach(&file, true) else { return };
    let mounted = Mounted::mount("ext4", "", &device, &dir.path().join("mnt"));
    let watch = Watch { mountpoint: Some(mounted.0.clone()), ..watch(&device, &file) };
    let ext4 = Setup { filesystem: FileSystem::Ext4, ..Setup::default() };
    let workload = workload("dd", false, ext4);
    let write = |name: &str, more: &[&str]| {
        let of = format!("of={}", mounted.0.join(name).display());
        let args = [&["if=/dev/zero", &of, "bs=1M", "count=64"], more].concat();
        dd(&watch, Metric::BytesWritten, 64 * MIB, &args)
    };
    let run = write("unsynced", &[]);
    assert!(run.evidence.mount.as_ref().unwrap().starts_with("ext4 rw"), "{:?}", run.evidence);
    let finding = found(&workload, &file, run, "page-cache").unwrap();
    assert_eq!(finding.standing, Standing::Invalid, "{finding:?}");
    assert!(finding.why.contains("when the clock stopped"), "{finding:?}");
    let synced = write("synced", &["conv=fsync"]);
    let other = synced.evidence.clone();
    assert_eq!(found(&workload, &file, synced, "page-cache"), None, "{other:?}");
}

#[test]
fn zeros_on_a_compressing_file_system() {
    let _turn = alone();
    if !has("mkfs.btrfs", "btrfs-progs") {
        return;
    }
    if !fs::read_to_string("/proc/filesystems").unwrap().contains("\tbtrfs\n") {
        println!("skipped: this kernel has no btrfs");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.img");
    fs::File::create(&file).unwrap().set_len(512 * MIB).unwrap();
    let Some(device) = Loop::attach(&file, true) else { return };
    let zeros = |options: &str| {
        let mounted = Mounted::mount("btrfs", options, &device, &dir.path().join("mnt"));
        let watch = Watch { mountpoint: Some(mounted.0.clone()), ..watch(&device, &file) };
        let of = format!("of={}", mounted.0.join("zeros").display());
        let args = ["if=/dev/zero", &of, "bs=1M", "count=64", "conv=fsync"];
        let run = dd(&watch, Metric::BytesWritten, 64 * MIB, &args);
        let btrfs = Setup { filesystem: FileSystem::Btrfs, ..Setup::default() };
        found(&workload("dd", false, btrfs), &file, run, "compressible")
    };
    let finding = zeros("compress=zstd").unwrap();
    assert_eq!(finding.standing, Standing::Invalid, "{finding:?}");
    assert!(finding.why.contains("compress=zstd"), "{finding:?}");
    assert_eq!(zeros(""), None);
}

#[test]
fn another_writer_on_the_same_device() {
    let _turn = alone();
    // In memory, so that the writer is fast on a machine whose disk is busy.
    let memory = Path::new("/dev/shm");
    let dir = tempfile::tempdir_in(memory).unwrap_or_else(|_| tempfile::tempdir().unwrap());
    let file = dir.path().join("a.img");
    make_file(&file, 64);
    let Some(device) = Loop::attach(&file, false).filter(|_| has("setsid", "util-linux")) else {
        return;
    };
    let watch = watch(&device, &file);
    let path = device.0.display().to_string();
    let trial = |wait: bool| {
        let before = take(&watch);
        let start = Instant::now();
        let args =
            [format!("if={path}"), "of=/dev/null".into(), "bs=1M".into(), "iflag=direct".into()];
        run(Command::new("dd").args(&args));
        let evidence = wait_for("enough from the other writer", || {
            let evidence = Evidence::between(&before, &take(&watch));
            let written = evidence.target.unwrap().written_bytes as f64;
            // Well above what a device moves for nobody in particular in that time.
            let enough = (64.0 + 8.0 * evidence.span_s.unwrap()) * MIB as f64;
            let seen = !evidence.strangers.is_empty();
            (!wait || written > enough && seen).then_some(evidence)
        });
        let duration_s = start.elapsed().as_secs_f64();
        let mut measured = Measured::default();
        push(&mut measured, Metric::BytesRead, (64 * MIB) as f64);
        push(&mut measured, Metric::Seconds, duration_s);
        let commands = vec![format!("dd {}", args.join(" "))];
        Run { commands, evidence, measured, duration_s, region_bytes: 64 * MIB }
    };
    let workload = workload("dd", true, Setup::default());
    let mut quiet = trial(false);
    // The disk below is this machine's own and may be busy; the loop device is this test's.
    quiet.evidence.members.clear();
    quiet.evidence.strangers.clear();
    assert_eq!(found(&workload, &file, quiet, "another-writer"), None);

    // It ends with this process, even if that is killed.
    let own = std::process::id();
    let write = format!("dd if=/dev/zero of={path} bs=1M count=64 oflag=direct 2>/dev/null");
    let writer = format!("while kill -0 {own} && {write}; do :; done");
    let _stranger = Stranger::start(dir.path(), &writer);
    let disturbed = trial(true);
    let finding = found(&workload, &file, disturbed, "another-writer").unwrap();
    assert_eq!(finding.standing, Standing::Suspect, "{finding:?}");
    assert!(finding.why.contains("its device wrote"), "{finding:?}");
    assert!(finding.why.contains("meanwhile"), "{finding:?}");
}

/// fio out of the page cache on one processor, before everybody else. A machine that takes the
/// processor away in spite of that is itself full, which the rule says as well.
#[test]
fn a_client_that_has_its_processor_full() {
    let _turn = alone();
    if !has("fio", "fio") || !has("taskset", "util-linux") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.img");
    make_file(&file, 8);
    let mut command = Command::new("nice");
    command
        .args(["-n", "-20", "taskset", "-c", "0", "fio", "--name=t", "--rw=randread", "--bs=4k"])
        .args(["--ioengine=psync", "--thread=1", "--allow_file_create=0", "--invalidate=0"])
        .args(["--output-format=json", "--eta=never", "--time_based=1", "--runtime=5"])
        .arg(format!("--filename={}", file.display()));
    let (evidence, _, duration_s) = between_looks(&Watch::default(), &mut command);
    println!("tool {:?} cores, machine {:?} busy", evidence.tool_cores, evidence.cpu_busy);
    let run = || Run {
        commands: vec![words(&command)],
        evidence: evidence.clone(),
        measured: Measured::default(),
        duration_s,
        region_bytes: 8 * MIB,
    };
    let one = workload("fio", false, Setup::default());
    let finding = found(&one, &file, run(), "cpu-bound-client").unwrap();
    assert_eq!(finding.standing, Standing::Suspect, "{finding:?}");
    // Had it had four processes to use, one full core would say nothing (unless all are full).
    let mut more = run();
    more.evidence.cpu_count = Some(64);
    more.evidence.cpu_busy = Some(0.1);
    let four = workload("fio", false, Setup { processes: 4, ..Setup::default() });
    assert_eq!(found(&four, &file, more, "cpu-bound-client"), None);
}

#[test]
fn an_array_that_answers_from_memory() {
    let _turn = alone();
    if !has("fio", "fio") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let [a, b] = ["a.img", "b.img"].map(|name| dir.path().join(name));
    make_file(&a, 16);
    make_file(&b, 16);
    let (Some(first), Some(second)) = (Loop::attach(&a, true), Loop::attach(&b, true)) else {
        return;
    };
    let small = ["--rw=randread", "--bs=4k", "--invalidate=0"];
    let _cache = keep_cached(&first.0);
    let runs = |device: &Loop, file: &Path, how: &str| -> Vec<Run> {
        let watch = watch(device, file);
        (0..2).map(|_| fio(&watch, &device.0, &[&small[..], &[how]].concat())).collect()
    };
    let path = |device: &Loop| device.0.display().to_string();
    let singles = || {
        [("first", &first, &a), ("second", &second, &b)].map(|(name, device, file)| {
            (name, Source::Path(path(device)), runs(device, file, "--direct=1"))
        })
    };
    let array = Source::Stack(format!("raid0({}, {})", path(&first), path(&second)));
    let workload = workload("fio", false, Setup::default());
    let mut subjects = Vec::from(singles());
    subjects.push(("array", array.clone(), runs(&first, &a, "--direct=0")));
    let judgement = judged(&workload, &a, subjects);
    let finding = of(&judgement, "array", &workload, "faster-than-members").unwrap();
    println!("{}", finding.why);
    // One that is as fast as one of its members.
    let mut subjects = Vec::from(singles());
    subjects.push(("array", array, runs(&first, &a, "--direct=1")));
    let judgement = judged(&workload, &a, subjects);
    assert_eq!(of(&judgement, "array", &workload, "faster-than-members"), None);
}

#[test]
fn a_copy_of_next_to_nothing() {
    let _turn = alone();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.img");
    make_file(&file, 1);
    let from = format!("if={}", file.display());
    let run = dd(&Watch::default(), Metric::BytesRead, MIB, &[&from, "of=/dev/null", "bs=64k"]);
    let workload = workload("dd", false, Setup::default());
    if run.duration_s >= 0.3 {
        println!("skipped: this machine takes {:.1} s to read 1 MiB", run.duration_s);
        return;
    }
    let finding = found(&workload, &file, run, "too-short").unwrap();
    assert_eq!(finding.standing, Standing::Invalid, "{finding:?}");
}

/// fio at 64 MiB/s and then at 8 MiB/s, with its own course over time.
#[test]
fn a_rate_that_breaks_down() {
    let _turn = alone();
    if !has("fio", "fio") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.img");
    make_file(&file, 16);
    let course = |rates: [&str; 2]| {
        let mut points: Vec<(u64, f64)> = Vec::new();
        let mut last = None;
        for rate in rates {
            let log = dir.path().join("log");
            let rate = format!("--rate={rate}");
            let log_to = format!("--write_bw_log={}", log.display());
            let args = ["--bs=64k", &rate, &log_to, "--log_avg_msec=100"];
            last = Some(fio(&Watch::default(), &file, &args));
            let log = fs::read_to_string(dir.path().join("log_bw.1.log")).unwrap();
            let start = points.last().map_or(0, |(time, _)| *time);
            points.extend(log.lines().map(|line| {
                let mut fields = line.split(", ");
                let mut next = || fields.next().unwrap().trim().parse::<u64>().unwrap();
                (start + next(), next() as f64 * 1024.0)
            }));
        }
        let mut run = last.unwrap();
        run.measured.series = vec![TimeSeries { metric: Metric::Throughput, points }];
        found(&workload("fio", false, Setup::default()), &file, run, "not-steady")
    };
    let finding = course(["64m", "8m"]).unwrap();
    assert_eq!(finding.standing, Standing::Suspect, "{finding:?}");
    assert_eq!(course(["8m", "8m"]), None);
}

#[test]
fn repetitions_at_different_rates() {
    let _turn = alone();
    if !has("fio", "fio") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.img");
    make_file(&file, 16);
    let at = |rates: [&str; 3]| {
        let runs = rates
            .map(|rate| fio(&Watch::default(), &file, &["--bs=64k", &format!("--rate={rate}")]));
        let workload = workload("fio", false, Setup::default());
        let source = Source::Path(file.display().to_string());
        let judgement = judged(&workload, &file, vec![("it", source, Vec::from(runs))]);
        of(&judgement, "it", &workload, "unsteady-repetitions")
    };
    assert_eq!(at(["4m", "2m", "8m"]).unwrap().standing, Standing::Suspect);
    assert_eq!(at(["4m", "4m", "4m"]), None);
}

/// A kernel's md rebuilds a mirror, slowed down, while its tables are read.
#[test]
fn a_rebuild_beside_the_tool() {
    let Some(klab) = std::env::var_os("KLAB") else {
        println!(
            "skipped: KLAB names no launcher of guests with md; parsers are tested with its text"
        );
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let disks = ["a", "b", "c"].map(|name| {
        let path = dir.path().join(name);
        fs::File::create(&path).unwrap().set_len(40 * MIB).unwrap();
        path.display().to_string()
    });
    let script = "set -e; exec 2>/dev/null; set -- $KLAB_DISKS; cd /proc
        echo 2000 > sys/dev/raid/speed_limit_max; echo 1000 > sys/dev/raid/speed_limit_min
        mdadm --create /dev/md0 --run -l1 -n2 --assume-clean $1 $2
        echo ==stat; cat stat; echo ==diskstats; cat diskstats; echo ==mdstat; cat mdstat
        mdadm /dev/md0 --fail $2 --remove $2; mdadm /dev/md0 --add $3
        until grep -q recovery.=..*% mdstat; do :; done
        dd if=/dev/md0 of=/dev/null bs=1M count=4 iflag=direct
        echo ==stat; cat stat; echo ==diskstats; cat diskstats; echo ==mdstat; cat mdstat";
    let mut command = Command::new(klab);
    command.args(["run", "--disk", &disks.join(","), "--", script]).process_group(0);
    let output = command.output().unwrap();
    if !output.status.success() {
        println!("skipped: no guest: {}", String::from_utf8_lossy(&output.stderr));
        return;
    }
    let output = text(&output);
    let tables: Vec<(&str, &str)> = output
        .split("==")
        .filter_map(|part| part.split_once('\n'))
        .filter(|(name, _)| ["stat", "diskstats", "mdstat"].contains(name))
        .collect();
    let (before, after) = tables.split_at(3);
    let watch = Watch { target: Some("md0".into()), ..Watch::default() };
    let look = |name: &str, tables: &[(&str, &str)]| {
        let roots = Roots { proc: dir.path().join(name), sys: "/nonexistent".into() };
        fs::create_dir(&roots.proc).unwrap();
        for (name, text) in tables {
            fs::write(roots.proc.join(name), text).unwrap();
        }
        take_under(&roots, &watch)
    };
    let (before, after) = (look("before", before), look("after", after));
    let workload = workload("dd", true, Setup::default());
    let run = |evidence: Evidence| {
        let mut measured = Measured::default();
        push(&mut measured, Metric::BytesRead, (4 * MIB) as f64);
        push(&mut measured, Metric::Seconds, 5.0);
        Run { commands: Vec::new(), evidence, measured, duration_s: 5.0, region_bytes: 4 * MIB }
    };
    let evidence = Evidence::between(&before, &after);
    assert_eq!(evidence.target.unwrap().read_bytes / MIB, 4);
    let file = dir.path().join("a");
    let finding = found(&workload, &file, run(evidence), "rebuilding").unwrap();
    assert_eq!(finding.standing, Standing::Invalid, "{finding:?}");
    assert!(finding.why.contains("md0: recovery"), "{finding:?}");
    let quiet = Evidence::between(&before, &before);
    assert_eq!(found(&workload, &file, run(quiet), "rebuilding"), None);
}

/// No machine can be made hot for a test: `/sys` is a tree of files here, `/proc` is this
/// machine's.
#[test]
fn a_processor_that_slowed_down() {
    let dir = tempfile::tempdir().unwrap();
    let roots = Roots { sys: dir.path().to_path_buf(), ..Roots::default() };
    let counts = dir.path().join("devices/system/cpu/cpu0/thermal_throttle");
    fs::create_dir_all(&counts).unwrap();
    let at = |count: &str| {
        fs::write(counts.join("core_throttle_count"), count).unwrap();
        take_under(&roots, &Watch::default())
    };
    let (cool, hot) = (at("7"), at("12"));
    let run = |evidence: Evidence| Run {
        commands: Vec::new(),
        evidence,
        measured: Measured::default(),
        duration_s: 5.0,
        region_bytes: MIB,
    };
    let workload = workload("fio", true, Setup::default());
    let found = |evidence| found(&workload, dir.path(), run(evidence), "throttled");
    assert!(found(Evidence::between(&cool, &hot)).unwrap().why.contains("5 times"));
    assert_eq!(found(Evidence::between(&cool, &cool)), None);
}

/// A server that is stopped.
struct Server(std::process::Child);

impl Drop for Server {
    fn drop(&mut self) {
        if let Err(error) = self.0.kill().and_then(|()| self.0.wait()) {
            eprintln!("process {} is still running: {error}", self.0.id());
        }
    }
}

/// Arrays over image files, served for real and measured past every cache: nothing is doubted that
/// is the array's own doing (copies, parity, logs, reading before writing).
#[test]
fn honest_arrays_are_not_doubted() {
    let _turn = alone();
    let Some(braid) = std::env::var_os("BRAID") else {
        println!("skipped: BRAID names no program that serves arrays");
        return;
    };
    if !has("fio", "fio") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let files = ["a", "b", "c"].map(|name| {
        let path = dir.path().join(format!("{name}.img"));
        make_file(&path, 48);
        path.display().to_string()
    });
    for level in ["raid0", "raid1", "raid5"] {
        let stack = format!("{level}({})", files.join(", "));
        let socket = dir.path().join(format!("{level}.sock"));
        let mut serve = Command::new(&braid);
        serve.arg("serve").arg(&stack).arg("--nbd").arg(format!("unix:{}", socket.display()));
        let server = Server(serve.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        let uri = format!("nbd+unix:///?socket={}", socket.display());
        wait_for("the server", || braid_lab::nbd::query_size(&uri).ok());
        let watch = Watch {
            members: disk_of(Path::new(&files[0])),
            server_pid: Some(server.0.id()),
            ..Watch::default()
        };
        let uri = format!("--uri={uri}");
        for work in
            [["--rw=read", "--bs=1M"], ["--rw=randwrite", "--bs=4k"], ["--rw=write", "--bs=1M"]]
        {
            let args = ["--ioengine=nbd", "--iodepth=8", "--end_fsync=1", &uri, work[0], work[1]];
            let run = fio_for_a_second(&watch, 32 * MIB, &args);
            println!("{level} {work:?}: {:?} {:?}", run.measured.samples, run.evidence.members);
            let workload = workload("fio", true, Setup::default());
            let subjects = vec![("it", Source::Stack(stack.clone()), vec![run])];
            let judgement = judged(&workload, Path::new(&files[0]), subjects);
            for rule in ["page-cache", "fits-cache", "compressible", "rebuilding"] {
                assert_eq!(of(&judgement, "it", &workload, rule), None, "{level} {work:?}");
            }
        }
    }
}

/// What two looks cost, with as many processes as there are and disks, mounts and all. Printed and
/// not asserted: see docs/trust.md for what was measured.
#[test]
fn two_looks_are_cheap() {
    let _turn = alone();
    let watch = Watch {
        target: Some("loop0".into()),
        members: vec!["vda".into(), "sda".into()],
        server_pid: Some(std::process::id()),
        mountpoint: Some("/".into()),
        ..Watch::default()
    };
    let count: usize = std::env::var("TRUST_LOOKS").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    let mut times: Vec<Duration> = (0..count)
        .map(|_| {
            let start = Instant::now();
            let evidence = Evidence::between(&take(&watch), &take(&watch));
            assert!(evidence.span_s.is_some());
            start.elapsed()
        })
        .collect();
    times.sort();
    let is_process =
        |entry: &fs::DirEntry| entry.file_name().to_string_lossy().parse::<u32>().is_ok();
    let processes =
        fs::read_dir("/proc").unwrap().filter_map(Result::ok).filter(is_process).count();
    println!("{processes} processes: {:?} for both looks, median of {count}", times[count / 2]);
}
