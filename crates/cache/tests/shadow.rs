//! The cache of a prediction has the contents of the real cache.

use braid_block::{Flags, Io, Span};
use braid_cache::{Cache, Config, Shadow};
use braid_device::Ram;
use braid_engine::Dev;
use braid_level::{CacheMode, CachePolicy};
use braid_mem::Pool;
use braid_sim::{Outcome, Sim, for_each_seed};

const SIZE: u64 = 512 << 10;

/// Requests of whole sectors, including parts of blocks and several blocks; some are sequential.
#[test]
fn a_shadow_hits_what_the_cache_hits() {
    for_each_seed("shadow::a_shadow_hits_what_the_cache_hits", 200, |seed| {
        let sim = Sim::new(seed);
        let mut rng = braid_seed::Rng::new(seed);
        let block = 4096 << rng.below(3);
        let config = Config {
            size: block * rng.within(1..=24),
            block,
            mode: CacheMode::ALL[rng.index(2)],
            policy: CachePolicy::ALL[rng.index(CachePolicy::ALL.len())],
            sequential_cutoff: rng.percent(50).then_some(16 << 10),
        };
        let origin = Dev::new(Ram::new(SIZE).expect("memory").device());
        let cache = Cache::new(origin, config).expect("memory");
        let mut shadow = Shadow::new(config, None, SIZE).expect("a cache");
        let dev = Dev::new(cache.clone());
        let outcome = sim.run_until(async move {
            let pool = Pool::new(1 << 20).expect("memory");
            let mut end = 0;
            for at in 0..400 {
                let bytes = [512, 4096, 16 << 10][rng.index(3)];
                let offset = match rng.percent(40) && end + bytes <= SIZE {
                    true => end,
                    false => rng.below((SIZE - bytes) / 512) * 512,
                };
                end = offset + bytes;
                let (span, write) = (Span::new(offset, bytes), rng.percent(30));
                let buf = pool.get(bytes as usize).expect("memory");
                let io =
                    if write { Io::write(offset, buf, Flags::NONE) } else { Io::read(offset, buf) };
                let before = cache.counters().cache_hits;
                assert_eq!(dev.start(io).await.result, Ok(()));
                let hit = cache.counters().cache_hits > before;
                let expected = !write && shadow.hits(span);
                assert_eq!(expected, hit, "request {at}: {span:?}, write: {write}, {config:?}");
                if !expected {
                    let is_long = shadow.is_long(span);
                    shadow.answered(span, write, is_long);
                }
            }
            assert_eq!(cache.used_blocks().0, shadow.used(), "{config:?}");
        });
        assert!(matches!(outcome, Outcome::Done(())));
    });
}

#[test]
fn a_cache_that_cannot_be_has_no_shadow() {
    let config = Config {
        size: 1 << 20,
        block: 4096,
        mode: CacheMode::WriteThrough,
        policy: CachePolicy::default(),
        sequential_cutoff: None,
    };
    assert!(Shadow::new(config, None, SIZE).is_some());
    for wrong in [
        Config { size: 4095, ..config },
        Config { block: 12 << 10, ..config },
        Config { mode: CacheMode::WriteBack, ..config },
    ] {
        assert!(Shadow::new(wrong, None, SIZE).is_none(), "{wrong:?}");
    }
}
