//! Copying files onto the subject, out of it or within it. One row for each way:
//!
//! | tool | what lies ready | what is timed |
//! |---|---|---|
//! | `cp-read` | a file of each process, cold | `cp FILE /dev/null` |
//! | `cp-cached` | a file beside the subject, in the page cache | writing copies of it |
//! | `cp-tree` | a tree of each process on the subject, cold | reading it and writing a copy |
//! | `untar` | an archive beside the subject, in the page cache | making many small files |
//!
//! * cp does read: coreutils 9.1 tries `copy_file_range`, is told that /dev/null cannot do it, and
//!   reads in requests of 128 KiB (seen with strace). `--reflink=never`: since coreutils 9.0 cp would
//!   otherwise share blocks on btrfs and XFS and leave the copying of others to the kernel.
//! * Each process has a file or tree of its own, so that none lives on what another one read. Files
//!   hold no hole, which cp would step over.
//! * Published tests of this kind timed the program alone (`sync = false`); with less to copy than the
//!   memory holds, that says more about the memory than about the subject.

use std::path::{Path, PathBuf};

use super::parts::{
    SYNC, arg, bytes_from, check_room, folder_of, gnu_version, or, own, parameter, push, scaling,
    timed, together, unusual,
};
use super::source::{self, CONTENT_OF_TREE, path_of, random_file, room_of_tree};
use super::{
    Content, Effort, Place, RunOutput, Script, SourceData, Tool, ToolError, TrialSpec, Writes,
};
use crate::command::{CommandLine, Step, ToolOutput};
use crate::metric::{Measured, Metric};
use crate::settings::{Kind, Parameter, Settings};

/// What is copied, from where to where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Read,
    Cached,
    Tree,
    Unpack,
}

/// A tool that copies.
pub(super) struct Copying {
    name: &'static str,
    package: &'static str,
    program: &'static str,
    about: &'static str,
    parameters: &'static [Parameter],
    way: Way,
}

pub(super) const CP_READ: Copying = Copying {
    name: "cp-read",
    package: "coreutils",
    program: "cp",
    about: "reading a file of incompressible bytes (cp FILE /dev/null)",
    parameters: &[size_of("1G", 4096, "bytes of each process's file")],
    way: Way::Read,
};

pub(super) const CP_CACHED: Copying = Copying {
    name: "cp-cached",
    package: "coreutils",
    program: "cp",
    about: "copying a file of incompressible bytes out of the page cache",
    parameters: &[size_of("256M", 4096, "bytes of the file"), SYNC],
    way: Way::Cached,
};

pub(super) const CP_TREE: Copying = Copying {
    name: "cp-tree",
    package: "coreutils",
    program: "cp",
    about: "copying a tree of many small files within the subject",
    parameters: &[size_of("256M", 1 << 20, "bytes of a tree's files together"), SYNC],
    way: Way::Tree,
};

pub(super) const UNTAR: Copying = Copying {
    name: "untar",
    package: "tar",
    program: "tar",
    about: "unpacking a tar archive of many small files out of the page cache",
    parameters: &[
        size_of("256M", 1 << 20, "bytes of the archive's files together, where one is made"),
        parameter(
            "archive",
            Kind::Path,
            "path of another archive, whose length is taken for that of its files; unset: one is \
             made",
        ),
        SYNC,
    ],
    way: Way::Unpack,
};

const fn size_of(default: &'static str, least: u64, about: &'static str) -> Parameter {
    or(default, scaling(parameter("size", bytes_from(least), about)))
}

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

impl Copying {
    /// What is made beside the subject, if anything is.
    fn source(&self, settings: &Settings) -> Option<SourceData> {
        match self.way {
            Way::Read => None,
            Way::Cached => Some(random_file(size(settings))),
            Way::Tree => Some(source::tree(size(settings))),
            Way::Unpack if given(settings).is_some() => None,
            Way::Unpack => Some(source::archive(size(settings))),
        }
    }

    /// Where what is copied lies beside the subject.
    fn from(&self, spec: &TrialSpec<'_>) -> PathBuf {
        let made = self.source(spec.settings).map(|data| path_of(spec.sources, &data));
        made.or_else(|| given(spec.settings).map(Path::to_path_buf)).unwrap_or_default()
    }

    /// How often the bytes are on the subject.
    fn copies(&self) -> u64 {
        if self.way == Way::Tree { 2 } else { 1 }
    }
}

fn cp(from: &Path, to: &Path) -> CommandLine {
    CommandLine::new("cp").arg("--reflink=never").arg(arg(from)).arg(arg(to))
}

fn cp_tree(from: &Path, to: &Path) -> CommandLine {
    CommandLine::new("cp").arg("-r").arg("--reflink=never").arg(arg(from)).arg(arg(to))
}

fn untar(archive: &Path, into: &Path) -> CommandLine {
    CommandLine::new("tar")
        .arg("-x")
        // A colon in its name would make it a file on another host.
        .arg("--force-local")
        .arg(format!("--file={}", arg(archive)))
        .arg(format!("--directory={}", arg(into)))
}

impl Tool for Copying {
    fn name(&self) -> &'static str {
        self.name
    }

    fn package(&self) -> &'static str {
        self.package
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn parameters(&self) -> &'static [Parameter] {
        self.parameters
    }

    fn version_command(&self) -> CommandLine {
        CommandLine::new(self.program).arg("--version")
    }

    fn parse_version(&self, output: &ToolOutput) -> Result<String, ToolError> {
        gnu_version(self.name, output)
    }

    fn place(&self, _settings: &Settings) -> Place {
        Place::Folder
    }

    fn writes(&self, settings: &Settings, processes: u32) -> Writes {
        match given(settings) {
            Some(_) => Writes::UntilTime,
            None => {
                Writes::Bytes(together(size(settings), processes).saturating_mul(self.copies()))
            }
        }
    }

    fn content(&self, settings: &Settings) -> Content {
        match self.way {
            Way::Read | Way::Cached => Content::Random,
            Way::Unpack if given(settings).is_some() => Content::Unknown,
            Way::Tree | Way::Unpack => CONTENT_OF_TREE,
        }
    }

    fn effort(&self, settings: &Settings, processes: u32) -> Effort {
        // An archive that is not there is told by the plan.
        let bytes = given(settings).and_then(|path| length(path).ok()).unwrap_or(size(settings));
        Effort::Bytes(together(bytes, processes).saturating_mul(self.copies()))
    }

    fn label(&self, settings: &Settings) -> String {
        let mut label = self.name.to_owned();
        if let Some(path) = given(settings) {
            label.push_str(&format!(" {}", path.display()));
        }
        if let Some(size) = unusual(settings, self.parameters, "size") {
            label.push_str(&format!(" {size}"));
        }
        if self.way != Way::Read && !settings.flag("sync") {
            label.push_str(", no sync");
        }
        label
    }

    fn headline(&self, _settings: &Settings) -> Metric {
        Metric::Seconds
    }

    fn sources(&self, settings: &Settings) -> Vec<SourceData> {
        self.source(settings).into_iter().collect()
    }

    fn plan(&self, spec: &TrialSpec<'_>) -> Result<Script, String> {
        let folder = folder_of(spec)?;
        let bytes = given(spec.settings).map_or(Ok(size(spec.settings)), length)?;
        let room = match self.way {
            Way::Read | Way::Cached => bytes,
            Way::Tree | Way::Unpack => room_of_tree(bytes),
        };
        check_room(spec, together(room, spec.processes).saturating_mul(self.copies()))?;
        let from = self.from(spec);
        let warm = matches!(self.way, Way::Cached | Way::Unpack);
        let mut script = Script {
            warm: warm.then(|| Step::ReadAll(from.clone())).into_iter().collect(),
            sync: self.way != Way::Read && spec.settings.flag("sync"),
            ..Script::default()
        };
        for process in 0..spec.processes {
            let [file, tree, copy] =
                ["file", "tree", "copy"].map(|name| own(folder, name, process));
            let (prepare, measured, left) = match self.way {
                Way::Read => {
                    let seed = spec.seed.wrapping_add(u64::from(process));
                    let made = Step::MakeFile { path: file.clone(), bytes, seed };
                    (Some(made), cp(&file, Path::new("/dev/null")), vec![file])
                }
                Way::Cached => (None, cp(&from, &copy), vec![copy]),
                Way::Tree => {
                    let put = Step::Run(cp_tree(&from, &tree));
                    (Some(put), cp_tree(&tree, &copy), vec![tree, copy])
                }
                Way::Unpack => {
                    (Some(Step::MakeFolder(tree.clone())), untar(&from, &tree), vec![tree])
                }
            };
            script.prepare.extend(prepare);
            script.measured.push(measured);
            script.clean_up.extend(left.into_iter().map(Step::Remove));
        }
        Ok(script)
    }

    fn parse(&self, spec: &TrialSpec<'_>, run: &RunOutput) -> Result<Measured, ToolError> {
        // Nobody says how long the files of a given archive are.
        let known = given(spec.settings).is_none();
        let bytes = known.then(|| together(size(spec.settings), spec.processes));
        let mut measured = timed(self.name, run, bytes)?;
        let moved: &[Metric] = match self.way {
            Way::Read => &[Metric::BytesRead],
            Way::Cached | Way::Unpack => &[Metric::BytesWritten],
            Way::Tree => &[Metric::BytesRead, Metric::BytesWritten],
        };
        for (metric, bytes) in moved.iter().flat_map(|metric| bytes.map(|bytes| (*metric, bytes))) {
            push(&mut measured, self.name, metric, bytes as f64)?;
        }
        Ok(measured)
    }
}

#[cfg(test)]
mod tests;
