//! Tools run between two looks at the machine, and the judgement of what they did.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Instant;

use braid_lab::ByteSize;
use braid_lab::campaign::{Campaign, Setup, Source, SubjectDecl};
use braid_lab::environment::read_environment;
use braid_lab::evidence::{Evidence, Watch, take};
use braid_lab::facts::place_members;
use braid_lab::matrix::{Planned, Workload};
use braid_lab::metric::{Measured, Metric};
use braid_lab::settings::{Settings, Value};
use braid_lab::store::{Outcome, Results, Session, StoredTrial, SubjectFacts, Times};
use braid_lab_report::trust::{Finding, Judgement, judge};

use crate::machine::{MIB, run, text};

/// The results of a tool, ready to be judged.
#[derive(Clone)]
pub(crate) struct Run {
    pub(crate) commands: Vec<String>,
    pub(crate) evidence: Evidence,
    pub(crate) measured: Measured,
    pub(crate) duration_s: f64,
    pub(crate) region_bytes: u64,
}

pub(crate) fn words(command: &Command) -> String {
    let args = command.get_args().map(|arg| arg.to_string_lossy().into_owned());
    let program = command.get_program().to_string_lossy().into_owned();
    std::iter::once(program).chain(args).collect::<Vec<_>>().join(" ")
}

/// Runs a tool between two looks.
pub(crate) fn between_looks(watch: &Watch, command: &mut Command) -> (Evidence, Output, f64) {
    let before = take(watch);
    let start = Instant::now();
    let output = run(command);
    let duration_s = start.elapsed().as_secs_f64();
    (Evidence::between(&before, &take(watch)), output, duration_s)
}

pub(crate) fn push(measured: &mut Measured, metric: Metric, value: f64) {
    measured.push(metric, value).unwrap();
}

/// fio on a file or device, reading for a second unless told otherwise.
pub(crate) fn fio(watch: &Watch, file: &Path, more: &[&str]) -> Run {
    let size = fs::File::open(file)
        .and_then(|mut file| std::io::Seek::seek(&mut file, std::io::SeekFrom::End(0)))
        .unwrap();
    let target = format!("--filename={}", file.display());
    let engine = ["--rw=read", "--ioengine=psync", "--allow_file_create=0", &target];
    fio_for_a_second(watch, size, &[&engine[..], more].concat())
}

pub(crate) fn fio_for_a_second(watch: &Watch, size: u64, more: &[&str]) -> Run {
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
pub(crate) fn dd(watch: &Watch, metric: Metric, bytes: u64, args: &[&str]) -> Run {
    let mut command = Command::new("dd");
    command.args(args);
    let (evidence, _, duration_s) = between_looks(watch, &mut command);
    let mut measured = Measured::default();
    push(&mut measured, Metric::Throughput, bytes as f64 / duration_s);
    push(&mut measured, Metric::Seconds, duration_s);
    push(&mut measured, metric, bytes as f64);
    Run { commands: vec![words(&command)], evidence, measured, duration_s, region_bytes: bytes }
}

pub(crate) fn workload(tool: &str, direct: bool, setup: Setup) -> Workload {
    let settings = Settings::default().with("direct", Value::Flag(direct));
    Workload { tool: tool.to_owned(), settings, setup }
}

/// Judges subjects with their repetitions under one workload. `file` carries the members.
pub(crate) fn judged(
    workload: &Workload,
    file: &Path,
    subjects: Vec<(&str, Source, Vec<Run>)>,
) -> Judgement {
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
    let is_told = |trial: &StoredTrial| trial.commands.concat().contains("--ramp_time=1s");
    let has_ramp = trials.iter().any(is_told);
    let campaign = Campaign {
        only: Vec::new(),
        working_dir: None,
        name: "real".into(),
        description: String::new(),
        repetitions: 1,
        seed: Some(1),
        control: None,
        runtime_s: 1.0,
        ramp_s: if has_ramp { 1.0 } else { 0.0 },
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
    let results =
        Results { planned: Planned::of(&campaign), facts, sessions: vec![session], trials };
    judge(&results, std::slice::from_ref(workload))
}

/// The finding of a rule about one run on a path.
pub(crate) fn found(workload: &Workload, file: &Path, run: Run, rule: &str) -> Option<Finding> {
    let source = Source::Path(file.display().to_string());
    let judgement = judged(workload, file, vec![("it", source, vec![run])]);
    of(&judgement, "it", workload, rule)
}

pub(crate) fn of(
    judgement: &Judgement,
    subject: &str,
    workload: &Workload,
    rule: &str,
) -> Option<Finding> {
    let verdict = judgement.of(subject, &workload.label()).unwrap();
    for finding in &verdict.findings {
        println!("{subject}: {} {}: {}", finding.standing, finding.rule, finding.why);
    }
    verdict.findings.iter().find(|finding| finding.rule == rule).cloned()
}
