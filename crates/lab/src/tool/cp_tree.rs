//! Copying a tree of many small files from one folder of the subject to another: it reads and
//! writes at once.
//!
//! Each process copies a tree of its own, which is put there before the page cache is dropped, so
//! that no process lives on what another one read. `--reflink=never`: since coreutils 9.0 cp would
//! otherwise share blocks on btrfs and XFS and leave the copying of others to the kernel, which
//! is another test. Published tests of this kind timed cp alone (`sync = false`).

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

pub(super) struct CpTree;

const NAME: &str = "cp-tree";

const PARAMETERS: &[Parameter] = &[
    or("256M", scaling(parameter("size", bytes_from(1 << 20), "bytes of a tree's files together"))),
    SYNC,
];

fn size(settings: &Settings) -> u64 {
    settings.size("size").unwrap_or(0)
}

fn cp_tree(from: &str, to: &str) -> CommandLine {
    CommandLine::new("cp").arg("-r").arg("--reflink=never").arg(from).arg(to)
}

impl Tool for CpTree {
    fn name(&self) -> &'static str {
        NAME
    }

    fn package(&self) -> &'static str {
        "coreutils"
    }

    fn about(&self) -> &'static str {
        "copying a tree of many small files within the subject"
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
        Writes::Bytes(together(size(settings), processes).saturating_mul(2))
    }

    fn content(&self, _settings: &Settings) -> Content {
        super::source::CONTENT_OF_TREE
    }

    fn effort(&self, settings: &Settings, processes: u32) -> Effort {
        Effort::Bytes(together(size(settings), processes).saturating_mul(2))
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
        vec![super::source::tree(size(settings))]
    }

    fn plan(&self, spec: &TrialSpec<'_>) -> Result<Script, String> {
        let folder = folder_of(spec)?;
        let tree = super::source::room_of_tree(size(spec.settings));
        check_room(spec, together(tree, spec.processes).saturating_mul(2))?;
        let data = super::source::tree(size(spec.settings));
        let source = arg(&super::source::path_of(spec.sources, &data));
        let mut script = Script { sync: spec.settings.flag("sync"), ..Script::default() };
        for process in 0..spec.processes {
            let (tree, copy) = (own(folder, "tree", process), own(folder, "copy", process));
            script.prepare.push(Step::Run(cp_tree(&source, &arg(&tree))));
            script.measured.push(cp_tree(&arg(&tree), &arg(&copy)));
            script.clean_up.extend([Step::Remove(tree), Step::Remove(copy)]);
        }
        Ok(script)
    }

    fn parse(&self, spec: &TrialSpec<'_>, run: &RunOutput) -> Result<Measured, ToolError> {
        let bytes = together(size(spec.settings), spec.processes);
        let mut measured = timed(NAME, run, Some(bytes))?;
        push(&mut measured, NAME, Metric::BytesRead, bytes as f64)?;
        push(&mut measured, NAME, Metric::BytesWritten, bytes as f64)?;
        Ok(measured)
    }
}

#[cfg(test)]
mod tests;
