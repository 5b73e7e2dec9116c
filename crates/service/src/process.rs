//! The process of a volume, as `braid up` starts it.

use std::io::Write;

use crate::failure::Failure;
use crate::log;
use crate::outcome::{Outcome, failure_of};
use crate::volume::{Spec, run};

/// The word that starts the process of a volume. `braid up` says it. It is not a command, so help, manual pages and
/// completions do not have it.
pub const VOLUME: &str = "__volume";

/// Many clients need many descriptors; with fewer, some are turned away, and that is said then.
pub fn raise_open_files() {
    let _ = braid_sys::process::raise_open_files();
}

/// The process that `up` starts.
pub fn main() -> Result<(), Failure> {
    let spec: Spec = serde_json::from_reader(std::io::stdin())
        .map_err(|error| Failure::usage(format!("`braid up` starts this process: {error}")))?;
    spec.stack.member_names().iter().for_each(|(name, _)| log::note_path(name));
    if let Some(control) = &spec.control {
        log::bound(&control.with_extension("log"));
    }
    // A process that leads its group already has a session of its own.
    let _ = braid_sys::process::new_session();
    raise_open_files();
    let result = run(&spec, None, |ready| say(&Outcome::Ready(ready.clone())));
    result.map_err(|error| {
        say(&Outcome::of(&error));
        failure_of(&error)
    })
}

/// Tells the command that waits. Once the volume is ready, it waits no longer: an error is in the log then.
fn say(outcome: &Outcome) {
    if let Ok(line) = serde_json::to_string(outcome) {
        let _ = writeln!(std::io::stdout(), "{line}");
        let _ = std::io::stdout().flush();
    }
}
