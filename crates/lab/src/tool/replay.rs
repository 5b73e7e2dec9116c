//! `replay`: the requests of a trace, each at its time (`braid trace replay`).
//!
//! A trial replays that part of the trace, of the length of the trial's measured time, in which most bytes are
//! moved. The latency of a request counts from its due time. The program is braid itself: fio 3.33 can replay a
//! trace, but notices completions only when its queue is full.

use braid_stack::ByteSize;
use serde_json::Value;

use super::parts::{arg, excerpt, malformed, push};
use super::{About, Place, RunOutput, Script, Tool, ToolError, TrialSpec, Version, Work, Writes};
use crate::command::{CommandLine, OWN, Target};
use crate::metric::{Measured, Metric};
use crate::settings::{Kind, Parameter, Settings};

pub(super) struct Replay;

const NAME: &str = "replay";

/// Factor of its length after which a part is abandoned: the subject is too slow for it.
const TOO_SLOW: f64 = 4.0;

const ABOUT: About = About {
    name: NAME,
    program: OWN,
    package: OWN,
    summary: "the busiest part of a trace, each request at its time, for the campaign's time",
    parameters: &[
        Parameter::new("trace", Kind::Text, "the trace: an iolog of fio, or blkparse's text"),
        Parameter::new("of", Kind::Text, "the device or file, of a trace of several"),
        Parameter::new(
            "op",
            Kind::Choice(&["read", "all"]),
            "the replayed requests: reads, or all",
        )
        .or("read"),
    ],
    version_args: &["--version"],
    version: Version::After("braid "),
};

fn reads_only(settings: &Settings) -> bool {
    settings.word("op") != "all"
}

impl Tool for Replay {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn check(&self, settings: &Settings, processes: u32) -> Result<(), String> {
        if settings.word("trace").is_empty() {
            return Err("trace is missing: the file that is replayed".to_owned());
        }
        if processes > 1 {
            return Err(
                "several replays at once do not reproduce the trace; set processes = 1".to_owned()
            );
        }
        Ok(())
    }

    fn work(&self, settings: &Settings, _processes: u32) -> Work {
        let writes = if reads_only(settings) { Writes::Nothing } else { Writes::UntilTime };
        Work { place: Place::Device, writes, reads_raw: true, ..Work::default() }
    }

    fn label(&self, settings: &Settings) -> String {
        let of = match settings.word("of") {
            "" => String::new(),
            of => format!(" of {of}"),
        };
        let only = if reads_only(settings) { ", reads only" } else { "" };
        format!("replay {}{of}{only}", settings.word("trace"))
    }

    fn plan(&self, spec: &TrialSpec<'_>) -> Result<Script, String> {
        let Target::Device(path) = spec.target else {
            return Err("replay asks devices and files only".to_owned());
        };
        let device = arg(path);
        let command = CommandLine::new(OWN)
            .args(["trace", "replay", spec.settings.word("trace"), "--on"])
            .arg(&device)
            .args(["--part".to_owned(), format!("{}s", spec.runtime_s)])
            .args(["--limit".to_owned(), format!("{}s", spec.runtime_s * TOO_SLOW)])
            .args(["--region".to_owned(), ByteSize(spec.region_bytes).to_string()])
            .arg("--held");
        let of = match spec.settings.word("of") {
            "" => Vec::new(),
            of => vec!["--of", of],
        };
        let how = match reads_only(spec.settings) {
            true => vec!["--reads-only"],
            false => vec!["--destroy", &device],
        };
        let command = command.args(of).args(how).arg("--json");
        Ok(Script { measured: vec![command], ..Script::default() })
    }

    fn parse(&self, _spec: &TrialSpec<'_>, run: &RunOutput) -> Result<Measured, ToolError> {
        let process = run.processes.first().ok_or(ToolError::Nothing { tool: NAME })?;
        let told: Value = serde_json::from_str(&process.stdout)
            .map_err(|error| malformed(NAME, format!("{error} in {}", excerpt(&process.stdout))))?;
        let number = |path: &str| told.pointer(path).and_then(Value::as_f64);
        let wanted = |path: &str| {
            number(path).ok_or_else(|| malformed(NAME, format!("{path} is no number, or missing")))
        };
        let requests = wanted("/requests")?;
        if requests <= 0.0 {
            return Err(ToolError::Nothing { tool: NAME });
        }
        let mut measured = Measured::default();
        for (metric, path) in [
            (Metric::Throughput, "/bytes_per_second"),
            (Metric::Iops, "/requests_per_second"),
            (Metric::Requests, "/requests"),
            (Metric::LatencyMean, "/latency_ns/mean"),
            (Metric::LatencyMax, "/latency_ns/max"),
        ] {
            push(&mut measured, NAME, metric, wanted(path)?)?;
        }
        for (metric, path) in [
            (Metric::BytesRead, "/read_bytes"),
            (Metric::BytesWritten, "/written_bytes"),
            // Absent for few requests.
            (Metric::LatencyP50, "/latency_ns/p50"),
            (Metric::LatencyP95, "/latency_ns/p95"),
            (Metric::LatencyP99, "/latency_ns/p99"),
            (Metric::LatencyP999, "/latency_ns/p99.9"),
        ] {
            if let Some(value) = number(path).filter(|value| *value > 0.0) {
                push(&mut measured, NAME, metric, value)?;
            }
        }
        Ok(measured)
    }
}

#[cfg(test)]
mod tests;
