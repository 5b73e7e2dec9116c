//! hdparm: `-t`, buffered reads from the start of a device for three seconds, and `-T`, repeated reads of the
//! same 2 MiB, which show the speed of the machine: from the page cache, or with `--direct` from the device's
//! cache.
//!
//! It accepts no limit: on a fast device it reads beyond the region, where the data may never have been
//! written.
//!
//! Its MB are 2^20 bytes. It flushes the device's buffers itself, which is possible for block devices only: on
//! a file it prints half a line and fails. A device that is read to its end within the three seconds is
//! measured up to there.

use std::os::unix::fs::FileTypeExt;

use super::parts::{arg, excerpt, malformed, number, push, told};
use super::{About, Effort, Place, RunOutput, Script, Tool, ToolError, TrialSpec, Version, Work};
use crate::command::{CommandLine, Target};
use crate::metric::{Measured, Metric};
use crate::settings::{Kind, Parameter, Settings};

pub(super) struct Hdparm;

const NAME: &str = "hdparm";

const ABOUT: About = About {
    name: NAME,
    program: NAME,
    package: "hdparm",
    summary: "reading from the start of a block device for three seconds, beyond the region if the device is \
              fast (hdparm -t, -T)",
    parameters: &[
        Parameter::new(
            "cached",
            Kind::Flag,
            "also read the same 2 MiB again and again: out of the page cache, or with direct out of \
             the device's (-T)",
        )
        .or("true"),
        Parameter::new("direct", Kind::Flag, "past the page cache (--direct)").or("false"),
    ],
    version_args: &["-V"],
    version: Version::After("hdparm v"),
};

const MIB: f64 = 1_048_576.0;

/// Size of one read; hdparm fails on a smaller device.
const PIECE: u64 = 2 << 20;

impl Tool for Hdparm {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn check(&self, _settings: &Settings, processes: u32) -> Result<(), String> {
        if processes == 1 {
            return Ok(());
        }
        Err("several hdparm would read the same bytes; set processes = 1".to_owned())
    }

    fn work(&self, settings: &Settings, _processes: u32) -> Work {
        Work {
            place: Place::Device,
            reads_raw: true,
            reads_past_region: true,
            // Three seconds of reading, two of cached reads, each with some settling.
            effort: Effort::Seconds(if settings.flag("cached") { 6.0 } else { 3.5 }),
            ..Work::default()
        }
    }

    fn label(&self, settings: &Settings) -> String {
        let told = told(settings, ABOUT.parameters, &[("direct", ", direct")]);
        format!("hdparm {}{told}", tests_of(settings))
    }

    fn plan(&self, spec: &TrialSpec<'_>) -> Result<Script, String> {
        let Target::Device(path) = spec.target else {
            return Err("hdparm reads block devices only".to_owned());
        };
        // A path that is absent now may exist when it runs; an existing file stays one.
        let file = std::fs::metadata(path).is_ok_and(|meta| !meta.file_type().is_block_device());
        if file {
            return Err(format!("hdparm reads block devices only, and {} is none", arg(path)));
        }
        if spec.region_bytes < PIECE {
            let bytes = spec.region_bytes;
            return Err(format!("hdparm reads pieces of 2 MiB, and there are {bytes} bytes"));
        }
        let direct = spec.settings.flag("direct").then_some("--direct");
        let command = CommandLine::new(NAME).arg(tests_of(spec.settings)).args(direct);
        Ok(Script { measured: vec![command.arg(arg(path))], ..Script::default() })
    }

    fn parse(&self, spec: &TrialSpec<'_>, run: &RunOutput) -> Result<Measured, ToolError> {
        let process = run.processes.first().ok_or(ToolError::Nothing { tool: NAME })?;
        // With status 0 it reports only reads that failed.
        if let Some(line) = process.stderr.lines().find(|line| line.contains("read(")) {
            return Err(ToolError::IoErrors { tool: NAME, reason: excerpt(line) });
        }
        let timing = |what: &str| {
            parse_timing(&process.stdout, what).ok_or_else(|| {
                let reason = format!("no timing of {what} reads in {}", excerpt(&process.stdout));
                malformed(NAME, reason)
            })
        };
        let (bytes, rate) = timing("disk")?;
        let mut measured = Measured::default();
        if rate <= 0.0 {
            return Err(ToolError::Nothing { tool: NAME });
        }
        push(&mut measured, NAME, Metric::Throughput, rate)?;
        push(&mut measured, NAME, Metric::BytesRead, bytes)?;
        if spec.settings.flag("cached") {
            let cached = match spec.settings.flag("direct") {
                true => Metric::DirectCachedThroughput,
                false => Metric::CachedThroughput,
            };
            push(&mut measured, NAME, cached, timing("cached")?.1)?;
        }
        Ok(measured)
    }
}

fn tests_of(settings: &Settings) -> &'static str {
    if settings.flag("cached") { "-tT" } else { "-t" }
}

/// Returns bytes, and bytes per second, which hdparm computes before it rounds the others: `Timing buffered
/// disk reads:  84 MB in  3.01 seconds =  27.90 MB/sec`; slow devices get kB/sec.
fn parse_timing(output: &str, what: &str) -> Option<(f64, f64)> {
    let heading = format!("{what} reads");
    let mut timings = output.lines().filter_map(|line| line.trim().split_once(':'));
    let (_, rest) =
        timings.find(|(name, _)| name.starts_with("Timing ") && name.ends_with(&heading))?;
    let (amount, rate) = rest.split_once('=')?;
    let (megabytes, _seconds) = amount.split_once(" MB in")?;
    let (rate, unit) = rate.trim().split_once(' ')?;
    let unit = match unit.trim() {
        "MB/sec" => MIB,
        "kB/sec" => 1024.0,
        _ => return None,
    };
    Some((number(megabytes)? * MIB, number(rate)? * unit))
}

#[cfg(test)]
mod tests;
