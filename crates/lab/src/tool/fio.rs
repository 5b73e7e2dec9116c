//! fio: asynchronous requests of one kind at a fixed depth.
//!
//! ```text
//! settings ──command──> fio ──> json+ ──output──> numbers, distributions
//!                        └────> logs ───series──> courses over time
//! ```
//!
//! Files and block devices go through `libaio`, NBD through fio's own `nbd` engine (libnbd), so
//! both sides of a comparison are driven by one program. In a folder the work is done on one file
//! of the region's size, which is written before.
//!
//! Choices that shape the numbers: a trial that writes ends with a flush that counts
//! (`--end_fsync=1`), so a server's memory does not pass for a disk; random offsets are drawn
//! with replacement (`--norandommap=1`), so fio keeps no map; offsets and contents follow the
//! trial's seed; every write has bytes of its own (`--refill_buffers=1`), of which a core makes
//! some 4 GB a second; fio never creates a file. Processes are threads of one fio (`--thread=1`),
//! because forked jobs leave the process group and would survive it.

use super::parts::{
    BLOCK, check_set, excerpt, malformed, or, parameter, round_down, scaling, unusual,
};
use super::{Content, Effort, Place, RunOutput, Script, Tool, ToolError, TrialSpec, Writes};
use crate::command::{CommandLine, ToolOutput};
use crate::metric::{Measured, Metric};
use crate::settings::{Kind, Parameter, Settings};
use braid_stack::ByteSize;

mod command;
mod output;
mod series;

use output::{parse_jobs, totals};

pub(super) struct Fio;

const NAME: &str = "fio";
const PATTERNS: &[&str] = &["seq", "rand"];
const OPS: &[&str] = &["read", "write", "mixed"];
const LATENCIES: &[&str] = &["max", "mean"];

/// From here on a request counts as large: fewer of them are kept in flight, and the rate is told
/// in bytes.
const LARGE: u64 = 256 << 10;

const PARAMETERS: &[Parameter] = &[
    parameter("pattern", Kind::Choice(PATTERNS), "order of the offsets"),
    parameter("op", Kind::Choice(OPS), "direction"),
    or(
        "70",
        parameter("read_percent", Kind::Count { min: 1, max: 99 }, "reads among mixed requests"),
    ),
    or("4K", parameter("block_size", BLOCK, "bytes of a request")),
    parameter(
        "iodepth",
        Kind::Count { min: 1, max: 4096 },
        "requests in flight of each process; unset: 8 from 256K on, else 32",
    ),
    or("true", parameter("direct", Kind::Flag, "past the page cache; NBD never goes through it")),
    or(
        "0",
        parameter(
            "flush_every",
            Kind::Count { min: 0, max: 1 << 20 },
            "a flush after so many writes; 0: only at the end",
        ),
    ),
    or(
        "0",
        parameter(
            "compressible",
            Kind::Count { min: 0, max: 100 },
            "percent of each written block that compresses away; at 0 no two blocks are alike",
        ),
    ),
    or(
        "0",
        scaling(parameter(
            "series_ms",
            Kind::Count { min: 0, max: 3_600_000 },
            "length of the slices of the course over time; 0: none",
        )),
    ),
    or(
        "max",
        parameter(
            "series_latency",
            Kind::Choice(LATENCIES),
            "which latency of a slice is kept: the longest shows stalls, the mean follows the rate",
        ),
    ),
];

/// What a trial moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ops {
    pub(super) read: bool,
    pub(super) write: bool,
}

fn ops(settings: &Settings) -> Ops {
    let op = settings.word("op");
    Ops { read: op != "write", write: op != "read" }
}

fn block_size(settings: &Settings) -> u64 {
    settings.size("block_size").unwrap_or(4096)
}

fn iodepth(settings: &Settings) -> u64 {
    let usual = if block_size(settings) >= LARGE { 8 } else { 32 };
    settings.count("iodepth").unwrap_or(usual)
}

/// The length of a time slice, if a course over time is wanted.
fn series_ms(settings: &Settings) -> Option<u64> {
    settings.count("series_ms").filter(|ms| *ms > 0)
}

impl Tool for Fio {
    fn name(&self) -> &'static str {
        NAME
    }

    fn package(&self) -> &'static str {
        "fio"
    }

    fn about(&self) -> &'static str {
        "requests of one size, in sequence or at random, at a fixed depth, for a time; `tool = \"seek\"` \
         is its random reads at depth 1"
    }

    fn parameters(&self) -> &'static [Parameter] {
        PARAMETERS
    }

    fn version_command(&self) -> CommandLine {
        CommandLine::new(NAME).arg("--version")
    }

    fn parse_version(&self, output: &ToolOutput) -> Result<String, ToolError> {
        let word = output.stdout.trim();
        let numbered =
            word.strip_prefix("fio-").is_some_and(|v| v.starts_with(|c: char| c.is_ascii_digit()));
        if numbered && word.lines().count() == 1 {
            return Ok(word.to_owned());
        }
        Err(malformed(NAME, format!("no version in {}", excerpt(word))))
    }

    fn check(&self, settings: &Settings, _processes: u32) -> Result<(), String> {
        check_set(settings, "pattern", PATTERNS)?;
        check_set(settings, "op", OPS)?;
        for name in ["flush_every", "compressible"] {
            if settings.word("op") == "read" && settings.count(name).unwrap_or(0) > 0 {
                return Err(format!("{name} is about writes; leave it out with op = \"read\""));
            }
        }
        Ok(())
    }

    fn place(&self, _settings: &Settings) -> Place {
        Place::Either { nbd: true }
    }

    fn writes(&self, settings: &Settings, _processes: u32) -> Writes {
        if ops(settings).write { Writes::UntilTime } else { Writes::Nothing }
    }

    fn lays_out(&self, settings: &Settings, _processes: u32, room_bytes: u64) -> u64 {
        round_down(room_bytes, block_size(settings))
    }

    fn reads_raw(&self, settings: &Settings) -> bool {
        ops(settings).read
    }

    fn content(&self, settings: &Settings) -> Content {
        match settings.count("compressible").filter(|_| ops(settings).write) {
            None | Some(0) => Content::Random,
            Some(100..) => Content::Constant,
            Some(percent) => Content::Compressible(percent),
        }
    }

    fn effort(&self, _settings: &Settings, _processes: u32) -> Effort {
        Effort::Runtime
    }

    fn ramp_s(&self, asked_s: f64) -> f64 {
        asked_s
    }

    fn label(&self, settings: &Settings) -> String {
        let order = if settings.word("pattern") == "rand" { "random" } else { "sequential" };
        let op = match settings.word("op") {
            "mixed" => {
                let reads = settings.count("read_percent").unwrap_or(70);
                format!("mixed {reads}/{}", 100_u64.saturating_sub(reads))
            }
            op => op.to_owned(),
        };
        let size = ByteSize(block_size(settings));
        let mut label = format!("{order} {op} {size}, depth {}", iodepth(settings));
        if !settings.flag("direct") {
            label.push_str(", buffered");
        }
        // What has no effect here is told as well where it was set: settings that differ have
        // labels that differ.
        for (name, idle) in [
            ("read_percent", settings.word("op") != "mixed"),
            ("series_latency", series_ms(settings).is_none()),
        ] {
            if let Some(value) = unusual(settings, PARAMETERS, name).filter(|_| idle) {
                label.push_str(&format!(", {name} {value}"));
            }
        }
        let positive = |name: &str| settings.count(name).filter(|count| *count > 0);
        if let Some(count) = positive("flush_every") {
            label.push_str(&format!(", flush every {count}"));
        }
        if let Some(percent) = positive("compressible") {
            label.push_str(&format!(", {percent} % compressible"));
        }
        if let Some(ms) = series_ms(settings) {
            let latency = settings.word("series_latency");
            label.push_str(&format!(", {latency} latency by {ms} ms"));
        }
        label
    }

    fn headline(&self, settings: &Settings) -> Metric {
        let small = block_size(settings) < LARGE;
        if settings.word("pattern") == "rand" && small { Metric::Iops } else { Metric::Throughput }
    }

    fn plan(&self, spec: &TrialSpec<'_>) -> Result<Script, String> {
        command::plan(spec)
    }

    fn parse(&self, spec: &TrialSpec<'_>, run: &RunOutput) -> Result<Measured, ToolError> {
        let jobs = parse_jobs(run)?;
        let mut measured = totals(ops(spec.settings), &jobs)?;
        if let Some(slice_ms) = series_ms(spec.settings) {
            let longest = spec.settings.word("series_latency") == "max";
            measured.series = series::parse_series(&run.files, slice_ms, longest)?;
        }
        Ok(measured)
    }
}

#[cfg(test)]
mod tests;
