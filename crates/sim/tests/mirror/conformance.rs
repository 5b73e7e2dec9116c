//! What holds for every shape while nothing, or something survivable, fails.

use braid_sim::{Client, Load, for_each_seed};

use crate::world::{Shape, World, pool, rng};

const LOAD: Load = Load { requests: 80, depth: 12, longest: 40, overlapping: true };

#[test]
fn random_requests_agree_with_the_oracle() {
    let name = "conformance::random_requests_agree_with_the_oracle";
    for_each_seed(name, 300, |seed| {
        let world = World::new(seed, Shape::number(seed));
        let (dev, mirror) = (world.dev.clone(), world.mirror.clone());
        let pause = world.sleep(30);
        world.run(async move {
            let mut client = Client::new(dev, pool(), rng(seed));
            let report = client.run(LOAD).await;
            assert!(report.errors.is_empty(), "{:?}", report.errors);
            pause.await;
            let status = mirror.status();
            assert!(!status.active, "an array at rest is marked clean: {status:#?}");
            assert_eq!(status.bitmap.map_or(0, |(_, _, set)| set), 0, "bits are cleared");
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
