//! What became of a request to end.

use serde::{Deserialize, Serialize};

use crate::process::Process;

/// How it went.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StopAnswer {
    /// Whether the volume has ended.
    pub stopped: bool,
    /// The process, which ends right after a stop.
    pub process: Process,
    /// Who holds the device, if that is why not.
    pub holders: Vec<String>,
    /// Reason for which the volume was not stopped.
    pub error: Option<String>,
    /// The next command.
    #[serde(default)]
    pub next: Option<String>,
}
