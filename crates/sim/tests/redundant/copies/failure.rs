//! Members that fail.
//!
//! ```text
//!   write ──▶ both members ──▶ one fails ──▶ the other's superblock says so ──▶ answer
//!                                                              from here on, in every crash image
//! ```

use std::cell::Cell;
use std::rc::Rc;

use braid_block::{Errno, Flags, Io, Op, Span};
use braid_engine::redundant::{ControlError, MemberState};

use braid_md::Role;
use braid_sim::{Client, Fault, Load, Oracle, SimDisk, Target, for_each_seed};

use crate::world::{
    Assembly, PAIR, PAIR_BITMAP, SHAPES, Shape, TRIPLE, World, copies, crash_images, filled, pool,
    rng,
};

const LOAD: Load = Load { requests: 60, depth: 8, longest: 24, overlapping: true };

/// Checks that images of a crash are an array with allowed content, whichever copy is read.
pub(crate) fn check_crash(shape: &Shape, images: &[Option<Vec<u8>>], oracle: &Oracle) {
    let assembly = Assembly::new(images);
    let holders = assembly.holders();
    let mut contents: Vec<Vec<u8>> = vec![Vec::new(); 4];
    let mut differing = Vec::new();
    copies(shape, images, &assembly, |offset, copies| {
        assert!(!copies.is_empty(), "no copy of {offset} is left: {holders:?}");
        if copies.iter().any(|one| *one != copies[0]) {
            differing.push(offset);
        }
        for (index, contents) in contents.iter_mut().enumerate() {
            contents.extend_from_slice(copies[index % copies.len()]);
        }
    });
    for contents in contents {
        if let Err(mismatch) = oracle.check_crash(&contents) {
            panic!("after a crash {mismatch}; {holders:?}");
        }
    }
    assert!(differing.is_empty() || !assembly.is_clean(), "clean, but {differing:?} differ");
    if let Some(bitmap) = &assembly.bitmap {
        let covered = |offset: &u64| bitmap.is_set(bitmap.chunk_of(*offset));
        assert!(differing.iter().all(covered), "{differing:?} differ outside the bitmap");
    }
}

/// Fails member `bad`: from its request number `index` of `op` on.
fn fail_from(disk: &SimDisk, op: Op, index: u64) {
    for index in index..index + 400 {
        disk.faults().add(Target { op: Some(op), ..Target::index(index) }, Fault::Error(Errno::IO));
    }
}

/// A write or a flush fails, sooner or later, and all later ones: the load goes on, the array is
/// degraded, and at no moment would a crash bring back what is stale.
#[test]
fn a_member_that_fails_is_out_before_anybody_relies_on_the_others() {
    let name = "failure::a_member_that_fails_is_out_before_anybody_relies_on_the_others";
    let crashes = Rc::new(Cell::new(0));
    let failures = Rc::new(Cell::new(0));
    for_each_seed(name, 80, |seed| {
        let shape = Shape::number(seed);
        let world = World::new(seed, shape);
        let mut choices = rng(seed);
        let bad = choices.index(shape.members);
        let op = [Op::Write, Op::Write, Op::Flush, Op::WriteZeroes][choices.index(4)];
        fail_from(&world.disk(bad), op, seed / 4 % 60);

        let client = Client::new(world.dev.clone(), pool(), choices);
        let (disks, oracle) = (Rc::clone(&world.disks), Rc::clone(&client.oracle));
        let (mut dice, counter) = (rng(!seed), Rc::clone(&crashes));
        world.sim.observe(move || {
            if !dice.percent(10) {
                return;
            }
            counter.set(counter.get() + 1);
            let images = crash_images(&disks.borrow(), &mut dice);
            check_crash(&shape, &images, &oracle.borrow());
        });
        let (mirror, pause) = (world.array.clone(), world.sleep(30));
        let failures = Rc::clone(&failures);
        world.run(async move {
            let mut client = client;
            let report = client.run(LOAD).await;
            assert!(report.errors.is_empty(), "{:?}", report.errors);
            pause.await;
            let status = mirror.status();
            assert!(!status.active && !status.broken, "{status:#?}");
            for (index, member) in status.members.iter().enumerate() {
                let faulty = member.state == MemberState::Faulty;
                assert!(!faulty || index == bad, "{status:#?}");
                failures.set(failures.get() + usize::from(faulty));
            }
        });
        world.check_copies_equal();
    });
    assert!(failures.get() > 40, "{} members failed", failures.get());
    assert!(crashes.get() > 2_000, "{} crashes", crashes.get());
}

/// At the moment a degraded write is answered, what a crash leaves says that the member is faulty,
/// and it is two events behind: also kernels that believe a member that is one behind leave it out.
#[test]
fn the_answer_to_a_degraded_write_comes_after_the_superblocks() {
    let name = "failure::the_answer_to_a_degraded_write_comes_after_the_superblocks";
    for_each_seed(name, 100, |seed| {
        let shape = [PAIR, PAIR_BITMAP, TRIPLE, SHAPES[5]][seed as usize % 4];
        let world = World::new(seed, shape);
        let faults = world.disk(0).faults().clone();
        let data = Span::new(crate::world::DATA, shape.member_size);
        faults.add(Target::op(Op::Write).touching(data), Fault::Error(Errno::IO));
        let (dev, disks) = (world.dev.clone(), Rc::clone(&world.disks));
        world.run(async move {
            let done = dev.start(Io::write(0, filled(4096, 1), Flags::NONE)).await;
            assert_eq!(done.result, Ok(()));
            let mut dice = rng(seed);
            for _ in 0..10 {
                let images = crash_images(&disks.borrow(), &mut dice);
                let stale = crate::world::superblock_of(images[0].as_deref().unwrap());
                for image in images[1..].iter().flatten() {
                    let own = crate::world::superblock_of(image);
                    assert_eq!(own.roles[0], Role::Faulty);
                    assert!(own.events >= stale.events + 2, "{} {}", own.events, stale.events);
                }
            }
        });
    });
}

/// Two flushes at a time: one fails on a member, which forgets what it was to make durable. The other
/// is not answered either before superblocks say that the member is out.
#[test]
fn no_flush_is_answered_beside_one_that_fails() {
    let name = "failure::no_flush_is_answered_beside_one_that_fails";
    for_each_seed(name, 100, |seed| {
        let world = World::new(seed, PAIR);
        let (dev, handle) = (world.dev.clone(), world.sim.handle());
        let (disks, bad) = (Rc::clone(&world.disks), world.disk(0));
        world.run(async move {
            dev.start(Io::write(0, filled(4096, 1), Flags::NONE)).await.result.unwrap();
            bad.faults().add_some(Target::op(Op::Flush), Fault::Error(Errno::IO), 1);
            let fails = dev.start(Io::flush());
            handle.spawn("the flush that fails", async move { drop(fails.await) });
            assert_eq!(dev.start(Io::flush()).await.result, Ok(()));
            let images = crash_images(&disks.borrow(), &mut rng(seed));
            let other = crate::world::superblock_of(images[1].as_deref().unwrap());
            assert_eq!(other.roles[0], Role::Faulty);
        });
    });
}

/// A flush fails on all members: it is unknown which data of the only copies is durable, and no later flush can
/// tell. Readable data is read.
#[test]
fn nothing_is_written_after_a_flush_that_fails_on_the_last_members() {
    let name = "failure::nothing_is_written_after_a_flush_that_fails_on_the_last_members";
    for_each_seed(name, 60, |seed| {
        let world = World::new(seed, [PAIR, PAIR_BITMAP, TRIPLE][seed as usize % 3]);
        let (dev, array) = (world.dev.clone(), world.array.clone());
        let disks = Rc::clone(&world.disks);
        world.run(async move {
            dev.start(Io::write(0, filled(4096, 1), Flags::NONE)).await.result.unwrap();
            for disk in disks.borrow().iter() {
                disk.faults().add_some(Target::op(Op::Flush), Fault::Error(Errno::IO), 1);
            }
            assert_eq!(dev.start(Io::flush()).await.result, Err(Errno::IO));
            assert!(array.status().broken, "{:#?}", array.status());
            assert_eq!(dev.start(Io::flush()).await.result, Err(Errno::IO));
            let write = dev.start(Io::write(0, filled(4096, 2), Flags::NONE)).await;
            assert_eq!(write.result, Err(Errno::IO));
            let read = dev.start(Io::read(0, filled(4096, 3))).await;
            assert_eq!(read.result, Ok(()));
            assert!(read.payload.bufs().iter().all(|buf| buf.iter().all(|byte| *byte == 1)));
        });
    });
}

/// A write that fails on one member after the array stopped removes no member: superblocks count on that member
/// and can no longer be changed, so the status agrees with them.
#[test]
fn a_stopped_array_takes_nobody_out() {
    for_each_seed("failure::a_stopped_array_takes_nobody_out", 60, |seed| {
        let world = World::new(seed, PAIR);
        let (dev, array, handle) = (world.dev.clone(), world.array.clone(), world.sim.handle());
        let (disks, late) = (Rc::clone(&world.disks), world.disk(0));
        let pause = world.sleep(3);
        world.run(async move {
            dev.start(Io::write(0, filled(4096, 1), Flags::NONE)).await.result.unwrap();
            let data = Target::op(Op::Write).touching(Span::new(crate::world::DATA, 4096));
            let then = handle.now() + 1_000_000_000;
            late.faults().add(data, Fault::NotBefore(then));
            late.faults().add(data, Fault::Error(Errno::IO));
            let write = dev.start(Io::write(0, filled(4096, 2), Flags::NONE));
            let (ended, sleeper) = (Rc::new(Cell::new(None)), handle.clone());
            let end = Rc::clone(&ended);
            handle.spawn("the write", async move { end.set(Some(write.await.result)) });
            sleeper.sleep(100_000_000).await;
            for disk in disks.borrow().iter() {
                disk.faults().add_some(Target::op(Op::Flush), Fault::Error(Errno::IO), 1);
            }
            assert_eq!(dev.start(Io::flush()).await.result, Err(Errno::IO));
            assert!(array.status().broken && ended.get().is_none());
            pause.await;
            assert_eq!(ended.get(), Some(Err(Errno::IO)));
            assert!(array.status().in_sync.iter().all(|one| *one), "{:#?}", array.status());
            assert_eq!(array.fail("disk0").await, Err(ControlError::Stopped));
        });
    });
}

/// Every write of superblocks or bitmap fails on one member, from the N-th on.
#[test]
fn metadata_that_cannot_be_written_takes_the_member_out() {
    let name = "failure::metadata_that_cannot_be_written_takes_the_member_out";
    for_each_seed(name, 100, |seed| {
        let shape = Shape::number(seed);
        let world = World::new(seed, shape);
        let bad = rng(seed).index(shape.members);
        let faults = world.disk(bad).faults().clone();
        let metadata = Span::new(0, crate::world::DATA);
        for index in seed / 10..500 {
            let target = Target { op: Some(Op::Write), ..Target::index(index) };
            faults.add(target.touching(metadata), Fault::Error(Errno::IO));
        }
        let mut client = Client::new(world.dev.clone(), pool(), rng(seed));
        let (mirror, pause) = (world.array.clone(), world.sleep(20));
        world.run(async move {
            let report = client.run(LOAD).await;
            assert!(report.errors.is_empty(), "{:?}", report.errors);
            pause.await;
            let status = mirror.status();
            assert_eq!(status.members[bad].state, MemberState::Faulty, "{status:#?}");
            assert!(!status.active && !status.broken, "{status:#?}");
        });
        world.check_copies_equal();
    });
}

/// When both members fail, writes fail and what was there stays readable, always the same.
#[test]
fn the_last_copy_is_kept() {
    for_each_seed("failure::the_last_copy_is_kept", 60, |seed| {
        let shape = [PAIR, PAIR_BITMAP][seed as usize % 2];
        let world = World::new(seed, shape);
        let part = Span::new(crate::world::DATA + 16384, 4096);
        for disk in [0, 1] {
            let faults = world.disk(disk).faults().clone();
            faults.add(Target::op(Op::Write).touching(part), Fault::Error(Errno::NOSPC));
        }
        let mut client = Client::new(world.dev.clone(), pool(), rng(seed));
        let (mirror, pause) = (world.array.clone(), world.sleep(20));
        let disks: Vec<SimDisk> = world.disks.borrow().clone();
        world.run(async move {
            let report = client.run(LOAD).await;
            for (op, span, errno) in report.errors {
                assert!(span.offset < 16384 + 4096 && span.end() > 16384, "{op:?} {span} {errno}");
            }
            let status = mirror.status();
            // The resync may have found that one of them cannot be made like the other.
            assert!(status.in_sync.contains(&true), "{status:#?}");
            disks.iter().for_each(|disk| disk.faults().clear());
            pause.await;
            let status = mirror.status();
            assert_eq!(status.resync, braid_md::Resync::Clean, "{status:#?}");
            assert!(!status.active && status.job.is_none(), "{status:#?}");
        });
        world.check_copies_equal();
    });
}
