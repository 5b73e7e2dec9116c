//! sysbench fileio: synchronous requests of several threads on a set of files.
//!
//! What the numbers mean (sysbench 1.0):
//!
//! * it writes zeros, so a subject that compresses or looks for zeros will shine;
//! * `fsync` counts as an event in its latencies and its number of events, not in its rates, and
//!   most are of files that nothing was written to since: of 8380 events of the defaults (128
//!   files, an fsync of each after 100 writes) 4680 were fsyncs (seen with strace). So requests
//!   and bytes are worked out from the rates, and a trial with an fsync has no latencies;
//! * its rates are printed with two decimals and its latencies with two decimals of a
//!   millisecond, so rates are taken per request, the mean from the sum, and percentiles from its
//!   histogram (three decimals);
//! * it has no ramp, and its time is whole seconds: `runtime_s` is rounded up.
//!
//! Processes are its threads. It works in the folder it is started in; there is no option.

use super::parts::{
    arg, bytes_from, check_room, check_set, folder_of, malformed, or, parameter, round_down,
    scaling, unusual,
};
use super::{Content, Effort, Place, RunOutput, Script, Tool, ToolError, TrialSpec, Writes};
use crate::command::{CommandLine, Step, ToolOutput};
use crate::metric::{Measured, Metric};
use crate::settings::{Kind, Parameter, Settings};
use braid_stack::ByteSize;

mod output;

pub(super) struct Sysbench;

const NAME: &str = "sysbench";
const MODES: &[&str] = &["seqrd", "seqwr", "seqrewr", "rndrd", "rndwr", "rndrw"];

const PARAMETERS: &[Parameter] = &[
    parameter("mode", Kind::Choice(MODES), "order and direction, as in --file-test-mode"),
    or("1G", scaling(parameter("total_size", bytes_from(512), "bytes of all files together"))),
    or("128", parameter("files", Kind::Count { min: 1, max: 1 << 20 }, "number of files")),
    or(
        "16K",
        parameter(
            "block_size",
            Kind::Size { min: 512, max: 64 << 20, unit: 512 },
            "bytes of a request",
        ),
    ),
    or("true", parameter("direct", Kind::Flag, "past the page cache")),
    or(
        "100",
        parameter(
            "fsync_every",
            Kind::Count { min: 0, max: 1 << 30 },
            "an fsync of all files after so many writes; 0: only at the end. sysbench counts them \
             among its events, so a trial that writes has rates and no latencies",
        ),
    ),
    scaling(parameter(
        "events",
        Kind::Count { min: 1, max: 1 << 40 },
        "events (reads, writes and fsyncs) after which it ends; unset: it runs for runtime_s, \
         rounded up to whole seconds",
    )),
];

fn mode(settings: &Settings) -> &str {
    settings.word("mode")
}

fn reads_only(settings: &Settings) -> bool {
    matches!(mode(settings), "seqrd" | "rndrd")
}

fn block_size(settings: &Settings) -> u64 {
    settings.size("block_size").unwrap_or(16 << 10)
}

fn files(settings: &Settings) -> u64 {
    settings.count("files").unwrap_or(128).max(1)
}

/// Bytes of a file: whole blocks, so that no request meets its end.
fn file_size(settings: &Settings) -> u64 {
    let total = settings.size("total_size").unwrap_or(0);
    round_down(total / files(settings), block_size(settings))
}

impl Tool for Sysbench {
    fn name(&self) -> &'static str {
        NAME
    }

    fn package(&self) -> &'static str {
        "sysbench"
    }

    fn about(&self) -> &'static str {
        "synchronous requests of several threads on many files (sysbench fileio); it writes zeros \
         and has no ramp"
    }

    fn parameters(&self) -> &'static [Parameter] {
        PARAMETERS
    }

    fn version_command(&self) -> CommandLine {
        CommandLine::new(NAME).arg("--version")
    }

    fn parse_version(&self, output: &ToolOutput) -> Result<String, ToolError> {
        let mut words = output.stdout.split_whitespace();
        match (words.next(), words.next()) {
            (Some(NAME), Some(version)) if version.starts_with(|c: char| c.is_ascii_digit()) => {
                Ok(format!("{NAME}-{version}"))
            }
            _ => {
                let said = super::parts::excerpt(&output.stdout);
                Err(malformed(NAME, format!("no version in {said}")))
            }
        }
    }

    fn check(&self, settings: &Settings, _processes: u32) -> Result<(), String> {
        check_set(settings, "mode", MODES)?;
        if file_size(settings) == 0 {
            let total = ByteSize(settings.size("total_size").unwrap_or(0));
            return Err(format!(
                "total_size is {total}: each of {} files holds less than a block of {}; take a \
                 larger total_size or fewer files",
                files(settings),
                ByteSize(block_size(settings))
            ));
        }
        Ok(())
    }

    fn place(&self, _settings: &Settings) -> Place {
        Place::Folder
    }

    fn writes(&self, settings: &Settings, _processes: u32) -> Writes {
        if reads_only(settings) {
            Writes::Bytes(file_size(settings).saturating_mul(files(settings)))
        } else {
            Writes::UntilTime
        }
    }

    /// Its files are zeros in every mode; it reads what it wrote before.
    fn content(&self, _settings: &Settings) -> Content {
        Content::Constant
    }

    fn lays_out(&self, settings: &Settings, _processes: u32, _room_bytes: u64) -> u64 {
        // Those of a mode that only reads are all that it writes.
        match reads_only(settings) {
            true => 0,
            false => file_size(settings).saturating_mul(files(settings)),
        }
    }

    fn effort(&self, settings: &Settings, _processes: u32) -> Effort {
        match settings.count("events") {
            Some(events) => Effort::Bytes(events.saturating_mul(block_size(settings))),
            None => Effort::Runtime,
        }
    }

    fn label(&self, settings: &Settings) -> String {
        let mut label = format!("sysbench {} {}", mode(settings), ByteSize(block_size(settings)));
        let unusual = |name| unusual(settings, PARAMETERS, name);
        if let Some(size) = unusual("total_size") {
            label.push_str(&format!(", {size}"));
        }
        for (name, words) in [("files", "files"), ("events", "events")] {
            if let Some(count) = unusual(name) {
                label.push_str(&format!(", {count} {words}"));
            }
        }
        if !settings.flag("direct") {
            label.push_str(", buffered");
        }
        match unusual("fsync_every") {
            Some(crate::settings::Value::Count(0)) => label.push_str(", fsync at the end"),
            Some(count) => label.push_str(&format!(", fsync every {count}")),
            None => {}
        }
        label
    }

    fn headline(&self, _settings: &Settings) -> Metric {
        Metric::Throughput
    }

    fn plan(&self, spec: &TrialSpec<'_>) -> Result<Script, String> {
        let settings = spec.settings;
        let folder = arg(folder_of(spec)?);
        check_room(spec, file_size(settings).saturating_mul(files(settings)))?;
        let base = || fileset(settings).in_folder(folder.clone());
        let mut run = base()
            .arg(format!("--file-block-size={}", block_size(settings)))
            .arg(format!("--file-test-mode={}", mode(settings)))
            .arg(format!("--file-fsync-freq={}", settings.count("fsync_every").unwrap_or(100)));
        if settings.flag("direct") {
            run = run.arg("--file-extra-flags=direct");
        }
        run = match settings.count("events") {
            Some(events) => run.arg(format!("--events={events}")).arg("--time=0"),
            None => run.arg(format!("--time={}", spec.runtime_s.ceil().max(1.0))),
        };
        // 0 would be the time of day; more than 31 bits are refused.
        let seed = spec.seed % u64::from(i32::MAX.unsigned_abs()) + 1;
        let run = run
            .arg(format!("--threads={}", spec.processes))
            .arg(format!("--rand-seed={seed}"))
            .arg("--validate=off")
            .arg("--percentile=95")
            .arg("--histogram=on")
            .arg("run");
        Ok(Script {
            prepare: vec![Step::Run(base().arg("prepare"))],
            measured: vec![run],
            clean_up: vec![Step::Run(base().arg("cleanup"))],
            ..Script::default()
        })
    }

    fn parse(&self, spec: &TrialSpec<'_>, run: &RunOutput) -> Result<Measured, ToolError> {
        let stdout = run.processes.first().map_or("", |process| process.stdout.as_str());
        let report = output::parse_report(stdout)?;
        let direction = match mode(spec.settings) {
            "seqrd" | "rndrd" => Some("read"),
            "rndrw" => None,
            _ => Some("write"),
        };
        let work = output::Work {
            block_bytes: block_size(spec.settings),
            direction,
            counted: spec.settings.count("events").is_some(),
            threads: spec.processes,
        };
        output::measured(&report, &work)
    }
}

/// The words that say which files there are.
fn fileset(settings: &Settings) -> CommandLine {
    CommandLine::new(NAME)
        .arg("fileio")
        .arg(format!("--file-num={}", files(settings)))
        .arg(format!("--file-total-size={}", file_size(settings).saturating_mul(files(settings))))
}

#[cfg(test)]
mod tests;
