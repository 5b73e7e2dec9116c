//! A volume as a whole, and how clients reach it.

use braid_control::{AttachedStatus, ClientIo, ExportStatus, Status};

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
    if let Some(attached) = &status.attached {
        add_attached(&mut of.part("device", &attached.path), attached);
    }
    if let Some(nbd) = &status.nbd {
        add_nbd(of, nbd);
    }
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

fn add_attached(of: &mut Of<'_>, attached: &AttachedStatus) {
    for (op, count) in
        [("read", attached.reads), ("write", attached.writes), ("flush", attached.flushes)]
    {
        let help = "Requests of the block device of this machine.";
        of.part("op", op).counter("braid_attached_requests_total", help, count);
    }
    let names = ["braid_attached_in_flight", "braid_attached_request_seconds"];
    add_waited(of, names, &attached.io);
    let help = "Of these, answered with an error.";
    of.counter("braid_attached_errors_total", help, attached.errors);
    of.counter("braid_attached_read_bytes_total", "What reads answered.", attached.read_bytes);
    of.counter(
        "braid_attached_written_bytes_total",
        "What writes brought.",
        attached.written_bytes,
    );
}

/// How long the clients of an export waited: in flight, and a histogram.
fn add_waited(of: &mut Of<'_>, [in_flight, seconds]: [&'static str; 2], io: &ClientIo) {
    let help = "Requests that the volume has not answered yet.";
    of.gauge(in_flight, help, io.in_flight);
    for (op, latencies) in [("read", &io.reads), ("write", &io.writes), ("flush", &io.flushes)] {
        let help = "How long clients waited for the volume; writes are with discards.";
        of.part("op", op).histogram(seconds, help, latencies);
    }
}

fn add_nbd(of: &mut Of<'_>, nbd: &ExportStatus) {
    add_waited(of, ["braid_nbd_in_flight", "braid_nbd_request_seconds"], &nbd.io);
    of.gauge("braid_nbd_connections", "NBD clients that are connected.", nbd.connections);
    for (name, help, count) in [
        (
            "braid_nbd_connections_accepted_total",
            "NBD clients up to now.",
            nbd.connections_accepted,
        ),
        (
            "braid_nbd_connections_refused_total",
            "NBD clients that were turned away.",
            nbd.connections_refused,
        ),
        (
            "braid_nbd_protocol_errors_total",
            "Connections that ended because of what they sent.",
            nbd.protocol_errors,
        ),
        ("braid_nbd_requests_total", "Requests of NBD clients.", nbd.requests),
        ("braid_nbd_replies_total", "Requests that were answered.", nbd.replies),
        ("braid_nbd_errors_total", "Requests that were answered with an error.", nbd.errors),
        ("braid_nbd_receives_total", "System calls that received.", nbd.receives),
        ("braid_nbd_sends_total", "System calls that sent.", nbd.sends),
        ("braid_nbd_read_bytes_total", "What reads answered.", nbd.read_bytes),
        ("braid_nbd_written_bytes_total", "What writes brought.", nbd.written_bytes),
    ] {
        of.counter(name, help, count);
    }
}
