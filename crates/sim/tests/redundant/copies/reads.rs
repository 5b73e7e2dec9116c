//! Reads that fail, and where reads go.
//!
//! ```text
//!   read ──▶ one copy ── error ──▶ the other ──▶ answer
//!                 └─────────────── lock ──▶ written again from the other ──▶ read back
//! ```

use std::collections::BTreeSet;

use braid_array::ArrayByte;
use braid_block::{Errno, Flags, Io, Op, Span};
use braid_engine::redundant::MemberState;
use braid_sim::{Client, Fault, Load, Target, for_each_seed};

use crate::world::{DATA, PAIR, PAIR_BITMAP, SHAPES, Shape, World, filled, pool, rng};

const LOAD: Load = Load { requests: 120, depth: 10, longest: 40, overlapping: true };

/// Sectors that cannot be read, on all members but never all copies of one: every read is right,
/// and afterwards everything can be read.
#[test]
fn sectors_that_cannot_be_read_are_written_again() {
    let name = "reads::sectors_that_cannot_be_read_are_written_again";
    for_each_seed(name, 100, |seed| {
        let shape = Shape::number(seed);
        let world = World::new(seed, shape);
        let (geometry, mut dice) = (shape.geometry(), rng(!seed));
        let mut spoilt = BTreeSet::new();
        for _ in 0..dice.within(1..=10) {
            let offset = dice.below(geometry.size() / 512) * 512;
            if spoilt.insert(offset) {
                let run = geometry.locate(ArrayByte::new(offset), dice.index(geometry.copies()));
                let faults = world.disk(run.role.index()).faults().clone();
                faults.add_latent(Span::new(DATA + run.offset.get(), 512));
            }
        }
        let mut client = Client::new(world.dev.clone(), pool(), rng(seed));
        let (mirror, pause) = (world.array.clone(), world.sleep(20));
        world.run(async move {
            let report = client.run(LOAD).await;
            assert!(report.errors.is_empty(), "{:?}", report.errors);
            mirror.scrub(Some(braid_engine::redundant::JobKind::Check)).unwrap();
            pause.await;
            let status = mirror.status();
            assert!(status.in_sync.iter().all(|in_sync| *in_sync), "{status:#?}");
            assert_eq!(status.mismatches, 0, "{status:#?}");
            assert!(status.last_scrub.is_some(), "{status:#?}");
        });
        for (index, disk) in world.disks.borrow().iter().enumerate() {
            let used = Span::new(DATA, geometry.member_size());
            let all_held = shape.level == braid_md::Level::Raid1;
            assert!(!all_held || !disk.faults().is_latent(used), "disk {index} is still bad");
        }
        world.check_copies_equal();
    });
}

/// The same two blocks: what was written while the other copy was read must not be overwritten.
///
/// ```text
///   read of 0..4096 ── error on disk 0 ──▶ disk 1 ──▶ old bytes ──▶ answer
///                        rewrite: lock ──▶ read disk 1 ──▶ write disk 0
///   write of 0..4096 ──▶ waits for the lock, or the lock waits for it
/// ```
#[test]
fn writing_again_never_overwrites_what_is_newer() {
    for_each_seed("reads::writing_again_never_overwrites_what_is_newer", 200, |seed| {
        let shape = [PAIR, PAIR_BITMAP][seed as usize % 2];
        let world = World::new(seed, shape);
        let (handle, dev) = (world.sim.handle(), world.dev.clone());
        let faults = world.disk(seed as usize / 2 % 2).faults().clone();
        let pause = world.sleep(1);
        world.run(async move {
            let mut dice = rng(seed);
            for round in 1..30 {
                faults.add_latent(Span::new(DATA + 512, 1024));
                let read = dev.start(Io::read(0, pool().get(4096).unwrap()));
                let (writer, delay) = (dev.clone(), dice.below(600_000));
                let late = handle.clone();
                let done = std::rc::Rc::new(std::cell::Cell::new(false));
                let over = std::rc::Rc::clone(&done);
                handle.spawn("writer", async move {
                    late.sleep(delay).await;
                    let io = Io::write(0, filled(4096, round), Flags::NONE);
                    assert_eq!(writer.start(io).await.result, Ok(()));
                    over.set(true);
                });
                assert_eq!(read.await.result, Ok(()));
                while !done.get() {
                    handle.sleep(100_000).await;
                }
                let done = dev.start(Io::read(0, pool().get(4096).unwrap())).await;
                assert!(done.payload.to_vec().iter().all(|byte| *byte == round), "{round}");
            }
            pause.await;
        });
        world.check_copies_equal();
    });
}

/// Both copies of one sector are bad: its reads fail, those of its neighbours do not; and sectors
/// that are bad in turns can be read.
#[test]
fn only_what_no_copy_has_cannot_be_read() {
    for_each_seed("reads::only_what_no_copy_has_cannot_be_read", 40, |seed| {
        let world = World::new(seed, PAIR);
        for disk in [0, 1] {
            let faults = world.disk(disk).faults().clone();
            faults.add_latent(Span::new(DATA + 8192, 512));
            for sector in (disk as u64..16).step_by(2) {
                faults.add_latent(Span::new(DATA + 32768 + sector * 512, 512));
            }
        }
        let (dev, mirror) = (world.dev.clone(), world.array.clone());
        let pause = world.sleep(5);
        world.run(async move {
            for (offset, expected) in [(7680, Ok(())), (8192, Err(Errno::IO)), (8704, Ok(()))] {
                let done = dev.start(Io::read(offset, pool().get(512).unwrap())).await;
                assert_eq!(done.result, expected, "at {offset}");
            }
            let done = dev.start(Io::read(4096, pool().get(16384).unwrap())).await;
            assert_eq!((done.result, done.payload.len()), (Err(Errno::IO), 16384));
            let done = dev.start(Io::read(16384, pool().get(65536).unwrap())).await;
            assert_eq!(done.result, Ok(()));
            assert_eq!(mirror.status().in_sync, [true, true]);
            let io = Io::write(8192, filled(512, 3), Flags::NONE);
            assert_eq!(dev.start(io).await.result, Ok(()));
            let done = dev.start(Io::read(4096, pool().get(16384).unwrap())).await;
            assert_eq!(done.result, Ok(()), "what was written can be read");
            pause.await;
        });
        world.check_copies_equal();
    });
}

/// A member that keeps failing to read is given up; the last one is not.
#[test]
fn too_many_read_errors_take_a_member_out() {
    for_each_seed("reads::too_many_read_errors_take_a_member_out", 20, |seed| {
        let world = World::with(seed, PAIR, &PAIR.images(), |setup| {
            setup.members[1].write_mostly = true;
        });
        let (dev, mirror) = (world.dev.clone(), world.array.clone());
        let faults = world.disk(0).faults().clone();
        let last = world.disk(1).faults().clone();
        let (handle, pause) = (world.sim.handle(), world.sleep(2));
        world.run(async move {
            for round in 0..21 {
                assert_eq!(mirror.status().members[0].state, MemberState::InSync, "{round}");
                // As md counts them: a page once.
                faults.add_latent(Span::new(DATA + round * 4096, 512));
                // Many that meet the same error at the same time are one.
                let read = |_| dev.start(Io::read(round * 4096, pool().get(512).unwrap()));
                let all = braid_engine::join_all((0..5).map(read).collect()).await;
                assert!(all.iter().all(|done| done.result.is_ok()));
                handle.sleep(10_000_000).await;
            }
            pause.await;
            let status = mirror.status();
            assert_eq!(status.members[0].state, MemberState::Faulty, "{status:#?}");
            last.add(Target::op(Op::Read), Fault::Error(Errno::IO));
            let done = dev.start(Io::read(0, pool().get(512).unwrap())).await;
            assert_eq!(done.result, Err(Errno::IO));
            assert_eq!(mirror.status().members[1].state, MemberState::InSync);
        });
    });
}

/// Counts the reads of each disk's data.
fn reads(world: &World) -> Vec<usize> {
    let disks = world.disks.borrow();
    let count = |disk: &braid_sim::SimDisk| {
        disk.trace().iter().filter(|one| one.op == Op::Read && one.span.offset >= DATA).count()
    };
    disks.iter().map(count).collect()
}

#[test]
fn a_sequential_stream_stays_on_one_member() {
    for_each_seed("reads::a_sequential_stream_stays_on_one_member", 20, |seed| {
        let world = World::new(seed, PAIR);
        let dev = world.dev.clone();
        world.run(async move {
            for offset in (0..PAIR.member_size).step_by(4096) {
                dev.start(Io::read(offset, pool().get(4096).unwrap())).await;
            }
        });
        let mut counts = reads(&world);
        counts.sort_unstable();
        assert_eq!(counts, [0, 48]);
    });
}

#[test]
fn random_clients_use_all_members_but_the_write_mostly_ones() {
    for_each_seed("reads::random_clients_use_all_members_but_the_write_mostly_ones", 20, |seed| {
        let shape = SHAPES[2];
        let world = World::with(seed, shape, &shape.images(), |setup| {
            setup.members[0].write_mostly = true;
        });
        let dev = world.dev.clone();
        let mut dice = rng(seed);
        world.run(async move {
            for _ in 0..100 {
                let mut read = || {
                    let offset = dice.below(shape.member_size / 4096) * 4096;
                    dev.start(Io::read(offset, pool().get(4096).unwrap()))
                };
                let both = vec![read(), read()];
                braid_engine::join_all(both).await;
            }
        });
        let counts = reads(&world);
        assert!(counts[0] == 0 && counts[1] > 60 && counts[2] > 60, "{counts:?}");
    });
}

#[test]
fn a_slow_member_is_read_where_nobody_else_has_the_data() {
    for_each_seed("reads::a_slow_member_is_read_where_nobody_else_has_the_data", 20, |seed| {
        let world = World::new(seed, PAIR);
        let (dev, mirror) = (world.dev.clone(), world.array.clone());
        let slow = mirror.status().members[0].label.clone();
        let other = mirror.status().members[1].label.clone();
        mirror.avoid(|label| label == slow);
        let (mut dice, traces) = (rng(seed), world.disks.clone());
        let reads = move || -> Vec<usize> {
            let count = |disk: &braid_sim::SimDisk| {
                let is_read = |op: Op, at: u64| op == Op::Read && at >= DATA;
                disk.trace().iter().filter(|one| is_read(one.op, one.span.offset)).count()
            };
            traces.borrow().iter().map(count).collect()
        };
        world.run(async move {
            let mut read = || {
                let offset = dice.below(PAIR.member_size / 4096) * 4096;
                dev.start(Io::read(offset, pool().get(4096).unwrap()))
            };
            for _ in 0..20 {
                let both = vec![read(), read()];
                braid_engine::join_all(both).await;
            }
            assert_eq!(reads(), [0, 40]);
            mirror.fail(&other).await.expect("the slow one has all of it");
            assert_eq!(read().await.result, Ok(()));
            assert_eq!(reads(), [1, 40]);
        });
    });
}

/// While the copies may differ, the same one is read, also where a member is write-mostly or becomes
/// slow.
#[test]
fn reads_before_a_resync_agree_with_what_it_makes_the_truth() {
    for_each_seed("reads::reads_before_a_resync_agree_with_what_it_makes_the_truth", 40, |seed| {
        let mut images = PAIR.images();
        for (index, image) in images.iter_mut().flatten().enumerate() {
            image[DATA as usize..].fill(index as u8 + 1);
        }
        let world = World::with(seed, PAIR, &images, |setup| {
            setup.resync = braid_md::Resync::From(0);
            setup.members[seed as usize % 2].write_mostly = true;
        });
        // One copy cannot be read in one place: that is no reason to believe the other elsewhere.
        let bad = Span::new(DATA + 65536, 512);
        world.disk((seed as usize + 1) % 2).faults().add_latent(bad);
        let (dev, pause) = (world.dev.clone(), world.sleep(10));
        let mirror = world.array.clone();
        world.run(async move {
            let done = dev.start(Io::read(0, pool().get(4096).unwrap())).await;
            let before = done.payload.to_vec();
            for slow in mirror.status().members {
                mirror.avoid(|label| label == slow.label);
                let done = dev.start(Io::read(0, pool().get(4096).unwrap())).await;
                assert!(done.payload.to_vec() == before, "{} before", before[0]);
            }
            pause.await;
            let done = dev.start(Io::read(0, pool().get(4096).unwrap())).await;
            assert!(done.payload.to_vec() == before, "{} before", before[0]);
        });
        world.check_copies_equal();
    });
}
