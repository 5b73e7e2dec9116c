//! After a crash at any moment, what was flushed is there.
//!
//! A client loads a volume over simulated disks. After every event of the run, before any task
//! learns of it, each disk says what a crash now might leave; those images are opened again as a
//! volume, read through the engine, and held to the oracle.
//!
//! ```text
//! run     ──e──e──e──e──e──e──▶          e: a request took effect, or completed
//!           ╲  ╲  ╲
//! reopened   ✓  ✓  ✓  …                  images of all members at that moment
//! ```

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use braid_block::{Flags, Io, Limits, Op, Span};
use braid_engine::{Dev, Device, Pending, join_all};
use braid_mem::Pool;
use braid_sim::{Client, Load, Mismatch, Oracle, Rng, SimDisk, for_each_seed};

use crate::stack::Stack;
use crate::world::{Member, Simulation, World, rng, volume};

const LOAD: Load = Load { requests: 40, depth: 6, longest: 24, overlapping: true };

/// The first crash with content that is not allowed.
type Finding = Rc<RefCell<Option<Mismatch>>>;

#[test]
fn what_was_flushed_survives_a_crash_at_every_event() {
    let crashes = Rc::new(Cell::new(0));
    let name = "crash::what_was_flushed_survives_a_crash_at_every_event";
    for_each_seed(name, 48, |seed| {
        let finding = crash_everywhere(seed, &crashes, |dev| dev);
        if let Some(mismatch) = finding.take() {
            panic!("after a crash {mismatch}");
        }
    });
    assert!(crashes.get() > 100, "{} crashes are too few to mean anything", crashes.get());
}

/// Loads the stack of `seed`'s turn, seen through `wrap`, and crashes after every event.
fn crash_everywhere(seed: u64, crashes: &Rc<Cell<u64>>, wrap: fn(Dev) -> Dev) -> Finding {
    let world = Simulation::new(seed);
    let volume = volume(&world, seed);
    let mut client = Client::new(wrap(volume.dev), world.pool(), rng(seed));
    let finding = Finding::default();

    let (disks, oracle) = (world.disks(), Rc::clone(&client.oracle));
    let (seen, crashes, mut dice) = (Rc::clone(&finding), Rc::clone(crashes), rng(!seed));
    let pool = Pool::new(1 << 20).unwrap();
    world.sim.observe(move || {
        if seen.borrow().is_none() {
            crashes.set(crashes.get() + 1);
            let result = crash(&disks, &pool, seed, &oracle.borrow(), &mut dice);
            *seen.borrow_mut() = result.err();
        }
    });
    world.sim.block_on(async move {
        client.run(LOAD).await;
    });
    finding
}

/// Opens what a crash now leaves of `disks` as a volume again and reads it.
fn crash(
    disks: &[SimDisk],
    pool: &Pool,
    seed: u64,
    oracle: &Oracle,
    dice: &mut Rng,
) -> Result<(), Mismatch> {
    let world = Simulation::with_pool(seed, pool.clone());
    let mut images = disks.iter().map(|disk| disk.crash_image(dice).to_vec());
    let mut next = |size: u64| -> Member {
        let image = images.next().expect("as many disks as before");
        assert_eq!(image.len() as u64, size);
        world.member_with(image, false)
    };
    let volume = Stack::number(seed).build(world.unit(), &mut next);
    let buf = pool.get(volume.size() as usize).unwrap();
    let done = world.sim.block_on(volume.dev.start(Io::read(0, buf)));
    assert_eq!(done.result, Ok(()));
    let contents = done.payload.into_one().expect("one buffer comes back as one");
    oracle.check_crash(&contents)
}

/// The plain story: write everything, flush, write everything again. At every moment after the
/// flush each block holds the first bytes or the second, never what was there before.
#[test]
fn what_was_flushed_is_there_or_what_was_written_later() {
    let name = "crash::what_was_flushed_is_there_or_what_was_written_later";
    for_each_seed(name, 24, |seed| {
        let world = Simulation::new(seed);
        let (volume, pool) = (volume(&world, seed), world.pool());
        let size = volume.size();
        let flushed: Rc<RefCell<Option<Oracle>>> = Rc::default();

        let (disks, oracle, mut dice) = (world.disks(), Rc::clone(&flushed), rng(seed));
        let spare = pool.clone();
        world.sim.observe(move || {
            if let Some(oracle) = &*oracle.borrow() {
                crash(&disks, &spare, seed, oracle, &mut dice).unwrap();
            }
        });
        world.sim.block_on(async move {
            write_everywhere(&volume.dev, &pool, 1).await;
            volume.dev.start(Io::flush()).await.result.unwrap();
            let mut oracle = Oracle::new(&vec![1; size as usize], 512);
            oracle.begin_write(Span::new(0, size), Some(&vec![2; size as usize]));
            flushed.replace(Some(oracle));
            write_everywhere(&volume.dev, &pool, 2).await;
        });
    });
}

async fn write_everywhere(dev: &Dev, pool: &Pool, byte: u8) {
    let size = dev.limits().size;
    let write = |offset: u64| {
        let mut buf = pool.get(5120.min(size - offset) as usize).unwrap();
        buf.fill(byte);
        dev.start(Io::write(offset, buf, Flags::NONE))
    };
    let all = join_all((0..size).step_by(5120).map(write).collect()).await;
    all.iter().for_each(|done| done.result.unwrap());
}

/// A device that acknowledges what it did not do.
struct Liar {
    inner: Dev,
    lie: Lie,
}

#[derive(Clone, Copy, PartialEq)]
enum Lie {
    Flush,
    Fua,
}

impl Device for Liar {
    fn limits(&self) -> Limits {
        *self.inner.limits()
    }

    fn start(&self, io: Io) -> Pending {
        match self.lie {
            Lie::Flush if io.op == Op::Flush => Pending::ready(io.complete(Ok(()))),
            Lie::Fua => self.inner.start(Io { flags: Flags::NONE, ..io }),
            Lie::Flush => self.inner.start(io),
        }
    }
}

/// The tests above can fail: a flush, or a FUA, that is lost on its way is found.
#[test]
fn a_device_that_lies_is_found_out() {
    let lies: [fn(Dev) -> Dev; 2] = [
        |inner| Dev::new(Liar { inner, lie: Lie::Flush }),
        |inner| Dev::new(Liar { inner, lie: Lie::Fua }),
    ];
    for lie in lies {
        let found = |seed| crash_everywhere(seed, &Rc::default(), lie).take().is_some();
        assert!((0..8).any(found), "nobody noticed");
    }
}
