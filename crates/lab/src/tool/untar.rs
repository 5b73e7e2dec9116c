//! Unpacking a tar archive onto the subject: many small files made at once.
//!
//! The archive lies beside the subject and is read into the page cache before, so that only
//! writing is measured. Each process unpacks it into a folder of its own. Published tests of this
//! kind timed tar alone, without the write-back (`sync = false`).

use std::path::{Path, PathBuf};

use super::parts::{
    SYNC, arg, bytes_from, check_room, folder_of, gnu_version, or, own, parameter, push, scaling,
    timed, together, unusual,
};
use super::{
    Content, Effort, Place, RunOutput, Script, SourceData, Tool, ToolError, TrialSpec, Writes,
};
use crate::command::{CommandLine, Step, ToolOutput};
use crate::metric::{Measured, Metric};
use crate::settings::{Kind, Parameter, Settings};

pub(super) struct Untar;

const NAME: &str = "untar";

const PARAMETERS: &[Parameter] = &[
    or(
        "256M",
        scaling(parameter(
            "size",
            bytes_from(1 << 20),
            "bytes of the archive's files together, where one is made",
        )),
    ),
    parameter(
        "archive",
        Kind::Path,
        "path of another archive, whose length is taken for that of its files; unset: one is made",
    ),
    SYNC,
];

fn size(settings: &Settings) -> u64 {
    settings.size("size").unwrap_or(0)
}

/// The archive that the user gave.
fn given(settings: &Settings) -> Option<&Path> {
    Some(settings.word("archive")).filter(|path| !path.is_empty()).map(Path::new)
}

/// The length of the archive that the user gave.
fn length(path: &Path) -> Result<u64, String> {
    let refused = |why: String| {
        let path = path.display();
        format!("archive = \"{path}\": {why}; name a tar archive, or leave archive out")
    };
    let meta = std::fs::metadata(path).map_err(|error| refused(error.to_string()))?;
    if meta.is_file() { Ok(meta.len()) } else { Err(refused("it is no file".to_owned())) }
}

fn archive(spec: &TrialSpec<'_>) -> PathBuf {
    let made = super::source::archive(size(spec.settings));
    let path = || super::source::path_of(spec.sources, &made);
    given(spec.settings).map_or_else(path, Path::to_path_buf)
}

impl Tool for Untar {
    fn name(&self) -> &'static str {
        NAME
    }

    fn package(&self) -> &'static str {
        "tar"
    }

    fn about(&self) -> &'static str {
        "unpacking a tar archive of many small files out of the page cache"
    }

    fn parameters(&self) -> &'static [Parameter] {
        PARAMETERS
    }

    fn version_command(&self) -> CommandLine {
        CommandLine::new("tar").arg("--version")
    }

    fn parse_version(&self, output: &ToolOutput) -> Result<String, ToolError> {
        gnu_version(NAME, output)
    }

    fn place(&self, _settings: &Settings) -> Place {
        Place::Folder
    }

    fn writes(&self, settings: &Settings, processes: u32) -> Writes {
        match given(settings) {
            Some(_) => Writes::UntilTime,
            None => Writes::Bytes(together(size(settings), processes)),
        }
    }

    fn content(&self, settings: &Settings) -> Content {
        match given(settings) {
            Some(_) => Content::Unknown,
            None => super::source::CONTENT_OF_TREE,
        }
    }

    fn effort(&self, settings: &Settings, processes: u32) -> Effort {
        // One that is not there is told by the plan.
        let bytes = given(settings).and_then(|path| length(path).ok());
        Effort::Bytes(together(bytes.unwrap_or(size(settings)), processes))
    }

    fn label(&self, settings: &Settings) -> String {
        let mut label = NAME.to_owned();
        if let Some(path) = given(settings) {
            label.push_str(&format!(" {}", path.display()));
        }
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
        match given(settings) {
            Some(_) => Vec::new(),
            None => vec![super::source::archive(size(settings))],
        }
    }

    fn plan(&self, spec: &TrialSpec<'_>) -> Result<Script, String> {
        let folder = folder_of(spec)?;
        let bytes = given(spec.settings).map_or(Ok(size(spec.settings)), length)?;
        let tree = super::source::room_of_tree(bytes);
        check_room(spec, together(tree, spec.processes))?;
        let archive = archive(spec);
        let mut script = Script {
            warm: vec![Step::ReadAll(archive.clone())],
            sync: spec.settings.flag("sync"),
            ..Script::default()
        };
        for process in 0..spec.processes {
            let into = own(folder, "tree", process);
            script.prepare.push(Step::MakeFolder(into.clone()));
            script.measured.push(
                CommandLine::new("tar")
                    .arg("-x")
                    // A colon in its name would make it a file on another host.
                    .arg("--force-local")
                    .arg(format!("--file={}", arg(&archive)))
                    .arg(format!("--directory={}", arg(&into))),
            );
            script.clean_up.push(Step::Remove(into));
        }
        Ok(script)
    }

    fn parse(&self, spec: &TrialSpec<'_>, run: &RunOutput) -> Result<Measured, ToolError> {
        let known = given(spec.settings).is_none();
        let bytes = known.then(|| together(size(spec.settings), spec.processes));
        let mut measured = timed(NAME, run, bytes)?;
        if let Some(bytes) = bytes {
            push(&mut measured, NAME, Metric::BytesWritten, bytes as f64)?;
        }
        Ok(measured)
    }
}

#[cfg(test)]
mod tests;
