//! Orders of operators while an array works: about its bitmap, and whether its passes run.

use std::collections::BTreeSet;
use std::rc::Rc;

use braid_block::{Flags, Io, Op};
use braid_engine::redundant::{Consistency, Speed};
use braid_md::{Level, Resync};
use braid_sim::{Client, Load, for_each_seed};

use crate::parity::images::check_whole;
use crate::world::{
    DATA, PAIR, PAIR_BITMAP, SHAPES, Shape, World, filled, parity, pool, rng, superblock_of,
};

/// With and without a bitmap, copies and parity.
fn shapes() -> Vec<Shape> {
    let stripes = [
        parity(Level::Raid5, 2, 3, Consistency::Resync),
        parity(Level::Raid6, 2, 4, Consistency::Bitmap),
    ];
    SHAPES.iter().copied().chain(stripes).collect()
}

/// Adds a bitmap, changes its chunk, and removes it, beside a client; members that are assembled then have the
/// bitmap of the last order, and copies agree.
#[test]
fn a_bitmap_comes_changes_and_goes_under_load() {
    let shapes = shapes();
    for_each_seed("orders::a_bitmap_comes_changes_and_goes_under_load", 48, |seed| {
        let shape = shapes[seed as usize % shapes.len()];
        let world = World::new(seed, shape);
        let mut client = Client::new(world.dev.clone(), pool(), rng(seed));
        world.sim.handle().spawn("client", async move {
            let load = Load { requests: 120, depth: 5, longest: 16, overlapping: true };
            assert!(client.run(load).await.errors.is_empty());
        });
        let (array, handle, rest) = (world.array.clone(), world.sim.handle(), world.sleep(5));
        let mut dice = rng(seed.rotate_left(7));
        let last = world.run(async move {
            let mut last = None;
            for _ in 0..6 {
                handle.sleep(dice.below(2_000_000)).await;
                last = match dice.below(3) {
                    0 => {
                        array.remove_bitmap().await.unwrap();
                        None
                    }
                    _ => {
                        let chunk = [4 << 10, 8 << 10, 64 << 10][dice.index(3)];
                        let kind = array.add_bitmap(Some(chunk), None).await.unwrap();
                        assert_eq!(kind.chunk_size, chunk);
                        Some(chunk)
                    }
                };
                let status = array.status();
                assert_eq!(status.bitmap.map(|bitmap| bitmap.chunk_size), last, "{status:#?}");
            }
            rest.await;
            last
        });
        for disk in 0..shape.members {
            let superblock = superblock_of(&world.disk(disk).contents().to_vec());
            assert_eq!(superblock.bitmap_offset.is_some(), last.is_some(), "disk {disk}");
        }
        match shape.has_parity() {
            true => check_whole(&shape, &world.images()),
            false => world.check_copies_equal(),
        }
    });
}

/// A member that was away while the bitmap got other chunks gets what they say, and nothing else.
#[test]
fn a_member_comes_back_by_the_chunks_that_a_bitmap_has_by_then() {
    const WRITES: [(u64, u64); 2] = [(8 << 10, 4 << 10), (8 << 10, 64 << 10)];
    for_each_seed("orders::a_member_comes_back_by_the_chunks_that", 40, |seed| {
        let (old, new) = WRITES[seed as usize % 2];
        assert_eq!(PAIR_BITMAP.bitmap, Some(old));
        let world = World::new(seed, PAIR_BITMAP);
        let (dev, array, disks) = (world.dev.clone(), world.array.clone(), Rc::clone(&world.disks));
        let (handle, quiet, pause) = (world.sim.handle(), world.sleep(15), world.sleep(15));
        let mut dice = rng(seed);
        let expected = world.run(async move {
            quiet.await;
            array.fail("disk1").await.unwrap();
            let mut bytes = BTreeSet::new();
            for _ in 0..dice.within(1..=4) {
                let offset = dice.below(PAIR_BITMAP.member_size / 512) * 512;
                let io = Io::write(offset, filled(512, 2), Flags::NONE);
                dev.start(io).await.result.unwrap();
                // Chunks of the finer of both: what the coarser ones cover.
                let coarse = old.max(new);
                let first = offset / coarse * coarse;
                bytes.extend((first..first + coarse).step_by(4096));
            }
            assert_eq!(array.add_bitmap(Some(new), None).await.unwrap().chunk_size, new);
            array.remove("disk1").await.unwrap();
            let member = World::comes_back(&handle, &disks, 1, &mut dice);
            array.add(member).await.unwrap();
            pause.await;
            let status = array.status();
            assert_eq!(status.in_sync, [true, true], "{status:#?}");
            assert_eq!(status.bitmap.map(|bitmap| bitmap.set), Some(0), "{status:#?}");
            bytes.len() as u64 * 4096
        });
        let trace = world.disk(1).trace();
        let written = trace.iter().filter(|one| one.op == Op::Write && one.span.offset >= DATA);
        assert_eq!(written.map(|one| one.span.len).sum::<u64>(), expected);
        world.check_copies_equal();
    });
}

/// An array without a bitmap, or with none at the moment, refuses with the reason, and nothing is changed.
#[test]
fn a_bitmap_that_cannot_be_is_refused() {
    let refused = |shape: Shape, chunk: Option<u64>, why: &str| {
        let world = World::new(1, shape);
        let array = world.array.clone();
        let result = world.run(async move { array.add_bitmap(chunk, None).await });
        let error = result.expect_err(why).to_string();
        assert!(error.contains(why), "{error}");
        assert!(world.array.status().bitmap.is_none() || shape.bitmap.is_some());
        let after = superblock_of(&world.disk(0).contents().to_vec());
        assert_eq!(after.bitmap_offset.is_some(), shape.bitmap.is_some());
    };
    refused(parity(Level::Raid5, 2, 3, Consistency::Ppl), None, "has a log");
    refused(parity(Level::Raid6, 2, 4, Consistency::Log), None, "has a log");
    refused(PAIR, Some(5000), "a power of two");
    refused(PAIR, Some(512), "a power of two");
}

/// A resync that is held stops, lets no bitmap come, and goes on where it was.
#[test]
fn a_resync_that_is_held_goes_on_where_it_stopped() {
    for_each_seed("orders::a_resync_that_is_held_goes_on", 20, |seed| {
        let mut images = PAIR.images();
        for image in images.iter_mut().flatten() {
            let mut contents = superblock_of(image).into_contents();
            contents.resync = Resync::From(0);
            let bytes = contents.encode();
            image[4096..4096 + bytes.len()].copy_from_slice(&bytes);
            // Holes would be skipped.
            image[DATA as usize..].fill(0x5a);
        }
        let world = World::with(seed, PAIR, &images, |setup| {
            let rate = 64 << 10;
            setup.speed = Speed { min: rate, max: Some(rate), latency: None };
        });
        let (array, handle) = (world.array.clone(), world.sim.handle());
        let long = world.sleep(30);
        world.run(async move {
            while array.status().job.is_none_or(|job| job.done == 0) {
                handle.sleep(5_000_000).await;
            }
            array.hold_passes().await.unwrap();
            let held = array.status();
            assert!(held.job.is_none(), "{held:#?}");
            let Resync::From(frontier) = held.resync else { panic!("{held:#?}") };
            assert!(frontier > 0 && frontier < PAIR.member_size, "{frontier}");
            let error = array.add_bitmap(None, None).await.unwrap_err().to_string();
            assert!(error.contains("made equal first"), "{error}");
            long.await;
            assert_eq!(array.status().resync, Resync::From(frontier), "nothing runs");
            array.let_passes_go_on();
            while array.status().resync != Resync::Clean {
                handle.sleep(50_000_000).await;
            }
        });
        // Each place once.
        let trace = world.disk(0).trace();
        let reads = trace.iter().filter(|one| one.op == Op::Read && one.span.offset >= DATA);
        assert_eq!(reads.map(|one| one.span.len).sum::<u64>(), PAIR.member_size);
        world.check_copies_equal();
    });
}
