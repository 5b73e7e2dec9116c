//! A single-threaded executor on a virtual clock.
//!
//! ```text
//!   ready tasks ──one drawn──▶ poll ──▶ spawns, wakes, schedules events
//!        ▲                                          │
//!        └──── wake ──── the next event ◀───────────┘   nothing ready (or now and then all
//!                        the clock jumps to its time    the same): the earliest event
//! ```
//!
//! Invariants
//! * Everything that could go one way or another is drawn from the seed.
//! * Time passes only from event to event. A turn in which nothing is ready and no event is due
//!   is a deadlock, and ends the run with a list of what was waited for.
//!
//! Deliberately absent: threads (a waker may be used from one, the run is then its own), and
//! costs: polling a task takes no time.

mod sleep;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use sleep::Sleep;

use crate::Rng;
use crate::seeds::is_repeating;

/// Polls without the clock moving, after which a run is taken to go in circles.
const MAX_POLLS_AT_ONCE: u64 = 1_000_000;

/// The percentage of events that come although tasks are ready.
const OVERTAKING_PERCENT: u64 = 20;

/// A simulation: a seed, a clock, tasks and events.
pub struct Sim {
    core: Rc<Core>,
}

/// The access of tasks and disks to their simulation. Cheap to clone.
#[derive(Clone)]
pub struct Handle {
    core: Rc<Core>,
}

/// A part of the simulation that can tell what it was doing, for a run that fails.
pub trait Witness {
    /// Its unfinished work, one line each.
    fn pending(&self) -> Vec<String>;

    /// The events so far, one line each.
    fn trace(&self) -> Vec<String>;
}

/// A run that cannot go on.
#[derive(Debug)]
pub struct Stuck {
    /// The seed that leads there.
    pub seed: u64,
    /// When, in nanoseconds.
    pub now_ns: u64,
    /// True if tasks still ran, without end and without time passing.
    pub livelock: bool,
    /// Tasks and operations that were not finished.
    pub pending: Vec<String>,
}

/// The end of a run.
#[derive(Debug)]
pub enum Outcome<T> {
    /// Its future is done.
    Done(T),
    /// It was stopped.
    Halted,
    /// No task and no event can go on.
    Stuck(Stuck),
}

struct Core {
    seed: u64,
    now_ns: Cell<u64>,
    rng: RefCell<Rng>,
    tasks: RefCell<BTreeMap<u64, Task>>,
    next_task: Cell<u64>,
    ready: Arc<ReadyList>,
    /// By time; the number tells events of the same time apart, first scheduled first.
    events: RefCell<BTreeMap<EventKey, Event>>,
    next_event: Cell<u64>,
    /// By how many seconds the clock of the day was set ahead.
    clock_by_s: Cell<i64>,
    /// Events wait until no task is ready.
    punctual: Cell<bool>,
    /// The greatest distance of an event that comes although tasks are ready, in nanoseconds.
    delay_ns: Cell<u64>,
    /// True if the run must stop at its present state.
    halted: Cell<bool>,
    /// True if the run is over: new tasks and events are dropped, because they would keep this core alive.
    ended: Cell<bool>,
    /// True if another part reports a failure.
    quiet: Cell<bool>,
    observer: RefCell<Option<Box<dyn FnMut()>>>,
    witnesses: RefCell<Vec<Weak<dyn Witness>>>,
}

type EventKey = (u64, u64);
type Event = Box<dyn FnOnce()>;
type ReadyList = Mutex<Vec<u64>>;

struct Task {
    name: String,
    /// `None` while it is polled.
    future: Option<Pin<Box<dyn Future<Output = ()>>>>,
    signal: Arc<Signal>,
}

struct Signal {
    task: u64,
    queued: AtomicBool,
    ready: Arc<ReadyList>,
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        if !self.queued.swap(true, Ordering::AcqRel) {
            self.ready.lock().unwrap_or_else(PoisonError::into_inner).push(self.task);
        }
    }
}

impl Sim {
    /// A simulation at time 0 whose choices are those of `seed`. The thread keeps the memory of dropped pools for
    /// further simulations.
    pub fn new(seed: u64) -> Sim {
        braid_mem::keep_arenas();
        let core = Core {
            seed,
            now_ns: Cell::new(0),
            rng: RefCell::new(Rng::new(seed)),
            tasks: RefCell::default(),
            next_task: Cell::new(0),
            ready: Arc::default(),
            events: RefCell::default(),
            next_event: Cell::new(0),
            clock_by_s: Cell::new(0),
            punctual: Cell::new(false),
            delay_ns: Cell::new(u64::MAX),
            halted: Cell::new(false),
            ended: Cell::new(false),
            quiet: Cell::new(false),
            observer: RefCell::default(),
            witnesses: RefCell::default(),
        };
        Sim { core: Rc::new(core) }
    }

    /// For tasks and disks.
    pub fn handle(&self) -> Handle {
        Handle { core: Rc::clone(&self.core) }
    }

    /// From now on no event comes while tasks are ready: for tests of durations, which the time
    /// that a task is kept waiting would spoil.
    pub fn be_punctual(&self) {
        self.core.punctual.set(true);
    }

    /// From now on no task that is ready is kept waiting for longer than `delay_ns` at once: a busy
    /// processor, not one that stands still.
    pub fn be_prompt(&self, delay_ns: u64) {
        self.core.delay_ns.set(delay_ns);
    }

    /// From now on, the code that catches a panic reports it: witnesses are not asked.
    pub fn be_quiet(&self) {
        self.core.quiet.set(true);
    }

    /// Has `observer` called after every event, before any task learns of it: the moments at
    /// which a crash is worth trying.
    pub fn observe(&self, observer: impl FnMut() + 'static) {
        self.core.observer.replace(Some(Box::new(observer)));
    }

    /// Runs until `future` is done; other tasks run meanwhile.
    ///
    /// # Panics
    /// If the run gets stuck.
    pub fn block_on<T: 'static>(&self, future: impl Future<Output = T> + 'static) -> T {
        self.try_block_on(future).unwrap_or_else(|stuck| panic!("{stuck}"))
    }

    /// As [`Sim::block_on`].
    ///
    /// # Errors
    /// A run that gets stuck, or is halted.
    pub fn try_block_on<T: 'static>(
        &self,
        future: impl Future<Output = T> + 'static,
    ) -> Result<T, Stuck> {
        match self.run_until(future) {
            Outcome::Done(value) => Ok(value),
            Outcome::Halted => Err(self.core.stuck(false)),
            Outcome::Stuck(stuck) => Err(stuck),
        }
    }

    /// Runs until `future` is done, or [`Handle::halt`] is called: then everything stays in the state of that
    /// moment, as after a power failure.
    pub fn run_until<T: 'static>(&self, future: impl Future<Output = T> + 'static) -> Outcome<T> {
        let result = Rc::new(Cell::new(None));
        let slot = Rc::clone(&result);
        self.handle().spawn("main", async move { slot.set(Some(future.await)) });
        self.core.halted.set(false);
        let mut polls = 0;
        loop {
            if self.core.halted.get() {
                return Outcome::Halted;
            }
            if let Some(value) = result.take() {
                return Outcome::Done(value);
            }
            let ready = self.core.ready_len() > 0;
            let may_overtake = ready && !self.core.punctual.get() && self.core.is_next_near();
            let overtaken = may_overtake && self.core.draw(|rng| rng.percent(OVERTAKING_PERCENT));
            if (!ready || overtaken) && self.core.fire_next_event() {
                polls = 0;
            } else if ready && polls < MAX_POLLS_AT_ONCE {
                self.core.poll_one();
                polls += 1;
            } else {
                return Outcome::Stuck(self.core.stuck(ready));
            }
        }
    }
}

impl Drop for Sim {
    /// Ends all tasks and events, which hold on to this simulation; after a failure, tells what
    /// the witnesses saw.
    fn drop(&mut self) {
        if std::thread::panicking() && !self.core.quiet.get() {
            eprintln!("seed {} at {} ns\n{}", self.core.seed, self.core.now_ns.get(), self.trace());
        }
        self.core.observer.take();
        // Dropping a task may spawn, schedule or wake; none of that is kept any more.
        self.core.ended.set(true);
        while let Some((_, task)) = self.core.pop_task() {
            drop(task);
        }
        while let Some((_, event)) = self.core.pop_event() {
            drop(event);
        }
    }
}

impl Sim {
    /// The traces of the witnesses; only the end of each, unless one seed was requested.
    fn trace(&self) -> String {
        const LINES: usize = 40;
        let mut lines = Vec::new();
        for witness in self.core.witnesses() {
            let trace = witness.trace();
            let from = if is_repeating() { 0 } else { trace.len().saturating_sub(LINES) };
            lines.extend_from_slice(&trace[from..]);
        }
        lines.join("\n")
    }
}

impl Handle {
    /// Runs `future` beside the other tasks; `name` appears in the list of pending tasks.
    pub fn spawn(&self, name: impl Into<String>, future: impl Future<Output = ()> + 'static) {
        if self.core.ended.get() {
            return;
        }
        let id = self.core.next_task.get();
        self.core.next_task.set(id + 1);
        let ready = Arc::clone(&self.core.ready);
        let signal = Arc::new(Signal { task: id, queued: AtomicBool::new(false), ready });
        let waker = Waker::from(Arc::clone(&signal));
        let task = Task { name: name.into(), future: Some(Box::pin(future)), signal };
        self.core.tasks.borrow_mut().insert(id, task);
        waker.wake();
    }

    /// Virtual time since the start, in nanoseconds.
    pub fn now(&self) -> u64 {
        self.core.now_ns.get()
    }

    /// Sets the clock of the day ahead by so many seconds.
    pub fn set_clock(&self, by_s: i64) {
        self.core.clock_by_s.set(self.core.clock_by_s.get().saturating_add(by_s));
    }

    /// The time of day that the clock shows, since 1970, when `right` is the correct time; never before 1970.
    pub fn clock_for(&self, right: Duration) -> Duration {
        let by_s = self.core.clock_by_s.get();
        let by = Duration::from_secs(by_s.unsigned_abs());
        if by_s < 0 { right.saturating_sub(by) } else { right.saturating_add(by) }
    }

    /// The seed of this run.
    pub fn seed(&self) -> u64 {
        self.core.seed
    }

    /// Stops the run where it is, before any other task or event: [`Sim::run_until`] returns.
    pub fn halt(&self) {
        self.core.halted.set(true);
    }

    /// A generator for a part of the simulation.
    pub fn fork_rng(&self) -> Rng {
        self.core.draw(Rng::fork)
    }

    /// Waits for `duration_ns`.
    pub async fn sleep(&self, duration_ns: u64) {
        let deadline_ns = self.now().saturating_add(duration_ns);
        Sleep::until(Rc::clone(&self.core), deadline_ns).await;
    }

    /// Has `event` called at `time_ns` (now, if that has passed). An event at the end of time
    /// never comes.
    pub fn call_at(&self, time_ns: u64, event: impl FnOnce() + 'static) {
        if time_ns < u64::MAX {
            self.core.schedule(time_ns, Box::new(event));
        }
    }

    /// Lets `witness` be heard when the run fails. It is not kept alive.
    pub fn add_witness(&self, witness: Weak<dyn Witness>) {
        self.core.witnesses.borrow_mut().push(witness);
    }
}

impl Core {
    fn draw<R>(&self, f: impl FnOnce(&mut Rng) -> R) -> R {
        f(&mut self.rng.borrow_mut())
    }

    fn ready_len(&self) -> usize {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    fn pop_task(&self) -> Option<(u64, Task)> {
        self.tasks.borrow_mut().pop_first()
    }

    fn pop_event(&self) -> Option<(EventKey, Event)> {
        self.events.borrow_mut().pop_first()
    }

    fn witnesses(&self) -> Vec<Rc<dyn Witness>> {
        self.witnesses.borrow().iter().filter_map(Weak::upgrade).collect()
    }

    fn schedule(&self, time_ns: u64, event: Event) -> EventKey {
        let number = self.next_event.get();
        self.next_event.set(number + 1);
        let key = (time_ns.max(self.now_ns.get()), number);
        if !self.ended.get() {
            self.events.borrow_mut().insert(key, event);
        }
        key
    }

    /// True if the next event may come although tasks are ready.
    fn is_next_near(&self) -> bool {
        let delay_ns = self.delay_ns.get();
        delay_ns == u64::MAX || {
            let events = self.events.borrow();
            let next = events.first_key_value().map_or(u64::MAX, |((time_ns, _), _)| *time_ns);
            next.saturating_sub(self.now_ns.get()) <= delay_ns
        }
    }

    /// Lets the next event happen, if there is one.
    fn fire_next_event(&self) -> bool {
        let Some(((time_ns, _), event)) = self.pop_event() else { return false };
        self.now_ns.set(time_ns);
        event();
        let observer = self.observer.take();
        if let Some(mut observer) = observer {
            observer();
            self.observer.replace(Some(observer));
        }
        true
    }

    /// Polls one of the ready tasks.
    fn poll_one(&self) {
        let id = {
            let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
            let chosen = self.draw(|rng| rng.index(ready.len()));
            ready.swap_remove(chosen)
        };
        let (mut future, signal) = {
            let mut tasks = self.tasks.borrow_mut();
            // A waker outlives its task.
            let Some(task) = tasks.get_mut(&id) else { return };
            let Some(future) = task.future.take() else { return };
            (future, Arc::clone(&task.signal))
        };
        // Before polling, so that a wake during the poll is not lost.
        signal.queued.store(false, Ordering::Release);
        let waker = Waker::from(signal);
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Pending => {
                if let Some(task) = self.tasks.borrow_mut().get_mut(&id) {
                    task.future = Some(future);
                }
            }
            Poll::Ready(()) => {
                self.tasks.borrow_mut().remove(&id);
            }
        }
    }

    fn stuck(&self, livelock: bool) -> Stuck {
        let tasks = self.tasks.borrow();
        let tasks = tasks.iter().map(|(id, task)| format!("task {id}: {}", task.name));
        let mut pending: Vec<String> = tasks.collect();
        pending.extend(self.witnesses().iter().flat_map(|witness| witness.pending()));
        Stuck { seed: self.seed, now_ns: self.now_ns.get(), livelock, pending }
    }
}

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.livelock {
            true => "tasks run without end and time stands still",
            false => "deadlock, nothing is ready and no event is due",
        };
        write!(f, "seed {} at {} ns: {what}; pending:", self.seed, self.now_ns)?;
        self.pending.iter().try_for_each(|line| write!(f, "\n  {line}"))
    }
}

impl std::error::Error for Stuck {}
