//! Members: what they were asked for, how long that took, what went wrong.

use braid_control::Status;

use crate::page::Of;
use crate::told_apart;

pub(crate) fn add(of: &mut Of<'_>, status: &Status) {
    let names = told_apart(status.members.iter().map(|member| member.member.as_str()));
    for (name, member) in names.iter().zip(&status.members) {
        let mut of = of.part("member", name);
        let io = &member.io;
        of.gauge("braid_member_size_bytes", "Size of the member.", member.size_bytes);
        of.counter("braid_member_read_bytes_total", "Bytes read from the member.", io.read_bytes);
        of.counter(
            "braid_member_written_bytes_total",
            "Bytes written to the member.",
            io.written_bytes,
        );
        of.gauge(
            "braid_member_in_flight",
            "Requests that the member has not answered yet.",
            io.in_flight,
        );
        for (op, latencies) in [("read", &io.reads), ("write", &io.writes), ("flush", &io.flushes)]
        {
            of.part("op", op).histogram(
                "braid_member_request_seconds",
                "How long the member took for a request; writes are with discards.",
                latencies,
            );
        }
        of.counter(
            "braid_member_failures_total",
            "Requests that the member answered with an error.",
            member.failures,
        );
        of.gauge(
            "braid_member_slow",
            "Whether it is an outlier among its siblings.",
            member.slow.is_some(),
        );
        of.gauge(
            "braid_member_flush_lost",
            "Whether a flush failed: what was written before may not be on it.",
            member.lost.is_some(),
        );
        of.gauge(
            "braid_member_gone",
            "Whether its file was deleted or replaced under the volume.",
            member.gone.is_some(),
        );
    }
}
