//! Reading files from the subject with `cp FILE /dev/null`.
//!
//! cp does read: coreutils 9.1 tries `copy_file_range`, is told that /dev/null cannot do it, and
//! reads the file in requests of 128 KiB (seen with strace); `--reflink=never` saves it the
//! attempt and keeps another version from being cleverer. The file holds no hole, which cp would
//! step over. Each process reads a file of its own, written before the page cache is dropped.
//! Nothing is written in the measured time, so there is no `sync` here.

use super::parts::{
    arg, bytes_from, check_room, folder_of, gnu_version, or, own, parameter, push, scaling, timed,
    together, unusual,
};
use super::{Content, Effort, Place, RunOutput, Script, Tool, ToolError, TrialSpec, Writes};
use crate::command::{CommandLine, Step, ToolOutput};
use crate::metric::{Measured, Metric};
use crate::settings::{Parameter, Settings};

pub(super) struct CpRead;

const NAME: &str = "cp-read";

const PARAMETERS: &[Parameter] =
    &[or("1G", scaling(parameter("size", bytes_from(4096), "bytes of each process's file")))];

fn size(settings: &Settings) -> u64 {
    settings.size("size").unwrap_or(0)
}

impl Tool for CpRead {
    fn name(&self) -> &'static str {
        NAME
    }

    fn package(&self) -> &'static str {
        "coreutils"
    }

    fn about(&self) -> &'static str {
        "reading a file of incompressible bytes (cp FILE /dev/null)"
    }

    fn parameters(&self) -> &'static [Parameter] {
        PARAMETERS
    }

    fn version_command(&self) -> CommandLine {
        CommandLine::new("cp").arg("--version")
    }

    fn parse_version(&self, output: &ToolOutput) -> Result<String, ToolError> {
        gnu_version(NAME, output)
    }

    fn place(&self, _settings: &Settings) -> Place {
        Place::Folder
    }

    fn writes(&self, settings: &Settings, processes: u32) -> Writes {
        Writes::Bytes(together(size(settings), processes))
    }

    fn content(&self, _settings: &Settings) -> Content {
        Content::Random
    }

    fn effort(&self, settings: &Settings, processes: u32) -> Effort {
        Effort::Bytes(together(size(settings), processes))
    }

    fn label(&self, settings: &Settings) -> String {
        let mut label = NAME.to_owned();
        if let Some(size) = unusual(settings, PARAMETERS, "size") {
            label.push_str(&format!(" {size}"));
        }
        label
    }

    fn headline(&self, _settings: &Settings) -> Metric {
        Metric::Seconds
    }

    fn plan(&self, spec: &TrialSpec<'_>) -> Result<Script, String> {
        let folder = folder_of(spec)?;
        let bytes = size(spec.settings);
        check_room(spec, together(bytes, spec.processes))?;
        let mut script = Script::default();
        for process in 0..spec.processes {
            let path = own(folder, "file", process);
            let seed = spec.seed.wrapping_add(u64::from(process));
            let cp = CommandLine::new("cp").arg("--reflink=never");
            script.measured.push(cp.arg(arg(&path)).arg("/dev/null"));
            script.prepare.push(Step::MakeFile { path: path.clone(), bytes, seed });
            script.clean_up.push(Step::Remove(path));
        }
        Ok(script)
    }

    fn parse(&self, spec: &TrialSpec<'_>, run: &RunOutput) -> Result<Measured, ToolError> {
        let bytes = together(size(spec.settings), spec.processes);
        let mut measured = timed(NAME, run, Some(bytes))?;
        push(&mut measured, NAME, Metric::BytesRead, bytes as f64)?;
        Ok(measured)
    }
}

#[cfg(test)]
mod tests;
