//! The result of a request to end.

use serde::{Deserialize, Serialize};

use crate::process::Process;

/// The result of a request to end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StopAnswer {
    /// True if the volume has ended.
    pub stopped: bool,
    /// The process, which ends right after a stop.
    pub process: Process,
    /// Users of the device, if they are the reason.
    pub holders: Vec<String>,
    /// Reason for which the volume was not stopped.
    pub error: Option<String>,
    /// The next command.
    #[serde(default)]
    pub next: Option<String>,
}
