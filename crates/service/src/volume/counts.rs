//! Counters of members and exports, in the words of a status.

use braid_device::{Counted, Histogram, Tally};

use crate::control::{ClientIo, Latencies, MemberIo};

/// Returns the counters of a member.
pub(super) fn member_io(tally: &Tally) -> MemberIo {
    let Counted { read_bytes, written_bytes, in_flight, overdue, timeouts, reads, writes, flushes } =
        tally.read();
    MemberIo {
        read_bytes,
        written_bytes,
        in_flight,
        overdue,
        timeouts,
        reads: latencies(&reads),
        writes: latencies(&writes),
        flushes: latencies(&flushes),
    }
}

/// Returns the counters of an export.
pub(super) fn client_io(tally: &Tally) -> ClientIo {
    let Counted { in_flight, reads, writes, flushes, .. } = tally.read();
    let (reads, writes) = (latencies(&reads), latencies(&writes));
    ClientIo { in_flight, reads, writes, flushes: latencies(&flushes) }
}

fn latencies(times: &Histogram) -> Latencies {
    let used = times.buckets.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
    Latencies {
        count: times.count(),
        sum_us: times.sum_ns / 1000,
        buckets: times.buckets[..used].to_vec(),
    }
}
