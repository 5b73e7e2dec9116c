//! The rate of passes, and their effect on clients.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use braid_block::{Flags, Io, Limits};
use braid_engine::redundant::{JobKind, Redundant, Speed};
use braid_engine::{Dev, Device, Pending};
use braid_sim::{Handle, for_each_seed};

use crate::world::{PAIR, Shape, World, filled, pool, rng};

const BIG: Shape = Shape { member_size: 8 << 20, ..PAIR };

/// A disk that does one thing at a time: 100 µs, and 60 ns for each byte.
struct OneArm {
    inner: Dev,
    handle: Handle,
    free_at: Rc<Cell<u64>>,
}

impl Device for OneArm {
    fn limits(&self) -> Limits {
        *self.inner.limits()
    }

    fn start(&self, io: Io) -> Pending {
        let start = self.free_at.get().max(self.handle.now());
        let end = start + 100_000 + 60 * io.span.len;
        self.free_at.set(end);
        let (inner, handle) = (self.inner.clone(), self.handle.clone());
        Pending::task(async move {
            let done = inner.start(io).await;
            handle.sleep(end.saturating_sub(handle.now())).await;
            done
        })
    }
}

fn world_with(seed: u64, speed: Speed, one_arm: bool) -> World {
    let sim = braid_sim::Sim::new(seed);
    sim.be_punctual();
    let handle = sim.handle();
    World::on(sim, BIG, &BIG.images(), |setup| {
        setup.speed = speed;
        for member in &mut setup.members {
            let (inner, handle) = (member.dev.clone(), handle.clone());
            if one_arm {
                member.dev = Dev::new(OneArm { inner, handle, free_at: Rc::default() });
            }
        }
    })
}

/// Starts a check and says how fast it goes after a while, in bytes a second.
async fn rate_of_check(mirror: &Redundant, handle: &Handle) -> f64 {
    mirror.scrub(Some(JobKind::Check)).unwrap();
    let done = || mirror.status().job.expect("it takes longer").done;
    handle.sleep(1_000_000_000).await;
    let early = done();
    handle.sleep(4_000_000_000).await;
    (done() - early) as f64 / 4.0
}

#[test]
fn a_pass_alone_keeps_to_the_maximum() {
    for_each_seed("speed::a_pass_alone_keeps_to_the_maximum", 5, |seed| {
        let speed = Speed { max: Some(1 << 20), ..Speed::default() };
        let world = world_with(seed, speed, false);
        let (mirror, handle) = (world.array.clone(), world.sim.handle());
        world.run(async move {
            let rate = rate_of_check(&mirror, &handle).await / f64::from(1 << 20);
            assert!((0.95..1.05).contains(&rate), "{rate} MiB/s");
        });
    });
}

#[test]
fn a_pass_beside_a_client_keeps_to_the_minimum() {
    for_each_seed("speed::a_pass_beside_a_client_keeps_to_the_minimum", 5, |seed| {
        let world = world_with(seed, Speed { min: 1 << 20, ..Speed::default() }, false);
        let (mirror, handle, dev) = (world.array.clone(), world.sim.handle(), world.dev.clone());
        let pause = handle.clone();
        handle.spawn("client", async move {
            loop {
                dev.start(Io::read(0, pool().get(4096).unwrap())).await;
                pause.sleep(10_000_000).await;
            }
        });
        let handle = world.sim.handle();
        world.run(async move {
            let rate = rate_of_check(&mirror, &handle).await / f64::from(1 << 20);
            assert!((0.95..1.05).contains(&rate), "{rate} MiB/s");
        });
    });
}

/// A waiting pass stops waiting when it gets the order to stop, or to go faster.
#[test]
fn a_pass_that_waits_hears_what_it_is_told() {
    for_each_seed("speed::a_pass_that_waits_hears_what_it_is_told", 10, |seed| {
        let speed = Speed { max: Some(1024), ..Speed::default() };
        let world = world_with(seed, speed, false);
        let (mirror, handle) = (world.array.clone(), world.sim.handle());
        world.run(async move {
            mirror.scrub(Some(JobKind::Check)).unwrap();
            handle.sleep(1_000_000_000).await;
            let start = handle.now();
            match seed % 3 {
                0 => mirror.shut_down().await,
                1 => {
                    mirror.scrub(None).unwrap();
                    while mirror.status().job.is_some() {
                        handle.sleep(5_000_000).await;
                    }
                }
                _ => {
                    mirror.set_speed(Speed::default());
                    while mirror.status().job.is_some() {
                        handle.sleep(5_000_000).await;
                    }
                    assert!(mirror.status().last_scrub.is_some());
                }
            }
            let seconds = (handle.now() - start) as f64 / 1e9;
            assert!(seconds < 5.0, "{seconds} s until it listened");
        });
    });
}

/// The 99th percentile of a client's latencies while a check runs on disks where it is in the way.
fn latency_beside_a_check(seed: u64, latency: Option<Duration>) -> Duration {
    let speed = Speed { min: 64 << 10, max: Some(12 << 20), latency };
    let speed = if latency.is_none() { Speed { min: 12 << 20, ..speed } } else { speed };
    let world = world_with(seed, speed, true);
    let (mirror, handle, dev) = (world.array.clone(), world.sim.handle(), world.dev.clone());
    let latencies = Rc::new(RefCell::new(Vec::new()));
    let (seen, mut dice) = (Rc::clone(&latencies), rng(seed));
    let client = handle.clone();
    handle.spawn("client", async move {
        loop {
            client.sleep(dice.below(2_000_000)).await;
            let offset = dice.below(BIG.member_size / 4096) * 4096;
            let start = client.now();
            let io = match dice.percent(50) {
                true => Io::read(offset, pool().get(4096).unwrap()),
                false => Io::write(offset, filled(4096, 0), Flags::NONE),
            };
            dev.start(io).await;
            seen.borrow_mut().push(Duration::from_nanos(client.now() - start));
        }
    });
    world.run(async move {
        mirror.scrub(Some(JobKind::Check)).unwrap();
        while mirror.status().requested.is_some() {
            handle.sleep(5_000_000).await;
        }
    });
    let mut latencies = latencies.take();
    latencies.sort_unstable();
    latencies[latencies.len() * 99 / 100]
}

/// With a target, 99 of 100 requests of a client stay below it; without one they do not.
#[test]
fn a_client_keeps_its_latency() {
    for_each_seed("speed::a_client_keeps_its_latency", 3, |seed| {
        let target = Duration::from_micros(3500);
        let (with, without) =
            (latency_beside_a_check(seed, Some(target)), latency_beside_a_check(seed, None));
        assert!(with <= target && without > target, "{with:?} with, {without:?} without");
    });
}
