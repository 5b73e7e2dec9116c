//! `braid up` on behalf of a service: the volume becomes the unit `braid@NAME`, not a child of the caller.
//!
//! ```text
//!   braid up ── NAME.spec, NAME.start ──▶ systemctl start braid@NAME ──▶ braid up NAME --foreground
//!      ◀──────── NAME.outcome: ready, or why not ────────────────────────────────┘
//! ```
//!
//! The volume then has the limits, the watchdog and the sandbox of its own unit. `braid web` asks for this by the
//! variable [`BY`]. Where no systemd is in charge, or the unit is not installed, `up` starts the process itself.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::outcome::Outcome;
use super::serve;
use crate::beside::Beside;
use crate::control::ErrorCode;
use crate::failure::{Context, Failure};
use crate::places::Places;
use crate::volume::{Notify, Ready, Spec, run};

/// `service` asks for the unit.
const BY: &str = "BRAID_UP_BY";
/// The file that holds the volume's specification for one start. The unit takes it from `NAME.start`.
const SPEC: &str = "BRAID_UP_SPEC";

/// Returns whether the caller asked for a unit, and this machine can start one.
pub(super) fn is_asked(places: &Places) -> bool {
    let is_installed = || {
        let mut cat = Command::new("systemctl");
        let cat = cat.args(["cat", "braid@.service"]).stdout(Stdio::null()).stderr(Stdio::null());
        cat.status().is_ok_and(|status| status.success())
    };
    std::env::var_os(BY).is_some_and(|by| by == "service")
        && places.are_systemd_s()
        && is_installed()
}

/// Starts the volume as its unit, and waits until it is ready or has said why not.
pub(super) fn start(places: &Places, spec: &Spec) -> Result<Ready, Failure> {
    let (file, told) = (places.one_spec(&spec.name), places.one_start(&spec.name));
    let outcome = outcome_beside(&file);
    let text = serde_json::to_string(spec).context("cannot describe the volume")?;
    let put = |file: &Path, text: &str| {
        let put = Beside::replace(file, 0o600, text.as_bytes());
        put.context(format_args!("cannot write {}", file.display()))
    };
    let remove = || [&file, &told, &outcome].map(|file| std::fs::remove_file(file).is_ok());
    remove();
    let unit = format!("braid@{}.service", spec.name);
    let started = put(&file, &text)
        .and_then(|()| put(&told, &format!("{SPEC}={}\n", file.display())))
        .and_then(|()| systemctl("start", &unit));
    let said = std::fs::read_to_string(&outcome).unwrap_or_default();
    remove();
    if started.is_err() {
        // What is refused now is not tried again and again.
        let _ = systemctl("stop", &unit);
    }
    match serde_json::from_str(&said) {
        Ok(outcome) => {
            let ready = Outcome::into_result(outcome)?;
            started.map(|()| ready)
        }
        Err(_) => {
            started.and(Err(Failure::refused(format!("{} is being started already", spec.name))
                .next(format!("braid status {}", spec.name))
                .code(ErrorCode::AlreadyUp)))
        }
    }
}

fn systemctl(verb: &str, unit: &str) -> Result<(), Failure> {
    let mut command = Command::new("systemctl");
    let output = command.args([verb, unit]).stdin(Stdio::null()).output();
    let output = output.context("cannot run systemctl")?;
    match output.status.success() {
        true => Ok(()),
        false => Err(Failure::failed(format!(
            "systemctl {verb} {unit}: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        ))
        .next(format!("journalctl --unit {unit}"))),
    }
}

/// The specification that this process, the unit's, was given for this start.
pub(super) fn given() -> Option<PathBuf> {
    std::env::var_os(SPEC).filter(|file| !file.is_empty()).map(PathBuf::from)
}

/// Runs the volume of the specification in `file`, and says how its start went beside it.
pub(super) fn run_given(file: &Path) -> Result<(), Failure> {
    let cannot = || format!("cannot read {}", file.display());
    let text = std::fs::read_to_string(file).context(cannot())?;
    let spec: Spec = serde_json::from_str(&text).context(cannot())?;
    serve::raise_open_files();
    let say = |outcome: &Outcome| {
        let text = serde_json::to_string(outcome).unwrap_or_default();
        if let Err(error) = Beside::replace(&outcome_beside(file), 0o600, text.as_bytes()) {
            eprintln!("braid: cannot report the result of the start: {error}");
        }
    };
    let manager = Notify::from_environment().context("NOTIFY_SOCKET")?;
    let is_ready = Cell::new(false);
    let result = run(&spec, manager, |ready| {
        is_ready.set(true);
        say(&Outcome::Ready(ready.clone()));
    });
    result.map_err(|error| {
        if !is_ready.get() {
            say(&Outcome::of(&error));
        }
        serve::failure_of(&error)
    })
}

fn outcome_beside(spec: &Path) -> PathBuf {
    spec.with_extension("outcome")
}
