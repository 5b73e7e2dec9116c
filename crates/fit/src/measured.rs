//! The seam to a device: batches of requests in, times out.

use braid_model::{Answer, Bus, BusProfile, CommandQueue, Profile, Timetable, Work};
use braid_seed::Rng;

/// A read or a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// True if it writes; the written bytes do not matter.
    pub write: bool,
    /// First byte, a multiple of the device's block.
    pub offset: u64,
    /// Its length, also a multiple of the block.
    pub bytes: u64,
}

/// Requests that are made in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// All of them.
    pub requests: Vec<Request>,
    /// The number of requests in flight, from 1 on. The next request is made when one is answered.
    pub depth: usize,
    /// The idle time before each request, in nanoseconds.
    pub pause_ns: u64,
}

/// When a request was made and when it was answered, in nanoseconds since any moment that is the same for all
/// batches on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Made.
    pub start_ns: u64,
    /// Answered; not before it was made.
    pub end_ns: u64,
}

impl Timing {
    /// The duration, in nanoseconds.
    pub fn took_ns(self) -> f64 {
        self.end_ns.saturating_sub(self.start_ns) as f64
    }
}

/// A device that can be measured: a real one, or a model in virtual time.
pub trait Measured {
    /// Its bytes.
    fn size(&self) -> u64;

    /// The least that a request may move, and what all offsets are multiples of; in bytes.
    fn block(&self) -> u64;

    /// Carries a batch out and answers a time for each request, in their order.
    ///
    /// # Errors
    /// What the device or the system said: the fit ends with it.
    fn run(&mut self, batch: &Batch) -> Result<Vec<Timing>, String>;

    /// Returns the share of the time since the first batch in which a task of this machine waited for a
    /// processor, from 0 to 1. A device in virtual time has no such tasks.
    fn processor_waits(&self) -> f64 {
        0.0
    }
}

/// Fills what is to be written with bytes that no device can shorten.
pub fn fill(bytes: &mut [u8]) {
    let mut rng = Rng::new(0);
    for chunk in bytes.chunks_mut(8) {
        chunk.copy_from_slice(&rng.next_u64().to_le_bytes()[..chunk.len()]);
    }
}

/// A modelled device on a clock of its own.
#[derive(Debug)]
pub struct Modelled {
    size: u64,
    queue: CommandQueue,
    bus: Bus,
    now_ns: u64,
}

impl Modelled {
    /// A device of `size` bytes, alone on its bus; `None` for a profile that is not of a device.
    pub fn new(profile: &Profile, bus: BusProfile, size: u64) -> Option<Modelled> {
        let queue = CommandQueue::new(Timetable::new(&profile.kind, size)?);
        Some(Modelled { size, queue, bus: Bus::new(bus), now_ns: 0 })
    }

    /// Goes on until one of those under way is answered: takes it out, and answers its index and when.
    fn one_of(&mut self, under_way: &mut Vec<UnderWay>) -> (usize, u64) {
        loop {
            let mut again_ns = u64::MAX;
            for one in under_way.iter_mut().filter(|one| one.end_ns.is_none()) {
                match self.queue.answer(&mut self.bus, self.now_ns, one.number) {
                    Answer::Done(end_ns) => one.end_ns = Some(end_ns),
                    Answer::Waits(until_ns) => again_ns = again_ns.min(until_ns),
                }
            }
            let ends = under_way.iter().enumerate().filter_map(|(at, one)| Some((one.end_ns?, at)));
            if let Some((end_ns, at)) = ends.min() {
                self.now_ns = self.now_ns.max(end_ns);
                return (under_way.remove(at).index, end_ns);
            }
            self.now_ns = again_ns;
        }
    }
}

/// A request that is not answered yet.
struct UnderWay {
    index: usize,
    number: u64,
    end_ns: Option<u64>,
}

impl Measured for Modelled {
    fn size(&self) -> u64 {
        self.size
    }

    fn block(&self) -> u64 {
        512
    }

    fn run(&mut self, batch: &Batch) -> Result<Vec<Timing>, String> {
        let none = Timing { start_ns: 0, end_ns: 0 };
        let mut timings = vec![none; batch.requests.len()];
        let mut under_way = Vec::new();
        for (index, request) in batch.requests.iter().enumerate() {
            if under_way.len() == batch.depth.max(1) {
                let (answered, end_ns) = self.one_of(&mut under_way);
                timings[answered].end_ns = end_ns;
            }
            self.now_ns += batch.pause_ns;
            let Request { write, offset, bytes } = *request;
            if offset + bytes > self.size {
                return Err(format!("{bytes} bytes at {offset} are beyond the end"));
            }
            let work =
                if write { Work::Write { offset, bytes } } else { Work::Read { offset, bytes } };
            let number = self.queue.ask(self.now_ns, work);
            under_way.push(UnderWay { index, number, end_ns: None });
            timings[index].start_ns = self.now_ns;
        }
        while !under_way.is_empty() {
            let (answered, end_ns) = self.one_of(&mut under_way);
            timings[answered].end_ns = end_ns;
        }
        Ok(timings)
    }
}
