//! Commands and their results: the vocabulary of tools, subjects and the world.
//!
//! Invariants: values only. Nothing here starts a program, reads a file or asks for the time.
//!
//! Deliberately absent: shells. A [`CommandLine`] is a program and its arguments.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use braid_shell::{shell_path, shell_word};

/// Bytes of a program's stream that are kept; a program that prints more is ended. The longest output of a
/// tool, fio's distributions of many jobs, is some hundred KiB.
pub(crate) const MOST_OUTPUT: usize = 64 << 20;

/// The name of braid itself, independent of its path.
pub(crate) const OWN: &str = "braid";

/// A program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine {
    /// Name (looked up on PATH) or path.
    pub program: String,
    /// Arguments.
    pub args: Vec<String>,
    /// The working directory; `None`: this process's.
    pub cwd: Option<String>,
}

impl CommandLine {
    /// Makes a command without arguments.
    pub fn new(program: impl Into<String>) -> Self {
        Self { program: program.into(), args: Vec::new(), cwd: None }
    }

    /// Adds one argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds these arguments at the end.
    #[must_use]
    pub fn args<A: Into<String>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Replaces the name of braid by the path of its program.
    pub(crate) fn with_own(&self, path: &Path) -> Self {
        let program = match self.program.as_str() {
            OWN => path.display().to_string(),
            other => other.to_owned(),
        };
        Self { program, ..self.clone() }
    }

    /// Sets the folder in which the command runs, for programs without an option for it.
    #[must_use]
    pub fn in_folder(mut self, folder: impl Into<String>) -> Self {
        self.cwd = Some(folder.into());
        self
    }
}

impl fmt::Display for CommandLine {
    /// Writes the command in shell syntax.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // In a subshell: the next command starts in the same folder as this one.
        if let Some(folder) = &self.cwd {
            write!(f, "(cd {} && ", shell_path(folder))?;
        }
        f.write_str(&shell_path(&self.program))?;
        for arg in &self.args {
            write!(f, " {}", shell_word(arg))?;
        }
        f.write_str(if self.cwd.is_some() { ")" } else { "" })
    }
}

/// Returns the end of a program's output, on one line.
pub(crate) fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(3)..].join(" | ")
}

/// Returns a time in words, rounded up.
pub(crate) fn minutes(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{:.1} h", seconds as f64 / 3600.0),
    }
}

/// The end of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exit {
    /// With this status.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// Killed because the time limit passed.
    TimedOut,
    /// Killed because the user stopped the run.
    Stopped,
    /// Killed because the output was too long.
    Flooded,
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit status {code}"),
            Self::Signal(signal) => write!(f, "killed by signal {signal}"),
            Self::TimedOut => f.write_str("killed after its time limit"),
            Self::Stopped => f.write_str("stopped by the user"),
            Self::Flooded => {
                write!(f, "killed because it printed more than {} MiB", MOST_OUTPUT >> 20)
            }
        }
    }
}

/// A complete run of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// The end.
    pub exit: Exit,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Finished {
    /// Returns the end and the last output of a failed program.
    pub(crate) fn why(&self) -> String {
        format!("{} {}", self.exit, last_lines(&self.stderr)).trim_end().to_owned()
    }
}

/// The place where a tool finds the subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A file or block device, opened raw.
    Device(PathBuf),
    /// An NBD server, by its URI.
    Nbd(String),
    /// An empty folder of the trial on the subject's file system.
    Folder(PathBuf),
}

/// A step of preparing or cleaning up; none of them is timed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Runs a program; it must succeed.
    Run(CommandLine),
    /// Creates a file of incompressible bytes from a seed, whole and synced.
    MakeFile {
        /// The file; it must not exist.
        path: PathBuf,
        /// Length in bytes.
        bytes: u64,
        /// Seed of the content.
        seed: u64,
    },
    /// Creates a folder.
    MakeFolder(PathBuf),
    /// Reads a file, or all files in a folder, so that the page cache holds them.
    ReadAll(PathBuf),
    /// Removes a file or a folder with its contents; below the trial's own folder only.
    Remove(PathBuf),
}

/// The result of one program of a trial.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOutput {
    /// The end.
    pub exit: Exit,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// Seconds from the start of all programs to the end of this one.
    pub wall_s: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_prints_as_a_shell_reads_it() {
        let command = CommandLine::new("fio").arg("--uri=nbd+unix:///?socket=/x").arg("it's");
        assert_eq!(command.to_string(), "fio '--uri=nbd+unix:///?socket=/x' 'it'\\''s'");
        let there = CommandLine::new("ls").in_folder("/a b");
        assert_eq!(there.to_string(), "(cd '/a b' && ls)");
        let own = CommandLine::new(OWN).arg("trace").with_own(Path::new("/opt/a b"));
        assert_eq!(own.to_string(), "'/opt/a b' trace");
        assert_eq!(there.with_own(Path::new("/opt/braid")), there);
        let here = CommandLine::new("-tool").arg("--x").in_folder("-a");
        assert_eq!(here.to_string(), "(cd ./-a && ./-tool --x)");
    }
}
