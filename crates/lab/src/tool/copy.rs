//! Copying files to the subject, from it or within it. One row for each way:
//!
//! | tool | prepared | timed |
//! |---|---|---|
//! | `cp-read` | one file per process, cold | `cp FILE /dev/null` |
//! | `cp-cached` | a file beside the subject, in the page cache | writing copies of it |
//! | `cp-tree` | one tree per process on the subject, cold | reading it and writing a copy |
//! | `untar` | an archive beside the subject, in the page cache | making many small files |
//!
//! * cp does read: coreutils 9.1 tries `copy_file_range`, which fails for /dev/null, and reads in requests of
//!   128 KiB (seen with strace). `--reflink=never`: since coreutils 9.0 cp would otherwise share blocks on
//!   btrfs and XFS and leave other copies to the kernel.
//! * Each process has a file or tree of its own, so that no process profits from another one's reads. Files
//!   have no holes, which cp would skip.
//! * Published tests of this kind timed the program alone (`sync = false`); with less data than memory, that
//!   measures the memory rather than the subject.

use std::path::Path;

use super::parts::{arg, check_room, folder_of, own, push, timed, together, told};
use super::source::{CONTENT_OF_TREE, room_of_tree};
use super::{
    About, Content, Effort, RunOutput, Script, SourceData, Tool, ToolError, TrialSpec, Version,
    Work, Writes,
};
use crate::command::{CommandLine, Step};
use crate::metric::{Measured, Metric};
use crate::settings::{Kind, Parameter, Settings};

/// The source and the target of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Read,
    Cached,
    Tree,
    Unpack,
}

/// A tool that copies.
pub(super) struct Copying {
    about: &'static About,
    way: Way,
}

pub(super) const CP_READ: Copying = Copying {
    about: &about(
        "cp-read",
        "cp",
        "reading a file of incompressible bytes (cp FILE /dev/null)",
        &[size_of("1G", 4096, "bytes of each process's file")],
    ),
    way: Way::Read,
};

pub(super) const CP_CACHED: Copying = Copying {
    about: &about(
        "cp-cached",
        "cp",
        "copying a file of incompressible bytes out of the page cache",
        &[size_of("256M", 4096, "bytes of the file"), SYNC],
    ),
    way: Way::Cached,
};

pub(super) const CP_TREE: Copying = Copying {
    about: &about(
        "cp-tree",
        "cp",
        "copying a tree of many small files within the subject",
        &[size_of("256M", 1 << 20, "bytes of a tree's files together"), SYNC],
    ),
    way: Way::Tree,
};

pub(super) const UNTAR: Copying = Copying {
    about: &About {
        package: "tar",
        ..about(
            "untar",
            "tar",
            "unpacking a tar archive of many small files out of the page cache",
            &[size_of("256M", 1 << 20, "bytes of the archive's files together"), SYNC],
        )
    },
    way: Way::Unpack,
};

const fn about(
    name: &'static str,
    program: &'static str,
    summary: &'static str,
    parameters: &'static [Parameter],
) -> About {
    let (package, version_args) = ("coreutils", &["--version"]);
    About { name, program, package, summary, parameters, version_args, version: Version::Gnu }
}

const fn size_of(default: &'static str, least: u64, about: &'static str) -> Parameter {
    Parameter::new("size", Kind::bytes_from(least), about).or(default).scaling()
}

/// True if a write-back of everything counts in the time.
pub(super) const SYNC: Parameter = Parameter::new(
    "sync",
    Kind::Flag,
    "whether writing everything back (syncfs) counts in the time",
)
.or("true");

fn size(settings: &Settings) -> u64 {
    settings.size("size").unwrap_or(0)
}

impl Copying {
    /// Returns the data that is made beside the subject, if any.
    fn source(&self, settings: &Settings) -> Option<SourceData> {
        match self.way {
            Way::Read => None,
            Way::Cached => Some(SourceData::File(size(settings))),
            Way::Tree => Some(SourceData::Tree(size(settings))),
            Way::Unpack => Some(SourceData::Archive(size(settings))),
        }
    }

    /// Returns the bytes on the subject, of all processes: a tree is there twice.
    fn all(&self, bytes: u64, processes: u32) -> u64 {
        let copies = if self.way == Way::Tree { 2 } else { 1 };
        together(bytes, processes).saturating_mul(copies)
    }
}

fn cp(words: &[&str], from: &Path, to: &Path) -> CommandLine {
    CommandLine::new("cp").args(words.iter().copied()).args([arg(from), arg(to)])
}

impl Tool for Copying {
    fn about(&self) -> &'static About {
        self.about
    }

    fn work(&self, settings: &Settings, processes: u32) -> Work {
        let all = self.all(size(settings), processes);
        Work {
            writes: Writes::Bytes(all),
            content: match self.way {
                Way::Read | Way::Cached => Content::Random,
                Way::Tree | Way::Unpack => CONTENT_OF_TREE,
            },
            effort: Effort::Bytes(all),
            headline: Metric::Seconds,
            source: self.source(settings),
            ..Work::default()
        }
    }

    fn label(&self, settings: &Settings) -> String {
        let words = [("size", " {}"), ("sync", ", no sync")];
        format!("{}{}", self.about.name, told(settings, self.about.parameters, &words))
    }

    fn plan(&self, spec: &TrialSpec<'_>) -> Result<Script, String> {
        let folder = folder_of(spec)?;
        let bytes = size(spec.settings);
        let room = match self.way {
            Way::Read | Way::Cached => bytes,
            Way::Tree | Way::Unpack => room_of_tree(bytes),
        };
        check_room(spec, self.all(room, spec.processes))?;
        let source = self.source(spec.settings).map(|data| data.path_in(spec.sources));
        let from = source.unwrap_or_default();
        let warm = matches!(self.way, Way::Cached | Way::Unpack);
        let mut script = Script {
            warm: warm.then(|| Step::ReadAll(from.clone())).into_iter().collect(),
            sync: self.way != Way::Read && spec.settings.flag("sync"),
            ..Script::default()
        };
        let (file_words, tree_words) = (["--reflink=never"], ["-r", "--reflink=never"]);
        for process in 0..spec.processes {
            let [file, tree, copy] =
                ["file", "tree", "copy"].map(|name| own(folder, name, process));
            let (prepare, measured, left) = match self.way {
                Way::Read => {
                    let seed = spec.seed.wrapping_add(u64::from(process));
                    let made = Step::MakeFile { path: file.clone(), bytes, seed };
                    (Some(made), cp(&file_words, &file, Path::new("/dev/null")), vec![file])
                }
                Way::Cached => (None, cp(&file_words, &from, &copy), vec![copy]),
                Way::Tree => {
                    let put = Step::Run(cp(&tree_words, &from, &tree));
                    (Some(put), cp(&tree_words, &tree, &copy), vec![tree, copy])
                }
                Way::Unpack => {
                    // tar takes a name with a colon for a file on another host.
                    let tar = CommandLine::new("tar")
                        .args(["-x", "--force-local"])
                        .arg(format!("--file={}", arg(&from)))
                        .arg(format!("--directory={}", arg(&tree)));
                    (Some(Step::MakeFolder(tree.clone())), tar, vec![tree])
                }
            };
            script.prepare.extend(prepare);
            script.measured.push(measured);
            script.clean_up.extend(left.into_iter().map(Step::Remove));
        }
        Ok(script)
    }

    fn parse(&self, spec: &TrialSpec<'_>, run: &RunOutput) -> Result<Measured, ToolError> {
        let bytes = together(size(spec.settings), spec.processes);
        let mut measured = timed(self.about.name, run, bytes)?;
        let moved: &[Metric] = match self.way {
            Way::Read => &[Metric::BytesRead],
            Way::Cached | Way::Unpack => &[Metric::BytesWritten],
            Way::Tree => &[Metric::BytesRead, Metric::BytesWritten],
        };
        for metric in moved {
            push(&mut measured, self.about.name, *metric, bytes as f64)?;
        }
        Ok(measured)
    }
}

#[cfg(test)]
mod tests;
