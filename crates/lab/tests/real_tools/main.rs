//! Every tool for real, briefly: on a loop device and on ext4 upon it, else on a file and in a temporary
//! folder. The tests assert the structure of the numbers, never their size.
//!
//! The runner is not used: a small executor plays the scripts, so that a tool's plan and its
//! parser are tested against the program alone.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use braid_lab::command::{CommandLine, Exit, Step, Target, ToolOutput};
use braid_lab::metric::{Measured, Metric};
use braid_lab::settings::Settings;
use braid_lab::story::Story;
use braid_lab::tool::source::make_source;
use braid_lab::tool::{Place, RunOutput, Script, Tool, TrialSpec, find, names};

use braid_lab::{StopFlag, SystemWorld, World};

mod seeds;
mod shell;

const REGION: u64 = 64 << 20;

const LONGEST: Duration = Duration::from_secs(300);

fn carry_out(world: &mut SystemWorld, steps: &[Step]) {
    for step in steps {
        world.perform(step, LONGEST, &StopFlag::default()).unwrap();
    }
}

/// Plays a script as the runner does, except for the caches.
fn play(world: &mut SystemWorld, script: &Script, scratch: &Path) -> RunOutput {
    carry_out(world, &script.prepare);
    carry_out(world, &script.warm);
    let start = Instant::now();
    let processes =
        world.run_all(&script.measured, LONGEST, &StopFlag::default(), &mut Story::none()).unwrap();
    let wall_s = start.elapsed().as_secs_f64();
    carry_out(world, &script.clean_up);
    for (process, command) in processes.iter().zip(&script.measured) {
        let said = format!("{}{}", process.stdout, process.stderr);
        assert_eq!(process.exit, Exit::Code(0), "{command}\n{said}");
    }
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(scratch).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        files.insert(name, fs::read_to_string(entry.path()).unwrap());
    }
    RunOutput { processes, wall_s, files }
}

/// Returns the tool, if its program is installed; then it must print its version.
fn tool(name: &str) -> Option<&'static dyn Tool> {
    let tool = find(name).unwrap();
    let command = tool.version_command();
    let found = SystemWorld::new().run(&command, LONGEST, &StopFlag::default());
    let Ok(done) = found else {
        println!(
            "skipped: {} is not installed (apt install {})",
            command.program,
            tool.about().package
        );
        return None;
    };
    let output =
        ToolOutput { exit: done.exit, stdout: done.stdout, stderr: done.stderr, wall_s: 0.0 };
    println!("{}", tool.parse_version(&output).unwrap());
    Some(tool)
}

fn settings(tool: &dyn Tool, values: &str) -> Settings {
    let table: toml::Table = values.parse().unwrap();
    table.into_iter().fold(Settings::defaults(tool.parameters()), |settings, (name, value)| {
        let parameter = tool.parameters().iter().find(|p| p.name == name).unwrap();
        settings.with(&name, parameter.check(&value).unwrap())
    })
}

/// Carries out one trial on a raw target.
fn measure(name: &str, values: &str, target: &Target, processes: u32) -> Option<Measured> {
    measure_in(&mut SystemWorld::new(), name, values, target, processes)
}

/// Carries out a complete trial: sources, script, parser; nothing is left on the subject. `None`: skipped.
fn measure_in(
    world: &mut SystemWorld,
    name: &str,
    values: &str,
    target: &Target,
    processes: u32,
) -> Option<Measured> {
    let tool = tool(name)?;
    let settings = settings(tool, values);
    tool.check(&settings, processes).unwrap();
    let (scratch, sources) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let work = tool.work(&settings, processes);
    if let Some(data) = work.source {
        make_source(data, sources.path(), 1, &StopFlag::default(), world).unwrap();
    }
    let spec = TrialSpec {
        settings: &settings,
        target,
        processes,
        region_bytes: REGION,
        room_bytes: REGION,
        runtime_s: 0.5,
        ramp_s: 0.1,
        seed: 3,
        scratch: scratch.path(),
        sources: sources.path(),
    };
    let output = play(world, &tool.plan(&spec).unwrap(), scratch.path());
    if let Target::Folder(folder) = target {
        let left: Vec<_> = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
        assert!(left.is_empty(), "{name} left {left:?}");
    }
    let measured = tool.parse(&spec, &output).unwrap();
    let headline = work.headline;
    assert!(measured.get(headline).is_some_and(|value| value > 0.0), "{headline}: {measured:?}");
    for sample in &measured.samples {
        let same = measured.samples.iter().filter(|other| other.metric == sample.metric);
        assert_eq!(same.count(), 1, "{} is there twice", sample.metric);
        assert!(sample.value.is_finite() && sample.value >= 0.0, "{sample:?}");
    }
    assert_eq!(measured.get(Metric::Fairness).is_some(), processes > 1, "{measured:?}");
    Some(measured)
}

/// A subject that is removed however the test ends.
struct Subject {
    device: Option<String>,
    mounted: bool,
    dir: tempfile::TempDir,
}

impl Subject {
    /// Makes an image, behind a loop device if the machine allows one.
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let image = dir.path().join("image");
        let file = Step::MakeFile { path: image.clone(), bytes: 2 * REGION, seed: 9 };
        carry_out(&mut SystemWorld::new(), &[file]);
        let attached = Command::new("losetup").args(["--find", "--show"]).arg(&image).output();
        let device = match attached {
            Ok(done) if done.status.success() => {
                Some(String::from_utf8(done.stdout).unwrap().trim().to_owned())
            }
            _ => {
                println!("no loop device to be had (root and losetup are needed): using a file");
                None
            }
        };
        Self { device, mounted: false, dir }
    }

    fn raw(&self) -> Target {
        let image = self.dir.path().join("image");
        Target::Device(self.device.as_ref().map_or(image, PathBuf::from))
    }

    /// Returns a folder for trials on ext4 upon the device, else beside the image.
    fn folder(&mut self) -> Folder<'_> {
        let mount = self.dir.path().join("mount");
        fs::create_dir(&mount).unwrap();
        let mut world = SystemWorld::new();
        if let Some(device) = &self.device {
            let mkfs = CommandLine::new("mkfs.ext4").arg("-q").arg(device);
            let mounted = CommandLine::new("mount").arg(device).arg(mount.to_str().unwrap());
            carry_out(&mut world, &[Step::Run(mkfs), Step::Run(mounted)]);
            self.mounted = true;
        }
        let target = Target::Folder(world.make_folder(&mount).unwrap());
        Folder { world, target, direct: self.mounted, _subject: self }
    }
}

/// A folder that the world made, so that it may remove files in it.
struct Folder<'a> {
    world: SystemWorld,
    target: Target,
    /// True if its file system certainly supports O_DIRECT.
    direct: bool,
    _subject: &'a Subject,
}

impl Folder<'_> {
    fn measure(&mut self, name: &str, values: &str, processes: u32) -> Option<Measured> {
        measure_in(&mut self.world, name, values, &self.target, processes)
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        let mut ends = Vec::new();
        if self.mounted {
            ends.push(Command::new("umount").arg(self.dir.path().join("mount")).status());
        }
        if let Some(device) = &self.device {
            ends.push(Command::new("losetup").arg("--detach").arg(device).status());
        }
        let failed = ends.iter().any(|end| !end.as_ref().is_ok_and(|status| status.success()));
        // A panic during unwinding would hide the first one.
        assert!(!failed || std::thread::panicking(), "{ends:?}");
    }
}

#[test]
fn fio_reads_writes_and_mixes_on_a_device() {
    let subject = Subject::new();
    for (values, bytes) in [
        ("pattern = \"seq\"\nop = \"read\"\nblock_size = \"256K\"", vec![Metric::BytesRead]),
        ("pattern = \"rand\"\nop = \"write\"\nflush_every = 64", vec![Metric::BytesWritten]),
        (
            "pattern = \"rand\"\nop = \"mixed\"\ncompressible = 50",
            vec![Metric::BytesRead, Metric::BytesWritten],
        ),
    ] {
        for processes in [1, 2] {
            let Some(measured) = measure("fio", values, &subject.raw(), processes) else { return };
            assert_eq!(measured.latencies.len(), bytes.len());
            for metric in &bytes {
                assert!(measured.get(*metric).is_some_and(|bytes| bytes > 0.0), "{metric}");
            }
            let get = |metric| measured.get(metric).unwrap();
            assert!(get(Metric::LatencyMin) <= get(Metric::LatencyMean));
            assert!(get(Metric::LatencyMean) <= get(Metric::LatencyMax));
            assert!(get(Metric::LatencyP50) <= get(Metric::LatencyP99));
        }
    }
}

#[test]
fn fio_gives_a_course_over_time() {
    let subject = Subject::new();
    let values = "pattern = \"rand\"\nop = \"read\"\nseries_ms = 100";
    let Some(measured) = measure("fio", values, &subject.raw(), 2) else { return };
    let metrics: Vec<Metric> = measured.series.iter().map(|series| series.metric).collect();
    assert_eq!(metrics, [Metric::Throughput, Metric::Iops, Metric::LatencyMax]);
    for series in &measured.series {
        assert!(series.points.is_sorted_by(|a, b| a.0 < b.0), "{series:?}");
        assert!(series.points.iter().all(|(ms, _)| ms % 100 == 0), "{series:?}");
    }
}

#[test]
fn fio_works_on_a_file_of_its_own_in_a_folder() {
    let mut subject = Subject::new();
    subject.folder().measure("fio", "pattern = \"seq\"\nop = \"read\"\ndirect = false", 1);
}

/// Two sections, one of two processes.
const JOBS: &str = r#"
jobs = """
[global]
ioengine=libaio
direct=1
[popular]
rw=randread
random_distribution=zipf:0.9
iodepth=4
numjobs=2
[log]
rw=write
bs=64k
offset=8m
size=8m
fsync=4
"""
"#;

#[track_caller]
fn assert_both_ran(measured: Option<Measured>) {
    let Some(measured) = measured else { return };
    for metric in [Metric::BytesRead, Metric::BytesWritten] {
        assert!(measured.get(metric).is_some_and(|bytes| bytes > 0.0), "{measured:?}");
    }
    assert_eq!(measured.latencies.len(), 2);
}

#[test]
fn fio_runs_the_sections_of_a_job_file_at_once() {
    let mut subject = Subject::new();
    assert_both_ran(measure("fio-jobs", JOBS, &subject.raw(), 1));
    let mut folder = subject.folder();
    let direct = format!("direct={}", u8::from(folder.direct));
    assert_both_ran(folder.measure("fio-jobs", &JOBS.replace("direct=1", &direct), 1));
}

/// A server that is stopped even when the test fails.
struct Server(std::process::Child);

impl Drop for Server {
    fn drop(&mut self) {
        let ended = self.0.kill().and_then(|()| self.0.wait());
        assert!(ended.is_ok() || std::thread::panicking(), "{ended:?}");
    }
}

#[test]
fn fio_and_seek_speak_nbd() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("s.sock");
    let mut nbdkit = Command::new("nbdkit");
    nbdkit.args(["memory", "64M", "-f", "-U"]).arg(&socket);
    let Ok(child) = nbdkit.spawn() else {
        println!("skipped: nbdkit is not installed (apt install nbdkit)");
        return;
    };
    let _server = Server(child);
    let uri = format!("nbd+unix:///?socket={}", socket.display());
    // Ready as soon as it answers; the limit of a minute is for a very busy machine.
    let ready = (0..6000).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        braid_lab::nbd::query_size(&uri).is_ok_and(|size| size == REGION)
    });
    assert!(ready, "nbdkit does not answer");
    let target = Target::Nbd(uri);
    measure("fio", "pattern = \"seq\"\nop = \"write\"\nblock_size = \"64K\"", &target, 2);
    measure("fio", "pattern = \"rand\"\nop = \"read\"\niodepth = 1", &target, 1);
    assert_both_ran(measure("fio-jobs", JOBS, &target, 1));
}

#[test]
fn seeks_are_measured() {
    let subject = Subject::new();
    let seek = "pattern = \"rand\"\nop = \"read\"\niodepth = 1\nblock_size = ";
    for (size, processes) in [("\"512\"", 1), ("\"4K\"", 2)] {
        let values = format!("{seek}{size}");
        let Some(measured) = measure("fio", &values, &subject.raw(), processes) else { return };
        assert!(measured.get(Metric::LatencyMean).is_some_and(|ns| ns > 0.0));
        assert!(measured.get(Metric::Iops).is_some_and(|rate| rate > 0.0));
    }
}

#[test]
fn hdparm_reads_a_block_device() {
    let subject = Subject::new();
    if subject.device.is_none() {
        println!("skipped: hdparm needs a block device");
        return;
    }
    for values in ["", "direct = true", "cached = false"] {
        let Some(measured) = measure("hdparm", values, &subject.raw(), 1) else { return };
        let cached = [Metric::CachedThroughput, Metric::DirectCachedThroughput]
            .map(|metric| measured.get(metric).is_some());
        assert_eq!(cached, [values.is_empty(), values == "direct = true"]);
        assert!(measured.get(Metric::BytesRead).is_some_and(|bytes| bytes > 0.0));
    }
}

#[test]
fn dd_streams_to_and_from_files() {
    let mut subject = Subject::new();
    let mut folder = subject.folder();
    let direct = folder.direct;
    for values in [
        "op = \"read\"".to_owned(),
        "op = \"write\"".to_owned(),
        "op = \"write\"\nsync = \"none\"\nsource = \"file\"".to_owned(),
        format!("op = \"write\"\nsync = \"each\"\ndirect = {direct}"),
        "op = \"write\"\nsync = \"fsync\"".to_owned(),
    ] {
        let values = format!("{values}\nsize = \"4M\"\nbs = \"64K\"");
        for processes in [1, 3] {
            folder.measure("dd", &values, processes);
        }
    }
}

#[test]
fn dd_streams_to_and_from_a_device_and_keeps_its_size() {
    let subject = Subject::new();
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len(REGION).unwrap();
    for target in [subject.raw(), Target::Device(file.path().to_owned())] {
        for op in ["write", "read"] {
            let values = format!("op = {op:?}\nsize = \"4M\"\nbs = \"64K\"");
            measure("dd", &values, &target, 2);
        }
    }
    assert_eq!(file.as_file().metadata().unwrap().len(), REGION, "dd must not cut the subject");
}

#[test]
fn sysbench_runs_all_its_modes() {
    let mut subject = Subject::new();
    let mut folder = subject.folder();
    let direct = folder.direct;
    for mode in ["seqrd", "seqwr", "seqrewr", "rndrd", "rndwr", "rndrw"] {
        let values = format!(
            "mode = {mode:?}\ntotal_size = \"4M\"\nfiles = 2\nevents = 200\ndirect = {direct}"
        );
        let Some(measured) = folder.measure("sysbench", &values, 2) else { return };
        assert!(measured.get(Metric::Seconds).is_some());
        // A mode that writes also syncs, and then latencies are of both.
        let reads = matches!(mode, "seqrd" | "rndrd");
        assert_eq!(measured.latencies.len(), usize::from(reads), "{mode}");
        let get = |metric| measured.get(metric).unwrap_or(0.0);
        let bytes = get(Metric::BytesRead) + get(Metric::BytesWritten);
        assert_eq!(bytes, get(Metric::Requests) * f64::from(16 << 10), "{mode}");
        let both = [Metric::BytesRead, Metric::BytesWritten].map(|metric| get(metric) > 0.0);
        assert_eq!(both, [reads || mode == "rndrw", !reads], "{mode}");
    }
    let timed = "mode = \"rndrd\"\ntotal_size = \"4M\"\nfiles = 2\ndirect = false";
    let measured = folder.measure("sysbench", timed, 1).unwrap();
    assert_eq!(measured.get(Metric::Seconds), None);
}

#[test]
fn bonnie_runs_all_its_phases() {
    let mut subject = Subject::new();
    let mut folder = subject.folder();
    let values = "size = \"8M\"\nfiles = 1\nper_char = false\nchunk = \"64K\"";
    let Some(measured) = folder.measure("bonnie", values, 2) else { return };
    for metric in [Metric::BonnieWriteLatency, Metric::BonnieRanDeleteLatency] {
        assert!(measured.get(metric).is_some(), "{measured:?}");
    }
    assert_eq!(measured.get(Metric::BonniePutcLatency), None);
    let whole = folder.measure("bonnie", "size = \"2M\"\nfiles = 0", 1).unwrap();
    assert!(whole.get(Metric::BonnieGetcLatency).is_some());
}

#[test]
fn trees_and_files_are_copied() {
    let mut subject = Subject::new();
    let mut folder = subject.folder();
    for name in ["untar", "cp-tree", "cp-cached", "cp-read"] {
        for processes in [1, 2] {
            let Some(measured) = folder.measure(name, "size = \"4M\"", processes) else {
                continue;
            };
            let bytes = [Metric::BytesRead, Metric::BytesWritten].map(|m| measured.get(m));
            let all = Some(f64::from(processes) * f64::from(4 << 20));
            assert!(bytes.contains(&all), "{name}: {measured:?}");
        }
    }
}

#[test]
fn a_command_is_timed() {
    let mut subject = Subject::new();
    let mut folder = subject.folder();
    let values = "command = \"cat {folder}/before >after; sync after\"\nprepare = \"echo {process} >before\"";
    let measured = folder.measure("command", values, 2).unwrap();
    assert_eq!(measured.get(Metric::Throughput), None);
    assert!(measured.get(Metric::SpreadOfProcesses).is_some());
}

#[test]
fn every_tool_is_run_here_and_refuses_what_does_not_fit() {
    let here = [
        "fio",
        "fio-jobs",
        // Covered by braid's own tests: it is braid.
        "replay",
        "hdparm",
        "dd",
        "sysbench",
        "bonnie",
        "untar",
        "cp-tree",
        "cp-cached",
        "cp-read",
        "command",
    ];
    assert_eq!(names(), here, "a tool was added: run it for real above");
    for name in here {
        let tool = find(name).unwrap();
        let settings = Settings::defaults(tool.parameters());
        let folder = Target::Folder("/nonexistent".into());
        let spec = TrialSpec {
            settings: &settings,
            target: &folder,
            processes: 1,
            region_bytes: 0,
            room_bytes: 0,
            runtime_s: 1.0,
            ramp_s: 0.0,
            seed: 0,
            scratch: Path::new("/nonexistent"),
            sources: Path::new("/nonexistent"),
        };
        assert!(tool.plan(&spec).is_err(), "{name} fits into nothing");
        if tool.work(&settings, 1).place == Place::Folder {
            let raw = Target::Device("/nonexistent".into());
            let spec =
                TrialSpec { target: &raw, region_bytes: u64::MAX, room_bytes: u64::MAX, ..spec };
            let refused = tool.plan(&spec).unwrap_err();
            assert!(refused.contains("folder"), "{name}: {refused}");
        }
    }
}
