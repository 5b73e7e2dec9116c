//! A short summary of a trace for people.

use crate::{Request, Totals, Trace};

const SECOND_NS: u64 = 1_000_000_000;

/// Requests that begin within so long of the first of them count as one burst, in nanoseconds.
const BURST_NS: u64 = 100_000;

/// A trace at a glance.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Numbers and bytes.
    pub totals: Totals,
    /// Reads and writes by their length, from the smallest that there are to the largest.
    pub sizes: Vec<SizeClass>,
    /// Bytes that were read, written or discarded at least once.
    pub working_set: u64,
    /// A lower bound of the queue depth; none without times, or without reads and writes.
    pub burst: Option<Burst>,
    /// The second with the most requests, the first of them; none without times or requests.
    pub busiest: Option<Busiest>,
}

/// Reads and writes of `from` bytes up to twice that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeClass {
    /// The smallest length in it, in bytes: a power of two.
    pub from: u64,
    /// Numbers of requests.
    pub reads: u64,
    /// As above.
    pub writes: u64,
}

/// The number of reads and writes that were made at once: within 100 µs of the first of them. Traces do not
/// contain the times of answers, so this is the least possible queue depth if answers take longer than that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// Half of the requests were in bursts of this number, or fewer.
    pub median: u64,
    /// The largest.
    pub largest: u64,
}

/// A second of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busiest {
    /// Which, counted from the first request.
    pub second: u64,
    /// Requests that were made in it.
    pub requests: u64,
    /// Bytes that these read and wrote.
    pub bytes: u64,
}

impl Summary {
    /// Looks at a trace. Takes memory of 16 bytes a request meanwhile.
    pub fn of(trace: &Trace) -> Summary {
        let timed = if trace.has_times { &trace.requests[..] } else { &[] };
        Summary {
            totals: trace.totals(),
            sizes: sizes(&trace.requests),
            working_set: working_set(&trace.requests),
            burst: burst(timed),
            busiest: busiest(timed),
        }
    }
}

fn sizes(requests: &[Request]) -> Vec<SizeClass> {
    let mut classes = [(0u64, 0u64); 64];
    for request in requests.iter().filter(|request| request.has_data()) {
        let (reads, writes) = &mut classes[request.length.ilog2() as usize];
        *if request.kind == crate::Kind::Read { reads } else { writes } += 1;
    }
    let class = |(power, (reads, writes))| SizeClass { from: 1u64 << power, reads, writes };
    let all = classes.into_iter().enumerate().map(class);
    all.filter(|class| class.reads + class.writes > 0).collect()
}

/// The union of all ranges, in bytes.
fn working_set(requests: &[Request]) -> u64 {
    let mut ranges: Vec<(u64, u64)> =
        requests.iter().map(|request| (request.offset, request.end())).collect();
    ranges.sort_unstable();
    let (mut covered, mut reached) = (0, 0);
    for (start, end) in ranges {
        covered += end.saturating_sub(start.max(reached));
        reached = reached.max(end);
    }
    covered
}

fn burst(requests: &[Request]) -> Option<Burst> {
    let data: Vec<u64> =
        requests.iter().filter(|request| request.has_data()).map(|one| one.at_ns).collect();
    let mut sizes = Vec::new();
    let mut rest = &data[..];
    while let Some(first) = rest.first() {
        let size = rest.partition_point(|at| at - first < BURST_NS);
        sizes.push(size as u64);
        rest = &rest[size..];
    }
    sizes.sort_unstable();
    let mut seen = 0;
    let median = sizes.iter().find(|size| {
        seen += **size;
        seen * 2 >= data.len() as u64
    });
    Some(Burst { median: *median?, largest: *sizes.last()? })
}

fn busiest(requests: &[Request]) -> Option<Busiest> {
    let start = requests.first()?.at_ns;
    let second = |request: &Request| (request.at_ns - start) / SECOND_NS;
    let mut busiest: Option<Busiest> = None;
    for chunk in requests.chunk_by(|one, next| second(one) == second(next)) {
        let count = chunk.len() as u64;
        if busiest.is_none_or(|busiest| busiest.requests < count) {
            let data = chunk.iter().filter(|request| request.has_data());
            let bytes = data.fold(0u64, |sum, request| sum.saturating_add(request.length));
            busiest = Some(Busiest { second: second(&chunk[0]), requests: count, bytes });
        }
    }
    busiest
}
