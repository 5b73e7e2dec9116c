//! A volume as a whole, and how clients reach it.

use braid_control::{ExportStatus, Status};
use braid_status::Figures;

use crate::page::Of;
use crate::told_apart;

/// All values of [`Status::state`].
const STATES: [&str; 6] = ["online", "resyncing", "degraded", "failing", "failed", "stalled"];

pub(crate) fn add_up(of: &mut Of<'_>, is_up: bool) {
    of.gauge("braid_volume_up", "Whether the volume's process answers.", is_up);
}

pub(crate) fn add(of: &mut Of<'_>, status: &Status) {
    add_up(of, true);
    of.states(
        "braid_volume_state",
        "How the volume is; 1 for the state that it is in.",
        &STATES,
        &status.state,
    );
    of.figures("", status);
    of.figures("", &status.device);
    of.gauge(
        "braid_volume_warnings",
        "What is not as it should be, though it works: lines of warning in its status.",
        status.warnings.len(),
    );
    status.exports.iter().for_each(|export| add_export(of, export));
    let rams = told_apart(status.rams.iter().map(|ram| ram.ram.as_str()));
    for (name, ram) in rams.iter().zip(&status.rams) {
        of.part("ram", name).figures("", ram);
    }
    if let Some(trace) = &status.trace {
        of.figures("", trace);
    }
}

/// An export: a block device of this machine under `attached`, whatever its kind; others under their kind, of which
/// a volume has one each.
fn add_export(of: &mut Of<'_>, export: &ExportStatus) {
    let ops =
        [("read", &export.io.reads), ("write", &export.io.writes), ("flush", &export.io.flushes)];
    let (mut of, prefix) = match export.is_device() {
        true => (of.part("device", &export.address), "braid_attached_".to_owned()),
        false => (of.all(), format!("braid_{}_", export.kind)),
    };
    for (op, latencies) in ops {
        let help = "How long clients waited for the volume; writes are with discards.";
        of.part("op", op).histogram(format!("{prefix}request_seconds"), help, latencies);
    }
    of.figures(&prefix, &export.io);
    if !export.is_device() {
        of.figures(&prefix, export);
        if let Some(tls) = &export.tls {
            of.figures(&prefix, tls);
        }
        return of.figures(&prefix, &export.counts);
    }
    for (op, latencies) in ops {
        let help = "Requests of the block device of this machine.";
        of.part("op", op).counter("braid_attached_requests_total", help, latencies.count);
    }
    // Its requests are counted above, by what they are.
    export.counts.each(&mut |one| {
        if one.metric != "requests_total" {
            of.figure(&prefix, one);
        }
    });
}
