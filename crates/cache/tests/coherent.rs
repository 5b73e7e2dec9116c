//! A cache in front of a simulated disk: for any concurrent requests and any completion order,
//! reads return data that were written, and the disk has every completed write.

mod clocks;
mod front;

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

use braid_block::{Errno, Flags, Io, Limits, Op, Span};
use braid_cache::warm::Head;
use braid_cache::{Cache, Config, Memory};
use braid_engine::{Dev, Offered};
use braid_level::{CacheMode, CachePolicy};
use braid_mem::Pool;
use braid_seed::Rng;
use braid_sim::{Client, Fault, Load, Mismatch, Sim, SimDisk, Target, for_each_seed};
use clocks::Whimsical;
use front::Front;

const SIZE: u64 = 256 << 10;

/// Draws a configuration from `rng`: smaller than the disk, so that blocks are evicted.
fn config(rng: &mut Rng) -> Config {
    let block = 4096 << rng.below(3);
    Config {
        size: block * rng.within(1..=8),
        block,
        mode: CacheMode::ALL[rng.index(2)],
        policy: CachePolicy::ALL[rng.index(CachePolicy::ALL.len())],
        sequential_cutoff: rng.percent(50).then_some(16 << 10),
    }
}

struct World {
    sim: Sim,
    disk: SimDisk,
    cache: Cache,
    client: Client,
    dice: Rng,
}

fn world(seed: u64) -> World {
    let mut dice = Rng::new(!seed);
    let sim = Sim::new(seed);
    let limits = Limits { discard: true, ..Limits::new(SIZE, [512, 4096][dice.index(2)]) };
    let disk = SimDisk::new(&sim.handle(), "origin", limits);
    let cache = Cache::new(Dev::new(disk.clone()), config(&mut dice)).expect("memory");
    if dice.percent(50) {
        cache.time_origin(Rc::new(Whimsical::new(dice.fork())), Whimsical::rules());
    }
    let pool = Pool::new(4 << 20).expect("memory");
    let client = Client::new(Dev::new(cache.clone()), pool, dice.fork());
    World { sim, disk, cache, client, dice }
}

fn load(dice: &mut Rng) -> Load {
    Load { requests: 120, depth: 1 + dice.index(8), longest: 24, overlapping: dice.percent(70) }
}

fn check_counters(cache: &Cache) {
    let counters = cache.counters();
    assert!(counters.bytes_read == counters.bytes_from_ram + counters.bytes_from_origin);
    let asked = counters.cache_misses + counters.uncached_reads;
    assert_eq!(counters.reads, counters.cache_hits + asked, "{counters:?}");
    assert!(asked <= counters.disk_reads, "{counters:?}");
    let (used, most) = cache.used_blocks();
    assert!(used <= most);
}

/// Grows and shrinks the cache under load, as the dice decide.
fn resize_now_and_then(sim: &Sim, cache: &Cache, mut dice: Rng) {
    let (handle, cache) = (sim.handle(), cache.clone());
    let times = if dice.percent(50) { dice.within(1..=20) } else { 0 };
    let clock = handle.clone();
    handle.spawn("resizes", async move {
        for _ in 0..times {
            clock.sleep(dice.below(5_000_000)).await;
            resize(&cache, cache.config().block * dice.within(1..=12));
        }
    });
}

fn resize(cache: &Cache, size: u64) {
    let is = u64::from(cache.used_blocks().1) * cache.config().block;
    let more = match size > is {
        true => Memory::to_grow(is as usize, size as usize, &|| true).expect("memory"),
        false => Memory::default(),
    };
    cache.resize(size, more);
}

/// Checks that reads return the content of the disk.
async fn check_equal(dev: &Dev, pool: &Pool, disk: &SimDisk) {
    for offset in (0..dev.limits().size).step_by(4096) {
        let done = dev.start(Io::read(offset, pool.get(4096).expect("memory"))).await;
        let shown = done.payload.into_one().expect("one buffer");
        let mut there = vec![0; 4096];
        disk.contents().read(offset as usize, &mut there);
        assert!(shown[..] == there[..], "{offset}: {:?} of {:?}", &shown[..8], &there[..8]);
    }
}

/// Crashes at every event, and returns an error if the content of the disk is wrong after one.
fn crash_at_every_event(
    sim: &Sim,
    disk: &SimDisk,
    client: &Client,
    mut dice: Rng,
) -> Rc<RefCell<Option<Mismatch>>> {
    let (oracle, disk) = (Rc::clone(&client.oracle), disk.clone());
    let found = Rc::new(RefCell::new(None));
    let seen = Rc::clone(&found);
    sim.observe(move || {
        let image = disk.crash_image(&mut dice).to_vec();
        if let Err(mismatch) = oracle.borrow().check_crash(&image) {
            seen.borrow_mut().get_or_insert(mismatch);
        }
    });
    found
}

/// At every moment, a crash of the disk leaves what it would leave without a cache.
#[test]
fn what_is_read_was_written_and_the_origin_is_complete() {
    for_each_seed("coherent::what_is_read_was_written_and_the_origin_is_complete", 200, |seed| {
        let World { sim, disk, cache, mut client, mut dice } = world(seed);
        let found = crash_at_every_event(&sim, &disk, &client, dice.fork());
        resize_now_and_then(&sim, &cache, dice.fork());
        let load = load(&mut dice);
        let report = sim.block_on(async move { client.run(load).await });
        assert!(report.errors.is_empty(), "{:?}", report.errors);
        if let Some(mismatch) = found.take() {
            panic!("after a crash {mismatch}");
        }
        let counters = cache.counters();
        assert_eq!(counters.reads, counters.cache_hits + counters.disk_reads, "{counters:?}");
        check_counters(&cache);
    });
}

/// A failed write may have reached each sector of the disk or not: reads return what the disk has.
#[test]
fn errors_of_the_origin_leave_nothing_behind() {
    for_each_seed("coherent::errors_of_the_origin_leave_nothing_behind", 200, |seed| {
        let World { sim, disk, cache, mut client, mut dice } = world(seed);
        for op in [Op::Read, Op::Write, Op::WriteZeroes, Op::Discard] {
            let many = dice.within(0..=6);
            disk.faults().add_some(Target::op(op), Fault::Error(Errno::IO), many);
        }
        let load = load(&mut dice);
        let report = sim.block_on(async move {
            let report = client.run(load).await;
            disk.faults().clear_rules();
            check_equal(&client.dev, &client.pool, &disk).await;
            report
        });
        assert!(report.errors.iter().all(|(.., errno)| *errno == Errno::IO), "{report:?}");
        check_counters(&cache);
    });
}

/// An abandoned request is carried out at some later time.
#[test]
fn requests_that_are_given_up_leave_nothing_behind() {
    for_each_seed("coherent::requests_that_are_given_up_leave_nothing_behind", 200, |seed| {
        let World { sim, disk, cache, client, mut dice } = world(seed);
        let (handle, seen) = (sim.handle(), cache.clone());
        sim.block_on(async move {
            let block = u64::from(client.dev.limits().logical_block);
            let span = |dice: &mut Rng| {
                let len = dice.within(1..=8);
                Span::new(dice.below(SIZE / block - len) * block, len * block)
            };
            for _ in 0..60 {
                let at = span(&mut dice);
                let mut buf = client.pool.get(at.len as usize).expect("memory");
                buf.fill(dice.below(255) as u8);
                let io = match dice.below(4) {
                    0 => Io::read(at.offset, buf),
                    1 => Io::write_zeroes(at, Flags::NONE),
                    _ => Io::write(at.offset, buf, Flags::NONE),
                };
                let mut pending = client.dev.start(io);
                let gives_up = dice.percent(40);
                let mut polls = dice.within(0..=2);
                poll_fn(|cx| {
                    let is_done = Pin::new(&mut pending).poll(cx).is_ready();
                    let is_over = gives_up && polls == 0;
                    polls = polls.saturating_sub(1);
                    if is_done || is_over { Poll::Ready(()) } else { Poll::Pending }
                })
                .await;
            }
            handle.sleep(1_000_000_000).await;
            // All requests have completed.
            check_equal(&client.dev, &client.pool, &disk).await;
        });
        check_counters(&seen);
    });
}

/// A new cache takes over the contents of an ended one, by data or by reading again. Reads always
/// return the content of the disk, also for concurrent requests.
#[test]
fn what_was_held_is_held_again() {
    for_each_seed("coherent::what_was_held_is_held_again", 100, |seed| {
        let World { sim, disk, cache, mut client, mut dice } = world(seed);
        let load = load(&mut dice);
        let mut client = sim.block_on(async move {
            client.run(load).await;
            client
        });
        let has_data = dice.percent(50);
        let left = cache.leave("origin".to_owned(), has_data);
        let head = Head::parse(&left.head().to_bytes()).expect("what was just made");
        assert_eq!(head, *left.head());
        let block = cache.config().block;
        let again = Cache::new(Dev::new(disk.clone()), cache.config()).expect("memory");
        let dev = Dev::new(again.clone());
        client.dev = dev.clone();
        if has_data {
            let mut data = vec![0; block as usize];
            for (index, kept) in head.kept.iter().enumerate() {
                left.read(index, &mut data);
                assert!(again.take(kept, &data));
                data[dice.index(block as usize)] ^= 1;
                assert!(!again.take(kept, &data), "what is damaged is not taken");
            }
            assert_eq!(again.used_blocks(), cache.used_blocks());
        } else {
            let (cache, pool) = (again.clone(), client.pool.clone());
            let blocks: Vec<u64> = head.kept.iter().map(|one| one.block).collect();
            sim.handle().spawn("refill", async move {
                let is_empty = blocks.is_empty();
                assert_eq!(cache.refill(blocks, &pool).await == 0, is_empty);
            });
        }
        let load = self::load(&mut dice);
        let report = sim.block_on(async move {
            let report = client.run(load).await;
            check_equal(&dev, &client.pool, &disk).await;
            report
        });
        assert!(report.errors.is_empty(), "{:?}", report.errors);
        check_counters(&again);
    });
}

/// Caches are attached and detached in front of a disk under load.
#[test]
fn caches_come_and_go_under_load() {
    for_each_seed("coherent::caches_come_and_go_under_load", 300, |seed| {
        let mut dice = Rng::new(!seed);
        let sim = Sim::new(seed);
        // Small, so that requests in flight meet cached blocks.
        let size = 4096 << dice.within(1..=4);
        let limits = Limits { discard: true, ..Limits::new(size, [512, 4096][dice.index(2)]) };
        let disk = SimDisk::new(&sim.handle(), "origin", limits);
        let offered = Offered::from(Dev::new(disk.clone()));
        let pool = Pool::new(4 << 20).expect("memory");
        let mut client = Client::new(Dev::new(Front(offered.clone())), pool, dice.fork());
        let found = crash_at_every_event(&sim, &disk, &client, dice.fork());
        let (handle, mut whims, front) = (sim.handle(), dice.fork(), offered.clone());
        sim.handle().spawn("caches", async move {
            for _ in 0..whims.within(1..=60) {
                let longest = [1_000, 3_000_000][whims.index(2)];
                handle.sleep(whims.below(longest)).await;
                let config = config(&mut whims);
                let memory = Memory::new(config.size as usize).expect("memory");
                let cache = Cache::attach(front.dev(), config, memory).expect("a cache");
                let earlier = front.exchange(Dev::new(cache.clone()));
                while !earlier.are_answered() {
                    handle.sleep(10_000).await;
                }
                cache.begin();
                handle.sleep(whims.below(2_000_000)).await;
                let earlier = front.exchange(cache.origin());
                if whims.percent(50) {
                    while !earlier.are_answered() {
                        handle.sleep(10_000).await;
                    }
                }
                drop(cache.end());
            }
        });
        let load = Load { requests: 400, depth: 8, longest: 8, overlapping: true };
        let report = sim.block_on(async move {
            let report = client.run(load).await;
            check_equal(&client.dev, &client.pool, &disk).await;
            report
        });
        assert!(report.errors.is_empty(), "{:?}", report.errors);
        if let Some(mismatch) = found.take() {
            panic!("after a crash {mismatch}");
        }
    });
}
