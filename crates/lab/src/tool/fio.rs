//! fio: asynchronous requests of one kind at a fixed depth.
//!
//! ```text
//! settings ──command──> fio ──> json+ ──output──> numbers, distributions
//!                        └────> logs ───series──> courses over time
//! ```
//!
//! Files and block devices use `libaio`, NBD uses fio's own `nbd` engine (libnbd), so both sides of a
//! comparison are driven by one program. In a folder fio works on one file of the region's size, which is
//! written before.
//!
//! Choices that shape the numbers: a trial that writes ends with a flush that counts (`--end_fsync=1`), so a
//! server's memory does not count as a disk; random offsets are drawn with replacement (`--norandommap=1`), so
//! fio keeps no map; offsets and contents follow the trial's seed; every write has bytes of its own
//! (`--refill_buffers=1`), of which a core makes some 4 GB a second; fio never creates a file. Processes are
//! threads of one fio (`--thread=1`), because forked jobs leave the process group and would survive it.
//! [`FioJobs`] takes a job file instead.

use super::parts::{round_down, told};
use super::{
    About, Content, Place, RunOutput, Script, Tool, ToolError, TrialSpec, Version, Work, Writes,
};
use crate::metric::{Measured, Metric};
use crate::settings::{Kind, Parameter, Settings};
use braid_stack::ByteSize;

mod command;
mod jobs;
mod output;
mod series;

pub(super) use jobs::FioJobs;
use output::{parse_jobs, totals};

pub(super) struct Fio;

const NAME: &str = "fio";

/// Smallest size of a large request: fewer of them are kept in flight, and the rate is reported in bytes.
const LARGE: u64 = 256 << 10;

const ABOUT: About = About {
    name: NAME,
    program: NAME,
    package: "fio",
    summary: "requests of one size, in sequence or at random, at a fixed depth, for a time; `tool = \"seek\"` \
              is its random reads at depth 1",
    parameters: &[
        Parameter::new("pattern", Kind::Choice(&["seq", "rand"]), "order of the offsets"),
        Parameter::new("op", Kind::Choice(&["read", "write", "mixed"]), "direction"),
        Parameter::new("read_percent", Kind::count(1, 99), "reads among mixed requests").or("70"),
        Parameter::new("block_size", Kind::BLOCK, "bytes of a request").or("4K"),
        Parameter::new(
            "iodepth",
            Kind::count(1, 4096),
            "requests in flight of each process; unset: 8 from 256K on, else 32",
        ),
        Parameter::new("direct", Kind::Flag, "past the page cache; NBD never goes through it")
            .or("true"),
        Parameter::new(
            "flush_every",
            Kind::count(0, 1 << 20),
            "a flush after so many writes; 0: only at the end",
        )
        .or("0"),
        Parameter::new(
            "compressible",
            Kind::count(0, 100),
            "percent of each written block that compresses away; at 0 no two blocks are alike",
        )
        .or("0"),
        Parameter::new(
            "series_ms",
            Kind::count(0, 3_600_000),
            "length of the slices of the course over time, with the longest latency of each; 0: none",
        )
        .or("0")
        .scaling(),
    ],
    version_args: &["--version"],
    version: Version::After("fio-"),
};

/// The directions of a trial.
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

fn read_percent(settings: &Settings) -> u64 {
    settings.count("read_percent").unwrap_or(70)
}

/// Returns a count that 0 switches off.
fn positive(settings: &Settings, name: &str) -> Option<u64> {
    settings.count(name).filter(|count| *count > 0)
}

/// Returns the length of a time slice, if a course over time is wanted.
fn series_ms(settings: &Settings) -> Option<u64> {
    positive(settings, "series_ms")
}

impl Tool for Fio {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn check(&self, settings: &Settings, _processes: u32) -> Result<(), String> {
        for name in ["flush_every", "compressible"] {
            if !ops(settings).write && positive(settings, name).is_some() {
                return Err(format!("{name} is about writes; leave it out with op = \"read\""));
            }
        }
        Ok(())
    }

    fn work(&self, settings: &Settings, _processes: u32) -> Work {
        let Ops { read, write } = ops(settings);
        let small = settings.word("pattern") == "rand" && block_size(settings) < LARGE;
        Work {
            place: Place::Either,
            speaks_nbd: true,
            writes: if write { Writes::UntilTime } else { Writes::Nothing },
            content: match positive(settings, "compressible").filter(|_| write) {
                None => Content::Random,
                Some(100..) => Content::Constant,
                Some(percent) => Content::Compressible(percent),
            },
            reads_raw: read,
            headline: if small { Metric::Iops } else { Metric::Throughput },
            ..Work::default()
        }
    }

    fn lays_out(&self, settings: &Settings, _processes: u32, room_bytes: u64) -> u64 {
        round_down(room_bytes, block_size(settings))
    }

    fn ramp_s(&self, asked_s: f64) -> f64 {
        asked_s
    }

    fn label(&self, settings: &Settings) -> String {
        let order = if settings.word("pattern") == "rand" { "random" } else { "sequential" };
        let mixed = settings.word("op") == "mixed";
        let op = if mixed {
            let reads = read_percent(settings);
            format!("mixed {reads}/{}", 100_u64.saturating_sub(reads))
        } else {
            settings.word("op").to_owned()
        };
        let words = [
            ("direct", ", buffered"),
            // Part of the label even without effect: different settings need different labels.
            ("read_percent", if mixed { "" } else { ", read_percent {}" }),
            ("flush_every", ", flush every {}"),
            ("compressible", ", {} % compressible"),
            ("series_ms", ", max latency by {} ms"),
        ];
        let told = told(settings, ABOUT.parameters, &words);
        let (size, depth) = (ByteSize(block_size(settings)), iodepth(settings));
        format!("{order} {op} {size}, depth {depth}{told}")
    }

    fn plan(&self, spec: &TrialSpec<'_>) -> Result<Script, String> {
        command::plan(spec)
    }

    fn parse(&self, spec: &TrialSpec<'_>, run: &RunOutput) -> Result<Measured, ToolError> {
        let jobs = parse_jobs(run)?;
        let mut measured = totals(ops(spec.settings), &jobs)?;
        if let Some(slice_ms) = series_ms(spec.settings) {
            measured.series = series::parse_series(&run.files, slice_ms)?;
        }
        Ok(measured)
    }
}

#[cfg(test)]
mod tests;
