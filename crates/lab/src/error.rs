//! The errors of the laboratory. Each message says what, why, and what to do next.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::command::minutes;

/// An error of the laboratory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// A file operation failed.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// The operation, as an infinitive: "read", "create".
        action: &'static str,
        /// The path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The campaign file is not valid TOML of the expected form.
    #[error("{origin} is not a valid campaign: {reason}")]
    CampaignSyntax {
        /// File name or "the stored campaign".
        origin: String,
        /// The parser's message, with line and column.
        reason: String,
    },
    /// The campaign is well-formed but invalid.
    #[error("the campaign {name:?} cannot be run: {reason}; {next}")]
    CampaignRefused {
        /// The campaign's name.
        name: String,
        /// The fault.
        reason: String,
        /// The change that mends it.
        next: String,
    },
    /// An existing file or device would be overwritten that was not named.
    #[error(
        "refused to overwrite {}: the campaign writes there and it was not named to be destroyed; \
         if its content is worthless, add {}",
        list(paths),
        flags(paths)
    )]
    WouldDestroy {
        /// Paths (or NBD URIs) that would be overwritten.
        paths: Vec<String>,
    },
    /// A path of the campaign does not exist.
    #[error(
        "nothing was measured: {} {} not exist; make {}, or correct the campaign",
        list(paths),
        if paths.len() == 1 { "does" } else { "do" },
        if paths.len() == 1 { "it" } else { "them" }
    )]
    Missing {
        /// The paths, as in the campaign.
        paths: Vec<String>,
    },
    /// The budget is too small for one repetition.
    #[error(
        "--budget {}: one repetition of everything takes about {}; next: give at least that time, \
         less data (--scale), or fewer subjects (--only)",
        minutes(*budget), minutes(*least)
    )]
    Budget {
        /// The budget.
        budget: Duration,
        /// Time of one repetition.
        least: Duration,
    },
    /// A path that would be overwritten is in use.
    #[error("nothing was written: {refusal}")]
    InUse {
        /// The path and its users; several lines.
        refusal: String,
        /// The next command.
        next: String,
    },
    /// A program could not be started.
    #[error("cannot start {program}: {source}; install it or put it on PATH")]
    Spawn {
        /// The program.
        program: String,
        /// The cause.
        source: io::Error,
    },
    /// A started program could not be watched, read or stopped.
    #[error("cannot {action} {program}: {source}")]
    Process {
        /// The operation, as an infinitive.
        action: &'static str,
        /// The program.
        program: String,
        /// The cause.
        source: io::Error,
    },
    /// The user stopped the run, and an operation was abandoned.
    #[error("stopped by the user")]
    Stopped,
    /// An operation gave no numbers or no result, for this reason.
    #[error("{0}")]
    Reason(String),
    /// A step around a trial failed.
    #[error("cannot {action}: {reason}{}", command_of(command))]
    StepFailed {
        /// The operation, as an infinitive.
        action: String,
        /// The reason.
        reason: String,
        /// The exact command, if the step is one.
        command: Option<String>,
    },
    /// An object that was made for a subject could not be removed.
    #[error("subject {subject:?} left something behind: {reason}\n  by hand: {next}")]
    LeftBehind {
        /// The subject's name.
        subject: String,
        /// The object, and the reason.
        reason: String,
        /// The command that removes it.
        next: String,
    },
    /// A subject did not come up.
    #[error(
        "subject {subject:?} did not come up: {reason}\n  command: {command}{}",
        indent(stderr)
    )]
    SubjectDown {
        /// The subject's name.
        subject: String,
        /// The reason.
        reason: String,
        /// The exact server command, or the address of the connection.
        command: String,
        /// The server's standard error.
        stderr: String,
    },
    /// The results directory holds another campaign.
    #[error(
        "{} already holds results of another campaign ({held:?}); choose another directory, \
         or remove that one",
        dir.display()
    )]
    OtherCampaign {
        /// The results directory.
        dir: PathBuf,
        /// The name of the campaign in it.
        held: String,
    },
    /// An earlier version with another order of trials began the results.
    #[error(
        "{} was begun by an earlier version, which had the trials in another order: nothing in it was \
         touched, and `braid lab report` reads it; give --out another folder",
        dir.display()
    )]
    OtherOrder {
        /// The results directory.
        dir: PathBuf,
    },
    /// The results directory holds measurements and predictions are to go there, or the reverse.
    #[error(
        "{} holds numbers that were {held}, and these would be {wanted}: nothing in it was touched; \
         choose another folder, and `braid lab compare` sets the two side by side",
        dir.display()
    )]
    OtherOrigin {
        /// The results directory.
        dir: PathBuf,
        /// Origin of its numbers.
        held: &'static str,
        /// Origin of the new numbers.
        wanted: &'static str,
    },
    /// No cell of a campaign can be predicted.
    #[error("nothing was written: {}", said(reasons))]
    NothingPredicted {
        /// The reasons, each once, with its count.
        reasons: BTreeMap<String, u32>,
    },
    /// A continued run would measure other files than those in the results.
    #[error(
        "{} holds results of this campaign on files relative to {}, and here they would be relative \
         to {}: nothing was measured; `braid lab resume` continues on the former files from any folder, \
         and --out names another folder for the latter",
        dir.display(), began.display(), here.display()
    )]
    OtherWorkingDir {
        /// The results directory.
        dir: PathBuf,
        /// The directory in which the run began.
        began: PathBuf,
        /// The present directory.
        here: PathBuf,
    },
    /// An earlier version did not store which files it measured.
    #[error(
        "{} was begun by a version that did not store the folder of {}, so the measured files are \
         unknown: its results can be read; next: run into another folder by --out",
        dir.display(), list(paths)
    )]
    NoWorkingDir {
        /// The results directory.
        dir: PathBuf,
        /// The relative paths.
        paths: Vec<String>,
    },
    /// The results folder holds other files.
    #[error(
        "{} is not empty and holds no results (there is {}): nothing in it was touched; choose \
         another folder for the results by --out",
        dir.display(), some_of(found)
    )]
    Occupied {
        /// The folder.
        dir: PathBuf,
        /// The files in it, sorted.
        found: Vec<String>,
    },
    /// A database of this name is another program's.
    #[error(
        "{} is a database of another program: nothing in it was touched; choose another folder",
        path.display()
    )]
    ForeignDatabase {
        /// The database.
        path: PathBuf,
    },
    /// Another run uses the same object.
    #[error("another run uses {what}; wait for its end, or stop it")]
    Busy {
        /// The object.
        what: String,
    },
    /// A results directory has no results.
    #[error("{} holds no results; run a campaign into it first", dir.display())]
    NoResults {
        /// The directory.
        dir: PathBuf,
    },
    /// The results were written by another version of the program.
    #[error("{} has schema version {found}, this program knows {known}; use the program that wrote it", path.display())]
    SchemaVersion {
        /// The database.
        path: PathBuf,
        /// Version found.
        found: i64,
        /// Version known.
        known: i64,
    },
    /// The database failed.
    #[error("results store: cannot {action}: {source}")]
    Store {
        /// The operation.
        action: &'static str,
        /// The cause.
        source: rusqlite::Error,
    },
    /// A serialisation failed that should always succeed.
    #[error("cannot write down {what}: {reason}")]
    Serialise {
        /// The value.
        what: &'static str,
        /// The reason.
        reason: String,
    },
}

impl LabError {
    /// Returns the error of a failed step without a command; `action` is an infinitive.
    pub(crate) fn step(action: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::StepFailed { action: action.into(), reason: reason.into(), command: None }
    }

    /// Returns a function for `map_err` on file operations.
    pub fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::File { action, path, source }
    }

    /// Returns a function for `map_err` on database operations.
    pub(crate) fn store(action: &'static str) -> impl FnOnce(rusqlite::Error) -> Self {
        move |source| Self::Store { action, source }
    }
}

/// The reason why an object is missing, or has no numbers.
#[derive(Debug)]
pub enum Obstacle {
    /// Impossible on this machine, for this reason; the campaign continues without it.
    Impossible(String),
    /// The user stopped the run.
    Stopped,
    /// Missing although it should exist.
    Failed(LabError),
}

impl From<LabError> for Obstacle {
    /// Converts an error. A program whose package is not installed makes a trial impossible.
    fn from(error: LabError) -> Self {
        match error {
            LabError::Stopped => Self::Stopped,
            LabError::Spawn { program, source } => match package_of(&program) {
                Some(package) if source.kind() == io::ErrorKind::NotFound => Self::Impossible(
                    format!("{program} is not installed: apt-get install {package}"),
                ),
                _ => Self::Failed(LabError::Spawn { program, source }),
            },
            other => Self::Failed(other),
        }
    }
}

impl From<Obstacle> for LabError {
    fn from(obstacle: Obstacle) -> Self {
        match obstacle {
            Obstacle::Impossible(reason) => Self::Reason(reason),
            Obstacle::Stopped => Self::Stopped,
            Obstacle::Failed(error) => error,
        }
    }
}

/// Returns the Debian package of a program that subjects need. Tools name their own.
fn package_of(program: &str) -> Option<&'static str> {
    Some(match program {
        "mkfs.ext2" | "mkfs.ext3" | "mkfs.ext4" => "e2fsprogs",
        "mkfs.xfs" => "xfsprogs",
        "mkfs.btrfs" => "btrfs-progs",
        "mkfs.f2fs" => "f2fs-tools",
        "mdadm" => "mdadm",
        "losetup" | "mount" | "umount" => "mount",
        "modprobe" => "kmod",
        "blockdev" | "zramctl" | "fallocate" => "util-linux",
        _ => return None,
    })
}

/// Lists the reasons, one per line.
fn said(reasons: &BTreeMap<String, u32>) -> String {
    let lines = reasons.iter().map(|(reason, count)| format!("\n  {count} × {reason}"));
    format!("no number of this campaign can be predicted:{}", lines.collect::<String>())
}

fn list(paths: &[String]) -> String {
    paths.join(", ")
}

/// Returns the first few names of a folder.
fn some_of(names: &[String]) -> String {
    let more = if names.len() > 3 { ", ..." } else { "" };
    format!("{}{more}", names[..names.len().min(3)].join(", "))
}

fn flags(paths: &[String]) -> String {
    let flags: Vec<String> =
        paths.iter().map(|path| format!("--destroy {}", braid_shell::shell_path(path))).collect();
    flags.join(" ")
}

fn command_of(command: &Option<String>) -> String {
    command.as_ref().map_or_else(String::new, |command| format!("\n  command: {command}"))
}

fn indent(stderr: &str) -> String {
    if stderr.trim().is_empty() {
        return "\n  it said nothing on standard error".to_owned();
    }
    stderr.trim_end().lines().map(|line| format!("\n  | {line}")).collect()
}
