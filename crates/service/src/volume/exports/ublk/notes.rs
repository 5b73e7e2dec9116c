//! Notes beside a volume's folder in `/run`, about a device that may outlive its server.

use std::io;
use std::path::{Path, PathBuf};

use braid_export_ublk::Device;

use crate::volume::spec::{Spec, Way};

/// The note that the process of the volume with the folder `mount` came to keep completed writes, which ended with it.
pub(super) fn note(mount: &Path) -> PathBuf {
    mount.with_extension("inside")
}

/// The note that a process is about to take over the device of the volume with the folder `mount`. If it is found later, that
/// was not finished, and the driver does not allow it again: its queues have servers in part.
pub(super) fn taking_note(mount: &Path) -> PathBuf {
    mount.with_extension("taking")
}

/// Notes that the process keeps completed writes from now on: its device is not taken over after it.
///
/// # Errors
/// The note cannot be written.
pub(in crate::volume) fn keep_inside(spec: &Spec) -> io::Result<()> {
    match spec.way() {
        Some(Way::Ublk) => std::fs::write(note(&spec.mount), ""),
        _ => Ok(()),
    }
}

/// Removes the notes of a device that is gone.
pub(super) fn forget(mount: &Path) {
    // Most often there is none.
    let _ = std::fs::remove_file(note(mount));
    let _ = std::fs::remove_file(taking_note(mount));
}

/// The refusal of a device with the note of an earlier attempt ([`taking_note`]).
pub(super) fn half_taken(device: &Device, name: &str) -> String {
    format!(
        "{} was about to be taken over when the process that did so ended, and the driver cannot repeat that: \
         `braid down {name} --force` takes it away, with what is mounted on it",
        device.path().display()
    )
}
