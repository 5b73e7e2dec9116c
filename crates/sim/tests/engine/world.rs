//! The worlds of the engine: the same bodies run on the simulation and on the production executors.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::time::Duration;

use braid_block::{Io, Limits, Op, Span};
use braid_device::{Access, File, Ram};
use braid_engine::{Dev, Device, Extents, Pending};
use braid_mem::Pool;
use braid_sim::{Faults, Rng, Sim, SimDisk, for_each_seed};
use braid_uring::{Config, Executor, Mode};

use crate::stack::{Stack, Volume};

/// Bytes that requests under way may have among them.
const POOL: usize = 8 << 20;

/// The time on a real clock after which a body is assumed to hang.
const PATIENCE: Duration = Duration::from_secs(60);

/// The surroundings that a body of the conformance tests needs.
pub(crate) trait World {
    /// A member of `size` bytes, all zeroes.
    fn member(&self, size: u64, read_only: bool) -> Member;

    /// Sizes are multiples of this, in bytes.
    fn unit(&self) -> u64;

    /// True if overlapping concurrent requests leave whole blocks of either, as on disks. (A file's page cache
    /// tears them anywhere.)
    fn keeps_blocks_whole(&self) -> bool;

    /// Runs `task` to its end.
    fn run(&self, task: Pin<Box<dyn Future<Output = ()>>>);

    /// Memory for requests.
    fn pool(&self) -> Pool;
}

/// A member, what befalls its requests, and what it was asked.
pub(crate) struct Member {
    pub(crate) dev: Dev,
    pub(crate) faults: Faults,
    pub(crate) log: Box<dyn Fn() -> Vec<(Op, Span)>>,
}

/// A body, the world it runs in, and the number of its run.
pub(crate) type Body = fn(&dyn World, u64);

/// A volume of the stack that is the run's turn.
pub(crate) fn volume(world: &dyn World, run: u64) -> Volume {
    Stack::number(run).build(world.unit(), &mut |size| world.member(size, false))
}

/// Runs `future` to its end.
pub(crate) fn run(world: &dyn World, future: impl Future<Output = ()> + 'static) {
    world.run(Box::pin(future));
}

/// Runs `body` on simulated disks for `seeds` seeds.
pub(crate) fn in_simulation(test: &str, seeds: u64, body: Body) {
    for_each_seed(test, seeds, |seed| body(&Simulation::new(seed), seed));
}

/// Runs `body` on RAM disks, once for each stack.
pub(crate) fn in_ram(test: &str, body: Body) {
    for_each_seed(test, runs(), |run| {
        if let Some(world) = Real::new(Mode::Threads, Place::Ram) {
            body(&world, run);
        }
    });
}

/// Runs `body` on files, once for each stack, if this machine has the driver.
pub(crate) fn on_files(test: &str, mode: Mode, body: Body) {
    for_each_seed(test, runs(), |run| {
        let directory = tempfile::tempdir().unwrap();
        if let Some(world) = Real::new(mode, Place::Files(directory)) {
            body(&world, run);
        }
    });
}

fn runs() -> u64 {
    Stack::all().len() as u64
}

/// Simulated disks on the virtual clock.
pub(crate) struct Simulation {
    pub(crate) sim: Sim,
    disks: RefCell<Vec<SimDisk>>,
    pool: Pool,
}

impl Simulation {
    pub(crate) fn new(seed: u64) -> Simulation {
        Simulation::with_pool(seed, Pool::new(POOL).unwrap())
    }

    pub(crate) fn with_pool(seed: u64, pool: Pool) -> Simulation {
        Simulation { sim: Sim::new(seed), disks: RefCell::default(), pool }
    }

    /// The disks made so far, in order.
    pub(crate) fn disks(&self) -> Vec<SimDisk> {
        self.disks.borrow().clone()
    }

    /// A disk that holds `contents`.
    pub(crate) fn member_with(&self, contents: Vec<u8>, read_only: bool) -> Member {
        let limits = Limits { read_only, ..Limits::new(contents.len() as u64, 512) };
        let name = format!("disk{}", self.disks.borrow().len());
        let disk = SimDisk::with_contents(&self.sim.handle(), name, limits, contents);
        self.disks.borrow_mut().push(disk.clone());
        let faults = disk.faults().clone();
        let dev = Dev::new(disk.clone());
        let log = move || disk.trace().iter().map(|one| (one.op, one.span)).collect();
        Member { dev, faults, log: Box::new(log) }
    }
}

impl World for Simulation {
    fn member(&self, size: u64, read_only: bool) -> Member {
        self.member_with(vec![0; size as usize], read_only)
    }

    fn unit(&self) -> u64 {
        512
    }

    fn keeps_blocks_whole(&self) -> bool {
        true
    }

    fn run(&self, task: Pin<Box<dyn Future<Output = ()>>>) {
        self.sim.block_on(task);
    }

    fn pool(&self) -> Pool {
        self.pool.clone()
    }
}

/// A production executor.
struct Real {
    executor: Executor,
    pool: Pool,
    place: Place,
    made: Cell<u32>,
}

enum Place {
    Ram,
    Files(tempfile::TempDir),
}

impl Real {
    fn new(mode: Mode, place: Place) -> Option<Real> {
        match Executor::new(Config { mode, ..Config::default() }) {
            Ok(executor) => {
                Some(Real { executor, pool: Pool::new(POOL).unwrap(), place, made: Cell::new(0) })
            }
            Err(error) => {
                println!("skipped, no {mode:?} driver on this machine: {error}");
                None
            }
        }
    }
}

impl World for Real {
    fn member(&self, size: u64, read_only: bool) -> Member {
        let inner: Rc<dyn Device> = match &self.place {
            Place::Ram => Rc::new(Ram::new(size).unwrap().device()),
            Place::Files(directory) => {
                let number = self.made.replace(self.made.get() + 1);
                let path = directory.path().join(number.to_string());
                std::fs::File::create(&path).unwrap().set_len(size).unwrap();
                let access = if read_only { Access::ReadOnly } else { Access::Exclusive };
                let file = File::open(&path, access, 0, None).unwrap();
                Rc::new(file.device(&self.executor.handle(), &self.pool).unwrap())
            }
        };
        Tap::member(inner, read_only)
    }

    fn unit(&self) -> u64 {
        match self.place {
            Place::Ram => 512,
            Place::Files(_) => 4096,
        }
    }

    fn keeps_blocks_whole(&self) -> bool {
        matches!(self.place, Place::Ram)
    }

    fn run(&self, mut task: Pin<Box<dyn Future<Output = ()>>>) {
        let handle = self.executor.handle();
        self.executor.block_on(async move {
            let mut limit = pin!(handle.sleep(PATIENCE));
            poll_fn(|cx| {
                assert!(limit.as_mut().poll(cx).is_pending(), "stuck for {PATIENCE:?}");
                task.as_mut().poll(cx)
            })
            .await;
        });
    }

    fn pool(&self) -> Pool {
        self.pool.clone()
    }
}

/// A device in front of a real one, that writes down what it is asked and lays faults over it.
/// What has no fault passes as it is, in whatever way the device answers.
struct Tap {
    inner: Rc<dyn Device>,
    limits: Limits,
    faults: Faults,
    log: Rc<RefCell<Vec<(Op, Span)>>>,
}

impl Tap {
    fn member(inner: Rc<dyn Device>, read_only: bool) -> Member {
        let limits = Limits { read_only, ..inner.limits() };
        let (faults, log) = (Faults::default(), Rc::<RefCell<Vec<(Op, Span)>>>::default());
        let tap = Tap { inner, limits, faults: faults.clone(), log: Rc::clone(&log) };
        Member { dev: Dev::new(tap), faults, log: Box::new(move || log.borrow().clone()) }
    }
}

impl Device for Tap {
    fn limits(&self) -> Limits {
        self.limits
    }

    fn start(&self, io: Io) -> Pending {
        let index = self.log.borrow().len() as u64;
        self.log.borrow_mut().push((io.op, io.span));
        match self.faults.error_for(index, &io) {
            None => self.inner.start(io),
            Some(errno) => {
                let pending = self.inner.start(io);
                Pending::task(async move {
                    let mut completion = pending.await;
                    completion.result = Err(errno);
                    completion
                })
            }
        }
    }

    fn extents(&self, span: Span) -> Extents {
        self.inner.extents(span)
    }
}

/// A generator for a body's own choices.
pub(crate) fn rng(run: u64) -> Rng {
    Rng::new(run ^ 0x6272_6169_6400)
}
