//! The work that an array is to do: by name, as fio's jobs, or as a trace.

use std::borrow::Cow;

use braid_model::Host;
use braid_seed::{Rng, Zipf};
use braid_trace::{Distribution, Extent, Job, Kind, Pattern, Request};

use crate::load::{Closed, Outcome, Places, Reading, closed_cut, read_ahead, replay, write_back};
use crate::machine::Machine;

/// A workload.
#[derive(Clone, Debug)]
pub enum Workload {
    /// One of [`NAMES`].
    Named(Named),
    /// Sections of a job file of fio, all at once.
    Jobs(Vec<Job>),
    /// A recorded trace.
    Trace(Vec<Request>),
}

/// A workload that has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Named {
    /// As it is typed.
    pub name: &'static str,
    /// In a sentence's part.
    pub about: &'static str,
    what: What,
}

/// A workload of one kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// One long read through the page cache.
    ReadAhead,
    /// One long write through the page cache.
    WriteBack,
    /// Past the page cache: bytes of a request, reads in a hundred, requests at once, processes; in sequence or
    /// anywhere.
    Direct(u64, u64, u64, u64, bool),
}

/// All that have a name.
pub const NAMES: &[Named] = &[
    Named {
        name: "seq-read",
        about: "one long read through the page cache",
        what: What::ReadAhead,
    },
    Named {
        name: "seq-write",
        about: "one long write through the page cache",
        what: What::WriteBack,
    },
    Named {
        name: "streams",
        about: "four readers of 1 MiB, each of a file of its own",
        what: What::Direct(1 << 20, 100, 1, 4, true),
    },
    Named {
        name: "random-read",
        about: "reads of 4 KiB anywhere, 32 at once",
        what: What::Direct(4096, 100, 32, 1, false),
    },
    Named {
        name: "random-write",
        about: "writes of 4 KiB anywhere, 32 at once",
        what: What::Direct(4096, 0, 32, 1, false),
    },
    Named {
        name: "database",
        about: "8 KiB anywhere, 70 % reads, 8 at once",
        what: What::Direct(8192, 70, 8, 1, false),
    },
    Named {
        name: "files",
        about: "64 KiB anywhere, 80 % reads, 4 at once",
        what: What::Direct(65536, 80, 4, 1, false),
    },
];

/// The length to which a run is cut: requests, bytes, and the least number of stripes.
const REQUESTS: u64 = 1500;
const BYTES: u64 = 48 << 20;
const STRIPES: u64 = 16;
/// Requests that show which places a job asks for often.
const RETURNING: u64 = 200_000;
/// Places of which Zipf's law draws.
const POPULAR: u64 = 1 << 16;

impl Workload {
    /// The workload of this name.
    pub fn named(name: &str) -> Option<Workload> {
        NAMES.iter().find(|one| one.name == name).map(|one| Workload::Named(*one))
    }

    /// The work on an array of `size` bytes, and the bytes from the beginning that it uses. `None` for a trace,
    /// for several jobs at once, and for a job that is neither one long run nor, past the page cache, of one
    /// kind of request.
    pub fn what(&self, size: u64) -> Option<(What, u64)> {
        match self {
            Workload::Named(named) => Some((named.what, size)),
            Workload::Jobs(jobs) => match jobs.as_slice() {
                [job] if job.offset == 0 && job.flush_every == 0 => {
                    let range = of_job(job, size).range;
                    what_of(job).map(|what| (what, range))
                }
                _ => None,
            },
            Workload::Trace(_) => None,
        }
    }

    /// The requests of which a cache could answer those that come again: a trace's, or so many of a job that
    /// asks for some places more often than for others. `None` where all places are alike.
    pub fn returning(&self, size: u64) -> Option<Cow<'_, [Request]>> {
        let jobs = match self {
            Workload::Trace(requests) => return Some(Cow::Borrowed(requests)),
            Workload::Jobs(jobs) => jobs,
            Workload::Named(_) => return None,
        };
        let [job] = jobs.as_slice() else { return None };
        let load = of_job(job, size);
        let Places::Zipf(zipf) = &load.places else { return None };
        let (mut rng, slots) = (Rng::new(0x000c_ac4e), (load.range / load.request).max(1));
        let mut draw = |_| {
            let kind = if rng.percent(load.reads) { Kind::Read } else { Kind::Write };
            let offset = job.offset + zipf.draw(&mut rng) % slots * load.request;
            Request { at_ns: 0, offset, length: load.request, kind, fua: false }
        };
        Some((0..RETURNING).map(&mut draw).collect())
    }

    /// The endless requests of jobs past the page cache on an array of `size` bytes; `None` for any other
    /// workload.
    pub fn loads(&self, size: u64) -> Option<Vec<Closed>> {
        let Workload::Jobs(jobs) = self else { return None };
        let load = |job| Closed { count: u64::MAX, ..of_job(job, size) };
        jobs.iter().all(|job| job.direct).then(|| jobs.iter().map(load).collect())
    }

    /// Carries it out on a machine at rest whose array has `size` bytes; `under_way` is what its
    /// queues hold, in bytes.
    pub fn run(&self, machine: &mut Machine, host: &Host, size: u64, under_way: u64) -> Outcome {
        match self {
            Workload::Named(named) => match named.what {
                What::ReadAhead => long_read(machine, host, size),
                What::WriteBack => long_write(machine, host, size, under_way),
                What::Direct(request, reads, depth, processes, sequential) => {
                    let places = if sequential { Places::Sequential } else { Places::Uniform };
                    let count = u64::MAX;
                    let load =
                        Closed { count, request, reads, places, range: size, processes, depth };
                    closed_cut(machine, &[load], REQUESTS.min(BYTES / request * 4))
                }
            },
            Workload::Jobs(jobs) => match jobs.as_slice() {
                [job] if what_of(job) == Some(What::ReadAhead) => long_read(machine, host, size),
                [job] if what_of(job) == Some(What::WriteBack) => {
                    long_write(machine, host, size, under_way)
                }
                [job] => {
                    let enough = REQUESTS.max(u64::from(job.jobs * job.depth) * 8);
                    closed_cut(machine, &[of_job(job, size)], enough)
                }
                // What each has to do makes no difference while all go on.
                jobs => {
                    let load = |job| Closed { count: u64::MAX, ..of_job(job, size) };
                    let loads: Vec<_> = jobs.iter().map(load).collect();
                    closed_cut(machine, &loads, REQUESTS * jobs.len() as u64)
                }
            },
            Workload::Trace(requests) => replay(machine, requests, size),
        }
    }
}

fn long(machine: &Machine, size: u64) -> u64 {
    BYTES.max(STRIPES * machine.stripe()).min(size)
}

/// The read-ahead of a long read, in bytes: Linux drivers/md/raid0.c, raid0_run: two stripes, if that is more.
pub(crate) fn window(machine: &Machine, host: &Host) -> u64 {
    host.readahead_bytes.max(2 * machine.stripe())
}

fn long_read(machine: &mut Machine, host: &Host, size: u64) -> Outcome {
    let bytes = long(machine, size);
    let window = window(machine, host);
    Outcome::moved(bytes, 0, read_ahead(machine, host, Reading { bytes, window, request: 1 << 20 }))
}

fn long_write(machine: &mut Machine, host: &Host, size: u64, under_way: u64) -> Outcome {
    let bytes = long(machine, size);
    Outcome::moved(0, bytes, write_back(machine, host, bytes, under_way))
}

fn what_of(job: &Job) -> Option<What> {
    let random = match job.pattern {
        Pattern::Sequential => false,
        Pattern::Random { distribution: Distribution::Uniform, .. } => true,
        Pattern::Random { distribution: Distribution::Zipf { .. }, .. } => return None,
    };
    // Through the page cache in sequence: what a single long run is.
    match (job.direct, random, job.jobs, job.read_percent) {
        (true, _, jobs, reads) => {
            Some(What::Direct(job.block, reads.into(), job.depth.into(), jobs.into(), !random))
        }
        (false, false, 1, 100) => Some(What::ReadAhead),
        (false, false, 1, 0) => Some(What::WriteBack),
        _ => None,
    }
}

fn of_job(job: &Job, size: u64) -> Closed {
    let all = match job.size {
        Extent::Whole => size.saturating_sub(job.offset),
        Extent::Bytes(bytes) => bytes,
        Extent::Percent(percent) => size / 100 * u64::from(percent),
    };
    let range = all.clamp(job.block, size.max(job.block));
    let places = match job.pattern {
        Pattern::Sequential => Places::Sequential,
        Pattern::Random { distribution: Distribution::Uniform, .. } => Places::Uniform,
        Pattern::Random { distribution: Distribution::Zipf { theta }, .. } => {
            Places::Zipf(Zipf::new((range / job.block).clamp(1, POPULAR), theta))
        }
    };
    let whole = job.io_size.unwrap_or(range) / job.block * u64::from(job.jobs);
    Closed {
        count: whole.max(1),
        request: job.block,
        reads: u64::from(job.read_percent),
        places,
        range,
        processes: u64::from(job.jobs),
        depth: u64::from(job.depth),
    }
}
