//! Recipes: trials as shell commands, for readers that want to see or to repeat a measurement.
//!
//! ```text
//! mkdir -p …               working folders
//! [ -e … ] || head -c …    data beside the subject
//! …                        preparing, warming
//! tool … &                 measured: all at once
//! wait
//! sync -f …  # counted
//! rm -r …                  cleaning up
//! ```
//!
//! Invariant: the lines run, in their order, in one POSIX shell with the usual programs. A step that a shell
//! cannot do is a comment. Files of noise have other bytes than in the trial, which made them from a seed.

use std::fmt;
use std::path::Path;

use braid_shell::shell_path;
use braid_stack::ByteSize;

use super::{Script, SourceData, TrialSpec};
use crate::command::{Step, Target};

/// Returns the lines that make the folders and the source of a trial.
pub fn places_in_shell(
    spec: &TrialSpec<'_>,
    script: &Script,
    source: Option<SourceData>,
) -> Vec<String> {
    let mut lines = Vec::new();
    let made = |folder: &Path| format!("mkdir -p {}", shell_path(folder));
    if let Target::Folder(folder) = spec.target {
        lines.push(made(folder));
    }
    let scratch = spec.scratch.display().to_string();
    let uses = |arg: &String| arg.contains(&scratch);
    if script.measured.iter().flat_map(|command| &command.args).any(uses) {
        lines.push(made(spec.scratch));
    }
    if let Some(source) = source {
        lines.push(made(spec.sources));
        lines.push(source_in_shell(spec.sources, source));
    }
    lines
}

fn source_in_shell(folder: &Path, data: SourceData) -> String {
    let path = shell_path(data.path_in(folder));
    let (what, bytes) = match data {
        SourceData::File(bytes) => return format!("[ -e {path} ] || {}", noise(&path, bytes)),
        SourceData::Tree(bytes) => ("a tree", bytes),
        SourceData::Archive(bytes) => ("a tar archive of a tree", bytes),
    };
    let size = ByteSize(bytes);
    format!("# {path}: {what} of {size:#} in text files, made by braid lab for the campaign")
}

/// Returns the line that makes a file of incompressible bytes, and writes it back.
fn noise(path: &str, bytes: u64) -> String {
    format!("{{ head -c {bytes} /dev/urandom >{path} && sync {path}; }}")
}

impl Script {
    /// Returns the lines that start the measured programs at once and wait for them.
    pub fn measured_in_shell(&self) -> Vec<String> {
        match self.measured.as_slice() {
            [alone] => vec![alone.to_string()],
            all => {
                let lines = all.iter().map(|command| format!("{command} &"));
                lines.chain(["wait".to_owned()]).collect()
            }
        }
    }

    /// Returns the line of the write-back, if it counts.
    pub fn sync_in_shell(&self, target: &Target) -> Option<String> {
        let line = match target {
            Target::Folder(folder) => format!("sync -f {}  # counted", shell_path(folder)),
            Target::Device(path) => format!("sync {}  # counted", shell_path(path)),
            Target::Nbd(_) => return None,
        };
        self.sync.then_some(line)
    }
}

impl fmt::Display for Step {
    /// Writes the step in shell syntax.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run(command) => write!(f, "{command}"),
            Self::MakeFile { path, bytes, seed } => {
                write!(f, "{}  # in the trial from seed {seed}", noise(&shell_path(path), *bytes))
            }
            Self::MakeFolder(path) => write!(f, "mkdir {}", shell_path(path)),
            Self::ReadAll(path) => {
                write!(f, "find {} -type f -exec cat {{}} + >/dev/null", shell_path(path))
            }
            Self::Remove(path) => write!(f, "rm -r {}", shell_path(path)),
        }
    }
}
