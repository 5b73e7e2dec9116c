//! Rates that change: within a trial, and from repetition to repetition.

use std::fs;

use braid_lab::campaign::{Setup, Source};
use braid_lab::evidence::Watch;
use braid_lab::metric::{Metric, TimeSeries};
use braid_lab_report::trust::Standing;

use crate::machine::{alone, has, make_file};
use crate::runs::{fio, found, judged, of, workload};

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
