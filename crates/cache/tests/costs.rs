//! The cost of a cache: a hit does not allocate, and the index is small.

use allocation_counter::measure;
use braid_block::Io;
use braid_cache::{Cache, Config};
use braid_device::Ram;
use braid_engine::{Dev, Pending};
use braid_level::{CacheMode, CachePolicy};
use braid_mem::Pool;

fn config(size: u64, block: u64, policy: CachePolicy) -> Config {
    Config { size, block, mode: CacheMode::default(), policy, sequential_cutoff: None }
}

#[test]
fn a_hit_allocates_nothing() {
    let pool = Pool::new(1 << 20).expect("memory");
    for policy in CachePolicy::ALL {
        let ram = Ram::new(8 << 20).expect("memory");
        let cache = Cache::new(Dev::new(ram.device()), config(1 << 20, 4096, policy));
        let dev = Dev::new(cache.expect("memory"));
        let read = |offset| {
            let buf = pool.get(4096).expect("memory");
            let Pending::Ready(Some(done)) = dev.start(Io::read(offset, buf)) else {
                panic!("memory answers at once")
            };
            assert_eq!(done.result, Ok(()));
        };
        let everything = || (0..64_u64).for_each(|block| read(block * 4096));
        everything();
        let counted = measure(everything);
        assert_eq!(counted.count_total, 0, "{policy}: {counted:?}");
    }
}

/// The index takes at most 1.5 % of the data for any number of slots, also after blocks were
/// evicted.
#[test]
fn the_index_is_small() {
    let origin = Ram::new(1 << 20).expect("memory");
    for policy in CachePolicy::ALL {
        for slots in [1_u64 << 12, 7 << 11, (7 << 11) + 1, 3 << 12, 1 << 15] {
            let size = slots * 4096;
            let cache = Cache::new(Dev::new(origin.device()), config(size, 4096, policy));
            let cache = cache.expect("memory");
            let index = cache.index_bytes();
            assert!(index * 1000 <= size * 15, "{policy}: {index} bytes for {slots} slots");
            assert!(!cache.curve().estimates.is_empty(), "{policy}: no curve of {slots} slots");
        }
    }
}
