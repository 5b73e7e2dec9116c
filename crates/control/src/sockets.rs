//! Which volumes have a control socket.

use std::io;
use std::path::{Path, PathBuf};

/// A name that no volume has: `monitor.toml`, among the records of volumes, configures `braid monitor`.
pub const MONITOR: &str = "monitor";

/// The file in the state folder in which the monitor logs events: [`EventLog`](crate::EventLog).
pub const EVENTS: &str = "events.jsonl";

/// A volume by its socket, whether or not a process still answers there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The volume's name.
    pub name: String,
    /// Its control socket.
    pub socket: PathBuf,
}

/// All volumes that have, or had, a control socket in the folder `run`, by name.
///
/// # Errors
/// The folder cannot be read. Without a folder there are none.
pub fn volumes(run: &Path) -> io::Result<Vec<Named>> {
    let entries = match std::fs::read_dir(run) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let named = |file: String| {
        let name = file.strip_suffix(".sock")?.to_owned();
        Some(Named { name, socket: run.join(&file) })
    };
    let mut all: Vec<Named> =
        entries.filter_map(|entry| named(entry.ok()?.file_name().into_string().ok()?)).collect();
    all.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(all)
}
