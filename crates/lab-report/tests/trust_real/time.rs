//! Time: of the trial, of processes, of processors.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use braid_lab::campaign::Setup;
use braid_lab::command::{Exit, Target, ToolOutput};
use braid_lab::evidence::{Evidence, Roots, Watch, take_under};
use braid_lab::matrix::Workload;
use braid_lab::metric::{Measured, Metric};
use braid_lab::settings::{Settings, Value};
use braid_lab::tool::{RunOutput, TrialSpec, find};
use braid_lab_report::trust::Standing;

use crate::machine::{MIB, alone, has, make_file, text};
use crate::runs::{Run, between_looks, dd, found, words, workload};

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

/// fio out of the page cache on one processor, before everybody else. A machine that takes the
/// processor away in spite of that is itself full, which the rule says as well; one that takes it
/// away now and then is no place for this test.
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
    if evidence.tool_cores.unwrap() < 0.9 && evidence.cpu_busy.unwrap() < 0.95 {
        println!("skipped: something kept fio from its processor, and not from all of them");
        return;
    }
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

/// Two jobs of one fio, one of them at a quarter of the other's rate: both run to the end.
#[test]
fn processes_that_share_unevenly() {
    let _turn = alone();
    if !has("fio", "fio") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.img");
    make_file(&file, 16);
    let settings = Settings::default()
        .with("op", Value::Word("read".into()))
        .with("pattern", Value::Word("seq".into()));
    let setup = Setup { processes: 2, ..Setup::default() };
    let workload = Workload { tool: "fio".into(), settings, setup };
    let of = |rates: [&str; 2]| {
        let filename = format!("--filename={}", file.display());
        let mut command = Command::new("fio");
        command.args(["--output-format=json+", "--eta=never", "--thread=1", "--time_based=1"]);
        for (name, rate) in ["a", "b"].into_iter().zip(rates) {
            let options = ["--rw=read", "--bs=64k", "--runtime=1", "--allow_file_create=0"];
            command.arg(format!("--name={name}")).arg(&filename).args(options);
            command.arg(format!("--rate={rate}"));
        }
        let (evidence, output, duration_s) = between_looks(&Watch::default(), &mut command);
        let process = ToolOutput {
            exit: Exit::Code(0),
            stdout: text(&output),
            stderr: String::new(),
            wall_s: duration_s,
        };
        let spec = TrialSpec {
            settings: &workload.settings,
            target: &Target::Device(file.clone()),
            processes: 2,
            region_bytes: 16 * MIB,
            room_bytes: 16 * MIB,
            runtime_s: 1.0,
            ramp_s: 0.0,
            seed: 1,
            scratch: dir.path(),
            sources: dir.path(),
        };
        let run =
            RunOutput { processes: vec![process], wall_s: duration_s, files: BTreeMap::new() };
        let measured = find("fio").unwrap().parse(&spec, &run).unwrap();
        let commands = vec![words(&command)];
        let run = Run { commands, evidence, measured, duration_s, region_bytes: 16 * MIB };
        found(&workload, &file, run, "processes-unfair")
    };
    let finding = of(["16m", "4m"]).unwrap();
    assert_eq!(finding.standing, Standing::Ok, "{finding:?}");
    assert!(finding.why.contains("ran to the end"), "{finding:?}");
    assert_eq!(of(["4m", "4m"]), None);
}
