//! Removes the exports that a process of a volume left which did not end by itself.

use std::io;
use std::path::Path;

use super::KINDS;
use crate::volume::error::ExportError;
use crate::volume::left::Traces;
use crate::volume::spec::Spec;

/// Remains of a volume whose process was killed.
pub(in crate::volume) struct Left {
    /// It may still be on its way out, with members open.
    pub(in crate::volume) is_dying: bool,
    /// Sentences about the removal.
    pub(in crate::volume) told: Vec<String>,
}

/// Removes the exports that a process of this volume left that was killed. The caller has the volume's name locked: no
/// such process lives.
///
/// # Errors
/// The reason for which one of them is not removed.
pub(in crate::volume) fn clear_left(spec: &Spec) -> Result<Left, ExportError> {
    let told = clear(&spec.mount, spec.link.as_deref(), Some(spec))?;
    Ok(Left { is_dying: spec.traces().exists(), told })
}

/// Ends the process that left `traces`, if it is still there, and removes its exports. Without
/// traces there was none.
///
/// # Errors
/// Why the process, or one of its exports, is still there.
pub fn clean_up_after(traces: &Path) -> Result<(), String> {
    let text = match std::fs::read_to_string(traces) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(format!("cannot read {}: {error}", traces.display())),
    };
    let traces: Traces =
        serde_json::from_str(&text).map_err(|error| format!("{}: {error}", traces.display()))?;
    if !traces.process.kill() {
        return Err("its process does not end, though it was killed".to_owned());
    }
    clear(&traces.mount, traces.link.as_deref(), None).map(drop).map_err(|error| error.to_string())
}

/// Removes exports of all kinds: the mount, and the link to the device; but none that the volume which comes `next` goes
/// on with. Returns what was done, for people.
fn clear(
    mount: &Path,
    link: Option<&Path>,
    next: Option<&Spec>,
) -> Result<Vec<String>, ExportError> {
    let left = KINDS.iter().filter(|kind| !next.is_some_and(|next| (kind.takes_over)(next)));
    left.filter_map(|kind| (kind.clear_left)(mount, link).transpose()).collect()
}
