//! A trace, and what it adds up to.

use std::collections::VecDeque;

use crate::{Kind, Request};

/// The text format of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The output of `blkparse`.
    Blkparse,
    /// fio's iolog, version 2.
    Iolog2,
    /// fio's iolog, version 3.
    Iolog3,
}

impl Format {
    /// For people.
    pub const fn name(self) -> &'static str {
        match self {
            Format::Blkparse => "blkparse",
            Format::Iolog2 => "fio iolog, version 2",
            Format::Iolog3 => "fio iolog, version 3",
        }
    }
}

/// The requests to one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// In order of time; those of one moment in the order of the text.
    pub requests: Vec<Request>,
    /// The text format.
    pub format: Format,
    /// The device (`8,0`) or file; empty if there are no requests.
    pub name: String,
    /// True if it contains the times of requests. A version 2 iolog without `wait` does not: each request
    /// follows as soon as it can.
    pub has_times: bool,
    /// The line that had no end and does not count, if there was one: the last.
    pub torn_line: Option<u64>,
}

/// The number of streams that are distinguished to find requests that continue another one.
const STREAMS: usize = 16;

/// The sums over a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Numbers of requests.
    pub reads: u64,
    /// As above.
    pub writes: u64,
    /// As above.
    pub discards: u64,
    /// As above.
    pub flushes: u64,
    /// Writes with forced unit access, which are among the writes.
    pub fua_writes: u64,
    /// Bytes that were read. Sums stop at 2^64 − 1.
    pub read_bytes: u64,
    /// Bytes that were written.
    pub written_bytes: u64,
    /// Bytes that were discarded.
    pub discarded_bytes: u64,
    /// From the first request to the last, in nanoseconds.
    pub duration_ns: u64,
    /// The largest end of a request, in bytes: a device has to be at least so large.
    pub largest_end: u64,
    /// Reads and writes that begin where one of the 16 reads and writes before ended.
    pub sequential: u64,
}

impl Trace {
    /// Adds it up.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        let mut ends: VecDeque<u64> = VecDeque::with_capacity(STREAMS + 1);
        for request in &self.requests {
            totals.add(request);
            if request.has_data() {
                totals.sequential += u64::from(ends.contains(&request.offset));
                ends.push_front(request.end());
                ends.truncate(STREAMS);
            }
        }
        if let [first, .., last] = &self.requests[..] {
            totals.duration_ns = last.at_ns - first.at_ns;
        }
        totals
    }
}

/// Requests under way at once at most when a trace is carried out; what is due then waits its turn. So many has
/// a queue of Linux' block layer (`nr_requests`, Documentation/ABI/stable/sysfs-block).
pub const AT_ONCE: usize = 128;

/// The part of `length_ns` nanoseconds in which most bytes are read and written, with times from its beginning;
/// the first of several. All, if they last no longer. They are in order of time.
pub fn busiest(all: &[Request], length_ns: u64) -> Vec<Request> {
    // `end` is behind what began less than `length_ns` after the request at `from`.
    let (mut end, mut bytes, mut most) = (0, 0_u128, (0, 0..0));
    for (from, first) in all.iter().enumerate() {
        while let Some(next) = all.get(end).filter(|one| one.at_ns - first.at_ns < length_ns) {
            bytes += u128::from(moved(next));
            end += 1;
        }
        if bytes > most.0 {
            most = (bytes, from..end);
        }
        bytes = bytes.saturating_sub(u128::from(moved(first)));
    }
    let part = &all[most.1];
    let began_ns = part.first().map_or(0, |first| first.at_ns);
    part.iter().map(|one| Request { at_ns: one.at_ns - began_ns, ..*one }).collect()
}

fn moved(request: &Request) -> u64 {
    if request.has_data() { request.length } else { 0 }
}

impl Totals {
    fn add(&mut self, request: &Request) {
        let (count, bytes) = match request.kind {
            Kind::Read => (&mut self.reads, Some(&mut self.read_bytes)),
            Kind::Write => (&mut self.writes, Some(&mut self.written_bytes)),
            Kind::Discard => (&mut self.discards, Some(&mut self.discarded_bytes)),
            Kind::Flush => (&mut self.flushes, None),
        };
        *count += 1;
        if let Some(bytes) = bytes {
            *bytes = bytes.saturating_add(request.length);
        }
        self.fua_writes += u64::from(request.fua);
        self.largest_end = self.largest_end.max(request.end());
    }

    /// Reads and writes.
    pub fn data_requests(&self) -> u64 {
        self.reads + self.writes
    }

    /// The share of reads among reads and writes, from 0 to 1; none without any.
    pub fn read_share(&self) -> Option<f64> {
        self.share(self.reads)
    }

    /// The share of sequential requests among reads and writes, from 0 to 1; none without any.
    pub fn sequential_share(&self) -> Option<f64> {
        self.share(self.sequential)
    }

    /// The mean length of reads and writes, in bytes; none without any.
    pub fn mean_length(&self) -> Option<f64> {
        let bytes = self.read_bytes as f64 + self.written_bytes as f64;
        (self.data_requests() > 0).then(|| bytes / self.data_requests() as f64)
    }

    fn share(&self, part: u64) -> Option<f64> {
        (self.data_requests() > 0).then(|| part as f64 / self.data_requests() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_part_is_that_of_most_bytes() {
        let at = |at_ns, length| Request { at_ns, offset: 0, length, kind: Kind::Read, fua: false };
        let all = [at(5, 10), at(6, 1), at(9, 1), at(10, 10), at(11, 3), at(19, 9), at(20, 5)];
        let part = |length_ns| {
            busiest(&all, length_ns).iter().map(|one| (one.at_ns, one.length)).collect::<Vec<_>>()
        };
        assert_eq!(part(2), [(0, 9), (1, 5)]);
        assert_eq!(part(1), [(0, 10)], "the first of several");
        assert_eq!(
            part(6),
            [(0, 10), (1, 1), (4, 1), (5, 10)],
            "what begins a length later is behind it"
        );
        assert_eq!(part(u64::MAX).len(), 7);
        assert_eq!(busiest(&[Request::flush(3)], 9), []);
        assert_eq!(busiest(&[], 9), []);
    }
}
