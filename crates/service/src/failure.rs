//! Failures of a command: the text on standard error, and the exit status.

use std::fmt::Display;
use std::process::ExitCode;

pub use braid_control::{Failure, FailureKind};

/// Says a failure on standard error, in JSON if the caller is a program that asked for that; answers the exit status.
pub fn report(failure: &Failure) -> ExitCode {
    match std::env::var_os("BRAID_ERRORS").is_some_and(|form| form == "json") {
        true => eprintln!("{}", serde_json::json!(failure)),
        false => eprintln!("braid: {}", failure.text()),
    }
    ExitCode::from(failure.kind.exit_status())
}

/// Adds what was being done to an error of the system.
pub trait Context<T> {
    /// `what`: "cannot …", without a full stop.
    fn context(self, what: impl Display) -> Result<T, Failure>;
}

impl<T, E: Display> Context<T> for Result<T, E> {
    fn context(self, what: impl Display) -> Result<T, Failure> {
        self.map_err(|error| Failure::failed(format!("{what}: {error}")))
    }
}
