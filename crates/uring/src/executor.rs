//! The executor: tasks of one thread, and the loop that runs them.
//!
//! A turn: run every task that is ready (at most a budget, so that results are not starved),
//! wake what is due, then enter the driver once, waiting only if nothing is left to run.
//!
//! The clock is read at most once a turn, by the first that asks for the time behind the driver
//! ([`Handle::now`]), and again by what times a part of a turn ([`Handle::read_clock`]).

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use async_task::Runnable;

use crate::eventfd;
use crate::operation::Operation;
use crate::pool::{Job, Pool};
use crate::ring::{Ring, Workers};
use crate::submitted::Submitted;
use crate::table::{After, Table};
use crate::threads::{Threads, job_of};
use crate::timer::Timers;
use crate::turn::TimeOfTurn;

/// Tasks run between two visits to the driver.
const BUDGET: usize = 128;

/// Operations under way at once that are prepared for: more than a block device's queue and the
/// passes of an array ever have.
const UNDER_WAY: usize = 4096;

/// Time limit for queues, whose commands cannot be cancelled, when an executor ends before their connection.
const QUEUES_END: Duration = Duration::from_secs(2);

/// Which driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Mode {
    /// io_uring if it is to be had, else threads.
    #[default]
    Auto,
    /// io_uring or an error.
    Uring,
    /// `poll` and a pool of threads.
    Threads,
}

/// Options of an executor.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Which driver.
    pub mode: Mode,
    /// Most threads for operations that block.
    pub threads: usize,
    /// Whose threads.
    pub workers: Workers,
}

impl Default for Config {
    fn default() -> Config {
        Config { mode: Mode::Auto, threads: 16, workers: Workers::Kernel }
    }
}

/// Runs tasks on the thread that made it.
pub struct Executor {
    inner: Rc<Inner>,
}

/// A task's handle of its executor; stays on its thread.
#[derive(Clone)]
pub struct Handle {
    inner: Rc<Inner>,
}

struct Inner {
    table: Rc<Table>,
    driver: Driver,
    pool: RefCell<Option<Pool>>,
    threads: usize,
    timers: Rc<Timers>,
    time: TimeOfTurn,
    inbox: Arc<Inbox>,
}

enum Driver {
    Ring(Box<Ring>),
    Threads(Threads),
}

/// The messages of other threads to the executor.
struct Inbox {
    owner: ThreadId,
    messages: Mutex<Vec<Message>>,
    /// The executor ends: no call is taken any more.
    closed: AtomicBool,
    /// True if the executor is, or is about to be, waiting in its driver.
    waiting: AtomicBool,
    eventfd: OwnedFd,
}

enum Message {
    Run(Runnable),
    Call(Box<dyn FnOnce(&Handle) + Send>),
    Done(u32, i32),
}

thread_local! {
    static READY: RefCell<VecDeque<Runnable>> = const { RefCell::new(VecDeque::new()) };
    static OCCUPIED: Cell<bool> = const { Cell::new(false) };
}

impl Executor {
    /// An executor for the calling thread.
    ///
    /// # Errors
    /// What the kernel answers when io_uring is asked for and not to be had.
    ///
    /// # Panics
    /// If the thread has an executor already.
    pub fn new(config: Config) -> io::Result<Executor> {
        let eventfd = eventfd::new()?;
        let ring = |eventfd: &OwnedFd| {
            let ring = Ring::new(eventfd.try_clone()?, config.workers)?;
            Ok(Driver::Ring(Box::new(ring)))
        };
        let threads = |eventfd: &OwnedFd| Ok(Driver::Threads(Threads::new(eventfd.try_clone()?)));
        let driver = match config.mode {
            Mode::Uring => ring(&eventfd),
            Mode::Threads => threads(&eventfd),
            Mode::Auto => ring(&eventfd).or_else(|_: io::Error| threads(&eventfd)),
        }?;
        assert!(!OCCUPIED.replace(true), "a thread has one executor");
        let inbox = Arc::new(Inbox {
            owner: std::thread::current().id(),
            messages: Mutex::default(),
            closed: AtomicBool::new(false),
            waiting: AtomicBool::new(false),
            eventfd,
        });
        let inner = Inner {
            table: Rc::default(),
            driver,
            pool: RefCell::default(),
            threads: config.threads,
            timers: Rc::default(),
            time: TimeOfTurn::default(),
            inbox,
        };
        if config.workers == Workers::Own {
            inner.prepare()?;
        }
        Ok(Executor { inner: Rc::new(inner) })
    }

    /// For tasks.
    pub fn handle(&self) -> Handle {
        Handle { inner: Rc::clone(&self.inner) }
    }

    /// Runs until `future` is done; other tasks run meanwhile.
    ///
    /// # Panics
    /// If the driver fails in a way that no operation can be blamed for.
    pub fn block_on<T: 'static>(&self, future: impl Future<Output = T> + 'static) -> T {
        let result = Rc::new(Cell::new(None));
        let slot = Rc::clone(&result);
        let handle = self.handle();
        handle.spawn(async move { slot.set(Some(future.await)) });
        loop {
            for _ in 0..BUDGET {
                let Some(runnable) = READY.with_borrow_mut(VecDeque::pop_front) else { break };
                runnable.run();
            }
            if let Some(value) = result.take() {
                return value;
            }
            self.poll_driver(&handle);
        }
    }

    fn poll_driver(&self, handle: &Handle) {
        let inner = &self.inner;
        let mut limit = None;
        inner.timers.give_turn();
        if let Some(deadline) = inner.timers.next_deadline() {
            let now = inner.time.now();
            inner.timers.fire(now);
            limit = Some(deadline.saturating_duration_since(now));
        }
        inner.time.pass();
        inner.inbox.waiting.store(true, Ordering::SeqCst);
        let busy = READY.with_borrow(|ready| !ready.is_empty()) || !inner.inbox.is_empty();
        let wait = if busy { None } else { Some(limit) };
        let turned = match &inner.driver {
            Driver::Ring(ring) => {
                ring.turn(&inner.table, wait, &inner.time, &|id| inner.submit(id))
            }
            Driver::Threads(threads) => threads.turn(&inner.table, wait),
        };
        inner.inbox.waiting.store(false, Ordering::SeqCst);
        if let Err(error) = turned {
            panic!("the driver failed: {error}");
        }
        for message in inner.inbox.take() {
            match message {
                Message::Run(one) => READY.with_borrow_mut(|ready| ready.push_back(one)),
                Message::Call(call) => call(handle),
                Message::Done(id, result) => inner.complete(id, result),
            }
        }
    }
}

impl Drop for Executor {
    /// Ends all tasks, then waits until the kernel has let go of every operation's memory.
    fn drop(&mut self) {
        OCCUPIED.set(false);
        let inner = &self.inner;
        inner.inbox.closed.store(true, Ordering::SeqCst);
        // Sleepers hold their tasks, and those this executor.
        inner.timers.clear();
        let queues_end = Instant::now() + QUEUES_END;
        loop {
            for message in inner.inbox.take() {
                if let Message::Done(id, result) = message {
                    inner.complete(id, result);
                }
            }
            // Dropping a runnable drops its task, which may wake others.
            while let Some(runnable) = READY.with_borrow_mut(VecDeque::pop_front) {
                drop(runnable);
            }
            if inner.table.in_kernel() == 0 {
                match &inner.driver {
                    Driver::Ring(ring) if ring.has_commands() && Instant::now() < queues_end => {}
                    Driver::Ring(ring) => return ring.forget_queues(),
                    Driver::Threads(_) => return,
                }
            }
            let limit = Some(Some(Duration::from_millis(100)));
            let turned = match &inner.driver {
                Driver::Ring(ring) => {
                    ring.cancel_all();
                    ring.turn(&inner.table, limit, &inner.time, &|id| inner.submit(id))
                }
                Driver::Threads(threads) => {
                    threads.cancel_all(&inner.table);
                    threads.turn(&inner.table, limit)
                }
            };
            if turned.is_err() {
                // The memory may still be in use: keep it for the life of the process.
                std::mem::forget(Rc::clone(&inner.table));
                if let Driver::Ring(ring) = &inner.driver {
                    ring.forget_queues();
                }
                return;
            }
        }
    }
}

impl Handle {
    /// Runs `future` beside the other tasks of this thread, until it is done.
    pub fn spawn(&self, future: impl Future<Output = ()> + 'static) {
        let inbox = Arc::clone(&self.inner.inbox);
        let schedule = move |runnable| {
            if std::thread::current().id() == inbox.owner {
                READY.with_borrow_mut(|ready| ready.push_back(runnable));
            } else {
                inbox.push(Message::Run(runnable));
            }
        };
        let (runnable, task) = async_task::spawn_local(future, schedule);
        runnable.schedule();
        task.detach();
    }

    /// Reaches this executor from other threads.
    pub fn remote(&self) -> Remote {
        Remote { inbox: Arc::clone(&self.inner.inbox) }
    }

    /// The driver in use, as `status` names it.
    pub fn driver_name(&self) -> &'static str {
        match self.inner.driver {
            Driver::Ring(_) => "uring",
            Driver::Threads(_) => "threads",
        }
    }

    /// Returns the time of this turn, which is read once.
    #[inline]
    pub fn now(&self) -> Instant {
        self.inner.time.now()
    }

    /// Reads the clock anew. What is read is the time of the rest of the turn.
    pub fn read_clock(&self) -> Instant {
        self.inner.time.read()
    }

    /// Returns the number of readings of the clock so far.
    pub fn clock_readings(&self) -> u64 {
        self.inner.time.readings.get()
    }

    #[inline]
    pub(crate) fn since_start(&self, time: Instant) -> Duration {
        time.saturating_duration_since(self.inner.time.start)
    }

    /// Waits until `deadline`, and at most a turn longer.
    pub async fn sleep_until(&self, deadline: Instant) {
        let now = || self.now();
        self.inner.timers.wait_until(deadline, now).await;
    }

    /// Waits for `duration`.
    pub async fn sleep(&self, duration: Duration) {
        self.sleep_until(self.read_clock() + duration).await;
    }

    /// Waits for a turn of the executor of its own: of the tasks that wait so one goes on in each turn, first come
    /// first served. For work that keeps all others on the thread waiting.
    pub async fn turn(&self) {
        self.inner.timers.wait_for_turn().await;
    }

    pub(crate) fn ring(&self) -> Option<&Ring> {
        match &self.inner.driver {
            Driver::Ring(ring) => Some(ring),
            Driver::Threads(_) => None,
        }
    }

    pub(crate) fn start(&self, operation: Operation) -> u32 {
        let id = self.inner.table.insert(operation);
        self.inner.submit(id);
        id
    }

    pub(crate) fn submit(&self, operation: Operation) -> Submitted {
        let id = self.start(operation);
        Submitted { table: Rc::clone(&self.inner.table), id: Some(id) }
    }

    pub(crate) fn submit_blocking(&self, job: Job) -> Submitted {
        let id = self.inner.table.insert(Operation::Blocking);
        self.inner.with_pool(|pool| pool.run(id, None, job));
        Submitted { table: Rc::clone(&self.inner.table), id: Some(id) }
    }

    pub(crate) fn table(&self) -> Rc<Table> {
        Rc::clone(&self.inner.table)
    }
}

impl Inner {
    /// Makes now what would else be made when it is needed first, which may be when memory is
    /// short.
    fn prepare(&self) -> io::Result<()> {
        self.with_pool(Pool::start_all);
        self.table.reserve(UNDER_WAY);
        READY.with_borrow_mut(|ready| ready.reserve(UNDER_WAY));
        match &self.driver {
            Driver::Ring(ring) => {
                ring.reserve(&self.table, UNDER_WAY, &self.time, &|id| self.submit(id))
            }
            Driver::Threads(_) => Ok(()),
        }
    }

    fn submit(&self, id: u32) {
        match &self.driver {
            Driver::Ring(ring) => {
                let job = self.table.with(id, |operation| {
                    ring.leaves_to_threads(operation).then(|| job_of(operation))
                });
                match job {
                    None => ring.submit(&self.table, id),
                    Some((about, job)) => self.with_pool(|pool| pool.run(id, about, job)),
                }
            }
            Driver::Threads(threads) => {
                self.with_pool(|pool| threads.submit(&self.table, id, pool));
            }
        }
    }

    fn complete(&self, id: u32, result: i32) {
        if let After::Resubmit = self.table.complete(id, result) {
            self.submit(id);
        }
    }

    fn with_pool(&self, f: impl FnOnce(&Pool)) {
        let mut pool = self.pool.borrow_mut();
        f(pool.get_or_insert_with(|| {
            let inbox = Arc::clone(&self.inbox);
            Pool::new(
                self.threads,
                Arc::new(move |id, result| inbox.push(Message::Done(id, result))),
            )
        }));
    }
}

impl Inbox {
    fn push(&self, message: Message) {
        let mut messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(message, Message::Call(_)) && self.closed.load(Ordering::SeqCst) {
            // What a call holds may come here when it is dropped.
            return drop((messages, message));
        }
        messages.push(message);
        drop(messages);
        if self.waiting.load(Ordering::SeqCst) {
            eventfd::ring(&self.eventfd);
        }
    }

    fn is_empty(&self) -> bool {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    fn take(&self) -> Vec<Message> {
        std::mem::take(&mut *self.messages.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Reaches an executor from other threads.
#[derive(Clone)]
pub struct Remote {
    inbox: Arc<Inbox>,
}

impl Remote {
    /// Has the executor's thread call `f`. If the executor has ended, `f` is dropped, with all that it holds.
    pub fn call(&self, f: impl FnOnce(&Handle) + Send + 'static) {
        self.inbox.push(Message::Call(Box::new(f)));
    }
}
