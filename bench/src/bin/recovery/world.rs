//! Arrays of modelled members on an executor of their own, as a volume's process has them.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::{Duration, Instant};

use braid_bench::mirrored::Raid1Plan;
use braid_bench::parity::{DATA_OFFSET, Kind, ParityPlan};
use braid_bench::{Error, Result};
use braid_block::{Completion, Errno, Flags, Io};
use braid_device::{Buses, Modelled};
use braid_engine::redundant::{NewMember, Redundant, Setup, Speed};
use braid_engine::{Dev, Pending};
use braid_mem::Pool;
use braid_model::{BusProfile, Plain};
use braid_seed::Rng;
use braid_uring::{Config, Executor, ExecutorClock, Handle};

/// The bytes of a client's request.
const BLOCK: u64 = 4096;
/// The bytes of a request by the only user of a device: as many as a recovery's.
const WINDOW: u64 = 512 << 10;
const WINDOWS: usize = 4;
/// Chunk of the bitmaps, in bytes: mdadm's default.
const BITMAP_CHUNK: u64 = 64 << 20;
/// Chunk of arrays with parity, in bytes: what mdadm takes.
const CHUNK: u64 = 512 << 10;

/// Runs `work` on an executor of its own.
pub(crate) fn on_executor<T, F>(work: impl FnOnce(World) -> F) -> Result<T>
where
    T: 'static,
    F: Future<Output = Result<T>> + 'static,
{
    let executor = Executor::new(Config::default()).map_err(Error::io("an executor"))?;
    let pool = Pool::new(16 << 20).map_err(Error::io("buffers"))?;
    executor.block_on(work(World { handle: executor.handle(), pool }))
}

/// An executor and its buffers, from which arrays and clients are made.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) handle: Handle,
    pool: Pool,
}

/// An array at work, until this is dropped.
pub(crate) struct Running {
    pub(crate) mirror: Redundant,
    pub(crate) dev: Dev,
    plan: Plan,
    own_work: Rc<RefCell<Option<OwnWork>>>,
}

/// The plan from which an array was started.
enum Plan {
    Raid1(Raid1Plan),
    /// The last role is the one that may be vacant.
    Parity(ParityPlan, usize),
}

type OwnWork = Pin<Box<dyn Future<Output = ()>>>;

impl World {
    /// A modelled device with room for `size` bytes of data behind any array's metadata, on a bus
    /// of its own.
    pub(crate) fn device(&self, profile: Plain, size: u64) -> Result<Dev> {
        let modelled = Modelled::new(
            DATA_OFFSET + size,
            profile.into(),
            BusProfile::default(),
            None,
            &mut Buses::default(),
        );
        let modelled = modelled.map_err(Error::io("memory of a modelled device"))?;
        Ok(Dev::new(modelled.device(&self.handle)))
    }

    /// A RAID 1 with two roles, of which `members` take the first.
    pub(crate) fn raid1(&self, size: u64, members: Vec<Dev>, speed: Speed) -> Result<Running> {
        let plan = Raid1Plan::new(size, 2, Some(BITMAP_CHUNK))?;
        let clock = Rc::new(ExecutorClock::new(&self.handle));
        let setup = Setup { speed, ..plan.setup(members, clock)? };
        self.run(setup, Plan::Raid1(plan))
    }

    /// An array with parity, in sync, of which one member more than `members` has a role: the last.
    pub(crate) fn parity(&self, kind: Kind, size: u64, members: Vec<Dev>) -> Result<Running> {
        let last = members.len();
        let plan = ParityPlan::new(kind, size, last + 1, CHUNK)?;
        let clock = Rc::new(ExecutorClock::new(&self.handle));
        let members = members.into_iter().map(Some).chain([None]).collect();
        let setup = plan.setup(members, clock);
        self.run(setup, Plan::Parity(plan, last))
    }

    fn run(&self, setup: Setup, plan: Plan) -> Result<Running> {
        let mirror = Redundant::new(setup).map_err(Error::io("memory of an array"))?;
        let own_work: OwnWork = Box::pin(mirror.run());
        let own_work = Rc::new(RefCell::new(Some(own_work)));
        let slot = Rc::clone(&own_work);
        self.handle.spawn(poll_fn(move |cx| match &mut *slot.borrow_mut() {
            Some(work) => work.as_mut().poll(cx),
            None => Poll::Ready(()),
        }));
        Ok(Running { dev: Dev::new(mirror.clone()), mirror, plan, own_work })
    }

    /// Bytes a second of a device that has nothing else to do, read or written from `offset` on.
    pub(crate) async fn alone(&self, dev: &Dev, write: bool, offset: u64, len: u64) -> Result<f64> {
        let start = Instant::now();
        let mut under_way: VecDeque<Pending> = VecDeque::new();
        let mut next = offset;
        while next < offset + len || !under_way.is_empty() {
            if next < offset + len && under_way.len() < WINDOWS {
                let buf = self.pool.get_wait(WINDOW as usize).await;
                under_way.push_back(dev.start(match write {
                    true => Io::write(next, buf, Flags::NONE),
                    false => Io::read(next, buf),
                }));
                next += WINDOW;
            } else if let Some(pending) = under_way.pop_front() {
                succeed(pending.await)?;
            }
        }
        Ok(len as f64 / start.elapsed().as_secs_f64())
    }

    /// Latencies, in seconds, of a client that has one request of 4 KiB under way at a time, at
    /// random places, for `runtime`; `writes` of a hundred are writes.
    pub(crate) async fn client(
        self,
        dev: Dev,
        seed: u64,
        writes: u64,
        runtime: Duration,
    ) -> Result<Vec<f64>> {
        let mut rng = Rng::new(seed);
        let mut latencies = Vec::new();
        let start = Instant::now();
        while start.elapsed() < runtime {
            let place = rng.below(dev.limits().size / BLOCK) * BLOCK;
            let write = rng.below(100) < writes;
            let buf = self.pool.get_wait(BLOCK as usize).await;
            let asked = Instant::now();
            succeed(
                dev.start(match write {
                    true => Io::write(place, buf, Flags::NONE),
                    false => Io::read(place, buf),
                })
                .await,
            )?;
            latencies.push(asked.elapsed().as_secs_f64());
        }
        Ok(latencies)
    }

    /// Writes a block in each chunk of the bitmap, so that its bits are set before anything is timed.
    pub(crate) async fn set_bits(&self, dev: &Dev) -> Result<()> {
        for offset in (0..dev.limits().size).step_by(BITMAP_CHUNK as usize) {
            let buf = self.pool.get_wait(BLOCK as usize).await;
            succeed(dev.start(Io::write(offset, buf, Flags::NONE)).await)?;
        }
        Ok(())
    }
}

fn succeed(completion: Completion) -> Result<()> {
    let failed = |errno: Errno| Error::Unexpected(format!("a request failed: {errno}"));
    completion.result.map_err(failed)
}

impl Running {
    /// The member that the last role waits for.
    pub(crate) fn newcomer(&self, dev: Dev) -> NewMember {
        match &self.plan {
            Plan::Raid1(plan) => plan.member(1, dev, None),
            Plan::Parity(plan, last) => plan.member(*last, dev, None),
        }
    }

    /// One more than a raid1 has roles.
    pub(crate) fn third(&self, dev: Dev) -> NewMember {
        let (size, number) = (dev.limits().size, 2);
        let member = self.newcomer(dev);
        let anew = |own: braid_md::Superblock| own.for_newcomer(size, number, own.device_uuid).ok();
        let superblock = member.superblock.and_then(anew);
        NewMember { label: "third".to_owned(), number, superblock, ..member }
    }

    /// Bytes that the pass under way has done.
    pub(crate) fn recovered(&self) -> u64 {
        self.mirror.status().job.map_or(0, |job| job.done)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Its wakers would keep it, and the array with it.
        let own_work = self.own_work.take();
        drop(own_work);
    }
}
