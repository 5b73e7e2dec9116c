//! Pools that lend one buffer at a time: a task that holds memory of a pool while it waits for more waits forever.

use braid_engine::redundant::{Consistency, JobKind};
use braid_md::Level::{Raid5, Raid6};
use braid_mem::Pool;
use braid_sim::{Client, Load, for_each_seed};

use crate::parity::crash::tiny;
use crate::world::{SHAPES, Shape, World, rng};

/// A limit of the pools, which is removed when this is dropped.
struct Limit;

impl Limit {
    fn new(bytes: usize) -> Limit {
        braid_mem::set_limit(Some(bytes));
        Limit
    }
}

impl Drop for Limit {
    fn drop(&mut self) {
        braid_mem::set_limit(None);
    }
}

fn shape(seed: u64) -> Shape {
    let more = [
        tiny(Raid5, 2, 4, Consistency::Ppl),
        tiny(Raid5, 2, 4, Consistency::Bitmap),
        tiny(Raid6, 2, 5, Consistency::Log),
    ];
    let all = [&SHAPES[..], &more].concat();
    all[seed as usize % all.len()]
}

#[test]
fn an_array_with_one_buffer_at_a_time_serves_is_scrubbed_and_shut_down() {
    let name = "spent::an_array_with_one_buffer_at_a_time_serves_is_scrubbed_and_shut_down";
    for_each_seed(name, 26, |seed| {
        let _limit = Limit::new(0);
        let world = World::new(seed, shape(seed));
        let (array, rest) = (world.array.clone(), world.sleep(20));
        let memory = Pool::new(8 << 20).expect("memory").without_limit();
        let mut client = Client::new(world.dev.clone(), memory, rng(seed));
        world.run(async move {
            array.scrub(Some(JobKind::Repair)).expect("a repair");
            let load = Load { requests: 60, depth: 6, longest: 24, overlapping: true };
            let report = client.run(load).await;
            assert!(report.errors.is_empty(), "{:?}", report.errors);
            rest.await;
            assert!(array.status().last_scrub.is_some(), "{:#?}", array.status());
            array.shut_down().await;
            assert_eq!(array.leftovers(), Vec::<String>::new());
        });
    });
}
