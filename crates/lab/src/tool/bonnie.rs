//! bonnie++ 2: a file written and read in three ways, seeks, and many small files.
//!
//! Each process is a bonnie++ of its own in a folder of its own. Rates of several are added, of
//! waits the longest counts, and a phase that one of them could not time has no number.
//!
//! Traps of bonnie++ 2.00: a phase of less than half a second is `+++++`; per-character phases do
//! only a part of the file, unlike bonnie++ 1, so total times of the two do not compare; a size
//! below twice the memory is refused, unless it is told that there is less memory (`-r`), which
//! is done here; as root it wants `-u`.

use super::parts::{
    arg, bytes_from, check_room, excerpt, folder_of, malformed, or, own, parameter, push,
    push_processes, scaling, together, unusual,
};
use super::{Content, Effort, Place, RunOutput, Script, Tool, ToolError, TrialSpec, Writes};
use crate::command::{CommandLine, Step, ToolOutput};
use crate::metric::{Measured, Metric};
use crate::settings::{Kind, Parameter, Settings};
use braid_stack::ByteSize;

mod output;

pub(super) struct Bonnie;

const NAME: &str = "bonnie++";

const MIB: u64 = 1 << 20;

const PARAMETERS: &[Parameter] = &[
    or("1G", scaling(parameter("size", bytes_from(MIB), "bytes of the file of each process"))),
    or(
        "8K",
        parameter(
            "chunk",
            Kind::Size { min: 512, max: MIB, unit: 512 },
            "bytes of a request of the block phases",
        ),
    ),
    // It scales with the size that it is held against.
    scaling(parameter(
        "ram",
        Kind::Size { min: 0, max: 1 << 50, unit: MIB },
        "memory it is told of, at most half the size; unset: half the size",
    )),
    or(
        "16",
        scaling(parameter(
            "files",
            Kind::Count { min: 0, max: 1 << 16 },
            "small files of each process, in units of 1024; 0: no phases of files",
        )),
    ),
    or("true", parameter("per_char", Kind::Flag, "also the phases per character")),
];

fn size(settings: &Settings) -> u64 {
    settings.size("size").unwrap_or(0)
}

fn ram(settings: &Settings) -> u64 {
    settings.size("ram").unwrap_or(size(settings) / 2)
}

impl Tool for Bonnie {
    fn name(&self) -> &'static str {
        "bonnie"
    }

    fn package(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "a large file written, rewritten, read and sought in, then many small ones (bonnie++)"
    }

    fn parameters(&self) -> &'static [Parameter] {
        PARAMETERS
    }

    /// Without a folder it prints its usage, with the version, and fails.
    fn version_command(&self) -> CommandLine {
        CommandLine::new(NAME)
    }

    fn parse_version(&self, output: &ToolOutput) -> Result<String, ToolError> {
        let lines = output.stderr.lines().chain(output.stdout.lines());
        let mut versions = lines.filter_map(|line| line.trim().strip_prefix("Version: "));
        let version = versions.find(|version| version.starts_with(|c: char| c.is_ascii_digit()));
        version.map(|version| format!("{NAME}-{}", version.trim())).ok_or_else(|| {
            malformed(NAME, format!("no \"Version:\" in {}", excerpt(&output.stderr)))
        })
    }

    fn check(&self, settings: &Settings, _processes: u32) -> Result<(), String> {
        let (ram, size) = (ram(settings), size(settings));
        if ram > size / 2 {
            return Err(format!(
                "ram is {} and size {}, but bonnie++ wants a size of at least twice ram; raise \
                 size or lower ram",
                ByteSize(ram),
                ByteSize(size)
            ));
        }
        Ok(())
    }

    fn place(&self, _settings: &Settings) -> Place {
        Place::Folder
    }

    fn writes(&self, settings: &Settings, processes: u32) -> Writes {
        // Per character (a part), in blocks, and again when it rewrites; the small files are empty.
        Writes::Bytes(together(size(settings).saturating_mul(3), processes))
    }

    /// It writes the same few bytes over and over.
    fn content(&self, _settings: &Settings) -> Content {
        Content::Constant
    }

    fn effort(&self, settings: &Settings, processes: u32) -> Effort {
        // Written, read and written, read.
        Effort::Bytes(together(size(settings).saturating_mul(4), processes))
    }

    fn label(&self, settings: &Settings) -> String {
        let mut label = format!("bonnie++ {}", ByteSize(size(settings)));
        let unusual = |name| unusual(settings, PARAMETERS, name);
        if let Some(chunk) = unusual("chunk") {
            label.push_str(&format!(", chunk {chunk}"));
        }
        if let Some(files) = unusual("files") {
            label.push_str(&format!(", {files}x1024 files"));
        }
        if let Some(ram) = unusual("ram") {
            label.push_str(&format!(", ram {ram}"));
        }
        if !settings.flag("per_char") {
            label.push_str(", blocks only");
        }
        label
    }

    fn headline(&self, _settings: &Settings) -> Metric {
        Metric::Seconds
    }

    fn plan(&self, spec: &TrialSpec<'_>) -> Result<Script, String> {
        let folder = folder_of(spec)?;
        check_room(spec, together(size(spec.settings), spec.processes))?;
        let mut script = Script::default();
        for process in 0..spec.processes {
            let own = own(folder, "bonnie", process);
            script.prepare.push(Step::MakeFolder(own.clone()));
            script.measured.push(command(spec, &arg(&own), process));
            script.clean_up.push(Step::Remove(own));
        }
        Ok(script)
    }

    fn parse(&self, _spec: &TrialSpec<'_>, run: &RunOutput) -> Result<Measured, ToolError> {
        let mut reports = Vec::new();
        for process in &run.processes {
            reports.push(output::parse_csv(&process.stdout)?);
        }
        if reports.is_empty() {
            return Err(ToolError::Nothing { tool: NAME });
        }
        let mut measured = Measured::default();
        push(&mut measured, NAME, Metric::Seconds, run.wall_s)?;
        for (metric, value) in output::merge(&reports) {
            push(&mut measured, NAME, metric, value)?;
        }
        let times: Vec<f64> = run.processes.iter().map(|process| process.wall_s).collect();
        push_processes(&mut measured, &times);
        Ok(measured)
    }
}

fn command(spec: &TrialSpec<'_>, folder: &str, process: u32) -> CommandLine {
    let settings = spec.settings;
    let chunk = settings.size("chunk").unwrap_or(8 << 10);
    let command = CommandLine::new(NAME)
        .arg("-d")
        .arg(folder)
        .arg("-s")
        .arg(format!("{}:{chunk}", size(settings) / MIB))
        .arg("-r")
        .arg((ram(settings) / MIB).to_string())
        .arg("-n")
        .arg(settings.count("files").unwrap_or(16).to_string())
        .arg("-u")
        .arg("root")
        .arg("-z")
        .arg((spec.seed.wrapping_add(u64::from(process)) % (1 << 31)).to_string())
        .arg("-m")
        .arg("lab")
        .arg("-q");
    if settings.flag("per_char") { command } else { command.arg("-f") }
}

#[cfg(test)]
mod tests;
