//! `braid up` on behalf of a service: the volume becomes the unit `braid@NAME`, not a child of the caller.
//!
//! ```text
//!   braid up ── NAME.spec, NAME.start ──▶ systemctl start braid@NAME ──▶ braid up NAME --foreground
//!      ◀──────── NAME.outcome: ready, or why not ────────────────────────────────┘
//! ```
//!
//! The volume then has the limits, the watchdog and the sandbox of its own unit. `braid web` asks for this by the
//! variable [`BY`]. Where no systemd is in charge, or the unit is not installed, `up` starts the process itself.
//!
//! The unit of a volume that names no TCP address has no network, and that of one which is not attached cannot mount:
//! packaging/system-generators/braid.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use braid_service::beside::Beside;
use braid_service::control::ErrorCode;
use braid_service::failure::{Context, Failure};
use braid_service::places::Places;
use braid_service::process::Outcome;
use braid_service::process::{Start, Tell};
use braid_service::record::Record;
use braid_service::volume::{Attach, Ready, Spec};

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
pub(super) fn start(places: &Places, spec: &Spec, record: &Record) -> Result<Ready, Failure> {
    let (file, told) = (places.one_spec(&spec.name), places.one_start(&spec.name));
    let outcome = outcome_beside(&file);
    let text = serde_json::to_string(&(spec, record)).context("cannot describe the volume")?;
    let put = |file: &Path, text: &str| {
        let put = Beside::replace(file, 0o600, text.as_bytes());
        put.context(format_args!("cannot write {}", file.display()))
    };
    let remove = || [&file, &told, &outcome].map(|file| std::fs::remove_file(file).is_ok());
    remove();
    let unit = format!("braid@{}.service", spec.name);
    let started = put(&file, &text)
        .and_then(|()| put(&told, &format!("{SPEC}={}\n", file.display())))
        .and_then(|()| let_use(places, &spec.name, &spec.nbd, spec.attach))
        .and_then(|()| systemctl(&["start", &unit]));
    let said = std::fs::read_to_string(&outcome).unwrap_or_default();
    remove();
    if started.is_err() {
        // What is refused now is not tried again and again.
        let _ = systemctl(&["stop", &unit]);
    }
    match serde_json::from_str::<Outcome>(&said) {
        Ok(outcome) => outcome.and_then(|ready| started.map(|()| ready)),
        Err(_) => {
            started.and(Err(Failure::refused(format!("{} is being started already", spec.name))
                .next(format!("braid status {}", spec.name))
                .code(ErrorCode::AlreadyUp)))
        }
    }
}

/// Makes systemd read again what volumes use, if the unit of `name` has no network and `nbd` has a TCP address, or cannot
/// mount and `attach` may. The record or the specification that has it is written before.
///
/// # Errors
/// systemd refuses.
pub(super) fn let_use(
    places: &Places,
    name: &str,
    nbd: &[String],
    attach: Attach,
) -> Result<(), Failure> {
    let folder = Path::new("/run/systemd/generator");
    let lacks =
        |what: &str| folder.join(format!("braid@{name}.service.d/50-no-{what}.conf")).exists();
    let listens = nbd.iter().any(|one| one.starts_with("tcp:"));
    let is_missed = || (listens && lacks("network")) || (attach != Attach::None && lacks("mounts"));
    match places.are_systemd_s() && is_missed() {
        true => systemctl(&["daemon-reload"]),
        false => Ok(()),
    }
}

fn systemctl(words: &[&str]) -> Result<(), Failure> {
    let mut command = Command::new("systemctl");
    let output = command.args(words).stdin(Stdio::null()).output();
    let output = output.context("cannot run systemctl")?;
    match output.status.success() {
        true => Ok(()),
        false => Err(Failure::failed(format!(
            "systemctl {}: {}",
            words.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        ))
        .next(match words {
            [_, unit] => format!("journalctl --unit {unit}"),
            _ => "journalctl --boot".to_owned(),
        })),
    }
}

/// The specification that this process, the unit's, was given for this start.
pub(super) fn given() -> Option<PathBuf> {
    std::env::var_os(SPEC).filter(|file| !file.is_empty()).map(PathBuf::from)
}

/// Becomes the volume of the specification in `file`, which says how its start went beside it.
pub(super) fn run_given(file: &Path) -> Failure {
    let start = || {
        let cannot = || format!("cannot read {}", file.display());
        let text = std::fs::read_to_string(file).context(cannot())?;
        let (spec, record) = serde_json::from_str(&text).context(cannot())?;
        Ok(Start::new(spec, Some(record), Tell::CommandOfUnit(outcome_beside(file))))
    };
    start().map_or_else(|failure| failure, |start| start.exec())
}

fn outcome_beside(spec: &Path) -> PathBuf {
    spec.with_extension("outcome")
}
