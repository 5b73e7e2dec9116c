//! Commands and what becomes of them: the words that tools, subjects and the world share.
//!
//! Invariants: values only. Nothing here starts a program, looks at a file or knows the time.
//!
//! Deliberately absent: shells. A [`CommandLine`] is a program and its arguments.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use braid_shell::{shell_path, shell_word};

/// Bytes that are kept of each of a program's streams; a program that says more is ended. The longest
/// output of a tool, fio's distributions of many jobs, is some hundred KiB.
pub(crate) const MOST_OUTPUT: usize = 64 << 20;

/// The program that means braid itself, wherever that lies.
pub(crate) const OWN: &str = "braid";

/// A program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine {
    /// Name (looked up on PATH) or path.
    pub program: String,
    /// Arguments.
    pub args: Vec<String>,
    /// The folder it runs in; `None`: this process's.
    pub cwd: Option<String>,
}

impl CommandLine {
    /// A command without arguments.
    pub fn new(program: impl Into<String>) -> Self {
        Self { program: program.into(), args: Vec::new(), cwd: None }
    }

    /// With one more argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// With these arguments behind those that are there.
    #[must_use]
    pub fn args<A: Into<String>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// With the path of braid's own program in the place of its name.
    pub(crate) fn with_own(&self, path: &Path) -> Self {
        let program = match self.program.as_str() {
            OWN => path.display().to_string(),
            other => other.to_owned(),
        };
        Self { program, ..self.clone() }
    }

    /// Run in a folder, for programs that know no other way to be told where.
    #[must_use]
    pub fn in_folder(mut self, folder: impl Into<String>) -> Self {
        self.cwd = Some(folder.into());
        self
    }
}

impl fmt::Display for CommandLine {
    /// As a shell would read it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // In a shell of its own: the next command starts where this one did.
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

/// The end of what a program said, on one line.
pub(crate) fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(3)..].join(" | ")
}

/// A time in words, rounded up.
pub(crate) fn minutes(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{:.1} h", seconds as f64 / 3600.0),
    }
}

/// How a tool ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exit {
    /// With this status.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// It was killed because it took longer than it was allowed to.
    TimedOut,
    /// It was killed because the user wants to stop.
    Stopped,
    /// It was killed because it said more than is kept.
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

/// A tool's run from start to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// How it ended.
    pub exit: Exit,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Finished {
    /// How it ended and the end of what it said, for a program that failed.
    pub(crate) fn why(&self) -> String {
        format!("{} {}", self.exit, last_lines(&self.stderr)).trim_end().to_owned()
    }
}

/// Where a tool finds the subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A file or block device, opened raw.
    Device(PathBuf),
    /// An NBD server, by its URI.
    Nbd(String),
    /// A folder of its own on the subject's file system, empty.
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
        /// Its length.
        bytes: u64,
        /// Seed of its content.
        seed: u64,
    },
    /// Creates a folder.
    MakeFolder(PathBuf),
    /// Reads a file or, in a folder, all files, so that the page cache holds them.
    ReadAll(PathBuf),
    /// Removes a file or a folder with all in it; below the trial's own folder only.
    Remove(PathBuf),
}

/// How one program of a trial went.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOutput {
    /// How it ended.
    pub exit: Exit,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// Seconds from the start of all to the end of this one.
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
