//! sysbench fileio: synchronous requests of several threads on a set of files.
//!
//! Meaning of the numbers (sysbench 1.0):
//!
//! * it writes zeros, so a subject that compresses or detects zeros is at an advantage;
//! * `fsync` counts as an event in its latencies and its number of events, not in its rates, and most fsyncs
//!   are of clean files: of 8380 events of the defaults (128 files, an fsync of each after 100 writes) 4680
//!   were fsyncs (seen with strace). So requests and bytes are computed from the rates, and a trial with an
//!   fsync has no latencies;
//! * its rates are printed with two decimals and its latencies with two decimals of a
//!   millisecond, so rates are taken per request, the mean from the sum, and percentiles from its
//!   histogram (three decimals);
//! * it has no ramp, and its time is whole seconds: `runtime_s` is rounded up.
//!
//! Processes are its threads. It works in its working directory; there is no option for another.

use super::parts::{arg, check_room, folder_of, round_down, told};
use super::{
    About, Content, Effort, RunOutput, Script, Tool, ToolError, TrialSpec, Version, Work, Writes,
};
use crate::command::{CommandLine, Step};
use crate::metric::Measured;
use crate::settings::{Kind, Parameter, Settings};
use braid_stack::ByteSize;

mod output;

pub(super) struct Sysbench;

const NAME: &str = "sysbench";
const MODES: &[&str] = &["seqrd", "seqwr", "seqrewr", "rndrd", "rndwr", "rndrw"];

const ABOUT: About = About {
    name: NAME,
    program: NAME,
    package: "sysbench",
    summary: "synchronous requests of several threads on many files (sysbench fileio); it writes zeros \
              and has no ramp",
    parameters: &[
        Parameter::new("mode", Kind::Choice(MODES), "order and direction, as in --file-test-mode"),
        Parameter::new("total_size", Kind::bytes_from(512), "bytes of all files together")
            .or("1G")
            .scaling(),
        Parameter::new("files", Kind::count(1, 1 << 20), "number of files").or("128"),
        Parameter::new(
            "block_size",
            Kind::Size { min: 512, max: 64 << 20, unit: 512 },
            "bytes of a request",
        )
        .or("16K"),
        Parameter::new("direct", Kind::Flag, "past the page cache").or("true"),
        Parameter::new(
            "fsync_every",
            Kind::count(0, 1 << 30),
            "an fsync of all files after so many writes; 0: only at the end. sysbench counts them \
             among its events, so a trial that writes has rates and no latencies",
        )
        .or("100"),
        Parameter::new(
            "events",
            Kind::count(1, 1 << 40),
            "events (reads, writes and fsyncs) after which it ends; unset: it runs for runtime_s, \
             rounded up to whole seconds",
        )
        .scaling(),
    ],
    version_args: &["--version"],
    version: Version::After("sysbench "),
};

fn mode(settings: &Settings) -> &str {
    settings.word("mode")
}

fn block_size(settings: &Settings) -> u64 {
    settings.size("block_size").unwrap_or(16 << 10)
}

fn files(settings: &Settings) -> u64 {
    settings.count("files").unwrap_or(128).max(1)
}

/// Returns the bytes of a file: whole blocks, so that no request crosses its end.
fn file_size(settings: &Settings) -> u64 {
    let total = settings.size("total_size").unwrap_or(0);
    round_down(total / files(settings), block_size(settings))
}

/// Returns the bytes of all files.
fn all(settings: &Settings) -> u64 {
    file_size(settings).saturating_mul(files(settings))
}

/// Returns the direction of the data; `None` for both.
fn direction(settings: &Settings) -> Option<&'static str> {
    match mode(settings) {
        "seqrd" | "rndrd" => Some("read"),
        "rndrw" => None,
        _ => Some("write"),
    }
}

impl Tool for Sysbench {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn check(&self, settings: &Settings, _processes: u32) -> Result<(), String> {
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

    fn work(&self, settings: &Settings, _processes: u32) -> Work {
        let events = settings.count("events");
        Work {
            writes: match direction(settings) {
                Some("read") => Writes::Bytes(all(settings)),
                _ => Writes::UntilTime,
            },
            // Its files are zeros in every mode; it reads its own writes.
            content: Content::Constant,
            effort: events.map_or(Effort::Runtime, |events| {
                Effort::Bytes(events.saturating_mul(block_size(settings)))
            }),
            ..Work::default()
        }
    }

    fn lays_out(&self, settings: &Settings, _processes: u32, _room_bytes: u64) -> u64 {
        // A mode that only reads writes nothing else.
        if direction(settings) == Some("read") { 0 } else { all(settings) }
    }

    fn label(&self, settings: &Settings) -> String {
        let fsync = match settings.count("fsync_every") {
            Some(0) => ", fsync at the end",
            _ => ", fsync every {}",
        };
        let words = [
            ("total_size", ", {}"),
            ("files", ", {} files"),
            ("events", ", {} events"),
            ("direct", ", buffered"),
            ("fsync_every", fsync),
        ];
        let told = told(settings, ABOUT.parameters, &words);
        format!("sysbench {} {}{told}", mode(settings), ByteSize(block_size(settings)))
    }

    fn plan(&self, spec: &TrialSpec<'_>) -> Result<Script, String> {
        let settings = spec.settings;
        let folder = arg(folder_of(spec)?);
        check_room(spec, all(settings))?;
        let base = || {
            CommandLine::new(NAME)
                .arg("fileio")
                .arg(format!("--file-num={}", files(settings)))
                .arg(format!("--file-total-size={}", all(settings)))
                .in_folder(folder.clone())
        };
        let end = match settings.count("events") {
            Some(events) => vec![format!("--events={events}"), "--time=0".to_owned()],
            None => vec![format!("--time={}", spec.runtime_s.ceil().max(1.0))],
        };
        // 0 would mean the time of day; more than 31 bits are refused.
        let seed = spec.seed % u64::from(i32::MAX.unsigned_abs()) + 1;
        let run = base()
            .arg(format!("--file-block-size={}", block_size(settings)))
            .arg(format!("--file-test-mode={}", mode(settings)))
            .arg(format!("--file-fsync-freq={}", settings.count("fsync_every").unwrap_or(100)))
            .args(settings.flag("direct").then_some("--file-extra-flags=direct"))
            .args(end)
            .arg(format!("--threads={}", spec.processes))
            .arg(format!("--rand-seed={seed}"))
            .args(["--validate=off", "--percentile=95", "--histogram=on", "run"]);
        Ok(Script {
            prepare: vec![Step::Run(base().arg("prepare"))],
            measured: vec![run],
            clean_up: vec![Step::Run(base().arg("cleanup"))],
            ..Script::default()
        })
    }

    fn parse(&self, spec: &TrialSpec<'_>, run: &RunOutput) -> Result<Measured, ToolError> {
        let stdout = run.processes.first().map_or("", |process| process.stdout.as_str());
        output::measured(&output::parse_report(stdout)?, spec.settings, spec.processes)
    }
}

#[cfg(test)]
mod tests;
