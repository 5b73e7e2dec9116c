//! Members that fail under load: as many as there is parity for, and more.

use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;

use braid_array::{ArrayByte, Geometry};
use braid_block::{Errno, Flags, Io, Op, Span};
use braid_engine::InFlight;
use braid_engine::redundant::{Consistency, MemberState};
use braid_md::Level;
use braid_sim::{Client, Fault, Load, Target, for_each_seed};

use crate::parity::cache::draw;
use crate::parity::conformance::all_shapes;
use crate::parity::images::{Stripes, check_whole, contents};
use crate::world::{DATA, Shape, World, crash_images, filled, parity, pool, rng};

const LOAD: Load = Load { requests: 80, depth: 10, longest: 48, overlapping: true };

/// Writes or flushes fail, from the N-th request on, of as many members as may be lost: the load
/// goes on, and what is left is the array.
#[test]
fn members_that_fail_are_made_up_for() {
    let shapes = all_shapes();
    let failures = Rc::new(Cell::new(0));
    for_each_seed("parity::failure::members_that_fail_are_made_up_for", 100, |seed| {
        let shape = shapes[seed as usize * 17 % shapes.len()];
        let world = World::new(seed, shape);
        let mut dice = rng(!seed);
        let first = dice.index(shape.members);
        let bad: Vec<usize> =
            (0..shape.stripes().parities()).map(|next| (first + next) % shape.members).collect();
        for index in &bad {
            let op = [Op::Write, Op::Write, Op::Flush, Op::WriteZeroes][dice.index(4)];
            let from = dice.below(40);
            for index_of_request in from..from + 400 {
                let target = Target { op: Some(op), ..Target::index(index_of_request) };
                world.disk(*index).faults().add(target, Fault::Error(Errno::IO));
            }
        }
        let mut client = Client::new(world.dev.clone(), pool(), rng(seed));
        let oracle = Rc::clone(&client.oracle);
        let (array, pause, failures) = (world.array.clone(), world.sleep(20), Rc::clone(&failures));
        world.run(async move {
            let report = client.run(LOAD).await;
            assert!(report.errors.is_empty(), "{:?}", report.errors);
            pause.await;
            let status = array.status();
            assert!(!status.active && !status.broken, "{status:#?}");
            for (index, member) in status.members.iter().enumerate() {
                let faulty = member.state == MemberState::Faulty;
                assert!(!faulty || bad.contains(&index), "{status:#?}");
                failures.set(failures.get() + usize::from(faulty));
            }
        });
        let images = world.images();
        assert!(Stripes::new(&shape, &images).misfits().is_empty(), "parity does not fit");
        oracle.borrow().check_crash(&contents(&shape, &images)).unwrap();
    });
    assert!(failures.get() > 60, "{} members failed", failures.get());
}

/// More members fail than there is parity for, at the data or at everything before it: what cannot
/// be done is an error, nothing hangs, and no member is given up that something needs. (What rows
/// hold whose writes failed halfway: [`rows_torn_without_redundancy_are_errors`].)
#[test]
fn when_too_many_fail_requests_fail_and_none_is_forgotten() {
    let shapes = [
        parity(Level::Raid4, 0, 3, Consistency::Log),
        parity(Level::Raid5, 2, 4, Consistency::Resync),
        parity(Level::Raid5, 2, 4, Consistency::Bitmap),
        parity(Level::Raid5, 2, 4, Consistency::Ppl),
        parity(Level::Raid5, 0, 3, Consistency::Ppl),
        parity(Level::Raid6, 2, 5, Consistency::Log),
    ];
    let failed = Rc::new(Cell::new(0));
    let name = "parity::failure::when_too_many_fail_requests_fail_and_none_is_forgotten";
    for_each_seed(name, 90, |seed| {
        let shape = shapes[seed as usize % shapes.len()];
        let world = World::new(seed, shape);
        let place = match seed / 6 % 3 {
            0 => Span::new(DATA, shape.member_size),
            1 => Span::new(8192, DATA - 8192),
            _ => Span::new(0, DATA + shape.member_size),
        };
        let from = seed / 6;
        for disk in world.disks.borrow().iter() {
            for index in from * 3..from * 3 + 600 {
                let target = Target { op: Some(Op::Write), ..Target::index(index) };
                disk.faults().add(target.touching(place), Fault::Error(Errno::IO));
            }
        }
        let (pause, failed) = (world.sleep(5), Rc::clone(&failed));
        let (dev, array, mut dice) = (world.dev.clone(), world.array.clone(), rng(seed));
        world.run(async move {
            let mut under_way = InFlight::new(60);
            for index in 0..60 {
                under_way.push(index, dev.start(draw(&shape, &mut dice)));
            }
            let mut errors = 0;
            while !under_way.is_empty() {
                let (_, done) = poll_fn(|cx| under_way.poll_next(cx)).await;
                errors += usize::from(done.result.is_err());
            }
            failed.set(failed.get() + usize::from(errors > 0));
            pause.await;
            let status = array.status();
            let missing = status.in_sync.iter().filter(|in_sync| !**in_sync).count();
            assert!(missing <= shape.stripes().parities(), "{status:#?}");
            assert_eq!(status.stripe_cache.map(|cache| cache.used), Some(0), "{status:#?}");
        });
        assert_eq!(pool().free_bytes(), pool().total_bytes(), "memory that did not come back");
    });
    assert!(failed.get() > 60, "{} arrays had errors", failed.get());
}

/// Whole stripes of a degraded array go into the stripe log with their data, in parts that have
/// room there, however large the chunk is.
#[test]
fn chunks_larger_than_the_log_are_logged_in_parts() {
    for (level, missing) in [(Level::Raid5, 0), (Level::Raid5, 2), (Level::Raid6, 1)] {
        let shape = Shape {
            chunk: 128 << 10,
            member_size: 256 << 10,
            ..parity(level, 2, 5, Consistency::Log)
        };
        let mut images = shape.images();
        images[missing] = None;
        let world = World::with_images(missing as u64, shape, &images);
        let (dev, size) = (world.dev.clone(), shape.size());
        let width = shape.stripes().stripe();
        world.run(async move {
            for (byte, len) in [(1, width), (2, size), (3, width)] {
                let io = Io::write(0, filled(len as usize, byte), Flags::NONE);
                assert_eq!(dev.start(io).await.result, Ok(()));
            }
        });
        let mut expected = vec![2; size as usize];
        expected[..width as usize].fill(3);
        assert!(contents(&shape, &world.images()) == expected);
    }
}

/// A member is missing, and a write fails on another: its rows have new parity and old data, or the
/// other way round. What is missing there must not be made up; all else can be read, nothing is
/// written any more, and the log has it right at the next start.
#[test]
fn rows_torn_without_redundancy_are_errors() {
    let worlds = [(Level::Raid5, Consistency::Resync), (Level::Raid5, Consistency::Log)];
    for (level, consistency) in worlds {
        let shape = parity(level, 2, 4, consistency);
        let (size, geometry) = (shape.size(), shape.stripes());
        let before: Vec<u8> = (0..size).map(|at| (at / 512) as u8 ^ 0x55).collect();
        let torn = geometry.locate(ArrayByte::START);
        // Another data column of the same rows is missing.
        let missing = geometry.locate(ArrayByte::new(shape.chunk)).role.index();
        let mut images = crate::parity::images::images_with(&shape, &before);
        images[missing] = None;
        let world = World::with_images(7, shape, &images);
        let (dev, array, disk) =
            (world.dev.clone(), world.array.clone(), world.disk(torn.role.index()));
        let expected = before.clone();
        world.run(async move {
            let place = Span::new(DATA, shape.member_size);
            for index in 0..40 {
                let target = Target { op: Some(Op::Write), ..Target::index(index) };
                disk.faults().add(target.touching(place), Fault::Error(Errno::IO));
            }
            let write = |byte| Io::write(0, filled(4096, byte), Flags::NONE);
            assert_eq!(dev.start(write(9)).await.result, Err(Errno::IO));
            assert!(array.status().broken);
            assert_eq!(dev.start(write(8)).await.result, Err(Errno::IO), "nothing is written");
            for at in (0..size).step_by(4096).skip(1) {
                let read = dev.start(Io::read(at, pool().get(4096).unwrap())).await;
                let is_lost = at == shape.chunk;
                match read.result {
                    Ok(()) if !is_lost => {
                        assert!(read.payload.to_vec() == expected[at as usize..][..4096], "{at}");
                    }
                    result => assert!(is_lost && result.is_err(), "{at}: {result:?}"),
                }
            }
        });
        if consistency == Consistency::Log {
            let again = World::with_images(8, shape, &world.images());
            let contents = contents(&shape, &again.images());
            assert!(contents[4096..] == before[4096..], "what nobody wrote");
            assert!(contents[..4096] == [9; 4096], "what was logged");
        }
    }
}

/// A write that found no room is in the log, and another of its rows comes after it: a crash then
/// does not lay the first over what the second was computed from.
#[test]
fn a_failed_write_is_not_replayed_under_a_newer_one() {
    let mut mended = 0;
    for seed in 0..24 {
        let level = [Level::Raid4, Level::Raid5, Level::Raid6][seed as usize % 3];
        let shape = parity(level, 2, 5, Consistency::Log);
        let before: Vec<u8> = (0..shape.size()).map(|at| (at / 512) as u8 ^ 0x55).collect();
        let images = crate::parity::images::images_with(&shape, &before);
        let world = World::with_images(seed, shape, &images);
        let (dev, array) = (world.dev.clone(), world.array.clone());
        let members = world.disks.borrow().clone();
        world.run(async move {
            for disk in &members {
                let place = Target::op(Op::Write).touching(Span::new(DATA, 512));
                disk.faults().add(place, Fault::Error(Errno::NOSPC));
            }
            let write = |at, byte| dev.start(Io::write(at, filled(512, byte), Flags::NONE));
            assert!(write(0, 9).await.result.is_err());
            members.iter().for_each(|disk| disk.faults().clear());
            // Where some of it arrived, and its parity could not, the array stopped.
            let result = write(shape.chunk, 8).await.result;
            assert_eq!(result.is_err(), array.status().broken, "{result:?}");
        });
        mended += usize::from(!world.array.status().broken);
        let after_crash = crash_images(&world.disks.borrow(), &mut rng(seed));
        let again = World::with_images(seed + 1, shape, &after_crash);
        let images = again.images();
        check_whole(&shape, &images);
        let after = contents(&shape, &images);
        for (index, block) in after.chunks(512).enumerate() {
            let may_be_new = match index as u64 * 512 {
                0 => Some(9),
                at if at == shape.chunk => Some(8),
                _ => None,
            };
            let is_old = block == &before[index * 512..][..512];
            assert!(is_old || may_be_new.is_some_and(|byte| block == [byte; 512]), "{index}");
        }
    }
    assert!(mended >= 6, "{mended} of 24");
}
