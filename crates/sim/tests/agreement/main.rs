//! One model, three users: braid's own arrays over modelled members, on the simulator's clock and in wall
//! time, take as long as the estimate says that knows no contents.
//!
//! In wall time requests are kept so many under way that devices are not idle for a client's sake: then a
//! busy machine does not change what the clock says.

mod caches;
mod table;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::time::{Duration, Instant};

use braid_block::{Flags, HasLimits, Io, Limits};
use braid_cache::{Behind, Cache, Config as CacheConfig, WriteBackConfig};
use braid_device::{Buses, Modelled};
use braid_engine::assembled::Level as Geometry;
use braid_engine::redundant::Setup;
use braid_engine::{Clock, Dev, InFlight};
use braid_level::{CacheMode, CachePolicy, Level, ParityLayout, Raid0Layout, Raid10Layout, Shape};
use braid_md::Resync;
use braid_mem::Pool;
use braid_model::{Bus, Kind, Timetable, profile};
use braid_predict::{Array as Estimated, Next, Offer, Tree};
use braid_sim::found::SimClock;
use braid_sim::{Handle, Outcome, Rng, Sim, SimDisk, Timing};
use braid_uring::{Config, Executor, ExecutorClock, Mode};
use braid_wiring::{Decoration, Described, Ground, wire};

use caches::InMemory;

const CHUNK: u64 = 64 << 10;
const MEMBER: u64 = 16 << 20;

/// A stick; all of them at one bus.
fn stick() -> Tree {
    let profile = profile("rally2").unwrap();
    let (of_bus, bus) = (profile.usual_bus(), Some("usb2:0".to_owned()));
    Tree::Device(Box::new(Offer { name: "rally2".into(), profile, size: MEMBER, bus, of_bus }))
}

/// A disk that chooses among what waits, with a cache of writes that is soon full.
fn disk() -> Tree {
    let mut profile = profile("sata-7200").unwrap();
    let Kind::Disk(disk) = &mut profile.kind else { panic!("{:?} is no disk", profile.kind) };
    disk.write_cache = 2 << 20;
    let (of_bus, bus) = (profile.usual_bus(), Some("sata:0".to_owned()));
    Tree::Device(Box::new(Offer { name: "disk".into(), profile, size: MEMBER, bus, of_bus }))
}

fn disks(level: Level, count: usize) -> Tree {
    join(level, (0..count).map(|_| Some(disk())).collect())
}

/// Members of a level; `.` stands for a stick, `-` for one that is missing.
fn sticks(level: Level, members: &str) -> Tree {
    join(level, members.chars().map(|one| (one == '.').then(stick)).collect())
}

fn join(level: Level, members: Vec<Option<Tree>>) -> Tree {
    let layout = match level {
        Level::Raid0 => Raid0Layout::default().number(),
        Level::Raid10 => Raid10Layout::NEAR_2.number(),
        Level::Raid4 | Level::Raid5 | Level::Raid6 => ParityLayout::default().number(),
        Level::Linear | Level::Raid1 => 0,
    };
    Tree::Joined(Shape { level, layout, chunk: CHUNK }, members)
}

fn two(level: Level, one: &Tree) -> Tree {
    join(level, vec![Some(one.clone()), Some(one.clone())])
}

fn cached(mode: CacheMode, policy: CachePolicy, origin: Tree) -> Tree {
    let config = CacheConfig { size: 3 << 20, block: 4096, mode, policy, sequential_cutoff: None };
    Tree::Cached(config, None, Box::new(origin))
}

/// Experiments, by name.
fn subjects() -> Vec<(&'static str, Tree)> {
    use CacheMode::{WriteAround, WriteThrough};
    vec![
        ("raid0", sticks(Level::Raid0, "....")),
        ("raid1", sticks(Level::Raid1, "....")),
        ("raid10", sticks(Level::Raid10, "....")),
        ("raid5", sticks(Level::Raid5, "....")),
        ("raid4", sticks(Level::Raid4, "....")),
        ("raid6", sticks(Level::Raid6, ".....")),
        ("raid1 without a member", sticks(Level::Raid1, "-..")),
        ("raid10 without a member", sticks(Level::Raid10, "..-.")),
        ("raid4 without its parity", sticks(Level::Raid4, "...-")),
        ("raid5 without a member", sticks(Level::Raid5, ".-..")),
        ("raid6 without a member", sticks(Level::Raid6, ".-...")),
        ("raid6 without two", sticks(Level::Raid6, "-..-.")),
        ("raid0 of mirrors", two(Level::Raid0, &sticks(Level::Raid1, ".."))),
        ("raid0 of mirrors that lack a member", two(Level::Raid0, &sticks(Level::Raid1, ".-"))),
        ("mirror of raid0s", two(Level::Raid1, &sticks(Level::Raid0, ".."))),
        ("linear of raid0s", two(Level::Linear, &sticks(Level::Raid0, ".."))),
        ("raid0 of raid5s", two(Level::Raid0, &sticks(Level::Raid5, "..."))),
        ("raid0 of disks", disks(Level::Raid0, 3)),
        ("raid1 of disks", disks(Level::Raid1, 2)),
        ("raid10 of disks", disks(Level::Raid10, 4)),
        ("raid5 of disks", disks(Level::Raid5, 3)),
        ("cache, s3-fifo", cached(WriteThrough, CachePolicy::S3Fifo, sticks(Level::Raid0, ".."))),
        ("cache, lru", cached(WriteAround, CachePolicy::Lru, sticks(Level::Raid1, ".."))),
    ]
}

fn subject(name: &str) -> Tree {
    let found = subjects().into_iter().find(|one| one.0 == name);
    found.unwrap_or_else(|| panic!("{name} is tried")).1
}

/// Writes or reads at these places, so many at once.
struct Load {
    name: &'static str,
    requests: Vec<(bool, u64, u64)>,
    depth: usize,
    /// It ends with a flush.
    flush: bool,
}

fn loads(size: u64) -> Vec<Load> {
    let mut rng = Rng::new(5);
    let mut random = |count: u64, bytes: u64, reads: u64| -> Vec<(bool, u64, u64)> {
        (0..count).map(|_| (!rng.percent(reads), rng.below(size / bytes) * bytes, bytes)).collect()
    };
    // More, or less, than the caches here have room for.
    let few = |count: u64, bytes: u64, reads: u64, range: u64| {
        let mut rng = Rng::new(6);
        let mut one = || (!rng.percent(reads), rng.below(range / bytes) * bytes, bytes);
        (0..count).map(|_| one()).collect::<Vec<_>>()
    };
    let long =
        |write: bool, bytes: u64| (0..size / bytes).map(|at| (write, at * bytes, bytes)).collect();
    vec![
        Load {
            name: "random reads of 4 KiB",
            requests: random(1000, 4096, 100),
            depth: 16,
            flush: false,
        },
        Load {
            name: "random reads of 64 KiB",
            requests: random(500, 65536, 100),
            depth: 16,
            flush: false,
        },
        Load { name: "a long read", requests: long(false, 64 << 10), depth: 16, flush: false },
        // A multiple of every stripe here, 3 and 4 chunks.
        Load { name: "a long write", requests: long(true, 768 << 10), depth: 2, flush: false },
        Load {
            name: "reads and writes of 16 KiB",
            requests: random(600, 16384, 70),
            depth: 8,
            flush: false,
        },
        Load {
            name: "reads of few places",
            requests: few(3000, 4096, 100, 4 << 20),
            depth: 16,
            flush: false,
        },
        Load {
            name: "reads and writes of few places",
            requests: few(1500, 4096, 95, 1 << 20),
            depth: 8,
            flush: false,
        },
    ]
}

fn estimate(tree: &Tree, load: &Load) -> f64 {
    let mut machine = Estimated::over(tree).unwrap().machine;
    let (mut requests, mut under_way) = (load.requests.iter(), 0);
    let mut happened = Vec::new();
    let mut owner = 0;
    loop {
        while under_way < load.depth
            && let Some((write, offset, bytes)) = requests.next()
        {
            (owner, under_way) = (owner + 1, under_way + 1);
            machine.submit(owner, *write, *offset, *bytes);
            machine.unplug();
        }
        if !machine.next(&mut happened) {
            return machine.now_ns() as f64 / 1e9;
        }
        under_way -=
            happened.iter().filter(|next| matches!(next, Next::Moved { left: 0, .. })).count();
    }
}

/// A device of a tree.
struct Leaf(Offer);

impl HasLimits for Leaf {
    fn limits(&self) -> Limits {
        Limits::new(self.0.size, 512)
    }
}

type Part = braid_wiring::Part<Leaf, Infallible, Option<Behind>>;

/// A tree as the part of a stack.
fn part_of(tree: &Tree) -> Part {
    match tree {
        Tree::Device(offer) => Part::Leaf(Leaf(Offer::clone(offer))),
        Tree::Cached(config, behind, origin) => Part::Decorated {
            by: Decoration::Cache { config: *config, of: *behind },
            origin: Box::new(part_of(origin)),
            store: None,
        },
        Tree::Joined(shape, members) => {
            let member = |one: &Option<Tree>| one.as_ref().map_or(Part::Missing, part_of);
            let members: Vec<Part> = members.iter().map(member).collect();
            let limits: Vec<Option<Limits>> = members.iter().map(Part::limits).collect();
            Part::Joined { level: Geometry::over(*shape, &limits).unwrap(), members }
        }
    }
}

/// Source of the devices of a tree.
struct Bed<'a> {
    device: RefCell<&'a mut dyn FnMut(&Offer) -> Dev>,
    clock: Rc<dyn Clock>,
    /// True where the memory of caches takes the time that its profile says: where copies take none.
    is_memory_timed: bool,
}

type Task = Pin<Box<dyn Future<Output = ()>>>;

impl Bed<'_> {
    /// braid's own device of a tree, and what has to be polled beside it.
    fn make(&self, tree: &Tree) -> (Dev, Vec<Task>) {
        let part = part_of(tree);
        let wired = wire(&part, self).unwrap();
        let caches = wired.caches.iter().filter_map(|one| Some(Box::pin(one.cache.run()?) as Task));
        let arrays = wired.arrays.iter().map(|one| Box::pin(one.array.run()) as Task);
        (wired.dev, caches.chain(arrays).collect())
    }
}

impl Ground for Bed<'_> {
    type Leaf = Leaf;
    type Md = Infallible;
    type Cache = Option<Behind>;

    fn leaf(&self, leaf: &Leaf) -> io::Result<Dev> {
        Ok((self.device.borrow_mut())(&leaf.0))
    }

    fn label(&self, _leaf: &Leaf, role: usize) -> String {
        role.to_string()
    }

    fn described<'a>(&self, array: &'a Infallible) -> io::Result<Described<'a>> {
        match *array {}
    }

    fn nonce(&self) -> io::Result<u64> {
        unreachable!("nothing here has a log")
    }

    fn write_back(
        &self,
        of: &Option<Behind>,
        _origin: &Dev,
        log: Option<Dev>,
    ) -> io::Result<Option<WriteBackConfig>> {
        assert!(log.is_none(), "nothing here has a log");
        let clock = || Rc::clone(&self.clock);
        let more = |Behind { dirty, age }| WriteBackConfig {
            dirty,
            age,
            drain: None,
            clock: clock(),
            log: None,
        };
        Ok(of.map(more))
    }

    fn clock(&self) -> Rc<dyn Clock> {
        Rc::clone(&self.clock)
    }

    fn cache(&self, cache: Cache) -> Dev {
        match self.is_memory_timed {
            true => Dev::new(InMemory::new(cache, self.clock())),
            false => Dev::new(cache),
        }
    }

    fn adjust(&self, setup: &mut Setup) {
        setup.resync = Resync::Clean;
    }
}

async fn carry_out(dev: &Dev, load: &Load, pool: &Pool) {
    let (mut requests, mut under_way) = (load.requests.iter(), InFlight::new(load.depth));
    loop {
        while !under_way.is_full()
            && let Some((write, offset, bytes)) = requests.next()
        {
            let buf = pool.get_wait(*bytes as usize).await;
            let io =
                if *write { Io::write(*offset, buf, Flags::NONE) } else { Io::read(*offset, buf) };
            under_way.push((), dev.start(io));
        }
        if under_way.is_empty() {
            break;
        }
        let ((), done) = poll_fn(|cx| under_way.poll_next(cx)).await;
        done.result.unwrap();
    }
    if load.flush {
        dev.start(Io::flush()).await.result.unwrap();
    }
}

/// Seconds on the simulator's clock.
fn simulated(tree: &Tree, load: Load) -> f64 {
    let now_ns = on_simulator(tree, |dev, handle| async move {
        carry_out(&dev, &load, &Pool::new(64 << 20).unwrap()).await;
        handle.now()
    });
    now_ns as f64 / 1e9
}

fn clock_of(handle: &Handle) -> Rc<dyn Clock> {
    Rc::new(SimClock { handle: handle.clone(), unix_start: Duration::ZERO })
}

/// What becomes of `run` with a tree's device on the simulator's clock.
fn on_simulator<T: 'static, F: Future<Output = T> + 'static>(
    tree: &Tree,
    run: impl FnOnce(Dev, Handle) -> F,
) -> T {
    let sim = Sim::new(1);
    // A processor that lets a task wait is no part of what is estimated.
    sim.be_punctual();
    let handle = sim.handle();
    let mut buses: BTreeMap<String, Rc<RefCell<Bus>>> = BTreeMap::new();
    let mut number = 0;
    let mut device = |offer: &Offer| {
        number += 1;
        let disk = SimDisk::new(&handle, format!("disk{number}"), Limits::new(offer.size, 512));
        let bus = buses.entry(offer.bus.clone().expect("a bus"));
        let bus = Rc::clone(bus.or_insert_with(|| Rc::new(RefCell::new(Bus::new(offer.of_bus)))));
        let timetable = Timetable::new(&offer.profile.kind, offer.size).unwrap();
        disk.set_timing(Timing::new(timetable, bus));
        Dev::new(disk)
    };
    let clock = clock_of(&handle);
    let bed = Bed { device: RefCell::new(&mut device), clock, is_memory_timed: true };
    let (dev, tasks) = bed.make(tree);
    let run = run(dev, handle.clone());
    let outcome = sim.run_until(async move {
        tasks.into_iter().for_each(|task| handle.spawn("task", task));
        run.await
    });
    match outcome {
        Outcome::Done(answer) => answer,
        Outcome::Halted => panic!("it was halted"),
        Outcome::Stuck(stuck) => panic!("{stuck}"),
    }
}

/// Seconds on the wall.
fn in_wall_time(tree: &Tree, load: Load) -> f64 {
    on_the_wall(tree, |dev, _| async move {
        // The kernel may take a tenth of a second to clear the pool's pages.
        let pool = Pool::new(64 << 20).unwrap();
        let begun = Instant::now();
        carry_out(&dev, &load, &pool).await;
        begun.elapsed().as_secs_f64()
    })
}

/// Runs `run` with a tree's device in wall time.
fn on_the_wall<T: 'static, F: Future<Output = T> + 'static>(
    tree: &Tree,
    run: impl FnOnce(Dev, Rc<dyn Clock>) -> F,
) -> T {
    let executor = Executor::new(Config { mode: Mode::Threads, ..Config::default() }).unwrap();
    let handle = executor.handle();
    let mut buses = Buses::default();
    let mut device = |offer: &Offer| {
        let timetable = Timetable::new(&offer.profile.kind, offer.size).unwrap();
        let (size, bus) = (offer.size, offer.bus.as_deref());
        let modelled = Modelled::new(size, timetable, offer.of_bus, bus, &mut buses).unwrap();
        Dev::new(modelled.device(&handle))
    };
    let clock: Rc<dyn Clock> = Rc::new(ExecutorClock::new(&handle));
    let bed =
        Bed { device: RefCell::new(&mut device), clock: Rc::clone(&clock), is_memory_timed: false };
    let (dev, tasks) = bed.make(tree);
    let run = run(dev, clock);
    executor.block_on(async move {
        tasks.into_iter().for_each(|task| handle.spawn(task));
        run.await
    })
}

fn loads_of(tree: &Tree) -> Vec<Load> {
    loads(Estimated::over(tree).unwrap().size)
}

#[test]
fn the_estimate_is_what_the_simulated_stack_takes() {
    let mut off = Vec::new();
    for (subject, tree) in subjects() {
        for load in loads_of(&tree) {
            let (name, estimated) = (load.name, estimate(&tree, &load));
            let simulated = simulated(&tree, load);
            let ratio = estimated / simulated;
            // In the engine who reconstructs the same rows waits, and devices take a full bus in the order in
            // which they are asked, not in that in which they are free.
            let is_crowded = subject.starts_with("raid6") && name.starts_with("a long");
            if (ratio - 1.0).abs() > if is_crowded { 0.10 } else { 0.05 } {
                off.push(format!(
                    "{subject}, {name}: {estimated:.3} s for {simulated:.3} s, {ratio:.3}"
                ));
            }
        }
    }
    assert!(off.is_empty(), "\n{}", off.join("\n"));
}

/// Some of these in wall time, a second or two each, with so many requests under way that a device has a
/// tenth of a second's worth to do. Who is woken late only ever takes longer: the best of up to five tries is
/// what the model says.
#[test]
fn the_estimate_is_what_the_wall_s_clock_says() {
    for (name, index) in [
        ("raid0", 2),
        ("raid1", 1),
        ("raid5", 3),
        ("raid0 of mirrors", 1),
        ("raid5 without a member", 0),
        ("raid1 of disks", 1),
        ("cache, s3-fifo", 5),
    ] {
        let tree = subject(name);
        // Which disk reads depends on what others do by then, so that a late waking shifts the time either way:
        // the less, the more requests there are.
        let times = if name.contains("disks") { 3 } else { 1 };
        let load = || {
            let load = loads_of(&tree).swap_remove(index);
            Load { depth: 64, requests: load.requests.repeat(times), ..load }
        };
        let (what, estimated) = (load().name, estimate(&tree, &load()));
        let mut best = f64::INFINITY;
        for _ in 0..5 {
            let took = in_wall_time(&tree, load());
            println!("{name}, {what}: {estimated:.3} s, took {took:.3} s");
            assert!(took > 0.95 * estimated, "{name}, {what}: {estimated:.3} s, took {took:.3} s");
            best = best.min(took);
            if best < 1.05 * estimated {
                break;
            }
        }
        assert!(best < 1.05 * estimated, "{name}, {what}: {estimated:.3} s, took {best:.3} s");
    }
}

/// Writes that the disks' caches take at once, and a flush, which waits for the medium: on every level as long as on
/// a disk alone. A busy machine may have the requests arrive in another order, with shorter ways between them: of five runs
/// one has to take as long.
#[test]
fn a_flush_takes_as_long_on_every_level_as_on_one_disk() {
    let mut rng = Rng::new(7);
    let requests: Vec<_> =
        (0..24).map(|_| (true, rng.below(MEMBER >> 16) << 16, 1 << 16)).collect();
    let load = || Load { name: "", requests: requests.clone(), depth: 8, flush: true };
    let one = simulated(&disks(Level::Linear, 1), load());
    assert!(one > 0.1, "{one} s: the caches take it, and the flush does not wait");
    for (level, count) in
        [(Level::Linear, 1), (Level::Raid1, 2), (Level::Raid10, 2), (Level::Raid5, 3)]
    {
        let tree = disks(level, count);
        let said = simulated(&tree, load());
        assert!(said > 0.8 * one, "{level:?}: {said:.3} s for {one:.3} s alone");
        let mut runs = (0..5).map(|_| in_wall_time(&tree, load()));
        assert!(runs.any(|took| took > 0.95 * said), "{level:?}: never as long as {said:.3} s");
    }
}
