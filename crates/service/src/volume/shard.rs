//! A shard: one thread with its own executor, memory and devices.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use braid_block::{Io, Limits};
use braid_device::{Stopwatch, Tally};
use braid_engine::Offered;
use braid_engine::redundant::{Branch, Home};
use braid_export_nbd::Stop;
use braid_mem::Pool;
use braid_uring::{Config, Executor, ExecutorClock, Handle, Remote};
use braid_wiring::Array;

use super::budget::Budget;
use super::build::{AtCache, Homes, build};
use super::following::Following;
use super::front::Front;
use super::media::Media;
use super::memory;
use super::restart::{ShardError, replay, restart};
use super::sides::Sides;
use super::spec::Spec;
use super::trace::Lane;

/// Time limit for a shard to answer a status: one of its turns takes milliseconds.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);

/// Time between two looks at memory that requests needed once.
const TRIM: Duration = Duration::from_secs(10);
/// Time limit for connections to end when the volume goes down.
const DRAIN: Duration = Duration::from_secs(10);

/// A shard that runs.
pub(super) struct Shard {
    pub facts: Facts,
    thread: JoinHandle<Result<(), ShardError>>,
}

/// Facts that a shard reports when it has started.
pub(super) struct Facts {
    pub remote: Remote,
    pub limits: Limits,
    /// `uring` or `threads`.
    pub driver: &'static str,
    /// The result of locking its memory.
    pub locked: Result<(), io::ErrorKind>,
    /// The kernel's number of its thread.
    pub thread: u32,
}

/// State of a shard's thread for calls from the main thread.
pub(super) struct Local {
    /// Parts of the volume's exports on this shard.
    pub(super) sides: Sides,
    /// The device that its exports offer.
    pub(super) front: Front,
    pub pool: Pool,
    pub arrays: Vec<Rc<Array>>,
    /// Arrays that live on the first shard, if this is another one.
    pub(super) branches: Vec<Branch>,
    /// The other shards, if they serve the members of this one's arrays.
    pub(super) others: RefCell<Vec<Remote>>,
    /// Caches, those below others first.
    pub caches: Rc<RefCell<Vec<AtCache>>>,
    /// Tells if another shard serves the requests of this one.
    pub(super) following: Rc<Following>,
    /// Raised when no other shard follows this one any more.
    alone: Stop,
}

impl Local {
    /// Returns the device that an export offers on this shard. `asked` records the latencies of its requests.
    pub(super) fn offered(&self, handle: &Handle, asked: &Tally) -> Offered {
        let watch = Stopwatch::new(asked, Rc::new(ExecutorClock::new(handle)));
        self.front.offered().seen_through(move |dev| watch.in_front_of(dev))
    }
}

thread_local! {
    static LOCAL: RefCell<Option<Local>> = const { RefCell::new(None) };
}

/// While this is there, the shard takes calls. It goes before the executor, which waits for the kernel to let
/// go of memory: a member that does not answer must not keep the main thread from hearing of a panic.
struct Serving<F: FnOnce(bool)>(Option<F>);

impl<F: FnOnce(bool)> Serving<F> {
    fn begin(local: Local, ended: F) -> Serving<F> {
        LOCAL.with_borrow_mut(|slot| *slot = Some(local));
        Serving(Some(ended))
    }
}

impl<F: FnOnce(bool)> Drop for Serving<F> {
    fn drop(&mut self) {
        if let Some(ended) = self.0.take() {
            ended(std::thread::panicking());
        }
        LOCAL.with_borrow_mut(Option::take);
    }
}

/// The ways from another shard to the arrays that live on the first one.
pub(super) struct ToFirst {
    /// Leads to an array.
    pub(super) home: Box<dyn Fn(usize) -> Box<dyn Home> + Send>,
    /// Has the first shard show the members of its arrays, of which there are so many, to the other shard.
    pub(super) follow: Box<Follow>,
}

type Follow = dyn FnOnce(&Remote, usize) + Send;

impl Shard {
    /// Starts shard number `index`, whose clients' requests go to `lane`, if there is one. `first` leads to the first shard,
    /// if this is another one. `ended` is told when it serves no more, and whether that is because of a panic.
    ///
    /// # Errors
    /// Whatever keeps its executor, memory or devices from being made; what a crash left of an
    /// array and cannot be made good.
    pub(super) fn start(
        index: usize,
        spec: &Spec,
        budget: Budget,
        media: &Arc<Media>,
        lane: Option<Lane>,
        first: Option<ToFirst>,
        ended: impl FnOnce(bool) + Send + 'static,
    ) -> Result<Shard, ShardError> {
        let (send, receive) = channel();
        let (media, spec) = (Arc::clone(media), spec.clone());
        let thread = std::thread::Builder::new()
            .name(format!("shard-{index}"))
            .spawn(move || run(&media, &spec, budget, lane, first, send, ended))?;
        match receive.recv() {
            Ok(facts) => Ok(Shard { facts, thread }),
            // It ended before it had started: its result says why.
            Err(_) => {
                let why = join(thread).err();
                Err(why.unwrap_or_else(|| io::Error::from(io::ErrorKind::Other).into()))
            }
        }
    }

    /// Calls `f` on the shard's thread.
    pub(super) fn call(&self, f: impl FnOnce(&Handle, &Local) + Send + 'static) {
        call(&self.facts.remote, f);
    }

    /// Returns the result of `f`, which is called on the shard's thread.
    ///
    /// # Errors
    /// The shard has ended.
    pub(super) fn ask<T: Send + 'static>(
        &self,
        f: impl FnOnce(&Handle, &Local) -> T + Send + 'static,
    ) -> io::Result<T> {
        let (send, receive) = channel();
        self.call(move |handle, local| drop(send.send(f(handle, local))));
        receive.recv().map_err(|_| io::Error::other("a shard has ended"))
    }

    /// Takes no more requests; the thread answers what is under way.
    pub(super) fn stop(&self) {
        self.call(|_, local| local.sides.stop());
    }

    /// Has the thread, once it is stopped, flush and end: no other follows this shard any more.
    pub(super) fn end(&self) {
        self.call(|_, local| local.alone.raise());
    }

    /// Waits for the end.
    ///
    /// # Errors
    /// The last flush failed.
    pub(super) fn join(self) -> Result<(), ShardError> {
        join(self.thread)
    }
}

/// Calls `f` on the thread of `remote`.
pub(super) fn call(remote: &Remote, f: impl FnOnce(&Handle, &Local) + Send + 'static) {
    remote.call(|handle| {
        LOCAL.with_borrow(|local| {
            if let Some(local) = local {
                f(handle, local);
            }
        });
    });
}

/// Returns the result of `f` on the thread of `remote`; `None` if it takes longer than a status waits.
pub(super) fn ask<T: Send + 'static>(
    remote: &Remote,
    f: impl FnOnce(&Handle, &Local) -> T + Send + 'static,
) -> Option<T> {
    let (send, receive) = channel();
    call(remote, move |handle, local| {
        // The asker may have lost patience.
        let _ = send.send(f(handle, local));
    });
    receive.recv_timeout(PATIENCE).ok()
}

/// Which of the shards do not answer within `limit`, by their numbers.
pub(super) fn silent(remotes: &[Remote], limit: Duration) -> Vec<usize> {
    let (send, receive) = channel();
    for (index, remote) in remotes.iter().enumerate() {
        let send = send.clone();
        remote.call(move |_| {
            // The receiver may have given up.
            let _ = send.send(index);
        });
    }
    drop(send);
    let deadline = Instant::now() + limit;
    let mut silent: Vec<usize> = (0..remotes.len()).collect();
    while !silent.is_empty() {
        let left = deadline.saturating_duration_since(Instant::now());
        match receive.recv_timeout(left) {
            Ok(index) => silent.retain(|other| *other != index),
            Err(_) => break,
        }
    }
    silent
}

fn join(thread: JoinHandle<Result<(), ShardError>>) -> Result<(), ShardError> {
    thread.join().unwrap_or_else(|panic| {
        let what = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("it gave no reason");
        Err(ShardError::Panicked(what.to_owned()))
    })
}

fn run(
    media: &Media,
    spec: &Spec,
    budget: Budget,
    lane: Option<Lane>,
    first: Option<ToFirst>,
    started: Sender<Facts>,
    ended: impl FnOnce(bool),
) -> Result<(), ShardError> {
    memory::prepare_shard();
    let workers = memory::workers(spec.attach.attaches());
    let mode = spec.io.executor_mode();
    let executor = Executor::new(Config { mode, workers, ..Config::default() })?;
    let handle = executor.handle();
    memory::let_pools_grow(spec.attach)?;
    let pool = Pool::growing(budget.pool, budget.floor)?;
    let locked = memory::lock(&pool, budget.reserve).map_err(|error| error.kind());
    let (home, follow) = first.map(|first| (first.home, first.follow)).unzip();
    let home: Option<Box<Homes>> = home.map(|home| home as Box<Homes>);
    let built = build(media, &handle, spec.read_only, home.as_deref())?;
    let dev = built.dev;
    let arrays: Vec<Rc<Array>> = built.arrays.into_iter().map(Rc::new).collect();
    make_good(&executor, &pool, &arrays, &built.caches)?;
    let front = Front::new(dev.clone(), lane, ExecutorClock::new(&handle));
    let caches = Rc::new(RefCell::new(built.caches));
    let (following, alone) = (Rc::<Following>::default(), Stop::default());
    let sides = Sides::default();
    let local = Local {
        sides: sides.clone(),
        front: front.clone(),
        pool,
        arrays: arrays.clone(),
        branches: built.branches,
        others: RefCell::default(),
        caches: Rc::clone(&caches),
        following: Rc::clone(&following),
        alone: alone.clone(),
    };
    let branches = local.branches.clone();
    branches.iter().for_each(|branch| handle.spawn(branch.run()));
    let _serving = Serving::begin(local, ended);
    if let Some(follow) = follow {
        follow(&handle.remote(), branches.len());
    }
    let facts = Facts {
        remote: handle.remote(),
        limits: *dev.limits(),
        driver: handle.driver_name(),
        locked,
        thread: rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned(),
    };
    if started.send(facts).is_err() {
        return Ok(());
    }
    planted_panic(&handle);
    let timer = handle.clone();
    handle.spawn(async move {
        loop {
            timer.sleep(TRIM).await;
            braid_mem::trim_pools();
        }
    });
    let result = executor.block_on(async move {
        sides.stopped().await;
        let deadline = Instant::now() + DRAIN;
        while sides.clients() > 0 && Instant::now() < deadline {
            handle.sleep(Duration::from_millis(2)).await;
        }
        alone.wait().await;
        while !branches.iter().all(Branch::is_idle) {
            handle.sleep(Duration::from_millis(2)).await;
        }
        if dev.limits().read_only || following.first().is_some() {
            // The shard that serves it flushes it.
            return Ok(());
        }
        let caches = caches.borrow().clone();
        shut_down(&front, &arrays, &caches).await
    });
    Ok(result?)
}

/// Repairs what a crash left of arrays and caches, before clients are served, and starts their tasks.
fn make_good(
    executor: &Executor,
    pool: &Pool,
    arrays: &[Rc<Array>],
    caches: &[AtCache],
) -> Result<(), ShardError> {
    let handle = executor.handle();
    for one in arrays {
        restart(executor, one)?;
        handle.spawn(one.array.run());
        if one.is_changed {
            let array = one.array.clone();
            // Before clients are served: data that a read returns of copies that a crash left different must
            // not change when a member comes back that was not there. What cannot be recorded stops
            // the array, which its status says.
            executor.block_on(async move { drop(array.record().await) });
        }
    }
    for one in caches {
        replay(executor, one)?;
        if let Some(run) = one.cache.run() {
            handle.spawn(run);
        }
        let warm = one.warm.as_ref();
        if let Some(text) = warm.and_then(|warm| warm.restore(&one.cache, &handle, pool)) {
            eprintln!("{text}");
        }
    }
    Ok(())
}

/// Flushes the device that exports offer, then closes caches and arrays. No client is served any more.
async fn shut_down(front: &Front, arrays: &[Rc<Array>], caches: &[AtCache]) -> io::Result<()> {
    let mut flushed = front.dev().start(Io::flush()).await.result.map_err(io::Error::from);
    // From above: what one drains another may hold.
    for one in caches.iter().rev() {
        let drained = one.cache.shut_down().await.map_err(io::Error::from);
        flushed = flushed.and(drained);
    }
    for one in arrays {
        one.array.shut_down().await;
    }
    // After the last write to the origins.
    for (one, warm) in caches.iter().filter_map(|one| Some((one, one.warm.as_ref()?))) {
        if flushed.is_ok()
            && let Err(error) = warm.save(&one.cache)
        {
            let path = warm.path().display();
            eprintln!("{path}: {error}: the cache will be as it was before, or empty");
        }
    }
    flushed
}

/// For tests of what a panic does: one comes when the file that `BRAID_PLANTED_PANIC` names is there. Without
/// the engine's feature `canary`, which nothing that is shipped has, this does nothing.
fn planted_panic(handle: &Handle) {
    let file = braid_engine::canary::ARE_THERE.then(|| std::env::var_os("BRAID_PLANTED_PANIC"));
    if let Some(file) = file.flatten().map(std::path::PathBuf::from) {
        let waiting = handle.clone();
        handle.spawn(async move {
            while !file.exists() {
                waiting.sleep(Duration::from_millis(5)).await;
            }
            panic!("a panic was planted");
        });
    }
}

/// Returns a warning about the shards' memory for requests.
pub(super) fn pool_warning(shards: &[Shard]) -> Option<String> {
    let kind = shards.iter().find_map(|shard| shard.facts.locked.err())?;
    let why = match kind {
        io::ErrorKind::OutOfMemory | io::ErrorKind::PermissionDenied => {
            "the limit is too low".to_owned()
        }
        other => other.to_string(),
    };
    Some(format!("memory of requests could not be locked: {why} (`braid doctor` says what to do)"))
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use braid_engine::Dev;

    use super::*;

    /// A shard on a thread of its own, until it is dropped.
    pub(in crate::volume) struct Serving {
        pub(in crate::volume) remote: Remote,
        is_over: Arc<AtomicBool>,
        thread: Option<JoinHandle<()>>,
    }

    impl Serving {
        /// Serves the device that `make` makes on that thread.
        pub(in crate::volume) fn new(
            make: impl FnOnce(&Handle) -> Dev + Send + 'static,
        ) -> Serving {
            let is_over = Arc::<AtomicBool>::default();
            let (send, receive) = channel();
            let ends = Arc::clone(&is_over);
            let thread = std::thread::spawn(move || {
                let executor = Executor::new(Config::default()).expect("an executor");
                let (handle, pool) = (executor.handle(), Pool::new(1 << 20).expect("memory"));
                let front = Front::new(make(&handle), None, ExecutorClock::new(&handle));
                let _serving = super::Serving::begin(
                    Local {
                        sides: Sides::default(),
                        front,
                        pool,
                        arrays: Vec::new(),
                        branches: Vec::new(),
                        others: RefCell::default(),
                        caches: Rc::default(),
                        following: Rc::default(),
                        alone: Stop::default(),
                    },
                    |_| {},
                );
                send.send(handle.remote()).expect("its test");
                executor.block_on(async move {
                    while !ends.load(Ordering::Acquire) {
                        handle.sleep(Duration::from_millis(1)).await;
                    }
                });
            });
            let remote = receive.recv().expect("a shard");
            Serving { remote, is_over, thread: Some(thread) }
        }

        /// Returns the result of `f`, which its thread calls.
        pub(in crate::volume) fn on<T: Send + 'static>(
            &self,
            f: impl FnOnce(&Handle, &Local) -> T + Send + 'static,
        ) -> T {
            let (send, receive) = channel();
            call(&self.remote, move |handle, local| drop(send.send(f(handle, local))));
            receive.recv().expect("its answer")
        }
    }

    impl Drop for Serving {
        fn drop(&mut self) {
            self.is_over.store(true, Ordering::Release);
            self.thread.take().into_iter().for_each(|thread| thread.join().expect("its end"));
        }
    }
}
