//! Random seeks: one small read at a time, anywhere on the subject, for a time.
//!
//! It is what the program `seeker` measures, with fio as the engine (`psync`, one request in
//! flight, past the page cache). Reads go to the first `region` bytes; a seek time of a disk is
//! that of the whole disk only if the region is.

use super::fio::{Ops, job, milliseconds, parse_jobs, totals, with_seed, with_target};
use super::parts::{BLOCK, or, parameter, round_down};
use super::{Content, Effort, Place, RunOutput, Script, Tool, ToolError, TrialSpec, Writes};
use crate::command::{CommandLine, ToolOutput};
use crate::metric::{Measured, Metric};
use crate::settings::{Parameter, Settings};
use braid_stack::ByteSize;

pub(super) struct Seek;

const NAME: &str = "seek";

const PARAMETERS: &[Parameter] = &[or(
    "4K",
    parameter(
        "block_size",
        BLOCK,
        "bytes read after a seek; less than 4K needs a device with such sectors",
    ),
)];

fn block_size(settings: &Settings) -> u64 {
    settings.size("block_size").unwrap_or(4096)
}

impl Tool for Seek {
    fn name(&self) -> &'static str {
        NAME
    }

    fn package(&self) -> &'static str {
        "fio"
    }

    fn about(&self) -> &'static str {
        "seeks a second and the mean time of one: single small reads at random (by fio)"
    }

    fn parameters(&self) -> &'static [Parameter] {
        PARAMETERS
    }

    fn version_command(&self) -> CommandLine {
        CommandLine::new("fio").arg("--version")
    }

    fn parse_version(&self, output: &ToolOutput) -> Result<String, ToolError> {
        super::fio::parse_version(NAME, output)
    }

    fn place(&self, _settings: &Settings) -> Place {
        Place::Device { nbd: true }
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

    fn effort(&self, _settings: &Settings, _processes: u32) -> Effort {
        Effort::Runtime
    }

    fn ramp_s(&self, asked_s: f64) -> f64 {
        asked_s
    }

    fn label(&self, settings: &Settings) -> String {
        format!("seek {}", ByteSize(block_size(settings)))
    }

    fn headline(&self, _settings: &Settings) -> Metric {
        Metric::SeekRate
    }

    fn plan(&self, spec: &TrialSpec<'_>) -> Result<Script, String> {
        let block = block_size(spec.settings);
        let size = round_down(spec.region_bytes, block);
        if size == 0 {
            return Err(format!("{} bytes do not hold {block} bytes", spec.region_bytes));
        }
        let mut command = with_target(job(), spec.target, "psync", true)
            .arg("--rw=randread")
            .arg(format!("--bs={block}"))
            .arg("--iodepth=1")
            .arg(format!("--size={size}"));
        if spec.processes > 1 {
            command = command.arg(format!("--numjobs={}", spec.processes));
        }
        command = with_seed(command, spec.seed)
            .arg("--norandommap=1")
            .arg("--time_based=1")
            .arg(format!("--runtime={}", milliseconds(spec.runtime_s)));
        if spec.ramp_s > 0.0 {
            command = command.arg(format!("--ramp_time={}", milliseconds(spec.ramp_s)));
        }
        let command = command.arg("--output-format=json+").arg("--eta=never");
        Ok(Script { measured: vec![command], ..Script::default() })
    }

    fn parse(&self, _spec: &TrialSpec<'_>, run: &RunOutput) -> Result<Measured, ToolError> {
        let reads = Ops { read: true, write: false };
        let mut measured = totals(NAME, reads, &parse_jobs(NAME, run)?)?;
        measured.samples.retain(|sample| sample.metric != Metric::Throughput);
        for sample in &mut measured.samples {
            sample.metric = match sample.metric {
                Metric::Iops => Metric::SeekRate,
                Metric::LatencyMean => Metric::SeekTime,
                metric => metric,
            };
        }
        Ok(measured)
    }
}

#[cfg(test)]
mod tests;
