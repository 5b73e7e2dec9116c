//! The requests of tools to an array, cut to the amount that suffices to know their rates.
//!
//! Deliberately absent: further writes of a file system.

use braid_model::Host;

use crate::array::Array;
use crate::load::{
    Closed, Files, Outcome, Places, Random, Reading, Window, closed_cut, closed_within,
    random_reads, random_writes, read_ahead, synced, write_back,
};
use crate::machine::Machine;
use crate::workload::Workload;

/// A run of a tool on a whole array.
#[derive(Clone, Debug)]
pub enum Run {
    /// Requests past the page cache: fio, `dd` with `direct`.
    Direct(Closed),
    /// The same, of several at once, for a time or until all is done: what a cache, or a disk's cache of writes,
    /// holds by then is of what was asked before.
    ForTime {
        /// The requests.
        loads: Vec<Closed>,
        /// Bytes from the beginning that are written first, sequentially and without counting.
        filled: u64,
        /// The time before the count begins, in seconds.
        ramp_s: f64,
        /// The counted time after that, in seconds.
        seconds: f64,
        /// True if a flush ends it; its time counts: `--end_fsync`, `conv=fdatasync`.
        synced: bool,
    },
    /// One long read through the page cache: `dd`, `hdparm -t`.
    Read {
        /// The total amount, in bytes.
        bytes: u64,
        /// The bytes that a call reads.
        request: u64,
        /// The read-ahead window, in bytes; if `None`, that of Linux for such an array.
        window: Option<u64>,
    },
    /// One long write through the page cache, until it is on the devices: `dd`.
    Write {
        /// The total amount, in bytes.
        bytes: u64,
    },
    /// Writes one after the other, each of which waits until it is on the devices.
    Synced {
        /// The bytes that a call writes.
        request: u64,
    },
    /// Random reads of files through a page cache that holds no page of them.
    RandomReads(Random),
    /// Random writes to files through the page cache, with an fsync after so many.
    RandomWrites(Random, u64),
    /// The file operations of a program with several processes.
    Files(Files),
    /// A recorded trace, or fio's jobs, within a number of bytes from the beginning.
    Asked(Workload, u64),
}

/// The bytes, and the least number of stripes, to which a long run is cut: beyond them, rates no longer change.
const ENOUGH: u64 = 96 << 20;
const STRIPES: u64 = 24;
/// Requests at random places that are enough, and of those at once so many rounds at least.
const REQUESTS: u64 = 4000;
const ROUNDS: u64 = 16;
/// Requests that are enough for a cache to hold what it is going to hold, and to know its rate then.
const MANY: u64 = 1 << 19;
/// Requests that are enough to know a rate, though a disk's cache of writes changes it at first.
const SOME: u64 = 1 << 16;

impl Run {
    /// Bytes from the beginning within which its requests lie, of a run that says so; else 0.
    pub fn range(&self) -> u64 {
        match self {
            Run::Direct(load) => load.range,
            Run::ForTime { loads, .. } => loads.iter().map(|load| load.range).max().unwrap_or(0),
            Run::RandomReads(load) | Run::RandomWrites(load, _) => load.range,
            Run::Asked(_, within) => *within,
            Run::Files(files) => files.processes * files.bytes(),
            Run::Read { .. } | Run::Write { .. } | Run::Synced { .. } => 0,
        }
    }

    /// Carries it out on an array at rest. Times of requests are there of direct runs only.
    pub fn on(&self, array: &mut Array, host: &Host) -> Outcome {
        let Array { machine, size, under_way, .. } = array;
        let (size, under_way) = (*size, *under_way);
        let stripe = machine.stripe();
        let enough = |bytes: u64| bytes.min(ENOUGH.max(STRIPES * stripe));
        match self {
            Run::Direct(load) => {
                let at_once = load.processes.max(1) * load.depth.max(1);
                let most = match load.places {
                    Places::Sequential => enough(u64::MAX) / load.request.max(1),
                    Places::Uniform | Places::Zipf(_) => REQUESTS,
                };
                closed_cut(machine, std::slice::from_ref(load), most.max(ROUNDS * at_once))
            }
            Run::ForTime { loads, filled, ramp_s, seconds, synced } => {
                fill(machine, *filled);
                let ns = |seconds: f64| (seconds * 1e9) as u64;
                let (from_ns, until_ns) = (ns(*ramp_s), ns(ramp_s + seconds));
                let enough = if machine.has_cache() { MANY } else { SOME };
                let window = Window { from_ns, until_ns, enough, synced: *synced };
                closed_within(machine, loads, window)
            }
            Run::Read { bytes, request, window } => {
                let bytes = enough(*bytes);
                // Linux drivers/md/raid0.c, raid0_run: two stripes, if that is more.
                let window = window.unwrap_or(host.readahead_bytes.max(2 * stripe));
                let reading = Reading { bytes, window, request: *request };
                Outcome::moved(bytes, 0, read_ahead(machine, host, reading))
            }
            Run::Write { bytes } => {
                let bytes = enough(*bytes);
                Outcome::moved(0, bytes, write_back(machine, host, bytes, under_way))
            }
            Run::Synced { request } => {
                let count = (enough(u64::MAX) / request.max(&1)).clamp(64, 512);
                Outcome::moved(0, count * request, synced(machine, host, *request, count))
            }
            Run::Files(files) => {
                let seconds = files.seconds(machine, host, size, under_way);
                let (read, written) = files.moved();
                Outcome { seconds, read, written, ..Outcome::default() }
            }
            Run::Asked(workload, within) => workload.run(machine, host, *within, under_way),
            Run::RandomReads(load) => {
                let per_second = random_reads(machine, host, few(*load), 0.0);
                asked(few(*load), per_second, false)
            }
            Run::RandomWrites(load, every) => {
                let per_second = random_writes(machine, few(*load), *every);
                asked(few(*load), per_second, true)
            }
        }
    }
}

/// Writes so many bytes from the beginning, one piece after the other, and flushes.
fn fill(machine: &mut Machine, bytes: u64) {
    const PIECE: u64 = 1 << 20;
    let load = Closed {
        count: bytes / PIECE,
        request: PIECE,
        reads: 0,
        places: Places::Sequential,
        range: bytes,
        processes: 1,
        depth: 1,
    };
    let window = Window { from_ns: 0, until_ns: u64::MAX, enough: u64::MAX, synced: true };
    closed_within(machine, &[load], window);
}

fn few(load: Random) -> Random {
    Random { count: load.count.min(REQUESTS.max(ROUNDS * load.processes)), ..load }
}

fn asked(load: Random, per_second: f64, write: bool) -> Outcome {
    let bytes = load.count * load.request;
    let (read, written) = if write { (0, bytes) } else { (bytes, 0) };
    let seconds = load.count as f64 / per_second.max(1e-9);
    Outcome { seconds, requests: load.count, read, written, ..Outcome::default() }
}
