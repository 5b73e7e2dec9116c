//! Result of the start of a volume, sent by its process to the command that started it.

use serde::{Deserialize, Serialize};

use super::given;
use crate::failure::Failure;
use crate::volume::{Ready, RunError};

/// The message of the volume's process to the command that started it.
#[derive(Serialize, Deserialize)]
pub(super) enum Outcome {
    Ready(Ready),
    Refused(String),
    Usage(String),
    Failed(String),
}

impl Outcome {
    /// The volume that is ready, or the reason why none is.
    pub(super) fn into_result(self) -> Result<Ready, Failure> {
        match self {
            Outcome::Ready(ready) => Ok(ready),
            Outcome::Refused(message) => Err(Failure::refused(message)),
            Outcome::Usage(message) => Err(Failure::usage(message)),
            Outcome::Failed(message) => Err(Failure::failed(message)),
        }
    }

    /// Why a volume did not get ready.
    pub(super) fn of(error: &RunError) -> Outcome {
        if let RunError::Refused(refusal) = error {
            Outcome::Refused(given::refused(refusal).text())
        } else if error.is_refusal() {
            Outcome::Refused(error.text())
        } else if error.is_usage() {
            Outcome::Usage(error.text())
        } else {
            Outcome::Failed(error.text())
        }
    }
}
