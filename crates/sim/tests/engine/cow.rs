//! A device whose changes go to a store: after a crash at any moment, what was flushed is there, and the origin is
//! as it was.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use braid_block::{Completion, Errno, Flags, Io, Limits, Op, Span};
use braid_engine::decorators::{BLOCK, Cow, Holes, Layout};
use braid_engine::{Dev, Device, Pending};
use braid_mem::Pool;
use braid_sim::{Client, Load, Mismatch, Oracle, Rng, Sim, SimDisk, for_each_seed};

use crate::world::rng;

const LOAD: Load = Load { requests: 40, depth: 6, longest: 24, overlapping: true };

/// An origin that is not whole blocks of the store.
const ORIGIN: u64 = 25 * BLOCK + 3 * 512;

fn content(seed: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    (0..ORIGIN).map(|_| rng.next_u64() as u8).collect()
}

/// The bytes of a store without changes.
fn new_store() -> Vec<u8> {
    let layout = Layout::new(ORIGIN);
    let mut bytes = layout.header().to_vec();
    bytes.resize(layout.size() as usize, 0);
    bytes
}

fn disk(sim: &Sim, name: &str, contents: Vec<u8>, read_only: bool) -> SimDisk {
    let limits = Limits { read_only, ..Limits::new(contents.len() as u64, 512) };
    SimDisk::with_contents(&sim.handle(), name, limits, contents)
}

/// A device that calls a flush done without one.
struct Unflushed(Dev);

impl Device for Unflushed {
    fn limits(&self) -> Limits {
        *self.0.limits()
    }

    fn start(&self, io: Io) -> Pending {
        if io.op == Op::Flush { Pending::ready(io.complete(Ok(()))) } else { self.0.start(io) }
    }
}

/// Loads a device, and crashes after every event. Returns the first crash with content that is not allowed.
fn crash_everywhere(seed: u64, crashes: &Rc<Cell<u64>>, wrap: fn(Dev) -> Dev) -> Option<Mismatch> {
    let sim = Sim::new(seed);
    let origin = disk(&sim, "origin", content(seed), true);
    let store = disk(&sim, "store", new_store(), false);
    let cow = Cow::new(Dev::new(origin.clone()), wrap(Dev::new(store.clone()))).unwrap();
    sim.handle().spawn("cow", cow.run());
    let oracle = Rc::new(RefCell::new(Oracle::new(&content(seed), 512)));
    let pool = Pool::new(1 << 20).unwrap();
    let (dev, rng_of_client) = (Dev::new(cow), rng(seed));
    let mut client = Client { dev, pool, rng: rng_of_client, oracle: Rc::clone(&oracle) };
    let finding: Rc<RefCell<Option<Mismatch>>> = Rc::default();
    let (seen, crashes, mut dice) = (Rc::clone(&finding), Rc::clone(crashes), rng(!seed));
    sim.observe(move || {
        if seen.borrow().is_none() {
            crashes.set(crashes.get() + 1);
            let left = store.crash_image(&mut dice).to_vec();
            *seen.borrow_mut() = oracle.borrow().check_crash(&reopened(seed, left)).err();
        }
    });
    sim.block_on(async move { client.run(LOAD).await });
    assert!(origin.trace().iter().all(|record| record.op == Op::Read), "the origin is only read");
    finding.take()
}

/// The content of a device over a store that a crash left.
fn reopened(seed: u64, store: Vec<u8>) -> Vec<u8> {
    let sim = Sim::new(seed);
    let header = store.first_chunk().unwrap();
    assert_eq!(Layout::new(ORIGIN).check(header, store.len() as u64), Ok(()));
    let origin = disk(&sim, "origin", content(seed), true);
    let store = disk(&sim, "store", store, true);
    let dev = Dev::new(Cow::new(Dev::new(origin), Dev::new(store)).unwrap());
    assert!(dev.limits().read_only);
    let buf = Pool::new(1 << 20).unwrap().get(ORIGIN as usize).unwrap();
    let done = sim.block_on(async move { dev.start(Io::read(0, buf)).await });
    assert_eq!(done.result, Ok(()));
    done.payload.to_vec()
}

#[test]
fn what_was_flushed_is_in_the_store_after_a_crash_at_every_event() {
    let crashes = Rc::new(Cell::new(0));
    let name = "cow::what_was_flushed_is_in_the_store_after_a_crash_at_every_event";
    for_each_seed(name, 24, |seed| {
        if let Some(mismatch) = crash_everywhere(seed, &crashes, |dev| dev) {
            panic!("after a crash {mismatch}");
        }
    });
    assert!(crashes.get() > 100, "{} crashes are too few to mean anything", crashes.get());
}

#[test]
fn a_store_that_is_not_flushed_is_found() {
    let crashes = Rc::new(Cell::new(0));
    let lying = |dev| Dev::new(Unflushed(dev));
    assert!((0..24).any(|seed| crash_everywhere(seed, &crashes, lying).is_some()));
}

/// Runs `body` on a device over an origin that has the content of seed 0 and `holes`.
fn with_holes<F: Future<Output = ()> + 'static>(
    holes: &[Span],
    body: impl FnOnce(Dev, Pool, SimDisk) -> F,
) {
    let sim = Sim::new(0);
    let origin = Dev::new(disk(&sim, "origin", content(0), true));
    let origin = Dev::new(Holes::new(origin, holes.into()));
    let store = disk(&sim, "store", new_store(), false);
    let cow = Cow::new(origin, Dev::new(store.clone())).unwrap();
    sim.handle().spawn("cow", cow.run());
    sim.block_on(body(Dev::new(cow), Pool::new(1 << 20).unwrap(), store));
}

async fn read(dev: &Dev, pool: &Pool, offset: u64, len: usize) -> Result<Vec<u8>, Errno> {
    let done = dev.start(Io::read(offset, pool.get(len).unwrap())).await;
    done.result.map(|()| done.payload.to_vec())
}

fn write(pool: &Pool, offset: u64, len: usize, flags: Flags) -> Io {
    let mut buf = pool.get(len).unwrap();
    buf.fill(0xaa);
    Io::write(offset, buf, flags)
}

#[test]
fn a_hole_that_is_written_is_one_no_more() {
    // Sector 3 of block 2.
    let hole = Span::new(2 * BLOCK + 3 * 512, 512);
    with_holes(&[hole], move |dev, pool, store| async move {
        let expected = content(0);
        let block = (2 * BLOCK) as usize;
        assert_eq!(read(&dev, &pool, 2 * BLOCK, 512).await.unwrap(), expected[block..block + 512]);
        assert_eq!(read(&dev, &pool, 2 * BLOCK, 4096).await, Err(Errno::IO));
        // The rest of the block cannot be copied: the write fails, and changes nothing.
        let refused = dev.start(write(&pool, 2 * BLOCK, 512, Flags::NONE)).await;
        assert_eq!(refused.result, Err(Errno::IO));
        assert_eq!(read(&dev, &pool, 2 * BLOCK, 512).await.unwrap(), expected[block..block + 512]);
        // That of the hole itself can be.
        let written = dev.start(write(&pool, hole.offset, 512, Flags::FUA)).await;
        assert_eq!(written.result, Ok(()));
        let mut changed = expected[block..block + 4096].to_vec();
        changed[3 * 512..4 * 512].fill(0xaa);
        assert_eq!(read(&dev, &pool, 2 * BLOCK, 4096).await.unwrap(), changed);
        // It was durable when it was answered.
        let left = reopened(0, store.durable().to_vec());
        assert_eq!(left[block..block + 4096], changed);
    });
}

#[test]
fn a_change_whose_caller_is_gone_is_carried_out() {
    with_holes(&[], |dev, pool, _| async move {
        let expected = content(0);
        // The rest of two blocks is being copied when the caller goes.
        drop(dev.start(write(&pool, 512, BLOCK as usize, Flags::NONE)));
        let Completion { result, .. } =
            dev.start(write(&pool, 2 * BLOCK - 512, 512, Flags::NONE)).await;
        assert_eq!(result, Ok(()));
        let mut changed = expected[..2 * BLOCK as usize].to_vec();
        changed[512..][..BLOCK as usize].fill(0xaa);
        changed[2 * BLOCK as usize - 512..].fill(0xaa);
        assert_eq!(read(&dev, &pool, 0, 2 * BLOCK as usize).await.unwrap(), changed);
    });
}

#[test]
fn only_changes_take_room() {
    with_holes(&[], |dev, pool, store| async move {
        let zeroes = Io::write_zeroes(Span::new(BLOCK, 2 * BLOCK), Flags::NONE);
        assert_eq!(dev.start(zeroes).await.result, Ok(()));
        let discard = Io::discard(Span::new(4 * BLOCK, BLOCK), Flags::NONE);
        assert_eq!(dev.start(discard).await.result, Ok(()));
        assert_eq!(dev.start(Io::flush()).await.result, Ok(()));
        let mut expected = content(0);
        expected[BLOCK as usize..3 * BLOCK as usize].fill(0);
        assert_eq!(read(&dev, &pool, 0, ORIGIN as usize).await.unwrap(), expected);
        let data = store.contents().to_vec()[Layout::new(ORIGIN).data_at() as usize..].to_vec();
        assert!(
            data.iter().all(|byte| *byte == 0),
            "zeroes are no data, and a discard is no change"
        );
    });
}
