//! Draining respects the rate limit, unless a client waits.

use std::rc::Rc;
use std::time::Duration;

use braid_block::{Flags, Io, Limits};
use braid_cache::{Cache, Config, WriteBackConfig};
use braid_engine::Dev;
use braid_level::{CacheMode, CachePolicy};
use braid_mem::Pool;
use braid_sim::found::SimClock;
use braid_sim::{Handle, Sim, SimDisk};

const BLOCK: u64 = 4096;
/// The disk is some fifteen times faster.
const RATE: u64 = 64 << 10;

fn seconds(handle: &Handle, many: u64) -> impl Future<Output = ()> {
    handle.sleep(many * 1_000_000_000)
}

fn drained(cache: &Cache) -> u64 {
    cache.write_back_status().expect("write-back").drained
}

/// Runs a cache with 4 MiB of dirty data, in every other block of the origin, and its client.
fn dirty(sim: &Sim, age: Duration, f: impl AsyncFnOnce(Handle, Cache, Pool) + 'static) {
    sim.be_quiet();
    sim.be_prompt(10_000);
    let handle = sim.handle();
    let disk = SimDisk::new(&handle, "origin", Limits::new(16 << 20, 512));
    let config = Config {
        size: 8 << 20,
        block: BLOCK,
        mode: CacheMode::WriteBack,
        policy: CachePolicy::S3Fifo,
        sequential_cutoff: None,
    };
    let clock = Rc::new(SimClock { handle: handle.clone(), unix_start: Duration::ZERO });
    let more = WriteBackConfig { dirty: 8 << 20, age, drain: Some(RATE), clock, log: None };
    let cache = Cache::write_back(Dev::new(disk), config, more).expect("memory");
    let pool = Pool::new(4 << 20).expect("memory");
    sim.block_on(async move {
        handle.spawn("cache", cache.run().expect("write-back"));
        for block in 0..1024 {
            let mut buf = pool.get(BLOCK as usize).expect("memory");
            buf.fill(7);
            let io = Io::write(block * 2 * BLOCK, buf, Flags::NONE);
            Dev::new(cache.clone()).start(io).await.result.expect("a write");
        }
        f(handle, cache, pool).await;
    });
}

#[test]
fn draining_keeps_its_rate_until_somebody_waits() {
    dirty(&Sim::new(1), Duration::from_secs(3600), async |handle, cache, _| {
        seconds(&handle, 3).await;
        for times in [1, 3] {
            assert!(cache.set_drain(Some(times * RATE)));
            let before = drained(&cache);
            seconds(&handle, 8).await;
            let (more, should) = (drained(&cache) - before, times * RATE * 8);
            assert!((should * 7 / 10..should * 13 / 10).contains(&more), "{more} of {should}");
        }
        cache.set_drain(Some(4096));
        seconds(&handle, 1).await;
        assert!(
            cache.write_back_status().expect("write-back").dirty > 1 << 20,
            "most is there yet"
        );
        // At the limited rate this would take minutes.
        let start = handle.now();
        Dev::new(cache.clone()).start(Io::flush()).await.result.expect("a flush");
        assert!(handle.now() - start < 10_000_000_000, "{} ns", handle.now() - start);
        assert_eq!(cache.write_back_status().expect("write-back").dirty, 0);
    });
}

#[test]
fn draining_hurries_when_something_is_too_old() {
    dirty(&Sim::new(2), Duration::from_secs(4), async |handle, cache, _| {
        seconds(&handle, 3).await;
        assert!(cache.write_back_status().expect("write-back").dirty > 3 << 20);
        seconds(&handle, 10).await;
        assert_eq!(cache.write_back_status().expect("write-back").dirty, 0);
    });
}

#[test]
fn who_waits_for_room_gets_it_at_once() {
    dirty(&Sim::new(3), Duration::from_secs(3600), async |handle, cache, pool| {
        cache.set_drain(Some(4096));
        seconds(&handle, 1).await;
        let start = handle.now();
        for block in 0..1500 {
            let buf = pool.get(BLOCK as usize).expect("memory");
            let io = Io::write((block * 2 + 1) * BLOCK, buf, Flags::NONE);
            Dev::new(cache.clone()).start(io).await.result.expect("a write");
        }
        assert!(handle.now() - start < 10_000_000_000, "{} ns", handle.now() - start);
    });
}
