//! Requests whose client no longer waits for them.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use braid_block::{Flags, Io, Span};
use braid_sim::{Client, Load, for_each_seed};

use crate::world::{SHAPES, Shape, World, filled, pool, rng};

/// Requests are dropped at any moment, and others made to the same places: all are seen through,
/// in one order on all copies, and nothing is left behind.
#[test]
fn what_nobody_waits_for_is_seen_through() {
    for_each_seed("cancel::what_nobody_waits_for_is_seen_through", 200, |seed| {
        let shape = Shape::number(seed);
        let world = World::new(seed, shape);
        let (dev, mirror, handle) = (world.dev.clone(), world.array.clone(), world.sim.handle());
        if seed % 3 == 0 {
            let bad = world.disk(0).faults().clone();
            bad.add_latent(Span::new(crate::world::DATA + 8192, 4096));
        }
        let (mut dice, pause) = (rng(seed), world.sleep(30));
        world.run(async move {
            for round in 0..60 {
                let len = dice.within(1..=20) * 512;
                let offset = dice.below((32 << 10) / 512) * 512;
                let io = match dice.index(5) {
                    0 => Io::read(offset, pool().get(len as usize).unwrap()),
                    1 => Io::write_zeroes(Span::new(offset, len), Flags::NONE),
                    2 => Io::flush(),
                    _ => Io::write(offset, filled(len as usize, round), Flags::FUA),
                };
                let mut pending = dev.start(io);
                // Polled for a while, perhaps to its end, and dropped.
                let mut limit = Box::pin(handle.sleep(dice.below(400_000)));
                poll_fn(|cx| {
                    let done = Pin::new(&mut pending).poll(cx).is_ready();
                    if done || limit.as_mut().poll(cx).is_ready() {
                        return Poll::Ready(());
                    }
                    Poll::Pending
                })
                .await;
                drop(pending);
            }
            pause.await;
            let status = mirror.status();
            assert!(!status.active, "{status:#?}");
            // Memory is there only when every request has let go.
            assert_eq!(pool().free_bytes(), pool().total_bytes());
        });
        world.check_copies_equal();
    });
}

/// An operator that no longer waits leaves nothing half done, while a client works.
#[test]
fn an_operator_may_stop_waiting() {
    for_each_seed("cancel::an_operator_may_stop_waiting", 100, |seed| {
        let shape = [SHAPES[2], SHAPES[3], SHAPES[5]][seed as usize % 3];
        let world = World::new(seed, shape);
        let (mirror, handle) = (world.array.clone(), world.sim.handle());
        let (mut dice, pause) = (rng(seed), world.sleep(30));
        let spare = world.spare(20);
        let mut client = Client::new(world.dev.clone(), pool(), rng(!seed));
        world.sim.handle().spawn("client", async move {
            let load = Load { requests: 60, depth: 5, longest: 16, overlapping: true };
            let report = client.run(load).await;
            assert!(report.errors.is_empty(), "{:?}", report.errors);
        });
        world.run(async move {
            let mut limit = Box::pin(handle.sleep(dice.below(600_000)));
            let other = mirror.clone();
            let mut work = Box::pin(async move {
                other.fail("disk1").await.unwrap();
                other.remove("disk1").await.unwrap();
                other.add(spare).await.unwrap();
            });
            poll_fn(|cx| match (limit.as_mut().poll(cx), work.as_mut().poll(cx)) {
                (Poll::Pending, Poll::Pending) => Poll::Pending,
                _ => Poll::Ready(()),
            })
            .await;
            drop(work);
            pause.await;
            let status = mirror.status();
            assert!(!status.active && status.job.is_none(), "{status:#?}");
        });
        world.check_copies_equal();
        let events: std::collections::BTreeSet<u64> = world
            .images()
            .iter()
            .flatten()
            .enumerate()
            .filter(|(index, _)| *index != 1 && *index < shape.members)
            .map(|(_, image)| crate::world::superblock_of(image).events)
            .collect();
        assert_eq!(events.len(), 1, "superblocks in the wrong order: {events:?}");
    });
}
