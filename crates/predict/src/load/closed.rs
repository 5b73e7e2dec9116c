//! Requests past the page cache: so many at once, or at the times of a trace.

use std::collections::BTreeMap;

use braid_seed::{Rng, Zipf};
use braid_trace::{AT_ONCE, Kind, Request};

use crate::machine::{Machine, Next};

/// The places of requests.
#[derive(Clone, Debug)]
pub enum Places {
    /// One after the other; each process has its own part.
    Sequential,
    /// Anywhere, all places alike.
    Uniform,
    /// By Zipf's law: few places often.
    Zipf(Zipf),
}

/// Requests of `depth` at once.
#[derive(Clone, Debug)]
pub struct Closed {
    /// The total number of requests.
    pub count: u64,
    /// The bytes of each request; its offset is a multiple of them.
    pub request: u64,
    /// Reads in a hundred.
    pub reads: u64,
    /// The places of the requests.
    pub places: Places,
    /// All requests lie within this number of bytes from the beginning.
    pub range: u64,
    /// Processes, each with `depth` requests at once.
    pub processes: u64,
    /// Requests at once of each process.
    pub depth: u64,
}

/// The outcome of a load.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// The duration, in seconds.
    pub seconds: f64,
    /// The number of completed requests.
    pub requests: u64,
    /// Bytes read and written.
    pub read: u64,
    /// Bytes written.
    pub written: u64,
    /// The time of each request, in nanoseconds, ascending.
    pub latencies_ns: Vec<u64>,
    /// The part of `seconds` that a flush at the end took.
    pub flush_s: f64,
}

impl Outcome {
    /// Bytes per second, both ways.
    pub fn rate(&self) -> f64 {
        (self.read + self.written) as f64 / self.seconds.max(1e-9)
    }

    /// Requests per second.
    pub fn per_second(&self) -> f64 {
        self.requests as f64 / self.seconds.max(1e-9)
    }

    /// The greatest time of the fastest `percent` of the requests, in nanoseconds.
    pub fn percentile_ns(&self, percent: f64) -> u64 {
        let last = self.latencies_ns.len().saturating_sub(1);
        let index = (last as f64 * percent / 100.0).ceil() as usize;
        self.latencies_ns.get(index.min(last)).copied().unwrap_or(0)
    }

    /// The percentiles beyond which ten requests lie at least, in nanoseconds: of fewer there is no saying.
    pub fn percentiles(&self) -> impl Iterator<Item = (f64, u64)> {
        let count = self.latencies_ns.len();
        let told = PERCENTILES.into_iter().filter(move |(_, least)| count >= *least);
        told.map(|(percent, _)| (percent, self.percentile_ns(percent)))
    }

    /// The mean, in nanoseconds.
    pub fn mean_ns(&self) -> f64 {
        let sum: f64 = self.latencies_ns.iter().map(|ns| *ns as f64).sum();
        sum / self.latencies_ns.len().max(1) as f64
    }

    /// The outcome for bytes that were moved at a rate, in bytes per second.
    pub(crate) fn moved(read: u64, written: u64, rate: f64) -> Outcome {
        let seconds = (read + written) as f64 / rate.max(1.0);
        Outcome { seconds, read, written, ..Outcome::default() }
    }

    fn ended(mut self, now_ns: u64) -> Outcome {
        self.seconds = now_ns as f64 / 1e9;
        self.latencies_ns.sort_unstable();
        self
    }
}

/// Percentiles, and of how many requests ten lie beyond each.
const PERCENTILES: [(f64, usize); 4] = [(50.0, 20), (95.0, 200), (99.0, 1000), (99.9, 10_000)];

/// So many requests are counted, whenever the window ends.
const LEAST: u64 = 64;

/// A process of a load, with one request of its `depth`.
#[derive(Clone, Copy)]
struct Process {
    load: usize,
    /// Its first slot, how many it has, and how many it has been through in sequence.
    part: (u64, u64),
    through: u64,
}

/// From when to when requests are counted, since the load began, and how many are enough.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Requests that are answered before this time are carried out, but not counted. In nanoseconds.
    pub from_ns: u64,
    /// The end of the window, in nanoseconds; some requests are counted in any case.
    pub until_ns: u64,
    /// This number of requests suffices before the window, and again within it.
    pub enough: u64,
    /// True if a flush follows the last request; its time counts.
    pub synced: bool,
}

impl Window {
    /// As long as it takes.
    const ALL: Window = Window { from_ns: 0, until_ns: u64::MAX, enough: u64::MAX, synced: false };
}

/// Carries out several loads at once: each keeps `depth` requests of each of its processes under way.
pub fn closed(machine: &mut Machine, loads: &[Closed]) -> Outcome {
    carry_out(machine, loads, Window::ALL, 0)
}

/// As [`closed`], with only those counted that are answered within a window.
pub fn closed_within(machine: &mut Machine, loads: &[Closed], window: Window) -> Outcome {
    carry_out(machine, loads, window, 0)
}

/// As [`closed`], but of loads of more than `enough` requests only so many are counted: not those at first, which
/// disks' write caches take as fast as they come.
pub fn closed_cut(machine: &mut Machine, loads: &[Closed], enough: u64) -> Outcome {
    if loads.iter().fold(0_u64, |sum, load| sum.saturating_add(load.count)) <= enough {
        return closed(machine, loads);
    }
    let writing = loads.iter().filter(|load| load.reads < 100);
    let least = writing.min_by_key(|load| load.request);
    // Of a hundred requests so many write.
    let first =
        least.map_or(0, |load| machine.limit_write_caches(load.request) * 100 / (100 - load.reads));
    // None of them ends before the others: their shares would not be those of a while.
    let on = |load: &Closed| Closed { count: u64::MAX, ..load.clone() };
    let loads: Vec<_> = loads.iter().map(on).collect();
    carry_out(machine, &loads, Window { enough, ..Window::ALL }, first)
}

/// `first` requests are carried out before any is counted.
fn carry_out(machine: &mut Machine, loads: &[Closed], window: Window, first: u64) -> Outcome {
    let since = |ns: u64| ns.saturating_add(machine.now_ns());
    let window =
        Window { from_ns: since(window.from_ns), until_ns: since(window.until_ns), ..window };
    let mut clients = Clients {
        rng: Rng::new(machine.seed()),
        loads,
        window,
        first,
        before: 0,
        begun_ns: machine.now_ns(),
        processes: Vec::new(),
        left: loads.iter().map(|load| load.count).collect(),
        begun: BTreeMap::new(),
        owner: 0,
        outcome: Outcome::default(),
    };
    for (index, load) in loads.iter().enumerate() {
        let slots = (load.range / load.request).max(1);
        let part = slots / load.processes.clamp(1, slots);
        for process in 0..load.processes.clamp(1, slots) {
            let part = match load.places {
                Places::Sequential => (process * part, part),
                Places::Uniform | Places::Zipf(_) => (0, slots),
            };
            clients.processes.push(Process { load: index, part, through: 0 });
        }
    }
    for process in 0..clients.processes.len() {
        let depth = loads[clients.processes[process].load].depth.max(1);
        (0..depth).for_each(|_| clients.ask(machine, process));
    }
    let mut happened = Vec::new();
    while !clients.begun.is_empty() && machine.next(&mut happened) {
        for next in &happened {
            if let Next::Moved { owner, left: 0 } = *next {
                clients.answered(machine, owner);
            }
        }
    }
    let (begun_ns, answered_ns) = (clients.begun_ns, machine.now_ns());
    if window.synced {
        machine.flush();
    }
    clients.outcome.flush_s = (machine.now_ns() - answered_ns) as f64 / 1e9;
    clients.outcome.ended(machine.now_ns() - begun_ns)
}

struct Clients<'a> {
    rng: Rng,
    loads: &'a [Closed],
    window: Window,
    first: u64,
    /// The number of requests that were answered before the counted ones, and the start of the counted ones.
    before: u64,
    begun_ns: u64,
    processes: Vec<Process>,
    /// The number of requests that each load must still make.
    left: Vec<u64>,
    begun: BTreeMap<u64, Begun>,
    owner: u64,
    outcome: Outcome,
}

/// A request under way.
struct Begun {
    process: usize,
    since_ns: u64,
    write: bool,
}

impl Clients<'_> {
    fn is_over(&self, now_ns: u64) -> bool {
        let (counted, enough) = (self.outcome.requests, self.window.enough);
        counted >= enough || (now_ns >= self.window.until_ns && counted >= LEAST)
    }

    fn ask(&mut self, machine: &mut Machine, index: usize) {
        let is_over = self.is_over(machine.now_ns());
        let process = &mut self.processes[index];
        let load = &self.loads[process.load];
        if self.left[process.load] == 0 || is_over {
            return;
        }
        self.left[process.load] -= 1;
        let (first, slots) = process.part;
        let slot = first
            + match &load.places {
                Places::Sequential => {
                    process.through += 1;
                    (process.through - 1) % slots.max(1)
                }
                Places::Uniform => self.rng.below(slots),
                Places::Zipf(zipf) => zipf.draw(&mut self.rng) % slots,
            };
        let write = !self.rng.percent(load.reads);
        self.owner += 1;
        let begun = Begun { process: index, since_ns: machine.now_ns(), write };
        self.begun.insert(self.owner, begun);
        machine.submit(self.owner, write, slot * load.request, load.request);
        machine.unplug();
    }

    fn answered(&mut self, machine: &mut Machine, owner: u64) {
        let begun = self.begun.remove(&owner).expect("a request under way");
        let Begun { process, since_ns, write } = begun;
        let now_ns = machine.now_ns();
        let is_early = now_ns < self.window.from_ns && self.before < self.window.enough;
        if is_early || self.before < self.first {
            self.before += 1;
            self.begun_ns = now_ns;
        } else {
            let request = self.loads[self.processes[process].load].request;
            let moved = if write { &mut self.outcome.written } else { &mut self.outcome.read };
            *moved += request;
            self.outcome.requests += 1;
            self.outcome.latencies_ns.push(now_ns - since_ns);
        }
        self.ask(machine, process);
    }
}

/// Carries out a trace, each request at its time, within `size` bytes: what lies behind is taken from
/// the beginning. Up to [`AT_ONCE`] are under way, and what is due then waits its turn; what a request took counts
/// from when it was due. Discards and flushes take no part.
pub fn replay(machine: &mut Machine, trace: &[Request], size: u64) -> Outcome {
    let mut due: BTreeMap<u64, u64> = BTreeMap::new();
    let mut outcome = Outcome::default();
    let mut happened = Vec::new();
    let data = trace.iter().filter(|one| one.has_data());
    let mut requests = data.filter_map(|one| one.within(size, SECTOR)).peekable();
    // The clock begins with the first of them.
    let first_ns = requests.peek().map_or(0, |first| first.at_ns);
    let (mut owner, mut woken) = (0, None);
    if requests.peek().is_some() {
        machine.wake_at(machine.now_ns(), CLOCK);
    }
    while machine.next(&mut happened) {
        let now_ns = machine.now_ns();
        for what in &happened {
            if let Next::Moved { owner, left: 0 } = *what {
                let due_ns = due.remove(&owner).expect("a request of the trace");
                outcome.requests += 1;
                outcome.latencies_ns.push(now_ns - due_ns);
            }
        }
        let mut asked = false;
        while due.len() < AT_ONCE
            && let Some(one) = requests.next_if(|one| one.at_ns - first_ns <= now_ns)
        {
            owner += 1;
            due.insert(owner, one.at_ns - first_ns);
            let write = one.kind == Kind::Write;
            *(if write { &mut outcome.written } else { &mut outcome.read }) += one.length;
            machine.submit(owner, write, one.offset, one.length);
            asked = true;
        }
        if asked {
            machine.unplug();
        }
        let later = requests.peek().map(|one| one.at_ns - first_ns);
        // Once for each time; a time that is past waits for an answer.
        if let Some(at_ns) = later.filter(|at_ns| *at_ns > now_ns && later != woken) {
            machine.wake_at(at_ns, CLOCK);
            woken = Some(at_ns);
        }
    }
    outcome.ended(machine.now_ns())
}

/// The unit of every device, in bytes.
const SECTOR: u64 = 512;
/// The owner of wake-ups for the next request of a trace.
const CLOCK: u64 = u64::MAX;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_of_few_requests_is_not_told() {
        let told = |count: u64| {
            let outcome = Outcome { latencies_ns: (0..count).collect(), ..Outcome::default() };
            outcome.percentiles().map(|one| one.0).collect::<Vec<_>>()
        };
        assert!(told(19).is_empty());
        assert_eq!(told(20), [50.0]);
        assert_eq!(told(1000), [50.0, 95.0, 99.0]);
        assert_eq!(told(10_000), [50.0, 95.0, 99.0, 99.9]);
    }
}
