//! One run of fio.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::{Error, Result, process};

/// The work of fio.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// Its name in tables, which `--only` matches.
    pub name: &'static str,
    /// fio's `rw`.
    pub rw: &'static str,
    /// Bytes of a request.
    pub block: u64,
    /// Requests in flight on each connection.
    pub depth: u32,
    /// Connections, or processes that have the device open.
    pub jobs: u32,
}

/// The device or server that fio works on.
#[derive(Clone, Copy, Debug)]
pub enum Subject<'a> {
    /// The default export of an NBD server at this Unix socket.
    Nbd(&'a Path),
    /// The export of an NBD server, by its address.
    Uri(&'a str),
    /// A block device or file, with direct I/O.
    Device(&'a Path),
}

/// The outcome, over all jobs.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// Requests that completed.
    pub requests: f64,
    /// Bytes that they moved.
    pub bytes: f64,
    /// The time of the longest job.
    pub seconds: f64,
    /// Processor time of fio's jobs, without its start.
    pub cpu_seconds: f64,
}

impl Outcome {
    /// Bytes a second.
    pub fn rate(&self) -> f64 {
        self.bytes / self.seconds
    }

    /// Requests a second.
    pub fn requests_per_second(&self) -> f64 {
        self.requests / self.seconds
    }
}

/// Checks that fio is installed.
///
/// # Errors
/// If it is not.
pub fn require() -> Result<()> {
    process::require("fio", "fio").map(drop)
}

/// Runs `workload` on `subject` for `seconds`.
///
/// # Errors
/// If fio fails, or does nothing.
pub fn run(subject: Subject<'_>, workload: &Workload, seconds: f64) -> Result<Outcome> {
    run_flushing(subject, workload, seconds, 0)
}

/// The same with a flush after each `every` writes; with none if that is 0.
///
/// # Errors
/// As [`run`].
pub fn run_flushing(
    subject: Subject<'_>,
    workload: &Workload,
    seconds: f64,
    every: u32,
) -> Result<Outcome> {
    let mut command = command(subject, workload);
    command.arg(format!("--fsync={every}"));
    // fio reads a bare number as seconds, and no fractions of them.
    let runtime_ms = (seconds * 1000.0) as u64;
    command.arg("--time_based=1").arg(format!("--runtime={runtime_ms}ms"));
    parse(&process::run(&mut command)?)
}

/// Writes all of `subject` once, so that reading it reads memory that is there.
///
/// # Errors
/// As [`run`].
pub fn fill(subject: Subject<'_>) -> Result<()> {
    let fill = Workload { name: "fill", rw: "write", block: 1 << 20, depth: 4, jobs: 1 };
    parse(&process::run(&mut command(subject, &fill))?).map(drop)
}

fn command(subject: Subject<'_>, workload: &Workload) -> Command {
    let Workload { rw, block, depth, jobs, .. } = workload;
    let mut command = Command::new("fio");
    command
        .args(["--name=bench", "--output-format=json", "--eta=never"])
        // Cheap on the client: no map of blocks done, few clock readings.
        .args(["--norandommap=1", "--gtod_reduce=1", "--randrepeat=1"])
        .arg(format!("--rw={rw}"))
        .arg(format!("--bs={block}"))
        .arg(format!("--iodepth={depth}"))
        .arg(format!("--numjobs={jobs}"));
    if *jobs > 1 && !rw.starts_with("rand") {
        // Sequential ones that go the same way would find each other's place.
        command.arg(format!("--offset_increment={}%", 100 / jobs));
    }
    match subject {
        Subject::Nbd(socket) => {
            command
                .arg("--ioengine=nbd")
                .arg(format!("--uri=nbd+unix:///?socket={}", socket.display()));
        }
        Subject::Uri(uri) => {
            command.arg("--ioengine=nbd").arg(format!("--uri={uri}"));
        }
        Subject::Device(path) => {
            command
                .args(["--ioengine=libaio", "--direct=1"])
                .arg(format!("--filename={}", path.display()));
        }
    }
    command
}

fn parse(output: &str) -> Result<Outcome> {
    let unexpected = |what: &str| Error::Unexpected(format!("fio's report {what}:\n{output}"));
    // Messages may come before the report.
    let start = output.find('{').ok_or_else(|| unexpected("is missing"))?;
    let report: Value =
        serde_json::from_str(&output[start..]).map_err(|error| unexpected(&error.to_string()))?;
    let jobs = report["jobs"].as_array().ok_or_else(|| unexpected("has no jobs"))?;
    let mut outcome = Outcome { requests: 0.0, bytes: 0.0, seconds: 0.0, cpu_seconds: 0.0 };
    for job in jobs {
        let number = |value: &Value| value.as_f64().unwrap_or(0.0);
        if number(&job["error"]) != 0.0 {
            return Err(unexpected("has an error"));
        }
        for way in ["read", "write"] {
            outcome.requests += number(&job[way]["total_ios"]);
            outcome.bytes += number(&job[way]["io_bytes"]);
            outcome.seconds = outcome.seconds.max(number(&job[way]["runtime"]) / 1000.0);
        }
        let share = (number(&job["usr_cpu"]) + number(&job["sys_cpu"])) / 100.0;
        outcome.cpu_seconds += share * number(&job["job_runtime"]) / 1000.0;
    }
    if outcome.requests == 0.0 || outcome.seconds == 0.0 {
        return Err(unexpected("counts no request"));
    }
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_added_up() {
        let report = r#"fio: a message
{ "jobs" : [
  { "error" : 0, "job_runtime" : 2000, "usr_cpu" : 25.0, "sys_cpu" : 50.0,
    "read" : { "total_ios" : 1000, "io_bytes" : 4096000, "runtime" : 2000 },
    "write" : { "total_ios" : 0, "io_bytes" : 0, "runtime" : 0 } },
  { "error" : 0, "job_runtime" : 1000, "usr_cpu" : 100.0, "sys_cpu" : 0.0,
    "read" : { "total_ios" : 500, "io_bytes" : 2048000, "runtime" : 1000 },
    "write" : { "total_ios" : 0, "io_bytes" : 0, "runtime" : 0 } } ] }"#;
        let outcome = parse(report).unwrap();
        assert_eq!(outcome.requests, 1500.0);
        assert_eq!(outcome.rate(), 6_144_000.0 / 2.0);
        assert_eq!(outcome.cpu_seconds, 2.5);
    }

    #[test]
    fn a_report_without_requests_is_an_error() {
        for report in ["", "no report", r#"{ "jobs" : [] }"#, r#"{ "jobs" : [{ "error" : 5 }] }"#] {
            assert!(parse(report).is_err(), "{report}");
        }
    }
}
