//! Requests that wait for a device, and the times at which they complete.
//!
//! ```text
//!  ask ──▶ ▒▒▒▒▒▒▒▒▒▒ waiting, the oldest first ──the device is free──▶ the one that it takes ──▶ done at …
//! ```
//!
//! A device that takes requests in their order is asked at once. One with a command queue of its own decides
//! when it is free, so that later requests take part: the caller asks again then.
//!
//! Invariants: a decision is of the moment at which the device was free, however late the queue is asked, and
//! knows all earlier requests: a request that follows a completion at that moment comes too late. Deliberately
//! absent: clocks, and the end of an abandoned request: its answer stays.

use std::collections::{BTreeMap, VecDeque};

use crate::bus::Bus;
use crate::place::Work;
use crate::timetable::Timetable;

/// The queue's answer about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The time of completion, in nanoseconds.
    Done(u64),
    /// It still waits, until this time at least.
    Waits(u64),
}

/// A device and the requests that wait for it.
#[derive(Clone, Debug)]
pub struct CommandQueue {
    device: Timetable,
    waiting: VecDeque<Waiting>,
    /// Times of completion that have not been asked for since.
    done: BTreeMap<u64, u64>,
    asked: u64,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    number: u64,
    since_ns: u64,
    work: Work,
}

impl CommandQueue {
    /// A queue before `device` with nothing in it.
    pub fn new(device: Timetable) -> CommandQueue {
        CommandQueue { device, waiting: VecDeque::new(), done: BTreeMap::new(), asked: 0 }
    }

    /// Takes a request in at `now_ns`, which is not before that of an earlier one, and answers its number.
    pub fn ask(&mut self, now_ns: u64, work: Work) -> u64 {
        self.asked += 1;
        self.waiting.push_back(Waiting { number: self.asked, since_ns: now_ns, work });
        self.asked
    }

    /// Returns the state of the request with this number at `now_ns`. Once its time of completion is returned,
    /// the queue forgets it.
    ///
    /// # Panics
    /// If there is no such request.
    pub fn answer(&mut self, bus: &mut Bus, now_ns: u64, number: u64) -> Answer {
        while let Some(at_ns) = self.next_ns()
            && at_ns <= now_ns
        {
            self.decide(bus, at_ns);
        }
        match self.done.remove(&number) {
            Some(done_ns) => Answer::Done(done_ns),
            None => Answer::Waits(self.next_ns().expect("what is not done waits")),
        }
    }

    /// When the device takes the next of those that wait.
    fn next_ns(&self) -> Option<u64> {
        let oldest = self.waiting.front()?;
        // One that takes them in their order keeps a schedule of its own.
        let in_order = self.device.queue_depth() == 1;
        Some(if in_order { oldest.since_ns } else { oldest.since_ns.max(self.device.free_at_ns()) })
    }

    fn decide(&mut self, bus: &mut Bus, at_ns: u64) {
        let there = self.waiting.iter().take_while(|one| one.since_ns < at_ns);
        let index = self.device.next_of(at_ns, there.map(|one| one.work));
        let next = self.waiting.remove(index).expect("one of those that wait");
        self.done.insert(next.number, self.device.serve(bus, at_ns, next.work));
    }
}
