//! The reasons why a measurement could not be made.

use std::io;
use std::process::ExitStatus;

/// The result of every fallible function here.
pub type Result<T> = std::result::Result<T, Error>;

/// The reason why a measurement could not be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A program is not installed.
    #[error("{tool} is not installed: apt-get install {package}")]
    MissingTool {
        /// The missing program.
        tool: &'static str,
        /// The Debian package that contains it.
        package: &'static str,
    },
    /// The braid binary is not at the expected path.
    #[error("no braid binary at {path}: cargo build --release -p braid, or say --braid PATH")]
    NoBraid {
        /// The expected path.
        path: String,
    },
    /// A program ended with a failure.
    #[error("{command}: {status}\n{output}")]
    Command {
        /// The command line.
        command: String,
        /// Its exit status or signal.
        status: ExitStatus,
        /// Its output.
        output: String,
    },
    /// A system call failed.
    #[error("{what}: {source}")]
    Io {
        /// The action that failed.
        what: String,
        /// The reason for the failure.
        source: io::Error,
    },
    /// Another program gave an unusable answer.
    #[error("{0}")]
    Unexpected(String),
    /// The command line is wrong.
    #[error("{0}")]
    Usage(String),
}

impl Error {
    /// For `map_err` on a system call: `what` is the failed action.
    pub fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
        let what = what.into();
        move |source| Error::Io { what, source }
    }
}
