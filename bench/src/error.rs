//! Why a measurement could not be made.

use std::io;
use std::process::ExitStatus;

/// The result of everything here.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a measurement could not be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A program is not installed.
    #[error("{tool} is not installed: apt-get install {package}")]
    MissingTool {
        /// What is missing.
        tool: &'static str,
        /// The Debian package that has it.
        package: &'static str,
    },
    /// The braid binary is not where it was looked for.
    #[error("no braid binary at {path}: cargo build --release -p braid, or say --braid PATH")]
    NoBraid {
        /// Where it was looked for.
        path: String,
    },
    /// A program ended as it should not.
    #[error("{command}: {status}\n{output}")]
    Command {
        /// The command line.
        command: String,
        /// How it ended.
        status: ExitStatus,
        /// What it said.
        output: String,
    },
    /// A system call failed.
    #[error("{what}: {source}")]
    Io {
        /// What was being done.
        what: String,
        /// Why it failed.
        source: io::Error,
    },
    /// Something answered in a way that cannot be worked with.
    #[error("{0}")]
    Unexpected(String),
    /// The command line is wrong.
    #[error("{0}")]
    Usage(String),
}

impl Error {
    /// For `map_err` on a system call: what was being done.
    pub fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
        let what = what.into();
        move |source| Error::Io { what, source }
    }
}
