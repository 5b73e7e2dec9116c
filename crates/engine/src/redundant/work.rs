//! The state that the passes of an array share: memory, limits, and the running pass.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::time::Duration;

use braid_mem::Pool;

use super::found::Found;
use super::history::{History, JobRecord};
use super::job::{JobStatus, LastScrub};
use super::kind::JobKind;
use super::scrub::{ScrubOrder, ScrubPlace};
use super::throttle::{Speed, Throttle};
use crate::signal::Signal;

/// Size of a window without active clients, and with them, in bytes.
const WINDOW: u64 = 512 << 10;
const SMALL_WINDOW: u64 = 64 << 10;
/// Largest number of windows in flight; and of small ones, if the pass is slower than its limit.
const MOST_WINDOWS: usize = 32;
const SMALL_WINDOWS: usize = 4;
/// Memory for the windows: a buffer for each of up to four copies, and rewriting. A quarter of it is enough for the
/// largest window.
pub(super) const POOL: usize = 16 << 20;
/// The part of it that is there from the start without parity: a client's longest read, when a copy that cannot be
/// read is rewritten. A pass waits for more, without a lock.
pub(super) const FLOOR_OF_COPIES: usize = 1 << 20;
/// Number of places that are kept for the report.
const MOST_PLACES: usize = 64;
/// Time at the start of a pass in which clients are assumed to be active, until requests would be seen.
const GENTLE: Duration = Duration::from_millis(60);

/// The state that passes share.
pub(super) struct Work {
    pool: Pool,
    throttle: RefCell<Throttle>,
    timing: Cell<bool>,
    stop: Cell<bool>,
    /// No pass runs, and no spare takes over, until an operator allows it.
    held: Cell<bool>,
    requested: RefCell<Option<ScrubOrder>>,
    /// Place of a scrub whose time is over.
    paused: RefCell<Option<ScrubPlace>>,
    current: RefCell<Option<Current>>,
    found: RefCell<Found>,
    last: RefCell<Option<LastScrub>>,
    history: RefCell<History>,
    /// Time before which a stuck resync is not retried.
    put_off: Cell<Duration>,
    changed: Signal,
    /// Number of changes so far.
    changes: Cell<u64>,
}

/// A running pass.
pub(super) struct Current {
    kind: JobKind,
    member: Option<String>,
    done: u64,
    total: u64,
    /// Time and progress, at intervals of a second.
    samples: VecDeque<(Duration, u64)>,
}

impl Work {
    /// `floor` is the memory that is there from the start, in bytes: what clients' requests take of it, not passes.
    pub(super) fn new(speed: Speed, floor: usize) -> std::io::Result<Work> {
        Ok(Work {
            pool: Pool::growing(POOL, floor)?,
            throttle: RefCell::new(Throttle::new(speed)),
            timing: Cell::new(false),
            stop: Cell::new(false),
            held: Cell::new(false),
            requested: RefCell::default(),
            paused: RefCell::default(),
            current: RefCell::default(),
            found: RefCell::default(),
            last: RefCell::default(),
            history: RefCell::default(),
            put_off: Cell::default(),
            changed: Signal::default(),
            changes: Cell::new(0),
        })
    }

    pub(super) fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Returns true if the latencies of requests are needed.
    #[inline]
    pub(super) fn is_timing(&self) -> bool {
        self.timing.get()
    }

    pub(super) fn record_latency(&self, now: Duration, latency: Duration) {
        self.throttle.borrow_mut().record(now, latency);
    }

    pub(super) fn stop(&self) {
        self.stop.set(true);
        self.tell();
    }

    /// Delays the next attempt of a resync until `time`, unless the membership changes.
    pub(super) fn put_off(&self, time: Duration) {
        self.put_off.set(time);
    }

    /// Returns true if a resync is delayed at `now`.
    pub(super) fn is_put_off(&self, now: Duration) -> bool {
        now < self.put_off.get()
    }

    /// Returns the remaining delay of a resync at `now`, if there is one.
    pub(super) fn put_off_for(&self, now: Duration) -> Option<Duration> {
        self.put_off.get().checked_sub(now).filter(|left| !left.is_zero())
    }

    /// Wakes the tasks that choose the next job.
    pub(super) fn tell(&self) {
        self.changes.set(self.changes.get() + 1);
        self.changed.notify();
    }

    /// Waits until no pass is running.
    pub(super) async fn until_idle(&self) {
        self.changed.until(|| self.current.borrow().is_none()).await;
    }

    /// Returns the size of windows at `now`, in bytes, and the number that may be in flight, of a pass that
    /// began at `start`.
    pub(super) fn pace(&self, now: Duration, start: Duration) -> (u64, usize) {
        let throttle = self.throttle.borrow();
        let gently = now.saturating_sub(start) < GENTLE || throttle.is_shared(now);
        match (gently, throttle.is_behind(now)) {
            (false, _) => (WINDOW, MOST_WINDOWS),
            (true, false) => (SMALL_WINDOW, 1),
            (true, true) => (SMALL_WINDOW, SMALL_WINDOWS),
        }
    }

    pub(super) fn speed(&self) -> Speed {
        self.throttle.borrow().speed()
    }

    pub(super) fn set_speed(&self, speed: Speed) {
        self.throttle.borrow_mut().set(speed);
        self.tell();
    }

    pub(super) fn request(&self, order: Option<ScrubOrder>, unix_now: Duration) {
        let kind = order.as_ref().map(|order| order.kind);
        self.history.borrow_mut().order(kind, unix_now);
        self.requested.replace(order);
        self.paused.take();
        self.tell();
    }

    /// Returns the ordered scrub, unless its time is over at `unix_now`.
    pub(super) fn requested(&self, unix_now: Duration) -> Option<JobKind> {
        let order = self.requested.borrow();
        let wanted = |order: &&ScrubOrder| order.until.is_none_or(|until| unix_now < until);
        order.as_ref().filter(wanted).map(|order| order.kind)
    }

    /// Returns the last order of a scrub, unless it is done.
    pub(super) fn order(&self) -> Option<ScrubOrder> {
        self.requested.borrow().clone()
    }

    /// Makes the ordered scrub continue at its present place when its turn comes again.
    pub(super) fn keep_place(&self) {
        let place = self.place_of_scrub();
        if let Some(order) = &mut *self.requested.borrow_mut() {
            order.from = place;
        }
    }

    /// Makes the ordered scrub start anew when its turn comes again.
    pub(super) fn begin_anew(&self) {
        if let Some(order) = &mut *self.requested.borrow_mut() {
            order.from = None;
        }
    }

    /// Ends the ordered scrub at its time limit. Returns its place.
    pub(super) fn pause(&self, unix_now: Duration) -> Option<ScrubPlace> {
        self.history.borrow_mut().order(None, unix_now);
        let place = self.place();
        self.requested.take();
        self.paused.replace(place.clone());
        place
    }

    /// Returns the progress of a scrub with a time limit, running or paused.
    pub(super) fn place(&self) -> Option<ScrubPlace> {
        let is_for_a_time = self.requested.borrow().as_ref().is_some_and(|it| it.until.is_some());
        let running = self.place_of_scrub().filter(|_| is_for_a_time);
        running.or_else(|| self.paused.borrow().clone())
    }

    fn place_of_scrub(&self) -> Option<ScrubPlace> {
        self.current.borrow().as_ref().and_then(|current| {
            let (kind, done, total) = (current.kind, current.done, current.total);
            kind.is_scrub().then(|| ScrubPlace { kind, done, total, found: self.found().into() })
        })
    }

    pub(super) fn found(&self) -> Found {
        self.found.borrow().clone()
    }

    /// Returns the last check or repair that ran to its end.
    pub(super) fn last(&self) -> Option<LastScrub> {
        self.last.borrow().clone()
    }

    /// Begins a pass.
    pub(super) fn begin(&self, current: Current, unix_now: Duration) {
        let mut history = self.history.borrow_mut();
        history.begin(current.kind, current.member.as_deref(), unix_now);
        history.reached(current.done, current.total);
        drop(history);
        self.current.replace(Some(current));
        self.timing.set(true);
    }

    /// Notes that the pass came to `frontier`.
    pub(super) fn progress(&self, now: Duration, frontier: u64) {
        if let Some(current) = &mut *self.current.borrow_mut() {
            current.progress(now, frontier);
            self.history.borrow_mut().reached(frontier, current.total);
        }
    }

    /// Ends the pass: it reached its aim, was interrupted (`false`), or failed for a reason.
    pub(super) fn end(&self, end: Result<bool, String>, unix_now: Duration) {
        self.history.borrow_mut().end(end, unix_now);
        self.current.replace(None);
        self.timing.set(false);
    }

    /// Returns the wait at `now` before another `len` bytes.
    pub(super) fn wait(&self, now: Duration, len: u64) -> Duration {
        self.throttle.borrow_mut().wait(now, len)
    }

    /// Holds all passes, or releases them.
    pub(super) fn hold(&self, held: bool) {
        self.held.set(held);
        self.tell();
    }

    /// Returns true if no pass may run: held for now, or stopped.
    pub(super) fn is_held(&self) -> bool {
        self.held.get() || self.stop.get()
    }

    /// Returns the number of changes so far.
    pub(super) fn changes(&self) -> u64 {
        self.changes.get()
    }

    /// Waits until something changes after `changes`.
    pub(super) async fn until_changed(&self, changes: u64) {
        self.changed.until(|| self.changes.get() != changes).await;
    }

    /// Waits until `condition` holds, which is checked after each change.
    pub(super) async fn until(&self, condition: impl FnMut() -> bool) {
        self.changed.until(condition).await;
    }

    /// Ends the ordered scrub, which is done.
    pub(super) fn finish_request(&self, kind: JobKind, now: Duration) {
        self.requested.take();
        self.last.replace(Some(LastScrub { kind, ended: now, found: self.found().into() }));
    }

    /// Clears the findings.
    pub(super) fn find_nothing(&self) {
        self.found.replace(Found::default());
    }

    /// Adds the findings of a window.
    pub(super) fn find(&self, found: Found) {
        self.found.borrow_mut().add(found, MOST_PLACES);
    }

    /// The last jobs, the oldest first.
    pub(super) fn jobs(&self, unix_now: Duration) -> Vec<JobRecord> {
        let mut history = self.history.borrow_mut();
        // Its time was over before its turn came.
        if self.current.borrow().is_none() && self.requested(unix_now).is_none() {
            history.order(None, unix_now);
        }
        history.all()
    }

    pub(super) fn status(&self, now: Duration) -> Option<JobStatus> {
        self.current.borrow().as_ref().map(|current| current.status(now))
    }
}

impl Current {
    pub(super) fn new(
        kind: JobKind,
        member: Option<String>,
        from: u64,
        total: u64,
        now: Duration,
    ) -> Current {
        Current { kind, member, done: from, total, samples: VecDeque::from([(now, from)]) }
    }

    fn progress(&mut self, now: Duration, done: u64) {
        self.done = done;
        let due = |(last, _): &(Duration, u64)| now.saturating_sub(*last) >= Duration::from_secs(1);
        if self.samples.back().is_none_or(due) {
            self.samples.push_back((now, done));
            if self.samples.len() > 60 {
                self.samples.pop_front();
            }
        }
    }

    /// Returns the status with the rate of the last half minute. The remaining time is from the slowest and the
    /// fastest five seconds of the last minute.
    fn status(&self, now: Duration) -> JobStatus {
        let rate = |from: (Duration, u64), to: (Duration, u64)| {
            let seconds = to.0.saturating_sub(from.0).as_secs_f64();
            if seconds > 0.0 { to.1.saturating_sub(from.1) as f64 / seconds } else { 0.0 }
        };
        let latest = (now, self.done);
        let recent = self.samples.iter().rev().nth(30).or(self.samples.front());
        let mean = recent.map_or(0.0, |from| rate(*from, latest));
        let samples: Vec<_> = self.samples.iter().copied().chain([latest]).collect();
        let rates = samples.windows(6).map(|six| rate(six[0], six[5]));
        let (slow, fast) =
            rates.fold((mean, mean), |(low, high), one| (low.min(one), high.max(one)));
        let left = self.total.saturating_sub(self.done) as f64;
        let eta = |rate: f64| (rate > 0.0).then(|| Duration::from_secs_f64((left / rate).min(1e9)));
        JobStatus {
            kind: self.kind,
            member: self.member.clone(),
            done: self.done,
            total: self.total,
            rate: mean as u64,
            eta: eta(fast).zip(eta(slow)),
        }
    }
}
