//! Support for the tools' tests: trials and outputs without a runner.

use std::path::Path;

use crate::command::{Exit, Target, ToolOutput};
use crate::settings::{Settings, Value};
use crate::tool::{RunOutput, Script, Tool, TrialSpec};

/// Returns the standard output of a program that ended well.
pub(in crate::tool) fn output(stdout: &str) -> ToolOutput {
    ToolOutput {
        exit: Exit::Code(0),
        stdout: stdout.to_owned(),
        stderr: String::new(),
        wall_s: 1.0,
    }
}

/// Returns a run of programs, each with its wall time.
pub(in crate::tool) fn run_of(processes: Vec<ToolOutput>) -> RunOutput {
    let wall_s = processes.iter().map(|process| process.wall_s).fold(0.0, f64::max);
    RunOutput { processes, wall_s, files: std::collections::BTreeMap::new() }
}

/// Returns a run of programs with times only.
pub(in crate::tool) fn run_times(times: &[f64]) -> RunOutput {
    run_of(times.iter().map(|&wall_s| ToolOutput { wall_s, ..output("") }).collect())
}

/// Returns values set over a tool's defaults; values are spelt as in a campaign.
pub(in crate::tool) fn settings(tool: &dyn Tool, values: &str) -> Settings {
    let table: toml::Table = values.parse().unwrap();
    let mut settings = Settings::defaults(tool.parameters());
    for (name, value) in table {
        let parameter = tool.parameters().iter().find(|p| p.name == name).unwrap();
        let value: Value = parameter.check(&value).unwrap();
        settings = settings.with(&name, value);
    }
    settings
}

/// Returns a trial with a region of 1 MiB, 1 s, no ramp, seed 7.
pub(in crate::tool) fn trial<'a>(
    settings: &'a Settings,
    target: &'a Target,
    processes: u32,
) -> TrialSpec<'a> {
    TrialSpec {
        settings,
        target,
        processes,
        region_bytes: 1 << 20,
        room_bytes: 1 << 20,
        runtime_s: 1.0,
        ramp_s: 0.0,
        seed: 7,
        scratch: Path::new("/scratch"),
        sources: Path::new("/src"),
    }
}

/// Returns the measured commands of a plan, one per line.
pub(in crate::tool) fn commands(script: &Script) -> String {
    let lines: Vec<String> = script.measured.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

/// Returns a raw device.
pub(in crate::tool) fn device() -> Target {
    Target::Device("/dev/sdx".into())
}

/// Returns a folder on the subject.
pub(in crate::tool) fn folder() -> Target {
    Target::Folder("/mnt/t".into())
}

/// Returns the value of a metric.
pub(in crate::tool) fn value(
    measured: &crate::metric::Measured,
    metric: crate::metric::Metric,
) -> f64 {
    measured.get(metric).unwrap_or_else(|| panic!("{metric} is missing in {measured:?}"))
}

/// Returns a text with the byte at `at` replaced; still text.
pub(in crate::tool) fn changed(text: &str, at: usize, byte: u8) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let at = at % bytes.len().max(1);
    bytes[at] = byte;
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns all samples as `name value`, in order.
pub(in crate::tool) fn listed(measured: &crate::metric::Measured) -> Vec<(&'static str, f64)> {
    measured.samples.iter().map(|sample| (sample.metric.name(), sample.value)).collect()
}
