//! Copying one file out of the page cache onto the subject: writing through the cache, with a
//! source that costs nothing.
//!
//! The file lies beside the subject and is read into the page cache before. Published tests of
//! this kind timed cp alone (`sync = false`); with less to copy than the memory holds, that says
//! more about the memory than about the subject. `--reflink=never` as for `cp-tree`.

use super::parts::{
    SYNC, arg, bytes_from, check_room, folder_of, gnu_version, or, own, parameter, push, scaling,
    timed, together, unusual,
};
use super::{
    Content, Effort, Place, RunOutput, Script, SourceData, Tool, ToolError, TrialSpec, Writes,
};
use crate::command::{CommandLine, Step, ToolOutput};
use crate::metric::{Measured, Metric};
use crate::settings::{Parameter, Settings};

pub(super) struct CpCached;

const NAME: &str = "cp-cached";

const PARAMETERS: &[Parameter] =
    &[or("256M", scaling(parameter("size", bytes_from(4096), "bytes of the file"))), SYNC];

fn size(settings: &Settings) -> u64 {
    settings.size("size").unwrap_or(0)
}

impl Tool for CpCached {
    fn name(&self) -> &'static str {
        NAME
    }

    fn package(&self) -> &'static str {
        "coreutils"
    }

    fn about(&self) -> &'static str {
        "copying a file of incompressible bytes out of the page cache"
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
        if !settings.flag("sync") {
            label.push_str(", no sync");
        }
        label
    }

    fn headline(&self, _settings: &Settings) -> Metric {
        Metric::Seconds
    }

    fn sources(&self, settings: &Settings) -> Vec<SourceData> {
        vec![super::source::random_file(size(settings))]
    }

    fn plan(&self, spec: &TrialSpec<'_>) -> Result<Script, String> {
        let folder = folder_of(spec)?;
        check_room(spec, together(size(spec.settings), spec.processes))?;
        let data = super::source::random_file(size(spec.settings));
        let source = super::source::path_of(spec.sources, &data);
        let mut script = Script {
            warm: vec![Step::ReadAll(source.clone())],
            sync: spec.settings.flag("sync"),
            ..Script::default()
        };
        for process in 0..spec.processes {
            let copy = own(folder, "copy", process);
            let cp = CommandLine::new("cp").arg("--reflink=never");
            script.measured.push(cp.arg(arg(&source)).arg(arg(&copy)));
            script.clean_up.push(Step::Remove(copy));
        }
        Ok(script)
    }

    fn parse(&self, spec: &TrialSpec<'_>, run: &RunOutput) -> Result<Measured, ToolError> {
        let bytes = together(size(spec.settings), spec.processes);
        let mut measured = timed(NAME, run, Some(bytes))?;
        push(&mut measured, NAME, Metric::BytesWritten, bytes as f64)?;
        Ok(measured)
    }
}

#[cfg(test)]
mod tests;
