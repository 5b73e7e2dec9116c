//! Sectors that cannot be read: of one member where there is one parity, of two where there are
//! two, on their own and beside members that are missing.
//!
//! ```text
//!   read ──▶ its member ── error ──▶ the others and parity ──▶ answer
//!                 └───────────────── lock ──▶ written again ──▶ read back
//! ```

use std::collections::BTreeSet;
use std::rc::Rc;

use braid_array::geometry::Column;
use braid_array::{ArrayByte, Geometry, Role};
use braid_block::{Errno, Flags, Io, Span};
use braid_engine::redundant::{Consistency, JobKind};
use braid_md::Level;
use braid_sim::{Client, Load, Rng, for_each_seed};

use crate::parity::conformance::all_shapes;
use crate::parity::images::{check_recoverable, check_whole, contents, images_with};
use crate::world::{DATA, Shape, World, filled, parity, pool, rng};

const LOAD: Load = Load { requests: 120, depth: 10, longest: 60, overlapping: true };

/// Spoils blocks at random, but of no row more than there is parity for; answers how many.
fn spoil(world: &World, dice: &mut Rng, count: u64) -> usize {
    let shape = world.shape;
    let mut spoilt: BTreeSet<(u64, usize)> = BTreeSet::new();
    for _ in 0..count {
        let row = dice.below(shape.member_size / 512) * 512;
        let role = dice.index(shape.members);
        let of_row = spoilt.range((row, 0)..(row + 1, 0)).count();
        if of_row < shape.stripes().parities() && spoilt.insert((row, role)) {
            world.disk(role).faults().add_latent(Span::new(DATA + row, 512));
        }
    }
    spoilt.len()
}

/// Data and parity, reads and the reads of old data that writes make: every answer is right, and
/// after a check everything can be read and fits.
#[test]
fn sectors_that_cannot_be_read_are_written_again() {
    let shapes = all_shapes();
    let name = "parity::reads::sectors_that_cannot_be_read_are_written_again";
    for_each_seed(name, 120, |seed| {
        let shape = shapes[seed as usize * 11 % shapes.len()];
        let world = World::new(seed, shape);
        let mut dice = rng(!seed);
        let count = dice.within(1..=16);
        spoil(&world, &mut dice, count);
        let mut client = Client::new(world.dev.clone(), pool(), rng(seed));
        let oracle = Rc::clone(&client.oracle);
        let (array, pause) = (world.array.clone(), world.sleep(30));
        world.run(async move {
            let report = client.run(LOAD).await;
            assert!(report.errors.is_empty(), "{:?}", report.errors);
            array.scrub(Some(JobKind::Check)).unwrap();
            pause.await;
            let status = array.status();
            assert!(status.in_sync.iter().all(|in_sync| *in_sync), "{status:#?}");
            assert_eq!((status.mismatches, status.unproved), (0, 0), "{status:#?}");
            assert!(status.last_scrub.is_some() && status.suspects.is_empty(), "{status:#?}");
        });
        for (index, disk) in world.disks.borrow().iter().enumerate() {
            let used = Span::new(DATA, shape.member_size);
            assert!(!disk.faults().is_latent(used), "disk {index} is still bad");
        }
        let images = world.images();
        check_whole(&shape, &images);
        oracle.borrow().check_crash(&contents(&shape, &images)).unwrap();
    });
}

/// Each sector of a stripe on its own, each pair of them: reads tell what was there, and it is
/// written again and read back.
#[test]
fn every_sector_of_a_row_is_recovered() {
    for shape in [
        parity(Level::Raid4, 0, 3, Consistency::Resync),
        parity(Level::Raid5, 2, 4, Consistency::Log),
        parity(Level::Raid6, 2, 4, Consistency::Resync),
        parity(Level::Raid6, 9, 5, Consistency::Log),
    ] {
        let two = shape.stripes().parities() == 2;
        for a in 0..shape.members {
            for b in 0..if two { shape.members } else { 1 } {
                let bad: BTreeSet<usize> = if two { [a, b].into() } else { [a].into() };
                check_recovery(shape, &bad);
            }
        }
    }
}

fn random_bytes(shape: &Shape, dice: &mut Rng) -> Vec<u8> {
    let words = (0..shape.size() / 8).flat_map(|_| dice.next_u64().to_le_bytes());
    words.collect()
}

fn check_recovery(shape: Shape, bad: &BTreeSet<usize>) {
    let bytes = random_bytes(&shape, &mut rng(bad.len() as u64));
    let world = World::with_images(1, shape, &images_with(&shape, &bytes));
    // The same rows of each of them, in the second and third stripe.
    let place = Span::new(DATA + shape.chunk + 1024, shape.chunk + 1024);
    for role in bad {
        world.disk(*role).faults().add_latent(place);
    }
    let (dev, pause) = (world.dev.clone(), world.sleep(1));
    let expected = bytes.clone();
    world.run(async move {
        for step in [512, 8192, expected.len()] {
            for offset in (0..expected.len()).step_by(step) {
                let len = step.min(expected.len() - offset);
                let done = dev.start(Io::read(offset as u64, pool().get(len).unwrap())).await;
                assert_eq!(done.result, Ok(()));
                assert!(done.payload.to_vec() == expected[offset..offset + len], "at {offset}");
            }
        }
        pause.await;
    });
    let geometry = shape.stripes();
    for role in bad {
        // A place with data was read by a client, so it has been repaired.
        for row in (place.offset..place.end()).step_by(512) {
            let stripe = (row - DATA) / shape.chunk;
            let is_data = matches!(geometry.column_of(stripe, Role::nth(*role)), Column::Data(_));
            let is_bad = world.disk(*role).faults().is_latent(Span::new(row, 512));
            assert!(!(is_data && is_bad), "disk {role} at {row} was not written again");
        }
    }
    check_recoverable(&shape, &world.images(), &bytes);
}

/// A member is missing and another has sectors that cannot be read. With one parity the blocks
/// that need them are errors, and nothing else is; with two they are recovered.
#[test]
fn only_what_cannot_be_recovered_cannot_be_read() {
    for shape in [
        parity(Level::Raid4, 0, 4, Consistency::Resync),
        parity(Level::Raid5, 2, 4, Consistency::Bitmap),
        parity(Level::Raid5, 2, 4, Consistency::Ppl),
        parity(Level::Raid6, 2, 5, Consistency::Resync),
        parity(Level::Raid6, 16, 5, Consistency::Log),
    ] {
        for missing in 0..shape.members {
            for bad in (0..shape.members).filter(|bad| *bad != missing) {
                check_errors(shape, missing, bad);
            }
        }
    }
}

fn check_errors(shape: Shape, missing: usize, bad: usize) {
    let bytes = random_bytes(&shape, &mut rng(7));
    let mut images = images_with(&shape, &bytes);
    images[missing] = None;
    let world = World::with_images(1, shape, &images);
    let rows = Span::new(3072, 1024);
    world.disk(bad).faults().add_latent(Span::new(DATA + rows.offset, rows.len));
    let geometry = shape.stripes();
    let is_lost = |offset: u64| {
        let run = geometry.locate(ArrayByte::new(offset));
        let (role, row) = (run.role.index(), run.offset.get());
        let here = rows.offset <= row && row < rows.end();
        // What the bad member has cannot be worked out without the missing one, and the other way
        // round.
        geometry.parities() == 1 && here && (role == bad || role == missing)
    };
    let lost: BTreeSet<u64> = (0..shape.size()).step_by(512).filter(|at| is_lost(*at)).collect();
    let dev = world.dev.clone();
    let array = world.array.clone();
    world.run(async move {
        for len in [512, 4096, 16384, bytes.len() as u64] {
            for offset in (0..shape.size()).step_by(len as usize) {
                let span = Span::new(offset, len.min(shape.size() - offset));
                let done = dev.start(Io::read(span.offset, pool().get(span.len as usize).unwrap()));
                let done = done.await;
                let is_lost = lost.range(span.offset..span.end()).next().is_some();
                let expected = if is_lost { Err(Errno::IO) } else { Ok(()) };
                assert_eq!(done.result, expected, "{shape:?}, {missing} missing, {bad}: {span}");
                let there = &bytes[span.offset as usize..span.end() as usize];
                assert!(is_lost || done.payload.to_vec() == there, "{span}");
            }
        }
        let status = array.status();
        assert_eq!(status.in_sync.iter().filter(|one| !**one).count(), 1, "{status:#?}");
        // What is lost can be written, and is there then.
        if let (Some(first), Some(last)) = (lost.first(), lost.last()) {
            let span = Span::new(*first, last + 512 - first);
            let whole = Io::write(0, filled(shape.stripes().stripe() as usize, 5), Flags::NONE);
            assert_eq!(dev.start(whole).await.result, Ok(()), "a whole stripe reads nothing");
            let done = dev.start(Io::read(span.offset, pool().get(span.len as usize).unwrap()));
            assert_eq!(done.await.result, Ok(()), "{span} was written");
        }
    });
}
