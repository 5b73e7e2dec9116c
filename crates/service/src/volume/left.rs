//! The note of a volume's process by which it, and what it leaves, are cleared away when it does not answer any more.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::spec::Spec;
use crate::beside::Beside;
use braid_control::Process;

/// The process, and where its exports are.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Traces {
    pub(super) process: Process,
    pub(super) mount: PathBuf,
    #[serde(default)]
    pub(super) link: Option<PathBuf>,
}

/// Notes this process, for a `down` that gets no answer from it.
///
/// # Errors
/// The note cannot be written.
pub(super) fn leave_traces(spec: &Spec) -> io::Result<()> {
    let (process, mount, link) = (Process::this(), spec.mount.clone(), spec.link.clone());
    let text = serde_json::to_string(&Traces { process, mount, link }).unwrap_or_default();
    Beside::replace(&spec.traces(), 0o600, text.as_bytes())
}

/// The process that serves a volume in the folder `mount`, if it said so.
pub(super) fn process_of(mount: &Path) -> Option<u32> {
    let text = std::fs::read_to_string(mount.with_extension("json")).ok()?;
    let traces: Traces = serde_json::from_str(&text).ok()?;
    traces.process.id()
}
