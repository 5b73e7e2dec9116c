//! A run of experiments on one device: places, time spent, and the record of all that was asked.

use std::fmt;
use std::time::Duration;

use braid_seed::Rng;

use crate::measured::{Batch, Measured, Request, Timing};

/// Why a device was not fitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The error of the device or of the system.
    Device(String),
    /// The device is smaller than the experiments need.
    TooSmall {
        /// Its bytes.
        size: u64,
        /// The least.
        least: u64,
        /// For what.
        what: &'static str,
    },
    /// There is not enough time.
    Late {
        /// The given limit.
        limit: Duration,
        /// The time that it would need, if that was known before the start.
        needs: Option<Duration>,
        /// The experiment in which the time ran out.
        during: &'static str,
    },
    /// The measured values do not form a profile.
    Nonsense(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Device(why) => write!(f, "{why}"),
            Fault::TooSmall { size, least, what } => {
                write!(f, "{size} bytes are too few for {what}: {least} at least")
            }
            Fault::Late { limit, needs: Some(needs), during } => write!(
                f,
                "{during} take some {} s, and the limit is {} s",
                needs.as_secs() + 1,
                limit.as_secs()
            ),
            Fault::Late { limit, needs: None, during } => write!(
                f,
                "{} s were over during {during}: the device is slower than its first answers, or busy",
                limit.as_secs()
            ),
            Fault::Nonsense(why) => write!(f, "what was measured gives no profile: {why}"),
        }
    }
}

impl std::error::Error for Fault {}

/// A batch that ran.
pub(crate) struct Ran {
    pub(crate) batch: Batch,
    pub(crate) timings: Vec<Timing>,
    /// True if no constant is estimated from it.
    pub(crate) held_out: bool,
}

/// A device under experiments.
pub(crate) struct Session<'a> {
    device: &'a mut dyn Measured,
    limit: Duration,
    spent_ns: u64,
    /// The start of the next run of requests, within the device's first part.
    cursor: u64,
    pub(crate) size: u64,
    pub(crate) block: u64,
    pub(crate) rng: Rng,
    pub(crate) held_out: bool,
    pub(crate) record: Vec<Ran>,
}

/// The size of random requests and jumps; all offsets are multiples of it.
pub(crate) const SMALL: u64 = 4096;
/// The reads at the start of a run: the first continues nothing, and the second may wait for effects of the
/// first.
pub(crate) const LEAD: u64 = 2;

impl Session<'_> {
    pub(crate) fn new(device: &mut dyn Measured, limit: Duration) -> Session<'_> {
        let (size, block) = (device.size(), device.block());
        Session {
            device,
            limit,
            spent_ns: 0,
            cursor: 0,
            size,
            block,
            rng: Rng::new(1),
            held_out: false,
            record: Vec::new(),
        }
    }

    /// Runs requests with `depth` of them under way, and answers what each took, in nanoseconds.
    pub(crate) fn run_at(
        &mut self,
        during: &'static str,
        requests: Vec<Request>,
        depth: usize,
        pause_ns: u64,
    ) -> Result<Vec<Timing>, Fault> {
        // Direct I/O refuses anything else, which a model would not.
        let is_whole = |bytes: u64| bytes.is_multiple_of(self.block);
        let fits = |one: &Request| is_whole(one.offset) && is_whole(one.bytes);
        assert!(requests.iter().all(fits), "{during}: whole blocks of {} bytes", self.block);
        let batch = Batch { requests, depth, pause_ns };
        let timings = self.device.run(&batch).map_err(Fault::Device)?;
        let first = timings.first().map_or(0, |timing| timing.start_ns);
        let last = timings.iter().map(|timing| timing.end_ns).max().unwrap_or(first);
        self.spent_ns += pause_ns + last.saturating_sub(first);
        self.record.push(Ran { batch, timings: timings.clone(), held_out: self.held_out });
        if Duration::from_nanos(self.spent_ns) > self.limit {
            return Err(Fault::Late { limit: self.limit, needs: None, during });
        }
        Ok(timings)
    }

    /// As [`Measured::processor_waits`].
    pub(crate) fn processor_waits(&self) -> f64 {
        self.device.processor_waits()
    }

    /// Runs requests one after the other.
    pub(crate) fn run(
        &mut self,
        during: &'static str,
        requests: Vec<Request>,
        pause_ns: u64,
    ) -> Result<Vec<f64>, Fault> {
        let timings = self.run_at(during, requests, 1, pause_ns)?;
        Ok(timings.into_iter().map(Timing::took_ns).collect())
    }

    /// `count` reads one behind the other, at a place near the device's beginning where nothing was asked for
    /// as long as possible. [`LEAD`] more lead to them and are not answered.
    pub(crate) fn continuing(
        &mut self,
        during: &'static str,
        bytes: u64,
        count: u64,
    ) -> Result<Vec<f64>, Fault> {
        // Disks are slower towards their end, so what is compared stays together.
        let part = (self.size / 20).max(1 << 30).min(self.size);
        let length = bytes * (count + LEAD);
        // A gap, so that the first does not continue the run before.
        let mut from = self.cursor + SMALL;
        if from + length > part {
            from = 0;
        }
        self.cursor = from + length;
        let requests = run_of(false, from, bytes, count + LEAD);
        Ok(self.run(during, requests, 0)?.split_off(LEAD as usize))
    }

    /// `count` reads anywhere.
    pub(crate) fn anywhere(&mut self, bytes: u64, count: usize) -> Vec<Request> {
        let places = (self.size - bytes) / SMALL;
        let offset = |rng: &mut Rng| rng.below(places + 1) * SMALL;
        (0..count).map(|_| Request { write: false, offset: offset(&mut self.rng), bytes }).collect()
    }
}

/// Requests one behind the other.
pub(crate) fn run_of(write: bool, from: u64, bytes: u64, count: u64) -> Vec<Request> {
    (0..count).map(|index| Request { write, offset: from + index * bytes, bytes }).collect()
}
