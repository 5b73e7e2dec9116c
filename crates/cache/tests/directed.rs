//! Flushed data survive a crash: scenarios that random worlds rarely reach.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use braid_block::{Errno, Flags, Io, Limits, Op, Span};
use braid_cache::log::format::OriginId;
use braid_cache::{Cache, Config, GivenUp, LogId, LogSetup, Replayed, WriteBackConfig};
use braid_engine::Dev;
use braid_level::{CacheMode, CachePolicy};
use braid_mem::Pool;
use braid_sim::found::SimClock;
use braid_sim::{Fault, Handle, Image, Sim, SimDisk, Target};

const BLOCK: u64 = 4096;
const SIZE: u64 = 256 * BLOCK;
const LOG: u64 = 4 << 20;
const SECOND_NS: u64 = 1_000_000_000;

/// Remembers the last abandoned log.
#[derive(Clone, Default)]
struct Notes(Rc<Cell<Option<LogId>>>);

impl GivenUp for Notes {
    fn remember(&self, log: LogId) -> std::io::Result<()> {
        self.0.set(Some(log));
        Ok(())
    }

    fn has(&self, log: LogId) -> std::io::Result<bool> {
        Ok(self.0.get() == Some(log))
    }
}

struct World {
    sim: Sim,
    origin: SimDisk,
    log: SimDisk,
    cache: Cache,
}

impl World {
    fn new(origin: Image, log: Image, drain: Option<u64>, notes: &Notes) -> World {
        let sim = Sim::new(1);
        sim.be_prompt(1_000);
        let handle = sim.handle();
        let of = |name, image: Image| {
            let limits = Limits::new(image.len() as u64, 512);
            SimDisk::with_contents(&handle, name, limits, image)
        };
        let (origin, log) = (of("origin", origin), of("log", log));
        let config = Config {
            size: SIZE,
            block: BLOCK,
            mode: CacheMode::WriteBack,
            policy: CachePolicy::S3Fifo,
            sequential_cutoff: Some(16 * BLOCK),
        };
        let setup = LogSetup {
            dev: Dev::new(log.clone()),
            origin: OriginId { size: SIZE, digest: [7; 16] },
            text: "origin".to_owned(),
            uuid: [1; 16],
            is_forced: false,
            is_live: false,
            given_up: Some(Rc::new(notes.clone())),
        };
        let more = WriteBackConfig {
            dirty: SIZE,
            age: Duration::from_secs(600),
            drain,
            clock: Rc::new(SimClock { handle: handle.clone(), unix_start: Duration::ZERO }),
            log: Some(setup),
        };
        let cache = Cache::write_back(Dev::new(origin.clone()), config, more).expect("memory");
        World { sim, origin, log, cache }
    }

    fn blank(drain: Option<u64>, notes: &Notes) -> World {
        let image = |size: u64| Image::zeroes(size as usize);
        World::new(image(SIZE), image(LOG), drain, notes)
    }

    /// Starts the cache, and returns a client of it.
    async fn up(cache: &Cache, handle: &Handle) -> Client {
        cache.restart().await.expect("a sound log");
        handle.spawn("cache", cache.run().expect("write-back"));
        Client { dev: Dev::new(cache.clone()), pool: Pool::new(2 << 20).expect("memory") }
    }

    /// Loses volatile data, starts again, and returns the content of the origin.
    fn restarted(&self, notes: &Notes) -> (Replayed, Image) {
        let next = World::new(self.origin.durable(), self.log.durable(), None, notes);
        let cache = next.cache.clone();
        let replayed =
            next.sim.block_on(async move { cache.restart().await.expect("a sound log") });
        (replayed.expect("a log"), next.origin.durable())
    }
}

struct Client {
    dev: Dev,
    pool: Pool,
}

impl Client {
    async fn write(&self, block: u64, count: u64, byte: u8) {
        let mut buf = self.pool.get((count * BLOCK) as usize).expect("memory");
        buf.fill(byte);
        self.dev.start(Io::write(block * BLOCK, buf, Flags::NONE)).await.result.expect("a write");
    }

    async fn flush(&self) -> Result<(), Errno> {
        self.dev.start(Io::flush()).await.result
    }
}

fn has(image: &Image, block: u64, byte: u8) -> bool {
    image.piece((block * BLOCK) as usize, BLOCK as usize).iter().all(|one| *one == byte)
}

#[test]
fn a_flush_of_many_blocks_has_all_of_them() {
    let notes = Notes::default();
    let world = World::blank(None, &notes);
    let (cache, handle) = (world.cache.clone(), world.sim.handle());
    world.sim.block_on(async move {
        let client = World::up(&cache, &handle).await;
        for block in 0..200 {
            client.write(block, 1, block as u8 + 1).await;
        }
        client.flush().await.expect("a flush");
    });
    assert!(
        world.origin.durable().to_vec().iter().all(|byte| *byte == 0),
        "it is in the log alone"
    );
    let (_, origin) = world.restarted(&notes);
    for block in 0..200 {
        assert!(has(&origin, block, block as u8 + 1), "block {block}");
    }
}

/// A failed flush of the origin loses its volatile data, including those of a round whose own flush
/// succeeds later.
#[test]
fn a_round_counts_nothing_that_a_flush_beside_it_lost() {
    let notes = Notes::default();
    // One block per second: the round pauses between its two blocks.
    let world = World::blank(Some(BLOCK), &notes);
    let (cache, handle, origin) = (world.cache.clone(), world.sim.handle(), world.origin.clone());
    world.sim.block_on(async move {
        let client = World::up(&cache, &handle).await;
        client.write(0, 1, 1).await;
        client.write(40, 1, 2).await;
        client.flush().await.expect("a flush");
        while cache.counters().disk_writes == 0 {
            handle.sleep(1_000_000).await;
        }
        handle.sleep(1_000_000).await;
        client.write(100, 16, 3).await;
        origin.faults().add_some(Target::op(Op::Flush), Fault::Error(Errno::IO), 1);
        assert_eq!(client.flush().await, Err(Errno::IO), "the large write is lost");
        assert_eq!(cache.write_back_status().expect("write-back").drained, 0, "the round goes on");
        while cache.write_back_status().expect("write-back").drained == 0 {
            handle.sleep(1_000_000).await;
        }
    });
    let (_, origin) = world.restarted(&notes);
    assert!(has(&origin, 0, 1) && has(&origin, 40, 2), "what the log had is lost");
}

/// ```text
///   FLUSH   |-- log: blocks 5, 0 --|-- origin: fails, and loses the zeroes of block 5
///   round             |-- log: block 1 ----------------|-- origin: block 1, flush: well
/// ```
#[test]
fn a_round_under_way_lets_no_record_go_of_zeroes_that_are_lost() {
    let notes = Notes::default();
    let origin = Image::from(vec![0xff; SIZE as usize]);
    let world = World::new(origin, Image::zeroes(LOG as usize), None, &notes);
    let (cache, handle) = (world.cache.clone(), world.sim.handle());
    let (origin, log) = (world.origin.clone(), world.log.clone());
    world.sim.block_on(async move {
        let client = Rc::new(World::up(&cache, &handle).await);
        let zeroes = Io::write_zeroes(Span::new(5 * BLOCK, BLOCK), Flags::FUA);
        client.dev.start(zeroes).await.result.expect("zeroes");
        client.write(100, 16, 3).await;
        client.write(0, 1, 1).await;
        let flush = Target::op(Op::Flush);
        let start_ns = handle.now();
        log.faults().add_some(flush, Fault::NotBefore(start_ns + 2 * SECOND_NS), 1);
        origin.faults().add_some(flush, Fault::Error(Errno::IO), 1);
        let (flushed, asking) = (Rc::new(Cell::new(None)), Rc::clone(&client));
        let result = Rc::clone(&flushed);
        handle.spawn("flush", async move { result.set(Some(asking.flush().await)) });
        let flushes = || log.trace().iter().filter(|one| one.op == Op::Flush).count();
        let before = flushes();
        while flushes() == before {
            handle.sleep(100_000).await;
        }
        client.write(1, 1, 2).await;
        log.faults().add_some(flush, Fault::NotBefore(start_ns + 4 * SECOND_NS), 1);
        let status = || cache.write_back_status().expect("write-back");
        while status().drained == 0 && status().drain_error.is_none() {
            handle.sleep(1_000_000).await;
        }
        assert_eq!(flushed.get(), Some(Err(Errno::IO)), "the large write is lost");
    });
    let (_, origin) = world.restarted(&notes);
    assert!(has(&origin, 5, 0), "zeroes that were durable are lost");
    assert!(has(&origin, 0, 1));
}

/// An abandoned log is known to its machine only: elsewhere it is replayed, unless its device
/// accepts the closing superblock when the cache ends.
#[test]
fn a_log_that_was_given_up_is_closed_when_its_device_takes_it() {
    for is_well_again in [true, false] {
        let notes = Notes::default();
        let world = World::blank(None, &notes);
        let (cache, handle, log) = (world.cache.clone(), world.sim.handle(), world.log.clone());
        world.sim.block_on(async move {
            let client = World::up(&cache, &handle).await;
            client.write(0, 1, 1).await;
            client.flush().await.expect("a flush");
            let error = Fault::Error(Errno::IO);
            log.faults().add_some(Target::op(Op::Write), error, u64::MAX);
            client.write(0, 1, 2).await;
            client.flush().await.expect("the origin's");
            if is_well_again {
                log.faults().clear_rules();
            }
            cache.shut_down().await.expect("its end");
        });
        assert!(notes.0.get().is_some(), "it was given up");
        let (here, origin) = world.restarted(&notes);
        assert!(here.was_given_up);
        assert!(has(&origin, 0, 2), "older data over newer");
        let (elsewhere, origin) = world.restarted(&Notes::default());
        assert_eq!(elsewhere.records, u64::from(!is_well_again));
        assert!(has(&origin, 0, if is_well_again { 2 } else { 1 }));
    }
}

/// The origin lost a large write, which cannot be repeated: no later flush succeeds.
#[test]
fn no_flush_succeeds_after_one_that_lost_a_large_write() {
    let world = World::blank(None, &Notes::default());
    let (cache, handle, origin) = (world.cache.clone(), world.sim.handle(), world.origin.clone());
    world.sim.block_on(async move {
        let client = World::up(&cache, &handle).await;
        client.write(100, 16, 3).await;
        origin.faults().add_some(Target::op(Op::Flush), Fault::Error(Errno::IO), 1);
        for _ in 0..2 {
            assert_eq!(client.flush().await, Err(Errno::IO));
        }
    });
}

/// Without a log, zeroes with FUA are durable on the origin.
#[test]
fn zeroes_with_fua_are_durable_without_a_log() {
    let origin = Image::from(vec![0xff; SIZE as usize]);
    let world = World::new(origin, Image::zeroes(LOG as usize), None, &Notes::default());
    let (cache, handle, log) = (world.cache.clone(), world.sim.handle(), world.log.clone());
    world.sim.block_on(async move {
        let client = World::up(&cache, &handle).await;
        log.faults().add(Target::op(Op::Write), Fault::Error(Errno::IO));
        client.write(0, 1, 1).await;
        client.flush().await.expect("the origin's");
        let zeroes = Io::write_zeroes(Span::new(5 * BLOCK, BLOCK), Flags::FUA);
        client.dev.start(zeroes).await.result.expect("zeroes");
    });
    assert!(has(&world.origin.durable(), 5, 0));
}

/// A dirty and logged block that is written again is logged again.
#[test]
fn what_is_written_over_something_logged_is_logged_too() {
    let notes = Notes::default();
    let world = World::blank(None, &notes);
    let (cache, handle) = (world.cache.clone(), world.sim.handle());
    world.sim.block_on(async move {
        let client = World::up(&cache, &handle).await;
        for byte in [1, 2] {
            client.write(0, 1, byte).await;
            client.flush().await.expect("a flush");
        }
    });
    let (_, origin) = world.restarted(&notes);
    assert!(has(&origin, 0, 2), "what was flushed last is lost");
}

/// The same while the block is on its way to the origin: a round does not count for what came after it began.
#[test]
fn what_is_written_while_its_block_is_drained_is_logged_too() {
    let notes = Notes::default();
    let world = World::blank(None, &notes);
    let (cache, handle, origin) = (world.cache.clone(), world.sim.handle(), world.origin.clone());
    world.sim.block_on(async move {
        let client = World::up(&cache, &handle).await;
        client.write(0, 1, 1).await;
        client.flush().await.expect("a flush");
        let late = Fault::NotBefore(handle.now() + 2 * SECOND_NS);
        origin.faults().add_some(Target::op(Op::Write), late, 1);
        while cache.counters().disk_writes == 0 {
            handle.sleep(1_000_000).await;
        }
        let mut sector = client.pool.get(512).expect("memory");
        sector.fill(2);
        let write = Io::write(BLOCK - 512, sector, Flags::NONE);
        client.dev.start(write).await.result.expect("a write");
        while cache.write_back_status().expect("write-back").drained == 0 {
            handle.sleep(1_000_000).await;
        }
        client.flush().await.expect("a flush");
    });
    let (_, origin) = world.restarted(&notes);
    let last = origin.piece(BLOCK as usize - 512, 512);
    assert!(last.iter().all(|byte| *byte == 2), "what was flushed last is lost");
}

/// A flush that is carried out beside a large write does not make it durable.
#[test]
fn a_large_write_is_flushed_after_it_is_done() {
    let notes = Notes::default();
    let world = World::blank(None, &notes);
    let (cache, handle, origin) = (world.cache.clone(), world.sim.handle(), world.origin.clone());
    world.sim.block_on(async move {
        let client = Rc::new(World::up(&cache, &handle).await);
        let late = Fault::NotBefore(handle.now() + SECOND_NS);
        origin.faults().add_some(Target::op(Op::Write), late, 1);
        let (is_done, writing) = (Rc::new(Cell::new(false)), Rc::clone(&client));
        let done = Rc::clone(&is_done);
        handle.spawn("a large write", async move {
            writing.write(100, 16, 3).await;
            done.set(true);
        });
        while origin.trace().iter().all(|one| one.op != Op::Write) {
            handle.sleep(1_000_000).await;
        }
        client.flush().await.expect("a flush");
        assert!(!is_done.get(), "it is under way");
        while !is_done.get() {
            handle.sleep(1_000_000).await;
        }
        client.flush().await.expect("a flush");
    });
    assert!(has(&world.origin.durable(), 115, 3));
}

/// Zeroes that fail leave what was held, and in the log their record: what reads still show is logged behind it.
#[test]
fn what_zeroes_that_failed_left_is_logged_again() {
    let notes = Notes::default();
    let world = World::blank(None, &notes);
    let (cache, handle, origin) = (world.cache.clone(), world.sim.handle(), world.origin.clone());
    world.sim.block_on(async move {
        let client = World::up(&cache, &handle).await;
        client.write(5, 1, 1).await;
        client.flush().await.expect("a flush");
        origin.faults().add_some(Target::op(Op::WriteZeroes), Fault::Error(Errno::IO), 1);
        let zeroes = Io::write_zeroes(Span::new(5 * BLOCK, BLOCK), Flags::NONE);
        assert_eq!(client.dev.start(zeroes).await.result, Err(Errno::IO));
        client.flush().await.expect("a flush");
    });
    let (_, origin) = world.restarted(&notes);
    assert!(has(&origin, 5, 1), "what was flushed is lost");
}

/// A write whose client went away arrives at any time: it might overwrite data that are drained before it.
#[test]
fn write_back_does_not_begin_beside_a_write_that_was_given_up() {
    let sim = Sim::new(1);
    let handle = sim.handle();
    let origin = SimDisk::new(&handle, "origin", Limits::new(SIZE, 512));
    let (size, block) = (SIZE, BLOCK);
    let (policy, mode) = (CachePolicy::S3Fifo, CacheMode::WriteThrough);
    let config = Config { size, block, mode, policy, sequential_cutoff: None };
    let through = Cache::new(Dev::new(origin.clone()), config).expect("memory");
    sim.block_on(async move {
        let (dev, pool) = (Dev::new(through.clone()), Pool::new(2 << 20).expect("memory"));
        let late = Fault::NotBefore(handle.now() + SECOND_NS);
        origin.faults().add_some(Target::op(Op::Write), late, 1);
        let write = Io::write(0, pool.get(BLOCK as usize).expect("memory"), Flags::NONE);
        drop(dev.start(write));
        let clock = Rc::new(SimClock { handle: handle.clone(), unix_start: Duration::ZERO });
        let (age, drain, log) = (Duration::from_secs(600), None, None);
        let more = WriteBackConfig { dirty: SIZE, age, drain, clock, log };
        let cache = through.to_write_back(more).expect("memory");
        handle.spawn("cache", cache.run().expect("to be write-back"));
        assert_eq!(cache.begin_write_back().await, Err(Errno::from_raw(16)), "EBUSY");
        assert_eq!(cache.config().mode, CacheMode::WriteThrough);
    });
}
