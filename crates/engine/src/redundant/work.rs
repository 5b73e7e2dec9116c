//! What the passes of an array share: memory, limits, and what is known of the one that runs.

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

/// A window when nobody else is about, and when clients are, in bytes.
const WINDOW: u64 = 512 << 10;
const SMALL_WINDOW: u64 = 64 << 10;
/// How many windows may be under way; and how many small ones, when the pass is slower than it
/// may be.
const MOST_WINDOWS: usize = 32;
const SMALL_WINDOWS: usize = 4;
/// Memory for the windows: a buffer for each of up to four copies, and rewriting.
pub(super) const POOL: usize = 16 << 20;
/// Ranges of mismatches that are kept for the report.
const MOST_PLACES: usize = 64;
/// How long a pass goes as if clients were about, until it would know of them.
const GENTLE: Duration = Duration::from_millis(60);

/// What the passes share.
pub(super) struct Work {
    pool: Pool,
    throttle: RefCell<Throttle>,
    timing: Cell<bool>,
    stop: Cell<bool>,
    /// No pass runs, and no spare takes over, until an operator says so.
    held: Cell<bool>,
    requested: RefCell<Option<ScrubOrder>>,
    /// Of a scrub whose time is over.
    paused: RefCell<Option<ScrubPlace>>,
    current: RefCell<Option<Current>>,
    found: RefCell<Found>,
    last: RefCell<Option<LastScrub>>,
    history: RefCell<History>,
    /// Before when a resync that got stuck is not tried again.
    put_off: Cell<Duration>,
    changed: Signal,
    /// How often something changed.
    changes: Cell<u64>,
}

/// A pass under way.
pub(super) struct Current {
    kind: JobKind,
    member: Option<String>,
    done: u64,
    total: u64,
    /// When, and how far, a second apart.
    samples: VecDeque<(Duration, u64)>,
}

impl Work {
    pub(super) fn new(speed: Speed) -> std::io::Result<Work> {
        Ok(Work {
            pool: Pool::new(POOL)?,
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

    /// Whether the latencies of requests are wanted.
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

    /// A resync is not tried again before `time`, unless a member comes or goes.
    pub(super) fn put_off(&self, time: Duration) {
        self.put_off.set(time);
    }

    /// Whether a resync is put off at `now`.
    pub(super) fn is_put_off(&self, now: Duration) -> bool {
        now < self.put_off.get()
    }

    /// How long a resync is still put off at `now`, if it is.
    pub(super) fn put_off_for(&self, now: Duration) -> Option<Duration> {
        self.put_off.get().checked_sub(now).filter(|left| !left.is_zero())
    }

    /// What is to be done may be another thing now.
    pub(super) fn tell(&self) {
        self.changes.set(self.changes.get() + 1);
        self.changed.notify();
    }

    /// Waits until no pass is under way.
    pub(super) async fn until_idle(&self) {
        self.changed.until(|| self.current.borrow().is_none()).await;
    }

    /// How large the windows are at `now`, in bytes, and how many may be under way, of a pass
    /// that began at `start`.
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

    /// The scrub that is asked for, unless its time is over at `unix_now`.
    pub(super) fn requested(&self, unix_now: Duration) -> Option<JobKind> {
        let order = self.requested.borrow();
        let wanted = |order: &&ScrubOrder| order.until.is_none_or(|until| unix_now < until);
        order.as_ref().filter(wanted).map(|order| order.kind)
    }

    /// The scrub that was asked for last, unless it is done.
    pub(super) fn order(&self) -> Option<ScrubOrder> {
        self.requested.borrow().clone()
    }

    /// What was asked for goes on where it is now when its turn comes again.
    pub(super) fn keep_place(&self) {
        let place = self.place_of_scrub();
        if let Some(order) = &mut *self.requested.borrow_mut() {
            order.from = place;
        }
    }

    /// What was asked for begins anew when its turn comes again.
    pub(super) fn begin_anew(&self) {
        if let Some(order) = &mut *self.requested.borrow_mut() {
            order.from = None;
        }
    }

    /// The time of what was asked for is over; it came to here.
    pub(super) fn pause(&self, unix_now: Duration) -> Option<ScrubPlace> {
        self.history.borrow_mut().order(None, unix_now);
        let place = self.place();
        self.requested.take();
        self.paused.replace(place.clone());
        place
    }

    /// How far the scrub is that runs for a time, or pauses.
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

    /// The last check or repair that ran to its end.
    pub(super) fn last(&self) -> Option<LastScrub> {
        self.last.borrow().clone()
    }

    /// A pass begins.
    pub(super) fn begin(&self, current: Current, unix_now: Duration) {
        let mut history = self.history.borrow_mut();
        history.begin(current.kind, current.member.as_deref(), unix_now);
        history.reached(current.done, current.total);
        drop(history);
        self.current.replace(Some(current));
        self.timing.set(true);
    }

    /// It came to `frontier`.
    pub(super) fn progress(&self, now: Duration, frontier: u64) {
        if let Some(current) = &mut *self.current.borrow_mut() {
            current.progress(now, frontier);
            self.history.borrow_mut().reached(frontier, current.total);
        }
    }

    /// It is over: it did what it was for, or was interrupted (`false`), or why it could not.
    pub(super) fn end(&self, end: Result<bool, String>, unix_now: Duration) {
        self.history.borrow_mut().end(end, unix_now);
        self.current.replace(None);
        self.timing.set(false);
    }

    /// How long to wait at `now` before another `len` bytes.
    pub(super) fn wait(&self, now: Duration, len: u64) -> Duration {
        self.throttle.borrow_mut().wait(now, len)
    }

    /// Has no pass run, or lets them again.
    pub(super) fn hold(&self, held: bool) {
        self.held.set(held);
        self.tell();
    }

    /// Whether no pass is to run: for now, or any more.
    pub(super) fn is_held(&self) -> bool {
        self.held.get() || self.stop.get()
    }

    /// How often something changed so far.
    pub(super) fn changes(&self) -> u64 {
        self.changes.get()
    }

    /// Waits until something changes after `changes`.
    pub(super) async fn until_changed(&self, changes: u64) {
        self.changed.until(|| self.changes.get() != changes).await;
    }

    /// Waits until `condition` holds, which is asked whenever something changed.
    pub(super) async fn until(&self, condition: impl FnMut() -> bool) {
        self.changed.until(condition).await;
    }

    /// Forgets what was asked for: it is done.
    pub(super) fn finish_request(&self, kind: JobKind, now: Duration) {
        self.requested.take();
        self.last.replace(Some(LastScrub { kind, ended: now, found: self.found().into() }));
    }

    /// Nothing was found yet.
    pub(super) fn find_nothing(&self) {
        self.found.replace(Found::default());
    }

    /// A window found something.
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

    /// The rate of the last half minute, and from the slowest and the fastest five seconds of
    /// the last minute how long the rest may take.
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
