//! Properties of every shape without faults, or with survivable ones.

use braid_block::{Flags, Io};
use braid_sim::{Client, Load, for_each_seed};

use crate::world::{BITMAP, DATA, PAIR_BITMAP, SHAPES, Shape, TRIPLE, World, pool, rng};

const LOAD: Load = Load { requests: 80, depth: 12, longest: 40, overlapping: true };

#[test]
fn random_requests_agree_with_the_oracle() {
    let name = "conformance::random_requests_agree_with_the_oracle";
    for_each_seed(name, 300, |seed| {
        let world = World::new(seed, Shape::number(seed));
        let (dev, mirror) = (world.dev.clone(), world.array.clone());
        let pause = world.sleep(30);
        world.run(async move {
            let mut client = Client::new(dev, pool(), rng(seed));
            let report = client.run(LOAD).await;
            assert!(report.errors.is_empty(), "{:?}", report.errors);
            pause.await;
            let status = mirror.status();
            assert!(!status.active, "an array at rest is marked clean: {status:#?}");
            assert_eq!(status.bitmap.map_or(0, |bitmap| bitmap.set), 0, "bits are cleared");
            assert!(status.in_sync.iter().all(|in_sync| *in_sync), "{status:#?}");
        });
        assert_eq!(pool().free_bytes(), pool().total_bytes(), "memory that did not come back");
        world.check_copies_equal();
        let images = world.images();
        for image in images.iter().flatten() {
            assert!(crate::world::superblock_of(image).is_clean(), "clean on every member");
        }
    });
}

/// More members than there is memory for superblocks, or for a window of each copy.
#[test]
fn many_members_work_as_few_do() {
    let shape = Shape { members: 300, member_size: 16 << 10, ..PAIR_BITMAP };
    let world = World::with(1, shape, &shape.images(), |setup| {
        setup.resync = braid_md::Resync::From(0);
    });
    let (dev, mirror, pause) = (world.dev.clone(), world.array.clone(), world.sleep(10));
    world.run(async move {
        let mut client = Client::new(dev, pool(), rng(1));
        let load = Load { requests: 6, depth: 3, longest: 8, overlapping: true };
        assert!(client.run(load).await.errors.is_empty());
        mirror.scrub(Some(braid_engine::redundant::JobKind::Check)).unwrap();
        pause.await;
        let status = mirror.status();
        assert!(status.last_scrub.is_some() && status.mismatches == 0 && !status.active);
    });
    world.check_copies_equal();
}

/// Sectors behind the bitmap do not belong to the array.
#[test]
fn nothing_is_written_behind_the_bitmap() {
    for shape in [PAIR_BITMAP, SHAPES[9]] {
        let mut images = shape.images();
        let end = (BITMAP + 512) as usize;
        images.iter_mut().flatten().for_each(|image| image[end..DATA as usize].fill(0xab));
        let world = World::with_images(1, shape, &images);
        let mut client = Client::new(world.dev.clone(), pool(), rng(1));
        let pause = world.sleep(20);
        world.run(async move {
            client.run(LOAD).await;
            pause.await;
        });
        for image in world.images().iter().flatten() {
            assert!(image[end..DATA as usize].iter().all(|byte| *byte == 0xab));
        }
    }
}

/// A member that takes a role gets the whole bitmap, not only the pages that change.
#[test]
fn a_newcomer_has_every_page_of_the_bitmap() {
    // Some 40,000 chunks: two pages of bits.
    let shape = Shape { bitmap: Some(512), member_size: 20 << 20, ..TRIPLE };
    let mut images = shape.images();
    images[2] = None;
    let world = World::with_images(1, shape, &images);
    let (spare, mirror, dev) = (world.spare(9), world.array.clone(), world.dev.clone());
    let (handle, disks) = (world.sim.handle(), std::rc::Rc::clone(&world.disks));
    world.run(async move {
        // In the bits of the second page.
        let io = Io::write(19 << 20, crate::world::filled(512, 1), Flags::NONE);
        dev.start(io).await.result.unwrap();
        mirror.add(spare).await.unwrap();
        while mirror.status().job.is_none() {
            handle.sleep(1_000_000).await;
        }
        handle.sleep(10_000_000).await;
        let images = crate::world::crash_images(&disks.borrow(), &mut rng(1));
        let bits =
            |index: usize| images[index].as_ref().unwrap()[BITMAP as usize..][4096..8192].to_vec();
        assert!(bits(0).iter().any(|byte| *byte != 0));
        assert!(bits(0) == bits(3), "the newcomer lacks bits");
    });
}
