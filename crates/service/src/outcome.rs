//! Result of the start of a volume, sent by its process to the command that started it.

use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::refusal::refused;
use crate::volume::{Ready, RunError};

/// The message of the volume's process to the command that started it.
#[derive(Serialize, Deserialize)]
pub enum Outcome {
    /// It serves.
    Ready(Ready),
    /// A safety rule says no, with the next command.
    Refused(String),
    /// The specification makes no sense.
    Usage(String),
    /// It was tried and did not work.
    Failed(String),
}

impl Outcome {
    /// The volume that is ready, or the reason why none is.
    pub fn into_result(self) -> Result<Ready, Failure> {
        match self {
            Outcome::Ready(ready) => Ok(ready),
            Outcome::Refused(message) => Err(Failure::refused(message)),
            Outcome::Usage(message) => Err(Failure::usage(message)),
            Outcome::Failed(message) => Err(Failure::failed(message)),
        }
    }

    /// Why a volume did not get ready.
    pub fn of(error: &RunError) -> Outcome {
        if let RunError::Refused(refusal) = error {
            Outcome::Refused(refused(refusal).text())
        } else if error.is_refusal() {
            Outcome::Refused(error.text())
        } else if error.is_usage() {
            Outcome::Usage(error.text())
        } else {
            Outcome::Failed(error.text())
        }
    }
}

/// The failure of a command that ran a volume itself.
pub fn failure_of(error: &RunError) -> Failure {
    if let RunError::Refused(refusal) = error {
        refused(refusal)
    } else if error.is_refusal() {
        Failure::refused(error.text())
    } else if error.is_usage() {
        Failure::usage(error.text())
    } else {
        Failure::failed(error.text())
    }
}
