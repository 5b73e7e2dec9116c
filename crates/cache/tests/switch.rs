//! Write-back mode starts while a write is in flight to the origin.

mod front;

use std::rc::Rc;
use std::time::Duration;

use braid_block::{Flags, Io, Limits};
use braid_cache::{Cache, Config, WriteBackConfig};
use braid_engine::{Dev, Offered};
use braid_level::{CacheMode, CachePolicy};
use braid_mem::Pool;
use braid_model::Plain;
use braid_sim::found::SimClock;
use braid_sim::{Sim, SimDisk, Timing};
use front::Front;

const BLOCK: u64 = 4096;

#[test]
fn what_was_written_last_is_there_although_the_one_before_took_long() {
    let sim = Sim::new(1);
    sim.be_prompt(10_000);
    let handle = sim.handle();
    let disk = SimDisk::new(&handle, "origin", Limits::new(16 * BLOCK, 512));
    // A write of a block takes 50 ms.
    let slow =
        Plain { read_rate: 1 << 30, write_rate: 20 * BLOCK, latency_ns: 100_000, bus_rate: 0 };
    disk.set_timing(Timing::new(slow.into(), Rc::default()));
    let config = Config {
        size: 8 * BLOCK,
        block: BLOCK,
        mode: CacheMode::WriteThrough,
        policy: CachePolicy::S3Fifo,
        sequential_cutoff: None,
    };
    let cache = Cache::new(Dev::new(disk.clone()), config).expect("memory");
    let offered = Offered::from(Dev::new(cache.clone()));
    let front = Dev::new(Front(offered.clone()));
    let pool = Pool::new(1 << 20).expect("memory");
    sim.block_on(async move {
        let write = |byte| {
            let mut buf = pool.get(BLOCK as usize).expect("memory");
            buf.fill(byte);
            front.start(Io::write(0, buf, Flags::NONE))
        };
        let first = write(1);
        let clock = Rc::new(SimClock { handle: handle.clone(), unix_start: Duration::ZERO });
        let age = Duration::from_secs(60);
        let more = WriteBackConfig { dirty: 4 * BLOCK, age, drain: None, clock, log: None };
        let next = cache.to_write_back(more).expect("memory");
        next.restart().await.expect("no log");
        let earlier = offered.exchange(Dev::new(next.clone()));
        handle.spawn("cache", next.run().expect("write-back"));
        let begins = (next.clone(), handle.clone());
        handle.spawn("begin", async move {
            while !earlier.are_answered() {
                begins.1.sleep(100_000).await;
            }
            begins.0.begin_write_back().await.expect("nobody gave up anything");
        });
        handle.sleep(1_000_000).await;
        let second = write(2);
        first.await.result.expect("a write");
        second.await.result.expect("a write");
        assert!(next.write_back_status().is_some());
        let read = front.start(Io::read(0, pool.get(BLOCK as usize).expect("memory"))).await;
        assert!(read.payload.to_vec().iter().all(|byte| *byte == 2), "what is read");
        next.shut_down().await.expect("its end");
        assert!(disk.durable().piece(0, 4096).iter().all(|byte| *byte == 2), "what is there");
    });
}
