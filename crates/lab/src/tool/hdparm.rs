//! hdparm: `-t`, buffered reads from the start of a device for three seconds, and `-T`, reads of
//! the same 2 MiB again and again, which say how fast the machine is beside it: out of the page
//! cache, or with `--direct` out of whatever the device keeps.
//!
//! It takes no limit: where a device is read faster than its region lasts, it reads on into what
//! nobody may have written.
//!
//! Its MB are 2^20 bytes. It flushes the device's buffers itself, which it can do for block
//! devices only: on a file it prints half a line and fails. A device that is read to its end
//! within the three seconds is measured as far as it goes.

use std::os::unix::fs::FileTypeExt;

use super::parts::{arg, excerpt, malformed, number, or, parameter, push};
use super::{Content, Effort, Place, RunOutput, Script, Tool, ToolError, TrialSpec, Writes};
use crate::command::{CommandLine, Target, ToolOutput};
use crate::metric::{Measured, Metric};
use crate::settings::{Kind, Parameter, Settings};

pub(super) struct Hdparm;

const NAME: &str = "hdparm";

const PARAMETERS: &[Parameter] = &[
    or(
        "true",
        parameter(
            "cached",
            Kind::Flag,
            "also read the same 2 MiB again and again: out of the page cache, or with direct out of \
             the device's (-T)",
        ),
    ),
    or("false", parameter("direct", Kind::Flag, "past the page cache (--direct)")),
];

const MIB: f64 = 1_048_576.0;

/// What it reads at once; it fails on a device that is smaller.
const PIECE: u64 = 2 << 20;

impl Tool for Hdparm {
    fn name(&self) -> &'static str {
        NAME
    }

    fn package(&self) -> &'static str {
        "hdparm"
    }

    fn about(&self) -> &'static str {
        "reading from the start of a block device for three seconds, on beyond the region if it gets \
         there (hdparm -t, -T)"
    }

    fn parameters(&self) -> &'static [Parameter] {
        PARAMETERS
    }

    fn version_command(&self) -> CommandLine {
        CommandLine::new(NAME).arg("-V")
    }

    fn parse_version(&self, output: &ToolOutput) -> Result<String, ToolError> {
        let word = output.stdout.trim();
        let number =
            word.strip_prefix("hdparm v").filter(|v| v.starts_with(|c: char| c.is_ascii_digit()));
        let number = number.filter(|number| !number.contains(char::is_whitespace));
        number
            .map(|number| format!("{NAME}-{number}"))
            .ok_or_else(|| malformed(NAME, format!("no version in {}", excerpt(word))))
    }

    fn check(&self, _settings: &Settings, processes: u32) -> Result<(), String> {
        if processes == 1 {
            return Ok(());
        }
        Err("several hdparm would read the same bytes; set processes = 1".to_owned())
    }

    fn place(&self, _settings: &Settings) -> Place {
        Place::Device { nbd: false }
    }

    fn writes(&self, _settings: &Settings, _processes: u32) -> Writes {
        Writes::Nothing
    }

    fn reads_raw(&self, _settings: &Settings) -> bool {
        true
    }

    fn content(&self, _settings: &Settings) -> Content {
        Content::Random
    }

    fn effort(&self, settings: &Settings, _processes: u32) -> Effort {
        // Three seconds of reading, two of cached reads, each with some settling.
        Effort::Seconds(if settings.flag("cached") { 6.0 } else { 3.5 })
    }

    fn reads_past_region(&self) -> bool {
        true
    }

    fn label(&self, settings: &Settings) -> String {
        let mut label = if settings.flag("cached") { "hdparm -tT" } else { "hdparm -t" }.to_owned();
        if settings.flag("direct") {
            label.push_str(", direct");
        }
        label
    }

    fn headline(&self, _settings: &Settings) -> Metric {
        Metric::Throughput
    }

    fn plan(&self, spec: &TrialSpec<'_>) -> Result<Script, String> {
        let Target::Device(path) = spec.target else {
            return Err("hdparm reads block devices only".to_owned());
        };
        // What is not there now may be there when it runs; what is there and is a file stays one.
        let file = std::fs::metadata(path).is_ok_and(|meta| !meta.file_type().is_block_device());
        if file {
            return Err(format!("hdparm reads block devices only, and {} is none", arg(path)));
        }
        if spec.region_bytes < PIECE {
            return Err(format!(
                "hdparm reads pieces of 2 MiB, and there are {} bytes",
                spec.region_bytes
            ));
        }
        let test = if spec.settings.flag("cached") { "-tT" } else { "-t" };
        let mut command = CommandLine::new(NAME).arg(test);
        if spec.settings.flag("direct") {
            command = command.arg("--direct");
        }
        Ok(Script { measured: vec![command.arg(arg(path))], ..Script::default() })
    }

    fn parse(&self, spec: &TrialSpec<'_>, run: &RunOutput) -> Result<Measured, ToolError> {
        let process = run.processes.first().ok_or(ToolError::Nothing { tool: NAME })?;
        // With status 0 it complains of nothing but reads that failed.
        if let Some(line) = process.stderr.lines().find(|line| line.contains("read(")) {
            return Err(ToolError::IoErrors { tool: NAME, reason: excerpt(line) });
        }
        let timing = |what: &str| {
            parse_timing(&process.stdout, what).ok_or_else(|| {
                let reason = format!("no timing of {what} reads in {}", excerpt(&process.stdout));
                malformed(NAME, reason)
            })
        };
        let disk = timing("disk")?;
        let mut measured = Measured::default();
        if disk.rate <= 0.0 {
            return Err(ToolError::Nothing { tool: NAME });
        }
        push(&mut measured, NAME, Metric::Throughput, disk.rate)?;
        push(&mut measured, NAME, Metric::BytesRead, disk.bytes)?;
        if spec.settings.flag("cached") {
            let cached = match spec.settings.flag("direct") {
                true => Metric::DirectCachedThroughput,
                false => Metric::CachedThroughput,
            };
            push(&mut measured, NAME, cached, timing("cached")?.rate)?;
        }
        Ok(measured)
    }
}

struct Timing {
    bytes: f64,
    /// Bytes per second; hdparm works it out before it rounds the other two.
    rate: f64,
}

/// `Timing buffered disk reads:  84 MB in  3.01 seconds =  27.90 MB/sec`; slow devices get kB/sec.
fn parse_timing(output: &str, what: &str) -> Option<Timing> {
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
    Some(Timing { bytes: number(megabytes)? * MIB, rate: number(rate)? * unit })
}

#[cfg(test)]
mod tests;
