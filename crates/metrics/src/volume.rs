//! A volume as a whole, and how clients reach it.

use braid_control::{ExportStatus, Status};

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
    let device = &status.device;
    of.gauge("braid_volume_size_bytes", "Size of the volume's device.", device.size_bytes);
    of.gauge("braid_volume_read_only", "Whether it was brought up read-only.", device.read_only);
    of.gauge("braid_volume_locked", "Whether writes are refused for now.", device.locked);
    of.gauge(
        "braid_volume_warnings",
        "What is not as it should be, though it works: lines of warning in its status.",
        status.warnings.len(),
    );
    of.gauge(
        "braid_volume_uptime_seconds",
        "Since the volume was brought up.",
        status.uptime_seconds,
    );
    of.counter(
        "braid_volume_cpu_seconds_total",
        "Processor time of the volume's process.",
        status.cpu_ns as f64 / 1e9,
    );
    of.counter(
        "braid_volume_page_faults_total",
        "Page faults of the threads that serve: each may have waited for memory.",
        status.page_faults,
    );
    of.gauge("braid_volume_shards", "Threads that serve.", status.shards);
    of.gauge(
        "braid_volume_promised_bytes",
        "Memory for content that the volume may take.",
        status.promised_bytes,
    );
    status.exports.iter().for_each(|export| add_export(of, export));
    let rams = told_apart(status.rams.iter().map(|ram| ram.ram.as_str()));
    for (name, ram) in rams.iter().zip(&status.rams) {
        let mut of = of.part("ram", name);
        of.gauge("braid_ram_size_bytes", "What the RAM disk promises.", ram.size_bytes);
        of.gauge("braid_ram_used_bytes", "Written and not discarded since.", ram.used_bytes);
        if let Some(allocated) = ram.allocated_bytes {
            let help = "Memory that the kernel holds for it, in RAM or swapped out.";
            of.gauge("braid_ram_allocated_bytes", help, allocated);
        }
    }
    if let Some(trace) = &status.trace {
        of.counter("braid_trace_requests_total", "Requests in the trace.", trace.requests);
        of.counter("braid_trace_dropped_total", "Requests that are not in it.", trace.dropped);
    }
}

/// An export: a block device of this machine under `attached`, whatever its kind; others under their kind, of which
/// a volume has one each.
fn add_export(of: &mut Of<'_>, export: &ExportStatus) {
    let ExportStatus { counts, io, .. } = export;
    let ops = [("read", &io.reads), ("write", &io.writes), ("flush", &io.flushes)];
    let (mut of, prefix) = match export.is_device() {
        true => (of.part("device", &export.address), "attached"),
        false => (of.all(), export.kind.as_str()),
    };
    let name = |rest: &str| format!("braid_{prefix}_{rest}");
    let help = "Requests that the volume has not answered yet.";
    of.gauge(name("in_flight"), help, io.in_flight);
    for (op, latencies) in ops {
        let help = "How long clients waited for the volume; writes are with discards.";
        of.part("op", op).histogram(name("request_seconds"), help, latencies);
    }
    for (rest, help, count) in [
        ("errors_total", "Requests that were answered with an error.", counts.errors),
        ("read_bytes_total", "What reads answered.", counts.read_bytes),
        ("written_bytes_total", "What writes brought.", counts.written_bytes),
    ] {
        of.counter(name(rest), help, count);
    }
    if export.is_device() {
        for (op, latencies) in ops {
            let help = "Requests of the block device of this machine.";
            of.part("op", op).counter(name("requests_total"), help, latencies.count);
        }
        return;
    }
    of.gauge(name("connections"), "Clients that are connected.", export.connections);
    for (rest, help, count) in [
        ("connections_accepted_total", "Clients up to now.", counts.connections_accepted),
        ("connections_refused_total", "Clients that were turned away.", counts.connections_refused),
        (
            "protocol_errors_total",
            "Connections that ended because of what they sent.",
            counts.protocol_errors,
        ),
        ("requests_total", "Requests of clients.", counts.requests),
        ("replies_total", "Requests that were answered.", counts.replies),
        ("receives_total", "System calls that received.", counts.receives),
        ("sends_total", "System calls that sent.", counts.sends),
    ] {
        of.counter(name(rest), help, count);
    }
}
