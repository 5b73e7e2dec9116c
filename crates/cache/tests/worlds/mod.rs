//! Runs of a cache over several crashes, in write-back mode by default. Concurrent requests of all
//! kinds meet an origin (a disk, or an array that loses a member) and a log that complete in any
//! order, late or with errors.
//!
//! The power fails at some event, and crashes are also tried at many other events. Both disks lose
//! any of their volatile data, the log is replayed, and the result is compared with the oracle. The
//! power also fails during the replay.

#[path = "../clocks/mod.rs"]
mod clocks;
#[path = "../front/mod.rs"]
mod front;
pub(crate) mod origin;

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use braid_block::{Errno, Flags, Io, Limits, Op, Span};
use braid_cache::log::format::OriginId;
use braid_cache::{
    Cache, Config, GivenUp, LogId, LogSetup, Memory, WriteBackConfig, WriteBackStatus, least_log,
};
use braid_engine::{Dev, Offered};
use braid_level::{CacheMode, CachePolicy};
use braid_mem::Pool;
use braid_seed::Rng;
use braid_sim::Handle;
use braid_sim::found::SimClock;
use braid_sim::spec::Spec;
use braid_sim::{Client, Fault, Image, Load, Oracle, Outcome, Sim, SimDisk, Target};
use clocks::Whimsical;
use front::Front;
use origin::{Images, Origin};

pub(crate) const SIZE: u64 = 128 << 10;

/// Parameters of all lives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) config: Config,
    pub(crate) dirty: u64,
    pub(crate) age_us: u64,
    pub(crate) drain: Option<u64>,
    /// Size of the log in bytes; `None` for a cache without a log.
    pub(crate) log: Option<u64>,
    /// The array, if the origin is not a disk.
    pub(crate) array: Option<Spec>,
    /// Block size of the disk.
    pub(crate) origin_block: u32,
    pub(crate) log_block: u32,
    /// The log and the origin have errors.
    pub(crate) errors: (bool, bool),
    /// Abandoned logs are remembered.
    pub(crate) remembers: bool,
    /// A crash is tried at one in this many events.
    pub(crate) tried: u64,
    /// Number of nested crashes, each in the replay after the one before.
    pub(crate) nested: u32,
    pub(crate) requests: usize,
    /// The cache may step aside.
    pub(crate) is_timed: bool,
    /// The mode changes. In write-through mode a failed flush would lose completed writes
    /// of the origin, as without a cache, so no flush fails then.
    pub(crate) switches: bool,
    /// The pools have a limit, which changes.
    pub(crate) little_memory: bool,
    /// Length of bursts of requests, and of the pauses between them, in nanoseconds.
    pub(crate) bursts: u64,
    pub(crate) calm_ns: u64,
}

impl Shape {
    pub(crate) fn of(dice: &mut Rng) -> Shape {
        let block = 4096 << dice.below(3);
        let size = block * dice.within(1..=10);
        let is_logged = dice.percent(80);
        let tried = [1, 50, 100, 100][dice.index(4)];
        Shape {
            config: Config {
                size,
                block,
                mode: CacheMode::WriteBack,
                policy: CachePolicy::ALL[dice.index(CachePolicy::ALL.len())],
                sequential_cutoff: dice.percent(50).then(|| [2, 8, 16][dice.index(3)] << 10),
            },
            dirty: dice.within(1..=size),
            age_us: dice.within(100..=20_000),
            drain: dice.percent(30).then(|| dice.within(1_000..=50_000_000)),
            log: is_logged.then(|| least_log(block) + 4096 * dice.below(30)),
            array: None,
            origin_block: [512, 4096][dice.index(2)],
            log_block: [512, 4096][dice.index(2)],
            errors: (dice.percent(20), dice.percent(20)),
            remembers: dice.percent(70),
            tried,
            nested: 1,
            requests: dice.within(5..=if tried == 1 { 8 } else { 60 }) as usize,
            is_timed: dice.percent(50),
            switches: dice.percent(60),
            little_memory: false,
            bursts: 1,
            calm_ns: 3_000_000,
        }
    }

    /// In front of an array that survives the loss of a member with a crash; nothing else fails.
    pub(crate) fn over_an_array(self, dice: &mut Rng) -> Shape {
        let array = Some(origin::ARRAYS[dice.index(origin::ARRAYS.len())]);
        let tried = self.tried.max(50);
        Shape { array, errors: (false, false), tried, ..self }
    }

    /// Returns the oracle with the losses that a crash of `origin` excuses; `None` if it excuses
    /// none. An array with parity may lose unflushed writes to a lost member, unless the log has
    /// all of them.
    pub(crate) fn excused(
        &self,
        origin: &Images,
        before: &Oracle,
    ) -> Result<Option<Oracle>, String> {
        let is_all_logged =
            self.log.is_some() && !self.switches && self.config.sequential_cutoff.is_none();
        let spec = self.array.filter(|spec| spec.has_parity() && !is_all_logged);
        spec.map(|spec| origin::excuse(&spec, origin, before)).transpose()
    }

    /// Makes the log as small as possible, and permits the whole cache to be dirty. Commits then
    /// write many records, rounds are frequent, zeroes arrive during commits, and replays are
    /// interrupted twice.
    pub(crate) fn cramped(self) -> Shape {
        let block = self.config.block;
        let config = Config { size: 12 * block, sequential_cutoff: None, ..self.config };
        Shape {
            config,
            dirty: config.size,
            log: Some(least_log(block)),
            origin_block: 4096,
            tried: 20,
            nested: 2,
            requests: 60,
            switches: false,
            bursts: 3,
            ..self
        }
    }
}

/// State of the devices after a crash.
#[derive(Clone)]
pub(crate) struct CrashImages {
    pub(crate) origin: Images,
    pub(crate) log: Option<Image>,
    /// The last abandoned log.
    pub(crate) given_up: Option<LogId>,
}

/// List of abandoned logs.
struct Memento(Rc<Cell<Option<LogId>>>);

impl GivenUp for Memento {
    fn remember(&self, log: LogId) -> std::io::Result<()> {
        self.0.set(Some(log));
        Ok(())
    }

    fn has(&self, log: LogId) -> std::io::Result<bool> {
        Ok(self.0.get() == Some(log))
    }
}

/// A simulation of both disks and a cache.
pub(crate) struct World {
    pub(crate) sim: Sim,
    pub(crate) origin: Rc<Origin>,
    pub(crate) log: Option<SimDisk>,
    pub(crate) cache: Cache,
    bed: Bed,
}

/// Parameters to start write-back mode.
#[derive(Clone)]
struct Bed {
    handle: Handle,
    log: Option<SimDisk>,
    shape: Shape,
    given_up: Rc<Cell<Option<LogId>>>,
    seed: u64,
}

impl Bed {
    fn more(&self, is_live: bool) -> WriteBackConfig {
        let Bed { handle, log, shape, given_up, seed } = self;
        let clock = Rc::new(SimClock { handle: handle.clone(), unix_start: Duration::ZERO });
        let memento = || Rc::new(Memento(Rc::clone(given_up))) as Rc<dyn GivenUp>;
        let setup = log.as_ref().map(|log| LogSetup {
            dev: Dev::new(log.clone()),
            origin: OriginId { size: SIZE, digest: [7; 16] },
            text: "origin".to_owned(),
            // Different each time: records of an abandoned log still exist.
            uuid: (u128::from(*seed) << 64 | u128::from(handle.now())).to_le_bytes(),
            is_forced: false,
            is_live,
            given_up: shape.remembers.then(memento),
        });
        WriteBackConfig {
            dirty: shape.dirty,
            age: Duration::from_micros(shape.age_us),
            drain: shape.drain,
            clock,
            log: setup,
        }
    }
}

impl World {
    pub(crate) fn new(seed: u64, shape: &Shape, left: &CrashImages) -> Result<World, String> {
        let sim = Sim::new(seed);
        sim.be_quiet();
        if shape.little_memory {
            // The clock does not run ahead to the end of the patience of `little_memory`.
            sim.be_prompt(origin::DELAY_NS);
        }
        let handle = sim.handle();
        let origin = Rc::new(Origin::new(&sim, shape.array, shape.origin_block, &left.origin)?);
        let of_log = |image: &Image| {
            let limits = Limits::new(image.len() as u64, shape.log_block);
            let limits = Limits { discard: true, ..limits };
            SimDisk::with_contents(&handle, "log", limits, image.clone())
        };
        let log = left.log.as_ref().map(of_log);
        let given_up = Rc::new(Cell::new(left.given_up));
        let bed = Bed { handle, log: log.clone(), shape: *shape, given_up, seed };
        let cache = match shape.config.mode {
            CacheMode::WriteBack => Cache::write_back(origin.dev(), shape.config, bed.more(false)),
            _ => Cache::new(origin.dev(), shape.config),
        };
        let cache = cache.expect("memory");
        if shape.is_timed {
            cache.time_origin(Rc::new(Whimsical::new(Rng::new(seed))), Whimsical::rules());
        }
        Ok(World { sim, origin, log, cache, bed })
    }

    /// Returns the images after a crash; with `loses`, a member may be lost.
    pub(crate) fn crash(&self, loses: bool, rng: &mut Rng) -> CrashImages {
        crash(&self.origin, loses, self.log.as_ref(), self.bed.given_up.get(), rng)
    }
}

fn crash(
    origin: &Origin,
    loses: bool,
    log: Option<&SimDisk>,
    given_up: Option<LogId>,
    rng: &mut Rng,
) -> CrashImages {
    let of_origin = origin.crash(loses, rng);
    CrashImages { origin: of_origin, log: log.map(|log| origin::image(log, rng)), given_up }
}

/// Starts on the images of a crash, and compares the origin with the oracle; the power also fails
/// during the start.
pub(crate) fn try_restart(
    seed: u64,
    shape: &Shape,
    left: &CrashImages,
    oracle: &Oracle,
    again: u32,
) -> Result<(), String> {
    let excused = shape.excused(&left.origin, oracle)?;
    let oracle = excused.as_ref().unwrap_or(oracle);
    let world = World::new(seed, shape, left)?;
    let World { sim, origin, log, cache, bed } = &world;
    let mut dice = Rng::new(!seed);
    let found = Rc::new(RefCell::new(Ok(())));
    if again > 0 {
        let (seen, oracle, shape) = (Rc::clone(&found), oracle.clone(), *shape);
        let (origin, log, given_up) = (Rc::clone(origin), log.clone(), bed.given_up.get());
        let mut dice = dice.fork();
        sim.observe(move || {
            if dice.percent(u64::from(10 / again)) && seen.borrow().is_ok() {
                let left = crash(&origin, false, log.as_ref(), given_up, &mut dice);
                let tried = try_restart(dice.next_u64(), &shape, &left, &oracle, again - 1);
                *seen.borrow_mut() = tried.map_err(|what| format!("in a replay: {what}"));
            }
        });
    }
    let (restarting, started) = (cache.clone(), origin.start(&sim.handle()));
    let restarted = sim.block_on(async move {
        started.await?;
        restarting.restart().await.map_err(|why| why.to_string())
    });
    if let Err(why) = restarted {
        return Err(format!("it does not come up: {why}"));
    }
    found.replace(Ok(()))?;
    // Valid data are on the origin, and stay there.
    let durable = match shape.array {
        None => origin.disks[0].crash_image(&mut dice).to_vec(),
        Some(_) => origin::contents(shape.array, &origin.crash(false, &mut dice))?,
    };
    oracle.check_crash(&durable).map_err(|mismatch| format!("after a replay {mismatch}"))
}

/// A client disappears in the middle of its requests. They are carried out or not, and final reads
/// return the content of the origin.
pub(crate) fn given_up(seed: u64) -> Result<(), String> {
    braid_mem::keep_arenas();
    let mut dice = Rng::new(!seed);
    let shape = Shape { errors: (false, false), ..Shape::of(&mut dice) };
    let image = |size: u64| Image::zeroes(size as usize);
    let left =
        CrashImages { origin: origin::zeroes(None), log: shape.log.map(image), given_up: None };
    let World { sim, origin, cache, .. } = World::new(seed, &shape, &left)?;
    let (handle, dev) = (sim.handle(), Dev::new(cache.clone()));
    let pool = Pool::new(4 << 20).expect("memory");
    let lived = sim.try_block_on(async move {
        cache.restart().await.map_err(|why| why.to_string())?;
        handle.spawn("cache", cache.run().expect("write-back"));
        let block = u64::from(dev.limits().logical_block);
        for _ in 0..60 {
            let len = dice.within(1..=8) * block;
            let span = Span::new(dice.below((SIZE - len) / block) * block, len);
            let flags = if dice.percent(20) { Flags::FUA } else { Flags::NONE };
            let mut buf = pool.get(len as usize).expect("memory");
            buf.fill(dice.below(255) as u8);
            let mut pending = dev.start(match dice.below(8) {
                0 => Io::read(span.offset, buf),
                1 => Io::write_zeroes(span, flags),
                2 => Io::flush(),
                _ => Io::write(span.offset, buf, flags),
            });
            let (gives_up, mut polls) = (dice.percent(40), dice.within(0..=3));
            std::future::poll_fn(|cx| {
                let is_done = Pin::new(&mut pending).poll(cx).is_ready();
                let is_over = gives_up && polls == 0;
                polls = polls.saturating_sub(1);
                if is_done || is_over { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
        }
        handle.sleep(2_000_000_000).await;
        cache.shut_down().await.map_err(|errno| format!("its end: {errno}"))?;
        has_what_is_read(&dev, &pool, &origin.durable(None)?).await
    });
    lived.map_err(|stuck| stuck.to_string())?.map_err(|what| format!("{what}\n{shape:?}"))
}

/// Checks that reads return the durable content of the origin.
async fn has_what_is_read(dev: &Dev, pool: &Pool, durable: &[u8]) -> Result<(), String> {
    let block = dev.limits().logical_block as usize;
    for offset in (0..SIZE).step_by(block) {
        let done = dev.start(Io::read(offset, pool.get(block).expect("memory"))).await;
        let shown = done.payload.to_vec();
        if done.result.is_ok() && shown != durable[offset as usize..][..block] {
            return Err(format!("at its end the origin has something else at {offset}"));
        }
    }
    Ok(())
}

/// Runs several lives of a cache, in the shape that `fit` makes of the drawn one.
pub(crate) fn lives(seed: u64, fit: impl FnOnce(Shape) -> Shape) -> Result<(), String> {
    // Thousands of caches are created and dropped.
    braid_mem::keep_arenas();
    let mut dice = Rng::new(!seed);
    let shape = fit(Shape::of(&mut dice));
    let many = dice.within(1..=3);
    let is_over = |lives, _| lives == many;
    lives_of(seed, &shape, &mut dice, is_over).map_err(|what| format!("{what}\n{shape:?}"))
}

/// Runs lives, each on the images of the one before, until `is_over` returns true for their number
/// and total time.
pub(crate) fn lives_of(
    seed: u64,
    shape: &Shape,
    dice: &mut Rng,
    is_over: impl Fn(u64, Duration) -> bool,
) -> Result<(), String> {
    let image = |size: u64| Image::zeroes(size as usize);
    let origin = origin::zeroes(shape.array);
    let mut left = CrashImages { origin, log: shape.log.map(image), given_up: None };
    let block = if shape.array.is_some() { 512 } else { shape.origin_block };
    let oracle = Rc::new(RefCell::new(Oracle::new(&vec![0; SIZE as usize], block)));
    let (mut life, mut lived) = (0, Duration::ZERO);
    let _limit = Limit;
    while !is_over(life, lived) {
        let world = World::new(seed.wrapping_mul(8).wrapping_add(life), shape, &left)
            .map_err(|what| format!("life {life}: {what}"))?;
        let is_at_rest = caught(|| one_life(&world, shape, &oracle, dice))
            .map_err(|what| format!("life {life}: {what}"))?;
        lived += Duration::from_nanos(world.sim.handle().now());
        life += 1;
        left = world.crash(true, dice);
        if !is_at_rest {
            let excused = shape.excused(&left.origin, &oracle.borrow())?;
            match excused {
                Some(excused) => drop(oracle.replace(excused)),
                None => oracle.borrow_mut().crash(|_| false),
            }
        }
    }
    Ok(())
}

/// Runs `life`, whose panic is an error.
pub(crate) fn caught<T>(life: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(life)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Err(text.unwrap_or_default())
    })
}

/// Runs a life. Returns whether it ended by itself; otherwise the power failed.
fn one_life(
    world: &World,
    shape: &Shape,
    oracle: &Rc<RefCell<Oracle>>,
    dice: &mut Rng,
) -> Result<bool, String> {
    let World { sim, origin, log, cache, bed } = world;
    let found = Rc::new(RefCell::new(Ok(())));
    let (seen, beside, handle) = (Rc::clone(&found), Rc::clone(oracle), sim.handle());
    let (disks, flag) = ((Rc::clone(origin), log.clone()), Rc::clone(&bed.given_up));
    let mut events = if dice.percent(50) { dice.within(1..=3000 * shape.bursts) } else { u64::MAX };
    let (mut die, shape_then) = (dice.fork(), *shape);
    sim.observe(move || {
        events -= 1;
        if die.below(shape_then.tried) == 0 {
            let left = crash(&disks.0, true, disks.1.as_ref(), flag.get(), &mut die);
            let tried = try_restart(
                die.next_u64(),
                &shape_then,
                &left,
                &beside.borrow(),
                shape_then.nested,
            );
            if tried.is_err() {
                *seen.borrow_mut() = tried;
                events = 0;
            }
        }
        if events == 0 {
            handle.halt();
        }
    });
    // A request of the client has several buffers, which are allocated one by one.
    let pool = Pool::new(4 << 20).expect("memory").without_limit();
    let offered = Offered::from(Dev::new(cache.clone()));
    let dev = Dev::new(Front(offered.clone()));
    let current = Rc::new(RefCell::new(cache.clone()));
    let mut client = Client { dev, pool, rng: dice.fork(), oracle: Rc::clone(oracle) };
    let load = Load {
        requests: shape.requests,
        depth: 1 + dice.index(8),
        longest: 16,
        overlapping: dice.percent(70),
    };
    let (log, origin, cache, handle) = (log.clone(), origin.clone(), cache.clone(), sim.handle());
    let (errors, bed, mut dice) = (shape.errors, bed.clone(), dice.fork());
    let pause_ns = dice.below(3) * 300_000_000;
    let started = origin.start(&handle);
    let outcome = sim.run_until(async move {
        started.await?;
        cache.restart().await.map_err(|why| format!("it does not come up: {why}"))?;
        if let Some(run) = cache.run() {
            handle.spawn("cache", run);
        }
        if origin.array.is_some() && dice.percent(40) {
            let (origin, later, mut dice) = (Rc::clone(&origin), handle.clone(), dice.fork());
            handle.spawn("loss", async move {
                later.sleep(dice.below(6_000_000)).await;
                if origin.may_lose() {
                    origin.disks[dice.index(origin.disks.len())].vanish();
                }
            });
        }
        if errors.0
            && let Some(log) = log.clone()
        {
            // Also while the log has data.
            let op = [Op::Write, Op::Flush][dice.index(2)];
            let many = [1, 1, u64::MAX][dice.index(3)];
            let (later, time_ns) = (handle.clone(), dice.below(6_000_000));
            handle.spawn("faults", async move {
                later.sleep(time_ns).await;
                log.faults().add_some(Target::op(op), Fault::Error(Errno::IO), many);
            });
        }
        if errors.1 {
            for op in [Op::Read, Op::Write, Op::Flush, Op::WriteZeroes, Op::Discard] {
                let many =
                    if op == Op::Flush && shape_then.switches { 0 } else { dice.within(0..=2) };
                origin.disks[0].faults().add_some(Target::op(op), Fault::Error(Errno::IO), many);
            }
        }
        if shape_then.little_memory {
            handle.spawn("memory", little_memory(handle.clone(), dice.fork()));
        }
        handle.spawn("whims", whims(bed, offered, Rc::clone(&current), dice.fork()));
        let mut report = client.run(load).await;
        for _ in 1..shape_then.bursts {
            handle.sleep(dice.below(shape_then.calm_ns)).await;
            report.errors.extend(client.run(load).await.errors);
        }
        let is_hurt = errors.0 || errors.1;
        if !is_hurt && !report.errors.is_empty() {
            return Err(format!("{:?}", report.errors));
        }
        let (status, counters) = (current.borrow().write_back_status(), cache.counters());
        if counters.bytes_read != counters.bytes_from_ram + counters.bytes_from_origin
            || counters.reads > counters.cache_hits + counters.disk_reads
        {
            return Err(format!("{counters:?}"));
        }
        let has_failed =
            |status: &WriteBackStatus| status.log_error.is_some() || status.drain_error.is_some();
        if !is_hurt && status.as_ref().is_some_and(has_failed) {
            return Err(format!("{status:?}"));
        }
        handle.sleep(pause_ns).await;
        if dice.percent(50) {
            return Ok(false);
        }
        let cache = current.borrow().clone();
        if let Err(errno) = cache.shut_down().await {
            return if is_hurt { Ok(false) } else { Err(format!("its end: {errno}")) };
        }
        let status = cache.write_back_status();
        if status.as_ref().is_some_and(|status| status.dirty != 0) {
            return Err(format!("{status:?} after its end"));
        }
        // Only the origin has the data; in write-through mode, after a flush.
        if shape_then.config.mode != CacheMode::WriteBack {
            client.dev.start(Io::flush()).await.result.map_err(|errno| errno.to_string())?;
        }
        has_what_is_read(&client.dev, &client.pool, &origin.durable(shape_then.array)?).await?;
        oracle_flushed(&client);
        Ok(true)
    });
    found.replace(Ok(()))?;
    match outcome {
        Outcome::Done(lived) => lived,
        Outcome::Halted => Ok(false),
        Outcome::Stuck(stuck) => Err(stuck.to_string()),
    }
}

/// Removes the limit of the pools when it is dropped.
struct Limit;

impl Drop for Limit {
    fn drop(&mut self) {
        braid_mem::set_limit(None);
    }
}

/// Changes the limit of the pools, often to one buffer at a time. Panics if the life does not end.
async fn little_memory(handle: Handle, mut dice: Rng) {
    for _ in 0..dice.within(1..=8) {
        let bytes = [0, 0, 8 << 10, 32 << 10, 128 << 10][dice.index(5)];
        braid_mem::set_limit(dice.percent(90).then_some(bytes));
        handle.sleep(dice.below(4_000_000)).await;
    }
    handle.sleep(600_000_000_000).await;
    panic!("a request waits for memory that is never released");
}

/// Grows and shrinks the cache, and leaves or enters write-back mode, at random.
async fn whims(bed: Bed, offered: Offered, current: Rc<RefCell<Cache>>, mut dice: Rng) {
    let times = if dice.percent(50) { dice.within(1..=12) * bed.shape.bursts } else { 0 };
    for _ in 0..times {
        bed.handle.sleep(dice.below(bed.shape.calm_ns)).await;
        let cache = current.borrow().clone();
        let block = cache.config().block;
        if dice.percent(20) {
            cache.set_drain(dice.percent(70).then(|| dice.within(1_000..=50_000_000)));
        }
        if bed.shape.switches && dice.percent(15) && cache.close().await.is_ok() && dice.percent(50)
        {
            cache.set_mode(CacheMode::WriteAround);
        }
        let is_through = cache.write_back_status().is_none() && bed.shape.switches;
        if dice.percent(50) && is_through {
            let next = cache.to_write_back(bed.more(true)).expect("memory");
            // A failed log changes nothing.
            if next.restart().await.is_ok() {
                let earlier = offered.exchange(Dev::new(next.clone()));
                bed.handle.spawn("cache", next.run().expect("write-back"));
                while !earlier.are_answered() {
                    bed.handle.sleep(200_000).await;
                }
                next.begin_write_back().await.expect("nobody gave up anything");
                current.replace(next);
            }
        }
        let cache = current.borrow().clone();
        let (is, size) = (u64::from(cache.used_blocks().1) * block, block * dice.within(1..=12));
        let more = match size > is {
            true => Memory::to_grow(is as usize, size as usize, &|| true).expect("memory"),
            false => Memory::default(),
        };
        // Dirty blocks cannot be evicted: the size then stays.
        drop(cache.resize(size, more));
    }
}

/// Marks all completed writes as durable.
fn oracle_flushed(client: &Client) {
    let mut oracle = client.oracle.borrow_mut();
    let flush = oracle.begin_flush();
    oracle.end_flush(flush);
}
