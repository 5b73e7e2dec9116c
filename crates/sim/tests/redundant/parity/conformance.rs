//! Properties of every shape without faults: a random load agrees with the oracle, and all parity fits when it
//! is over.

use std::rc::Rc;

use braid_engine::redundant::Consistency;
use braid_md::Level;
use braid_sim::{Client, Load, for_each_seed};

use crate::parity::images::{check_whole, contents};
use crate::world::{PPL, Shape, World, parity, pool, rng, superblock_of};

const LOAD: Load = Load { requests: 80, depth: 12, longest: 96, overlapping: true };

/// Every layout with every number of members and whatever closes, or does not close, the write
/// hole.
pub(crate) fn all_shapes() -> Vec<Shape> {
    use Consistency::{Bitmap, Log, Ppl, Resync};
    let raid6 = (0..=5).chain(8..=10).chain(16..=20);
    let layouts = [(Level::Raid4, 0, 3)]
        .into_iter()
        .chain((0..=5).map(|layout| (Level::Raid5, layout, 3)))
        .chain(raid6.map(|layout| (Level::Raid6, layout, 4)));
    let mut shapes = Vec::new();
    for (level, layout, least) in layouts {
        for members in least..=6 {
            for consistency in [Resync, Bitmap, Log, Ppl] {
                if consistency != Ppl || level == Level::Raid5 {
                    shapes.push(parity(level, layout, members, consistency));
                }
            }
        }
    }
    shapes
}

fn check(seed: u64, shape: Shape, load: Load) {
    let world = World::new(seed, shape);
    let mut client = Client::new(world.dev.clone(), pool(), rng(seed));
    let oracle = Rc::clone(&client.oracle);
    let (array, pause) = (world.array.clone(), world.sleep(30));
    world.run(async move {
        let report = client.run(load).await;
        assert!(report.errors.is_empty(), "{:?}", report.errors);
        pause.await;
        let status = array.status();
        assert!(!status.active, "an array at rest is marked clean: {status:#?}");
        assert_eq!(status.bitmap.map_or(0, |bitmap| bitmap.set), 0, "bits are cleared");
        assert!(status.in_sync.iter().all(|in_sync| *in_sync), "{status:#?}");
        assert_eq!(status.stripe_cache.map(|cache| cache.used), Some(0), "{status:#?}");
        assert_eq!(status.consistency, shape.consistency);
    });
    assert_eq!(pool().free_bytes(), pool().total_bytes(), "memory that did not come back");
    let images = world.images();
    check_whole(&shape, &images);
    if let Err(mismatch) = oracle.borrow().check_crash(&contents(&shape, &images)) {
        panic!("the images hold something else: {mismatch}");
    }
    for image in images.iter().flatten() {
        assert!(superblock_of(image).is_clean(), "clean on every member");
    }
}

#[test]
fn random_requests_agree_with_the_oracle() {
    let shapes = all_shapes();
    let name = "parity::conformance::random_requests_agree_with_the_oracle";
    for_each_seed(name, shapes.len() as u64, |seed| {
        check(seed, shapes[seed as usize % shapes.len()], LOAD);
    });
}

/// Requests that touch what others have under way are not made: what is left is what the array
/// itself puts together or takes apart.
#[test]
fn requests_that_do_not_overlap_agree_with_the_oracle() {
    let shapes = all_shapes();
    let name = "parity::conformance::requests_that_do_not_overlap_agree_with_the_oracle";
    for_each_seed(name, shapes.len() as u64, |seed| {
        let load = Load { requests: 60, depth: 6, longest: 40, overlapping: false };
        check(seed, shapes[seed as usize * 7 % shapes.len()], load);
    });
}

/// The area in front of the logs, and the superblocks of other arrays, do not belong to the array.
#[test]
fn nothing_is_written_between_the_superblock_and_the_log() {
    for consistency in [Consistency::Ppl, Consistency::Log] {
        let shape = parity(Level::Raid5, 2, 4, consistency);
        let mut images = shape.images();
        let free = 8192..PPL as usize;
        images.iter_mut().flatten().for_each(|image| image[free.clone()].fill(0xab));
        let world = World::with_images(1, shape, &images);
        let mut client = Client::new(world.dev.clone(), pool(), rng(1));
        let pause = world.sleep(20);
        world.run(async move {
            client.run(LOAD).await;
            pause.await;
        });
        for image in world.images().iter().flatten() {
            assert!(image[free.clone()].iter().all(|byte| *byte == 0xab));
        }
        check_whole(&shape, &world.images());
    }
}
