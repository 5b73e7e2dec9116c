//! The checkers of file systems: which one there is, how it is run, and what its output means.
//!
//! ```text
//!   verify ──▶ unshare: own mounts ──▶ braid rescue run-checker ──▶ cow(STACK) as a file, by FUSE ──▶ e2fsck -fn FILE
//!                                             (served.rs)
//! ```
//!
//! The namespace of mounts makes root unnecessary, and nothing stays mounted if a process is killed.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use braid_rescue::{Checked, Outcome};

/// Complaints that are told.
const MOST_COMPLAINTS: usize = 5;
/// Characters of a complaint.
const LONGEST: usize = 160;
/// Folders in which checkers lie, and which the path of other users than root does not have.
const FOLDERS: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// A file system's own checker. Nothing that it is told to do writes to the file.
pub(super) struct Checker {
    /// The file systems, as signatures call them.
    formats: &'static [&'static str],
    pub(super) program: &'static str,
    /// The Debian package.
    package: &'static str,
    words: &'static [&'static str],
    /// The words that make it replay a journal, into the overlay.
    pub(super) replay: Option<&'static [&'static str]>,
    /// Exit statuses that mean errors in the file system.
    errors: &'static [i32],
    /// Beginnings of lines that are no complaints.
    chatter: &'static [&'static str],
    /// A part of the line that tells of a log which was not replayed.
    log_ignored: &'static str,
}

const CHECKERS: [Checker; 5] = [
    Checker {
        formats: &["ext2", "ext3", "ext4"],
        program: "e2fsck",
        package: "e2fsprogs",
        words: &["-f", "-n"],
        replay: Some(&["-E", "journal_only", "-y"]),
        errors: &[4],
        chatter: &["e2fsck ", "Pass ", "Fix? ", "Clear? ", "Warning!  ", "Warning: skipping"],
        log_ignored: "skipping journal recovery",
    },
    Checker {
        formats: &["xfs"],
        program: "xfs_repair",
        package: "xfsprogs",
        words: &["-n", "-f"],
        replay: None,
        errors: &[1],
        chatter: &[
            "Phase ",
            "- ",
            "No modify flag",
            "Cannot get host",
            "Repair may fail",
            "the image and",
        ],
        log_ignored: "log which is being",
    },
    Checker {
        formats: &["btrfs"],
        program: "btrfs",
        package: "btrfs-progs",
        words: &["check", "--readonly"],
        replay: None,
        errors: &[1],
        chatter: &[
            "Opening ",
            "Checking ",
            "UUID: ",
            "found ",
            "total ",
            "btree space",
            "file data",
            "referenced ",
            "[",
        ],
        log_ignored: "log tree",
    },
    Checker {
        formats: &["ntfs"],
        program: "ntfsfix",
        package: "ntfs-3g",
        words: &["-n"],
        replay: None,
        errors: &[1],
        chatter: &["Mounting volume", "Processing of", "NTFS volume", "Checking the alternate"],
        log_ignored: "unclean",
    },
    Checker {
        formats: &["vfat", "exfat"],
        program: "fsck.fat",
        package: "dosfstools",
        words: &["-n"],
        replay: None,
        errors: &[1],
        chatter: &["fsck.fat "],
        log_ignored: "Dirty bit",
    },
];

/// The checker of a format.
pub(super) fn of(format: &str) -> Option<&'static Checker> {
    CHECKERS.iter().find(|one| one.formats.contains(&format))
}

/// An answer of a checker that did not run.
fn skipped(program: &str, note: String) -> Checked {
    let (program, notes) = (program.to_owned(), vec![note]);
    Checked { program, outcome: Outcome::Skipped, complaints: Vec::new(), more: 0, notes }
}

/// Folders in which programs are searched.
pub(super) fn search_path() -> OsString {
    let inherited = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&inherited).chain(FOLDERS.map(PathBuf::from));
    std::env::join_paths(folders).unwrap_or(inherited)
}

fn is_installed(program: &str) -> bool {
    std::env::split_paths(&search_path()).any(|folder| folder.join(program).is_file())
}

/// Runs the checker of `format` over an overlay of the volume that `stack` reads. Changes go to a store in `folder`, and
/// are removed after.
pub(super) fn check(stack: &str, format: &str, folder: &Path, limit: Duration) -> Checked {
    let Some(checker) = of(format) else {
        return skipped("", format!("there is no checker that is known for {format}"));
    };
    let program = checker.program;
    if !is_installed(program) {
        let package = checker.package;
        return skipped(program, format!("{program} is not installed: apt install {package}"));
    }
    let place = folder.join(format!("check-{}", std::process::id()));
    let answer = run(checker, stack, format, &place, limit);
    let leftovers = [place.with_extension("cow"), place.with_extension("lock")];
    leftovers.iter().for_each(|path| drop(std::fs::remove_file(path)));
    let _ = std::fs::remove_dir(&place);
    answer.unwrap_or_else(|why| skipped(program, format!("{program} could not be run: {why}")))
}

/// Runs this program again, with mounts of its own, to serve the overlay and to run the checker.
fn run(
    checker: &Checker,
    stack: &str,
    format: &str,
    place: &Path,
    limit: Duration,
) -> Result<Checked, String> {
    let place = std::path::absolute(place).map_err(|error| error.to_string())?;
    let braid = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new("unshare");
    command.env("PATH", search_path()).env("LC_ALL", "C").arg("--mount");
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command.arg("--").arg(braid).args(["rescue", "run-checker", "--format", format, "--place"]);
    command.arg(&place).arg("--seconds").arg(limit.as_secs().to_string()).arg("--").arg(stack);
    command.stdin(Stdio::null());
    let output = command.output().map_err(|error| format!("unshare: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    if let Ok(checked) = serde_json::from_str(&text) {
        return Ok(checked);
    }
    let error = String::from_utf8_lossy(&output.stderr);
    let line = error.lines().find(|line| !line.trim().is_empty()).unwrap_or("no answer");
    let program = checker.program;
    Err(format!("the volume cannot be served to {program}: {}", line.trim_start_matches("braid: ")))
}

impl Checker {
    /// The command that checks a file.
    pub(super) fn command(&self, file: &Path, words: &[&str]) -> Command {
        let mut command = Command::new(self.program);
        command.env("PATH", search_path()).env("LC_ALL", "C").args(words).arg(file);
        command.stdin(Stdio::null());
        command
    }

    /// The words with which it checks.
    pub(super) fn words(&self) -> &'static [&'static str] {
        self.words
    }

    /// The meaning of its output and exit status; `None` if it was ended.
    pub(super) fn judge(
        &self,
        status: Option<ExitStatus>,
        text: &str,
        notes: Vec<String>,
    ) -> Checked {
        let outcome = match status.map(|status| status.code()) {
            None => Outcome::Unfinished,
            Some(Some(0)) => Outcome::Clean,
            Some(Some(code)) if self.errors.contains(&code) => Outcome::Errors,
            Some(_) => Outcome::Failed,
        };
        let mut notes = notes;
        if text.contains(self.log_ignored) {
            let note = "a log of the file system was not replayed: complaints may be of changes that are in it";
            notes.push(note.to_owned());
        }
        let is_complaint = |line: &&str| {
            !line.is_empty()
                && !line.contains("check-")
                && !self.chatter.iter().any(|chatter| line.starts_with(chatter))
        };
        let mut lines: Vec<&str> = text.lines().map(str::trim).filter(is_complaint).collect();
        if outcome == Outcome::Clean {
            lines.clear();
        }
        let more = lines.len().saturating_sub(MOST_COMPLAINTS) as u64;
        let shortened = |line: &&str| line.chars().take(LONGEST).collect();
        let complaints = lines.iter().take(MOST_COMPLAINTS).map(shortened).collect();
        Checked { program: self.program.to_owned(), outcome, complaints, more, notes }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    fn judged(format: &str, code: i32, text: &str) -> Checked {
        let status = Some(ExitStatus::from_raw(code << 8));
        of(format).expect("a checker").judge(status, text, Vec::new())
    }

    #[test]
    fn complaints_are_told_without_chatter() {
        let text = "e2fsck 1.47.0 (5-Feb-2023)\nPass 1: Checking inodes, blocks, and sizes\n\
                    Inode 12 has illegal block(s).  Clear? no\n\nPass 2: Checking directory structure\n\
                    Free blocks count wrong (1, counted=2).\nFix? no\n\n/x/check-7/volume: 12/64 files\n";
        let checked = judged("ext4", 4, text);
        assert_eq!(checked.outcome, Outcome::Errors);
        assert_eq!(
            checked.complaints,
            [
                "Inode 12 has illegal block(s).  Clear? no",
                "Free blocks count wrong (1, counted=2)."
            ]
        );
        assert_eq!(judged("ext4", 8, "").outcome, Outcome::Failed);
        let many = "bad magic\n".repeat(9);
        assert_eq!(
            (judged("xfs", 1, &many).more, judged("xfs", 0, &many).complaints.len()),
            (4, 0)
        );
    }

    #[test]
    fn a_log_that_was_ignored_is_noted() {
        let text =
            "ALERT: The filesystem has valuable metadata changes in a log which is being\nignored";
        assert!(judged("xfs", 1, text).notes[0].contains("was not replayed"));
        assert!(judged("xfs", 1, "bad magic").notes.is_empty());
    }
}
