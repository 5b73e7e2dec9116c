//! What can go wrong in the laboratory. Each message says what, why, and what to do next.

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
        /// What was tried, as an infinitive: "read", "create".
        action: &'static str,
        /// On which path.
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
    /// The campaign is well-formed but does not make sense.
    #[error("the campaign {name:?} cannot be run: {reason}; {next}")]
    CampaignRefused {
        /// The campaign's name.
        name: String,
        /// What is wrong.
        reason: String,
        /// What to change.
        next: String,
    },
    /// Something that exists would be overwritten without having been named.
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
    /// What the campaign names does not exist.
    #[error(
        "nothing was measured: {} {} not exist; make {}, or correct the campaign",
        list(paths),
        if paths.len() == 1 { "does" } else { "do" },
        if paths.len() == 1 { "it" } else { "them" }
    )]
    Missing {
        /// The paths, as the campaign has them.
        paths: Vec<String>,
    },
    /// The time that is given is not enough for one repetition.
    #[error(
        "--budget {}: one repetition of everything takes about {}; next: give at least that, \
         --scale less data, or take fewer subjects by --only",
        minutes(*budget), minutes(*least)
    )]
    Budget {
        /// What was given.
        budget: Duration,
        /// What one repetition takes.
        least: Duration,
    },
    /// What would be overwritten is used by somebody.
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
    /// A program that had been started could not be watched, read or stopped.
    #[error("cannot {action} {program}: {source}")]
    Process {
        /// What was tried, as an infinitive.
        action: &'static str,
        /// The program.
        program: String,
        /// The cause.
        source: io::Error,
    },
    /// The user asked to stop, and something was not carried through for that.
    #[error("stopped by the user")]
    Stopped,
    /// Something gave no numbers or could not be had, in the words of who tried it.
    #[error("{0}")]
    Reason(String),
    /// A step around a trial failed.
    #[error("cannot {action}: {reason}{}", command_of(command))]
    StepFailed {
        /// What was tried, as an infinitive.
        action: String,
        /// Why not.
        reason: String,
        /// The exact command, if it was one.
        command: Option<String>,
    },
    /// Something that was made for a subject could not be taken away again.
    #[error("subject {subject:?} left something behind: {reason}\n  by hand: {next}")]
    LeftBehind {
        /// The subject's name.
        subject: String,
        /// What, and why it would not go.
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
        /// Why.
        reason: String,
        /// The exact server command, or what was connected to.
        command: String,
        /// What the server said on standard error.
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
    /// The results were begun by a version of braid that had the trials in another order.
    #[error(
        "{} was begun by an earlier version, which had the trials in another order: nothing in it was \
         touched, and `braid lab report` reads it; give --out another folder",
        dir.display()
    )]
    OtherOrder {
        /// The results directory.
        dir: PathBuf,
    },
    /// The results directory holds measurements and is to get predictions, or the other way round.
    #[error(
        "{} holds numbers that were {held}, and these would be {wanted}: nothing in it was touched; \
         choose another folder, and `braid lab compare` sets the two side by side",
        dir.display()
    )]
    OtherOrigin {
        /// The results directory.
        dir: PathBuf,
        /// Where its numbers come from.
        held: &'static str,
        /// Where those that are to go there come from.
        wanted: &'static str,
    },
    /// No cell of a campaign can be predicted.
    #[error("nothing was written: {}", said(reasons))]
    NothingPredicted {
        /// Why not, each reason once, with how often.
        reasons: BTreeMap<String, u32>,
    },
    /// Going on would measure other files than those that the results are of.
    #[error(
        "{} holds results of this campaign on files relative to {}, and here they would be relative \
         to {}: nothing was measured; `braid lab resume` goes on with the first from anywhere, and \
         --out takes another folder for these",
        dir.display(), began.display(), here.display()
    )]
    OtherWorkingDir {
        /// The results directory.
        dir: PathBuf,
        /// Where it began.
        began: PathBuf,
        /// Where it would go on.
        here: PathBuf,
    },
    /// An earlier version did not write down which files it measured.
    #[error(
        "{} was begun by a version that did not note what {} is relative to, so it cannot be told \
         which files to go on with: its results can be read, and a run into another folder \
         (--out) begins anew",
        dir.display(), list(paths)
    )]
    NoWorkingDir {
        /// The results directory.
        dir: PathBuf,
        /// The relative paths.
        paths: Vec<String>,
    },
    /// A folder that was meant for results holds something else.
    #[error(
        "{} is not empty and holds no results (there is {}): nothing in it was touched; choose \
         another folder for the results by --out",
        dir.display(), some_of(found)
    )]
    Occupied {
        /// The folder.
        dir: PathBuf,
        /// What is in it, sorted.
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
    /// Another run is at work on the same thing.
    #[error("another run uses {what}; wait for its end, or stop it")]
    Busy {
        /// What both want.
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
        /// What was tried.
        action: &'static str,
        /// The cause.
        source: rusqlite::Error,
    },
    /// A serialisation that should always work did not.
    #[error("cannot write down {what}: {reason}")]
    Serialise {
        /// What.
        what: &'static str,
        /// Why.
        reason: String,
    },
}

impl LabError {
    /// A step without a command of its own that failed; `action` is an infinitive.
    pub(crate) fn step(action: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::StepFailed { action: action.into(), reason: reason.into(), command: None }
    }

    /// For `map_err` on file operations.
    pub fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::File { action, path, source }
    }

    /// For `map_err` on database operations.
    pub(crate) fn store(action: &'static str) -> impl FnOnce(rusqlite::Error) -> Self {
        move |source| Self::Store { action, source }
    }
}

/// Why something is not there, or has no numbers.
#[derive(Debug)]
pub enum Obstacle {
    /// It cannot be on this machine, for this reason; the campaign goes on without it.
    Impossible(String),
    /// The user asked to stop.
    Stopped,
    /// It should be there and is not.
    Failed(LabError),
}

impl From<LabError> for Obstacle {
    /// A program of a package that is not installed makes something impossible.
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

/// The Debian package of a program that subjects need. Tools know theirs.
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

/// Each reason on a line of its own.
fn said(reasons: &BTreeMap<String, u32>) -> String {
    let lines = reasons.iter().map(|(reason, count)| format!("\n  {count} × {reason}"));
    format!("no number of this campaign can be predicted:{}", lines.collect::<String>())
}

fn list(paths: &[String]) -> String {
    paths.join(", ")
}

/// The first few names of a folder.
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
