//! fio: asynchronous requests of one kind at a fixed depth.
//!
//! Files and block devices go through `libaio`, NBD through fio's own `nbd` engine (libnbd), so
//! both sides of a comparison are driven by one program.
//!
//! Choices that shape the numbers: a write trial ends with a flush that counts
//! (`--end_fsync=1`), so a server's memory does not pass for a disk; random offsets are drawn
//! with replacement (`--norandommap=1`), so fio keeps no map; fio never creates a file. Its jobs
//! are threads (`--thread=1`), because forked jobs leave the process group and would survive it.

use serde::Deserialize;

use super::{Metric, Sample, Target, Tool, ToolError, TrialSpec};
use crate::campaign::{Op, Pattern};
use crate::matrix::Workload;
use crate::world::CommandLine;

pub(super) struct Fio;

const NAME: &str = "fio";

impl Tool for Fio {
    fn name(&self) -> &'static str {
        NAME
    }

    fn version_command(&self) -> CommandLine {
        CommandLine::new(NAME).arg("--version")
    }

    fn fill_command(&self, target: &Target, region_bytes: u64) -> CommandLine {
        with_target(CommandLine::new(NAME).arg("--name=fill").arg("--thread=1"), target, true)
            .arg("--rw=write")
            .arg("--bs=1M")
            .arg("--iodepth=8")
            .arg(format!("--size={region_bytes}"))
            .arg("--end_fsync=1")
            .arg("--output-format=json")
            .arg("--eta=never")
    }

    fn trial_command(&self, spec: &TrialSpec<'_>) -> CommandLine {
        let work = spec.workload;
        let mut command = with_target(
            CommandLine::new(NAME).arg("--name=trial").arg("--thread=1"),
            spec.target,
            work.direct,
        )
        .arg(format!("--rw={}", rw(work.pattern, work.op)))
        .arg(format!("--bs={}", work.block_size.0))
        .arg(format!("--iodepth={}", work.iodepth));
        let processes = u64::from(work.processes);
        if processes > 1 && work.pattern == Pattern::Seq {
            // Each process streams through a part of its own.
            let part = round_down(spec.region_bytes / processes, work.block_size.0);
            command =
                command.arg(format!("--size={part}")).arg(format!("--offset_increment={part}"));
        } else {
            let size = round_down(spec.region_bytes, work.block_size.0);
            command = command.arg(format!("--size={size}"));
        }
        if processes > 1 {
            command = command.arg(format!("--numjobs={processes}")).arg("--group_reporting=1");
        }
        if work.pattern == Pattern::Rand {
            // fio 3.33 refuses seeds of 2^63 and more.
            let seed = spec.seed >> 1;
            command = command.arg(format!("--randseed={seed}")).arg("--norandommap=1");
        }
        if work.op == Op::Write {
            if work.flush_every > 0 {
                command = command.arg(format!("--fsync={}", work.flush_every));
            }
            command = command.arg("--end_fsync=1");
        }
        command = command.arg("--time_based=1").arg(format!("--runtime={}", time(spec.runtime_s)));
        if spec.ramp_s > 0.0 {
            command = command.arg(format!("--ramp_time={}", time(spec.ramp_s)));
        }
        command
            .arg("--percentile_list=50:95:99:99.9")
            .arg("--output-format=json+")
            .arg("--eta=never")
    }

    fn parse_output(&self, workload: &Workload, output: &str) -> Result<Vec<Sample>, ToolError> {
        parse_output(workload.op, output)
    }
}

fn with_target(command: CommandLine, target: &Target, direct: bool) -> CommandLine {
    match target {
        Target::Path(path) => command
            // fio splits a file name at colons, which by-path device names hold.
            .arg(format!("--filename={}", path.replace(':', "\\:")))
            .arg("--ioengine=libaio")
            .arg(format!("--direct={}", u8::from(direct)))
            .arg("--allow_file_create=0"),
        Target::Nbd(uri) => command.arg("--ioengine=nbd").arg(format!("--uri={uri}")),
    }
}

fn rw(pattern: Pattern, op: Op) -> &'static str {
    match (pattern, op) {
        (Pattern::Seq, Op::Read) => "read",
        (Pattern::Seq, Op::Write) => "write",
        (Pattern::Rand, Op::Read) => "randread",
        (Pattern::Rand, Op::Write) => "randwrite",
    }
}

fn round_down(bytes: u64, unit: u64) -> u64 {
    (bytes / unit).max(1) * unit
}

fn time(seconds: f64) -> String {
    format!("{}ms", (seconds * 1000.0).round())
}

// Only what is read is named; fio's output holds some hundred fields more, and new ones with
// each version.

#[derive(Deserialize)]
struct Output {
    jobs: Vec<JobOutput>,
}

#[derive(Deserialize)]
struct JobOutput {
    #[serde(default)]
    error: i64,
    #[serde(default)]
    total_err: i64,
    read: Direction,
    write: Direction,
    usr_cpu: f64,
    sys_cpu: f64,
}

#[derive(Deserialize)]
struct Direction {
    bw_bytes: f64,
    iops: f64,
    total_ios: u64,
    clat_ns: Latency,
    lat_ns: Latency,
}

#[derive(Deserialize)]
struct Latency {
    max: f64,
    mean: f64,
    #[serde(default)]
    percentile: std::collections::BTreeMap<String, f64>,
}

/// Reads json+ output. Text before the first line that is `{` is fio talking ("fio: connected to
/// NBD server") and is skipped.
fn parse_output(op: Op, output: &str) -> Result<Vec<Sample>, ToolError> {
    let malformed = |reason: String| ToolError::Malformed { tool: NAME, reason };
    let json = json_part(output).ok_or_else(|| malformed("it holds no JSON".to_owned()))?;
    let parsed: Output =
        serde_json::from_str(json).map_err(|error| malformed(error.to_string()))?;
    let [job] = parsed.jobs.as_slice() else {
        return Err(malformed(format!("it holds {} jobs instead of one", parsed.jobs.len())));
    };
    if job.error != 0 || job.total_err != 0 {
        let reason = format!("error {}, {} errors in all", job.error, job.total_err);
        return Err(ToolError::IoErrors { tool: NAME, reason });
    }
    let direction = match op {
        Op::Read => &job.read,
        Op::Write => &job.write,
    };
    // fio ends with error 0 and no request at all when an NBD server is not there.
    if direction.total_ios == 0 {
        return Err(ToolError::Nothing { tool: NAME });
    }
    samples_of(job, direction)
        .ok_or_else(|| malformed("a percentile is missing or a value is not finite".to_owned()))
}

fn json_part(output: &str) -> Option<&str> {
    let mut at = 0;
    for line in output.split_inclusive('\n') {
        if line.starts_with('{') {
            return output.get(at..);
        }
        at += line.len();
    }
    None
}

fn samples_of(job: &JobOutput, direction: &Direction) -> Option<Vec<Sample>> {
    // Percentiles are of the completion time (submission to completion), which is what fio
    // keeps bins for; mean and maximum are taken of the same quantity, so that they agree.
    let percentile = |key: &str| direction.clat_ns.percentile.get(key).copied();
    let latency = if direction.clat_ns.mean > 0.0 { &direction.clat_ns } else { &direction.lat_ns };
    let values = [
        (Metric::Throughput, direction.bw_bytes),
        (Metric::Iops, direction.iops),
        (Metric::LatencyMean, latency.mean),
        (Metric::LatencyP50, percentile("50.000000")?),
        (Metric::LatencyP95, percentile("95.000000")?),
        (Metric::LatencyP99, percentile("99.000000")?),
        (Metric::LatencyP999, percentile("99.900000")?),
        (Metric::LatencyMax, latency.max),
        (Metric::ToolCpuUser, job.usr_cpu),
        (Metric::ToolCpuSystem, job.sys_cpu),
        (Metric::Requests, direction.total_ios as f64),
    ];
    let finite = values.iter().all(|(_, value)| value.is_finite());
    finite.then(|| values.map(|(metric, value)| Sample { metric, value }).to_vec())
}

#[cfg(test)]
mod tests;
